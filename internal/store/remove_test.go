package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/collections"
	"github.com/tmshare/tmshare/internal/store/datafolder"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/merge"
)

// folders returns the folders of snapshots, one for each history that has some.
func folders(t testing.TB, db *DB) []string {
	t.Helper()
	list, err := os.ReadDir(filepath.Join(db.Dir(), datafolder.Snapshots))
	require.NoError(t, err)
	names := []string{}
	for _, d := range list {
		names = append(names, d.Name())
	}
	return names
}

// collectionTables are all tables that have rows of collections.
const collectionTables = keys.SourceTables + "efksc"

// checkOnly checks that only one collection exists, with its earlier rows.
func checkOnly(t testing.TB, db *DB, c *Collection, rowsBefore int) {
	t.Helper()
	require.Equal(t, rowsBefore, rows(t, db, collectionTables), "nothing stays behind in a table")
	require.Equal(t, []string{c.Epoch.String()}, folders(t, db), "nor in a folder")
	list, err := db.Collections(t.Context())
	require.NoError(t, err)
	require.Equal(t, []Collection{*c}, list)
}

func TestADeletedCollectionLeavesNothing(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	db := openDB(t, t.TempDir())
	other := collection(t, db, "other", 30)
	takeSnapshot(t, db, "other", 1)
	before, records := rows(t, db, collectionTables), recordsOf(t, db, "other")
	var earlier []*Collection
	for range 3 {
		pruneable(t, db, "m", 250)
		require.Positive(t, prune(t, db, "m", Retention{Entries: 100}))
		var c *Collection
		view(t, db, "m", func(v *View) { c = &v.Collection })
		require.Len(t, folders(t, db), 2)
		for _, old := range earlier {
			require.NotEqual(t, old.Epoch, c.Epoch, "a history of its own")
			require.NotEqual(t, old.Number, c.Number)
			view(t, db, "m", func(v *View) {
				_, err := v.EntryOf(old.ID(&Entry{Seq: 1, Run: old.Run}))
				require.ErrorIs(t, err, ErrNotFound)
			})
		}
		earlier = append(earlier, c)
		require.NoError(t, db.DeleteCollection(t.Context(), "m", ""))
		checkOnly(t, db, other, before)
		require.ErrorIs(t, db.View(t.Context(), "m", func(*View) error { return nil }), ErrNotFound)
		require.ErrorIs(t, db.DeleteCollection(t.Context(), "m", ""), ErrNotFound)
		db = reopen(t, db)
		checkOnly(t, db, other, before)
		require.Equal(t, records, recordsOf(t, db, "other"))
	}
}

func TestACheckMayForbidToDelete(t *testing.T) {
	db := openDB(t, t.TempDir())
	c := collection(t, db, "m", 3)
	takeSnapshot(t, db, "m", 1)
	before, no := rows(t, db, collectionTables), errors.New("no")
	passes := func(got *Collection) error { require.Equal(t, c, got); return nil }
	require.ErrorIs(t, db.DeleteCollection(t.Context(), "m", "", passes, func(*Collection) error { return no }), no)
	checkOnly(t, db, c, before)
	require.NoError(t, db.DeleteCollection(t.Context(), "m", "", passes))
	require.Zero(t, rows(t, db, collectionTables))
}

// A reader still sees the state that it began to read; only files may be removed.
func TestReadersOutliveACollection(t *testing.T) {
	db := openDB(t, t.TempDir())
	h := pruneable(t, db, "m", 100)
	view(t, db, "m", func(v *View) {
		s, err := v.Snapshots()
		require.NoError(t, err)
		f, err := v.OpenSnapshot(&s[0])
		require.NoError(t, err)
		defer f.Close()
		records := all(t, v.Source().(merge.State))
		require.NoError(t, db.DeleteCollection(t.Context(), "m", ""))
		collection(t, db, "m", 5)
		require.Equal(t, records, all(t, v.Source().(merge.State)))
		require.Len(t, entries(t, v), len(h.log))
		for _, e := range h.log[101:] {
			shown(t, v, &e)
		}
		again, err := v.Snapshots()
		require.NoError(t, err)
		require.Equal(t, s, again)
		_, err = v.OpenSnapshot(&s[0])
		require.ErrorIs(t, err, ErrLost)
		require.Equal(t, s[0].Size, f.Size())
	})
	view(t, db, "m", func(v *View) { require.Equal(t, 6, v.Topics) })
}

// Deleting a collection while a snapshot of it is taken removes the snapshot, whether the collection is created again
// or not, and for any place of the snapshot.
func TestDeletingDuringASnapshot(t *testing.T) {
	t.Parallel()
	db := openDB(t, t.TempDir())
	other := collection(t, db, "other", 3)
	takeSnapshot(t, db, "other", 1)
	before := rows(t, db, collectionTables)
	for _, anew := range []bool{false, true} {
		for _, at := range []int{1, 2, 3, 5} { // looks at the context; some are those of the second form
			collection(t, db, "m", 1000)
			reached := false
			ctx := &counted{Context: t.Context(), look: func(n int) {
				if n == at {
					reached = true
					require.NoError(t, db.DeleteCollection(t.Context(), "m", ""))
					if anew {
						collection(t, db, "m", 10)
					}
				}
			}}
			s, err := db.TakeSnapshot(ctx, "m", 3)
			require.True(t, reached)
			require.ErrorIs(t, err, ErrNotFound)
			require.Nil(t, s)
			require.Equal(t, []string{other.Epoch.String()}, folders(t, db), "look %d", at)
			if anew {
				require.Empty(t, snapshots(t, db, "m"), "the new one has none of the old")
				require.NoError(t, db.DeleteCollection(t.Context(), "m", ""))
			}
			checkOnly(t, db, other, before)
		}
	}
}

