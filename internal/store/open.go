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
	// ErrNoFolder says that there is no data folder where one must be.
	ErrNoFolder = datafolder.ErrNoFolder
	// ErrDamaged says that files of a data folder are missing, short, or of another node.
	// Nothing was changed.
	ErrDamaged = kv.ErrDamaged
	// ErrUnavailable says that the database of the store does not answer.
	ErrUnavailable = kv.ErrUnavailable
	// ErrOtherDatabase is [kv.ErrOtherDatabase].
	ErrOtherDatabase = kv.ErrOtherDatabase
	// ErrReadOnly says that a database was opened for reading, so nothing can be changed or made there.
	ErrReadOnly = kv.ErrReadOnly
	// ErrMoved says that the store was moved elsewhere.
	ErrMoved = moving.ErrMoved
	// ErrElsewhere says that the data folder was moved, removed or replaced while it is open.
	ErrElsewhere = durable.ErrElsewhere
	// ErrLocked says that another process has the data folder open.
	ErrLocked = badger.ErrLocked
	// ErrBeingRead says that all who have it open only read.
	ErrBeingRead = badger.ErrBeingRead
)

// Access is what a database is opened for.
type Access = datafolder.Access

// What a database is opened for. After Restore there is no use in it until [DB.Complete].
const (
	Create  = datafolder.Create
	Write   = datafolder.Write
	Read    = datafolder.Read
	Restore = datafolder.Restore
)

// Options configure a database. Only Dir is required.
type Options struct {
	Dir string

	// Engine keeps the rows, where one is given. It is not closed with the database. Several
	// stores can be opened over it, also by several processes if it can be shared by them: each
	// sees at once what the others have committed, and has their snapshots, which are rows too. Dir
	// is this store's own then, for what it sorts. No folder is locked or looked at, and nothing that
	// others may be writing is removed: see [DB.Sweep]. Access is Create, Write or Read.
	Engine kv.Engine

	// Silence is after how long a process that shares the engine is taken for dead, and others do its jobs
	// ([leases.Leases]). 0: no other process opens the store.
	Silence time.Duration

	// Closed is called once the database is closed: where Engine is given, for its owner.
	Closed func() error

	Access    Access
	Node      uuid.UUID // whose store is made, for Restore; default: a new one
	EvenMoved bool      // opens a store also where it is marked as moved ([DB.Leave])

	Logger *slog.Logger     // default: slog.Default()
	Now    func() time.Time // default: time.Now
	Damage func(error)      // is told of damaged rows, see [DB.Damage]; default: Logger is

	// MaxPublication bounds the memory of the records that a publication changes until it is
	// committed, in bytes; default: no limit. Beyond it there is an error that is ErrTooLarge.
	// Log and fragments take no memory.
	MaxPublication int64

	// Batch is how many entries one commit prunes, and how many records it publishes again; default: 1000.
	Batch int

	// Indexes are kept of the records of all sources, in the order of their names. Those that the store lacks, or that
	// were made by other rules, are made anew when it is opened for writing. A change without an index that the
	// store has leaves that behind.
	Indexes []txn.Index
	// Settings are those of collections that extensions have.
	Settings []Setting
	// Protocols are those, beside the own one, by which the program follows sources; nil: any.
	Protocols []string
	// Dependents return what extensions keep in step.
	Dependents []func(context.Context, *DB) ([]Dependent, error)

	// Badger is how the engine in Dir is set. Only tests set it, as [badger.Small].
	Badger badger.Settings
}

// Open opens the database in o.Dir, and finishes what a crash interrupted, unless ctx ends before.
//
// It is [ErrNoFolder] where there is no data folder to open, [ErrDamaged] where files are
// missing, short or of another node, and [ErrLocked] where another process has it. In these
// cases nothing is changed.
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
	if err == nil && version == "" { // nobody has written it yet
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

// openFull opens a folder on a disk that is nearly full, which full says, for reading only.
func openFull(ctx context.Context, f *datafolder.Folder, o Options, full error) (*DB, error) {
	full = fmt.Errorf("%w. Only reading goes on until this process is started again", full)
	engine, err := f.OpenFull(full)
	if err != nil {
		return nil, err
	}
	db := dbOf(f, o, engine, true)
	db.full = full
	if db, err = toRead(ctx, db); errors.Is(err, errNotClosed) { // it is to be completed
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

// Complete finishes what a crash interrupted, writes the node into the database, and says that
// the store has all that it must have. [Open] does it, but where the store is made by a restore or a move:
// then the rows are to be written first, which may be those of another node.
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

// recover makes indexes anew that are missing or follow other rules, and removes what no collection or subscription
// owns.
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

// Discard has [DB.Close] remove the data folder if this process has made it and nothing was stored in it.
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

// Close closes the database, though not an engine that was given, once the views and updates that are under way have
// ended. No others begin.
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
