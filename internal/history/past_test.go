package history_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/history"
	"github.com/tmshare/tmshare/internal/kv/memory"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/storetest"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/tmdm/cxtm"
	"github.com/tmshare/tmshare/xtm"
)

// chronicle is a collection, with its state at each commit.
type chronicle struct {
	t     tester
	db    *store.DB
	clock time.Time
	edits *storetest.Editor
	past  []recorded
}

// recorded is the state at one commit.
type recorded struct {
	first, last uint64                    // entries
	state       string                    // the map
	elements    int                       // number of elements in its document
	topics      map[fragment.Ref][]string // the statements of each, in lines
}

// large is the number of statements about the topic with the identifier largeSI.
const (
	large   = 300 << 10
	largeSI = "http://large"
)

// tester is the part of a test that a chronicle uses: *rapid.T has it too.
type tester interface {
	require.TestingT
	Cleanup(func())
	Context() context.Context
}

func begin(t testing.TB, rt tester, seed uint64) *chronicle {
	c := &chronicle{t: rt, clock: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC), edits: storetest.NewEditor(t, seed)}
	db, err := store.Open(t.Context(), store.Options{
		Dir: t.TempDir(), Engine: memory.New(), Logger: slog.New(slog.DiscardHandler), Now: func() time.Time { return c.clock },
	})
	require.NoError(rt, err)
	rt.Cleanup(func() { db.Close() })
	c.db = db
	_, err = db.CreateCollection(t.Context(), store.Collection{Name: "m", SP: storetest.SP, Settings: store.Settings{DocumentSize: 3}}, c.edits.Version(nil), nil)
	require.NoError(rt, err)
	c.record(1)
	return c
}

// publish publishes another version, which may have a large topic.
func (c *chronicle) publish(much bool) {
	c.publishing(func(col store.Collection, prior merge.State) (*fragment.Change, error) {
		next := c.edits.Version(prior)
		if much {
			tm := next.TopicMap()
			tm.CreateTopicBySubjectIdentifier(largeSI).AddName(fmt.Sprint(col.Head, strings.Repeat("x", large)), nil)
			var err error
			if next, err = fragment.NameTopics(c.t.Context(), tm, storetest.SP, prior); err != nil {
				return nil, err
			}
		}
		return fragment.Diff(c.t.Context(), prior, next)
	})
}

func (c *chronicle) publishing(decide func(store.Collection, merge.State) (*fragment.Change, error)) {
	first := uint64(0)
	_, err := c.db.Publish(c.t.Context(), "m", func(col store.Collection, prior merge.State) (*fragment.Change, error) {
		first = col.Head + 1
		return decide(col, prior)
	})
	require.NoError(c.t, err)
	c.record(first)
}

func (c *chronicle) view(f func(v *store.View)) {
	require.NoError(c.t, c.db.View(c.t.Context(), "m", func(v *store.View) error { f(v); return nil }))
}

// record records the present state, if there are entries from first on.
func (c *chronicle) record(first uint64) {
	c.view(func(v *store.View) {
		if v.Head < first {
			return
		}
		var b bytes.Buffer
		require.NoError(c.t, v.WriteSnapshot(&b, xtm.V21))
		r := recorded{first, v.Head, canonical(c.t, b.Bytes()), elements(b.String()), map[fragment.Ref][]string{}}
		for topic, err := range v.Source().Topics() {
			require.NoError(c.t, err)
			r.topics[topic.TopicSI()] = describe(c.t, v.Source(), topic.TopicSI())
		}
		c.past = append(c.past, r)
	})
}

// elements counts those of topics and associations, because reading a document would merge duplicates.
func elements(doc string) int {
	return strings.Count(doc, "<topic>") + strings.Count(doc, "<association")
}

func describe(t require.TestingT, src fragment.Source, ref fragment.Ref) []string {
	lines, err := fragment.Describe(src, ref)
	require.NoError(t, err)
	slices.Sort(lines)
	return lines
}

func canonical(t require.TestingT, doc []byte) string {
	tm, err := xtm.Read(context.Background(), bytes.NewReader(doc), xtm.Options{Base: storetest.SP})
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, cxtm.Write(&b, tm, cxtm.Options{Base: tmdm.Locator(storetest.SP), OmitItemIdentifiers: true}))
	return b.String()
}

