package store

import (
	"context"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/kv/badger"
	"github.com/tmshare/tmshare/internal/store/datafolder"
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
	changes        []row
}

// Record lets the recording begin.
func (r *Recording) Record(db *DB) {
	r.reset()
	db.rows.Tap = r
}

func (r *Recording) reset() {
	r.reading = operations{keys: map[string]bool{}, prefixes: map[string]bool{}}
}

func (r *Recording) Got(key []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reading.keys[string(key)] = true
}

func (r *Recording) Scanned(prefix []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reading.prefixes[string(prefix)] = true
}

func (r *Recording) Commits(changes []row) {
	r.last = r.reading
	r.last.changes = changes
	r.reset()
}

// Rows is how many rows the last commit has written.
func (r *Recording) Rows() int { return len(r.last.changes) }

// OpenRaw opens the engine of the data folder that was closed, with the settings of Open.
func OpenRaw(b *testing.B, dir string) kv.Engine {
	f, err := badger.Lock(filepath.Join(dir, datafolder.Database), false)
	require.NoError(b, err)
	e, err := f.Open(badger.Options{Logger: testOptions("").Logger})
	require.NoError(b, err)
	b.Cleanup(func() { e.Close() })
	return e
}

// Replay does what the last commit has done, in one commit.
func (r *Recording) Replay(e kv.Engine) error { return r.last.replay(e) }

func (o *operations) replay(e kv.Engine) error {
	reader, err := e.Snapshot(context.Background())
	if err != nil {
		return err
	}
	defer reader.Close()
	for key := range o.keys {
		if _, err := reader.Get([]byte(key)); err != nil {
			return err
		}
	}
	for prefix := range o.prefixes {
		for r, err := range reader.Range([]byte(prefix), nil, false) {
			if _ = cloned(r); err != nil {
				return err
			}
		}
	}
	return writeAll(e, reader.Version(), o.changes)
}

// writeAll commits changes, as one or, without a version, in bulk.
func writeAll(e kv.Engine, since kv.Version, changes []row) error {
	var w kv.Writer
	var err error
	if since == kv.Unsettled {
		w, err = e.Bulk(context.Background())
	} else {
		w, err = e.Begin(context.Background(), since)
	}
	if err != nil {
		return err
	}
	defer w.Cancel()
	for _, c := range changes {
		if c.Value == nil {
			err = w.Delete(c.Key)
		} else {
			err = w.Put(c.Key, c.Value)
		}
		if err != nil {
			return err
		}
	}
	return w.Commit()
}
