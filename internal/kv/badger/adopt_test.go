package badger

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4/table"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/kv/kvtest"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/kill"
)

// loading are settings under which a load of a few rows has several tables of its own.
var loading = Settings{LoadFrom: 2 << 10, TableSize: 8 << 10, MemTableSize: 256 << 10, ValueLogFileSize: 1 << 20, ValueThreshold: 16 << 10}

// loader loads rows, and records the expected ones.
type loader struct {
	t    testing.TB
	e    *Engine
	rows map[string]string

	adopted uint64 // loads with tables
}

// table loads a table with two rows.
func (l *loader) table(first, last string) {
	l.t.Helper()
	w := l.begin()
	for _, key := range []string{first, last} {
		l.putOne(w, key, string(bytes.Repeat([]byte("."), int(l.e.loadFrom))))
	}
	require.NoError(l.t, w.Commit())
	l.adopted++
	require.Equal(l.t, l.adopted, l.e.Adopted())
}

func newLoader(t testing.TB, folder string, s Settings) *loader {
	l := &loader{t: t, e: openIn(t, folder, s), rows: map[string]string{}}
	l.e.quietTimeout = 20 * time.Millisecond
	return l
}

// put writes n rows whose keys begin with a prefix.
func (l *loader) put(w kv.Writer, prefix string, n int) {
	l.t.Helper()
	for i := range n {
		l.putOne(w, fmt.Sprintf("%s%05d", prefix, i), fmt.Sprint(prefix, i, string(bytes.Repeat([]byte("."), 100))))
	}
}

func (l *loader) putOne(w kv.Writer, key, value string) {
	l.t.Helper()
	require.NoError(l.t, w.Put([]byte(key), []byte(value)))
	l.rows[key] = value
}

func (l *loader) begin() kv.Writer {
	l.t.Helper()
	w, err := l.e.Bulk(l.t.Context())
	require.NoError(l.t, err)
	l.t.Cleanup(w.Cancel)
	return w
}

// commit commits a few rows.
func (l *loader) commit(keys ...string) {
	l.t.Helper()
	require.NoError(l.t, kvtest.Update(l.t.Context(), l.e, func(_ kv.Reader, w kv.Writer) error {
		for _, key := range keys {
			l.putOne(w, key, "committed")
		}
		return nil
	}))
}

// requireRows checks the stored rows.
func (l *loader) requireRows() {
	l.t.Helper()
	require.Equal(l.t, l.rows, rowsOf(l.t, l.e))
	require.NoError(l.t, l.e.Verify(l.t.Context()))
}

func rowsOf(t testing.TB, e *Engine) map[string]string {
	t.Helper()
	r, err := e.Snapshot(t.Context())
	require.NoError(t, err)
	defer r.Close()
	return read(t, r)
}

func read(t testing.TB, r kv.Reader) map[string]string {
	t.Helper()
	all, last := map[string]string{}, []byte(nil)
	for row, err := range r.Range(nil, nil, false) {
		require.NoError(t, err)
		require.Negative(t, bytes.Compare(last, row.Key), "in order, each once")
		last = bytes.Clone(row.Key)
		value, err := r.Get(row.Key)
		require.NoError(t, err)
		require.Equal(t, string(row.Value), string(value))
		all[string(row.Key)] = string(value)
	}
	return all
}

func leftTables(t testing.TB, folder string) []string {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(folder, "*"+loadedExt))
	require.NoError(t, err)
	return left
}

// reopen closes the database and opens it again.
func (l *loader) reopen() {
	l.t.Helper()
	require.NoError(l.t, l.e.Close())
	l.e = openIn(l.t, l.e.folder.Path(), l.e.options.Settings)
}

