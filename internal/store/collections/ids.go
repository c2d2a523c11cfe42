package collections

import (
	"encoding/binary"

	"github.com/google/uuid"
)

// After the data folder was reset to an older copy, identifiers of entries and addresses of documents must not name
// other content. The epoch and the sequence cannot ensure that, because both are in the copy. So each entry has a
// number that is random for each opening of the database, its run, and identifiers and addresses contain it.

// ID returns the identifier of an entry: a UUID of version 8 (RFC 9562 §5.8) made of the
// run, 42 bits of the epoch and the sequence.
func (c *Collection) ID(e *Entry) uuid.UUID { return c.IDOf(e.Run, e.Seq) }

// Path returns the path of the entry with a run and a sequence, relative to that of all collections.
func (c *Collection) Path(run uint32, seq uint64) string {
	return c.Name + "/fragments/" + c.IDOf(run, seq).String()
}

// IDOf is ID for the entry with a run and a sequence.
func (c *Collection) IDOf(run uint32, seq uint64) uuid.UUID {
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

// RunOf returns the run in a result of History, and whether that is of this epoch.
func (c *Collection) RunOf(history uuid.UUID) (run uint32, ok bool) {
	run = c.runIn(history)
	return run, c.History(run) == history
}

// SequenceOf is the inverse of [Collection.ID]: it returns the run and the sequence in the identifier of an entry. ok
// reports whether the identifier is of this epoch.
func (c *Collection) SequenceOf(id uuid.UUID) (run uint32, seq uint64, ok bool) {
	for _, b := range id[10:] {
		seq = seq<<8 | uint64(b)
	}
	run = c.runIn(id)
	return run, seq, seq > 0 && c.IDOf(run, seq) == id
}
