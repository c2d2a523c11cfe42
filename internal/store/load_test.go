package store

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/kv/badger"
	"github.com/tmshare/tmshare/internal/store/datafolder"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/testenv"
)

// fewInMemory makes a load of some hundred records take several runs.
const fewInMemory = 100_000

// stageForever loads one generation after the other, and prints a line at each phase of the load: 1 while it reads, 2
// while it stores, 3 when it has staged the generation.
func stageForever(dir string) error {
	db, err := Open(context.Background(), testOptions(dir))
	if err != nil {
		return err
	}
	db.sortMemory = fewInMemory
	for {
		err := db.StageSource(context.Background(), "s", yielding(reifying(3000)), Mark{}, func(l Loading) {
			if l.Rows == 0 {
				fmt.Println(1)
			} else if l.Stored%4000 == 0 {
				fmt.Println(2)
			}
		})
		if err != nil {
			return err
		}
		fmt.Println(3)
	}
}

// A process killed in any phase of a load leaves no rows of it, once the database is opened again.
func TestKilledWhileLoading(t *testing.T) {
	testenv.OnlyWithAll(t, "it kills processes")
	t.Parallel()
	dir := t.TempDir()
	db := openDB(t, dir)
	subscribe(t, db, "s", mapOf(t, 5))
	state, count := subscription(t, db, "s").State, rows(t, db, keys.SourceTables)
	require.NoError(t, db.Close())

	random := testenv.Rand(9)
	phases, left := map[uint64]int{}, 0
	for n := range max(8, kills()) {
		phases[runAndKill(t, "stage", dir, 1+n%16, time.Duration(random.IntN(5))*time.Millisecond)]++
		left += len(loadingFiles(t, &DB{dir: dir}))

		db, err := Open(t.Context(), testOptions(dir))
		require.NoError(t, err)
		require.Empty(t, loadingFiles(t, db))
		require.Equal(t, state, subscription(t, db, "s").State)
		if subscription(t, db, "s").Staging != nil {
			require.NoError(t, db.UpdateSubscription(t.Context(), "s", func(s *Subscription) { s.Staging = nil }))
		}
		require.Equal(t, count, rows(t, db, keys.SourceTables), "after kill %d", n)
		require.NoError(t, db.Close())
	}
	require.Positive(t, left, "no kill has left a file")
	require.Positive(t, phases[1], "no kill while reading")
	require.Positive(t, phases[2], "no kill while storing")
}

// A first publication, a clean start and a restore have tables of their own in a new folder: the data are written once.
func TestALargeLoadHasTablesOfItsOwn(t *testing.T) {
	t.Parallel()
	m := mapOf(t, 0)
	for i := range 1000 {
		require.NoError(t, m.PutTopic(named(ref(i), strings.Repeat("long ", 500))))
	}
	for name, c := range map[string]struct {
		loads uint64
		load  func(t *testing.T, db *DB)
	}{
		"a collection": {1, func(t *testing.T, db *DB) {
			_, err := db.CreateCollection(t.Context(), Collection{Name: "c", SP: sp}, First{Source: m, Snapshot: true}, nil)
			require.NoError(t, err)
		}},
		"a subscription": {1, func(t *testing.T, db *DB) { subscribe(t, db, "s", m) }},
		"rows of a backup": {1, func(t *testing.T, db *DB) {
			require.NoError(t, db.Load(t.Context(), func(yield func(Row, error) bool) {
				for i := range 2000 {
					if !yield(Row{Key: fmt.Appendf(nil, "\x00\x00\x00\x09\x00\x00\x00\x01t%05d", i), Value: make([]byte, 1000)}, nil) {
						return
					}
				}
			}))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := openDB(t, t.TempDir())
			c.load(t, db)
			require.Equal(t, c.loads, db.rows.Engine.(*badger.Engine).Adopted())
		})
	}
}