// A large load with few ascending runs goes into tables of the last level, and is written once. Other users of the
// database read and write meanwhile, and lose no row.
func TestALoadHasTablesOfItsOwn(t *testing.T) {
	t.Parallel()
	l := newLoader(t, t.TempDir(), loading)
	l.commit("a", "t00003", "z")
	w := l.begin()
	l.putOne(w, "y", "out of order, before it is much")
	l.put(w, "t", 300)
	l.commit("c")
	l.put(w, "k", 300)
	l.putOne(w, "k00299", "the last of a key counts")
	l.putOne(w, "k00300", string(bytes.Repeat([]byte("large "), 10_000)))
	l.putOne(w, "t00007", "among those of tables that are made")
	l.putOne(w, "s", "")
	l.put(w, "u", 10)
	before, err := l.e.Version(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, leftTables(t, l.e.folder.path))
	require.NoError(t, w.Commit())
	require.Equal(t, uint64(1), l.e.Adopted())
	require.Empty(t, leftTables(t, l.e.folder.path))
	after, err := l.e.Version(t.Context())
	require.NoError(t, err)
	require.Equal(t, before, after, "it changes no version")
	tables := 0
	for _, each := range l.e.badger.Tables() {
		if each.Level > 0 {
			require.Equal(t, lastLevel, each.Level)
			tables++
		}
	}
	require.Greater(t, tables, 5)
	l.requireRows()
	l.commit("t00001", "d")
	l.requireRows()
	l.reopen()
	l.requireRows()

	require.NoError(t, l.e.DeletePrefix(t.Context(), []byte("k")))
	maps.DeleteFunc(l.rows, func(key, _ string) bool { return key[0] == 'k' })
	require.NoError(t, l.e.badger.Flatten(1))
	l.requireRows()
}

// The next load has tables, too, where its keys are between those of tables that are there: their tables end where
// another table of the store begins.
func TestTheNextLoadHasTablesOfItsOwn(t *testing.T) {
	t.Parallel()
	l := newLoader(t, t.TempDir(), loading)
	for i, prefixes := range [][]string{{"source 1t", "source 1a", "source 1i"}, {"source 1e", "source 1k"}, {"source 2t", "source 2a"}} {
		w := l.begin()
		for _, prefix := range prefixes {
			l.put(w, prefix, 100)
		}
		require.NoError(t, w.Commit())
		require.Equal(t, uint64(i+1), l.e.Adopted())
		l.requireRows()
	}
	l.reopen()
	l.requireRows()
}

// Rows that cannot be in tables of their own are written all the same: of each key the last.
func TestALoadThatCannotHaveTables(t *testing.T) {
	t.Parallel()
	for name, load := range map[string]func(l *loader, w kv.Writer){
		"somebody reads": func(l *loader, w kv.Writer) {
			l.put(w, "t", 200)
			r, err := l.e.Snapshot(context.Background())
			require.NoError(l.t, err)
			l.t.Cleanup(func() {
				require.Equal(l.t, "committed", read(l.t, r)["a"])
				r.Close()
			})
		},
		"somebody writes many rows": func(l *loader, w kv.Writer) {
			l.put(w, "t", 200)
			l.t.Cleanup(l.e.newBatch().Cancel)
		},
		"a row goes": func(l *loader, w kv.Writer) {
			l.put(w, "t", 200)
			require.NoError(l.t, w.Delete([]byte("t00005")))
			delete(l.rows, "t00005")
			l.putOne(w, "t00006", "later")
		},
		"rows go first": func(l *loader, w kv.Writer) {
			require.NoError(l.t, w.Delete([]byte("a")))
			delete(l.rows, "a")
			for i := range 200 {
				require.NoError(l.t, w.Delete(fmt.Appendf(nil, "t%050d", i)))
			}
			l.putOne(w, "u", "later")
		},
		"keys descend": func(l *loader, w kv.Writer) {
			for i := range 200 {
				l.putOne(w, fmt.Sprintf("t%05d", 200-i), string(bytes.Repeat([]byte("."), 100)))
			}
		},
		"much comes late": func(l *loader, w kv.Writer) {
			l.put(w, "t", 200)
			for i := range 200 {
				l.putOne(w, fmt.Sprintf("t%05d", 200-i), "again")
			}
		},
		"others have made a table there": func(l *loader, w kv.Writer) {
			l.put(w, "one source", 200)
			l.table("one source", "one sourcf")
			l.put(w, "v", 10)
		},
		"a table is there": func(l *loader, w kv.Writer) {
			l.table("one source", "one sourcf")
			l.put(w, "one source", 200)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLoader(t, t.TempDir(), loading)
			l.commit("a", "t00001")
			w := l.begin()
			load(l, w)
			require.NoError(t, w.Commit())
			require.Equal(t, l.adopted, l.e.Adopted())
			require.Empty(t, leftTables(t, l.e.folder.path))
			l.requireRows()
		})
	}
}

