package txn

import (
	"bytes"
	"sync"
)

// reads caches the rows that an update has read. They do not change while the update runs, so each row is read once:
// the topics of a document are read to compare them, to render their fragments and to find changes in the commit; and
// all topics mention the same few classes and types. Of a view it caches prefetched rows only. It is safe for
// concurrent use.
type reads struct {
	mu          sync.Mutex
	now, before remembered // before: rows read earlier, dropped next
	most        int        // bytes, about
}

type remembered struct {
	values map[string][]byte    // nil value: no such row
	ranges map[string]beginning // by prefix
	size   int                  // in bytes, about
}

// beginning is the first rows that begin with a prefix.
type beginning struct {
	rows []row
	more bool // there may be others
}

// readsLimit is the limit of the cache in bytes. If each read is a network round trip, it is distantLimit, because
// prefetched rows must still be there when they are needed.
const (
	readsLimit   = 16 << 20
	distantLimit = 64 << 20
)

// perRead is the approximate memory of a cached row besides the row.
const perRead = 100

func (r *reads) value(key []byte) (value []byte, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if value, known = r.now.values[string(key)]; !known {
		value, known = r.before.values[string(key)]
	}
	return value, known
}

func (r *reads) keepValue(key, value []byte) {
	if r.most == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.makeRoom(len(key) + len(value) + perRead)
	r.now.values[string(key)] = value
}

func (r *reads) rowsWith(prefix []byte) (first beginning, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if first, known = r.now.ranges[string(prefix)]; !known {
		first, known = r.before.ranges[string(prefix)]
	}
	return first, known
}

func (r *reads) keepRows(prefix []byte, first beginning) {
	if r.most == 0 {
		return
	}
	size := len(prefix) + perRead
	for _, row := range first.rows {
		size += len(row.Key) + len(row.Value) + perRead
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.makeRoom(size)
	r.now.ranges[string(prefix)] = first
}

// makeRoom drops the rows read first, if there are too many.
func (r *reads) makeRoom(size int) {
	if r.now.values == nil || r.now.size+size > r.most/2 {
		r.before, r.now = r.now, remembered{values: map[string][]byte{}, ranges: map[string]beginning{}}
	}
	r.now.size += size
}

// FewRows is the maximum number of rows of a range that is cached. Larger ranges, such as the instances of a class, are
// read on demand.
const FewRows = 64

// storedRows calls yield with the rows of the database that begin with a prefix, from a key on,
// until it returns false. They stay valid, or where stay is not set are valid until the next one.
func (t *Tx) storedRows(prefix, from []byte, stay bool, yield func(row, error) bool) {
	if t.reads.most == 0 || len(from) > 0 && string(from) != string(prefix) {
		t.rest(prefix, from, stay, yield)
		return
	}
	if first, known := t.reads.rowsWith(prefix); known {
		if !yieldAll(first.rows, yield) || !first.more {
			return
		}
		if n := len(first.rows); n > 0 {
			from = append(bytes.Clone(first.rows[n-1].Key), 0)
		}
		t.rest(prefix, from, stay, yield)
		return
	}
	if t.pending == nil {
		t.rest(prefix, nil, stay, yield)
		return
	}
	var read struct {
		few  []row
		many bool // there are more than FewRows, which were yielded
	}
	for r, err := range t.base.Range(prefix, nil, false) {
		if err != nil {
			yield(row{}, err)
			return
		}
		if !read.many && len(read.few) < FewRows {
			read.few = append(read.few, cloned(r))
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
		t.reads.keepRows(prefix, beginning{rows: read.few})
		yieldAll(read.few, yield)
	}
}

// rest is storedRows for rows that are not cached.
func (t *Tx) rest(prefix, from []byte, stay bool, yield func(row, error) bool) {
	for r, err := range t.base.Range(prefix, from, false) {
		if stay && err == nil {
			r = cloned(r)
		}
		if !yield(r, err) {
			return
		}
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
