package sparql

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/internal/locks"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/storetest"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/consumed"
	"github.com/tmshare/tmshare/internal/testkit/triplestore"
	"github.com/tmshare/tmshare/merge"
)

const graph = "http://example.org/graph"

// newTarget adds a target of the source m.
func newTarget(t testing.TB, db *store.DB, s *triplestore.Store) *keeper {
	k := addTarget(t, db, &Target{Update: s.URL + "/update", Query: s.URL + "/query"})
	k.perRange, k.mostRows = 7, 20
	return k
}

func addTarget(t testing.TB, db *store.DB, target *Target) *keeper {
	target.Name, target.Source, target.Graph = "t", "m", graph
	require.NoError(t, target.validate())
	kept, err := json.Marshal(target)
	require.NoError(t, err)
	require.NoError(t, db.AddConsumer(t.Context(), store.Consumer{Name: prefix + "t", Source: "m", Kept: kept}))
	return begun(t, db, target)
}

// begun returns what keeps a target in step, as another process would have it.
func begun(t testing.TB, db *store.DB, target *Target) *keeper {
	f := fetch.Fetcher{Logger: slog.New(slog.DiscardHandler), Tries: 2, Backoff: time.Millisecond}.WithDefaults()
	e, err := newEndpoint(target, f)
	require.NoError(t, err)
	return &keeper{Target: target, db: db, store: e, log: f.Logger, now: time.Now, report: func(string) {},
		locks: &locks.Locks{}, perRange: perRange, mostRows: mostRows, maxDelete: mostDelete}
}

// wanted returns the triples that the graph must have.
func wanted(t testing.TB, src consumed.Source) (all []string) {
	src.State(t, func(state fragment.Source) {
		s := newStatements(storetest.SP)
		for r, err := range fragment.Records(state) {
			require.NoError(t, err)
			found, err := s.ofRecord(&r)
			require.NoError(t, err)
			for _, q := range found {
				all = append(all, strings.TrimSuffix(line(q), " .\n"))
			}
		}
	})
	slices.Sort(all)
	return slices.Compact(all)
}

func canonicalLine(triple string) string {
	q, err := statementIn(triple + " .\n")
	if err != nil {
		return triple
	}
	return fmt.Sprint(canonicalOf(q))
}

// values returns triples as a store knows them that keeps one of 1 and 1.0.
func values(triples []string) (all []string) {
	for _, one := range triples {
		all = append(all, canonicalLine(one))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func requireInStep(t testing.TB, s *triplestore.Store, src consumed.Source, k *keeper) {
	t.Helper()
	want, has := wanted(t, src), s.Graph("<"+graph+">")
	if s.Value != nil {
		want, has = values(want), values(has)
	}
	require.Equal(t, want, has)
	require.Equal(t, []string{fmt.Sprintf("<%s> <%s> %q", graph, markOf, k.Mark)}, s.Graph("<"+marks+">"))
	require.Nil(t, k.Next)
	require.Empty(t, k.Error)
}

// A graph is in step in the end, after any changes, any faults, and any stop.
func TestGraphsAreKeptInStep(t *testing.T) {
	for seed := range uint64(testenv.Rounds(12, 300)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(testenv.Seed(), seed))
			db, s := consumed.OpenStore(t), triplestore.New(t, "")
			var src consumed.Source
			if seed%2 == 0 {
				src = consumed.NewCollection(t, db)
			} else {
				src = consumed.NewSubscription(t, db)
			}
			change := consumed.Edits(t, testenv.Seed()+seed)
			src.Publish(t, change)
			k := newTarget(t, db, s)
			if random.IntN(3) == 0 {
				s.Value = canonicalLine
			}
			s.Most, s.Cut = []int{0, 2, 3, 40}[random.IntN(4)], 25
			var old map[string]map[string]bool
			for range 25 {
				for range random.IntN(4) {
					src.Publish(t, change)
				}
				ctx, stop := context.WithCancel(t.Context())
				dies := random.IntN(4) == 0
				s.Keep(func() {
					s.Fault = func(bool) triplestore.Fault {
						if dies && random.IntN(6) == 0 { // the process is killed
							stop()
							return []triplestore.Fault{triplestore.Broken, triplestore.Lost}[random.IntN(2)]
						}
						return []triplestore.Fault{triplestore.Away, triplestore.Broken, triplestore.Lost, 0, 0, 0, 0, 0}[random.IntN(8)]
					}
				})
				_, _ = k.step(ctx)
				stop()
				s.Keep(func() { s.Fault = nil })
				switch random.IntN(8) {
				case 0: // another process goes on
					k = begun(t, db, k.Target)
					k.perRange, k.mostRows = 7, 20
				case 1:
					old = s.Copied()
				case 2: // the store is restored
					if old != nil {
						s.Keep(func() { s.Graphs, old = old, nil })
					}
				case 3: // it has lost all
					s.Keep(func() { clear(s.Graphs) })
				case 4: // another program has removed a statement, and a comparison is asked for
					s.Keep(func() {
						for one := range s.Graphs["<"+graph+">"] {
							delete(s.Graphs["<"+graph+">"], one)
							break
						}
					})
					_, err := k.compareNow(t.Context(), true)
					require.NoError(t, err)
				case 5:
					if sub, ok := src.(consumed.Subscription); ok {
						kept := &merge.Memory{}
						src.State(t, func(state fragment.Source) {
							for r, err := range fragment.Records(state) {
								require.NoError(t, err)
								if r.Topic != nil {
									require.NoError(t, kept.PutTopic(r.Topic))
								} else {
									require.NoError(t, kept.PutAssociation(r.Association))
								}
							}
						})
						sub.Replace(t, kept)
						src.Publish(t, change)
					}
				}
				k.checked = time.Time{}
				_, err := k.step(t.Context())
				require.NoError(t, err)
				requireInStep(t, s, src, k)
			}
			old = nil
			result, err := k.compareNow(t.Context(), true)
			require.NoError(t, err)
			require.True(t, result.Equal(), "%+v", result)
		})
	}
}
