package store

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/datafolder"
	"github.com/tmshare/tmshare/internal/store/files"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/storetest"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/xtm"
)

func takeSnapshot(t tester, db *DB, name string, keep int) *Snapshot {
	t.Helper()
	s, err := db.TakeSnapshot(t.Context(), name, keep)
	require.NoError(t, err)
	return s
}

// snapshots returns the snapshots that are listed.
func snapshots(t tester, db *DB, name string) (list []Snapshot) {
	t.Helper()
	view(t, db, name, func(v *View) {
		var err error
		list, err = v.Snapshots()
		require.NoError(t, err)
	})
	return list
}

// content returns the document of a snapshot.
func content(t testing.TB, db *DB, name string, s *Snapshot) (plain string) {
	t.Helper()
	view(t, db, name, func(v *View) {
		f, err := v.OpenSnapshot(s)
		require.NoError(t, err)
		defer f.Close()
		data, err := io.ReadAll(f)
		require.NoError(t, err)
		require.Equal(t, int64(len(data)), s.Size)
		plain = unzip(t, data)
	})
	return plain
}

// snapshotPath returns the path of the file of a snapshot in a data folder.
func snapshotPath(db *DB, c *Collection, s *Snapshot) string {
	return filepath.Join(db.Dir(), filepath.FromSlash(db.snapshotFiles(c).Name(s.ID)))
}

// snapshotFiles returns the files in the folder of snapshots, as paths in it.
func snapshotFiles(t testing.TB, db *DB) []string {
	t.Helper()
	files := []string{}
	root := filepath.Join(db.Dir(), datafolder.Snapshots)
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			name, _ := filepath.Rel(root, path)
			files = append(files, name)
		}
		return err
	}))
	return files
}

// filesOf returns the files that the snapshots of a collection should have.
func filesOf(c *Collection, list ...Snapshot) []string {
	files := []string{}
	for _, s := range list {
		files = append(files, filepath.Join(c.Epoch.String(), s.ID.String()+".xtm21.gz"))
	}
	return files
}

func TestASnapshotIsTheMap(t *testing.T) {
	db := openDB(t, t.TempDir())
	editor := storetest.NewEditor(t, 7)
	collectionOf(t, db, "m", editor.Version(nil))
	for range 5 {
		var next *fragment.Map
		view(t, db, "m", func(v *View) { next = editor.Version(v.Source()) })
		c := publishMap(t, db, "m", next)
		s := takeSnapshot(t, db, "m", 9)
		require.Equal(t, []any{c.Head, c.Updated, c.Topics}, []any{s.Seq, s.Updated, s.Topics})
		require.Equal(t, *s, snapshots(t, db, "m")[0])
		view(t, db, "m", func(v *View) {
			var now bytes.Buffer
			require.NoError(t, v.WriteSnapshot(&now, xtm.V21))
			require.Equal(t, now.String(), content(t, db, "m", s))
			m, err := fragment.ReadSnapshot(t.Context(), strings.NewReader(content(t, db, "m", s)), xtm.Options{Base: sp})
			require.NoError(t, err)
			var loaded merge.Memory
			require.NoError(t, loaded.Load(m))
			require.Equal(t, storetest.Dump(t, v.Source()), storetest.Dump(t, &loaded))
		})
	}
}

func TestASnapshotOfWhatHasNotChangedIsTheSame(t *testing.T) {
	db := openDB(t, t.TempDir())
	c := collection(t, db, "m", 3)
	s := takeSnapshot(t, db, "m", 3)
	files := snapshotFiles(t, db)
	require.Equal(t, s, takeSnapshot(t, db, "m", 3))
	publish(t, db, "m", &fragment.Change{})
	db = reopen(t, db)
	work := &counted{Context: t.Context()}
	again, err := db.TakeSnapshot(work, "m", 3)
	require.NoError(t, err)
	require.Equal(t, s, again)
	require.Zero(t, work.looks, "nothing is written")
	require.Equal(t, files, snapshotFiles(t, db))
	require.ElementsMatch(t, filesOf(c, *s), files)
	publish(t, db, "m", rename(0, 1, "second"))
	require.NotEqual(t, s.ID, takeSnapshot(t, db, "m", 3).ID)
}

