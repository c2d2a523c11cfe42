package txn

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/tidwall/btree"

	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/seq"
)

// Tx reads one state of the database. In an update it also collects changes,
// which its own reads see and which are committed together.
type Tx struct {
	ctx      context.Context // where it ends, so do all reads
	base     kv.Reader
	at       time.Time
	pending  *btree.Map[string, []byte] // nil value = delete; nil map = read only
	reads    reads
	asked    chan error // receives the answer to a parallel query; nil: none
	observer Observer
	Indexes  []Index // that are kept with each change, in the order of their names

	size, most int64 // of the rows that are pending, and how large they may be; 0: as large as they are

	attached map[any]Finisher // by their keys

	depends map[uint32]bool // keyspaces of which an update has read rows; nil: it depends on all of the state
	settled bool            // on which it depends is decided
	writes  map[uint32]bool // keyspaces in which an update has changed rows, as far as it is committed

	commit  kv.Writer  // nil: no commit
	led     kv.Version // to which the commit has led
	unread  int        // number of rows that it already has, because they are not read again
	changed []row      // these, if there is an observer
}

// Observer receives the reads and writes of an update. Benchmarks repeat these without this package.
type Observer interface {
	Got(key []byte)
	Scanned(prefix []byte)
	Commits(changes []kv.Row)
}

// Finisher completes the work of an update. Finish is called before the commit, and possibly earlier.
type Finisher interface{ Finish() error }

// Keeper is a [Finisher] that stores the effective changes of an update: Changes is called with each row, by key, and
// its value before; nil if there was none. Ends is called after the last one. Their rows are committed with the update,
// and not read before.
type Keeper interface {
	Finisher
	Changes(key, before []byte, put func(key, value []byte) error) error
	Ends(put func(key, value []byte) error) error
}

// Attached returns the finisher that an update has attached to a key; make makes it at first.
func (t *Tx) Attached(key any, make func() Finisher) Finisher {
	f, ok := t.attached[key]
	if !ok {
		f = make()
		if t.attached == nil {
			t.attached = map[any]Finisher{}
		}
		t.attached[key] = f
	}
	return f
}

// ErrReadOnly is the error for a change in a view.
var ErrReadOnly = errors.New("write in a read-only view")

// Over is [Over] for a reader of the same state. It caches nothing if t does not.
func (t *Tx) Over(base kv.Reader) *Tx {
	over := Over(t.ctx, base)
	over.reads.most = min(over.reads.most, t.reads.most)
	return over
}

// Over returns a Tx that reads with a reader, and must not change anything.
func Over(ctx context.Context, base kv.Reader) *Tx {
	t := &Tx{ctx: ctx, base: base}
	if t.Distant() {
		t.reads.most = readsLimit
	}
	return t
}

// Context returns the context with which all reading ends.
func (t *Tx) Context() context.Context { return t.ctx }

// Changing reports whether it is an update.
func (t *Tx) Changing() bool { return t.pending != nil }

// Reader returns the reader of the state, without the changes of an update. The update does not depend on rows read
// with it.
func (t *Tx) Reader() kv.Reader { return t.base }

// Version returns the version of the state.
func (t *Tx) Version() kv.Version { return t.base.Version() }

// At returns a time at which the state was the present one; zero where that is not known.
func (t *Tx) At() time.Time { return t.at }

// Led returns the version of the state after the commit, zero if there was none.
func (t *Tx) Led() kv.Version { return t.led }

// Limit sets the memory for the rows of an update before the commit, in bytes; 0 is no limit. Beyond it, the error is
// [ErrTooLarge].
func (t *Tx) Limit(bytes int64) { t.most = bytes }

// Get returns the value of key, or nil. It stays valid, and must not be changed.
func (t *Tx) Get(key []byte) ([]byte, error) {
	if t.pending != nil {
		if v, ok := t.pending.Get(string(key)); ok {
			return v, nil
		}
	}
	return t.stored(key)
}

// ended returns the reason why reads are no longer needed.
func (t *Tx) ended() error {
	select {
	case <-t.ctx.Done():
		return context.Cause(t.ctx)
	default:
		return nil
	}
}

func (t *Tx) stored(key []byte) ([]byte, error) {
	if t.pending == nil {
		value, _, err := t.before(key)
		return value, err
	}
	if err := t.ended(); err != nil {
		return nil, err
	}
	if t.observer != nil {
		t.observer.Got(key)
	}
	t.dependsOn(key)
	value, known, err := t.before(key)
	if err == nil && !known {
		t.reads.keepValue(key, value)
	}
	return value, err
}

// before returns the value of key in the database, and whether it is remembered.
func (t *Tx) before(key []byte) (value []byte, known bool, err error) {
	if t.reads.most > 0 {
		if value, known := t.reads.value(key); known {
			return value, true, nil
		}
	}
	value, err = t.base.Get(key)
	return value, false, err
}

// dependsOn records that the update depends on rows whose keys begin with prefix.
func (t *Tx) dependsOn(prefix []byte) {
	switch {
	case t.settled || t.depends == nil:
	case len(prefix) < 4:
		t.depends = nil
	default:
		t.depends[kv.SpaceOf(prefix)] = true
	}
}

