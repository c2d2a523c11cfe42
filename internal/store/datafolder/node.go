package datafolder

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/google/uuid"

	"github.com/tmshare/tmshare/internal/kv/badger"
)

// Node returns the node that the folder belongs to.
func (f *Folder) Node() uuid.UUID { return f.identity.Node }

// Made reports whether this process has made the folder.
func (f *Folder) Made() bool { return f.made }

// CanBeRead reports whether the folder is complete, and no recovery is needed.
func (f *Folder) CanBeRead() bool {
	return f.identity.Complete && f.database.HasRecord() && !f.database.MustRecover()
}

// Unlock gives the folder up, unless [Folder.Open] has been called.
func (f *Folder) Unlock() { f.database.Unlock() }

// Open opens the database in the folder, which is unlocked when the engine is closed. After an error it is unlocked.
// The error is [badger.ErrRecover] where the database is opened for reading, and has a commit that was interrupted.
func (f *Folder) Open(readOnly bool) (engine *badger.Engine, err error) {
	return f.open(f.engineOptions(readOnly))
}

// OpenFull is Open for reading only, if the disk is nearly full, as err states. It does not recover from a crash, but
// reads the data in place. It returns err if more than reading is needed.
func (f *Folder) OpenFull(err error) (engine *badger.Engine, failed error) {
	if !f.identity.Complete || !f.database.HasRecord() || !badger.CanShare {
		f.Unlock()
		return nil, err
	}
	if failed := f.database.CutLogs(); failed != nil {
		f.Unlock()
		return nil, errors.Join(err, failed)
	}
	o := f.engineOptions(true)
	o.Refusal = err
	engine, failed = f.open(o)
	if errors.Is(failed, badger.ErrRecover) { // a large commit must be completed
		return nil, err
	}
	return engine, failed
}

func (f *Folder) open(o badger.Options) (engine *badger.Engine, err error) {
	if f.engine, err = f.database.Open(o); err != nil {
		f.Unlock()
		return nil, fmt.Errorf("open %s: %w", f.options.Dir, WithRemedy(err))
	}
	return f.engine, nil
}

// CheckNode checks that the node in the database, nil if there is none, is that of the folder.
func (f *Folder) CheckNode(node []byte) error {
	database := filepath.Join(f.options.Dir, Database)
	switch found, _ := uuid.FromBytes(node); {
	case f.identity.Origin == Restored && !f.identity.Complete: // it may have that of the backup
	case node == nil && f.identity.Complete:
		return missing(database, "has the database of no node")
	case node != nil && found != f.identity.Node:
		return missing(database, "has the database of another node (%s) than %s (%s)", found, identityFile, f.identity.Node)
	}
	return nil
}

// Complete marks the folder as complete. The database must be open, and have the node.
func (f *Folder) Complete() error {
	if err := f.engine.KeepRecord(f.identity.Node); err != nil {
		return err
	}
	if f.identity.Complete {
		return nil
	}
	f.identity.Complete = true
	if err := writeIdentity(f.options.Dir, f.identity); err != nil {
		return err
	}
	f.complete.Store(true)
	return nil
}

// Discard has the folder removed when its engine is closed.
func (f *Folder) Discard() { f.discarded = true }
