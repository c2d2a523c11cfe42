package badger

import (
	"cmp"
	"context"
	"errors"

	badgerdb "github.com/dgraph-io/badger/v4"

	"github.com/tmshare/tmshare/internal/kv"
)

func (e *Engine) writable(ctx context.Context) error {
	if e.readOnly {
		return e.refusal
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return errors.Join(e.usable(), e.folder.CheckPlace())
}

// transaction implements [kv.Writer]. Its changes are in memory as long as a transaction of
// Badger has space for them, and then in a file.
type transaction struct {
	engine  *Engine
	ctx     context.Context
	since   kv.Version
	leads   kv.Version
	narrow  []uint32        // the keyspaces of the commit's condition, besides those that it changes; nil: all
	spaces  map[uint32]bool // in which rows change
	changes []kv.Row        // that are not in the file; a nil value removes the row
	size    int64           // of the changes, as Badger counts it
	spilled *spilled        // nil: all are in memory
}

// Begin implements [kv.Engine].
func (e *Engine) Begin(ctx context.Context, since kv.Version) (kv.Writer, error) {
	if err := e.writable(ctx); err != nil {
		return nil, err
	}
	return &transaction{engine: e, ctx: ctx, since: since, leads: since.Next(), spaces: map[uint32]bool{}}, nil
}

// Put implements [kv.Writer].
func (t *transaction) Put(key, value []byte) error {
	if value == nil {
		value = []byte{}
	}
	return t.add(kv.Row{Key: key, Value: value})
}

// Delete implements [kv.Writer].
func (t *transaction) Delete(key []byte) error { return t.add(kv.Row{Key: key}) }

// perChange is the number of bytes that Badger counts for a change besides the row.
const perChange = 12

func (t *transaction) add(c kv.Row) error {
	if err := errors.Join(context.Cause(t.ctx), kv.CheckRow(c.Key, c.Value)); err != nil {
		return err
	}
	t.changes = append(t.changes, c)
	t.spaces[kv.SpaceOf(c.Key)] = true
	t.size += int64(len(c.Key) + len(c.Value) + perChange)
	if t.size < t.engine.batchSize && int64(len(t.changes)) < t.engine.batchCount {
		return nil
	}
	return t.spill()
}

// spill moves the changes to the file.
func (t *transaction) spill() (err error) {
	if t.spilled == nil {
		if t.spilled, err = newSpilled(t.engine.folder.path); err != nil {
			return err
		}
	}
	err = t.spilled.add(t.changes, t.engine)
	t.changes, t.size = nil, 0
	return err
}

// Narrow implements [kv.Writer].
func (t *transaction) Narrow(_ kv.Reader, spaces []uint32) error {
	t.narrow = append([]uint32{}, spaces...)
	return nil
}

// Narrow implements [kv.Writer].
func (b *bulk) Narrow(kv.Reader, []uint32) error { return nil }

// Leads implements [kv.Writer].
func (t *transaction) Leads() kv.Version { return t.leads }

// Cancel implements [kv.Writer].
func (t *transaction) Cancel() {
	if t.spilled != nil {
		t.spilled.close()
	}
	t.spilled, t.changes = nil, nil
}

// write has Badger carry out a transaction that makes some changes at a time. For a commit, before is the id of the
// version before.
func (e *Engine) write(at, before uint64, changes ...kv.Row) error {
	e.users.RLock()
	defer e.users.RUnlock()
	if e.badger.IsClosed() {
		return badgerdb.ErrDBClosed
	}
	txn := e.badger.NewTransactionAt(at, true)
	defer txn.Discard()
	if err := cmp.Or(apply(changes, txn), apply([]kv.Row{e.folder.sessionRow(before)}, txn)); err != nil {
		return err
	}
	return txn.CommitAt(at, nil)
}

// sink is the common interface of a transaction and a batch of Badger.
type sink interface {
	Set(key, value []byte) error
	Delete(key []byte) error
}

func apply(changes []kv.Row, to sink) error {
	for _, c := range changes {
		var err error
		if c.Value == nil {
			err = to.Delete(c.Key)
		} else {
			err = to.Set(c.Key, c.Value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