func TestTheNewestSnapshotsAreKept(t *testing.T) {
	db := openDB(t, t.TempDir())
	c := collection(t, db, "m", 3)
	other := collection(t, db, "other", 3)
	kept := takeSnapshot(t, db, "other", 1)
	var list []Snapshot
	for i := range 6 {
		list = append([]Snapshot{*takeSnapshot(t, db, "m", 3)}, list...)
		list = list[:min(3, len(list))]
		require.Equal(t, list, snapshots(t, db, "m"), "the newest first")
		require.ElementsMatch(t, append(filesOf(c, list...), filesOf(other, *kept)...), snapshotFiles(t, db))
		publish(t, db, "m", rename(0, 1, strings.Repeat("x", i)))
	}
	one := takeSnapshot(t, db, "m", 0) // at least one
	require.Equal(t, []Snapshot{*one}, snapshots(t, db, "m"))
	view(t, db, "m", func(v *View) {
		_, err := v.OpenSnapshot(&list[0])
		require.ErrorIs(t, err, ErrLost)
	})
	db = reopen(t, db)
	require.Equal(t, []Snapshot{*one}, snapshots(t, db, "m"))
	require.ElementsMatch(t, append(filesOf(c, *one), filesOf(other, *kept)...), snapshotFiles(t, db))
	content(t, db, "m", one)
}

func TestAReaderKeepsAnOldSnapshot(t *testing.T) {
	db := openDB(t, t.TempDir())
	collection(t, db, "m", 2000)
	s := takeSnapshot(t, db, "m", 1)
	want := content(t, db, "m", s)
	var f files.File
	view(t, db, "m", func(v *View) {
		var err error
		f, err = v.OpenSnapshot(s)
		require.NoError(t, err)
	})
	defer f.Close()
	begin := make([]byte, 100)
	_, err := io.ReadFull(f, begin)
	require.NoError(t, err)
	publish(t, db, "m", rename(0, 1, "second"))
	require.NotEqual(t, s.ID, takeSnapshot(t, db, "m", 1).ID)
	rest, err := io.ReadAll(f)
	require.NoError(t, err)
	require.Equal(t, want, unzip(t, append(begin, rest...)))
}

// Opening removes files of snapshots that are not listed, and no others.
func TestOpeningSweepsSnapshotFiles(t *testing.T) {
	db := openDB(t, t.TempDir())
	c := collection(t, db, "m", 3)
	s := takeSnapshot(t, db, "m", 3)
	folder := filepath.Join(db.Dir(), datafolder.Snapshots)
	stray := []string{
		filepath.Join(c.Epoch.String(), "123.tmp"),
		filepath.Join(c.Epoch.String(), uuid.NewString()+".xtm21.gz"),
		filepath.Join(uuid.NewString(), s.ID.String()+".xtm1.gz"), // of a collection that was never finished
		"456.tmp",
	}
	foreign := []string{"README", filepath.Join(c.Epoch.String(), "notes.txt")}
	for _, name := range append(stray, foreign...) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o750))
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte("x"), 0o600))
	}
	db = reopen(t, db)
	require.ElementsMatch(t, append(filesOf(c, *s), foreign...), snapshotFiles(t, db))
	content(t, db, "m", s)
}

// counted is a context that calls back at each look of a job, and ends at one of them. Looks of
// the engine do not count.
type counted struct {
	context.Context
	mu    sync.Mutex
	looks int
	at    int
	look  func(n int)
}

