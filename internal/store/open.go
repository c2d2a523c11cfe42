package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"

	"github.com/tmshare/tmshare/internal/durable"
	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/kv/badger"
	"github.com/tmshare/tmshare/internal/store/collections"
	"github.com/tmshare/tmshare/internal/store/datafolder"
	"github.com/tmshare/tmshare/internal/store/files"
	"github.com/tmshare/tmshare/internal/store/leases"
	"github.com/tmshare/tmshare/internal/store/moving"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/store/sources"
	"github.com/tmshare/tmshare/internal/store/txn"
)

var (
	// ErrNoFolder is the error for a missing data folder.
	ErrNoFolder = datafolder.ErrNoFolder
	// ErrDamaged is the error for files of a data folder that are missing, short, or of another node. Nothing was
	// changed.
	ErrDamaged = kv.ErrDamaged
	// ErrUnavailable is the error for a database that does not answer.
	ErrUnavailable = kv.ErrUnavailable
	// ErrOtherDatabase is [kv.ErrOtherDatabase].
	ErrOtherDatabase = kv.ErrOtherDatabase
	// ErrReadOnly is the error for changes to a database that was opened for reading.
	ErrReadOnly = kv.ErrReadOnly
	// ErrMoved is the error for a store that was moved elsewhere.
	ErrMoved = moving.ErrMoved
	// ErrElsewhere is the error for a data folder that was moved, removed or replaced while it is open.
	ErrElsewhere = durable.ErrElsewhere
	// ErrLocked is the error for a data folder that another process has open.
	ErrLocked = badger.ErrLocked
	// ErrBeingRead is the error for a data folder that others have open for reading.
	ErrBeingRead = badger.ErrBeingRead
)

// Access is the purpose for which a database is opened.
type Access = datafolder.Access

// The kinds of access. After Restore, the database is not usable before [DB.Complete].
const (
	Create  = datafolder.Create
	Write   = datafolder.Write
	Read    = datafolder.Read
	Restore = datafolder.Restore
)

// Options configure a database. Only Dir is required.
type Options struct {
	Dir string

	// Engine, if not nil, has the rows. It is not closed with the database. Several stores can be open on it, also in
	// several processes if it is shared: each sees the commits and the snapshots, which are rows, of the others at
	// once. Dir is then this store's own, for sorting. No folder is locked or checked, and no rows that others may be
	// writing are removed: see [DB.Sweep]. Access is Create, Write or Read.
	Engine kv.Engine

	// Silence is the time after which a process that shares the engine counts as dead, so that others take its jobs
	// ([leases.Leases]). 0: no other process opens the store.
	Silence time.Duration

	// Closed is called once the database is closed: where Engine is given, for its owner.
	Closed func() error

	Access    Access
	Node      uuid.UUID // the node of a store made by Restore; default: a new one
	EvenMoved bool      // opens a store also where it is marked as moved ([DB.Leave])

	Logger *slog.Logger     // default: slog.Default()
	Now    func() time.Time // default: time.Now
	Damage func(error)      // called with damage of rows, see [DB.Damage]; default: it is logged

	// MaxPublication is the maximum memory of the records that a publication changes before its commit, in bytes;
	// default: no limit. Beyond it, the error is ErrTooLarge. Log and fragments do not count.
	MaxPublication int64

	// Batch is the number of entries that one commit prunes, and of records that it republishes; default: 1000.
	Batch int

	// Indexes are the indexes of the records of all sources, sorted by name. Opening for writing makes those again that
	// are missing or have other rules. A change by a program without an index of the store makes that index invalid.
	Indexes []txn.Index
	// Settings are those of collections that extensions have.
	Settings []Setting
	// Protocols are the protocols of the program besides TMShare's own; nil: any.
	Protocols []string
	// Dependents return the targets that extensions keep in step.
	Dependents []func(context.Context, *DB) ([]Dependent, error)

	// Badger is how the engine in Dir is set. Only tests set it, as [badger.Small].
	Badger badger.Settings
}

// Open opens the database in o.Dir, and completes work that a crash interrupted, unless ctx ends first.
//
// The error is [ErrNoFolder] if there is no data folder to open, [ErrDamaged] if files are missing, short or of another
// node, and [ErrLocked] if another process has it open. In these cases it changes nothing.
func Open(ctx context.Context, o Options) (*DB, error) {
	o.Logger = cmp.Or(o.Logger, slog.Default())
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Damage == nil {
		o.Damage = func(err error) { o.Logger.Error("damage was found", "error", err) }
	}
	if o.Dir == "" {
		return nil, errors.New("no data folder is named: use --data FOLDER")
	}
	if o.Engine != nil {
		return openOver(ctx, o)
	}
	if o.Access == Read && badger.CanShare {
		return openToRead(ctx, o)
	}
	return openToWrite(ctx, o)
}

