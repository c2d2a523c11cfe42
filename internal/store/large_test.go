package store

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/tmdm"
)

// manyTopics are more than a transaction of Badger takes.
const manyTopics = 27_000

// renameAll gives n topics a name, in one commit.
func renameAll(t testing.TB, db *DB, subscription string, n int, name string) {
	t.Helper()
	require.NoError(t, db.ApplyEntries(t.Context(), subscription, func(s *Applying) error {
		s.Applied++
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
	names, err := countNames(src)
	require.NoError(t, err)
	return names
}

func countNames(src fragment.Source) (map[string]int, error) {
	names := map[string]int{}
	for topic, err := range src.Topics() {
		if err != nil {
			return nil, err
		}
		if len(topic.Names) > 0 {
			names[topic.Names[0].Value]++
		}
	}
	return names, nil
}

// subscribedTo calls f with the source of the only subscription.
func subscribedTo(t testing.TB, db *DB, f func(Subscription, fragment.Source)) {
	t.Helper()
	require.NoError(t, db.ReadSources(t.Context(), func(subscriptions []Subscription, sources []fragment.Source) error {
		require.Len(t, sources, 1)
		f(subscriptions[0], sources[0])
		return nil
	}))
}

// A commit that outgrows a transaction goes through the journal, and readers see
// the state before it or after it, whenever they look.
func TestReadersSeeALargeCommitWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	const topics, commits = 100, 8
	db := openDB(t, t.TempDir())
	subscribe(t, db, "s", mapOf(t, topics))
	name := func(commit int) string { return fmt.Sprint(commit, strings.Repeat(" word", 8_000)) }
	renameAll(t, db, "s", topics, name(1))

	stop := make(chan struct{})
	var readers sync.WaitGroup
	var looks atomic.Int64
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				err := db.ReadSources(t.Context(), func(list []Subscription, sources []fragment.Source) error {
					names, err := countNames(sources[0])
					if err == nil && names[name(list[0].State.Applied)] != topics {
						err = errors.New("a state between two commits is seen")
					}
					return err
				})
				if err != nil {
					t.Error(err)
					return
				}
				looks.Add(1)
			}
		})
	}
	for commit := 2; commit <= commits; commit++ {
		require.True(t, journaled(t, db, func() { renameAll(t, db, "s", topics, name(commit)) }), "the commit goes through the journal")
		subscribedTo(t, db, func(s Subscription, src fragment.Source) {
			require.Equal(t, map[string]int{name(commit): topics}, namesOf(t, src), "the writer sees its commit")
		})
	}
	close(stop)
	readers.Wait()
	require.Greater(t, looks.Load(), int64(commits), "the readers have read")

	db = reopen(t, db)
	subscribedTo(t, db, func(_ Subscription, src fragment.Source) {
		require.Equal(t, map[string]int{name(commits): topics}, namesOf(t, src))
	})
}

// A reader that began before a commit of more rows than a transaction takes goes
// on with what it saw.
func TestAViewOutlivesALargeCommit(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	db := openDB(t, t.TempDir())
	subscribe(t, db, "s", mapOf(t, manyTopics))
	subscribedTo(t, db, func(_ Subscription, src fragment.Source) {
		seen := 0
		for topic, err := range src.Topics() {
			require.NoError(t, err)
			if seen++; seen == 100 {
				require.True(t, journaled(t, db, func() { renameAll(t, db, "s", manyTopics, "second") }))
			}
			if len(topic.Names) > 0 {
				require.Equal(t, "first", topic.Names[0].Value)
			}
		}
		require.Equal(t, manyTopics+1, seen)
		require.Equal(t, map[string]int{"first": manyTopics}, namesOf(t, src))
	})
}

// Few rows can outgrow a transaction by their size alone.
func TestACommitOfFewLargeRowsGoesThroughTheJournal(t *testing.T) {
	db := openDB(t, t.TempDir())
	subscribe(t, db, "s", mapOf(t, 10))
	name := strings.Repeat("word ", 100_000)
	require.True(t, journaled(t, db, func() { renameAll(t, db, "s", 10, name) }))
	db = reopen(t, db)
	subscribedTo(t, db, func(_ Subscription, src fragment.Source) {
		require.Equal(t, map[string]int{name: 10}, namesOf(t, src))
	})
}

// A new version of a whole map is one commit, log and all.
func TestPublishingAWholeMapIsOneCommit(t *testing.T) {
	testenv.SkipUnderRace(t)
	const n = 600
	db := openDB(t, t.TempDir())
	c := collection(t, db, "m", n)
	name := words(1_000)
	var after *Collection
	require.True(t, journaled(t, db, func() { after = publish(t, db, "m", rename(0, n, name)) }))
	require.Equal(t, c.Head+n, after.Head)
	db = reopen(t, db)
	view(t, db, "m", func(v *View) {
		require.Equal(t, after.Head, v.Head)
		require.Equal(t, map[string]int{name: n}, namesOf(t, v.Source()))
		log := entries(t, v)
		require.Len(t, log, int(after.Head))
		for _, e := range log {
			require.Equal(t, e.TopicSI != tmdm.PSIDefaultNameType, e.Stored, "all but the topic that has not changed: entry %d", e.Seq)
		}
	})
}