// The progress of a load: records until all are read, then rows.
func TestProgressOfALargeLoad(t *testing.T) {
	db := openUnsynced(t, t.TempDir())
	db.sortMemory = fewInMemory
	subscribe(t, db, "s", mapOf(t, 5))
	var reported []Loading
	list := reifying(1500)
	require.NoError(t, db.StageSource(t.Context(), "s", yielding(list), Mark{}, func(l Loading) { reported = append(reported, l) }))
	require.Equal(t, []Loading{{Records: 1000}, {Records: 2000}, {Records: 3000}}, reported[:3])
	require.Greater(t, len(reported), 5)
	for i, l := range reported[3:] {
		require.Equal(t, Loading{Records: 3000, Stored: 1000 * (i + 1), Rows: reported[3].Rows}, l)
	}
	last := reported[len(reported)-1]
	require.Less(t, last.Rows-last.Stored, 1000)
}

// A write error of the folder, such as a full disk, ends the load, and no rows remain.
func TestALoadWithoutRoomLeavesNothing(t *testing.T) {
	t.Parallel()
	for name, without := range map[string]struct {
		spoil func(t *testing.T, folder string, next uint32)
		says  string
	}{
		"no folder": {func(t *testing.T, folder string, _ uint32) {
			require.NoError(t, os.WriteFile(folder, nil, 0o600))
		}, "not a directory"},
		"a full disk": {func(t *testing.T, folder string, next uint32) {
			if _, err := os.Stat("/dev/full"); err != nil {
				t.Skip("NOT CHECKED: there is no /dev/full")
			}
			require.NoError(t, os.MkdirAll(folder, 0o700))
			require.NoError(t, os.Symlink("/dev/full", filepath.Join(folder, fmt.Sprintf("%d-%d", keys.FirstNumber, next))))
		}, "no space left on device"},
	} {
		t.Run(name, func(t *testing.T) {
			db := openDB(t, t.TempDir())
			db.sortMemory = fewInMemory
			subscribe(t, db, "s", mapOf(t, 5))
			before, count := *subscription(t, db, "s"), rows(t, db, keys.SourceTables)
			require.EqualValues(t, keys.FirstNumber, before.Number)
			folder := filepath.Join(db.dir, datafolder.Scratch)
			without.spoil(t, folder, before.State.Generation+1)
			load := func() error {
				var records iter.Seq2[fragment.Record, error] = yielding(reifying(2000))
				return db.StageSource(t.Context(), "s", records, Mark{}, nil)
			}
			require.ErrorContains(t, load(), without.says)
			require.Equal(t, before, *subscription(t, db, "s"))
			require.Equal(t, count, rows(t, db, keys.SourceTables))

			require.NoError(t, os.RemoveAll(folder))
			require.NoError(t, load(), "once there is space")
			require.NotNil(t, subscription(t, db, "s").Staging)
		})
	}
}

// between returns an association of two topics.
func between(i, j int) *fragment.Association {
	a := &fragment.Association{Type: ref(1), Roles: []fragment.Role{{Type: ref(2), Player: ref(i)}, {Type: ref(3), Player: ref(j)}}}
	a.Canonical()
	return a
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

// loadingFiles returns the names of the files of loads.
func loadingFiles(t testing.TB, db *DB) (names []string) {
	t.Helper()
	files, err := os.ReadDir(filepath.Join(db.dir, datafolder.Scratch))
	if !errors.Is(err, os.ErrNotExist) {
		require.NoError(t, err)
	}
	for _, f := range files {
		names = append(names, f.Name())
	}
	return names
}

// A load ended by its context or by an error of its records leaves neither rows nor goroutines.
func TestALoadThatEndsEarlyLeavesNothing(t *testing.T) {
	db := openDB(t, t.TempDir())
	db.sortMemory = 20_000
	subscribe(t, db, "s", mapOf(t, 5))
	before, count := *subscription(t, db, "s"), rows(t, db, keys.SourceTables)
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
				if n == 100*i {
					if want == broken {
						yield(fragment.Record{}, broken)
						return
					}
					cancel()
				}
				for _, r := range []fragment.Record{{Topic: named(ref(n), fmt.Sprint(n))}, {Association: between(n, n+1)}} {
					if !yield(r, nil) {
						return
					}
				}
			}
		}
		require.ErrorIs(t, db.StageSource(ctx, "s", records, Mark{}, nil), want)
		cancel()
		require.True(t, left, "nobody reads on")
		require.Equal(t, before, *subscription(t, db, "s"))
		require.Equal(t, count, rows(t, db, keys.SourceTables))
		require.Empty(t, loadingFiles(t, db))
	}
	testenv.Eventually(t, func() bool { return runtime.NumGoroutine() <= routines+1 })
}
