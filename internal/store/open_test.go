package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/kv/badger"
	"github.com/tmshare/tmshare/internal/kv/memory"
	"github.com/tmshare/tmshare/internal/store/datafolder"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/store/storetest"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/kill"
	"github.com/tmshare/tmshare/merge"
)

// Unused data are removed, and no others.
func TestDiscardRemovesWhatWasMadeForNothing(t *testing.T) {
	for name, c := range map[string]struct {
		before func(t *testing.T, dir string)
		use    func(t *testing.T, db *DB)
		left   []string // nil: no folder
	}{
		"nothing was there": {func(*testing.T, string) {}, func(*testing.T, *DB) {}, nil},
		"an empty folder":   {func(t *testing.T, dir string) { require.NoError(t, os.Mkdir(dir, 0o700)) }, func(*testing.T, *DB) {}, []string{}},
		"another file": {func(t *testing.T, dir string) {
			require.NoError(t, os.Mkdir(dir, 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "mine"), nil, 0o600))
		}, func(*testing.T, *DB) {}, []string{"mine"}},
		"something was stored": {func(*testing.T, string) {}, func(t *testing.T, db *DB) {
			require.NoError(t, db.AddSubscription(t.Context(), Subscription{Name: "s", SP: sp}))
		}, []string{"badger", "node.json", "snapshots"}},
		"it was there": {func(t *testing.T, dir string) { require.NoError(t, openDB(t, dir).Close()) }, func(*testing.T, *DB) {}, []string{"badger", "node.json", "snapshots"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			c.before(t, dir)
			db := openDB(t, dir)
			c.use(t, db)
			require.NoError(t, db.Discard(t.Context()))
			require.NoError(t, db.Close())
			if c.left == nil {
				require.NoDirExists(t, dir)
				return
			}
			entries, err := os.ReadDir(dir)
			require.NoError(t, err)
			names := []string{}
			for _, e := range entries {
				names = append(names, e.Name())
			}
			require.Equal(t, c.left, names)
		})
	}
}

func TestADataFolderIsNeeded(t *testing.T) {
	_, err := Open(t.Context(), Options{})
	require.ErrorContains(t, err, "no data folder")
}

func TestOpeningMakesTheFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	db, err := Open(t.Context(), Options{Dir: dir}) // the defaults will do
	require.NoError(t, err)
	require.Equal(t, dir, db.Dir())
	collection(t, db, "m", 1)
	require.NoError(t, db.Close())
	list, err := openDB(t, dir).Collections(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.WithinDuration(t, time.Now(), list[0].Created, time.Minute)
}

func TestASecondOpenIsLockedOut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := openDB(t, dir)
	collection(t, db, "m", 3)
	for range 2 {
		_, err := Open(t.Context(), testOptions(dir))
		require.ErrorIs(t, err, ErrLocked)
		require.ErrorContains(t, err, dir)
		require.ErrorContains(t, err, "another")
	}
	publish(t, db, "m", rename(0, 1, "second")) // the first goes on
	db = reopen(t, db)
	require.Contains(t, recordsOf(t, db, "m"), "second")
}

// A process that has the folder keeps others out, until it ends, however it
// ends.
func TestAnotherProcessIsLockedOut(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	dir := t.TempDir()
	p := kill.Start(t, "hold", dir)
	line, _ := p.Line()
	require.Equal(t, "open", line)
	_, err := Open(t.Context(), testOptions(dir))
	require.ErrorIs(t, err, ErrLocked)
	require.ErrorContains(t, err, dir)
	require.True(t, p.Kill(0))
	db := openDB(t, dir)
	collection(t, db, "m", 1)
}

func TestOtherFormatsAreRefused(t *testing.T) {
	for _, format := range []string{"7", "17", "0", "", "1x", "x", "5", "1", "6", "6.5", "6.7"} {
		db := openDB(t, t.TempDir())
		collection(t, db, "m", 1)
		require.NoError(t, db.rows.Update(t.Context(), func(tx *txn.Tx) error { return tx.Put(keys.Meta("format"), []byte(format)) }))
		require.NoError(t, db.Close())
		_, err := Open(t.Context(), testOptions(db.Dir()))
		require.ErrorContains(t, err, "format "+format)
		require.ErrorContains(t, err, "this program reads format "+keys.Format)
		require.ErrorContains(t, err, db.Dir())
		require.Equal(t, format == "6" || format == "5" || format == "1", errors.Is(err, kv.ErrOlder))
	}
}

