package badger

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"sync"

	badgerdb "github.com/dgraph-io/badger/v4"

	"github.com/tmshare/tmshare/internal/kv"
)

// reader implements [kv.Reader].
type reader struct {
	txn     *badgerdb.Txn
	ctx     context.Context
	version kv.Version
	release func()
}

func (e *Engine) reader(ctx context.Context) *reader {
	e.users.RLock()
	at := e.clock.enter()
	return &reader{txn: e.badger.NewTransactionAt(at, false), ctx: ctx, release: sync.OnceFunc(func() {
		e.badger.SetDiscardTs(e.clock.leave(at))
		e.users.RUnlock()
	})}
}

// versionKey is the key of the row with the version: number and id.
var versionKey = []byte(kv.Reserved + "Jv")

// versionRow returns the row that a commit writes which leads to a version.
func versionRow(v kv.Version) kv.Row {
	return kv.Row{Key: versionKey,
		Value: binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, v.Number), v.ID)}
}

var sessionKey = []byte(kv.Reserved + "Js")

// sessionRow returns the row that each write has: the session, and for a commit the id of the version before.
func (f *Folder) sessionRow(before uint64) kv.Row {
	return kv.Row{Key: sessionKey,
		Value: binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, f.session), before)}
}

// readVersion reads the version of the state, once.
func (r *reader) readVersion() error {
	row, err := r.Get(versionKey)
	if err != nil {
		return err
	}
	if r.version = kv.First; len(row) == 16 {
		r.version = kv.Version{Number: binary.BigEndian.Uint64(row), ID: binary.BigEndian.Uint64(row[8:])}
	} else if row != nil {
		return fmt.Errorf("%w: the row with the version cannot be read", kv.ErrDamaged)
	}
	era, err := r.Get(kv.EraKey)
	r.version.Era = kv.EraOf(era)
	return err
}

func (r *reader) Version() kv.Version { return r.version }

// Close implements [kv.Reader].
func (r *reader) Close() {
	r.txn.Discard()
	r.release()
}

// ended returns the reason why reading was cancelled, or nil.
func (r *reader) ended() error {
	select {
	case <-r.ctx.Done():
		return context.Cause(r.ctx)
	default:
		return nil
	}
}

// Get implements [kv.Reader].
func (r *reader) Get(key []byte) (value []byte, err error) {
	if err := r.ended(); err != nil {
		return nil, err
	}
	defer panicked(&err)
	item, err := r.txn.Get(key)
	if errors.Is(err, badgerdb.ErrKeyNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return valueOf(item, []byte{}) // an empty one is not nil
}

// valueOf returns the value of an item in a buffer. Badger returns none if it cannot read the value log.
func valueOf(item *badgerdb.Item, buffer []byte) ([]byte, error) {
	value, err := item.ValueCopy(buffer)
	if err == nil && len(value) == 0 && item.ValueSize() > 0 {
		err = fmt.Errorf("%w: a large value cannot be read from its value log", kv.ErrDamaged)
	}
	return value, err
}

// panicked makes an error of a panic: Badger does not validate the content of its files.
func panicked(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%w: the database cannot be read here (%v)", kv.ErrDamaged, p)
	}
}

// Range implements [kv.Reader].
func (r *reader) Range(prefix, from []byte, reverse bool) iter.Seq2[kv.Row, error] {
	return r.rows(rowRange{prefix: prefix, from: from, reverse: reverse})
}

// rowRange is the range of rows to read.
type rowRange struct {
	prefix, from []byte
	reverse      bool
	keysOnly     bool
}

func (r *reader) rows(span rowRange) iter.Seq2[kv.Row, error] {
	return func(yield func(kv.Row, error) bool) {
		c := cursors.Get().(*cursor)
		c.rowRange = span
		defer c.close()
		for more, err := c.seek(r); ; more, err = c.next() {
			if err == nil {
				err = r.ended()
			}
			if err != nil {
				yield(kv.Row{}, err)
				return
			}
			if !more || !yield(c.row, nil) {
				return
			}
		}
	}
}

// cursor iterates over rows.
type cursor struct {
	rowRange
	it  *badgerdb.Iterator
	row kv.Row // the value has the buffer of the one before
}

// cursors are kept for reuse, with a buffer for a value.
var cursors = sync.Pool{New: func() any { return new(cursor) }}

// maxBuffer is how large a buffer is that is kept, in bytes.
const maxBuffer = 64 << 10

func (c *cursor) close() {
	if c.it != nil {
		c.it.Close()
	}
	c.rowRange, c.it, c.row.Key = rowRange{}, nil, nil
	if cap(c.row.Value) <= maxBuffer {
		cursors.Put(c)
	}
}

// seek moves to the first row, and reports whether there is one.
func (c *cursor) seek(r *reader) (more bool, err error) {
	defer panicked(&err)
	o := badgerdb.DefaultIteratorOptions
	o.PrefetchValues, o.Reverse = false, c.reverse
	if !c.reverse { // otherwise Badger takes it for the first key
		o.Prefix = c.prefix
	}
	c.it = r.txn.NewIterator(o)
	if c.reverse {
		c.seekLast()
	} else if bytes.Compare(c.from, c.prefix) > 0 {
		c.it.Seek(c.from)
	} else {
		c.it.Seek(c.prefix)
	}
	return c.read()
}

// seekLast moves to the last row.
func (c *cursor) seekLast() {
	switch last := kv.After(c.prefix); {
	case c.from != nil && len(c.from) == 0: // which Badger takes for no key
		if c.it.Seek([]byte{0}); c.it.Valid() {
			c.it.Next()
		}
	case c.from != nil && (last == nil || bytes.Compare(c.from, last) < 0):
		c.it.Seek(c.from)
	case last == nil:
		c.it.Rewind()
	default:
		if c.it.Seek(last); c.it.Valid() && bytes.Equal(c.it.Item().Key(), last) {
			c.it.Next()
		}
	}
}

func (c *cursor) next() (more bool, err error) {
	defer panicked(&err)
	c.it.Next()
	return c.read()
}

func (c *cursor) read() (more bool, err error) {
	for ; c.it.ValidForPrefix(c.prefix); c.it.Next() {
		item := c.it.Item()
		if c.row.Key = item.Key(); kv.IsReserved(c.row.Key) {
			continue
		}
		if !c.keysOnly {
			c.row.Value, err = valueOf(item, c.row.Value)
		}
		return true, err
	}
	return false, nil
}
