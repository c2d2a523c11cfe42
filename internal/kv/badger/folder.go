package badger

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	badgerdb "github.com/dgraph-io/badger/v4"
	"github.com/google/uuid"

	"github.com/tmshare/tmshare/internal/durable"
	"github.com/tmshare/tmshare/internal/kv"
)

var (
	// ErrLocked is the error if another process has the database open.
	ErrLocked = errors.New("the data folder is in use by another process")
	// ErrBeingRead is the error if all processes that have it open only read.
	ErrBeingRead = errors.New("commands are reading it; wait for them to end")
	// ErrRecover is the error if a database cannot be opened for reading only, because it must be recovered after a
	// crash. Opening it for writing does so.
	ErrRecover = errors.New("the database was not closed; another process may be recovering it: try again")
)

// damaged returns an error that is [kv.ErrDamaged] about a file.
func damaged(path, format string, args ...any) error {
	return fmt.Errorf("%w: %s %s", kv.ErrDamaged, path, fmt.Sprintf(format, args...))
}

// Folder is the folder of a database, which this process has locked.
type Folder struct {
	path      string         // that of place, inside
	place     *durable.Place // locked, except where Badger locks
	condition condition
	session   uint64 // at random: all writes of this process have it; 0 until one is recorded

	writing   sync.Mutex  // of the record; it guards the fields below
	record    *record     // nil: none, or not read
	collected string      // the name of the first value log that garbage was not collected in
	read      os.FileInfo // of MANIFEST, before it was read last
	manifest  manifestRecord
	sessions  []uint64        // in the record besides that of this process
	Unlocked  func()          // if not nil, is called by Unlock
	tight     map[string]bool // names of tables that are for their owner alone
}

// CanShare states whether several processes can read a database at the same time: with the lock of this project.
// Elsewhere Badger's own lock excludes other processes, and a database is always opened for writing.
const CanShare = durable.CanLock

