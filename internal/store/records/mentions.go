package records

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// counting holds the differences of an update to the counts of mentions of a source. Because most mentions of a record
// are removed and added again, the counts are changed at the end.
type counting struct {
	State
	steps   map[fragment.Ref]int
	changed bool // records
}

// countedAs is the key under which counts of a source are attached to an update.
type countedAs struct{ keys.Source }

// counting returns the differences of the update to the counts so far.
func (s State) counting() *counting {
	return s.tx.Attached(countedAs{s.id}, func() txn.Finisher {
		return &counting{State: s, steps: map[fragment.Ref]int{}}
	}).(*counting)
}

func (c *counting) add(ref fragment.Ref, step int) {
	if n := c.steps[ref] + step; n == 0 {
		delete(c.steps, ref)
	} else {
		c.steps[ref] = n
	}
}

// bound writes the counts if there are many.
func (c *counting) bound() error {
	if len(c.steps) < maxMentions {
		return nil
	}
	return c.Finish()
}

func (c *counting) key(ref fragment.Ref) []byte { return c.id.LocatorKey(keys.TableMentions, ref) }

// Expects implements [txn.Expecting].
func (c *counting) Expects() (all [][]byte) {
	refs := slices.Sorted(maps.Keys(c.steps))
	return append(c.locatorKeys(refs[:min(len(refs), txn.AtOnce)], keys.TableMentions), indexesKey)
}

// Finish implements [txn.Finisher]: it changes the counts.
func (c *counting) Finish() error {
	if c.changed {
		if err := DropIndexes(c.tx); err != nil {
			return err
		}
	}
	for refs := range slices.Chunk(slices.Sorted(maps.Keys(c.steps)), txn.AtOnce) {
		if err := c.tx.Expect(c.locatorKeys(refs, keys.TableMentions), nil); err != nil {
			return err
		}
		for _, ref := range refs {
			if err := c.change(ref, c.steps[ref]); err != nil {
				return err
			}
		}
	}
	clear(c.steps)
	return nil
}

func (c *counting) change(ref fragment.Ref, step int) error {
	n, err := c.stored(ref)
	if err != nil {
		return err
	}
	switch n += step; {
	case n < 0:
		return fmt.Errorf("more references to %s taken away than there were", ref)
	case n == 0:
		return c.tx.Delete(c.key(ref))
	}
	return c.tx.Put(c.key(ref), binary.BigEndian.AppendUint64(nil, uint64(n)))
}

// stored returns a count without the update's differences since it was written.
func (c *counting) stored(ref fragment.Ref) (int, error) {
	b, err := c.tx.Get(c.key(ref))
	if b == nil || err != nil {
		return 0, err
	}
	if len(b) != 8 {
		return 0, fmt.Errorf("mentions of %s: %w", ref, fragment.ErrCorrupt)
	}
	return int(binary.BigEndian.Uint64(b)), nil
}

// Mentions implements [merge.State].
func (s State) Mentions(ref fragment.Ref) (int, error) {
	if !s.tx.Changing() {
		return (&counting{State: s}).stored(ref)
	}
	c := s.counting()
	n, err := c.stored(ref)
	return n + c.steps[ref], err
}
