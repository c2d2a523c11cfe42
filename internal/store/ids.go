package store

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/google/uuid"
)

// Identifiers of entries and addresses of documents must not name other content after the
// data folder was put back to an older copy. The epoch and the sequence cannot tell: both
// are in the copy. So each entry has a number that is random for each opening of the
// database, its run, and identifiers and addresses contain it.

// ID returns the identifier of an entry: a UUID of version 8 (RFC 9562 §5.8) made of the
// run, 42 bits of the epoch and the sequence.
func (c *Collection) ID(e *Entry) uuid.UUID { return c.id(e.Run, e.Seq) }

func (c *Collection) id(run uint32, seq uint64) uuid.UUID {
	id := c.History(run)
	id[6] = 0x80 | id[6]&0x0F
	for i := range 6 {
		id[15-i] = byte(seq >> (8 * i))
	}
	return id
}

// History returns the epoch with the number of a run in its first four bytes.
func (c *Collection) History(run uint32) uuid.UUID {
	id := c.Epoch
	binary.BigEndian.PutUint32(id[:], run^binary.BigEndian.Uint32(id[:]))
	return id
}

// runIn is the inverse of History, for all that begins as it does.
func (c *Collection) runIn(id uuid.UUID) uint32 {
	return binary.BigEndian.Uint32(id[:]) ^ binary.BigEndian.Uint32(c.Epoch[:])
}

// RunOf returns the run in what History has returned, and whether that is of this epoch.
func (c *Collection) RunOf(history uuid.UUID) (run uint32, ok bool) {
	run = c.runIn(history)
	return run, c.History(run) == history
}

// EntryOf returns the entry with an identifier. It is ErrGone where the entry is pruned,
// ErrNotFound where there was none.
func (v *View) EntryOf(id uuid.UUID) (*Entry, error) {
	var seq uint64
	for _, b := range id[10:] {
		seq = seq<<8 | uint64(b)
	}
	none := fmt.Errorf("%w: entry %s of collection %q", ErrNotFound, id, v.Name)
	if v.id(v.runIn(id), seq) != id || seq == 0 || seq > v.Head {
		return nil, none
	}
	e, err := v.Entry(seq)
	if err == nil && v.ID(e) != id { // of a history that was given up
		return nil, none
	}
	return e, err
}

// WrittenIn reports whether document n of the log has an entry of a run.
func (v *View) WrittenIn(n uint64, run uint32) (bool, error) {
	first, size := v.Document(n)
	for e, err := range v.kept(first) {
		if err != nil || e.Seq >= first+size {
			return false, err
		}
		if e.Run == run {
			return true, nil
		}
	}
	return false, nil
}

// DocumentRun returns the run of the last entry of document n of the log. ok is false
// where the entry is pruned and its run is not known any more.
func (v *View) DocumentRun(n uint64) (run uint32, ok bool, err error) {
	first, size := v.Document(n)
	last := min(first+size-1, v.Head)
	switch last {
	case v.Head:
		return v.Run, true, nil
	case v.Horizon:
		return v.HorizonRun, true, nil
	}
	e, err := v.entry(last)
	if errors.Is(err, ErrNotFound) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	return e.Run, true, nil
}
