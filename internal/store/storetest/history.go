package storetest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/testedit"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/xtm"
)

// SP is the source locator prefix of the maps that are edited.
const SP = "http://maps.example.org/topicmaps/test/"

// Editor makes versions of a map by random edits, each as a publisher reads it.
type Editor struct {
	Edits []string // made so far

	t      testing.TB
	rng    *rand.Rand
	editor *testedit.Editor
}

// NewEditor returns an editor of a small map, reproducible for a seed.
func NewEditor(t testing.TB, seed uint64) *Editor {
	return &Editor{t: t, rng: rand.New(rand.NewPCG(seed, 11)),
		editor: testedit.New(testedit.SmallMap(SP, 0, 2, 3), SP, seed)}
}

// Version edits the map and returns it under the names that a publisher gives.
func (e *Editor) Version(prior fragment.Source) *fragment.Map {
	for range 1 + e.rng.IntN(4) {
		e.Edits = append(e.Edits, e.editor.Edit())
	}
	var doc bytes.Buffer
	_, err := xtm.Write(&doc, e.editor.Map, xtm.WriteOptions{Version: xtm.V21, Base: SP})
	require.NoError(e.t, err)
	tm, err := xtm.Read(e.t.Context(), &doc, xtm.Options{Base: SP})
	require.NoError(e.t, err)
	next, err := fragment.NameTopics(e.t.Context(), tm, SP, prior)
	require.NoError(e.t, err)
	return next
}

// Fragments returns the fragments of a change as subscribers read them. src is
// the state after the change.
func Fragments(t testing.TB, src fragment.Source, change *fragment.Change) []*fragment.Fragment {
	t.Helper()
	form := fragment.Form{Version: xtm.V21, SP: SP}
	out := make([]*fragment.Fragment, len(change.Entries))
	for i, e := range change.Entries {
		var b bytes.Buffer
		require.NoError(t, e.Write(&b, src, form))
		f, err := fragment.Read(t.Context(), &b, xtm.Options{Base: SP}, e.TopicSI)
		require.NoError(t, err)
		f.Deleted = e.Deleted
		out[i] = f
	}
	return out
}

// Write changes a publisher's state, deletions first.
func Write(t testing.TB, s merge.State, c *fragment.Change) {
	t.Helper()
	for _, a := range c.DeleteAssociations {
		require.NoError(t, s.DeleteAssociation(a))
	}
	for _, ref := range c.DeleteTopics {
		require.NoError(t, s.DeleteTopic(topic(ref)))
	}
	for _, topic := range c.PutTopics {
		require.NoError(t, s.DeleteTopic(topic))
	}
	for _, topic := range c.PutTopics {
		require.NoError(t, s.PutTopic(topic))
	}
	for _, a := range c.PutAssociations {
		require.NoError(t, s.PutAssociation(a))
	}
}

// Histories runs n random histories of edits. A backend to which their fragments
// are applied has the records, and answers the questions, of a [merge.Memory] to
// which they are applied: after every fragment, every update and every opening.
func Histories(t *testing.T, open func(t *testing.T) Backend, n int, seed uint64) {
	require.Positive(t, n)
	applied := 0
	for i := range uint64(n) {
		t.Run(fmt.Sprint(seed+i), func(t *testing.T) { applied += runHistory(t, open(t), seed+i) })
		if t.Failed() {
			return
		}
	}
	require.Greater(t, applied, 20*n, "the histories have too few fragments to mean anything")
}

func runHistory(t *testing.T, b Backend, seed uint64) (applied int) {
	rng := rand.New(rand.NewPCG(seed, 13))
	editor := NewEditor(t, seed)
	defer func() {
		if t.Failed() {
			t.Logf("edits:\n%s", strings.Join(editor.Edits, "\n"))
		}
	}()
	var publisher, want merge.Memory
	type state struct{ records, answers string }
	stateOf := func(s merge.State) state { return state{Dump(t, s), Answers(t, s)} }
	same := func(want state, s merge.State) {
		t.Helper()
		require.Equal(t, want.records, Dump(t, s), "record for record")
		require.Equal(t, want.answers, Answers(t, s), "answer for answer")
	}
	var log []*fragment.Fragment
	for range 6 + rng.IntN(10) {
		change, err := fragment.Diff(t.Context(), &publisher, editor.Version(&publisher))
		require.NoError(t, err)
		Write(t, &publisher, change)
		log = append(log, Fragments(t, &publisher, change)...)
	}
	for at := 0; at < len(log); {
		if rng.IntN(8) == 0 {
			at = rng.IntN(at + 1) // again, and everything later
		}
		some := log[at : at+1+rng.IntN(min(5, len(log)-at))]
		at += len(some)
		after := make([]state, len(some))
		for i, f := range some {
			require.NoError(t, merge.Apply(&want, f))
			after[i] = stateOf(&want)
		}
		applied += len(some)
		require.NoError(t, b.Update(func(s merge.State) error { // perhaps more than once
			for i, f := range some {
				if err := merge.Apply(s, f); err != nil {
					return err
				}
				same(after[i], s)
			}
			return nil
		}))
		if d, ok := b.(Durable); ok && rng.IntN(20) == 0 {
			require.NoError(t, d.Reopen())
		}
		require.NoError(t, b.Update(func(s merge.State) error { same(stateOf(&want), s); return nil }))
	}
	return applied
}
