// Package storetest holds the rules that every backend of the records of a
// source keeps: [Run] checks them one by one, [Histories] by random edits
// against [merge.Memory].
package storetest

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
)

// Backend holds the records of one source, none at first.
type Backend interface {
	// Update calls f with the records and keeps what f changes.
	Update(f func(merge.State) error) error
}

// Durable is a Backend that outlives its process. An Update that fails changes nothing in it.
type Durable interface {
	Backend

	// Reopen closes the backend and opens it again.
	Reopen() error
}

// Run checks every rule on a separate backend.
func Run(t *testing.T, open func(t *testing.T) Backend) {
	for _, group := range []struct {
		name  string
		rules []rule
	}{{"topics", topicRules}, {"associations", associationRules}, {"updates", updateRules}} {
		require.NotEmpty(t, group.rules)
		for _, r := range group.rules {
			t.Run(group.name+"/"+r.name, func(t *testing.T) { r.check(&checker{t, open(t)}) })
		}
	}
}

type rule struct {
	name  string
	check func(*checker)
}

type checker struct {
	*testing.T
	backend Backend
}

// given changes the records.
func (c *checker) given(change func(merge.State)) {
	c.Helper()
	require.NoError(c, c.backend.Update(func(s merge.State) error { change(s); return nil }))
}

// after changes the records and checks them with holds: in the same update, in the next one, and, of a durable backend,
// after it is opened again.
func (c *checker) after(change, holds func(merge.State)) {
	c.Helper()
	c.given(func(s merge.State) { change(s); holds(s) })
	c.given(holds)
	if d, ok := c.backend.(Durable); ok {
		require.NoError(c, d.Reopen())
		c.given(holds)
	}
}

func (c *checker) put(s merge.State, records ...any) {
	c.Helper()
	for _, r := range records {
		switch r := r.(type) {
		case *fragment.Topic:
			require.NoError(c, s.PutTopic(r))
		case *fragment.Association:
			require.NoError(c, s.PutAssociation(r))
		default:
			c.Fatalf("%T is no record", r)
		}
	}
}

func (c *checker) delete(s merge.State, records ...any) {
	c.Helper()
	for _, r := range records {
		switch r := r.(type) {
		case *fragment.Topic:
			require.NoError(c, s.DeleteTopic(r))
		case *fragment.Association:
			require.NoError(c, s.DeleteAssociation(r))
		default:
			c.Fatalf("%T is no record", r)
		}
	}
}

// collect returns the items of an iteration.
func collect[T any](t testing.TB, seq iter.Seq2[T, error]) []T {
	t.Helper()
	var all []T
	for x, err := range seq {
		require.NoError(t, err)
		all = append(all, x)
	}
	return all
}

// topicBytes and associationBytes make records comparable in every part.
func topicBytes(t *fragment.Topic) string { return fmt.Sprintf("%q", fragment.MarshalTopic(t)) }

func associationBytes(a *fragment.Association) string {
	return fmt.Sprintf("%q", fragment.MarshalAssociation(a))
}

func mapped[T any](list []T, f func(T) string) []string {
	out := make([]string, len(list))
	for i, x := range list {
		out[i] = f(x)
	}
	return out
}

// Dump lists all records of a source, a line for each. Sources with the same
// records give the same lines.
func Dump(t testing.TB, src fragment.Source) string {
	t.Helper()
	lines := mapped(collect(t, src.Topics()), topicBytes)
	associations := mapped(collect(t, src.Associations()), associationBytes)
	slices.Sort(associations) // their order is undefined
	return strings.Join(append(lines, associations...), "\n")
}

// Answers lists the answers of a state to every query about its identifiers and the given others: look-ups,
// associations by part, mentions.
func Answers(t testing.TB, s merge.State, others ...tmdm.Locator) string {
	t.Helper()
	known := map[tmdm.Locator]bool{}
	note := func(l tmdm.Locator) { known[l] = true }
	for _, l := range others {
		note(l)
	}
	for _, topic := range collect(t, s.Topics()) {
		for _, set := range [][]tmdm.Locator{topic.SubjectIdentifiers, topic.SubjectLocators} {
			for _, l := range set {
				note(l)
			}
		}
		topic.Mentions(note)
	}
	for _, a := range collect(t, s.Associations()) {
		a.Mentions(note)
		for _, p := range a.Players() {
			note(p)
		}
	}
	var b strings.Builder
	for _, l := range slices.Sorted(maps.Keys(known)) {
		bySI, err := s.Topic(l)
		require.NoError(t, err)
		bySL, err := s.TopicBySubjectLocator(l)
		require.NoError(t, err)
		n, err := s.Mentions(l)
		require.NoError(t, err)
		fmt.Fprintf(&b, "%s: %d mentions\n", l, n)
		for _, found := range []*fragment.Topic{bySI, bySL} {
			if found != nil {
				fmt.Fprintf(&b, "\ttopic %s\n", topicBytes(found))
			}
		}
		for _, part := range fragment.Parts {
			for _, a := range collect(t, s.AssociationsOf(l, part)) {
				fmt.Fprintf(&b, "\tpart %d of %s\n", part, associationBytes(a))
			}
		}
	}
	return b.String()
}
