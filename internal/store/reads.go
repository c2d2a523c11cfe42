package store

import (
	"sync"

	"github.com/dgraph-io/badger/v4"
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

// fewRows is how many rows a range may have to be remembered. Larger ones, such as
// the instances of a class, are read as they are asked for.
const fewRows = 64

// cursor goes through the rows of the database that begin with a prefix, in the
// order of keys.
type cursor interface {
	valid() bool
	key() []byte // valid until next
	row() (row, error)
	next()
	close()
}

// cursor begins with the key from. Its rows stay valid, or where stay is not set
// are valid until next.
func (t *tx) cursor(prefix, from []byte, stay bool) (cursor, error) {
	o := badger.DefaultIteratorOptions
	o.Prefix, o.PrefetchValues = prefix, false
	if t.pending == nil || string(from) != string(prefix) {
		return begin(t.base.NewIterator(o), from, stay), nil
	}
	if few, known := t.reads.rowsWith(prefix); known {
		return &rememberedRows{few}, nil
	}
	c := begin(t.base.NewIterator(o), from, true)
	var few []row
	size := 0
	for ; c.valid(); c.next() {
		if len(few) == fewRows {
			c.it.Seek(from)
			c.stay = stay
			return c, nil
		}
		r, err := c.row()
		if err != nil {
			c.close()
			return nil, err
		}
		few = append(few, r)
		size += len(r.key) + len(r.value) + perRead
	}
	c.close()
	t.reads.keepRows(prefix, few, size)
	return &rememberedRows{few}, nil
}

// databaseRows is a cursor over what is in the database.
type databaseRows struct {
	it   *badger.Iterator
	stay bool
	room []byte // for the value that is looked at
}

func begin(it *badger.Iterator, from []byte, stay bool) *databaseRows {
	it.Seek(from)
	return &databaseRows{it: it, stay: stay}
}

func (c *databaseRows) valid() bool { return c.it.Valid() }
func (c *databaseRows) key() []byte { return c.it.Item().Key() }
func (c *databaseRows) next()       { c.it.Next() }
func (c *databaseRows) close()      { c.it.Close() }

func (c *databaseRows) row() (_ row, err error) {
	if c.stay {
		value, err := c.it.Item().ValueCopy(nil)
		return row{c.it.Item().KeyCopy(nil), value}, err
	}
	c.room, err = c.it.Item().ValueCopy(c.room)
	return row{c.key(), c.room}, err
}

// rememberedRows is a cursor over rows that were read before.
type rememberedRows struct{ left []row }

func (c *rememberedRows) valid() bool       { return len(c.left) > 0 }
func (c *rememberedRows) key() []byte       { return c.left[0].key }
func (c *rememberedRows) row() (row, error) { return c.left[0], nil }
func (c *rememberedRows) next()             { c.left = c.left[1:] }
func (c *rememberedRows) close()            {}
