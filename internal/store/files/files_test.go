package files_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/kv/badger"
	"github.com/tmshare/tmshare/internal/kv/memory"
	"github.com/tmshare/tmshare/internal/store/files"
	"github.com/tmshare/tmshare/internal/store/files/filestest"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/kill"
	"github.com/tmshare/tmshare/internal/testkit/pgserver"
)

func TestMain(m *testing.M) { kill.Main(m, kill.Tasks{"write": write}) }

// over returns the kind of files that are rows of an engine.
func over(open func(t *testing.T) kv.Engine) filestest.Kind {
	return filestest.Kind{
		Open: func(t *testing.T, now func() time.Time) (one, other files.Store) {
			s := files.Rows{Engine: open(t), Now: now}
			return s, s
		},
		Left: leftRows,
	}
}

// leftRows counts the chunks that are those of no file, by their identifiers.
func leftRows(t *testing.T, s files.Store) int {
	t.Helper()
	known := map[uuid.UUID]bool{}
	r, err := s.(files.Rows).Engine.Snapshot(t.Context())
	require.NoError(t, err)
	defer r.Close()
	for row, err := range r.Range(keys.Once(keys.TableChunk), nil, false) {
		require.NoError(t, err)
		known[uuid.UUID(keys.Rest(row.Key)[:16])] = true
	}
	for row, err := range r.Range(keys.Once(keys.TableGoingFile), nil, false) {
		require.NoError(t, err)
		known[uuid.UUID(keys.Rest(row.Key)[8:])] = true
	}
	for row, err := range r.Range(keys.Once(keys.TableFile), nil, false) {
		require.NoError(t, err)
		_, id, _ := strings.Cut(string(row.Value), `"ID":"`)
		delete(known, uuid.MustParse(id[:36]))
	}
	return len(known)
}

func inBadger(t testing.TB, dir string) kv.Engine {
	f, err := badger.Lock(dir, false)
	require.NoError(t, err)
	e, err := f.Open(badger.Options{Settings: badger.Small, Node: uuid.Nil})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e
}

func TestContract(t *testing.T) {
	t.Parallel()
	t.Run("folder", func(t *testing.T) {
		filestest.Run(t, filestest.Kind{
			Open: func(t *testing.T, _ func() time.Time) (one, other files.Store) {
				f := files.Folder(t.TempDir())
				return f, f
			},
			Left: leftFiles,
		})
	})
	t.Run("memory", func(t *testing.T) {
		filestest.Run(t, over(func(*testing.T) kv.Engine { return memory.New() }))
	})
	t.Run("badger", func(t *testing.T) {
		filestest.Run(t, over(func(t *testing.T) kv.Engine { return inBadger(t, t.TempDir()) }))
	})
	t.Run("postgres", func(t *testing.T) {
		s := pgserver.Start(t, "fsync=off")
		filestest.Run(t, filestest.Kind{
			Open: func(t *testing.T, now func() time.Time) (one, other files.Store) {
				o := s.Store(t)
				return files.Rows{Engine: pgserver.Open(t, o), Now: now}, files.Rows{Engine: pgserver.Open(t, o), Now: now}
			},
			Left: leftRows,
		})
	})
}

// leftFiles counts uncommitted files, and empty folders.
func leftFiles(t *testing.T, s files.Store) (n int) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(string(s.(files.Folder)), func(path string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		if d.IsDir() {
			if inside, _ := os.ReadDir(path); len(inside) == 0 && strings.Count(strings.TrimPrefix(path, string(s.(files.Folder))), "/") > 1 {
				n++
			}
		} else if strings.HasSuffix(path, ".tmp") {
			n++
		}
		return nil
	}))
	return n
}

// write writes files until it is killed, to a folder or to a database. It prints a line after each commit.
func write(args []string) error {
	var s files.Store = files.Folder(args[0])
	if strings.Contains(args[0], "://") {
		e, err := pgserver.Dial(args[0])
		if err != nil {
			return err
		}
		s = files.Rows{Engine: e, Now: time.Now}
	}
	for n := 0; ; n++ {
		name := fmt.Sprintf("snapshots/a/%d", n%5)
		if err := filestest.Write(context.Background(), s, name, filestest.Content(uint64(n), 400_000+n)); err != nil {
			return err
		}
		fmt.Println(n)
		if n%3 == 2 {
			if err := s.Remove(context.Background(), name); err != nil {
				return err
			}
		}
	}
}

// A killed writer leaves no partial file, and its other remains are removed.
func TestAKilledWriterLeavesNoPartOfAFile(t *testing.T) {
	t.Parallel()
	server := pgserver.Start(t, "fsync=off")
	database := server.Store(t)
	dir := t.TempDir()
	for name, writer := range map[string]struct {
		store files.Store
		args  []string
		left  func(*testing.T, files.Store) int
	}{
		"folder":   {files.Folder(dir), []string{dir}, leftFiles},
		"postgres": {files.Rows{Engine: pgserver.Open(t, database), Now: time.Now}, []string{pgserver.Address(database)}, leftRows},
	} {
		t.Run(name, func(t *testing.T) {
			rng := testenv.Rand(210)
			for round := range testenv.Rounds(8, 200) {
				p := kill.Start(t, "write", writer.args...)
				for range 1 + rng.IntN(5) {
					p.Line()
				}
				require.True(t, p.Kill(time.Duration(rng.Int64N(int64(20*time.Millisecond)))))
				all, err := files.All(t.Context(), writer.store, "snapshots/")
				require.NoError(t, err)
				for _, f := range all {
					got, err := filestest.Read(t.Context(), writer.store, f.Name)
					if errors.Is(err, fs.ErrNotExist) {
						continue // the database removed it just now, in a request from before the end of the process
					}
					require.NoError(t, err, "round %d", round)
					require.Equal(t, filestest.Content(uint64(len(got)-400_000), len(got)), got, "round %d: %s", round, f.Name)
				}
			}
			server.Kill() // and its unfinished work for the processes
			server.Run()
			require.NoError(t, writer.store.Sweep(t.Context(), time.Now().Add(time.Minute)))
			require.Zero(t, writer.left(t, writer.store))
		})
	}
}