// export returns the map as of a time.
func (c *chronicle) export(v *store.View, at time.Time) (state string, count int, err error) {
	m, err := history.At(v, at)
	if err != nil {
		return "", 0, err
	}
	then, err := v.Past(m.Seq)
	if err != nil {
		return "", 0, err
	}
	var b bytes.Buffer
	require.NoError(c.t, fragment.WriteSnapshot(&b, then, fragment.Form{Version: xtm.V21, SP: storetest.SP}))
	return canonical(c.t, b.Bytes()), elements(b.String()), nil
}

// Whatever is published, pruned and snapshotted while the clock jumps, and however large a topic is: the state at the
// time of each entry that is kept is the one that was recorded after its commit.
func TestStatesOfThePastAreThoseThatWere(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	had := 0
	testenv.Check(t, 20, 200, func(rt *rapid.T) {
		c := begin(t, rt, rapid.Uint64().Draw(rt, "seed"))
		rt.Repeat(map[string]func(*rapid.T){
			"publish": func(*rapid.T) { c.publish(false) },
			"again":   func(*rapid.T) { c.publish(false) },
			"large":   func(*rapid.T) { c.publish(true) },
			"time": func(t *rapid.T) {
				c.clock = c.clock.Add(time.Duration(rapid.IntRange(-5, 9).Draw(t, "seconds")) * time.Second)
			},
			"snapshot": func(*rapid.T) {
				_, err := c.db.TakeSnapshot(rt.Context(), "m", 2)
				require.NoError(rt, err)
			},
			"prune": func(t *rapid.T) {
				_, err := c.db.Prune(rt.Context(), "m", store.Retention{Entries: rapid.Uint64Range(1, 30).Draw(t, "entries")})
				require.NoError(rt, err)
			},
		})
		c.view(func(v *store.View) {
			for i := range c.past {
				r := &c.past[i]
				for seq := max(r.first, v.Horizon+1); seq <= r.last; seq++ {
					e, err := v.Entry(seq)
					require.NoError(rt, err)
					state, count, err := c.export(v, e.Updated)
					require.NoError(rt, err)
					had++
					require.Equal(rt, r.elements, count)
					require.Equal(rt, r.state, state, "at entry %d of %d to %d", seq, r.first, r.last)
				}
				if r.last > v.Horizon {
					c.checkTopics(v, r)
					if i > 0 {
						c.checkChanges(v, &c.past[i-1], r)
					}
					c.checkDifferences(v, r, &c.past[rapid.IntRange(i, len(c.past)-1).Draw(rt, "later")])
				}
			}
		})
	})
	require.Greater(t, had, 100)
}

// moment returns the state after a commit.
func (c *chronicle) moment(v *store.View, r *recorded) history.Moment {
	e, err := v.Entry(r.last)
	require.NoError(c.t, err)
	at, err := history.At(v, e.Updated)
	require.NoError(c.t, err)
	require.Equal(c.t, history.Moment{Seq: r.last, Updated: e.Updated}, at)
	return at
}

// checkTopics compares single topics with their recorded states.
func (c *chronicle) checkTopics(v *store.View, r *recorded) {
	at := c.moment(v, r)
	for ref, want := range r.topics {
		f, err := history.Was(v, ref, at)
		require.NoError(c.t, err)
		require.NotNil(c.t, f)
		var m merge.Memory
		require.NoError(c.t, m.PutTopic(f.Topic))
		for _, a := range f.Associations {
			require.NoError(c.t, m.PutAssociation(a))
		}
		require.Equal(c.t, want, describe(c.t, &m, ref))
	}
}

// checkChanges compares the changes of a commit with the states before and after it.
func (c *chronicle) checkChanges(v *store.View, before, after *recorded) {
	l, err := history.Changes(c.t.Context(), v, history.Query{Before: after.last + 1, Limit: int(after.last - max(before.last, v.Horizon)), Words: true})
	require.NoError(c.t, err)
	require.Len(c.t, l.Changes, int(after.last-max(before.last, v.Horizon)))
	m, err := history.BeforeCommit(v, after.last)
	if before.last < v.Horizon {
		require.ErrorIs(c.t, err, store.ErrGone)
	} else {
		require.NoError(c.t, err)
		require.Equal(c.t, before.last, m.Seq)
	}
	for i, change := range l.Changes {
		require.Equal(c.t, after.last-uint64(i), change.Entry, "the newest first")
		require.Equal(c.t, after.last, change.Commit)
		ref := fragment.Ref(change.TopicSI)
		was, is := before.topics[ref], after.topics[ref]
		kind := history.Updated
		switch {
		case is == nil && change.Topic != "":
			kind = history.Moved
		case is == nil:
			kind = history.Deleted
		case was == nil:
			kind = history.Added
		}
		require.Equal(c.t, kind, change.Kind)
		if change.Missing != "" {
			require.Less(c.t, before.last, v.Horizon, "%s", change.Missing)
			continue
		}
		c.compared(was, is, &change)
	}
}

