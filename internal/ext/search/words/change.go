package words

import (
	"maps"
	"slices"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// mostChanges is how many entries that change are collected before they are written.
const mostChanges = 50_000

// changes are the entries that an update changes. Most entries that go come again: a topic is deleted before it is put.
type changes struct {
	tx    *txn.Tx
	id    keys.Source
	steps map[string]int // by the entry: 1: it comes, -1: it goes
	early bool           // some are written already, and may be changed again
}

// attachedAs is the key under which changes of a source are attached to an update.
type attachedAs struct{ keys.Source }

func changesOf(t *txn.Tx, id keys.Source) *changes {
	return t.Attached(attachedAs{id}, func() txn.Finisher {
		return &changes{tx: t, id: id, steps: map[string]int{}}
	}).(*changes)
}

// change notes that a topic comes, where step is 1, or goes, where it is -1.
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

// write writes the entries: single rows that come with put.
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

// writeOne changes one entry. There is a single row for each that is in no block, and for each of a block that is gone:
// so the single row alone tells what to do.
func (c *changes) writeOne(entry []byte, comes bool, put func(key, value []byte) error) error {
	key := kindKey(c.id, kindSingle, entry)
	single, err := c.tx.Get(key)
	switch {
	case err != nil:
		return err
	case single != nil && comes == (len(single) > 0): // it was gone, or added
		return c.tx.Delete(key)
	case single != nil: // as it is to be
		return nil
	case comes:
		return put(key, added)
	}
	return put(key, gone)
}
