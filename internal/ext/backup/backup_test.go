package backup_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/ext/backup"
	"github.com/tmshare/tmshare/internal/kv/badger"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/datafolder"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
)

var silent = slog.New(slog.DiscardHandler)

func none(backup.Progress) {}

func open(t testing.TB, dir string, access store.Access) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), store.Options{Dir: dir, Access: access, Logger: silent, Badger: badger.Small})
	require.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	return db
}

func topic(i int, name string) *fragment.Topic {
	return &fragment.Topic{
		Identity: fragment.Identity{SubjectIdentifiers: []fragment.Ref{fragment.Ref(fmt.Sprintf("http://example.org/%06d", i))}},
		Names:    []fragment.Name{{Value: name, Type: tmdm.PSIDefaultNameType}},
	}
}

// node is a data folder with two collections and a subscription.
func node(t testing.TB, topics int) *store.DB {
	t.Helper()
	db := open(t, filepath.Join(t.TempDir(), "data"), store.Create)
	for _, name := range []string{"a", "b"} {
		m := &merge.Memory{}
		require.NoError(t, m.PutTopic(&fragment.Topic{Identity: fragment.Identity{SubjectIdentifiers: []fragment.Ref{tmdm.PSIDefaultNameType}}}))
		for i := range topics {
			require.NoError(t, m.PutTopic(topic(i, "first in "+name)))
		}
		_, err := db.CreateCollection(t.Context(), store.Collection{Name: name, SP: "http://example.org/" + name + "/"}, m, nil)
		require.NoError(t, err)
		_, err = db.TakeSnapshot(t.Context(), name, 3)
		require.NoError(t, err)
	}
	require.NoError(t, db.AddSubscription(t.Context(), store.Subscription{Name: "s", FragmentsFeed: "http://example.org/feed", SP: "http://example.org/s/"}))
	publish(t, db, "a", 0, "second")
	return db
}

func publish(t testing.TB, db *store.DB, name string, i int, value string) {
	t.Helper()
	_, err := db.Publish(context.Background(), name, func(c store.Collection, state merge.State) (*fragment.Change, error) {
		now := topic(i, value)
		return &fragment.Change{PutTopics: []*fragment.Topic{now}, Updated: 1, Entries: []fragment.Entry{{TopicSI: now.TopicSI(), Topic: now.TopicSI(), Title: value}}}, nil
	})
	require.NoError(t, err)
}

// rows returns all rows of a database except those that belong to a restored one alone, and its collections without
// the fields that a new epoch changes.
func rows(t testing.TB, db *store.DB) map[string]string {
	t.Helper()
	all := map[string]string{}
	require.NoError(t, db.Dump(t.Context(), func(d *store.Dump) error {
		for r, err := range d.Rows() {
			require.NoError(t, err)
			if key := string(r.Key); key != string(keys.Meta("node")) && keys.Table(r.Key) != keys.TableCollection {
				all[key] = string(r.Value)
			}
		}
		return nil
	}))
	collections, err := db.Collections(t.Context())
	require.NoError(t, err)
	for _, c := range collections {
		c.Epoch = [16]byte{}
		row, err := json.Marshal(c)
		require.NoError(t, err)
		all["collection "+c.Name] = string(row)
	}
	return all
}

// snapshots returns the bytes of the newest snapshot of each collection.
func snapshots(t testing.TB, db *store.DB) (all []string) {
	t.Helper()
	for _, name := range []string{"a", "b"} {
		require.NoError(t, db.View(t.Context(), name, func(v *store.View) error {
			listed, err := v.Snapshots()
			require.NoError(t, err)
			f, err := v.OpenSnapshot(&listed[0])
			require.NoError(t, err)
			defer f.Close()
			var b bytes.Buffer
			_, err = b.ReadFrom(f)
			require.NoError(t, err)
			all = append(all, b.String())
			return nil
		}))
	}
	return all
}

