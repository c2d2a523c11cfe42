// Package badger is the engine that keeps the rows of a node on disk, in a database of
// Badger. It is the only package that knows Badger.
//
// A database is opened in steps: [Lock] its folder, look whether it is whole
// ([Folder.Inspect]), and open it ([Folder.Open]).
package badger

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	badgerdb "github.com/dgraph-io/badger/v4"
	"github.com/google/uuid"

	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/seq"
)

// Engine implements [kv.Engine] and [kv.Verifier].
type Engine struct {
	folder     *Folder
	options    Options
	badger     *badgerdb.DB // replaced when a load adds tables: under users
	log        *slog.Logger
	readOnly   bool
	refusal    error        // if readOnly: the error of changes
	checkSpace func() error // nil: space is not checked
	node       uuid.UUID    // the node of the record; uuid.Nil until KeepRecord
	closed     func() error

	batchSize, batchCount int64 // a transaction of Badger has space for less
	loadFrom              int64 // so many bytes of a load go into tables

	view     sync.RWMutex // held for writing while tables are adopted
	unusable error        // under view: the reason why the database can no longer be used

	// users is held for reading while badger is used, and for writing while it is closed, see adopt. It is locked for
	// writing with TryLock only, so it may be read-locked twice.
	users sync.RWMutex

	// batches is held for reading while rows are written at a time taken before, and for writing during garbage
	// collection. So is removing, while rows are removed, and while parts of a commit are rolled back. Both are locked
	// before commits.writing.
	batches, removing sync.RWMutex

	clock        clock
	commits      commits
	large        chan struct{} // of one place: that of the commit that is written in parts
	torn         uint64        // under large: the time of the first part of an incomplete commit; 0: there is none
	ahead        uint64        // under large: the last time of its rows
	inParts      atomic.Uint64 // number of commits written in parts
	adopted      atomic.Uint64 // number of loads with tables of their own
	quietTimeout time.Duration // time for which a load waits to be alone

	damaged atomic.Bool // Verify has found something the last time

	stopped    context.Context // ends with Close: so does background work
	stop       context.CancelFunc
	background sync.WaitGroup
}

func newEngine(f *Folder, o Options) *Engine {
	e := &Engine{folder: f, options: o, log: o.Logger, readOnly: o.ReadOnly && CanShare, closed: o.Closed,
		large: make(chan struct{}, 1), commits: commits{spaces: map[uint32]uint64{}},
		refusal: cmp.Or(o.Refusal, kv.ErrReadOnly), checkSpace: o.CheckSpace, loadFrom: cmp.Or(o.LoadFrom, loadFrom),
		quietTimeout: quietTimeout}
	if e.log == nil {
		e.log = slog.Default()
	}
	e.stopped, e.stop = context.WithCancel(context.Background())
	return e
}

// Snapshot implements [kv.Engine].
func (e *Engine) Snapshot(ctx context.Context) (kv.Reader, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	e.view.RLock()
	defer e.view.RUnlock()
	if e.unusable != nil {
		return nil, e.unusable
	}
	r := e.reader(ctx)
	if err := r.readVersion(); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// Version implements [kv.Engine].
func (e *Engine) Version(ctx context.Context) (kv.Version, error) {
	r, err := e.Snapshot(ctx)
	if err != nil {
		return kv.Version{}, err
	}
	defer r.Close()
	return r.Version(), nil
}

func (e *Engine) usable() error {
	e.view.RLock()
	defer e.view.RUnlock()
	return e.unusable
}

// stopWith makes the database of no use until it is opened again.
func (e *Engine) stopWith(why error) {
	e.view.Lock()
	defer e.view.Unlock()
	e.unusable = cmp.Or(e.unusable, why)
}

// InParts returns the number of commits written in parts since the database was opened.
func (e *Engine) InParts() uint64 { return e.inParts.Load() }

// Adopted returns the number of loads with tables of their own since the database was opened.
func (e *Engine) Adopted() uint64 { return e.adopted.Load() }

// DeletePrefix implements [kv.Engine].
func (e *Engine) DeletePrefix(ctx context.Context, prefix []byte) error {
	if err := e.writable(ctx); err != nil {
		return err
	}
	e.removing.RLock()
	defer e.removing.RUnlock()
	batch := e.newBatch()
	defer batch.Cancel()
	r := e.reader(ctx)
	defer r.Close()
	rows := r.rows(rowRange{prefix: prefix, keysOnly: true})
	if err := seq.Each(rows, func(row kv.Row) error { return batch.Delete(bytes.Clone(row.Key)) }); err != nil {
		return err
	}
	return batch.Flush()
}

// collectGarbage frees the space of old values periodically, unless damage is known: Badger would truncate a damaged
// value log.
func (e *Engine) collectGarbage() {
	for {
		select {
		case <-e.stopped.Done():
			return
		case <-time.After(10 * time.Minute):
			if e.damaged.Load() {
				continue
			}
			if err := e.folder.collect(); err != nil {
				continue // the next time, or the disk is full
			}
			for e.collectOnce() == nil { // as long as there was something to do
			}
		}
	}
}

// collectOnce collects while no rows are written at earlier times: Badger would restore a row that was deleted
// meanwhile.
func (e *Engine) collectOnce() error {
	select {
	case e.large <- struct{}{}:
		defer func() { <-e.large }()
	case <-e.stopped.Done():
		return e.stopped.Err()
	}
	if e.torn != 0 || !soon(e.quietTimeout, e.batches.TryLock) { // collection may be skipped
		return badgerdb.ErrNoRewrite
	}
	defer e.batches.Unlock()
	e.users.RLock()
	defer e.users.RUnlock()
	return e.badger.RunValueLogGC(0.5)
}

// Close implements [kv.Engine]. It also unlocks the folder.
func (e *Engine) Close() error {
	e.view.Lock()
	again := e.unusable == kv.ErrClosed
	e.unusable = kv.ErrClosed
	e.view.Unlock()
	if again {
		return nil
	}
	e.stop()
	e.background.Wait()
	defer e.folder.Unlock()
	err := e.folder.place.Named(e.closeRecorded())
	if err == nil && e.closed != nil {
		err = e.closed()
	}
	return err
}

func (e *Engine) closeRecorded() error {
	if e.node == uuid.Nil || e.readOnly {
		return e.badger.Close()
	}
	if err := e.folder.CheckPlace(); err != nil && (e.folder.isRemoved() || !e.folder.place.Follows()) {
		return fmt.Errorf("%w; what is in memory is not written there, and the database is left as it is", err)
	}
	if err := e.folder.recordMoving(e.node); err != nil {
		return fmt.Errorf("%w; the database is left as it is, and will be recovered when it is opened again", err)
	}
	if err := e.badger.Close(); err != nil {
		return err
	}
	return e.folder.recordClosed(e.node)
}