// An index made by other rules, or marked as outdated by a program without it, is no damage for a program that only
// reads. It is made again.
func TestIndexesAreMadeAgain(t *testing.T) {
	db := openDB(t, t.TempDir())
	collection(t, db, "m", 20)
	before := rowsIn(t, db, keys.TableIndex)
	for what, change := range map[string]func(*txn.Tx) error{
		"other rules": func(tx *txn.Tx) error {
			return tx.PutJSON(keys.Meta("indexes"), map[string]string{storetest.Index.Name: "0"})
		},
		"left behind": func(tx *txn.Tx) error { return tx.Delete(keys.Meta("indexes")) },
	} {
		require.NoError(t, db.rows.Update(t.Context(), func(tx *txn.Tx) error {
			return errors.Join(change(tx), tx.Delete(before[0].Key), tx.Put(append(bytes.Clone(before[0].Key), 0), nil))
		}))
		require.NoError(t, db.Close())
		reading := testOptions(db.Dir())
		reading.Access = Read
		read := openWith(t, reading)
		require.Empty(t, checked(t, read, false), "%s: that is no damage", what)
		require.NoError(t, read.Close())
		db = openDB(t, db.Dir())
		require.Equal(t, before, rowsIn(t, db, keys.TableIndex), what)
		require.Empty(t, checked(t, db, false))
	}
}

// A program without an index of the data does not change it, and marks it as outdated with its first change of records.
// So a program with the index makes it again when it opens the store.
func TestAProgramWithoutAnIndexLeavesItBehind(t *testing.T) {
	for name, change := range map[string]func(*DB){
		"a change":                   func(db *DB) { publish(t, db, "m", rename(3, 9, "second")) },
		"a load":                     func(db *DB) { collection(t, db, "other", 5) },
		"a load of what is followed": func(db *DB) { subscribe(t, db, "s", &merge.Memory{}) },
	} {
		for where, engine := range map[string]kv.Engine{"in a folder": nil, "in a database": memory.New()} {
			t.Run(name+" "+where, func(t *testing.T) {
				o := testOptions(t.TempDir())
				o.Engine, o.Access = engine, Create
				open := func(with ...txn.Index) *DB { o.Indexes = with; return openWith(t, o) }
				kept := func(db *DB) (rules map[string]string) {
					require.NoError(t, db.rows.View(t.Context(), func(tx *txn.Tx) (err error) { rules, err = records.Kept(tx); return err }))
					return rules
				}
				db := open(storetest.Index)
				collection(t, db, "m", 20)
				before := rowsIn(t, db, keys.TableIndex)
				require.NoError(t, db.Close())

				db = open()
				require.Len(t, kept(db), 1, "nothing is changed")
				_, err := db.ChangeSettings(t.Context(), "m", func(s *Settings) error { s.Title = "other"; return nil })
				require.NoError(t, err)
				require.Len(t, kept(db), 1, "no records are changed")
				change(db)
				require.Empty(t, kept(db))
				require.Equal(t, before, rowsIn(t, db, keys.TableIndex))
				require.Empty(t, checked(t, db, false), "what it does not know is not its affair")
				require.NoError(t, db.Close())

				db = open(storetest.Index)
				require.Equal(t, map[string]string{storetest.Index.Name: storetest.Index.Rules}, kept(db))
				require.Empty(t, checked(t, db, false))
				require.NoError(t, db.Close())
			})
		}
	}
}

func rowsIn(t *testing.T, db *DB, table byte) (all []Row) {
	t.Helper()
	require.NoError(t, db.rows.View(t.Context(), func(tx *txn.Tx) error {
		all = listed(t, inTables(tx, string(rune(table))))
		return nil
	}))
	return all
}

