package store

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/durable"
	"github.com/tmshare/tmshare/internal/kv/badger"
	"github.com/tmshare/tmshare/internal/store/datafolder"
	"github.com/tmshare/tmshare/internal/testenv"
)

// openCompact opens a database with small files, so that a folder is copied quickly. Values of some length are in value
// logs.
func openCompact(dir string, access Access) (*DB, error) {
	o := testOptions(dir)
	o.Access = access
	o.Badger = badger.Settings{MemTableSize: 256 << 10, ValueLogFileSize: 1 << 20, ValueThreshold: 1 << 10}
	return Open(context.Background(), o)
}

// tables returns a folder with some tables, value logs and a snapshot, closed or as a killed process leaves it, and the
// records of its collection.
func tables(t *testing.T, killed bool) (dir, records string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "data")
	for turn := range 3 {
		db, err := openCompact(dir, Create)
		require.NoError(t, err)
		t.Cleanup(func() { db.Close() })
		if turn == 0 {
			collection(t, db, "m", 20)
			takeSnapshot(t, db, "m", 1)
		}
		publish(t, db, "m", rename(0, 3, strings.Repeat(fmt.Sprint(turn), 2<<10)))
		records = recordsOf(t, db, "m")
		if turn == 2 && killed {
			image := filepath.Join(t.TempDir(), "data")
			require.NoError(t, os.CopyFS(image, os.DirFS(dir)))
			dir = image
		}
		require.NoError(t, db.Close())
	}
	return dir, records
}

// tablesIn returns the paths of the tables in a data folder, relative to that.
func tablesIn(t *testing.T, dir string) (paths []string) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "badger", "*.sst"))
	require.NoError(t, err)
	for _, path := range all {
		relative, err := filepath.Rel(dir, path)
		require.NoError(t, err)
		paths = append(paths, relative)
	}
	return paths
}

// state describes each file and folder below a folder: name, kind and permissions, size, time
// of the last change, content.
func state(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		require.NoError(t, err)
		info, err := d.Info()
		require.NoError(t, err)
		var content []byte
		if !d.IsDir() {
			content, err = os.ReadFile(path)
			require.NoError(t, err)
		}
		files[path] = fmt.Sprint(info.Mode(), info.Size(), info.ModTime(), sha256.Sum256(content))
		return nil
	}))
	return files
}

// writeIdentity gives a folder an identity.
func writeIdentity(dir string, id *datafolder.Identity) error {
	return durable.WriteJSON(filepath.Join(dir, "node.json"), id)
}

func rewrite(path string, f func([]byte) []byte) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, f(b), 0o600)
}

// first returns the change that leaves the first n bytes of a file, or with a negative n all but
// the last.
func first(n int) func([]byte) []byte {
	return func(b []byte) []byte {
		if n < 0 {
			n += len(b)
		}
		return b[:n]
	}
}

func flip(from int) func([]byte) []byte {
	return func(b []byte) []byte {
		if from < 0 {
			from += len(b)
		}
		b[from] ^= 0x10
		return b
	}
}

