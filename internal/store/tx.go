package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"iter"

	"github.com/dgraph-io/badger/v4"
	"github.com/tidwall/btree"
)

// tx reads one state of the database. In an update it also collects changes,
// which its own reads see and which are committed together.
type tx struct {
	base    *badger.Txn
	pending *btree.Map[string, []byte] // nil value = delete; nil map = read only
	reads   reads
	tap     tap
}

// tap is told what an update reads and writes. Benchmarks repeat that without us.
type tap interface {
	got(key []byte)
	scanned(prefix []byte)
	commits([]change)
}

var errReadOnly = errors.New("store: write in a read-only view")

// begin opens the current state for reading. The caller ends it.
func (db *DB) begin() (*tx, error) {
	db.view.RLock()
	defer db.view.RUnlock()
	if db.unusable != nil {
		return nil, db.unusable
	}
	db.users.Add(1)
	return &tx{base: db.badger.NewTransaction(false)}, nil
}

func (db *DB) end(t *tx) {
	t.discard()
	db.users.Done()
}

// viewing calls f with the current state; later writes do not show in it.
func (db *DB) viewing(f func(*tx) error) error {
	t, err := db.begin()
	if err != nil {
		return err
	}
	defer db.end(t)
	return f(t)
}

// update calls f with the current state and commits what it changes, all or
// nothing. An error of f, or of the commit, changes nothing.
func (db *DB) update(f func(*tx) error) error {
	if err := db.Room(); err != nil {
		return err
	}
	db.write.Lock()
	defer db.write.Unlock()
	t, err := db.begin()
	if err != nil {
		return err
	}
	defer db.end(t)
	t.pending, t.tap = btree.NewMap[string, []byte](0), db.tap
	if err := f(t); err != nil {
		return err
	}
	return db.commit(t)
}

func (t *tx) discard() { t.base.Discard() }

// get returns the value of key, or nil. It stays valid, and must not be changed.
func (t *tx) get(key []byte) ([]byte, error) {
	if t.pending != nil {
		if v, ok := t.pending.Get(string(key)); ok {
			return v, nil
		}
	}
	return t.stored(key)
}

func (t *tx) stored(key []byte) ([]byte, error) {
	if t.tap != nil {
		t.tap.got(key)
	}
	if t.pending != nil {
		if value, known := t.reads.value(key); known {
			return value, nil
		}
	}
	var value []byte
	item, err := t.base.Get(key)
	if err == nil {
		value, err = item.ValueCopy([]byte{}) // an empty one is not nil
	} else if errors.Is(err, badger.ErrKeyNotFound) {
		err = nil
	}
	if err == nil && t.pending != nil {
		t.reads.keepValue(key, value)
	}
	return value, err
}

func (t *tx) put(key, value []byte) error {
	if t.pending == nil {
		return errReadOnly
	}
	if value == nil {
		value = []byte{}
	}
	t.pending.Set(string(key), value)
	return nil
}

func (t *tx) delete(key []byte) error {
	if t.pending == nil {
		return errReadOnly
	}
	t.pending.Set(string(key), nil)
	return nil
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
	return true, json.Unmarshal(b, value)
}

type row struct{ key, value []byte }

// scan iterates over the rows whose keys begin with prefix, from the key from
// on (nil for the first), in ascending order. Changes made meanwhile may show
// or not; the rows stay valid.
func (t *tx) scan(prefix, from []byte) iter.Seq2[row, error] { return t.rows(prefix, from, true) }

// glance is scan, but that a row is valid only until the next one: for who looks
// at many rows and keeps few.
func (t *tx) glance(prefix, from []byte) iter.Seq2[row, error] { return t.rows(prefix, from, false) }

func (t *tx) rows(prefix, from []byte, stay bool) iter.Seq2[row, error] {
	return func(yield func(row, error) bool) {
		if from == nil {
			from = prefix
		}
		if t.tap != nil {
			t.tap.scanned(prefix)
		}
		stored, err := t.cursor(prefix, from, stay)
		if err != nil {
			yield(row{}, err)
			return
		}
		defer stored.close()

		next := func() (string, []byte, bool) { return "", nil, false }
		if t.pending != nil {
			after := string(from)
			first := true
			next = func() (key string, value []byte, ok bool) {
				t.pending.Ascend(after, func(k string, v []byte) bool {
					if !first && k == after {
						return true
					}
					key, value, ok = k, v, bytes.HasPrefix([]byte(k), prefix)
					return false
				})
				after, first = key, false
				return key, value, ok
			}
		}
		pendingKey, pendingValue, hasPending := next()
		for stored.valid() || hasPending {
			order := 1
			if stored.valid() {
				order = -1
				if hasPending {
					order = bytes.Compare(stored.key(), []byte(pendingKey))
				}
			}
			if order < 0 {
				if r, err := stored.row(); !yield(r, err) || err != nil {
					return
				}
				stored.next()
				continue
			}
			if pendingValue != nil && !yield(row{[]byte(pendingKey), pendingValue}, nil) {
				return
			}
			if order == 0 {
				stored.next()
			}
			pendingKey, pendingValue, hasPending = next()
		}
	}
}