// A process that is killed while Badger creates a file leaves it empty.
func TestEmptyFilesOfACrashDoNotMatter(t *testing.T) {
	for name, files := range map[string][]string{
		"memtable":       {"00099.mem"},
		"value log":      {"000099.vlog"},
		"both":           {"00099.mem", "000099.vlog"},
		"older memtable": {"00000.mem"},
	} {
		t.Run(name, func(t *testing.T) {
			db := openDB(t, t.TempDir())
			collection(t, db, "m", 20)
			before := recordsOf(t, db, "m")
			require.NoError(t, db.Close())
			for _, file := range files {
				path := filepath.Join(db.Dir(), "badger", file)
				require.NoFileExists(t, path)
				require.NoError(t, os.WriteFile(path, nil, 0o600))
			}
			db = openDB(t, db.Dir())
			require.Equal(t, before, recordsOf(t, db, "m"))
			publish(t, db, "m", rename(0, 20, "second"))
			after := recordsOf(t, db, "m")
			db = reopen(t, db)
			require.Equal(t, after, recordsOf(t, db, "m"))
		})
	}
}

func TestFoldersThatCannotBeUsedAreErrors(t *testing.T) {
	for name, spoil := range map[string]func(dir string) error{
		"the folder is a file": func(dir string) error { return os.WriteFile(dir, nil, 0o600) },
		"the database is a file": func(dir string) error {
			return errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, "badger"), nil, 0o600))
		},
		"the folder of snapshots is a file": func(dir string) error {
			return errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, datafolder.Snapshots), nil, 0o600))
		},
		"the database is damaged": func(dir string) error {
			db, err := Open(t.Context(), testOptions(dir))
			if err != nil {
				return err
			}
			return errors.Join(db.Close(), os.WriteFile(filepath.Join(dir, "badger", "MANIFEST"), []byte("no manifest at all"), 0o600))
		},
	} {
		dir := filepath.Join(t.TempDir(), "data")
		require.NoError(t, spoil(dir), name)
		_, err := Open(t.Context(), testOptions(dir))
		require.Error(t, err, name)
		require.NotErrorIs(t, err, ErrLocked, name)
		require.ErrorContains(t, err, dir, name)
	}
}

func TestAFolderWithoutPermissionIsAnError(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("everything is permitted to root")
	}
	dir := t.TempDir()
	require.NoError(t, openDB(t, dir).Close())
	require.NoError(t, os.Chmod(filepath.Join(dir, "badger"), 0))
	t.Cleanup(func() { os.Chmod(filepath.Join(dir, "badger"), 0o700) })
	_, err := Open(t.Context(), testOptions(dir))
	require.ErrorIs(t, err, os.ErrPermission)
}

// Closing waits for running reads and writes; later ones get an error.
func TestClosingWaitsForReaders(t *testing.T) {
	db := openDB(t, t.TempDir())
	collection(t, db, "m", 3000)
	inside, closed := make(chan struct{}), make(chan error)
	go func() {
		<-inside
		closed <- db.Close()
	}()
	view(t, db, "m", func(v *View) {
		close(inside)
		for {
			if err := db.rows.View(t.Context(), func(*txn.Tx) error { return nil }); err != nil {
				require.ErrorIs(t, err, errClosed)
				break // closing has begun
			}
		}
		require.Len(t, topicsOf(t, v.Source()), 3001)
		require.Len(t, entries(t, v), 3001)
		select {
		case <-closed:
			t.Error("closed under a reader")
		default:
		}
	})
	require.NoError(t, <-closed)
	require.NoError(t, db.Close(), "once more does no harm")
	for name, use := range map[string]func() error{
		"view":        func() error { return db.View(t.Context(), "m", func(*View) error { return nil }) },
		"collections": func() error { _, err := db.Collections(t.Context()); return err },
		"publish": func() error {
			_, err := db.Publish(t.Context(), "m", func(Collection, merge.State) (*fragment.Change, error) { return rename(0, 1, "x"), nil })
			return err
		},
		"create": func() error {
			_, err := db.CreateCollection(t.Context(), Collection{Name: "n", SP: sp}, mapOf(t, 1), nil)
			return err
		},
		"snapshot":  func() error { _, err := db.TakeSnapshot(t.Context(), "m", 1); return err },
		"subscribe": func() error { return db.AddSubscription(t.Context(), Subscription{Name: "s"}) },
		"sources": func() error {
			return db.ReadSources(t.Context(), func([]Subscription, []fragment.Source) error { return nil })
		},
	} {
		require.ErrorIs(t, use(), errClosed, name)
	}
}