// A folder with a missing or truncated file, or one of another node, is refused, and no file is changed.
func TestDamagedFoldersAreRefusedAndNotTouched(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	other, _ := tables(t, false)
	db, err := openCompact(other, Write) // its MANIFEST is another one
	require.NoError(t, err)
	collection(t, db, "n", 1)
	require.NoError(t, db.Close())
	in := func(name string, f func([]byte) []byte) func(string) error {
		return func(dir string) error { return rewrite(filepath.Join(dir, name), f) }
	}
	without := func(name string) func(string) error {
		return func(dir string) error { return os.RemoveAll(filepath.Join(dir, name)) }
	}
	from := func(name string) func(string) error {
		return func(dir string) error {
			if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
				return err
			}
			if info, err := os.Stat(filepath.Join(other, name)); err != nil || info.IsDir() {
				return errors.Join(err, os.CopyFS(filepath.Join(dir, name), os.DirFS(filepath.Join(other, name))))
			}
			b, err := os.ReadFile(filepath.Join(other, name))
			return errors.Join(err, os.WriteFile(filepath.Join(dir, name), b, 0o600))
		}
	}
	type damage struct {
		file  string // that the message names
		spoil func(dir string) error
	}
	for _, killed := range []bool{false, true} {
		whole, _ := tables(t, killed)
		damages := map[string]damage{
			"no MANIFEST":                    {"badger/MANIFEST", without("badger/MANIFEST")},
			"an empty MANIFEST":              {"badger/MANIFEST", in("badger/MANIFEST", first(0))},
			"MANIFEST without a table":       {"badger/MANIFEST", in("badger/MANIFEST", first(16))},
			"MANIFEST cut in an entry":       {"badger/MANIFEST", in("badger/MANIFEST", first(30))},
			"MANIFEST without its last byte": {"badger/MANIFEST", in("badger/MANIFEST", first(-1))},
			"MANIFEST with another byte":     {"badger/MANIFEST", in("badger/MANIFEST", flip(30))},
			"MANIFEST of another node":       {"badger/", from("badger/MANIFEST")},
			"database of another node":       {"badger/database.json", from("badger")},
			"no database":                    {"badger", without("badger")},
			"no identity":                    {"node.json", without("node.json")},
			"identity of another node":       {"badger/database.json", from("node.json")},
			"identity that is cut":           {"node.json", in("node.json", first(20))},
			"identity of nobody":             {"node.json", in("node.json", func([]byte) []byte { return []byte("{}") })},
			"no record":                      {"badger/database.json", without("badger/database.json")},
			"record of another node":         {"badger/database.json", from("badger/database.json")},
			"record that is cut":             {"badger/database.json", in("badger/database.json", first(20))},
		}
		tables := tablesIn(t, whole)
		require.GreaterOrEqual(t, len(tables), 2)
		for id, name := range tables {
			damages["no table "+name] = damage{name, without(name)}
			damages["cut table "+name] = damage{name, in(name, first(-1))}
			if id > 0 {
				continue
			}
			for what, f := range map[string]func([]byte) []byte{
				"empty": first(0), "cut to half": func(b []byte) []byte { return b[:len(b)/2] }, "cut to 3 bytes": first(3),
				"with another index": flip(-40), "with another end": flip(-1),
				"with zeros at its end": func(b []byte) []byte { clear(b[len(b)/2:]); return b },
			} {
				damages["table "+name+" "+what] = damage{name, in(name, f)}
			}
		}
		logs, err := filepath.Glob(filepath.Join(whole, "badger", map[bool]string{false: "*.vlog", true: "*.mem"}[killed]))
		require.NoError(t, err)
		last := "badger/" + filepath.Base(logs[len(logs)-1])
		damages["no "+last] = damage{last, without(last)}
		damages[last+" without its last byte"] = damage{last, in(last, first(-1))}
		damages[last+" with another header"] = damage{last, in(last, flip(0))}
		for what, d := range damages {
			dir := filepath.Join(t.TempDir(), "data")
			require.NoError(t, os.CopyFS(dir, os.DirFS(whole)))
			require.NoError(t, d.spoil(dir))
			before := state(t, dir)
			for _, access := range []Access{Read, Create} {
				_, err := openCompact(dir, access)
				require.ErrorIs(t, err, ErrDamaged, what)
				require.ErrorContains(t, err, filepath.Join(dir, d.file), what)
				require.ErrorContains(t, err, "restore", what)
				require.Equal(t, before, state(t, dir), what)
			}
			require.NoError(t, os.RemoveAll(dir))
		}
	}
}

