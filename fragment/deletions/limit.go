// Package deletions limits how many topics a new version of a map may delete.
package deletions

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tmshare/tmshare/fragment"
)

// Limit is how many topics a new version of a map may delete. A file that was
// cut short, or stands in the place of another, says the same as one from which
// topics were removed on purpose. The zero value allows half of the topics, and
// any number in a map of fewer than 20. It is safe for concurrent use.
type Limit struct {
	unit   deleteUnit
	amount int
}

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
		return fmt.Errorf("%q is no limit of deletions: write a number of topics, a percentage such as 80%%, or all", b)
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

// Check returns a [*TooManyError] where c deletes more than m allows of a map
// of so many topics.
func (m Limit) Check(topics int, c *fragment.Change) error {
	var allowed bool
	switch m.unit {
	case byDefault:
		allowed = topics < smallMap || c.Deleted <= topics/2
	case byTopics:
		allowed = c.Deleted <= m.amount
	case byPercent:
		allowed = c.Deleted*100 <= m.amount*topics
	case unlimited:
		allowed = true
	}
	if allowed {
		return nil
	}
	return &TooManyError{Topics: topics, Added: c.Added, Updated: c.Updated, Deleted: c.Deleted, Limit: m}
}

// TooManyError says that a new version of a map would delete more topics than
// it may. The other counts are those of [fragment.Change].
type TooManyError struct {
	Topics                  int // of the map as it is
	Added, Updated, Deleted int
	Limit                   Limit
}

func (e *TooManyError) Error() string {
	limit, _ := e.Limit.MarshalText()
	if e.Limit.unit == byDefault {
		limit = []byte("half")
	}
	return fmt.Sprintf("this version would delete %d of %d topics, more than %s; nothing is changed", e.Deleted, e.Topics, limit)
}