// meanwhile is an engine that makes another change between a writer's reads and its writes.
type meanwhile struct {
	kv.Engine
	happens func()
}

func (e *meanwhile) Bulk(ctx context.Context) (kv.Writer, error) {
	if f := e.happens; f != nil {
		e.happens = nil
		f()
	}
	return e.Engine.Bulk(ctx)
}

// Of two concurrent writes of one name, or a write and a removal, at most one file becomes visible, and no row of the
// other remains.
func TestFilesOfOneNameThatAreWrittenAtOneTime(t *testing.T) {
	for name, other := range map[string]func(files.Store) error{
		"written": func(s files.Store) error { return filestest.Write(t.Context(), s, "snapshots/a", []byte("other")) },
		"removed": func(s files.Store) error { return s.Remove(t.Context(), "snapshots/a") },
	} {
		t.Run(name, func(t *testing.T) {
			for _, before := range []bool{false, true} {
				engine := &meanwhile{Engine: memory.New()}
				s := files.Rows{Engine: engine, Now: time.Now}
				if before {
					require.NoError(t, filestest.Write(t.Context(), s, "snapshots/a", []byte("before")))
				}
				w, err := s.Create(t.Context(), "snapshots/a")
				require.NoError(t, err)
				_, err = w.Write([]byte("this"))
				require.NoError(t, err)
				engine.happens = func() { require.NoError(t, other(s)) }
				require.NoError(t, w.Commit())
				engine.happens = func() { require.NoError(t, filestest.Write(t.Context(), s, "snapshots/a", []byte("last"))) }
				require.NoError(t, s.Remove(t.Context(), "snapshots/a"))
				require.Nil(t, engine.happens)
				require.NoError(t, s.Sweep(t.Context(), time.Now().Add(time.Minute)))
				require.Zero(t, leftRows(t, s))
			}
		})
	}
}

// A file may be visible although its writer got an error: then its rows are kept.
func TestFilesThatShowInSpiteOfAnError(t *testing.T) {
	engine := &meanwhile{Engine: memory.New()}
	s := files.Rows{Engine: engine, Now: time.Now}
	ctx, end := context.WithCancel(t.Context())
	w, err := s.Create(ctx, "snapshots/a")
	require.NoError(t, err)
	_, err = w.Write([]byte("this"))
	require.NoError(t, err)
	engine.happens = end
	require.ErrorIs(t, w.Commit(), context.Canceled)
	w.Cancel()
	require.NotZero(t, leftRows(t, s))
	require.NoError(t, s.Sweep(t.Context(), time.Now().Add(time.Minute)))
	require.Zero(t, leftRows(t, s))
}

// Folders that are empty after their creator, or the remover of the last file, was killed are removed with all other
// remains.
func TestSweepRemovesEmptyFolders(t *testing.T) {
	t.Parallel()
	s := files.Folder(t.TempDir())
	for _, area := range files.Areas {
		require.NoError(t, os.MkdirAll(filepath.Join(string(s), area, "empty", "a", "b"), 0o700))
		require.NoError(t, os.MkdirAll(filepath.Join(string(s), area, "some", "none"), 0o700))
		require.NoError(t, filestest.Write(t.Context(), s, area+"/some/file", []byte("x")))
	}
	require.NotZero(t, leftFiles(t, s))
	require.NoError(t, s.Sweep(t.Context(), time.Now().Add(-files.Unfinished)))
	require.Zero(t, leftFiles(t, s))
	for _, area := range files.Areas {
		require.NoDirExists(t, filepath.Join(string(s), area, "empty"))
		all, err := files.All(t.Context(), s, area+"/")
		require.NoError(t, err)
		require.Len(t, all, 1)
	}
}

// A folder that is swept while a file is begun in it is made again.
func TestFilesAreMadeWhileFoldersAreSwept(t *testing.T) {
	t.Parallel()
	s := files.Folder(t.TempDir())
	ctx, end := context.WithCancel(t.Context())
	var sweeper sync.WaitGroup
	sweeper.Go(func() {
		for ctx.Err() == nil {
			assert.NoError(t, s.Sweep(context.Background(), time.Now().Add(-files.Unfinished)))
		}
	})
	for n := range testenv.Rounds(200, 5000) {
		name := fmt.Sprintf("snapshots/a/b/%d", n)
		require.NoError(t, filestest.Write(t.Context(), s, name, []byte("x")))
		require.NoError(t, s.Remove(t.Context(), name))
	}
	end()
	sweeper.Wait()
}
