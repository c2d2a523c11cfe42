package history_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/fragment/losses"
	"github.com/tmshare/tmshare/internal/history"
	"github.com/tmshare/tmshare/internal/kv/memory"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/storetest"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

const voc = "http://voc.example.org/"

// concept adds a concept of the scheme to a map.
func concept(tm *tmdm.TopicMap, name string) {
	topic := func(si string) *tmdm.Topic { return tm.CreateTopicBySubjectIdentifier(tmdm.Locator(voc + si)) }
	c := topic(name)
	c.AddName(name, nil)
	a := tm.CreateAssociation(topic("inScheme"))
	for player, typ := range map[*tmdm.Topic]string{c: "member", topic("scheme"): "whole"} {
		a.AddRole(topic(typ), player)
	}
}

// holding publishes a map as the collection m.
func holding(t *testing.T, tm *tmdm.TopicMap) *chronicle {
	c := &chronicle{t: t}
	db, err := store.Open(t.Context(), store.Options{Dir: t.TempDir(), Engine: memory.New(), Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	c.db = db
	first, err := fragment.NameTopics(t.Context(), tm, storetest.SP, nil)
	require.NoError(t, err)
	_, err = db.CreateCollection(t.Context(), store.Collection{Name: "m", SP: storetest.SP}, first, nil)
	require.NoError(t, err)
	return c
}

// commit publishes a change, and returns the number of its commit.
func (c *chronicle) commit(decide func(store.Collection, merge.State) (*fragment.Change, error)) uint64 {
	after, err := c.db.Publish(c.t.Context(), "m", decide)
	require.NoError(c.t, err)
	return after.Head
}

func (c *chronicle) takeBack(commit uint64) uint64 {
	return c.commit(func(col store.Collection, prior merge.State) (*fragment.Change, error) {
		return history.Undo(c.t.Context(), c.db.ViewOf(col, prior), commit, history.Undone{Limit: losses.All()})
	})
}

// In a concept scheme of any size, concepts are added, and the last commit, or one of a hundred commits ago, is undone:
// earlier states and differences are available as for a small one.
func TestSchemesOfAnySizeAreLookedBackAt(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	for _, size := range []int{390, 4_000, 50_000}[:testenv.Rounds(2, 3)] {
		tm := tmdm.New()
		for i := range size {
			concept(tm, fmt.Sprint("c", i))
		}
		scheme := tm.CreateTopicBySubjectIdentifier(voc + "scheme")
		scheme.AddName("Scheme", nil)
		c := holding(t, tm)
		var begun map[string]string
		c.view(func(v *store.View) { begun = rows(t, v.Source()) })
		var commits []uint64
		for n := range 101 {
			commits = append(commits, c.commit(func(_ store.Collection, prior merge.State) (*fragment.Change, error) {
				tm := tmdm.New()
				concept(tm, fmt.Sprint("new", n))
				return fragment.Replace(t.Context(), prior, tm, storetest.SP, tmdm.Locator(fmt.Sprint(voc, "new", n)))
			}))
		}
		associations := func(at uint64) int {
			var was *fragment.Fragment
			c.view(func(v *store.View) {
				var err error
				was, err = history.Was(v, voc+"scheme", history.Moment{Seq: at})
				require.NoError(t, err)
			})
			return len(was.Associations)
		}
		require.Equal(t, size, associations(commits[0]-2), "before the first of them")
		require.Equal(t, size+1, associations(commits[0]))
		require.Equal(t, size+101, associations(commits[100]))

		c.takeBack(commits[0])
		head := c.takeBack(commits[100])
		require.Equal(t, size+99, associations(head))
		c.view(func(v *store.View) {
			for si, there := range map[fragment.Ref]bool{voc + "new0": false, voc + "new1": true, voc + "new99": true, voc + "new100": false} {
				topic, err := v.Source().Topic(si)
				require.NoError(t, err)
				require.Equal(t, there, topic != nil, si)
			}
			then, err := v.Past(commits[0] - 2)
			require.NoError(t, err)
			require.Equal(t, begun, rows(t, then))
			list, err := history.Changes(t.Context(), v, history.Query{TopicSI: voc + "scheme", Limit: 3, Words: true})
			require.NoError(t, err)
			for _, change := range list.Changes {
				require.Empty(t, change.Missing)
				require.Len(t, append(change.Added, change.Removed...), 1, "%+v", change)
			}
			changed := 0
			for change, err := range history.Differences(t.Context(), v, c.db.Scratch(), history.Moment{Seq: commits[0] - 2}, history.Moment{Seq: head}, "") {
				require.NoError(t, err)
				if changed++; change.TopicSI == voc+"scheme" {
					require.Len(t, change.Added, 99)
				}
			}
			require.Equal(t, 100, changed, "99 concepts and their scheme")
		})
	}
}

// A term of a real thesaurus is deleted, and its deletion is undone.
func TestATermOfARealThesaurusComesBack(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	doc, err := os.ReadFile(testenv.Shared(t, "data/GCL-2-1.xtm"))
	require.NoError(t, err)
	tm, err := xtm.Read(t.Context(), bytes.NewReader(doc), xtm.Options{Base: storetest.SP, Lenient: true})
	require.NoError(t, err)
	c := holding(t, tm)
	var before map[string]string
	var terms []fragment.Ref
	c.view(func(v *store.View) {
		before = rows(t, v.Source())
		for topic, err := range v.Source().Topics() {
			require.NoError(t, err)
			n, err := v.State().Mentions(topic.TopicSI())
			require.NoError(t, err)
			instances := 0
			for _, err := range v.Source().AssociationsOf(topic.TopicSI(), fragment.AsType) {
				require.NoError(t, err)
				instances++
			}
			if n == 0 && instances == 0 && len(topic.Names) > 0 {
				terms = append(terms, topic.TopicSI())
			}
		}
	})
	require.Greater(t, len(terms), 300)
	for _, term := range terms[:20] {
		deleted := c.commit(func(_ store.Collection, prior merge.State) (*fragment.Change, error) {
			return history.Back(t.Context(), storetest.SP, prior, term, nil)
		})
		c.takeBack(deleted)
		c.view(func(v *store.View) { require.Equal(t, before, rows(t, v.Source()), term) })
	}
}
