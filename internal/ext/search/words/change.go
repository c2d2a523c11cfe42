package words

import (
	"maps"
	"slices"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// mostChanges is the number of changed entries that are collected before they are written.
const mostChanges = 50_000

// changes are the entries that an update changes. Most removed ones are added again: a topic is deleted, then put.
type changes struct {
	tx    *txn.Tx
	id    keys.Source
	steps map[string]int // by entry: 1: added, -1: removed
	early bool           // some are written already, and may be changed again
}

// attachedAs is the key under which changes of a source are attached to an update.
type attachedAs struct{ keys.Source }

func changesOf(t *txn.Tx, id keys.Source) *changes {
	return t.Attached(attachedAs{id}, func() txn.Finisher {
		return &changes{tx: t, id: id, steps: map[string]int{}}
	}).(*changes)
}

// change records that a topic is added (step 1) or removed (step -1).
func change(t *txn.Tx, id keys.Source, topic *fragment.Topic, step int) error {
	c := changesOf(t, id)
	var entry []byte
	for _, e := range allEntries(topic) {
		entry = appendEntry(entry[:0], e, topic.TopicSI())
		if n := c.steps[string(entry)] + step; n == 0 {
			delete(c.steps, string(entry))
		} else {
			c.steps[string(entry)] = n
		}
	}
	if len(c.steps) >= mostChanges {
		return c.writeEarly()
	}
	return nil
}

// writeEarly writes the entries so far.
func (c *changes) writeEarly() error {
	c.early = true
	return c.write(c.tx.Put)
}

// Finish implements [txn.Finisher]: it writes the entries before the commit. Nothing reads them in this update any
// more.
func (c *changes) Finish() error {
	if c.early {
		return c.write(c.tx.Put)
	}
	return c.write(c.tx.PutUnread)
}

// write passes the entries to put, as single rows.
func (c *changes) write(put func(key, value []byte) error) error {
	for entries := range slices.Chunk(slices.Sorted(maps.Keys(c.steps)), txn.AtOnce) {
		if c.tx.Distant() {
			if err := c.tx.Expect(c.singleKeys(entries), nil); err != nil {
				return err
			}
		}
		for _, entry := range entries {
			if err := c.writeOne([]byte(entry), c.steps[entry] > 0, put); err != nil {
				return err
			}
		}
	}
	clear(c.steps)
	return nil
}

// singleKeys returns the keys of the single rows of entries.
func (c *changes) singleKeys(entries []string) [][]byte {
	all := make([][]byte, len(entries))
	for i, entry := range entries {
		all[i] = kindKey(c.id, kindSingle, []byte(entry))
	}
	return all
}

// Expects implements [txn.Expecting].
func (c *changes) Expects() [][]byte {
	entries := slices.Sorted(maps.Keys(c.steps))
	return c.singleKeys(entries[:min(len(entries), txn.AtOnce)])
}

// writeOne changes one entry. Each entry outside of blocks, and each removed entry of a block, has a single row, so the
// single row alone determines what to write.
func (c *changes) writeOne(entry []byte, comes bool, put func(key, value []byte) error) error {
	key := kindKey(c.id, kindSingle, entry)
	single, err := c.tx.Get(key)
	switch {
	case err != nil:
		return err
	case single != nil && comes == (len(single) > 0): // undoes an earlier removal or addition
		return c.tx.Delete(key)
	case single != nil: // nothing to change
		return nil
	case comes:
		return put(key, added)
	}
	return put(key, gone)
}
