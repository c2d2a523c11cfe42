package store

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
)

// manyTopics are more than a transaction of Badger takes.
const manyTopics = 27_000

// renameAll gives the topics a name, in one commit.
func renameAll(t testing.TB, db *DB, subscription string, n int, name string) {
	t.Helper()
	require.NoError(t, db.ApplyEntries(t.Context(), subscription, func(s merge.State, p *Progress) error {
		p.Applied++
		for i := range n {
			if err := s.PutTopic(named(ref(i), name)); err != nil {
				return err
			}
		}
		return nil
	}))
}

// namesOf counts the topics by their names.
func namesOf(t testing.TB, src fragment.Source) map[string]int {
	t.Helper()
	names := map[string]int{}
	for topic, err := range src.Topics() {
		require.NoError(t, err)
		if len(topic.Names) > 0 {
			names[topic.Names[0].Value]++
		}
	}
	return names
}

// subscribedTo calls f with the source of the only subscription.
func subscribedTo(t testing.TB, db *DB, f func(Subscription, fragment.Source)) {
	t.Helper()
	require.NoError(t, db.ReadSources(func(subscriptions []Subscription, sources []fragment.Source) error {
		require.Len(t, sources, 1)
		f(subscriptions[0], sources[0])
		return nil
	}))
}

// A commit of more rows than a transaction takes goes through the journal, and
// readers see the state before it or after it, whenever they look.
func TestReadersSeeALargeCommitWholeOrNotAtAll(t *testing.T) {
	db := openDB(t, t.TempDir())
	subscribe(t, db, "s", mapOf(t, manyTopics))
	require.Zero(t, journals(t, db), "loading does not use the journal")

	stop := make(chan struct{})
	var readers sync.WaitGroup
	var looks atomic.Int64
	for range 3 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := db.ReadSources(oneState); err != nil {
					t.Error(err)
					return
				}
				looks.Add(1)
			}
		})
	}
	for i, name := range []string{"second", "third", "fourth"} {
		renameAll(t, db, "s", manyTopics, name)
		require.Equal(t, i+1, journals(t, db), "the commit went through the journal")
		require.Zero(t, rows(t, db, "jJ"), "nothing is left of it")
		subscribedTo(t, db, func(s Subscription, src fragment.Source) {
			require.Equal(t, map[string]int{name: manyTopics}, namesOf(t, src), "the writer sees its commit")
			require.Equal(t, i+1, s.State.Applied)
		})
	}
	close(stop)
	readers.Wait()
	require.Greater(t, looks.Load(), int64(3), "the readers have read")

	db = reopen(t, db)
	subscribedTo(t, db, func(_ Subscription, src fragment.Source) {
		require.Equal(t, map[string]int{"fourth": manyTopics}, namesOf(t, src))
	})
}

// oneState fails where the names of the topics, or how many entries the
// subscription says are applied, are not all of one commit.
func oneState(subscriptions []Subscription, sources []fragment.Source) error {
	names := map[string]int{}
	for topic, err := range sources[0].Topics() {
		if err != nil {
			return err
		}
		if len(topic.Names) > 0 {
			names[topic.Names[0].Value]++
		}
	}
	applied := []string{"first", "second", "third", "fourth"}[subscriptions[0].State.Applied]
	if names[applied] != manyTopics || len(names) != 1 {
		return errors.New("a state between two commits is seen")
	}
	return nil
}

// A reader that began before a large commit goes on with what it saw.
func TestAViewOutlivesALargeCommit(t *testing.T) {
	db := openDB(t, t.TempDir())
	subscribe(t, db, "s", mapOf(t, manyTopics))
	subscribedTo(t, db, func(_ Subscription, src fragment.Source) {
		seen := 0
		for topic, err := range src.Topics() {
			require.NoError(t, err)
			if seen++; seen == 100 {
				renameAll(t, db, "s", manyTopics, "second")
			}
			if len(topic.Names) > 0 {
				require.Equal(t, "first", topic.Names[0].Value)
			}
		}
		require.Equal(t, manyTopics+1, seen)
		require.Equal(t, map[string]int{"first": manyTopics}, namesOf(t, src))
	})
	require.Equal(t, 1, journals(t, db))
}

// Few rows can outgrow a transaction by their size alone.
func TestACommitOfFewLargeRowsGoesThroughTheJournal(t *testing.T) {
	db := openDB(t, t.TempDir())
	subscribe(t, db, "s", mapOf(t, 10))
	name := strings.Repeat("word ", 100_000)
	renameAll(t, db, "s", 10, name)
	require.Equal(t, 1, journals(t, db))
	db = reopen(t, db)
	subscribedTo(t, db, func(_ Subscription, src fragment.Source) {
		require.Equal(t, map[string]int{name: 10}, namesOf(t, src))
	})
}

// A new version of a whole map is one commit, log and all.
func TestPublishingAWholeMapIsOneCommit(t *testing.T) {
	const n = 8_000
	db := openDB(t, t.TempDir())
	c := collection(t, db, "m", n)
	after := publish(t, db, "m", rename(0, n, "second"))
	require.Equal(t, 1, journals(t, db))
	require.Equal(t, c.Head+n, after.Head)
	db = reopen(t, db)
	view(t, db, "m", func(v *View) {
		require.Equal(t, after.Head, v.Head)
		require.Equal(t, map[string]int{"second": n}, namesOf(t, v.Source()))
		log := entries(t, v)
		require.Len(t, log, int(after.Head))
		for _, e := range log {
			require.Equal(t, e.TopicSI != tmdm.PSIDefaultNameType, e.Stored, "all but the topic that has not changed: entry %d", e.Seq)
		}
	})
}

// A large commit that is called off changes nothing.
func TestALargePublicationThatFailsChangesNothing(t *testing.T) {
	db := openDB(t, t.TempDir())
	collection(t, db, "m", 2_000)
	before := recordsOf(t, db, "m")
	written := committed(db)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := db.Publish(ctx, "m", func(Collection, merge.State) (*fragment.Change, error) {
		cancel()
		return rename(0, 2_000, "second"), nil
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, before, recordsOf(t, db, "m"))
	require.Equal(t, written, committed(db))
}