// The remains of a killed process are no damage: parts of an entry at the end of MANIFEST, tables that it does not name
// yet, empty logs.
func TestWhatACrashLeavesIsNoDamage(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	whole, records := tables(t, true)
	for what, leave := range map[string]func(folder string) error{
		"nothing": func(string) error { return nil },
		"the beginning of an entry of MANIFEST": func(folder string) error {
			return rewrite(filepath.Join(folder, "MANIFEST"), func(b []byte) []byte { return append(b, 0, 0, 0, 9, 1, 2) })
		},
		"a table that is not named": func(folder string) error {
			b, err := os.ReadFile(filepath.Join(folder, "000001.sst"))
			return errors.Join(err, os.WriteFile(filepath.Join(folder, "000077.sst"), b, 0o600))
		},
		"a table that is not finished": func(folder string) error {
			return os.WriteFile(filepath.Join(folder, "000077.sst"), nil, 0o600)
		},
		"a log that is not begun": func(folder string) error { return os.WriteFile(filepath.Join(folder, "00077.mem"), nil, 0o600) },
	} {
		for _, access := range []Access{Write, Read} {
			dir := filepath.Join(t.TempDir(), "data")
			require.NoError(t, os.CopyFS(dir, os.DirFS(whole)))
			require.NoError(t, leave(filepath.Join(dir, "badger")))
			db, err := openCompact(dir, access)
			require.NoError(t, err, what)
			require.Equal(t, records, recordsOf(t, db, "m"), what)
			require.NoError(t, db.Close())
			require.NoError(t, os.RemoveAll(dir))
		}
	}
}

// Rows with a wrong checksum are found in an open database, in any file.
func TestDamagedRowsAreFound(t *testing.T) {
	t.Parallel()
	whole, records := tables(t, false)
	db, err := openCompact(whole, Read)
	require.NoError(t, err)
	require.NoError(t, db.Damage(t.Context()))
	require.NoError(t, db.Close())
	for _, path := range tablesIn(t, whole) {
		info, err := os.Stat(filepath.Join(whole, path))
		require.NoError(t, err)
		for _, access := range []Access{Read, Write} {
			dir := filepath.Join(t.TempDir(), "data")
			require.NoError(t, os.CopyFS(dir, os.DirFS(whole)))
			require.NoError(t, rewrite(filepath.Join(dir, path), flip(int(info.Size())/3)))
			ended := make(chan error, 1)
			db, err := Open(t.Context(), Options{Dir: dir, Access: access, Damage: func(err error) { ended <- err }})
			if err != nil { // the database cannot be opened without this row
				require.ErrorIs(t, err, ErrDamaged)
				continue
			}
			require.ErrorIs(t, db.Damage(t.Context()), ErrDamaged)
			require.ErrorContains(t, <-ended, filepath.Join(dir, path)+" has rows that their checksum does not fit")
			require.NoError(t, db.Close())
		}
	}
	db, err = openCompact(whole, Write)
	require.NoError(t, err)
	require.Equal(t, records, recordsOf(t, db, "m"))
	require.NoError(t, db.Damage(t.Context()))
	require.NoError(t, db.Close())
}

// The last comparison counts: damage may come later, and a folder may be repaired.
func TestDamageIsWhatTheLastComparisonFound(t *testing.T) {
	t.Parallel()
	whole, _ := tables(t, false)
	db, err := Open(t.Context(), Options{Dir: whole, Access: Read, Logger: testOptions("").Logger})
	require.NoError(t, err)
	defer db.Close()
	compareAgain := func() error {
		for range 2 { // the second request is accepted after the first one is done
			db.Again <- struct{}{}
		}
		return db.Damage(t.Context())
	}
	require.NoError(t, db.Damage(t.Context()))
	all, err := filepath.Glob(filepath.Join(whole, "badger", "*.sst"))
	require.NoError(t, err)
	f, err := os.OpenFile(all[0], os.O_RDWR, 0) // in place: Badger has it mapped
	require.NoError(t, err)
	defer f.Close()
	was, wrong := make([]byte, 1), make([]byte, 1)
	_, err = f.ReadAt(was, 100)
	require.NoError(t, err)
	wrong[0] = was[0] ^ 1
	_, err = f.WriteAt(wrong, 100)
	require.NoError(t, err)
	require.ErrorIs(t, compareAgain(), ErrDamaged)
	_, err = f.WriteAt(was, 100)
	require.NoError(t, err)
	require.NoError(t, compareAgain())
}

