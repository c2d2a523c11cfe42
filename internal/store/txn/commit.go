package txn

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tmshare/tmshare/internal/kv"
)

// end commits the changes of an update, synced, all or nothing.
func (t *Tx) end() error {
	if err := t.ExpectEnd(); err != nil {
		return err
	}
	var keepers []Keeper
	for _, f := range t.attached {
		if err := f.Finish(); err != nil {
			return err
		}
		if k, ok := f.(Keeper); ok {
			keepers = append(keepers, k)
		}
	}
	written := t.unread
	put := func(key, value []byte) error { return t.write(row{Key: key, Value: present(value)}, &written) }
	err := t.Changes(func(c row, before []byte) error {
		for _, k := range keepers {
			if err := k.Changes(c.Key, before, put); err != nil {
				return err
			}
		}
		return t.write(c, &written)
	})
	if written > 0 {
		for _, k := range keepers {
			err = errors.Join(err, k.Ends(put))
		}
	}
	if err == nil && written > 0 {
		if t.observer != nil {
			t.observer.Commits(t.changed)
		}
		t.pending, t.reads = nil, reads{} // the engine has them
		if t.depends != nil {
			err = t.commit.Narrow(t.base, slices.Sorted(maps.Keys(t.depends)))
		}
		if err == nil {
			err = t.commit.Commit()
		}
		if err == nil {
			t.led = t.commit.Leads()
		}
	}
	if err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// write gives the engine a change.
func (t *Tx) write(c row, written *int) error {
	*written++
	t.writes[kv.SpaceOf(c.Key)] = true
	if t.observer != nil {
		t.changed = append(t.changed, c)
	}
	if c.Value == nil {
		return t.commit.Delete(c.Key)
	}
	return t.commit.Put(c.Key, c.Value)
}

// Changes calls f with the effective changes of rows that t may read again, by key, with the values before: a nil value
// stands for a removed or missing row.
func (t *Tx) Changes(f func(c kv.Row, before []byte) error) error {
	for from, more := "", true; more; {
		var some []row
		more = false
		t.pending.Ascend(from, func(key string, value []byte) bool {
			if more = len(some) == AtOnce; more {
				from = key
				return false
			}
			some = append(some, row{Key: []byte(key), Value: value})
			return true
		})
		if err := t.changesOf(some, f); err != nil {
			return err
		}
	}
	return nil
}

func (t *Tx) changesOf(some []row, f func(c row, before []byte) error) error {
	if t.Distant() {
		keys := make([][]byte, len(some))
		for i := range some {
			keys[i] = some[i].Key
		}
		if err := t.Expect(keys, nil); err != nil {
			return err
		}
	}
	for _, c := range some {
		old, _, err := t.before(c.Key)
		if err == nil && ((old == nil) != (c.Value == nil) || !bytes.Equal(old, c.Value)) {
			err = f(c, old)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