// For any order of rows, the last row of each key is stored.
func TestLoadsOfAnyOrder(t *testing.T) {
	t.Parallel()
	adopted := uint64(0)
	s := loading
	s.Unsynced, s.LoadFrom, s.TableSize = true, 100, 300
	testenv.Check(t, 30, 300, func(r *rapid.T) {
		l := newLoader(t, t.TempDir(), s)
		key := rapid.StringMatching("[a-d]{1,2}")
		l.commit(rapid.SliceOfN(key, 0, 5).Draw(r, "before")...)
		require.NoError(t, l.e.DeletePrefix(t.Context(), []byte("b")))
		maps.DeleteFunc(l.rows, func(key, _ string) bool { return key[0] == 'b' })
		for range 2 {
			w := l.begin()
			for i := range rapid.IntRange(1, 4).Draw(r, "runs") {
				run := rapid.SliceOfN(key, 1, 20).Draw(r, "keys")
				if rapid.IntRange(0, 5).Draw(r, "in order") > 0 {
					slices.Sort(run)
				}
				for _, key := range run {
					if rapid.IntRange(0, 60).Draw(r, "goes") == 60 {
						require.NoError(t, w.Delete([]byte(key)))
						delete(l.rows, key)
						continue
					}
					l.putOne(w, key, fmt.Sprint(i, string(bytes.Repeat([]byte("."), rapid.IntRange(0, 50).Draw(r, "length")))))
				}
			}
			require.NoError(t, w.Commit())
			l.requireRows()
		}
		adopted += l.e.Adopted()
		l.reopen()
		l.requireRows()
		require.NoError(t, l.e.Close())
	})
	require.Positive(t, adopted)
}

func TestHistoriesWithTablesOfLoads(t *testing.T) {
	testenv.SkipUnderRace(t)
	testenv.OnlyWithAll(t, "the same rules are tested without tables of loads")
	t.Parallel()
	s := loading
	s.Unsynced, s.LoadFrom, s.TableSize = true, 1, 1<<10
	var e *Engine
	kvtest.Histories(t, func(t *testing.T) kv.Engine { e = openIn(t, t.TempDir(), s); return e })
	require.Positive(t, e.Adopted())
}

func TestContractWithTablesOfLoads(t *testing.T) {
	testenv.SkipUnderRace(t) // the same code runs without such tables
	testenv.OnlyWithAll(t, "the same rules are tested without tables of loads")
	t.Parallel()
	s := Settings{Unsynced: true, LoadFrom: 1, TableSize: 64 << 10}
	kvtest.Run(t, func(t *testing.T) kv.Engine { return openIn(t, t.TempDir(), s) })
}

func TestDurableWithTablesOfLoads(t *testing.T) {
	testenv.SkipUnderRace(t)
	testenv.OnlyWithAll(t, "the same rules are tested without tables of loads")
	t.Parallel()
	kvtest.Durable(t, func(t *testing.T, folder string) kv.Engine { return openIn(t, folder, loading) })
}

// A process may be killed at any instant of adopting tables. All of them are in the database once MANIFEST names them.
// Otherwise none is, and no file remains.
func TestKilledWhileTablesAreAdopted(t *testing.T) {
	t.Parallel()
	l, w, before := loaded(t)
	made := w.(*bulk).tables
	require.NoError(t, made.finish())

	folder := l.e.folder.path
	check := func(stage string, rows map[string]string, change func(folder string)) {
		t.Helper()
		image := t.TempDir()
		require.NoError(t, os.CopyFS(image, os.DirFS(folder)))
		change(image)
		e, err := tryToOpen(image, Options{Settings: loading})
		require.NoError(t, err, stage)
		require.Equal(t, rows, rowsOf(t, e), stage)
		require.NoError(t, e.Verify(t.Context()), stage)
		require.Empty(t, leftTables(t, image), stage)
		require.NoError(t, e.Close(), stage)
		named, err := readManifest(image)
		require.NoError(t, err)
		require.NoFileExists(t, filepath.Join(image, manifestFile+".new"), stage)
		tables, err := filepath.Glob(filepath.Join(image, "*"+tableExt))
		require.NoError(t, err)
		require.Len(t, tables, len(named.Tables), stage)
	}
	nothing := func(string) {}
	check("tables are made", before, nothing)
	there := l.e.badger.Tables()
	require.NoError(t, l.e.move())
	require.NoError(t, l.e.badger.Close())
	check("closed", before, nothing)
	manifest := filepath.Join(folder, manifestFile)
	old, err := os.ReadFile(manifest)
	require.NoError(t, err)
	adopted, err := l.e.folder.nameTables(made, there)
	require.NoError(t, err)
	require.True(t, adopted)
	named, err := os.ReadFile(manifest)
	require.NoError(t, err)
	require.Equal(t, old, named[:len(old)])
	check("about to be named", before, func(image string) {
		require.NoError(t, os.WriteFile(filepath.Join(image, manifestFile+".new"), named[:len(named)-3], 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(image, manifestFile), old, 0o600))
	})
	check("named", l.rows, nothing)
	made.files = nil
	require.NoError(t, l.e.openAgain())
	l.e.show(made.version)
	l.requireRows()
}

