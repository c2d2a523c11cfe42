package derive_test

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/derive"
	"github.com/tmshare/tmshare/internal/kv/badger"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/testedit"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// TestReifiersOfADerivedCollection runs random histories of inputs that share topics and reified statements. The stored
// data about reifiers must be correct: after each change, the derived collection equals a view that has read all of
// them.
func TestReifiersOfADerivedCollection(t *testing.T) {
	testenv.SkipUnderRace(t) // one goroutine does all
	kept, joined := histories(t, testenv.Rounds(20, 400), runReifiers)
	require.Positive(t, kept, "reifiers were settled for each change")
	require.Positive(t, joined, "no reifiers were joined")
}

func runReifiers(t *testing.T, seed uint64, say func(...string)) (kept, joined int) {
	rng := rand.New(rand.NewPCG(seed, 37))
	db, err := store.Open(t.Context(), store.Options{Dir: t.TempDir(), Badger: badger.Small})
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	var none merge.Memory
	var names []string
	maps := map[string]*tmdm.TopicMap{}
	editors := map[string]*testedit.Editor{}
	for i := range 2 + rng.IntN(2) {
		name := fmt.Sprintf("input-%d", i)
		prefix := fmt.Sprintf("http://%d.example.org/maps/", i)
		names = append(names, name)
		maps[name] = testedit.SmallMap(sp)
		editors[name] = testedit.New(maps[name], prefix, seed*8+uint64(i))
		_, err := db.CreateCollection(t.Context(), store.Collection{Name: name, SP: prefix}, &none, nil)
		require.NoError(t, err)
	}
	_, err = db.CreateCollection(t.Context(), store.Collection{Name: "all", SP: sp, DerivedFrom: names}, &none, nil)
	require.NoError(t, err)
	head := uint64(0)
	for commit := range 12 {
		name := names[rng.IntN(len(names))]
		for range 1 + rng.IntN(2) {
			say(fmt.Sprintf("%d, %s: %s", commit, name, editors[name].Edit()))
		}
		if rng.IntN(2) == 0 {
			say(share(rng, maps[name])...)
		}
		publishMap(t, db, name, maps[name])
		watched := &watchedStore{DB: db}
		c, err := derive.CatchUp(t.Context(), watched, "all")
		require.NoError(t, err)
		if !watched.settled && c.Head > head {
			kept++
		}
		head = c.Head
		joined += len(settlements(t, db, names))
		requireDerived(t, db, names, "commit %d", commit)
	}
	return kept, joined
}

// TestIdentifiersThatMatterToReifiers changes identifiers in one input, so that reified statements of others become
// equal or different. No reified statement changes.
func TestIdentifiersThatMatterToReifiers(t *testing.T) {
	const reified = `<topic id="t"><subjectIdentifier href="http://x/%[1]s"/><name reifier="#r"><type><topicRef href="#y"/></type><value>Same</value></name></topic>
		<topic id="r"><subjectIdentifier href="http://x/r-%[1]s-%[2]s"/><name><value>Reifier %[1]s %[2]s</value></name></topic>
		<topic id="y"><subjectIdentifier href="http://x/type-%[2]s"/></topic>`
	const disagreeing = `<topic id="t"><subjectIdentifier href="http://x/%[1]s"/><name reifier="#r"><value>Same</value></name></topic>
		<topic id="u"><subjectIdentifier href="http://x/u-%[1]s"/><name reifier="#q"><value>Same</value></name></topic>
		<topic id="r"><subjectIdentifier href="http://x/%[2]s"/></topic><topic id="q"><subjectIdentifier href="http://x/%[3]s"/></topic>`
	const played = `<topic id="t"><subjectIdentifier href="http://x/%[1]s"/></topic>
		<topic id="r"><subjectIdentifier href="http://x/r-%[1]s"/></topic><topic id="y"><subjectIdentifier href="http://x/y"/></topic>
		<association reifier="#r"><type><topicRef href="#y"/></type><role><type><topicRef href="#y"/></type><topicRef href="#t"/></role></association>`
	for name, c := range map[string]struct{ first, second, joining, parting string }{
		"the topic": {fmt.Sprintf(reified, "a", "y"), fmt.Sprintf(reified, "b", "y"), topicWith("a", "b"), topicWith("a")},
		"by a third": {fmt.Sprintf(reified, "a", "y"), fmt.Sprintf(reified, "b", "y"),
			topicWith("c", "a", "b"), topicWith("c", "a") + topicWith("b")},
		"the type":               {fmt.Sprintf(reified, "a", "y"), fmt.Sprintf(reified, "a", "z"), topicWith("type-y", "type-z"), topicWith("type-y") + topicWith("type-z")},
		"the player":             {fmt.Sprintf(played, "a"), fmt.Sprintf(played, "b"), topicWith("a", "b"), ""},
		"where sources disagree": {fmt.Sprintf(disagreeing, "a", "r1", "q1"), fmt.Sprintf(disagreeing, "b", "q1", "r1"), topicWith("a", "b") + topicWith("u-a", "u-b"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			db, err := store.Open(t.Context(), store.Options{Dir: t.TempDir(), Badger: badger.Small})
			require.NoError(t, err)
			defer func() { require.NoError(t, db.Close()) }()
			names := []string{"one", "two", "three"}
			for _, name := range names {
				_, err := db.CreateCollection(t.Context(), store.Collection{Name: name, SP: "http://" + name + ".example.org/"}, &merge.Memory{}, nil)
				require.NoError(t, err)
			}
			_, err = db.CreateCollection(t.Context(), store.Collection{Name: "all", SP: sp, DerivedFrom: names}, &merge.Memory{}, nil)
			require.NoError(t, err)
			publish := func(name, topics string) {
				doc := `<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1">` + topics + `</topicMap>`
				tm, err := xtm.Read(t.Context(), strings.NewReader(doc), xtm.Options{Base: tmdm.Locator("http://" + name + ".example.org/")})
				require.NoError(t, err)
				publishMap(t, db, name, tm)
				_, err = derive.CatchUp(t.Context(), db, "all")
				require.NoError(t, err)
				requireDerived(t, db, names)
			}
			publish("one", c.first)
			publish("two", c.second)
			publish("three", "")
			for range 2 {
				publish("three", c.joining)
				publish("three", strings.ReplaceAll(c.joining, "</topic>", "<name><value>More</value></name></topic>"))
				with := settlements(t, db, names)
				publish("three", c.parting)
				require.NotEqual(t, with, settlements(t, db, names), "the identifiers make no difference")
			}
			publish("three", c.joining)
			require.NoError(t, db.DeleteCollection(t.Context(), "three", ""))
			deriveAgain(t, db, "all", "one", "two")
			_, err = derive.CatchUp(t.Context(), db, "all")
			require.NoError(t, err)
			requireDerived(t, db, names)
		})
	}
}

