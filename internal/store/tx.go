package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/tidwall/btree"

	"github.com/tmshare/tmshare/internal/kv"
)

// tx reads one state of the database. In an update it also collects changes,
// which its own reads see and which are committed together.
type tx struct {
	ctx     context.Context // where it ends, so do all reads
	base    kv.Reader
	pending *btree.Map[string, []byte] // nil value = delete; nil map = read only
	reads   reads
	tap     tap

	size, most int64 // of the rows that are pending, and how large they may be; 0: as large as they are

	commit kv.Writer // nil: nothing is committed
	unread int       // how many rows it has already, because nobody reads them in this state
	told   []row     // these, where there is a tap
}

// tap is told what an update reads and writes. Benchmarks repeat that without us.
type tap interface {
	got(key []byte)
	scanned(prefix []byte)
	commits(changes []row)
}

var errReadOnly = errors.New("write in a read-only view")

// begin opens the current state for reading. The caller ends it.
func (db *DB) begin(ctx context.Context) (*tx, error) {
	db.open.RLock()
	defer db.open.RUnlock()
	if db.closed {
		return nil, errClosed
	}
	base, err := db.engine.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	db.users.Add(1)
	return &tx{ctx: ctx, base: base}, nil
}

func (db *DB) end(t *tx) {
	t.base.Close()
	db.users.Done()
}

// viewing calls f with the current state; later writes do not show in it. Reading fails once
// ctx has ended.
func (db *DB) viewing(ctx context.Context, f func(*tx) error) error {
	t, err := db.begin(ctx)
	if err != nil {
		return err
	}
	defer db.end(t)
	return f(t)
}

// update calls f with the current state and commits what it changes, all or
// nothing. An error of f, or of the commit, changes nothing.
//
// Where another process that shares the engine has committed meanwhile, f is called
// again with what is there then: it must not count on being called once. Nothing is
// committed once ctx has ended, and nobody waits longer for other changes to end.
func (db *DB) update(ctx context.Context, f func(*tx) error) error {
	for {
		err := db.changing(ctx, func(t *tx) (err error) {
			if t.commit, err = db.engine.Begin(ctx, t.base.Version()); err != nil {
				return err
			}
			defer t.commit.Cancel()
			if err := f(t); err != nil {
				return err
			}
			return t.end()
		})
		if !errors.Is(err, kv.ErrConflict) {
			return err
		}
	}
}