// loaded returns a load that waits to be committed, and the rows that are there without it.
func loaded(t *testing.T) (l *loader, w kv.Writer, before map[string]string) {
	l = newLoader(t, t.TempDir(), loading)
	l.commit("a")
	before = maps.Clone(l.rows)
	w = l.begin()
	l.put(w, "t", 300)
	return l, w, before
}

// A load fails if its tables cannot be adopted, and the database continues unchanged.
func TestALoadThatCannotBeAdopted(t *testing.T) {
	t.Parallel()
	l, w, before := loaded(t)
	require.NoError(t, os.Remove(w.(*bulk).tables.files[1].path))
	require.ErrorIs(t, w.Commit(), os.ErrNotExist)
	l.rows = before
	l.requireRows()
	l.commit("b")
	l.reopen()
	l.requireRows()
	require.Empty(t, leftTables(t, l.e.folder.path))
}

// A compaction may put a table in the last level while the database is closed, after the check for overlaps.
func TestACompactionComesBeforeTablesAreAdopted(t *testing.T) {
	t.Parallel()
	l := newLoader(t, t.TempDir(), loading)
	w := l.begin()
	l.put(w, "one source", 300)
	made := w.(*bulk).tables
	require.NoError(t, made.finish())
	there := l.e.badger.Tables()
	l.table("one source", "one sourcf")
	require.NoError(t, l.e.move())
	require.NoError(t, l.e.badger.Close())
	adopted, err := l.e.folder.nameTables(made, there)
	require.NoError(t, err)
	require.False(t, adopted)
	require.NoError(t, l.e.openAgain())
	l.e.show(made.version)
	require.NoError(t, w.Commit())
	require.Equal(t, l.adopted, l.e.Adopted())
	l.requireRows()
}

// The database is not closed if there is no space left to open it again.
func TestALoadWithoutRoomIsNotAdopted(t *testing.T) {
	t.Parallel()
	l, w, before := loaded(t)
	full := errors.New("the disk is nearly full")
	l.e.checkSpace = func() error { return full }
	require.ErrorIs(t, w.Commit(), full)
	l.rows = before
	l.requireRows()
	require.Empty(t, leftTables(t, l.e.folder.path))
}

// Nobody reads or writes any more if the database cannot be opened again. The next process finds all that was there.
func TestALoadAfterWhichTheDatabaseCannotBeOpened(t *testing.T) {
	t.Parallel()
	l := newLoader(t, t.TempDir(), loading)
	l.commit("a")
	w := l.begin()
	l.put(w, "t", 300)
	l.e.options.ValueThreshold = 100 << 20 // which Badger refuses
	require.ErrorContains(t, w.Commit(), "open the store again")
	_, err := l.e.Snapshot(t.Context())
	require.ErrorContains(t, err, "open the store again")
	_, err = l.e.Begin(t.Context(), kv.First)
	require.ErrorContains(t, err, "open the store again")
	l.e.options.ValueThreshold = loading.ValueThreshold
	l.reopen()
	l.requireRows()
}

