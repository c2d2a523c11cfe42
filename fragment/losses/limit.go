// Package losses measures the losses from one state of a map to the next, and limits them.
package losses

import (
	"fmt"
	"strconv"
	"strings"
)

// Limit is the number of topics that a new version of a map may lose, because a truncated or mistaken file cannot be
// distinguished from deliberate removals. The zero value allows the loss of half of the topics and half of the
// statements, and any loss in a map of fewer than 20 topics. It is safe for concurrent use.
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

// UnmarshalText parses a number of topics ("180"), a percentage of the topics ("80%"), "all", or "" for the default.
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

// MarshalText returns the text that UnmarshalText parses.
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

// Allows reports whether a loss is allowed. By default, no more than half of the statements may go. With a number or a
// percentage of topics, the statements of lost topics do not count: no more than half may go from the others.
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

// Allowing returns the text of the least limit that allows the loss l.
func Allowing(l *Measure) string {
	if mostGoes(l, l.Thinned) {
		return "all"
	}
	return strconv.Itoa(l.Lost())
}

// TooManyError is the error for a new version of a map that exceeds its limit of losses. The other counts are those of
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

// Lines returns a line for each of the first lost topics, and a line if the topics may have been renumbered.
func (e *TooManyError) Lines() []string {
	lines := e.Named()
	if e.Renumbered > 0 {
		lines = append(lines, RenumberedWarning(e.Renumbered))
	}
	return lines
}
