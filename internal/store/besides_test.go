package store

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/kv/memory"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/pgserver"
	"github.com/tmshare/tmshare/merge"
)

// Collections are published concurrently, also by several processes, while others are created, pruned and deleted: each
// has all acknowledged changes, in order, and all invariants hold.
func TestCollectionsArePublishedSideBySide(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t *testing.T) []*DB{
		"in a folder": func(t *testing.T) []*DB { return []*DB{openUnsynced(t, t.TempDir())} },
		"by two processes": func(t *testing.T) []*DB {
			engine, dir := memory.New(), t.TempDir()
			return []*DB{openOverEngine(t, dir, engine), openOverEngine(t, dir, engine)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stores := open(t)
			const writers, topics = 4, 10
			rounds := testenv.Rounds(20, 200)
			heads := make([]uint64, writers)
			for i := range writers {
				heads[i] = collection(t, stores[0], fmt.Sprint("m", i), topics).Head
			}
			var all sync.WaitGroup
			for i := range writers {
				all.Go(func() {
					for n := range rounds {
						db := stores[n%len(stores)]
						c, err := db.Publish(t.Context(), fmt.Sprint("m", i), func(c Collection, _ merge.State) (*fragment.Change, error) {
							if c.Head != heads[i]+uint64(n) {
								return nil, fmt.Errorf("the head is %d, not %d", c.Head, heads[i]+uint64(n))
							}
							return rename(n%topics, n%topics+1, fmt.Sprint("round ", n)), nil
						})
						if err == nil && c.Head != heads[i]+uint64(n)+1 {
							err = fmt.Errorf("the head is %d after round %d", c.Head, n)
						}
						if err != nil {
							t.Errorf("m%d: %v", i, err)
							return
						}
					}
				})
			}
			all.Go(func() {
				for n := range rounds / 4 {
					db, name := stores[n%len(stores)], fmt.Sprint("other", n)
					collection(t, db, name, 3)
					_, err := db.Prune(t.Context(), fmt.Sprint("m", n%writers), Retention{Entries: 5})
					if err == nil && n%2 == 0 {
						err = db.DeleteCollection(t.Context(), name, "")
					}
					if err != nil {
						t.Errorf("%s: %v", name, err)
					}
				}
			})
			all.Wait()
			for _, db := range stores {
				for i := range writers {
					view(t, db, fmt.Sprint("m", i), func(v *View) {
						require.Equal(t, heads[i]+uint64(rounds), v.Head)
						for _, e := range entries(t, v) {
							require.NotZero(t, e.Updated)
						}
					})
				}
				requireWhole(t, db)
			}
		})
	}
}

// An update of data that another process always changes succeeds at the third try: then the other one waits.
func TestUpdatesThatAreRefusedTakeTheirTurn(t *testing.T) {
	t.Parallel()
	s := pgserver.Start(t, "fsync=off")
	o, dir := s.Store(t), t.TempDir()
	stores := []*DB{openOverEngine(t, dir, pgserver.Open(t, o)), openOverEngine(t, dir, pgserver.Open(t, o))}
	head := collection(t, stores[0], "m", 10).Head
	other := collection(t, stores[0], "other", 10).Head
	var commits atomic.Int64
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for _, name := range []string{"m", "other"} {
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				_, err := stores[0].Publish(t.Context(), name, func(Collection, merge.State) (*fragment.Change, error) {
					return rename(0, 1, fmt.Sprint("quick ", n)), nil
				})
				if err != nil {
					t.Errorf("%s: %v", name, err)
					return
				}
				if name == "m" {
					commits.Add(1)
				}
			}
		})
	}
	tries := 0
	_, err := stores[1].Publish(t.Context(), "m", func(Collection, merge.State) (*fragment.Change, error) {
		tries++
		before, most := commits.Load(), time.Minute
		if tries > 2 {
			most = 300 * time.Millisecond
		}
		for wait := time.Now(); commits.Load() < before+2 && time.Since(wait) < most; { // the other process is faster, if it may be
			time.Sleep(time.Millisecond)
		}
		return rename(1, 2, "slow"), nil
	})
	cancel()
	all.Wait()
	require.NoError(t, err)
	require.Equal(t, 3, tries)
	view(t, stores[1], "m", func(v *View) { require.Equal(t, head+uint64(commits.Load())+1, v.Head, "nothing was lost") })
	view(t, stores[1], "other", func(v *View) { require.Greater(t, v.Head, other) })
}
