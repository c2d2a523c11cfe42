package store

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/merge"
)

// manyTopics are more than a transaction of Badger takes.
const manyTopics = 3_600

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

// A commit that outgrows a transaction is written in parts, and readers see
// the state before it or after it, whenever they look.
func TestReadersSeeALargeCommitWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	const topics, commits = 100, 8
	db := openDB(t, t.TempDir())
	subscribe(t, db, "s", mapOf(t, topics))
	name := func(commit int) string { return fmt.Sprint(commit, strings.Repeat(" word", 2_000)) }
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
		require.True(t, inParts(t, db, func() { renameAll(t, db, "s", topics, name(commit)) }), "the commit is written in parts")
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

// A reader that began before a commit of more rows than a transaction holds still sees its state.
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
				require.True(t, inParts(t, db, func() { renameAll(t, db, "s", manyTopics, "second") }))
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
func TestACommitOfFewLargeRowsIsWrittenInParts(t *testing.T) {
	db := openDB(t, t.TempDir())
	subscribe(t, db, "s", mapOf(t, 10))
	name := strings.Repeat("word ", 100_000)
	require.True(t, inParts(t, db, func() { renameAll(t, db, "s", 10, name) }))
	db = reopen(t, db)
	subscribedTo(t, db, func(_ Subscription, src fragment.Source) {
		require.Equal(t, map[string]int{name: 10}, namesOf(t, src))
	})
}

// A new version of a whole map is one commit, log and all.
func TestPublishingAWholeMapIsOneCommit(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	const n = 600
	db := openDB(t, t.TempDir())
	c := collection(t, db, "m", n)
	name := words(1_000)
	var after *Collection
	require.True(t, inParts(t, db, func() { after = publish(t, db, "m", rename(0, n, name)) }))
	require.Equal(t, c.Head+n, after.Head)
	db = reopen(t, db)
	view(t, db, "m", func(v *View) {
		require.Equal(t, after.Head, v.Head)
		require.Equal(t, map[string]int{name: n}, namesOf(t, v.Source()))
		require.Len(t, entries(t, v), int(after.Head))
	})
}

func TestWritesThatChangeNothingDoNotTouchTheDisk(t *testing.T) {
	db := openDB(t, t.TempDir())
	collection(t, db, "m", 3)
	subscribe(t, db, "s", mapOf(t, 3))
	before := committed(t, db)
	for name, write := range map[string]func() error{
		"a row as it is": func() error {
			return db.rows.Update(t.Context(), func(tx *txn.Tx) error { return tx.Put(keys.Meta("format"), []byte(keys.Format)) })
		},
		"a row that comes and goes": func() error {
			return db.rows.Update(t.Context(), func(tx *txn.Tx) error { return errors.Join(tx.Put([]byte("x"), []byte("y")), tx.Delete([]byte("x"))) })
		},
		"a row that goes and comes": func() error {
			return db.rows.Update(t.Context(), func(tx *txn.Tx) error {
				return errors.Join(tx.Delete(keys.Meta("format")), tx.Put(keys.Meta("format"), []byte(keys.Format)))
			})
		},
		"deleting what is not there": func() error {
			return db.rows.Update(t.Context(), func(tx *txn.Tx) error { return tx.Delete([]byte("x")) })
		},
		"publishing nothing": func() error {
			_, err := db.Publish(t.Context(), "m", func(Collection, merge.State) (*fragment.Change, error) { return &fragment.Change{}, nil })
			return err
		},
		"applying what is there": func() error {
			return db.ApplyEntries(t.Context(), "s", func(s *Applying) error {
				return errors.Join(s.DeleteTopic(named(ref(1), "first")), s.PutTopic(named(ref(1), "first")))
			})
		},
		"updating nothing": func() error { return db.UpdateSubscription(t.Context(), "s", func(*Subscription) {}) },
	} {
		require.NoError(t, write(), name)
		require.Equal(t, before, committed(t, db), name)
	}
	db = reopen(t, db)
	require.Equal(t, before, committed(t, db), "opening again commits nothing")
	require.NoError(t, db.rows.Update(t.Context(), func(tx *txn.Tx) error { return tx.Put([]byte("x"), []byte("y")) }))
	require.Greater(t, committed(t, db), before, "the measure is right")
}

// A change is one commit, with all its rows and no others.
func TestAChangeIsOneCommit(t *testing.T) {
	db := openDB(t, t.TempDir())
	collection(t, db, "m", 20)
	before := committed(t, db)
	written := Record(db)
	publish(t, db, "m", rename(3, 9, "second"))
	require.Equal(t, before+1, committed(t, db))
	tables := map[byte]int{}
	require.Len(t, written.commits, 1)
	for _, r := range written.commits[0].changes {
		tables[keys.Table(r.Key)]++
		require.GreaterOrEqual(t, keys.SourceOf(r.Key).Number, uint32(keys.FirstNumber), "no row of the names")
	}
	require.Positive(t, tables[keys.TableDigest])
	delete(tables, keys.TableDigest) // the tree has as many nodes as hashes lead to
	require.Equal(t, map[byte]int{
		keys.TableCollection: 1, keys.TableTopic: 6, keys.TableKey: 6,
		keys.TableIndex: 6, keys.TableLog: 6,
		keys.TableBefore: 6, keys.TableChanged: 1,
	}, tables)
}