// Damage found when the database is opened again is reported, and no file is removed: Badger would ignore the table.
func TestALoadBesideADamagedTable(t *testing.T) {
	t.Parallel()
	l := newLoader(t, t.TempDir(), loading)
	l.table("a", "b")
	w := l.begin()
	l.put(w, "t", 300)
	folder := l.e.folder.Path()
	m, err := readManifest(folder)
	require.NoError(t, err)
	for id := range m.Tables {
		path := table.NewFilename(id, folder)
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		content[len(content)-40] ^= 1
		require.NoError(t, os.WriteFile(path, content, 0o600))
	}
	err = w.Commit()
	require.ErrorIs(t, err, kv.ErrDamaged)
	require.ErrorContains(t, err, folder)
	_, err = l.e.Snapshot(t.Context())
	require.ErrorIs(t, err, kv.ErrDamaged)
	after, err := readManifest(folder)
	require.NoError(t, err)
	for id := range m.Tables {
		require.FileExists(t, table.NewFilename(id, folder))
		require.Contains(t, after.Tables, id)
	}
}

func TestMain(m *testing.M) { kill.Main(m, kill.Tasks{"load": load, "write": writeSome}) }

// load loads repeatedly, and prints the number of loads each time.
func load(args []string) error {
	from, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	e, err := tryToOpen(args[0], Options{Settings: loading})
	if err != nil {
		return err
	}
	for n := from; ; n++ {
		w, err := e.Bulk(context.Background())
		if err != nil {
			return err
		}
		for _, table := range []string{"t", "a"} {
			for i := range inLoad {
				err = cmp.Or(err, w.Put(fmt.Appendf(nil, "load%05d%s%03d", n, table, i), bytes.Repeat([]byte("row"), 40)))
			}
		}
		if err := errors.Join(err, w.Commit()); err != nil {
			return err
		}
		fmt.Println(n, e.Adopted())
	}
}

// inLoad is the number of rows in each table of a load.
const inLoad = 50

// A process killed at any instant leaves the loads that it has printed. The next load is stored as a whole or not at
// all.
func TestKilledWhileLoading(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	folder, random, adopted := t.TempDir(), testenv.Rand(5), 0
	next := 0
	for range testenv.Rounds(8, 100) {
		p := kill.Start(t, "load", folder, fmt.Sprint(next))
		for range 1 + random.IntN(3) {
			line, ok := p.Line()
			require.True(t, ok)
			var n, rows int
			_, err := fmt.Sscan(line, &n, &rows)
			require.NoError(t, err)
			next, adopted = n+1, max(adopted, rows)
		}
		require.True(t, p.Kill(time.Duration(random.IntN(100))*time.Millisecond))
		e, err := tryToOpen(folder, Options{Settings: loading})
		require.NoError(t, err)
		loads := map[string]int{}
		for key := range rowsOf(t, e) {
			loads[key[:len("load00000")]]++
		}
		require.GreaterOrEqual(t, len(loads), next)
		for load, rows := range loads {
			require.Equal(t, 2*inLoad, rows, load)
		}
		next = len(loads)
		require.Empty(t, leftTables(t, folder))
		require.NoError(t, e.Close())
	}
	require.Positive(t, adopted)
}

// A load that ends after the database was closed does not open it again: another process may have it by then.
func TestALoadIsNotAdoptedByAClosedDatabase(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	l := newLoader(t, folder, loading)
	w := l.begin()
	l.put(w, "t", 200)
	load := w.(*bulk)
	require.NotNil(t, load.tables)
	require.NoError(t, load.tables.finish())
	require.NoError(t, l.e.Close())
	adopted, err := l.e.adopt(load.tables)
	require.ErrorIs(t, err, kv.ErrClosed)
	require.False(t, adopted)
	require.True(t, l.e.badger.IsClosed())
	require.Empty(t, rowsOf(t, openIn(t, folder, loading)))
}

// A load begins while another has the database closed for a moment: it waits.
func TestALoadBeginsWhileAnotherIsAdopted(t *testing.T) {
	t.Parallel()
	l := newLoader(t, t.TempDir(), loading)
	l.e.users.Lock()
	begun := make(chan error)
	go func() {
		made, err := l.e.newTables(t.Context())
		begun <- cmp.Or(err, made.remove())
	}()
	again := l.e.badger
	l.e.badger = again
	l.e.users.Unlock()
	require.NoError(t, <-begun)
}