// openOver opens a database over an engine that others may use.
func openOver(ctx context.Context, o Options) (db *DB, err error) {
	db = newDB(o, o.Engine, files.Rows{Engine: o.Engine, Now: o.Now})
	db.shared, db.readOnly, db.closed = true, o.Access == Read, o.Closed
	if o.Access == Restore {
		db.node = cmp.Or(o.Node, uuid.New())
		db.filledBy, err = moving.Begin(ctx, db.rows)
		return db, err
	}
	format := func(t *txn.Tx) error {
		version, err := records.Format(t)
		if err != nil {
			return err
		}
		if db.node, err = records.Node(t); version != "" {
			return err
		}
		return errors.Join(err, records.PutFormat(t))
	}
	db.rows.Guard = func(t *txn.Tx) error { return moving.Check(t, o.EvenMoved) } // others may move it while it is open
	begin := db.rows.Update
	if db.readOnly {
		begin = db.rows.View
	}
	if err := begin(ctx, format); err != nil {
		return nil, fmt.Errorf("store: open: %w", err)
	}
	if !db.readOnly {
		if err := db.makeIndexes(ctx); err != nil {
			return nil, err
		}
	}
	db.rows.Go(db.KeepChecksums)
	return db, nil
}

func openToRead(ctx context.Context, o Options) (*DB, error) {
	for recovered := false; ; recovered = true {
		db, err := tryToRead(ctx, o)
		if !errors.Is(err, errNotClosed) || recovered {
			return db, err
		}
		write := o
		write.Access = Write
		if db, err = openToWrite(ctx, write); err != nil || db.full != nil {
			return db, err
		}
		if err := db.Close(); err != nil {
			return nil, err
		}
	}
}

var errNotClosed = errors.New(
	"the database was not closed, or not completely made; another process may be doing it: try again")

// tryToRead opens a database that was closed, or returns errNotClosed.
func tryToRead(ctx context.Context, o Options) (db *DB, err error) {
	f, err := lockFolder(ctx, o, true)
	if err != nil {
		return nil, err
	}
	if !f.CanBeRead() {
		f.Unlock()
		return nil, errNotClosed
	}
	engine, err := f.Open(true)
	if errors.Is(err, badger.ErrRecover) {
		return nil, errNotClosed
	}
	if err != nil {
		return nil, err
	}
	return toRead(ctx, dbOf(f, o, engine, true))
}

// toRead returns a database that was opened for reading only, if its rows are read as they are. Else it is
// errNotClosed, and is closed.
func toRead(ctx context.Context, db *DB) (*DB, error) {
	version := ""
	err := db.rows.View(ctx, func(t *txn.Tx) (err error) { version, err = checkFolder(db.folder, t); return err })
	if err == nil && version == "" { // not written yet
		err = errNotClosed
	}
	if err != nil {
		return nil, errors.Join(err, db.rows.Engine.Close())
	}
	db.rows.Go(db.KeepChecksums)
	return db, nil
}

func openToWrite(ctx context.Context, o Options) (*DB, error) {
	f, err := lockFolder(ctx, o, false)
	if err != nil {
		return nil, err
	}
	if full := datafolder.CheckFreeSpace(o.Dir); full != nil {
		return openFull(ctx, f, o, full)
	}
	if err = f.Prepare(); err != nil {
		f.Unlock()
		return nil, err
	}
	engine, err := f.Open(false)
	if err != nil {
		return nil, err
	}
	db := dbOf(f, o, engine, false)
	if o.Access == Restore {
		return db, nil
	}
	if err := db.Complete(ctx); err != nil {
		if errors.Is(err, ErrDamaged) { // which file it is
			err = cmp.Or(db.CompareChecksums(ctx), err)
		}
		return nil, errors.Join(fmt.Errorf("open %s: %w", o.Dir, err), db.rows.Engine.Close())
	}
	return db, nil
}

func lockFolder(ctx context.Context, o Options, shared bool) (*datafolder.Folder, error) {
	return datafolder.Lock(datafolder.Options{
		Dir: o.Dir, Access: o.Access, Node: o.Node, Shared: shared, Now: o.Now, Logger: o.Logger, Settings: o.Badger,
		Accept: func(f *datafolder.Folder, r kv.Reader) error {
			t := txn.Over(ctx, r)
			if _, err := checkFolder(f, t); err != nil {
				return err
			}
			return moving.Check(t, o.EvenMoved)
		},
	})
}