func TestAViewCannotWrite(t *testing.T) {
	db := openDB(t, t.TempDir())
	collection(t, db, "m", 3)
	a := &fragment.Association{Type: ref(0), Roles: []fragment.Role{{Type: ref(0), Player: ref(1)}}}
	view(t, db, "m", func(v *View) {
		s := v.Source().(merge.State)
		require.ErrorIs(t, s.PutTopic(named(ref(9), "new")), txn.ErrReadOnly)
		require.ErrorIs(t, s.DeleteTopic(named(ref(1), "")), txn.ErrReadOnly)
		require.ErrorIs(t, s.PutAssociation(a), txn.ErrReadOnly)
	})
}

// Each read of a damaged row is an error.
func TestDamagedRowsAreErrors(t *testing.T) {
	a := &fragment.Association{Type: ref(0), Roles: []fragment.Role{{Type: ref(0), Player: ref(1)}, {Type: ref(0), Player: ref(2)}}}
	large := &fragment.Association{Type: ref(0)}
	for i := range records.InlinePlayers + 2 {
		large.Roles = append(large.Roles, fragment.Role{Type: ref(0), Player: ref(i)})
	}
	topic := named(ref(7), "identified")
	topic.SubjectIdentifiers = append(topic.SubjectIdentifiers, "http://other")
	topic.SubjectLocators = append(topic.SubjectLocators, "http://locator")
	db := openDB(t, t.TempDir())
	src := mapOf(t, 6)
	require.NoError(t, errors.Join(src.PutAssociation(a), src.PutAssociation(large), src.PutTopic(topic)))
	subscribe(t, db, "s", src)
	s := subscription(t, db, "s")
	notKept := errors.New("the damage is not kept")
	for _, table := range []byte(keys.RecordTables) {
		for _, damage := range [][]byte{{}, {0}, {1}, {2}, {0xFF, 0xFF}, bytes.Repeat([]byte{0xFF}, 20), []byte("http://example.org/")} {
			require.ErrorIs(t, db.rows.Update(t.Context(), func(tx *txn.Tx) error {
				damaged := 0
				for r, err := range inTables(tx, string(table)) {
					require.NoError(t, err)
					require.NoError(t, tx.Put(r.Key, damage))
					damaged++
				}
				require.Positive(t, damaged, "table %c has rows", table)
				err := askEverything(records.In(tx, s.Source(s.State)), topic, a, large)
				if table != keys.TableIdentifier && table != keys.TableLocator { // a dangling reference finds no row
					require.Error(t, err, "table %c, damage %q", table, damage)
				}
				return notKept
			}), notKept)
		}
	}
	subscribedTo(t, db, func(_ Subscription, now fragment.Source) {
		require.NoError(t, askEverything(now.(records.State), topic))
		require.Equal(t, all(t, src), all(t, now.(merge.State)))
	})
}

// askEverything makes all reads of a state for some records, and then, if it can be changed, writes and deletes them.
// It returns the errors.
func askEverything(s records.State, topic *fragment.Topic, associations ...*fragment.Association) error {
	var errs []error
	note := func(err error) { errs = append(errs, err) }
	for i := range 8 {
		_, err := s.Topic(ref(i))
		note(err)
		for _, part := range fragment.Parts {
			for _, err := range s.AssociationsOf(ref(i), part) {
				note(err)
			}
		}
		_, err = s.Mentions(ref(i))
		note(err)
	}
	for _, si := range topic.SubjectIdentifiers {
		_, err := s.Topic(si)
		note(err)
	}
	for _, sl := range topic.SubjectLocators {
		_, err := s.TopicBySubjectLocator(sl)
		note(err)
	}
	for _, err := range s.Topics() {
		note(err)
	}
	for _, err := range s.Associations() {
		note(err)
	}
	if len(associations) > 0 {
		for _, a := range associations {
			note(s.DeleteAssociation(a))
		}
		note(s.PutTopic(topic))
		note(s.DeleteTopic(topic))
	}
	return errors.Join(errs...)
}

// A disk that is nearly full is an error before anything is written to it.
func TestNearlyFullDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "small")
	require.NoError(t, os.Mkdir(dir, 0o700))
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=100m"); err != nil {
		t.Skip("NOT CHECKED: a disk that is nearly full: no small one can be made here: ", err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(dir, 0)) })
	db := openDB(t, filepath.Join(dir, "data"))
	subscribe(t, db, "s", mapOf(t, 3))
	fill, err := os.Create(filepath.Join(dir, "fill"))
	require.NoError(t, err)
	defer fill.Close()
	require.NoError(t, syscall.Fallocate(int(fill.Fd()), 0, 0, 50<<20))
	err = db.UpdateSubscription(t.Context(), "s", func(*Subscription) {})
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.ErrorContains(t, err, "MB are free")
	require.Len(t, inQuarantine(t, db, "s"), 0, "it can be read")
	require.NoError(t, db.Close())
	db, err = Open(t.Context(), testOptions(filepath.Join(dir, "data")))
	require.NoError(t, err)
	require.Len(t, inQuarantine(t, db, "s"), 0, "it can be read")
	require.ErrorIs(t, db.UpdateSubscription(t.Context(), "s", func(*Subscription) {}), syscall.ENOSPC)
	require.NoError(t, db.Close())
	_, err = Open(t.Context(), testOptions(filepath.Join(dir, "another")))
	require.ErrorIs(t, err, syscall.ENOSPC, "one is made there")
	require.NoError(t, fill.Truncate(0))
	openDB(t, filepath.Join(dir, "data"))
}