// topicWith is a topic with some identifiers.
func topicWith(names ...string) string {
	doc := "<topic>"
	for _, n := range names {
		doc += `<subjectIdentifier href="http://x/` + n + `"/>`
	}
	return doc + "</topic>"
}

// publishMap publishes a version of a map.
func publishMap(t *testing.T, db *store.DB, name string, tm *tmdm.TopicMap) {
	_, err := db.Publish(t.Context(), name, func(c store.Collection, state merge.State) (*fragment.Change, error) {
		next, err := fragment.NameTopics(t.Context(), tm, c.SP, state)
		if err != nil {
			return nil, err
		}
		return fragment.Diff(t.Context(), state, next)
	})
	require.NoError(t, err)
}

// withParts calls f with the inputs.
func withParts(t *testing.T, db *store.DB, names []string, f func([]merge.Part)) {
	require.NoError(t, db.ReadParts(t.Context(), func(parts []store.Part) error {
		var all []merge.Part
		for _, p := range parts {
			if slices.Contains(names, p.Name) {
				all = append(all, merge.Part{Name: p.Name, SP: p.SP, Source: p.Source, Published: p.Own})
			}
		}
		f(all)
		return nil
	}))
}

// settlements returns the results of a view without stored data.
func settlements(t *testing.T, db *store.DB, names []string) (keys []string) {
	withParts(t, db, names, func(parts []merge.Part) {
		all, err := merge.NewView(t.Context(), parts...).Settlements()
		require.NoError(t, err)
		for _, s := range all {
			keys = append(keys, s.Key)
		}
	})
	return keys
}

// requireDerived checks that the derived collection is the merge of its inputs.
func requireDerived(t *testing.T, db *store.DB, names []string, what ...any) {
	withParts(t, db, names, func(parts []merge.Part) {
		require.NoError(t, db.View(t.Context(), "all", func(v *store.View) error {
			require.Equal(t, canonical(t, nil, parts...), canonical(t, nil, merge.Part{SP: sp, Source: v.Source()}), what...)
			return nil
		}))
	})
}

// watchedStore records whether the reified statements of the inputs were read.
type watchedStore struct {
	*store.DB
	settled bool
}

func (w *watchedStore) Derive(ctx context.Context, name string, n int, decide func(*store.Deriving, merge.State) (*fragment.Change, error)) (*store.Collection, bool, error) {
	return w.DB.Derive(ctx, name, n, func(d *store.Deriving, state merge.State) (*fragment.Change, error) {
		for i := range d.Parts {
			d.Parts[i].Source = watchedSource{d.Parts[i].Source.(records.Reading).State, w}
		}
		return decide(d, state)
	})
}

type watchedSource struct {
	records.State
	by *watchedStore
}

func (s watchedSource) ReifiedTopics() iter.Seq2[*fragment.Topic, error] {
	s.by.settled = true
	return s.State.ReifiedTopics()
}