func epochs(t testing.TB, db *store.DB) (all []string) {
	collections, err := db.Collections(t.Context())
	require.NoError(t, err)
	for _, c := range collections {
		all = append(all, c.Epoch.String())
	}
	return all
}

// A restored database has the data of the backup, with new epochs and a node of its own; and it can be written to.
func TestARestoredFolderHoldsTheStateOfTheBackup(t *testing.T) {
	t.Parallel()
	for _, ending := range []string{"/", "/one.backup"} {
		db := node(t, 300)
		path := t.TempDir() + ending
		made, err := backup.Make(t.Context(), db, path, none)
		require.NoError(t, err)
		assert.Equal(t, 2, made.Files)
		assert.Equal(t, made.Bytes, made.Written)
		want, files := rows(t, db), snapshots(t, db)
		publish(t, db, "a", 1, "after the backup")

		dir := filepath.Join(t.TempDir(), "restored")
		restored, err := backup.Restore(t.Context(), path, backup.Folder(dir, silent), none)
		require.NoError(t, err)
		assert.Equal(t, made.Taken, restored.Taken)
		assert.Equal(t, made.Rows, restored.Rows)
		again := open(t, dir, store.Write)
		assert.True(t, maps.Equal(want, rows(t, again)))
		assert.Equal(t, files, snapshots(t, again))
		was, err := datafolder.ReadIdentity(db.Dir())
		require.NoError(t, err)
		now, err := datafolder.ReadIdentity(dir)
		require.NoError(t, err)
		assert.NotEqual(t, was.Node, now.Node)
		for i, e := range epochs(t, again) {
			assert.NotEqual(t, epochs(t, db)[i], e)
		}
		publish(t, again, "a", 1, "after the restore")
	}
}

// In a folder, a second backup writes the changes. Each backup can be restored.
func TestBackupsInAFolderShareWhatIsTheSame(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	db := node(t, 5000)
	folder := filepath.Join(t.TempDir(), "backups") + "/"
	first, err := backup.Make(t.Context(), db, folder, none)
	require.NoError(t, err)
	before := rows(t, db)
	publish(t, db, "b", 7, "changed")
	second, err := backup.Make(t.Context(), db, folder, none)
	require.NoError(t, err)
	assert.Less(t, 2*second.Written, second.Bytes, "most is there already")
	assert.Positive(t, second.Written)
	third, err := backup.Make(t.Context(), db, folder, none)
	require.NoError(t, err)
	assert.Zero(t, third.Written)
	for path, want := range map[string]map[string]string{first.Path: before, folder: rows(t, db)} {
		dir := filepath.Join(t.TempDir(), "restored")
		_, err := backup.Restore(t.Context(), path, backup.Folder(dir, silent), none)
		require.NoError(t, err)
		assert.True(t, maps.Equal(want, rows(t, open(t, dir, store.Write))))
	}
}

// A damaged folder is not backed up: the backup would lack the damaged rows, and look whole.
func TestADamagedFolderIsNotBackedUp(t *testing.T) {
	t.Parallel()
	db := node(t, 300)
	require.NoError(t, db.Close()) // the rows are in a table
	tables, err := filepath.Glob(filepath.Join(db.Dir(), "badger", "*.sst"))
	require.NoError(t, err)
	content, err := os.ReadFile(tables[0])
	require.NoError(t, err)
	content[len(content)/3] ^= 1
	require.NoError(t, os.WriteFile(tables[0], content, 0o600))
	path := filepath.Join(t.TempDir(), "one.backup")
	again := open(t, db.Dir(), store.Read)
	_, err = backup.Make(t.Context(), again, path, none)
	require.ErrorIs(t, err, store.ErrDamaged)
	assert.NoFileExists(t, path)
	var found []store.Finding
	require.NoError(t, again.Check(t.Context(), false, func(f store.Finding) { found = append(found, f) }, func(string) {}))
	require.Len(t, found, 1)
	assert.False(t, found[0].Repairable)
}

