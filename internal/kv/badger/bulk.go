package badger

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	badgerdb "github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/y"

	"github.com/tmshare/tmshare/internal/kv"
)

// bulk implements [kv.Writer].
//
// Few rows go through a batch of Badger, which writes them to the log of a memtable, to a table, and again with each
// compaction. Many rows go into tables that the database adopts, so they are written once, if their keys come in a few
// ascending runs and there are no tables yet below the first level. Until the tables are adopted, others can read and
// write.
type bulk struct {
	engine *Engine
	ctx    context.Context
	meter  meter

	waiting []kv.Row // until they are many; nil values remove rows
	size    int64    // of these, in bytes
	run     int      // index of the first of these from which keys ascend

	tables *tables  // may be nil
	late   []kv.Row // that belong among those of tables that are made
	batch  *batch   // may be nil
}

// Bulk implements [kv.Engine].
func (e *Engine) Bulk(ctx context.Context) (kv.Writer, error) {
	if err := e.writable(ctx); err != nil {
		return nil, err
	}
	return &bulk{engine: e, ctx: ctx}, nil
}

// Put implements [kv.Writer].
func (b *bulk) Put(key, value []byte) error {
	if err := errors.Join(context.Cause(b.ctx), kv.CheckRow(key, value),
		b.meter.add(len(key)+len(value), b.engine)); err != nil {
		return err
	}
	if value == nil {
		value = []byte{}
	}
	return b.add(kv.Row{Key: key, Value: value})
}

// Delete implements [kv.Writer].
func (b *bulk) Delete(key []byte) error {
	if err := errors.Join(context.Cause(b.ctx), kv.CheckKey(key)); err != nil {
		return err
	}
	if b.tables != nil {
		if err := b.giveUpTables(); err != nil {
			return err
		}
	}
	return b.add(kv.Row{Key: key})
}

func (b *bulk) add(r kv.Row) error {
	size := int64(len(r.Key) + len(r.Value) + perChange)
	switch {
	case b.batch != nil:
		return apply([]kv.Row{r}, b.batch)
	case b.tables == nil:
		if n := len(b.waiting); n > 0 &&
			(bytes.Compare(r.Key, b.waiting[n-1].Key) <= 0 || r.Value == nil || b.waiting[n-1].Value == nil) {
			b.run = n
		}
		b.waiting = append(b.waiting, r)
		if b.size += size; b.size >= b.engine.loadFrom {
			return b.beginMuch()
		}
		return nil
	}
	fits, err := b.tables.add(r)
	if err != nil {
		return err
	}
	if !fits {
		b.late = append(b.late, r)
		b.size += size
	}
	if b.size >= b.engine.loadFrom || b.tables.tooMany() {
		return b.giveUpTables()
	}
	return nil
}

// beginMuch decides whether many rows go into tables or into a batch.
func (b *bulk) beginMuch() (err error) {
	rows, run := b.waiting, b.waiting[b.run:]
	b.waiting, b.size = nil, 0
	if b.batch = b.engine.newBatch(); run[0].Value == nil || !b.engine.canAdopt(run[0].Key) {
		return apply(rows, b.batch)
	}
	if err := apply(rows[:len(rows)-len(run)], b.batch); err != nil {
		return err
	}
	if err := b.batch.Flush(); err != nil { // so that these rows get an earlier time
		return err
	}
	b.batch = nil
	if b.tables, err = b.engine.newTables(b.ctx); err != nil {
		return err
	}
	for _, r := range run {
		if err := b.add(r); err != nil {
			return err
		}
	}
	return nil
}

// giveUpTables writes the rows of the tables, and all later ones, through a batch.
func (b *bulk) giveUpTables() error {
	b.batch = b.engine.newBatch()
	t, late := b.tables, b.late
	b.tables, b.late, b.size = nil, nil, 0
	return errors.Join(t.finish(), t.copyTo(b.batch), t.remove(), apply(late, b.batch))
}

// Commit implements [kv.Writer].
func (b *bulk) Commit() error {
	defer b.Cancel()
	if err := b.engine.writable(b.ctx); err != nil {
		return err
	}
	return b.engine.folder.place.Named(b.commit())
}

func (b *bulk) commit() error {
	rest := b.waiting
	if b.tables != nil {
		if err := b.tables.finish(); err != nil {
			return err
		}
		adopted, err := b.engine.adopt(b.tables)
		if err != nil {
			return err
		}
		if adopted {
			b.engine.show(b.tables.version)
		} else if err := b.giveUpTables(); err != nil {
			return err
		}
		rest = b.late
	}
	if b.batch == nil && len(rest) > 0 {
		b.batch = b.engine.newBatch()
	}
	if b.batch == nil {
		return nil
	}
	return cmp.Or(apply(rest, b.batch), b.batch.Flush())
}

// Cancel implements [kv.Writer].
func (b *bulk) Cancel() {
	if b.batch != nil {
		b.batch.Cancel()
	}
	if b.tables != nil {
		if err := b.tables.remove(); err != nil { // the next opening of the database does
			b.engine.log.Warn("tables of a load that was given up are left", "error", err)
		}
	}
	b.waiting, b.late, b.tables, b.batch = nil, nil, nil, nil
}