// changing calls f with the current state, which it may change, while nobody else in this
// process does. Nothing is committed.
func (db *DB) changing(ctx context.Context, f func(*tx) error) error {
	if db.readOnly {
		return fmt.Errorf("%s is opened for reading only", db.dir)
	}
	if err := db.CheckFreeSpace(); err != nil {
		return err
	}
	select {
	case db.write <- struct{}{}:
		defer func() { <-db.write }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	t, err := db.begin(ctx)
	if err != nil {
		return err
	}
	defer db.end(t)
	t.pending, t.tap = btree.NewMap[string, []byte](0), db.tap
	return f(t)
}

// get returns the value of key, or nil. It stays valid, and must not be changed.
func (t *tx) get(key []byte) ([]byte, error) {
	if t.pending != nil {
		if v, ok := t.pending.Get(string(key)); ok {
			return v, nil
		}
	}
	return t.stored(key)
}

// ended returns why nobody waits for what is read any more.
func (t *tx) ended() error {
	select {
	case <-t.ctx.Done():
		return context.Cause(t.ctx)
	default:
		return nil
	}
}

func (t *tx) stored(key []byte) ([]byte, error) {
	if t.pending == nil {
		return t.base.Get(key)
	}
	if err := t.ended(); err != nil {
		return nil, err
	}
	if t.tap != nil {
		t.tap.got(key)
	}
	value, known, err := t.before(key)
	if err == nil && !known {
		t.reads.keepValue(key, value)
	}
	return value, err
}

// before returns the value of key in the database, and whether it is remembered.
func (t *tx) before(key []byte) (value []byte, known bool, err error) {
	if value, known := t.reads.value(key); known {
		return value, true, nil
	}
	value, err = t.base.Get(key)
	return value, false, err
}

func (t *tx) put(key, value []byte) error {
	if t.pending == nil {
		return errReadOnly
	}
	if value == nil {
		value = []byte{}
	}
	t.pending.Set(string(key), value)
	return t.grow(len(key) + len(value))
}

// perPending is about what it takes to keep a row until the commit, besides the row.
const perPending = 100

// grow counts a row that is kept until the commit.
func (t *tx) grow(size int) error {
	if t.size += int64(size + perPending); t.most > 0 && t.size > t.most {
		return fmt.Errorf("%w: it takes more than %d bytes of memory until it is committed", ErrTooLarge, t.most)
	}
	return nil
}

// putUnread is put of a row that nothing reads before the commit. The engine has it from now on:
// memory does not grow with such rows.
func (t *tx) putUnread(key, value []byte) error {
	if t.pending == nil {
		return errReadOnly
	}
	if t.commit == nil {
		return nil
	}
	t.unread++
	if t.tap != nil {
		t.told = append(t.told, row{Key: key, Value: value})
	}
	return t.commit.Put(key, value)
}

func (t *tx) delete(key []byte) error {
	if t.pending == nil {
		return errReadOnly
	}
	t.pending.Set(string(key), nil)
	return t.grow(len(key))
}

func (t *tx) putJSON(key []byte, value any) error {
	b, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return t.put(key, b)
}

// getJSON reports whether key is there, and reads it into value if it is.
func (t *tx) getJSON(key []byte, value any) (bool, error) {
	b, err := t.get(key)
	if b == nil || err != nil {
		return false, err
	}
	if err := json.Unmarshal(b, value); err != nil {
		return true, corruptRow(string(key[:1]), key, err)
	}
	return true, nil
}

type row = kv.Row

// scan iterates over the rows whose keys begin with prefix, from the key from
// on (nil for the first), in ascending order. Changes made meanwhile may show
// or not; the rows stay valid.
func (t *tx) scan(prefix, from []byte) iter.Seq2[row, error] { return t.rows(prefix, from, true) }

// glance is scan, but that a row is valid only until the next one: for who looks
// at many rows and keeps few.
func (t *tx) glance(prefix, from []byte) iter.Seq2[row, error] { return t.rows(prefix, from, false) }

func (t *tx) rows(prefix, from []byte, stay bool) iter.Seq2[row, error] {
	return func(yield func(row, error) bool) {
		if t.pending == nil {
			t.storedRows(prefix, from, stay, yield)
			return
		}
		if t.tap != nil {
			t.tap.scanned(prefix)
		}
		p := &pendingRows{tx: t, prefix: string(prefix), yield: yield, more: true}
		p.seek(max(string(from), p.prefix), true)
		t.storedRows(prefix, from, stay, p.stored)
		for p.more && p.ok {
			p.next()
		}
	}
}

// pendingRows goes through the changes of an update in the order of keys, beside the rows that are
// stored.
type pendingRows struct {
	*tx
	prefix string
	yield  func(row, error) bool
	more   bool // are wanted

	key   string // of the change that it is at, if ok
	value []byte // nil: the row goes
	ok    bool
}

// seek goes to the first change from a key on, or behind it.
func (p *pendingRows) seek(from string, including bool) {
	p.ok = false
	p.pending.Ascend(from, func(key string, value []byte) bool {
		if key == from && !including {
			return true
		}
		p.key, p.value, p.ok = key, value, strings.HasPrefix(key, p.prefix)
		return false
	})
}

// next yields the row, if it does not go, and goes on to the next change.
func (p *pendingRows) next() {
	if p.value != nil {
		p.more = p.yield(row{Key: []byte(p.key), Value: p.value}, nil)
	}
	p.seek(p.key, false)
}

// stored yields the changes up to a stored row, and that, unless it is changed.
func (p *pendingRows) stored(r row, err error) bool {
	if err == nil {
		err = p.ended()
	}
	if err != nil {
		p.yield(row{}, err)
		p.more = false
		return false
	}
	for p.more && p.ok && p.key < string(r.Key) {
		p.next()
	}
	switch {
	case !p.more:
	case p.ok && p.key == string(r.Key):
		p.next()
	default:
		p.more = p.yield(r, nil)
	}
	return p.more
}
