package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/store/datafolder"
	"github.com/tmshare/tmshare/internal/store/files"
	"github.com/tmshare/tmshare/internal/store/inputs"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/leases"
	"github.com/tmshare/tmshare/internal/store/sources"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// DB is a node's database. It is safe for concurrent use. Writes of collections with different names run side by side.
type DB struct {
	*sources.Store // the sources of subscriptions
	*leases.Leases // of this process
	*openings
	*condition

	dir      string
	files    files.Store
	rows     *txn.DB
	folder   *datafolder.Folder // with the engine in it
	readOnly bool
	full     error // where it is readOnly, as the disk was nearly full
	shared   bool  // the engine was given: others may use it
	node     uuid.UUID
	filledBy uuid.UUID    // where it is being made over an engine
	closed   func() error // see Options.Closed
	log      *slog.Logger
	now      func() time.Time
	run      atomic.Uint32 // of the entries that it writes

	latest sync.Map // name → *latestAt
	lister inputs.Lister
	keeps  sync.Mutex // held while latest changes

	settings       []Setting
	protocols      []string // nil: any
	dependents     []func(context.Context, *DB) ([]Dependent, error)
	maxPublication int64
	batch          int      // number of entries that one commit prunes or republishes
	unknown        sync.Map // unsupported output formats of replicas' origins, already logged
	sortMemory     int      // for the rows of a load, in bytes; 0: as much as usual. Others are for tests
}

type row = kv.Row

// Node returns the node that the store is of: random, and the same each time it is opened.
func (db *DB) Node() uuid.UUID { return db.node }

// Follows reports whether this program has a protocol.
func (db *DB) Follows(p Protocol) bool {
	return p == TMShare || db.protocols == nil || slices.Contains(db.protocols, string(p))
}

// NoteBaseURL records the public address of the store's server, and returns the previous one; "" for none.
func (db *DB) NoteBaseURL(ctx context.Context, url string) (before string, err error) {
	key := keys.Meta("base-url")
	err = db.rows.View(ctx, func(t *txn.Tx) error { _, err := t.GetJSON(key, &before); return err })
	if err == nil && before != url {
		err = db.rows.Update(ctx, func(t *txn.Tx) error { return t.PutJSON(key, url) })
	}
	return before, err
}

// Dir returns the data folder.
func (db *DB) Dir() string { return db.dir }

// MayWrite returns the reason why nothing may be changed now: [ErrReadOnly]; see [DB.Impaired]; or an error that is
// ENOSPC, if the disk is nearly full.
func (db *DB) MayWrite() error {
	if db.full != nil {
		return db.full
	}
	if db.readOnly {
		return fmt.Errorf("%w: %s", ErrReadOnly, db.dir)
	}
	if err := db.Impaired(); err != nil {
		return err
	}
	return datafolder.CheckFreeSpace(db.dir)
}

// Writable checks that a shared engine, opened for changes, accepts them.
func (db *DB) Writable(ctx context.Context) error {
	if shared, ok := db.rows.Engine.(kv.Shared); ok && !db.readOnly {
		return shared.Writable(ctx)
	}
	return nil
}

// Refusals returns the reasons why nothing may be changed, each with whether it holds: "damaged", "moved" and "full".
func (db *DB) Refusals() map[string]bool {
	impaired := db.Impaired()
	return map[string]bool{
		"damaged": errors.Is(impaired, ErrKnownDamage),
		"moved":   errors.Is(impaired, ErrElsewhere),
		"full":    db.full != nil || datafolder.CheckFreeSpace(db.dir) != nil,
	}
}

// Sizes are the bytes that a database takes on disk, and the free ones there.
type Sizes struct {
	Records   int64 // all rows; with files if these are rows
	Snapshots int64
	Free      int64
}

// Sizes returns the space that the database takes. It reads the size of each file.
func (db *DB) Sizes() (s Sizes, err error) {
	if s.Records, err = db.rows.Engine.Size(); err != nil {
		return s, err
	}
	if s.Snapshots, err = files.Size(context.Background(), db.files, files.Snapshots+"/"); err != nil {
		return s, err
	}
	s.Free, err = datafolder.FreeBytes(db.dir)
	return s, err
}

// Touch raises the version of the store without another change.
func (db *DB) Touch(ctx context.Context) error { return db.rows.Touch(ctx) }

// Files returns where the files of the node are. Those of snapshots are the affair of the database.
func (db *DB) Files() files.Store { return db.files }
