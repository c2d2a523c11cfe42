package store

import (
	"path/filepath"
	"sync"
	"testing"

	"github.com/dgraph-io/badger/v4"
	"github.com/stretchr/testify/require"
)

// Recording remembers what the last commit has read and written, for benchmarks
// that measure the server.
type Recording struct {
	mu            sync.Mutex
	reading, last operations
}

// operations are the keys that an update reads, each once, the prefixes whose rows
// it reads, and the rows that it writes.
type operations struct {
	keys, prefixes map[string]bool
	changes        []change
}

// Record lets the recording begin.
func (r *Recording) Record(db *DB) {
	r.reset()
	db.tap = r
}

func (r *Recording) reset() {
	r.reading = operations{keys: map[string]bool{}, prefixes: map[string]bool{}}
}

func (r *Recording) got(key []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reading.keys[string(key)] = true
}

func (r *Recording) scanned(prefix []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reading.prefixes[string(prefix)] = true
}

func (r *Recording) commits(changes []change) {
	r.last = r.reading
	r.last.changes = changes
	r.reset()
}

// Rows is how many rows the last commit has written.
func (r *Recording) Rows() int { return len(r.last.changes) }

// OpenRaw opens the Badger database in a data folder, with the options of Open.
func OpenRaw(b *testing.B, dir string) *badger.DB {
	o := testOptions(dir)
	db, err := openBadger(badgerOptions(filepath.Join(o.Dir, "badger"), o.Logger))
	require.NoError(b, err)
	b.Cleanup(func() { db.Close() })
	return db
}

// Replay does what the last commit has done, in one transaction.
func (r *Recording) Replay(db *badger.DB) error {
	return db.Update(func(txn *badger.Txn) error {
		read := &tx{base: txn}
		for key := range r.last.keys {
			if _, err := read.stored([]byte(key)); err != nil {
				return err
			}
		}
		for prefix := range r.last.prefixes {
			for _, err := range read.scan([]byte(prefix), nil) {
				if err != nil {
					return err
				}
			}
		}
		return apply(r.last.changes, txn)
	})
}
