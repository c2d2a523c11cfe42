package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tmshare/tmshare/internal/durable"
	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/kv/badger"
)

// folder is a data folder whose database this process has locked.
type folder struct {
	Options
	identity *Identity
	adopting bool // the first release made it, and it has no identity yet
	made     bool // there was no data folder
	madeAll  bool // nor an empty folder in its place
	database *badger.Folder
	engine   *badger.Engine // once it is open
}

// databaseFolder is the folder of the database in a data folder.
const databaseFolder = "badger"

// lockFolder locks a data folder and looks whether it is whole. It changes nothing, but makes
// the folders where there is none and o asks for one.
func lockFolder(ctx context.Context, o Options, shared bool) (f *folder, err error) {
	found, err := findFolder(o.Dir)
	if err != nil {
		return nil, err
	}
	if id, err := ReadIdentity(o.Dir); err == nil && !id.Complete && id.Origin == Created {
		found = false // a process was killed in making it
	} else if err == nil && !id.Complete && id.Origin == Restored {
		return nil, fmt.Errorf("the data folder at %s was not restored completely: remove it, and restore it again", o.Dir)
	}
	switch {
	case found && o.Access == Restore:
		return nil, fmt.Errorf("there is a data folder at %s already: restore into a new one", o.Dir)
	case !found && (o.Access == Write || o.Access == Read):
		return nil, noFolder(o.Dir, `name the right one with --data, or make one with "tmshare-client subscribe URL" or "tmshare-server serve"`)
	}
	f = &folder{Options: o, made: !found}
	if !found {
		if err := notInside(o.Dir); err != nil {
			return nil, err
		}
		_, err := os.Stat(o.Dir)
		f.madeAll = errors.Is(err, fs.ErrNotExist)
		if o.Access == Restore {
			if err := markRestored(o); err != nil {
				return nil, err
			}
		}
		if err := os.MkdirAll(filepath.Join(o.Dir, databaseFolder), 0o700); err != nil {
			return nil, err
		}
		if err := durable.SyncFolder(filepath.Dir(o.Dir)); err != nil {
			return nil, err
		}
	}
	if f.database, err = badger.Lock(filepath.Join(o.Dir, databaseFolder), shared); err != nil {
		return nil, withRemedy(err)
	}
	if err := f.look(ctx); err != nil {
		f.database.Unlock()
		return nil, err
	}
	return f, nil
}

// markRestored makes a data folder that nothing opens until it is restored. It appears with its
// identity: whatever kills this process leaves what was there before, or that.
func markRestored(o Options) error {
	above := filepath.Dir(filepath.Clean(o.Dir))
	if err := os.MkdirAll(above, 0o700); err != nil {
		return err
	}
	identity := newIdentity(Restored, o.Now())
	if err := os.Remove(o.Dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return writeIdentity(o.Dir, identity) // it is empty, but cannot be replaced, as where a disk is mounted
	}
	made, err := os.MkdirTemp(above, filepath.Base(o.Dir)+".restoring-*")
	if err != nil {
		return err
	}
	if err = writeIdentity(made, identity); err == nil {
		err = os.Rename(made, o.Dir)
	}
	if err != nil {
		os.RemoveAll(made)
		return err
	}
	return nil
}

// Discard has [DB.Close] remove the data folder if this process has made it and nothing was stored in it.
func (db *DB) Discard(ctx context.Context) error {
	if db.folder == nil || !db.folder.made {
		return nil
	}
	return db.viewing(ctx, func(t *tx) error {
		for r, err := range t.glance(nil, nil) {
			if err != nil || r.Key[0] != tableMeta {
				return err
			}
		}
		db.discarded = true
		return nil
	})
}

// remove removes what a new data folder has. Until it is done the folder is one that was never
// made completely.
func (f *folder) remove() error {
	identity := *f.identity
	identity.Complete = false
	if err := writeIdentity(f.Dir, &identity); err != nil {
		return err
	}
	for _, name := range []string{scratchFolder, snapshotFolder, databaseFolder, identityFile} {
		if err := os.RemoveAll(filepath.Join(f.Dir, name)); err != nil {
			return err
		}
	}
	if f.madeAll {
		_ = os.Remove(f.Dir) // somebody may have put something there
	}
	return nil
}

// notInside is an error where a new data folder at dir would be inside of another one.
func notInside(dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	for above := filepath.Dir(dir); above != filepath.Dir(above); above = filepath.Dir(above) {
		if _, err := os.Stat(filepath.Join(above, identityFile)); err == nil {
			return fmt.Errorf("%s is inside of the data folder %s: give another folder with --data", dir, above)
		}
	}
	return nil
}

// look finds out what is in a folder, and whether it is whole.
func (f *folder) look(ctx context.Context) (err error) {
	f.identity, err = ReadIdentity(f.Dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return f.lookWithoutIdentity(ctx)
	case err != nil:
		return err
	case f.identity.Complete:
		return withRemedy(f.database.Inspect(f.identity.Node))
	case f.identity.Origin == Adopted: // which was interrupted
		return withRemedy(f.database.InspectUnrecorded())
	}
	return nil // it was not created completely, so nothing is in it
}

// lookWithoutIdentity looks at a folder that is new, or that the first release made.
func (f *folder) lookWithoutIdentity(ctx context.Context) (err error) {
	found, err := findFolder(f.Dir)
	switch {
	case err != nil:
		return err
	case !found && f.Access == Restore:
		f.identity = newIdentity(Restored, f.Now())
		return nil
	case !found:
		f.identity = newIdentity(Created, f.Now())
		return nil
	}
	if badger.HasRecordFile(filepath.Join(f.Dir, databaseFolder)) {
		return damaged(filepath.Join(f.Dir, identityFile), "is missing")
	}
	if err := f.database.InspectUnrecorded(); err != nil {
		return withRemedy(err)
	}
	f.identity, f.adopting = newIdentity(Adopted, f.Now()), true
	if f.database.MustRecover() || !badger.CanShare {
		return nil
	}
	return withRemedy(f.database.Look(f.engineOptions(ctx, true))) // the first release has written no node into the database
}

// engineOptions say how the engine is opened, which looks at what is in the database first.
func (f *folder) engineOptions(ctx context.Context, readOnly bool) badger.Options {
	return badger.Options{ReadOnly: readOnly, Logger: f.Logger, Settings: f.settings, Node: f.identity.Node, Accept: func(r kv.Reader) error {
		_, err := f.check(&tx{ctx: ctx, base: r})
		return err
	}}
}

// prepare makes a folder ready for its database to be opened for writing.
func (f *folder) prepare() error {
	if err := os.MkdirAll(filepath.Join(f.Dir, snapshotFolder), 0o700); err != nil {
		return err
	}
	tighten(f.Dir)
	if !f.database.HasRecord() {
		return writeIdentity(f.Dir, f.identity)
	}
	return nil
}

// tighten takes from others what a data folder of the first release let them read.
func tighten(dir string) {
	for _, name := range []string{databaseFolder, snapshotFolder, scratchFolder, "downloads", "resourcesync"} {
		_ = filepath.WalkDir(filepath.Join(dir, name), func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return nil
			}
			info, err := d.Info()
			if err == nil && info.Mode().Perm()&0o077 != 0 && (d.IsDir() || d.Type().IsRegular()) {
				_ = os.Chmod(path, info.Mode().Perm()&^0o077)
			}
			return nil
		})
	}
}
