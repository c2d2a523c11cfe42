package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/datafolder"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/storetest"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/merge"
)

// onOpen is a task that opens the database, prints a line then and at the beginning of each commit, calls do and waits
// to be killed.
func onOpen(dir string, do func(*DB) error) error {
	db, err := Open(context.Background(), testOptions(dir))
	if err != nil {
		return err
	}
	fmt.Println("open")
	db.rows.Observer = onCommit(func() { fmt.Println("commit") })
	if err := do(db); err != nil {
		return err
	}
	fmt.Println("done")
	select {}
}

// onCommit is called at the beginning of each commit.
type onCommit func()

func (f onCommit) Got([]byte)     {}
func (f onCommit) Scanned([]byte) {}
func (f onCommit) Commits([]row)  { f() }

func pruneOnce(dir string) error {
	return onOpen(dir, func(db *DB) error {
		_, err := db.Prune(context.Background(), "m", Retention{Entries: 150})
		return err
	})
}

func deleteOnce(dir string) error {
	return onOpen(dir, func(db *DB) error { return db.DeleteCollection(context.Background(), "m", "") })
}

// killOften makes copies of a data folder, runs the task in each and kills it
// shortly after one of its lines. Lines, not times, spread the kills over the
// task: a loaded machine delays both alike.
func killOften(t *testing.T, task, template string, check func(*DB)) {
	t.Helper()
	rng := testenv.Rand(17)
	copied := func() string {
		dir := t.TempDir()
		require.NoError(t, os.CopyFS(dir, os.DirFS(template)))
		return dir
	}
	db := openDB(t, copied())
	commits := 0
	db.rows.Observer = onCommit(func() { commits++ })
	start := time.Now()
	switch task {
	case "prune":
		prune(t, db, "m", Retention{Entries: 150})
	case "delete":
		require.NoError(t, db.DeleteCollection(t.Context(), "m", ""))
	}
	each := time.Since(start) / time.Duration(max(commits, 1))
	require.NoError(t, db.Close())
	require.Positive(t, commits)
	swept := &messages{count: "removing rows"}
	n := kills()
	for range n {
		dir := copied()
		lines := 1 + rng.IntN(commits+2) // "open", the commits, "done"
		moment := time.Duration(rng.Int64N(int64(each)))
		if rng.IntN(2) == 0 {
			moment = 0 // before or within the commit
		}
		runAndKill(t, task, dir, lines, moment)
		db := openWith(t, Options{Dir: dir, Logger: slog.New(swept), Batch: testBatch})
		check(db)
		require.NoError(t, db.Close())
		require.NoError(t, os.RemoveAll(dir))
	}
	t.Logf("%d kills, %d commits, %d tables with rows that were left", n, commits, swept.n.Load())
}

// Pruning that is killed, between two commits or within one, has moved the horizon by whole batches, and continues.
func TestPruningKilledAtAnyInstant(t *testing.T) {
	testenv.OnlyWithAll(t, "it kills processes")
	t.Parallel()
	template := t.TempDir()
	db := openDB(t, template)
	h := pruneable(t, db, "m", 330) // 661 entries
	require.NoError(t, db.Close())
	reached := map[uint64]int{}
	killOften(t, "prune", template, func(db *DB) {
		view(t, db, "m", func(v *View) { h.horizon = v.Horizon })
		require.Contains(t, []uint64{0, testBatch, 2 * testBatch, 500}, h.horizon)
		reached[h.horizon]++
		h.check(t, db, "m")
		require.Equal(t, 500-h.horizon, prune(t, db, "m", Retention{Entries: 150}))
		h.horizon = 500
		h.check(t, db, "m")
	})
	t.Logf("killed when the horizon was at: %v", reached)
	require.Greater(t, len(reached), 1, "the kills come at one place only")
}

// A deletion that is killed is done or has not begun, once the database is open
// again.
func TestDeletingKilledAtAnyInstant(t *testing.T) {
	testenv.OnlyWithAll(t, "it kills processes")
	t.Parallel()
	template := t.TempDir()
	db := openDB(t, template)
	other := collection(t, db, "other", 30)
	takeSnapshot(t, db, "other", 1)
	left := rows(t, db, collectionTables)
	h := pruneable(t, db, "m", 330)
	whole, records := rows(t, db, collectionTables), recordsOf(t, db, "m")
	require.NoError(t, db.Close())
	gone := 0
	killOften(t, "delete", template, func(db *DB) {
		err := db.View(t.Context(), "m", func(*View) error { return nil })
		if errors.Is(err, ErrNotFound) {
			gone++
			checkOnly(t, db, other, left)
			return
		}
		require.NoError(t, err)
		require.Equal(t, whole, rows(t, db, collectionTables))
		require.Equal(t, records, recordsOf(t, db, "m"))
		h.check(t, db, "m")
		content(t, db, "m", &snapshots(t, db, "m")[0])
	})
	require.Positive(t, gone, "no kill came after the deletion")
	t.Logf("gone after %d kills", gone)
}