// A data folder is only created on request, and not inside another one.
func TestNothingIsMadeWhereThereIsNoFolder(t *testing.T) {
	t.Parallel()
	data, _ := tables(t, false)
	for what, dir := range map[string]string{
		"nothing":                        filepath.Join(t.TempDir(), "a", "b"),
		"an empty folder":                t.TempDir(),
		"the database in a data folder":  filepath.Join(data, "badger"),
		"the snapshots in a data folder": filepath.Join(data, "snapshots"),
		"a file":                         filepath.Join(data, "node.json"),
		"below a file":                   filepath.Join(data, "node.json", "x"),
	} {
		above := filepath.Dir(dir)
		before := state(t, above)
		for _, access := range []Access{Read, Write} {
			_, err := openCompact(dir, access)
			require.ErrorIs(t, err, ErrNoFolder, what)
			require.ErrorContains(t, err, "no data folder at "+dir, what)
			require.Equal(t, before, state(t, above), what)
		}
	}
	before := state(t, data)
	_, err := openCompact(filepath.Join(data, "badger"), Create)
	require.ErrorIs(t, err, ErrNoFolder)
	require.ErrorContains(t, err, "name the folder above it, --data "+data)
	for _, inside := range []string{"snapshots", "badger/typo", "new"} {
		_, err := openCompact(filepath.Join(data, inside), Create)
		require.ErrorContains(t, err, "is inside of the data folder "+data)
	}
	require.Equal(t, before, state(t, data))
}

// A process killed while it creates a folder leaves an incomplete one.
func TestCreatingIsDoneAgainWhereItWasInterrupted(t *testing.T) {
	t.Parallel()
	whole := filepath.Join(t.TempDir(), "data")
	db, err := openCompact(whole, Create)
	require.NoError(t, err)
	require.NoError(t, db.Close())
	id, err := datafolder.ReadIdentity(whole)
	require.NoError(t, err)
	require.True(t, id.Complete)
	require.Equal(t, datafolder.Created, id.Origin)
	id.Complete = false
	for what, leave := range map[string]func(dir string) error{
		"an empty folder for the database": func(dir string) error { return os.MkdirAll(filepath.Join(dir, "badger"), 0o700) },
		"an identity":                      func(dir string) error { return errors.Join(os.MkdirAll(dir, 0o700), writeIdentity(dir, id)) },
		"a database without a MANIFEST": func(dir string) error {
			return errors.Join(os.CopyFS(dir, os.DirFS(whole)), os.Remove(filepath.Join(dir, datafolder.Database, "database.json")),
				os.Remove(filepath.Join(dir, "badger", "MANIFEST")), writeIdentity(dir, id))
		},
		"all": func(dir string) error { return errors.Join(os.CopyFS(dir, os.DirFS(whole)), writeIdentity(dir, id)) },
	} {
		dir := filepath.Join(t.TempDir(), "data")
		require.NoError(t, leave(dir))
		_, err := openCompact(dir, Read)
		require.ErrorIs(t, err, ErrNoFolder, what)
		db, err := openCompact(dir, Create)
		require.NoError(t, err, what)
		collection(t, db, "m", 1)
		require.NoError(t, db.Close())
		db, err = openCompact(dir, Write)
		require.NoError(t, err, what)
		require.Len(t, recordsOf(t, db, "m"), len(recordsOf(t, db, "m")))
		require.NoError(t, db.Close())
	}
}