// Old backups go with the chunks that nothing else uses, but for those that may be about to be used.
func TestOldBackupsAreRemovedWithWhatTheyAloneUse(t *testing.T) {
	t.Parallel()
	db := node(t, 30)
	folder := t.TempDir()
	for i := range 4 {
		publish(t, db, "a", i, strings.Repeat(fmt.Sprint(i), 1000))
		_, err := backup.Make(t.Context(), db, folder, none)
		require.NoError(t, err)
	}
	chunks := func() []string {
		all, err := filepath.Glob(filepath.Join(folder, "chunks", "*", "*"))
		require.NoError(t, err)
		return all
	}
	before := chunks()
	removed, err := backup.Prune(folder, 3)
	require.NoError(t, err)
	require.Equal(t, 1, removed)
	require.Equal(t, before, chunks(), "another backup may be about to use them")
	for _, chunk := range before {
		long := time.Now().AddDate(0, 0, -2)
		require.NoError(t, os.Chtimes(chunk, long, long))
	}
	want := rows(t, db)
	removed, err = backup.Prune(folder, 1)
	require.NoError(t, err)
	require.Equal(t, 2, removed)
	require.Less(t, len(chunks()), len(before))
	dir := filepath.Join(t.TempDir(), "restored")
	_, err = backup.Restore(t.Context(), folder, backup.Folder(dir, silent), none)
	require.NoError(t, err)
	require.True(t, maps.Equal(want, rows(t, open(t, dir, store.Write))))
}

// A backup that is made while others write holds one state, which is sound.
func TestABackupHoldsOneState(t *testing.T) {
	t.Parallel()
	db := node(t, 1000)
	ctx, stop := context.WithCancel(t.Context())
	var writer sync.WaitGroup
	writer.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			publish(t, db, "a", i%7, fmt.Sprint("version ", i))
			if i%10 == 9 {
				_, err := db.TakeSnapshot(context.Background(), "a", 1)
				assert.NoError(t, err)
			}
		}
	})
	folder := t.TempDir()
	for range 3 {
		_, err := backup.Make(t.Context(), db, folder, none)
		require.NoError(t, err)
	}
	stop()
	writer.Wait()
	dir := filepath.Join(t.TempDir(), "restored")
	_, err := backup.Restore(t.Context(), folder, backup.Folder(dir, silent), none)
	require.NoError(t, err)
	var found []store.Finding
	require.NoError(t, open(t, dir, store.Read).Check(t.Context(), false, func(f store.Finding) { found = append(found, f) }, func(string) {}))
	assert.Empty(t, found)
}

// A backup that is cut off or altered is refused before anything is made.
func TestADamagedBackupIsRefused(t *testing.T) {
	t.Parallel()
	db := node(t, 30)
	path := filepath.Join(t.TempDir(), "one.backup")
	_, err := backup.Make(t.Context(), db, path, none)
	require.NoError(t, err)
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "restored")
	refused := func(path, why string) {
		t.Helper()
		_, err := backup.Restore(t.Context(), path, backup.Folder(dir, silent), none)
		require.ErrorIs(t, err, backup.ErrDamaged, why)
		assert.ErrorContains(t, err, "use another backup")
		assert.NoDirExists(t, dir)
	}
	for n := range 12 {
		bad := filepath.Join(t.TempDir(), "bad.backup")
		require.NoError(t, os.WriteFile(bad, whole[:len(whole)*n/12], 0o600))
		refused(bad, fmt.Sprint("cut to ", n, " twelfths"))
		altered := bytes.Clone(whole)
		at := bytes.Index(altered, []byte{0x28, 0xB5, 0x2F, 0xFD}) + 20 // in a chunk, not in the padding
		if n > 6 {
			at = bytes.LastIndex(altered, []byte(`"rows": `)) + 8 + n%2
		}
		altered[at] ^= 1
		require.NoError(t, os.WriteFile(bad, altered, 0o600))
		refused(bad, fmt.Sprint("altered at ", at))
	}
	folder := t.TempDir()
	made, err := backup.Make(t.Context(), db, folder, none)
	require.NoError(t, err)
	chunks, err := filepath.Glob(filepath.Join(folder, "chunks", "*", "*"))
	require.NoError(t, err)
	for _, chunk := range chunks {
		content, err := os.ReadFile(chunk)
		require.NoError(t, err)
		require.NoError(t, os.Remove(chunk))
		refused(folder, "a chunk is missing")
		require.NoError(t, os.WriteFile(chunk, append(content[:len(content)-1:len(content)-1], content[len(content)-1]^1), 0o600))
		refused(folder, "a chunk is altered")
	}
	again, err := backup.Make(t.Context(), db, folder, none)
	require.NoError(t, err)
	assert.Equal(t, made.Bytes, again.Written, "damaged files are written again")
	_, err = backup.Restore(t.Context(), folder, backup.Folder(dir, silent), none)
	require.NoError(t, err)
}

