package datafolder

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/tmshare/tmshare/internal/durable"
	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/kv/badger"
)

// The files and folders in a data folder, besides the identity.
const (
	Database  = "badger"
	Snapshots = "snapshots" // the store's, with a folder for each collection's epoch
	Scratch   = "loading"   // files of no use to another process: they go when the store is opened

	SnapshotEnding = ".gz" // of the names of files in Snapshots
)

// Access is the purpose for which a data folder is opened.
type Access int

const (
	// Create allows reading and writing. It creates a missing data folder.
	Create Access = iota
	// Write is reading and writing a data folder that is there.
	Write
	// Read is reading one that is there. Several processes can do it at the same time. What a
	// crash has left is recovered first, for which the folder is opened for writing.
	Read
	// Restore creates a data folder for a backup. The folder must not exist. It does not open otherwise, and only rows
	// may be written to it, until [Folder.Complete].
	Restore
)

// Options are the folder to lock, and the options of its database. All are required but Settings.
type Options struct {
	Dir    string
	Access Access
	Node   uuid.UUID // that a folder is of which is restored; default: a new one
	Shared bool      // other readers may have it open, too
	Now    func() time.Time
	Logger *slog.Logger

	// Accept returns an error if the rows of the database do not fit the folder, before any is changed.
	Accept func(*Folder, kv.Reader) error

	Settings badger.Settings
}

// Folder is a data folder whose database this process has locked.
type Folder struct {
	options   Options
	identity  *Identity
	complete  atomic.Bool // as in the identity, for concurrent readers while it is opened
	made      bool        // there was no data folder
	madeAll   bool        // nor an empty folder in its place
	discarded bool
	place     *durable.Place
	database  *badger.Folder
	engine    *badger.Engine // once it is open
}

// Unfinished is an error where a restore or a move into a data folder has begun and not ended.
func Unfinished(dir string) error {
	if id, err := ReadIdentity(dir); err != nil || id.Complete || id.Origin != Restored {
		return nil // Lock reports other errors
	}
	return fmt.Errorf(
		"the data folder at %s is not complete: a restore or a move into it was interrupted, or is under way: if none is, "+
			"remove the folder, and restore or move again", dir)
}

// Lock locks a data folder and checks that it is complete. It changes nothing, except that it creates missing folders
// if o allows it. The error is [ErrNoFolder] if a required folder is missing, [kv.ErrDamaged] if files are missing,
// short or of another node, and [badger.ErrLocked] if another process has it open.
func Lock(o Options) (f *Folder, err error) {
	found, err := findFolder(o.Dir)
	if err != nil {
		return nil, err
	}
	if id, err := ReadIdentity(o.Dir); err == nil && !id.Complete && id.Origin == Created {
		found = false // a process was killed in making it
	} else if err == nil && !id.Complete && id.Origin == Restored {
		return nil, Unfinished(o.Dir)
	}
	switch {
	case found && o.Access == Restore:
		return nil, fmt.Errorf("there is a data folder at %s already: restore into a new one", o.Dir)
	case !found && (o.Access == Write || o.Access == Read):
		return nil, noFolder(o.Dir,
			`name the right one with --data, or make one with "tmshare-client subscribe URL" or "tmshare-server serve"`)
	}
	f = &Folder{options: o, made: !found}
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
		if err := os.MkdirAll(filepath.Join(o.Dir, Database), 0o700); err != nil {
			return nil, err
		}
		if err := durable.SyncFolder(filepath.Dir(o.Dir)); err != nil {
			return nil, err
		}
	}
	if f.database, err = badger.Lock(filepath.Join(o.Dir, Database), o.Shared); err != nil {
		return nil, WithRemedy(err)
	}
	if f.place, err = durable.OpenPlace(o.Dir); err == nil {
		f.database.Unlocked = f.place.Close
		err = f.look()
		f.complete.Store(err == nil && f.identity.Complete)
	}
	if err != nil {
		f.database.Unlock()
		return nil, err
	}
	return f, nil
}