// flock locks the folder of a database until the file is closed, as Badger does itself.
func flock(path string, shared bool) (*durable.Place, error) {
	p, err := durable.OpenPlace(path)
	if err != nil {
		return nil, err
	}
	held, err := durable.Lock(p.File(), shared)
	switch {
	case err != nil:
	case held:
		err = fmt.Errorf(
			"%w: %s (is another tmshare command running on it? Wait for it, stop it, or name another folder with --data)",
			ErrLocked, filepath.Dir(path))
		if !shared {
			if written, failed := durable.Lock(p.File(), true); !written && failed == nil {
				err = fmt.Errorf("%w: %s: %w", ErrLocked, filepath.Dir(path), ErrBeingRead)
			}
		}
	case p.CheckPlace() != nil: // it was removed meanwhile, see Options.Closed
		err = fmt.Errorf("%w: %s has just been removed: try again", ErrLocked, filepath.Dir(path))
	}
	if err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// Lock locks the folder of a database, exclusively or shared with other readers. The error is [ErrLocked] if another
// process has it, and also [ErrBeingRead] if all others only read. It retries for a moment, because the lock of a
// killed process may be released only after its supervisor has started the next one.
func Lock(path string, shared bool) (_ *Folder, err error) {
	f := &Folder{tight: map[string]bool{}}
	for range 20 {
		if f.place, err = flock(path, shared); !errors.Is(err, ErrLocked) || errors.Is(err, ErrBeingRead) {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = damaged(path, "is missing")
	}
	if err != nil {
		return nil, err
	}
	f.path = f.place.Inside()
	return f, nil
}

// Unlock lets other processes have the folder. An engine does so when it is closed.
func (f *Folder) Unlock() {
	f.place.Close()
	if f.Unlocked != nil {
		f.Unlocked()
	}
}

// CheckPlace returns a [durable.ErrElsewhere] if the path of the folder leads to another folder now.
func (f *Folder) CheckPlace() error { return f.place.CheckPlace() }

// Path returns the path by which the folder was locked.
func (f *Folder) Path() string { return f.place.Name() }

// Inspect checks that the database is whole, and belongs to a node. If not, the error is [kv.ErrDamaged]. It changes
// nothing. Without Inspect, a folder is opened as a new one, or one whose creation was interrupted.
func (f *Folder) Inspect(node uuid.UUID) error {
	r, err := readRecord(f.path)
	if err != nil {
		return f.place.Named(err)
	}
	if r.Node != node {
		return damaged(filepath.Join(f.Path(), recordFile), "is of another node (%s) than the data folder (%s)", r.Node, node)
	}
	f.record, f.sessions = r, r.Sessions
	return f.place.Named(f.inspect())
}

func (f *Folder) inspect() error {
	f.writing.Lock()
	defer f.writing.Unlock()
	seen, _ := os.Stat(filepath.Join(f.path, manifestFile)) // an error is that of reading, too
	m, err := readManifest(f.path)
	if err != nil {
		return err
	}
	c, err := preflight(f.path, f.record, m)
	if err != nil {
		return err
	}
	f.condition, f.read, f.manifest = *c, seen, m.record()
	return nil
}

// HasRecord reports whether Inspect has found a record.
func (f *Folder) HasRecord() bool { return f.record != nil }

// MustRecover reports whether Inspect has found that the database must be recovered. Until it is, it cannot be opened
// for reading only.
func (f *Folder) MustRecover() bool { return f.condition.recover }

// IsFile reports whether a file of some name has, or names, rows of a database, or is the record
// of one.
func IsFile(name string) bool {
	switch filepath.Ext(name) {
	case tableExt, memtableExt, valueLogExt:
		return true
	}
	return name == manifestFile || name == recordFile
}

// Open opens the database, and takes back a commit that was interrupted. The engine unlocks the
// folder when it is closed; after an error the folder is locked still.
func (f *Folder) Open(o Options) (e *Engine, err error) {
	defer func() { err = f.place.Named(err) }()
	if !o.ReadOnly {
		if err := f.prepare(o.Node); err != nil {
			return nil, err
		}
	}
	if e, err = f.open(o); err != nil {
		return nil, err
	}
	if err := e.begin(o); err != nil {
		e.stop()
		return nil, errors.Join(err, e.badger.Close())
	}
	return e, nil
}

// prepare makes the folder ready for Badger to open the database for writing.
func (f *Folder) prepare(node uuid.UUID) error {
	if err := f.removeLoaded(); err != nil {
		return err
	}
	for _, path := range f.condition.emptied { // Badger would fail on them
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	if f.session = rand.Uint64(); f.record == nil {
		return nil
	}
	return f.recordMoving(node)
}

// open has Badger open the database.
func (f *Folder) open(o Options) (e *Engine, err error) {
	e = newEngine(f, o)
	if err := e.openBadger(); err != nil {
		return nil, err
	}
	if err := e.beginClock(); err != nil {
		return nil, errors.Join(err, e.badger.Close())
	}
	return e, nil
}

func (e *Engine) openBadger() (err error) {
	defer panicked(&err)
	f := e.folder
	if !e.readOnly {
		if err := f.remake(e.log); err != nil {
			return err
		}
	}
	db, err := badgerdb.OpenManaged(
		e.options.badgerOptions(f.path).WithLogger(badgerLog{e.log, f.place}).WithBypassLockGuard(CanShare).WithReadOnly(
			e.readOnly))
	if err == nil {
		e.badger, e.batchSize, e.batchCount = db, db.MaxBatchSize(), db.MaxBatchCount()
	}
	return err
}

func (e *Engine) accept(o Options) error {
	if o.Accept == nil {
		return nil
	}
	r := e.reader(e.stopped)
	defer r.Close()
	return o.Accept(r)
}

// begin has the rows accepted, and brings them to the state after the last commit.
func (e *Engine) begin(o Options) error {
	if err := e.accept(o); err != nil {
		return err
	}
	if e.readOnly {
		return nil
	}
	if e.torn != 0 {
		e.log.Info("taking back a commit that was interrupted")
		if err := e.takeBack(); err != nil {
			return err
		}
	}
	e.background.Go(e.collectGarbage)
	return nil
}

// KeepRecord begins to keep the record of a new database, which is compared with it from now on. The record of an
// inspected database is kept unchanged until KeepRecord is called.
func (e *Engine) KeepRecord(node uuid.UUID) error {
	if err := e.folder.recordOpen(node); err != nil {
		return e.folder.place.Named(err)
	}
	e.node = node
	e.background.Go(e.followManifest)
	return nil
}
