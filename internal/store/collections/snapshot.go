package collections

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"

	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// Snapshot is a whole map at one moment, kept as a gzipped file in XTM 2.1.
type Snapshot struct {
	ID      uuid.UUID
	Seq     uint64    // of the last entry that it contains
	Updated time.Time // of that entry
	// the number of the commit that the state is of, as the origin counts; 0: it is between two commits of the origin, or
	// not known
	Commit uint64 `json:",omitempty"`
	Topics int
	Digest string `json:",omitempty"` // of the state
	Size   int64  // of the file, in bytes
	End    uint64 // of the file: see GzipEnd
}

// State notes which state of the collection the snapshot has: the present one.
func (s *Snapshot) State(t *txn.Tx, c *Collection) (err error) {
	s.Seq, s.Updated, s.Topics, s.Commit = c.Head, c.Updated, c.Topics, c.Head
	if c.Replica != nil {
		e, err := At(t, c, c.Head)
		if err != nil {
			return err
		}
		if e == nil || e.Commit != c.Head {
			s.Commit = 0
		}
	}
	s.Digest, err = c.Digest(t)
	return err
}

// List adds a snapshot to the list.
func (s *Snapshot) List(t *txn.Tx, c *Collection) error {
	return t.PutJSON(c.Log().Numbered(keys.TableSnapshot, s.Seq), s)
}

// ErrLost is the error for a snapshot file that is missing or was replaced. DropLostSnapshots removes the snapshot from
// the list.
var ErrLost = errors.New("the file of a snapshot is lost")

// GzipEnd returns the last 8 bytes of a gzip file: the checksum and the length of its content (RFC 1952 §2.3.1).
// A reader that unpacks the file compares them, so a file that ends as it was written has the content that was written,
// or is refused.
func GzipEnd(f io.ReaderAt, size int64) (uint64, error) {
	var b [8]byte
	_, err := f.ReadAt(b[:], size-int64(len(b)))
	return binary.LittleEndian.Uint64(b[:]), err
}

// Check returns ErrLost unless a file of so many bytes is the one of the snapshot, by its length and its end.
func (s *Snapshot) Check(f io.ReaderAt, size int64) error {
	if size != s.Size {
		return fmt.Errorf("%w: snapshot %s has %d bytes, not %d", ErrLost, s.ID, size, s.Size)
	}
	if now, err := GzipEnd(f, size); err != nil || now != s.End {
		return errors.Join(fmt.Errorf("%w: snapshot %s has another content than was written", ErrLost, s.ID), err)
	}
	return nil
}