func (c *counted) Err() error {
	callers := make([]uintptr, 2)
	for frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers)]); ; {
		frame, more := frames.Next()
		if strings.Contains(frame.Function, "/internal/kv/") {
			return c.Context.Err()
		}
		if !more {
			break
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.looks++
	if c.look != nil {
		c.look(c.looks)
	}
	if c.at > 0 && c.looks >= c.at {
		return context.Canceled
	}
	return c.Context.Err()
}

// Wherever a snapshot is interrupted, it leaves no trace.
func TestAnInterruptedSnapshotLeavesNoTrace(t *testing.T) {
	db := openDB(t, t.TempDir())
	c := collection(t, db, "m", 100)
	s := takeSnapshot(t, db, "m", 3)
	publish(t, db, "m", rename(0, 100, "second"))
	files, written := snapshotFiles(t, db), committed(t, db)
	whole := &counted{Context: t.Context()}
	all, err := db.TakeSnapshot(whole, "m", 9)
	require.NoError(t, err)
	require.Greater(t, whole.looks, 1, "each form looks at the context")
	db.removeSnapshot(t.Context(), c, all)
	require.NoError(t, db.rows.Update(t.Context(), func(tx *txn.Tx) error { return tx.Delete(c.Log().Numbered(keys.TableSnapshot, all.Seq)) }))
	written += 2 // listed, and unlisted
	for at := 1; at <= whole.looks; at += max(1, whole.looks/20) {
		got, err := db.TakeSnapshot(&counted{Context: t.Context(), at: at}, "m", 9)
		require.ErrorIs(t, err, context.Canceled, "look %d of %d", at, whole.looks)
		require.Nil(t, got)
		require.Equal(t, files, snapshotFiles(t, db), "look %d of %d", at, whole.looks)
		require.Equal(t, []Snapshot{*s}, snapshots(t, db, "m"))
		require.Equal(t, written, committed(t, db))
	}
}

// A snapshot has the state at its beginning, while publishing continues.
func TestPublishingGoesOnDuringASnapshot(t *testing.T) {
	db := openDB(t, t.TempDir())
	c := collection(t, db, "m", 100)
	var want string
	view(t, db, "m", func(v *View) {
		var b bytes.Buffer
		require.NoError(t, v.WriteSnapshot(&b, xtm.V21))
		want = b.String()
	})
	ctx := &counted{Context: t.Context(), look: func(n int) {
		if n == 1 {
			publish(t, db, "m", rename(0, 100, "second"))
		}
	}}
	s, err := db.TakeSnapshot(ctx, "m", 3)
	require.NoError(t, err)
	require.Equal(t, []any{c.Head, c.Updated}, []any{s.Seq, s.Updated})
	require.Equal(t, want, content(t, db, "m", s))
	require.Equal(t, c.Head+100, takeSnapshot(t, db, "m", 3).Seq)
}

// Concurrent snapshots do not affect each other: a returned one is listed, a listed one has its files, and there are no
// others.
func TestSnapshotsTakenAtOnce(t *testing.T) {
	db := openDB(t, t.TempDir())
	c := collection(t, db, "m", 500)
	for _, name := range []string{"second", "third", "fourth"} {
		taken := make([]*Snapshot, 4)
		errs := make([]error, 4)
		var group sync.WaitGroup
		for i := range taken {
			group.Go(func() { taken[i], errs[i] = db.TakeSnapshot(t.Context(), "m", 2) })
		}
		group.Wait()
		require.NoError(t, errors.Join(errs...))
		list := snapshots(t, db, "m")
		for _, s := range taken {
			require.Equal(t, list[0], *s, "all return the one that is listed")
			content(t, db, "m", s)
		}
		require.ElementsMatch(t, filesOf(c, list...), snapshotFiles(t, db))
		publish(t, db, "m", rename(0, 3, name))
	}
}

// A snapshot that is finished after newer ones is removed.
func TestASnapshotThatIsOvertaken(t *testing.T) {
	db := openDB(t, t.TempDir())
	c := collection(t, db, "m", 100)
	for _, keep := range []int{1, 2} {
		var newer *Snapshot
		ctx := &counted{Context: t.Context(), look: func(n int) {
			if n == 1 {
				publish(t, db, "m", rename(0, 1, strings.Repeat("x", keep)))
				newer = takeSnapshot(t, db, "m", keep)
			}
		}}
		s, err := db.TakeSnapshot(ctx, "m", keep)
		require.NoError(t, err)
		list := snapshots(t, db, "m")
		require.Equal(t, *newer, list[0])
		require.Contains(t, list, *s, "what is returned is listed")
		require.Len(t, list, keep)
		require.ElementsMatch(t, filesOf(c, list...), snapshotFiles(t, db))
		publish(t, db, "m", rename(0, 1, "between"))
	}
}