// Reading ends with the reason of its context, also in the middle of an iteration.
func TestReadingEndsWithItsContext(t *testing.T) {
	db := openUnsynced(t, t.TempDir())
	collection(t, db, "m", 100)
	subscribe(t, db, "s", mapOf(t, 3))
	_, err := db.Latest(t.Context(), "m") // it is remembered
	require.NoError(t, err)
	tired := errors.New("nobody waits any more")
	ended, end := context.WithCancelCause(t.Context())
	end(tired)
	nothing := func() { t.Error("called after the end") }
	for what, read := range map[string]func() error{
		"view":          func() error { return db.View(ended, "m", func(*View) error { nothing(); return nil }) },
		"latest":        func() error { _, err := db.Latest(ended, "m"); return err },
		"collections":   func() error { _, err := db.Collections(ended); return err },
		"subscriptions": func() error { _, err := db.Subscriptions(ended); return err },
		"quarantine":    func() error { _, err := db.Quarantine(ended, "s"); return err },
		"count":         func() error { _, err := db.CountTopics(ended, "s", ""); return err },
		"records":       func() error { return db.HeldRecords(ended, "s", nil, func(Held) error { nothing(); return nil }) },
		"activity":      func() error { return db.Activity(ended, func(Activity) bool { nothing(); return true }) },
		"dump":          func() error { return db.Dump(ended, func(*Dump) error { nothing(); return nil }) },
		"parts":         func() error { return db.ReadParts(ended, func([]Part) error { nothing(); return nil }) },
		"sources": func() error {
			return db.ReadSources(ended, func([]Subscription, []fragment.Source) error { nothing(); return nil })
		},
		"open": func() error { _, err := Open(ended, testOptions(t.TempDir())); return err },
	} {
		require.ErrorIs(t, read(), tired, what)
	}
	ctx, end := context.WithCancelCause(t.Context())
	err = db.View(ctx, "m", func(v *View) error {
		read := 0
		for _, err := range v.Source().Topics() {
			if err != nil {
				return err
			}
			if read++; read == 50 {
				end(tired)
			}
			require.LessOrEqual(t, read, 51)
		}
		return nil
	})
	require.ErrorIs(t, err, tired)
}

// Sizes are those on disk, of records and of snapshots.
func TestSizesFollowWhatIsKept(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	db := openDB(t, t.TempDir())
	empty, err := db.Sizes()
	require.NoError(t, err)
	require.Zero(t, empty.Snapshots)
	require.Less(t, empty.Records, int64(1<<20), "what Badger reserves takes no disk")
	collectionOf(t, db, "m", heavy(t)) // 80 topics of 120 kB
	s := takeSnapshot(t, db, "m", 1)
	require.NoError(t, os.WriteFile(filepath.Join(db.Dir(), "other"), []byte("not ours"), 0o600))
	full, err := db.Sizes()
	require.NoError(t, err)
	require.Equal(t, s.Size, full.Snapshots)
	// Badger compresses tables, but not its logs.
	require.Greater(t, full.Records, empty.Records+int64(1<<20))
	require.NoError(t, db.DeleteCollection(t.Context(), "m", ""))
	gone, err := db.Sizes()
	require.NoError(t, err)
	require.Zero(t, gone.Snapshots)
}

// Closing waits for running operations; later ones are refused. A deletion is completed, or does not begin.
func TestClosingWaitsForDeletions(t *testing.T) {
	t.Parallel()
	for turn := range 10 {
		db, err := Open(t.Context(), testOptions(t.TempDir()))
		require.NoError(t, err)
		other := collection(t, db, "other", 3)
		takeSnapshot(t, db, "other", 1)
		before := rows(t, db, collectionTables)
		collection(t, db, "m", 2000)
		var deleting sync.WaitGroup
		begun := make(chan struct{})
		var deleted error
		deleting.Go(func() {
			deleted = db.DeleteCollection(t.Context(), "m", "", func(*Collection) error { close(begun); return nil })
		})
		<-begun
		time.Sleep(time.Duration(turn) * time.Millisecond)
		require.NoError(t, db.Close())
		deleting.Wait()
		require.NoError(t, deleted, "turn %d", turn)
		require.ErrorIs(t, db.DeleteCollection(t.Context(), "other", ""), errClosed)
		_, err = db.Prune(t.Context(), "other", Retention{Entries: 1})
		require.ErrorIs(t, err, errClosed)
		again, err := openTuned(db.Dir(), db.log, badger.Settings{})
		require.NoError(t, err, fmt.Sprint("turn ", turn))
		checkOnly(t, again, other, before)
		require.NoError(t, again.Close())
	}
}