// retain publishes, takes snapshots and prunes, and creates and deletes another
// collection, until it is killed.
func retain(dir string) error {
	ctx := context.Background()
	db, err := openSmall(dir, testOptions("").Logger)
	if err != nil {
		return err
	}
	fmt.Println("open")
	for turn := 0; ; turn++ {
		c, err := db.Publish(ctx, "m", func(c Collection, _ merge.State) (*fragment.Change, error) {
			from := int(c.Head % 60)
			return rename(from, from+60, fmt.Sprint("name ", c.Head)), nil
		})
		if err != nil {
			return err
		}
		fmt.Println(c.Head)
		if _, err := db.TakeSnapshot(ctx, "m", 1); err != nil {
			return err
		}
		if _, err := db.Prune(ctx, "m", Retention{Entries: 100 + c.Head%100}); err != nil {
			return err
		}
		if err := db.DeleteCollection(ctx, "x", ""); err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		if _, err := db.CreateCollection(ctx, Collection{Name: "x", SP: sp}, crowd(50+turn%3*50), nil); err != nil {
			return err
		}
		if _, err := db.TakeSnapshot(ctx, "x", 1); err != nil {
			return err
		}
	}
}

// crowd is a map of n topics, for processes that are no tests.
func crowd(n int) *merge.Memory {
	m := &merge.Memory{}
	for i := range n {
		if err := m.PutTopic(named(ref(i), "x")); err != nil {
			panic(err)
		}
	}
	return m
}

// checkWhole checks that each collection has all its rows and files, and that there are no others.
func checkWhole(t *testing.T, db *DB) {
	t.Helper()
	list, err := db.Collections(t.Context())
	require.NoError(t, err)
	want, files := map[byte]int{}, []string{}
	for _, c := range list {
		view(t, db, c.Name, func(v *View) {
			log := entries(t, v)
			require.Len(t, log, int(v.Head-v.Horizon))
			require.Equal(t, []uint64{v.Horizon + 1, v.Head, uint64(v.Topics)}, []uint64{log[0].Seq, log[len(log)-1].Seq, uint64(len(topicsOf(t, v.Source())))})
			want[keys.TableLog] += len(log)
			for _, e := range log {
				shown(t, v, &e)
			}
			for _, topic := range topicsOf(t, v.Source()) {
				e := last(t, v, topic.TopicSI())
				require.NotNil(t, e)
				require.Equal(t, topic.Title(), e.Title)
				want[keys.TableKey]++
				if e.Seq <= v.Horizon {
					want[keys.TableLog]++
					shown(t, v, e)
				}
			}
			snapshots, err := v.Snapshots()
			require.NoError(t, err)
			if v.Horizon > 0 {
				require.GreaterOrEqual(t, snapshots[0].Seq, v.Horizon)
			}
			want[keys.TableSnapshot] += len(snapshots)
			files = append(files, filesOf(&v.Collection, snapshots...)...)
			want[keys.TableTopic] += v.Topics
			storetest.Dump(t, v.Source())
		})
	}
	for _, table := range []byte("efkst") {
		require.Equal(t, want[table], rows(t, db, string(table)), "rows of table %c", table)
	}
	require.ElementsMatch(t, files, snapshotFiles(t, db))
	for _, folder := range folders(t, db) {
		inside, err := os.ReadDir(filepath.Join(db.Dir(), datafolder.Snapshots, folder))
		require.NoError(t, err)
		require.NotEmpty(t, inside)
	}
}

// A process that publishes, prunes, deletes and creates, killed at any instant, leaves whole collections, and no other
// rows.
func TestRetentionKilledAtAnyInstant(t *testing.T) {
	testenv.OnlyWithAll(t, "it kills processes")
	t.Parallel()
	rng := testenv.Rand(19)
	dir := t.TempDir()
	db := openDB(t, dir)
	_, err := db.CreateCollection(t.Context(), Collection{Name: "m", SP: sp, Settings: Settings{DocumentSize: 20}}, crowd(120), nil)
	require.NoError(t, err)
	require.NoError(t, db.Close())
	var head, horizon, printed uint64
	present := map[bool]int{}
	for range kills() {
		if at := runAndKill(t, "retain", dir, rng.IntN(5), time.Duration(rng.Int64N(int64(60*time.Millisecond)))); at > 0 {
			printed = at
		}
		db, err := openSmall(dir, testOptions("").Logger)
		require.NoError(t, err)
		checkWhole(t, db)
		view(t, db, "m", func(v *View) {
			require.GreaterOrEqual(t, v.Head, max(head, printed), "what was printed is kept")
			require.GreaterOrEqual(t, v.Horizon, horizon)
			head, horizon = v.Head, v.Horizon
		})
		list, err := db.Collections(t.Context())
		require.NoError(t, err)
		present[len(list) == 2]++
		require.NoError(t, db.Close())
	}
	require.Greater(t, horizon, uint64(100), "too little was pruned to mean anything")
	t.Logf("head %d, horizon %d; the other collection was there or not: %v", head, horizon, present)
}
