package store

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
)

// reifying returns the records of n topics, each with a reified occurrence, and
// of n reified associations of two of them.
func reifying(n int) []fragment.Record {
	var list []fragment.Record
	for i := range n {
		t := named(ref(i), "first")
		t.Occurrences = []fragment.Occurrence{{
			Value: "x", Datatype: tmdm.XSDString, Type: ref(n), Scope: []fragment.Ref{ref(n + 1)}, Reifier: ref(n + 2 + i),
		}}
		a := &fragment.Association{Type: ref(i % 7), Reifier: ref(2*n + 2 + i), Roles: []fragment.Role{
			{Type: ref(n), Player: ref(i)}, {Type: ref(n + 1), Player: ref((i + 1) % n)},
		}}
		a.Canonical()
		list = append(list, fragment.Record{Topic: t}, fragment.Record{Association: a})
	}
	return list
}

func yielding(list []fragment.Record) iter.Seq2[fragment.Record, error] {
	return func(yield func(fragment.Record, error) bool) {
		for _, r := range list {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// What is stored does not depend on the order in which records come, nor on how
// many mentions are counted in memory.
func TestRecordsAreLoadedInAnyOrder(t *testing.T) {
	list := reifying(200)
	want := &merge.Memory{}
	for _, r := range list {
		if r.Topic != nil {
			require.NoError(t, want.PutTopic(r.Topic))
		} else {
			require.NoError(t, want.PutAssociation(r.Association))
		}
	}
	for seed, most := range []int{1, 2, 30, 400, 1 << 20} {
		random := rand.New(rand.NewPCG(uint64(seed), 0))
		random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		db := openUnsynced(t, t.TempDir())
		id := sourceID{7, 7}
		l := loading{db: db, id: id, mentions: map[fragment.Ref]uint64{}, most: most}
		require.NoError(t, l.load(t.Context(), yielding(list), nil))
		require.NoError(t, db.viewing(func(tx *tx) error {
			got := records{tx, id}
			require.Equal(t, all(t, want), all(t, got), "%d counts in memory", most)
			for i := range 3 * 200 {
				wanted, err := want.Mentions(ref(i))
				require.NoError(t, err)
				n, err := got.Mentions(ref(i))
				require.NoError(t, err)
				require.Equal(t, wanted, n, "mentions of %s with %d counts in memory", ref(i), most)
			}
			return nil
		}))
	}
}

// A load that its context ends, or its records, leaves nothing, neither rows nor
// what reads ahead.
func TestALoadThatEndsEarlyLeavesNothing(t *testing.T) {
	db := openDB(t, t.TempDir())
	subscribe(t, db, "s", mapOf(t, 5))
	before, count := *subscription(t, db, "s"), rows(t, db, sourceTables)
	routines := runtime.NumGoroutine()
	for i := range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		broken := errors.New("broken")
		want, left := context.Canceled, false
		if i%2 == 0 {
			want = broken
		}
		records := func(yield func(fragment.Record, error) bool) {
			defer func() { left = true }()
			for n := 0; ; n++ { // without end
				if n == 500*i {
					if want == broken {
						yield(fragment.Record{}, broken)
						return
					}
					cancel()
				}
				if !yield(fragment.Record{Topic: named(ref(n), fmt.Sprint(n))}, nil) {
					return
				}
			}
		}
		require.ErrorIs(t, db.StageSource(ctx, "s", records, Mark{}, nil), want)
		cancel()
		require.True(t, left, "nobody reads on")
		require.Equal(t, before, *subscription(t, db, "s"))
		require.Equal(t, count, rows(t, db, sourceTables))
	}
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= routines+1 }, 5*time.Second, 10*time.Millisecond)
}