// CheckPlace returns a [durable.ErrElsewhere] where the path of the folder leads to another one now, or to one of
// another node.
func (f *Folder) CheckPlace() error {
	if err := f.database.CheckPlace(); err != nil || !f.complete.Load() {
		return err
	}
	if id, err := ReadIdentity(f.options.Dir); err != nil || id.Node != f.identity.Node {
		return fmt.Errorf("%s is not the data folder of the node %s any more: %w", f.options.Dir, f.identity.Node,
			durable.ErrElsewhere)
	}
	return nil
}

// Inside returns a path that leads to the folder, also when it was moved, where the system has such paths.
func (f *Folder) Inside() string { return f.place.Inside() }

// markRestored creates a data folder that does not open until it is restored. It appears with its identity: a kill
// leaves the former state or that.
func markRestored(o Options) error {
	above := filepath.Dir(filepath.Clean(o.Dir))
	if err := os.MkdirAll(above, 0o700); err != nil {
		return err
	}
	identity := newIdentity(Restored, o.Now())
	identity.Node = cmp.Or(o.Node, identity.Node)
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

// remove removes the files of a new data folder. Until it is done, the folder counts as one that was never complete.
func (f *Folder) remove() error {
	if err := f.CheckPlace(); err != nil {
		return err
	}
	identity := *f.identity
	identity.Complete = false
	if err := writeIdentity(f.options.Dir, &identity); err != nil {
		return err
	}
	for _, name := range []string{Scratch, Snapshots, Database, identityFile} {
		if err := os.RemoveAll(filepath.Join(f.options.Dir, name)); err != nil {
			return err
		}
	}
	if f.madeAll {
		_ = os.Remove(f.options.Dir) // it may contain other files
	}
	return nil
}

// look reads the content of a folder, and checks that it is complete.
func (f *Folder) look() (err error) {
	f.identity, err = ReadIdentity(f.options.Dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return f.lookWithoutIdentity()
	case err != nil:
		return err
	case f.identity.Complete:
		return WithRemedy(f.database.Inspect(f.identity.Node))
	}
	return nil // it was never complete, so it is empty
}

// lookWithoutIdentity looks at a folder that is new, or has lost its identity.
func (f *Folder) lookWithoutIdentity() (err error) {
	found, err := findFolder(f.options.Dir)
	switch {
	case err != nil:
		return err
	case !found && f.options.Access == Restore:
		f.identity = newIdentity(Restored, f.options.Now())
		f.identity.Node = cmp.Or(f.options.Node, f.identity.Node)
		return nil
	case !found:
		f.identity = newIdentity(Created, f.options.Now())
		return nil
	}
	return damaged(filepath.Join(f.options.Dir, identityFile), "is missing")
}

// engineOptions returns the options of the engine, which first checks the content of the database.
func (f *Folder) engineOptions(readOnly bool) badger.Options {
	return badger.Options{
		ReadOnly: readOnly, Logger: f.options.Logger, Settings: f.options.Settings, Node: f.identity.Node,
		Accept:     func(r kv.Reader) error { return f.options.Accept(f, r) },
		CheckSpace: func() error { return CheckFreeSpace(f.options.Dir) },
		Closed: func() error {
			if f.discarded {
				return f.remove()
			}
			return nil
		},
	}
}

// Prepare makes a folder ready for its database to be opened for writing.
func (f *Folder) Prepare() error {
	if err := os.MkdirAll(filepath.Join(f.options.Dir, Snapshots), 0o700); err != nil {
		return err
	}
	tighten(f.options.Dir)
	if !f.database.HasRecord() {
		return writeIdentity(f.options.Dir, f.identity)
	}
	return nil
}

// tighten removes read permissions of other users on a data folder, which copying may add.
func tighten(dir string) {
	for _, name := range []string{Database, Snapshots, Scratch, "downloads", "resourcesync"} {
		_ = filepath.WalkDir(filepath.Join(dir, name), func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return nil
			}
			info, err := d.Info()
			if err == nil && info.Mode().Perm()&0o077 != 0 && (d.IsDir() || d.Type().IsRegular()) {
				_ = os.Chmod(path, info.Mode().Perm()&^0o077)
			}
			if name == Database { // the engine looks at its files itself
				return fs.SkipDir
			}
			return nil
		})
	}
}