// Several processes can read at the same time. Who wants to write waits for them.
func TestReadersShareAFolder(t *testing.T) {
	t.Parallel()
	dir, records := tables(t, false)
	before := state(t, dir)
	one, err := openCompact(dir, Read)
	require.NoError(t, err)
	two, err := openCompact(dir, Read)
	require.NoError(t, err)
	require.Equal(t, records, recordsOf(t, one, "m"))
	require.Equal(t, records, recordsOf(t, two, "m"))
	_, err = openCompact(dir, Write)
	require.ErrorIs(t, err, ErrLocked)
	require.ErrorIs(t, err, ErrBeingRead)
	require.ErrorContains(t, one.DeleteCollection(t.Context(), "m", ""), "reading only")
	require.NoError(t, errors.Join(one.Close(), two.Close(), two.Close()))
	require.Equal(t, before, state(t, dir), "readers change nothing")
	writing, err := openCompact(dir, Write)
	require.NoError(t, err)
	_, err = openCompact(dir, Read)
	require.ErrorIs(t, err, ErrLocked)
	require.NotErrorIs(t, err, ErrBeingRead)
	require.NoError(t, writing.Close())
}

// Only its owner can use a data folder, for any umask of the process.
func TestADataFolderIsPrivate(t *testing.T) {
	t.Parallel()
	dir, _ := tables(t, false)
	check := func() {
		for path := range state(t, dir) {
			info, err := os.Stat(path)
			require.NoError(t, err)
			require.Zero(t, info.Mode().Perm()&0o077, path)
		}
	}
	check()
	require.NoError(t, filepath.WalkDir(filepath.Join(dir, "badger"), func(path string, d fs.DirEntry, err error) error {
		return errors.Join(err, os.Chmod(path, 0o755))
	}))
	db, err := openCompact(dir, Write)
	require.NoError(t, err)
	check()
	require.NoError(t, db.Close())
	check()
}

// A restored folder can be used once it is complete, with a node of its own.
func TestARestoredFolderIsRefusedUntilItIsComplete(t *testing.T) {
	t.Parallel()
	from, records := tables(t, false)
	source, err := openCompact(from, Read)
	require.NoError(t, err)
	var backup []Row
	require.NoError(t, source.Dump(t.Context(), func(d *Dump) error {
		for r, err := range d.Rows() {
			require.NoError(t, err)
			backup = append(backup, cloned(r))
		}
		return nil
	}))
	require.NoError(t, source.Close())
	_, err = openCompact(from, Restore)
	require.ErrorContains(t, err, "already")

	for _, complete := range []bool{false, true} {
		dir := filepath.Join(t.TempDir(), "data")
		db, err := openCompact(dir, Restore)
		require.NoError(t, err)
		require.NoError(t, db.Load(t.Context(), func(yield func(Row, error) bool) {
			for _, r := range backup {
				if !yield(r, nil) {
					return
				}
			}
		}))
		if complete {
			require.NoError(t, db.Complete(t.Context()))
		}
		require.NoError(t, db.Close())
		for _, access := range []Access{Read, Write, Create} {
			db, err := openCompact(dir, access)
			if !complete {
				require.ErrorContains(t, err, "restore or move again")
				continue
			}
			require.NoError(t, err)
			require.Equal(t, records, recordsOf(t, db, "m"))
			require.NoError(t, db.Close())
		}
		was, err := datafolder.ReadIdentity(from)
		require.NoError(t, err)
		is, err := datafolder.ReadIdentity(dir)
		require.NoError(t, err)
		assert.NotEqual(t, was.Node, is.Node)
	}
}

// The identity is JSON that other programs can read.
func TestTheIdentityIsJSON(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, openDB(t, dir).Close())
	b, err := os.ReadFile(filepath.Join(dir, "node.json"))
	require.NoError(t, err)
	var is map[string]any
	require.NoError(t, json.Unmarshal(b, &is))
	require.Equal(t, []string{"complete", "created", "format", "node", "origin"}, slices.Sorted(maps.Keys(is)))
	require.NotEqual(t, uuid.Nil, uuid.MustParse(is["node"].(string)))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "node.json"), []byte(`{"format": 7}`), 0o600))
	_, err = Open(t.Context(), testOptions(dir))
	require.ErrorContains(t, err, "format 7, this program reads format 6")
}
