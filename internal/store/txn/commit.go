package txn

import (
	"bytes"
	"fmt"

	"github.com/tmshare/tmshare/internal/kv"
)

// end commits what an update has changed, synced, all or nothing.
func (t *Tx) end() error {
	for _, f := range t.attached {
		if err := f.Finish(); err != nil {
			return err
		}
	}
	written := t.unread
	err := t.Changes(func(c row) error {
		written++
		if t.observer != nil {
			t.changed = append(t.changed, c)
		}
		if c.Value == nil {
			return t.commit.Delete(c.Key)
		}
		return t.commit.Put(c.Key, c.Value)
	})
	if err == nil && written > 0 {
		if t.observer != nil {
			t.observer.Commits(t.changed)
		}
		t.pending, t.reads = nil, reads{} // the engine has them
		err = t.commit.Commit()
	}
	if err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// Changes calls f with what t really changes of what it may read again, in the order of keys: a
// nil value is of a row that goes.
func (t *Tx) Changes(f func(kv.Row) error) (err error) {
	t.pending.Scan(func(key string, value []byte) bool {
		var old []byte
		if old, _, err = t.before([]byte(key)); err == nil && ((old == nil) != (value == nil) || !bytes.Equal(old, value)) {
			err = f(row{Key: []byte(key), Value: value})
		}
		return err == nil
	})
	return err
}
