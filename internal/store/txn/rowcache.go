package txn

import (
	"bytes"
	"sync"
)

// reads remembers what an update has read of the database. That does not change
// while the update runs, so no row need be read twice: the topics that a document
// describes are read to compare them, to render their fragments and to see what is
// new in the commit; and all topics mention the same few classes and types. It is safe for concurrent use.
type reads struct {
	mu     sync.Mutex
	values map[string][]byte // nil value: there is no such row
	ranges map[string][]row  // by prefix: all rows that begin with it
	size   int               // in bytes, about
}

// readsLimit is how much is remembered at most, in bytes. What is too much is
// forgotten, all of it.
const readsLimit = 16 << 20

// perRead is about what it takes to remember a row, besides the row.
const perRead = 100

func (r *reads) value(key []byte) (value []byte, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	value, known = r.values[string(key)]
	return value, known
}

func (r *reads) keepValue(key, value []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.makeRoom(len(key) + len(value) + perRead)
	r.values[string(key)] = value
}

func (r *reads) rowsWith(prefix []byte) (rows []row, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rows, known = r.ranges[string(prefix)]
	return rows, known
}

func (r *reads) keepRows(prefix []byte, rows []row, size int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.makeRoom(len(prefix) + size + perRead)
	r.ranges[string(prefix)] = rows
}

func (r *reads) makeRoom(size int) {
	if r.size += size; r.values == nil || r.size > readsLimit {
		r.values, r.ranges, r.size = map[string][]byte{}, map[string][]row{}, size
	}
}

// FewRows is how many rows a range may have to be remembered. Larger ones, such as
// the instances of a class, are read as they are asked for.
const FewRows = 64

// storedRows calls yield with the rows of the database that begin with a prefix, from a key on,
// until it returns false. They stay valid, or where stay is not set are valid until the next one.
func (t *Tx) storedRows(prefix, from []byte, stay bool, yield func(row, error) bool) {
	if t.pending == nil || len(from) > 0 && string(from) != string(prefix) {
		for r, err := range t.base.Range(prefix, from, false) {
			if stay && err == nil {
				r = cloned(r)
			}
			if !yield(r, err) {
				return
			}
		}
		return
	}
	if few, known := t.reads.rowsWith(prefix); known {
		yieldAll(few, yield)
		return
	}
	var read struct {
		few  []row
		size int
		many bool // there are more than few, and they were yielded
	}
	for r, err := range t.base.Range(prefix, nil, false) {
		if err != nil {
			yield(row{}, err)
			return
		}
		if !read.many && len(read.few) < FewRows {
			read.few = append(read.few, cloned(r))
			read.size += len(r.Key) + len(r.Value) + perRead
			continue
		}
		if !read.many && !yieldAll(read.few, yield) {
			return
		}
		read.many = true
		if stay {
			r = cloned(r)
		}
		if !yield(r, nil) {
			return
		}
	}
	if !read.many {
		t.reads.keepRows(prefix, read.few, read.size)
		yieldAll(read.few, yield)
	}
}

func yieldAll(rows []row, yield func(row, error) bool) bool {
	for _, r := range rows {
		if !yield(r, nil) {
			return false
		}
	}
	return true
}

func cloned(r row) row { return row{Key: bytes.Clone(r.Key), Value: bytes.Clone(r.Value)} }
