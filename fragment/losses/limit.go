// Package losses measures what a new state of a map has lost, and limits it.
package losses

import (
	"fmt"
	"strconv"
	"strings"
)

// Limit is how many topics a new version of a map may lose. A file that was
// cut short, or stands in the place of another, says the same as one from which
// topics were removed on purpose. The zero value allows half of the topics and of all that is said, and
// any number in a map of fewer than 20. It is safe for concurrent use.
type Limit struct {
	unit   deleteUnit
	amount int
}

// All returns the limit that allows everything.
func All() Limit { return Limit{unit: unlimited} }

type deleteUnit int

const (
	byDefault deleteUnit = iota
	byTopics
	byPercent
	unlimited
)

// smallMap is the number of topics from which on the default holds a version back.
const smallMap = 20

// UnmarshalText reads a number of topics ("180"), a percentage of those that there
// are ("80%"), "all", or "" for the default.
func (m *Limit) UnmarshalText(b []byte) error {
	text, percent := strings.CutSuffix(string(b), "%")
	n, err := strconv.ParseUint(text, 10, 31)
	switch {
	case len(b) == 0:
		*m = Limit{}
	case text == "all" && !percent:
		*m = Limit{unit: unlimited}
	case err != nil || percent && n > 100:
		return fmt.Errorf("%q is no limit of losses: write a number of topics, a percentage such as 80%%, or all", b)
	case percent:
		*m = Limit{byPercent, int(n)}
	default:
		*m = Limit{byTopics, int(n)}
	}
	return nil
}

// MarshalText returns what UnmarshalText reads.
func (m Limit) MarshalText() ([]byte, error) {
	switch m.unit {
	case byTopics:
		return fmt.Appendf(nil, "%d", m.amount), nil
	case byPercent:
		return fmt.Appendf(nil, "%d%%", m.amount), nil
	case unlimited:
		return []byte("all"), nil
	}
	return nil, nil
}

// Allows reports whether so much may be lost. The default weighs all that is said as well: no more than half of it may
// go. A number or a percentage is about topics that are lost, and allows what goes with them; the same holds for what
// goes from all others.
func (m Limit) Allows(l *Measure) bool {
	gone := l.Thinned
	switch m.unit {
	case unlimited:
		return true
	case byDefault:
		gone = l.Gone
	}
	return m.allowsTopics(l) && !mostGoes(l, gone)
}

func (m Limit) allowsTopics(l *Measure) bool {
	switch m.unit {
	case byTopics:
		return l.Lost() <= m.amount
	case byPercent:
		return l.Lost()*100 <= m.amount*l.Topics
	}
	return l.Topics < smallMap || l.Lost() <= l.Topics/2
}

// mostGoes reports whether more than half of the statements go. Small maps may lose them.
func mostGoes(l *Measure, gone int) bool {
	return l.Topics >= smallMap && l.Statements > 0 && gone > l.Statements/2
}

// Allowing returns the text of the least limit that allows what l counts.
func Allowing(l *Measure) string {
	if mostGoes(l, l.Thinned) {
		return "all"
	}
	return strconv.Itoa(l.Lost())
}

// TooManyError says that a new version of a map would lose more than it may. The other counts are those of
// [fragment.Change].
type TooManyError struct {
	Measure
	Added, Updated, Renumbered int
	Limit                      Limit
}

func (e *TooManyError) Error() string {
	limit, _ := e.Limit.MarshalText()
	if e.Limit.unit == byDefault {
		limit = []byte("half")
	}
	lost := fmt.Sprintf("%d of %d topics, more than %s (%s)", e.Lost(), e.Topics, limit, e.kinds())
	if e.Limit.allowsTopics(&e.Measure) {
		lost = fmt.Sprintf("%d of %d statements, more than half", e.Gone, e.Statements)
	}
	return fmt.Sprintf("this version would lose %s; nothing is changed", lost)
}

// Lines names the first topics that are lost, each in a line, and says if it may all be a renumbering.
func (e *TooManyError) Lines() []string {
	lines := e.Named()
	if e.Renumbered > 0 {
		lines = append(lines, RenumberedWarning(e.Renumbered))
	}
	return lines
}