// compared checks the words for the difference between two versions.
func (c *chronicle) compared(was, is []string, change *history.Change) {
	gone := len(slices.DeleteFunc(slices.Clone(was), func(line string) bool { return slices.Contains(is, line) }))
	came := len(slices.DeleteFunc(slices.Clone(is), func(line string) bool { return slices.Contains(was, line) }))
	require.GreaterOrEqual(c.t, len(change.Removed), gone, "%s: of %q and %q", change.TopicSI, was, is)
	require.GreaterOrEqual(c.t, len(change.Added), came, "%s: of %q and %q", change.TopicSI, was, is)
	if gone+came == 0 { // a statement in words has more than a line, the reifier of the name of a variant for instance
		require.Empty(c.t, append(change.Removed, change.Added...), "%s: of %q and %q", change.TopicSI, was, is)
	}
}

// checkDifferences compares the differences between two states with the states.
func (c *chronicle) checkDifferences(v *store.View, from, to *recorded) {
	want := map[fragment.Ref]bool{}
	for ref := range from.topics {
		want[ref] = !slices.Equal(from.topics[ref], to.topics[ref])
	}
	for ref := range to.topics {
		want[ref] = want[ref] || !slices.Equal(from.topics[ref], to.topics[ref])
	}
	last := fragment.Ref("")
	var all, rest []history.Change
	for change, err := range history.Differences(c.t.Context(), v, c.db.Scratch(), c.moment(v, from), c.moment(v, to), "") {
		require.NoError(c.t, err)
		ref := fragment.Ref(change.TopicSI)
		require.Less(c.t, last, ref)
		last = ref
		all = append(all, change)
		alone, err := history.Difference(c.t.Context(), v, ref, c.moment(v, from), c.moment(v, to))
		require.NoError(c.t, err)
		require.Equal(c.t, change, alone)
		require.True(c.t, want[ref], "%s does not differ", ref)
		delete(want, ref)
		c.compared(from.topics[ref], to.topics[ref], &change)
	}
	for ref, differs := range want {
		require.False(c.t, differs, "%s differs", ref)
		alone, err := history.Difference(c.t.Context(), v, ref, c.moment(v, from), c.moment(v, to))
		require.NoError(c.t, err)
		require.Empty(c.t, alone)
	}
	if len(all) < 2 {
		return
	}
	middle := len(all) / 2
	for change, err := range history.Differences(c.t.Context(), v, c.db.Scratch(), c.moment(v, from), c.moment(v, to), fragment.Ref(all[middle-1].TopicSI)) {
		require.NoError(c.t, err)
		rest = append(rest, change)
	}
	require.Equal(c.t, all[middle:], rest)
}

// An item identifier that a statement of another topic has by now stands once in a state of the past.
func TestStatesOfThePastCanBeRead(t *testing.T) {
	c := begin(t, t, 1)
	publish := func(name string, ids ...string) { // of the first topic, and the ids of the names of both
		c.publishing(func(_ store.Collection, prior merge.State) (*fragment.Change, error) {
			tm := tmdm.New()
			for i, name := range []string{name, "always the same"} {
				topic := tm.CreateTopicBySubjectIdentifier(tmdm.Locator(fmt.Sprint("http://topic-", i)))
				require.NoError(t, tmdm.AddItemIdentifier(topic.AddName(name, nil), tmdm.Locator(storetest.SP+"#"+ids[i])))
			}
			next, err := fragment.NameTopics(t.Context(), tm, storetest.SP, prior)
			if err != nil {
				return nil, err
			}
			return fragment.Diff(t.Context(), prior, next)
		})
	}
	publish("old", "n1", "n2")
	then := c.past[len(c.past)-1]
	publish("new", "n2", "n1")
	c.view(func(v *store.View) {
		require.Equal(t, then.last+1, v.Head, "the second topic has no entry")
		state, _, err := c.export(v, c.moment(v, &then).Updated)
		require.NoError(t, err)
		require.Equal(t, then.state, state)
	})
}