// openFull opens a folder on a nearly full disk, as the error full states, for reading only.
func openFull(ctx context.Context, f *datafolder.Folder, o Options, full error) (*DB, error) {
	full = fmt.Errorf("%w. Only reading goes on until this process is started again", full)
	engine, err := f.OpenFull(full)
	if err != nil {
		return nil, err
	}
	db := dbOf(f, o, engine, true)
	db.full = full
	if db, err = toRead(ctx, db); errors.Is(err, errNotClosed) { // it must be completed
		return nil, full
	}
	return db, err
}

// dbOf returns a database over the engine of a folder.
func dbOf(f *datafolder.Folder, o Options, engine kv.Engine, readOnly bool) *DB {
	db := newDB(o, engine, files.Folder(f.Inside()))
	db.folder, db.readOnly, db.node = f, readOnly, f.Node()
	db.here = f.CheckPlace
	db.rows.Go(db.KeepPlace)
	return db
}

func newDB(o Options, engine kv.Engine, files files.Store) *DB {
	db := &DB{dir: o.Dir, settings: append(collections.Core(), o.Settings...), protocols: o.Protocols,
		dependents: o.Dependents, files: files, log: o.Logger, now: o.Now, maxPublication: o.MaxPublication,
		batch: cmp.Or(o.Batch, 1000)}
	now := func() time.Time { return db.now() }
	db.condition = &condition{found: o.Damage, log: o.Logger, now: now, compared: make(chan struct{}),
		Again: make(chan struct{})}
	db.verifier, _ = engine.(kv.Verifier)
	db.rows = txn.New(engine, db.MayWrite)
	db.rows.Stumbled, db.rows.Indexes = db.CompareSoon, o.Indexes
	db.rows.Shared, db.rows.Now = o.Engine != nil, now
	db.run.Store(rand.Uint32())
	db.Leases = leases.New(db.rows, o.Silence, o.Logger)
	db.openings = &openings{db.rows, db.Leases, o.Silence, func() { db.run.Store(rand.Uint32()) }, o.Logger}
	db.Store = sources.New(db.rows, now, db.loader, serving{db})
	return db
}

// checkFolder looks whether the database is of the node that the folder is of, and of a format
// that this program reads. It returns the format, "" where the database is new.
func checkFolder(f *datafolder.Folder, t *txn.Tx) (version string, err error) {
	node, err := t.Get(records.NodeKey)
	if err != nil {
		return "", err
	}
	if err := f.CheckNode(node); err != nil {
		return "", err
	}
	return records.Format(t)
}

// checkFormat is checkFolder, also where the rows are in no folder.
func (db *DB) checkFormat(t *txn.Tx) (version string, err error) {
	if db.shared {
		return records.Format(t)
	}
	return checkFolder(db.folder, t)
}

// Complete completes work that a crash interrupted, writes the node into the database, and marks the store as complete.
// [Open] calls it, except when a restore or a move makes the store: then the rows must be written first, which may be
// those of another node.
func (db *DB) Complete(ctx context.Context) error {
	if err := db.recover(ctx); err != nil {
		return err
	}
	err := db.rows.Update(ctx, func(t *txn.Tx) error {
		err := errors.Join(t.Put(records.NodeKey, db.node[:]), records.PutFormat(t))
		if db.shared {
			err = errors.Join(err, moving.End(t, db.filledBy))
		}
		return err
	})
	if err != nil {
		return err
	}
	if !db.shared {
		if err := db.folder.Complete(); err != nil {
			return err
		}
	}
	db.rows.Go(db.KeepChecksums)
	return nil
}

// recover makes indexes again that are missing or have other rules, and removes rows without a collection or
// subscription.
func (db *DB) recover(ctx context.Context) error {
	err := db.rows.View(ctx, func(t *txn.Tx) error { _, err := db.checkFormat(t); return err })
	if err != nil {
		return datafolder.WithRemedy(err)
	}
	if err := db.makeIndexes(ctx); err != nil {
		return err
	}
	return db.sweep(ctx)
}

// Discard makes [DB.Close] remove the data folder if this process created it and nothing was stored in it.
func (db *DB) Discard(ctx context.Context) error {
	if db.folder == nil || !db.folder.Made() {
		return nil
	}
	err := db.rows.View(ctx, moving.IsEmpty)
	if err == nil {
		db.folder.Discard()
	} else if errors.Is(err, moving.ErrNotEmpty) {
		return nil
	}
	return err
}

// Close closes the database, but not a given engine, after running views and updates have ended. New ones are refused.
func (db *DB) Close() error {
	switch {
	case !db.rows.Close():
		return nil
	case !db.shared:
		return db.rows.Engine.Close()
	case db.closed != nil:
		return db.closed()
	}
	return nil
}
