// Package moving keeps marks in a store that must not be opened: one being filled by a restore or a move, and one that
// was moved elsewhere.
//
// A store in a database is filled in many commits. The mark is written first and removed last, so that after any kill
// nobody opens a partial store. A moved store is marked before the new one can be opened, so that two with the same
// history never exist.
package moving

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"iter"
	"time"

	"github.com/google/uuid"

	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/seq"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
)

var (
	// ErrFilling is the error for a store that is not complete.
	ErrFilling = errors.New(
		"the store is not complete: a restore or a move into it was interrupted, or is under way; run it again, which " +
			"begins anew")
	// ErrMoved is the error for a store that was moved elsewhere.
	ErrMoved = errors.New("the store was moved")
	// ErrNotEmpty is the error for filling a store that is not empty.
	ErrNotEmpty = errors.New(
		"the store is not empty: restore or move into a new one, such as another schema (?search_path=NAME)")
	// ErrTaken is the error for a store that another process is filling now.
	ErrTaken = errors.New("another restore or move into the store has begun meanwhile")
)

var (
	filling = keys.Meta("filling") // the identifier of the process that fills the store
	moved   = keys.Meta("moved")   // Moved (JSON)
)

// Moved is the place to which a store was moved.
type Moved struct {
	To string // a folder, or an address without a password
	At time.Time
}

// Check returns the reason not to use a store: [ErrFilling], or [ErrMoved] unless it is opened for another move. It
// reads once.
func Check(t *txn.Tx, evenMoved bool) error {
	for r, err := range t.ScanInPlace(keys.Once(keys.TableMeta), nil) {
		switch {
		case err != nil:
			return err
		case bytes.Equal(r.Key, filling):
			return ErrFilling
		case bytes.Equal(r.Key, moved) && !evenMoved:
			var m Moved
			if err := txn.Decode(r, &m); err != nil {
				return txn.Corrupt("meta", r.Key, err)
			}
			return fmt.Errorf(
				"%w to %s at %s: use that. If it is lost for good, or that move was interrupted, move this one with --again",
				ErrMoved, m.To, m.At.Format(time.RFC3339))
		}
	}
	return nil
}

// Begin marks a store as being filled, and removes the rows of an interrupted filling. If there are other rows than
// every store has, the error is [ErrNotEmpty].
func Begin(ctx context.Context, db *txn.DB) (by uuid.UUID, err error) {
	by = uuid.New()
	err = db.Update(ctx, func(t *txn.Tx) error {
		interrupted, err := t.Get(filling)
		if err != nil {
			return err
		}
		if interrupted == nil {
			err = IsEmpty(t)
		}
		if err != nil {
			return err
		}
		rows := t.ScanInPlace(keys.Once(keys.TableMeta), nil)
		if err := seq.Each(rows, func(r kv.Row) error { return t.Delete(bytes.Clone(r.Key)) }); err != nil {
			return err
		}
		return t.Put(filling, by[:])
	})
	if err != nil {
		return by, err
	}
	return by, empty(ctx, db)
}

// IsEmpty returns [ErrNotEmpty] if there are other rows than every store has.
func IsEmpty(t *txn.Tx) error {
	for r, err := range t.ScanInPlace(nil, nil) {
		if err == nil && !keys.Everywhere(r.Key) {
			err = ErrNotEmpty
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// empty removes all rows but those of the table with the mark.
func empty(ctx context.Context, db *txn.DB) error {
	for {
		var prefix []byte
		err := db.View(ctx, func(t *txn.Tx) error {
			for r, err := range t.ScanInPlace(nil, nil) {
				if err != nil {
					return err
				}
				switch number := keys.SourceOf(r.Key).Number; {
				case number != keys.Names:
					prefix = keys.Space(number)
				case keys.Table(r.Key) != keys.TableMeta:
					prefix = bytes.Clone(r.Key[:keys.SourceSize])
				default:
					continue
				}
				return nil
			}
			return nil
		})
		if err != nil || prefix == nil {
			return err
		}
		if err := db.Engine.DeletePrefix(ctx, prefix); err != nil {
			return err
		}
	}
}

// End removes the mark of Begin. If there is another one, the error is [ErrTaken].
func End(t *txn.Tx, by uuid.UUID) error {
	value, err := t.Get(filling)
	if err == nil && !bytes.Equal(value, by[:]) {
		err = ErrTaken
	}
	if err != nil {
		return err
	}
	return t.Delete(filling)
}

// Leave marks a store as moved. The error is [kv.ErrConflict] if there was a commit after the version since.
func Leave(ctx context.Context, engine kv.Engine, since kv.Version, m Moved) error {
	value, err := json.Marshal(m)
	if err != nil {
		return err
	}
	w, err := engine.Begin(ctx, since)
	if err != nil {
		return err
	}
	defer w.Cancel()
	if err := w.Put(moved, value); err != nil {
		return err
	}
	return w.Commit()
}

// Rows iterates over all rows of a state that another store of the node has as well: not those of
// files, of processes that share the store, and of marks. A row is valid until the next one.
func Rows(t *txn.Tx) iter.Seq2[kv.Row, error] {
	return func(yield func(kv.Row, error) bool) {
		var from []byte
		for more := true; more; {
			more = false
			for r, err := range t.ScanInPlace(nil, from) {
				switch {
				case err == nil && !keys.Moves(keys.SourceOf(r.Key).Number):
					from, more = keys.Space(keys.SourceOf(r.Key).Number+1), true
				case err == nil && (bytes.Equal(r.Key, filling) || bytes.Equal(r.Key, moved)):
					continue
				case !yield(r, err) || err != nil:
					return
				default:
					continue
				}
				break
			}
		}
	}
}

// Load writes rows to a store that is being filled.
func Load(ctx context.Context, engine kv.Engine, rows iter.Seq2[kv.Row, error]) error {
	bulk, err := engine.Bulk(ctx)
	if err != nil {
		return err
	}
	defer bulk.Cancel()
	put := func(r kv.Row) error { return bulk.Put(bytes.Clone(r.Key), bytes.Clone(r.Value)) }
	if err := seq.Each(rows, put); err != nil {
		return err
	}
	return bulk.Commit()
}

// Sum is a digest of rows, in the order of keys.
type Sum struct {
	Rows int64
	hash hash.Hash
}

// NewSum returns the digest of no rows.
func NewSum() *Sum { return &Sum{hash: sha256.New()} }

// Add adds a row.
func (s *Sum) Add(r kv.Row) {
	var length [2 * binary.MaxVarintLen64]byte
	s.Rows++
	s.hash.Write(binary.AppendUvarint(binary.AppendUvarint(length[:0], uint64(len(r.Key))), uint64(len(r.Value))))
	s.hash.Write(r.Key)
	s.hash.Write(r.Value)
}

// String returns the number of rows and the digest.
func (s *Sum) String() string { return fmt.Sprintf("%d %x", s.Rows, s.hash.Sum(nil)) }

// Equal reports whether two digests are of the same rows.
func (s *Sum) Equal(other *Sum) bool {
	return s.Rows == other.Rows && bytes.Equal(s.hash.Sum(nil), other.hash.Sum(nil))
}