// Nothing is restored over data, and no backup over another file.
func TestNothingIsOverwritten(t *testing.T) {
	t.Parallel()
	db := node(t, 3)
	path := filepath.Join(t.TempDir(), "one.backup")
	_, err := backup.Make(t.Context(), db, path, none)
	require.NoError(t, err)
	_, err = backup.Make(t.Context(), db, path, none)
	assert.ErrorContains(t, err, "is there already: name another file")
	_, err = backup.Make(t.Context(), db, filepath.Dir(db.Dir()), none)
	assert.ErrorContains(t, err, "holds other things than backups")
	_, err = backup.Restore(t.Context(), path, backup.Folder(db.Dir(), silent), none)
	assert.ErrorContains(t, err, "is not empty: restore or move into a new folder")
	_, err = backup.Restore(t.Context(), t.TempDir(), backup.Folder(filepath.Join(t.TempDir(), "x"), silent), none)
	assert.ErrorContains(t, err, "no complete backup")
}

// A backup or a restore that ends early leaves nothing that looks complete.
func TestWhatEndsEarlyIsNotComplete(t *testing.T) {
	t.Parallel()
	db := node(t, 1500)
	folder, path := t.TempDir(), filepath.Join(t.TempDir(), "one.backup")
	stopping := func(after int) (context.Context, func(backup.Progress)) {
		ctx, cancel := context.WithCancel(t.Context())
		return ctx, func(backup.Progress) {
			if after--; after == 0 {
				cancel()
			}
		}
	}
	for after := 1; ; after += 2 {
		ctx, progress := stopping(after)
		_, err := backup.Make(ctx, db, folder, progress)
		if err == nil {
			require.Greater(t, after, 2)
			break
		}
		require.ErrorIs(t, err, context.Canceled)
		_, err = backup.Restore(t.Context(), folder, backup.Folder(filepath.Join(t.TempDir(), "x"), silent), none)
		require.ErrorContains(t, err, "no complete backup")
		ctx, progress = stopping(after)
		_, err = backup.Make(ctx, db, path, progress)
		require.ErrorIs(t, err, context.Canceled)
		left, err := os.ReadDir(filepath.Dir(path))
		require.NoError(t, err)
		require.Empty(t, left)
	}
	restoring := 0
	for after := 1; ; after += 2 {
		dir := filepath.Join(t.TempDir(), "restored")
		ctx, progress := stopping(after)
		_, err := backup.Restore(ctx, folder, backup.Folder(dir, silent), progress)
		if err == nil {
			break
		}
		require.ErrorIs(t, err, context.Canceled)
		_, err = store.Open(ctx, store.Options{Dir: dir, Access: store.Write, Logger: silent, Badger: badger.Small})
		if errors.Is(err, store.ErrNoFolder) {
			continue // the backup was still being checked
		}
		restoring++
		require.ErrorContains(t, err, "was interrupted, or is under way: if none is, remove the folder")
		_, err = backup.Restore(t.Context(), folder, backup.Folder(dir, silent), none)
		require.ErrorContains(t, err, "was interrupted, or is under way: if none is, remove the folder")
	}
	require.Greater(t, restoring, 1)
	require.True(t, strings.HasPrefix(path, "/"))
}
