package changes

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/rdf"
	"github.com/tmshare/tmshare/internal/rdf/jsonld"
	"github.com/tmshare/tmshare/internal/rdf/turtle"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/storetest"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/consumed"
	"github.com/tmshare/tmshare/merge"
)

// index is a program that keeps the contents of the lines.
type index struct {
	topics     map[string]*State
	statements map[string]bool
	at         string
	forms      map[string]map[string]bool // the contents of the other forms, by the name of the form
}

func newIndex() *index {
	return &index{map[string]*State{}, map[string]bool{}, beginning, map[string]map[string]bool{"nq": {}, "json-ld": {}}}
}

// takeForms keeps the content of a line in the other forms.
func (x *index) takeForms(t testing.TB, l *Line) {
	for name, all := range x.forms {
		text, err := formats[name](l)
		require.NoError(t, err)
		if l.Kind == Reset {
			clear(all)
		}
		kinds, graphs := []string{}, map[rdf.Term]string{}
		var quads []rdf.Quad
		keep := func(q rdf.Quad) error {
			switch q.Predicate.Value {
			case iri.Own + "kind":
				kinds = append(kinds, q.Object.Value)
			case iri.Own + "removed", iri.Own + "added":
				graphs[q.Object] = q.Predicate.Value
			}
			quads = append(quads, q)
			return nil
		}
		if name == "nq" {
			require.NoError(t, turtle.Read(bytes.NewReader(text), turtle.NQuads, turtle.Options{}, keep))
		} else {
			require.Equal(t, 1, bytes.Count(text, []byte("\n")))
			require.NoError(t, jsonld.Read(bytes.NewReader(text), jsonld.Options{}, keep))
		}
		require.Equal(t, []string{string(l.Kind)}, kinds)
		for _, adds := range []bool{false, true} {
			for _, q := range quads {
				graph := cmp.Or(graphs[q.Graph], q.Graph.Value)
				if q.Graph = (rdf.Term{}); graph == iri.Own+"removed" && !adds {
					delete(all, strings.TrimSuffix(turtle.Line(q), "\n"))
				} else if graph == iri.Own+"added" && adds {
					all[strings.TrimSuffix(turtle.Line(q), "\n")] = true
				}
			}
		}
	}
}

func (x *index) take(t testing.TB, l *Line) {
	x.takeForms(t, l)
	switch l.Kind {
	case Reset:
		clear(x.topics)
		clear(x.statements)
		return
	case Added:
		require.NotContains(t, x.topics, l.Topic)
		require.Nil(t, l.Before)
	case Changed, Deleted:
		require.Equal(t, x.topics[l.Topic], l.Before, "%+v", l)
	}
	delete(x.topics, l.Topic)
	if l.After != nil {
		x.topics[l.Topic] = l.After
	}
	for _, s := range l.Removed {
		delete(x.statements, s)
	}
	for _, s := range l.Added {
		x.statements[s] = true
	}
}

// errEnds is how a program ends in the middle.
var errEnds = errors.New("the program ends")

// A program that takes all lines, and goes on after the last one whenever it ends, has the state of the source.
func TestLinesLeadToTheState(t *testing.T) {
	for seed := range uint64(testenv.Rounds(12, 200)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(testenv.Seed(), seed))
			db := consumed.OpenStore(t)
			var src consumed.Source
			var sub *consumed.Subscription
			if seed%2 == 0 {
				src = consumed.NewCollection(t, db)
			} else {
				s := consumed.NewSubscription(t, db)
				src, sub = s, &s
			}
			change := consumed.Edits(t, testenv.Seed()+seed)
			src.Publish(t, change)
			begun, err := keep(t.Context(), db, "m")
			require.NoError(t, err)
			require.True(t, begun)
			r := &reader{db: db, source: "m", rdf: true}
			x := newIndex()
			for range 20 {
				for range random.IntN(4) {
					src.Publish(t, change)
				}
				if sub != nil && random.IntN(8) == 0 {
					kept := &merge.Memory{}
					src.State(t, func(s fragment.Source) { require.NoError(t, kept.Load(s)) })
					sub.Replace(t, kept)
				}
				for ended := false; !ended; {
					left := random.IntN(12)
					next, err := r.read(t.Context(), x.at, func(l *Line) (int, error) {
						if left--; left == 0 {
							return 0, errEnds
						}
						x.take(t, l)
						x.at = l.Position
						return 1, nil
					})
					if !errors.Is(err, errEnds) {
						require.NoError(t, err)
						ended = next == x.at || x.at == beginning
					}
				}
				want := newIndex()
				src.State(t, func(s fragment.Source) {
					for topic, err := range s.Topics() {
						require.NoError(t, err)
						want.topics[string(topic.TopicSI())] = stateOf(topic)
						f := &fragment.Fragment{Topic: topic}
						for a, err := range fragment.PlayedBy(s, topic.TopicSI()) {
							require.NoError(t, err)
							f.Associations = append(f.Associations, a)
						}
						all, err := statements(storetest.SP, f)
						require.NoError(t, err)
						maps.Copy(want.statements, all)
					}
				})
				require.Equal(t, want.topics, x.topics)
				require.Equal(t, slices.Sorted(maps.Keys(want.statements)), slices.Sorted(maps.Keys(x.statements)))
				for name, all := range x.forms {
					require.Equal(t, slices.Sorted(maps.Keys(want.statements)), slices.Sorted(maps.Keys(all)), name)
				}
			}
		})
	}
}

// Positions of another history, of forgotten changes, and of the future begin anew. A value that is no position is
// refused.
func TestPositionsThatAreNotKnown(t *testing.T) {
	db := consumed.OpenStore(t)
	src := consumed.NewCollection(t, db)
	change := consumed.Edits(t, 1)
	for range 3 {
		src.Publish(t, change)
	}
	_, err := keep(t.Context(), db, "m")
	require.NoError(t, err)
	r := &reader{db: db, source: "m"}
	at, err := r.read(t.Context(), now, nil)
	require.NoError(t, err)
	own, err := parsePosition(at)
	require.NoError(t, err)
	for _, from := range []position{{history: "0123456789ab", commit: 1}, {history: own.history, commit: own.commit + 1}} {
		first := Kind("")
		next, err := r.read(t.Context(), from.String(), func(l *Line) (int, error) {
			if first == "" {
				first = l.Kind
			}
			return 0, nil
		})
		require.NoError(t, err)
		require.Equal(t, Reset, first)
		require.Equal(t, at, next)
	}
	for _, bad := range []string{"", "x", "a.b", "a.1.-1", "a.1.2.3", "-1"} {
		_, err := r.read(t.Context(), bad, nil)
		require.ErrorContains(t, err, "is no position", "%q", bad)
	}
	require.NoError(t, db.RemoveConsumer(t.Context(), consumer("m")))
	_, err = r.read(t.Context(), at, nil)
	require.ErrorIs(t, err, store.ErrNotFound)
}