// DependOn sets the keyspaces that an update depends on, besides those in which it changes rows: its reads of other
// keyspaces may be out of date at the commit. Without a call, it depends on all keyspaces that it reads.
func (t *Tx) DependOn(spaces ...uint32) {
	t.settled, t.depends = true, map[uint32]bool{}
	for _, space := range spaces {
		t.depends[space] = true
	}
}

// Put writes a row.
func (t *Tx) Put(key, value []byte) error {
	if t.pending == nil {
		return ErrReadOnly
	}
	value = present(value)
	t.pending.Set(string(key), value)
	return t.grow(len(key) + len(value))
}

// present returns the value of a row to put, because a nil value removes a row.
func present(value []byte) []byte {
	if value == nil {
		return []byte{}
	}
	return value
}

// perPending is the approximate memory of a row before the commit besides the row.
const perPending = 100

// grow counts a row that is kept until the commit.
func (t *Tx) grow(size int) error {
	if t.size += int64(size + perPending); t.most > 0 && t.size > t.most {
		return fmt.Errorf("%w: it takes more than %d bytes of memory until it is committed", ErrTooLarge, t.most)
	}
	return nil
}

// PutUnread is Put of a row that is not read before the commit. It passes the row to the engine at once, so that memory
// does not grow.
func (t *Tx) PutUnread(key, value []byte) error {
	if t.pending == nil {
		return ErrReadOnly
	}
	if t.commit == nil {
		return nil
	}
	t.unread++
	t.writes[kv.SpaceOf(key)] = true
	if t.observer != nil {
		t.changed = append(t.changed, row{Key: key, Value: value})
	}
	return t.commit.Put(key, value)
}

// Delete removes a row, if it is there.
func (t *Tx) Delete(key []byte) error {
	if t.pending == nil {
		return ErrReadOnly
	}
	t.pending.Set(string(key), nil)
	return t.grow(len(key))
}

// PutJSON writes a row with a value in JSON.
func (t *Tx) PutJSON(key []byte, value any) error {
	b, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return t.Put(key, b)
}

// GetJSON reports whether key is there, and reads it into value if it is.
func (t *Tx) GetJSON(key []byte, value any) (bool, error) {
	b, err := t.Get(key)
	if b == nil || err != nil {
		return false, err
	}
	return true, Decode(kv.Row{Key: key, Value: b}, value)
}

// Decode reads the value of a row, which is JSON.
func Decode(r kv.Row, value any) error {
	if err := json.Unmarshal(r.Value, value); err != nil {
		return Corrupt("JSON", r.Key, err)
	}
	return nil
}

// Values iterates over rows, the values of which are JSON, until the first error.
func Values[T any](rows iter.Seq2[kv.Row, error]) iter.Seq2[T, error] {
	return seq.Map(rows, func(r row) (value T, err error) { return value, Decode(r, &value) })
}

// List returns the values of all rows whose keys begin with prefix, from the key from on.
func List[T any](t *Tx, prefix, from []byte) (all []T, err error) {
	for value, err := range Values[T](t.ScanInPlace(prefix, from)) {
		if err != nil {
			return nil, err
		}
		all = append(all, value)
	}
	return all, nil
}

type row = kv.Row

// Scan iterates over the rows whose keys begin with prefix, from the key from on (nil for the first), in ascending
// order. It may or may not include concurrent changes; the rows stay valid.
func (t *Tx) Scan(prefix, from []byte) iter.Seq2[kv.Row, error] { return t.rows(prefix, from, true) }

// ScanInPlace is Scan with rows that are valid until the next one only, for callers that read many rows and keep few.
func (t *Tx) ScanInPlace(prefix, from []byte) iter.Seq2[kv.Row, error] {
	return t.rows(prefix, from, false)
}

// Prefixes iterates over the prefixes of a given length of keys, from a key on. It reads one row of each.
func (t *Tx) Prefixes(length int, from []byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for from != nil {
			prefix := []byte(nil)
			for r, err := range t.ScanInPlace(nil, from) {
				if err != nil {
					yield(nil, err)
					return
				}
				prefix = bytes.Clone(r.Key[:length])
				break
			}
			if prefix == nil || !yield(prefix, nil) {
				return
			}
			from = kv.After(prefix)
		}
	}
}

// Descend is ScanInPlace in descending order, from the key from on, of the rows as they were before
// an update.
func (t *Tx) Descend(prefix, from []byte) iter.Seq2[kv.Row, error] {
	t.dependsOn(prefix)
	return t.base.Range(prefix, from, true)
}

func (t *Tx) rows(prefix, from []byte, stay bool) iter.Seq2[row, error] {
	return func(yield func(row, error) bool) {
		if t.pending == nil {
			t.storedRows(prefix, from, stay, yield)
			return
		}
		if t.observer != nil {
			t.observer.Scanned(prefix)
		}
		t.dependsOn(prefix)
		p := &pendingRows{Tx: t, prefix: string(prefix), yield: yield, more: true}
		p.seek(max(string(from), p.prefix), true)
		t.storedRows(prefix, from, stay, p.stored)
		for p.more && p.ok {
			p.next()
		}
	}
}

// pendingRows iterates over the changes of an update by key, next to the stored rows.
type pendingRows struct {
	*Tx
	prefix string
	yield  func(row, error) bool
	more   bool // are wanted

	key   string // of the change that it is at, if ok
	value []byte // nil: the row is removed
	ok    bool
}

// seek advances to the first change from a key on, or after it.
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

// next yields the row, unless it is removed, and advances to the next change.
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
