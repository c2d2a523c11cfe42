package losses

import (
	"fmt"
	"strings"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/words"
)

// Measure counts the losses from one state of a map to the next, by topic. The number of deleted topics would not
// suffice, because a topic without any statement still exists. A topic is lost if it is deleted, if it keeps none of
// its names and occurrences, or if it loses its last type.
//
// [Diff] measures a new version before it is published; followers of a source add each topic that a reading would
// change. The zero value is empty.
type Measure struct {
	Topics int // of the state before
	// of them, in that state; an association counts for each of its players. 0: not known, and then it is not weighed
	Statements int

	Deleted, Emptied, Untyped int // topics that are lost, each counted once

	Gone    int    // of Said
	Thinned int    // of Gone: from topics that are not lost
	First   []Loss // the first topics that are lost, at most MostNamed
}

// MostNamed is the number of losses that are named.
const MostNamed = 10

// Loss is one topic that is lost.
type Loss struct {
	TopicSI fragment.Ref
	Title   string
	Kind    Kind
}

// Kind is the kind of loss of a topic.
type Kind string

// The kinds of losses.
const (
	Deleted Kind = "deleted"
	Emptied Kind = "emptied" // it keeps none of its names and occurrences
	Untyped Kind = "untyped" // it loses its last type
)

// kindOf returns how a topic is lost, or "" where it is not. after is nil where the topic is deleted.
func kindOf(before fragment.StatementCounts, after *fragment.StatementCounts) Kind {
	switch {
	case after == nil:
		return Deleted
	case before.Statements > 0 && after.Statements == 0:
		return Emptied
	case before.Types > 0 && after.Types == 0:
		return Untyped
	}
	return ""
}

// Add measures one topic of the state before: its statements before and after; nil if it is deleted. Callers may omit
// unchanged topics if they set Topics and Statements themselves. topic returns the record before, for its name.
func (m *Measure) Add(before fragment.StatementCounts, after *fragment.StatementCounts, topic func() *fragment.Topic) {
	m.Topics++
	m.Statements += all(before)
	m.Lose(before, after, topic)
}

// Lose measures the loss of one topic, without counting its statements before.
func (m *Measure) Lose(before fragment.StatementCounts, after *fragment.StatementCounts, topic func() *fragment.Topic) {
	gone := all(before)
	if after != nil {
		gone = max(0, gone-all(*after))
	}
	m.Gone += gone
	kind := kindOf(before, after)
	switch kind {
	case Deleted:
		m.Deleted++
	case Emptied:
		m.Emptied++
	case Untyped:
		m.Untyped++
	default:
		m.Thinned += gone
		return
	}
	if len(m.First) < MostNamed {
		t := topic()
		title := t.Title()
		if words.IsOpaque(title) {
			title = words.Unnamed
		}
		m.First = append(m.First, Loss{t.TopicSI(), clip(title), kind})
	}
}

// all counts all statements about a topic.
func all(s fragment.StatementCounts) int { return s.Statements + s.Types + s.Associations }

// StatementsOf returns the numbers of statements of src about one of its topics.
func StatementsOf(src fragment.Source, t *fragment.Topic) (fragment.StatementCounts, error) {
	counts := fragment.StatementCounts{Statements: len(t.Names) + len(t.Occurrences)}
	for a, err := range fragment.PlayedBy(src, t.TopicSI()) {
		if err != nil {
			return counts, err
		}
		counts.Play(a.Part(t.TopicSI()))
	}
	return counts, nil
}

// Lost returns the number of lost topics.
func (m *Measure) Lost() int { return m.Deleted + m.Emptied + m.Untyped }

// kinds returns the numbers of lost topics by kind, in words.
func (m *Measure) kinds() string {
	var parts []string
	for _, k := range []struct {
		times int
		words string
	}{{m.Deleted, "deleted"}, {m.Emptied, "without names and occurrences"}, {m.Untyped, "without a type"}} {
		if k.times > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", k.times, k.words))
		}
	}
	return strings.Join(parts, ", ")
}

// Named returns a line for each of the first losses, and one with the number of the others.
func (m *Measure) Named() (lines []string) {
	for _, l := range m.First {
		lines = append(lines, l.String())
	}
	if more := m.Lost() - len(m.First); more > 0 {
		lines = append(lines, fmt.Sprintf("… and %d more", more))
	}
	return lines
}

// clip shortens a text to a line for people.
func clip(text string) string {
	if short := fmt.Sprintf("%.100s", text); short != text {
		return short + "…"
	}
	return text
}

func (l Loss) String() string {
	name := clip(l.TopicSI.String())
	if words.IsOpaque(name) {
		name = l.Title
	}
	if l.Title != name {
		name += fmt.Sprintf(" %q", l.Title)
	}
	switch l.Kind {
	case Emptied:
		return name + ": no name and no occurrence is left"
	case Untyped:
		return name + ": no type is left"
	}
	return name + ": " + string(l.Kind)
}