// The same at the last moment: the files are written, and not listed yet.
func TestDeletingBeforeASnapshotIsListed(t *testing.T) {
	db := openDB(t, t.TempDir())
	for _, anew := range []bool{false, true} {
		c := collection(t, db, "m", 10)
		successor := collection(t, db, "successor", 10)
		var taken error
		var taking sync.WaitGroup
		require.NoError(t, db.rows.Update(t.Context(), func(tx *txn.Tx) error { // the listing waits for this update
			taking.Go(func() { _, taken = db.TakeSnapshot(t.Context(), "m", 3) })
			testenv.Eventually(t, func() bool {
				files := snapshotFiles(t, db)
				return len(files) == 1 && !strings.Contains(strings.Join(files, " "), ".tmp")
			})
			if !anew {
				return tx.Delete(keys.Name(keys.TableCollection, "m"))
			}
			next := *successor
			next.Name = "m"
			return errors.Join(tx.Delete(keys.Name(keys.TableCollection, "successor")), collections.Put(tx, &next))
		}))
		taking.Wait()
		require.ErrorIs(t, taken, ErrNotFound)
		require.Equal(t, []int{0}, rowCounts(t, db, c.Number, "s"))
		require.Equal(t, []int{0}, rowCounts(t, db, successor.Number, "s"))
		require.Empty(t, folders(t, db))
		if !anew {
			require.NoError(t, db.DeleteCollection(t.Context(), "successor", ""))
		}
	}
}

// Concurrent operations succeed or find no collection, and no rows remain.
func TestDeletingWhileOthersUseIt(t *testing.T) {
	t.Parallel()
	db := openUnsynced(t, t.TempDir())
	other := collection(t, db, "other", 3)
	takeSnapshot(t, db, "other", 1)
	before := rows(t, db, collectionTables)
	done := make(chan struct{})
	var users sync.WaitGroup
	for name, use := range map[string]func() error{
		"publish": func() error {
			_, err := db.Publish(t.Context(), "m", func(c Collection, s merge.State) (*fragment.Change, error) {
				return rename(0, 3, fmt.Sprint(c.Head)), nil
			})
			return err
		},
		"snapshot": func() error { _, err := db.TakeSnapshot(t.Context(), "m", 2); return err },
		"prune":    func() error { _, err := db.Prune(t.Context(), "m", Retention{Entries: 1}); return err },
		"set": func() error {
			_, err := db.ChangeSettings(t.Context(), "m", func(s *Settings) error { s.Title += "x"; return nil })
			return err
		},
		"read": func() error {
			return db.View(t.Context(), "m", func(v *View) error {
				if n := len(entries(t, v)); n != int(v.Head-v.Horizon) {
					return fmt.Errorf("%d entries, not %d", n, v.Head-v.Horizon)
				}
				if n := len(topicsOf(t, v.Source())); n != v.Topics {
					return fmt.Errorf("%d topics, not %d", n, v.Topics)
				}
				return nil
			})
		},
		"sizes": func() error { _, err := db.Sizes(); return err },
	} {
		users.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if err := use(); err != nil && !errors.Is(err, ErrNotFound) {
					t.Errorf("%s: %v", name, err)
					return
				}
			}
		})
	}
	for range testenv.Rounds(6, 25) {
		collection(t, db, "m", 200)
		takeSnapshot(t, db, "m", 2)
		require.NoError(t, db.DeleteCollection(t.Context(), "m", ""))
	}
	close(done)
	users.Wait()
	checkOnly(t, db, other, before)
}

// Opening the database removes any remains of a deletion by a killed process.
func TestOpeningFinishesADeletion(t *testing.T) {
	t.Parallel()
	for _, left := range []string{"", "e", "f", "k", "s", "tilan", collectionTables} {
		db := openDB(t, t.TempDir())
		other := collection(t, db, "other", 30)
		takeSnapshot(t, db, "other", 1)
		before := rows(t, db, collectionTables)
		pruneable(t, db, "m", 50)
		var c *Collection
		view(t, db, "m", func(v *View) { c = &v.Collection })
		require.NoError(t, db.rows.Update(t.Context(), func(tx *txn.Tx) error { return records.Unname(tx, keys.TableCollection, "m", c.Number) }))
		for _, table := range []byte("tilanefks") {
			if !strings.ContainsRune(left, rune(table)) {
				require.NoError(t, errors.Join(db.rows.Engine.DeletePrefix(t.Context(), c.Log().Key(table)), db.rows.Engine.DeletePrefix(t.Context(), c.SourceKey().Key(table))))
			}
		}
		db = reopen(t, db)
		checkOnly(t, db, other, before)
		require.NoError(t, db.Close())
	}
}