// Leads implements [kv.Writer].
func (b *bulk) Leads() kv.Version { return kv.Version{} }

// batch writes rows in transactions of Badger, and keeps the database open until it is flushed or cancelled. Each
// transaction has a time of its own, in ascending order. In a batch of Badger all have the same time, and as Badger
// compacts tables in any order, the older of two rows with one key could win.
type batch struct {
	engine  *Engine
	time    func() uint64 // returns a time at which something is written next
	txn     *badgerdb.Txn // the rows that are not written yet
	size    int64         // of that, with large values: Badger counts them as pointers, and has them in memory
	empty   bool          // it has no rows yet
	pending *y.Throttle   // limits the concurrent writes
	failed  atomic.Pointer[error]
	release func()
}

// maxPending bounds the transactions of a batch that are waiting to be written,
// each of about 2 MB.
const maxPending = 4

// newBatch begins a batch at the present time. Readers see its rows when it has ended, at the latest.
func (e *Engine) newBatch() *batch {
	e.batches.RLock()
	last := uint64(0)
	b := e.batchAt(func() uint64 {
		last = e.clock.tick()
		return last
	})
	release := b.release
	b.release = sync.OnceFunc(func() {
		e.show(last)
		release()
		e.batches.RUnlock()
	})
	return b
}

// show makes rows visible that were written until a time. It waits for commits, so that none becomes visible in part.
func (e *Engine) show(at uint64) {
	e.commits.writing.Lock()
	defer e.commits.writing.Unlock()
	e.clock.show(at)
}

// batchAt begins to write at times.
func (e *Engine) batchAt(time func() uint64) *batch {
	e.users.RLock()
	b := &batch{engine: e, time: time, pending: y.NewThrottle(maxPending), release: sync.OnceFunc(e.users.RUnlock)}
	b.begin()
	return b
}

func (b *batch) begin() {
	b.txn, b.size, b.empty = b.engine.badger.NewTransactionAt(0, true), 0, true
	_ = apply([]kv.Row{b.engine.folder.sessionRow(0)}, b.txn) // one row has space
}

func (b *batch) Set(key, value []byte) error {
	return b.add(len(value), func() error { return b.txn.Set(key, value) })
}

func (b *batch) Delete(key []byte) error {
	return b.add(0, func() error { return b.txn.Delete(key) })
}

// add adds to the transaction, or to the next one if it is full.
func (b *batch) add(size int, change func() error) error {
	err := badgerdb.ErrTxnTooBig
	if b.size < b.engine.batchSize {
		err = change()
	}
	if errors.Is(err, badgerdb.ErrTxnTooBig) {
		if err := b.write(); err != nil {
			return err
		}
		b.begin()
		err = change()
	}
	b.size, b.empty = b.size+int64(size), false
	return err
}

// write has the transaction written, unless one before it was not.
func (b *batch) write() error {
	if err := b.err(); err != nil || b.empty {
		return err
	}
	if err := b.pending.Do(); err != nil {
		return err
	}
	return b.txn.CommitAt(b.time(), func(err error) {
		if err != nil {
			b.failed.CompareAndSwap(nil, &err)
		}
		b.pending.Done(nil)
	})
}

func (b *batch) err() error {
	if err := b.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// Flush writes the remaining rows. No row may be added after it.
func (b *batch) Flush() error {
	err := b.write()
	b.Cancel()
	return cmp.Or(b.err(), err)
}

// Cancel drops the rows that are not written yet, and waits for running writes.
func (b *batch) Cancel() {
	b.txn.Discard()
	_ = b.pending.Finish() // errors are in failed
	b.release()
}

// meter checks the free space after so many bytes that Badger may have written them to the disk.
type meter int

const meterEvery = 1 << 20

func (m *meter) add(n int, e *Engine) error {
	if *m += meter(n); *m < meterEvery || e.checkSpace == nil {
		return nil
	}
	*m = 0
	return e.checkSpace()
}

// sortedRuns keeps ranges of keys apart, in their order.
type sortedRuns []keyRange

// keyRange is from one key to another, both included.
type keyRange struct{ first, last []byte }

func (r keyRange) overlaps(other keyRange) bool {
	return bytes.Compare(r.first, other.last) <= 0 && bytes.Compare(other.first, r.last) <= 0
}

// next returns the first range that ends at or after a key, or nil.
func (r sortedRuns) next(key []byte) *keyRange {
	i, _ := slices.BinarySearchFunc(r, key, func(k keyRange, key []byte) int { return bytes.Compare(k.last, key) })
	if i == len(r) {
		return nil
	}
	return &r[i]
}

func (r sortedRuns) with(k keyRange) sortedRuns {
	i, _ := slices.BinarySearchFunc(r, k.first, func(k keyRange, key []byte) int { return bytes.Compare(k.first, key) })
	return slices.Insert(r, i, k)
}
