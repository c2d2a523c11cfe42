package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/xtm"
)

// ErrLost says that the file of a snapshot is missing, or is another one than was written.
// [DB.DropLostSnapshots] takes the snapshot off the list.
var ErrLost = errors.New("the file of a snapshot is lost")

// gzipEnd returns the last 8 bytes of a gzip file: the checksum and the length of its content (RFC 1952 §2.3.1). Whoever
// unpacks the file compares them, so a file that ends as it was written has the content that was written, or is refused.
func gzipEnd(f *os.File, size int64) (uint64, error) {
	var b [8]byte
	_, err := f.ReadAt(b[:], size-int64(len(b)))
	return binary.LittleEndian.Uint64(b[:]), err
}

// check returns ErrLost unless a file is the one of the snapshot, by its length and its end.
func (s *Snapshot) check(f *os.File, version xtm.Version) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if size, known := s.Sizes[version]; known && info.Size() != size {
		return fmt.Errorf("%w: snapshot %s has %d bytes, not %d", ErrLost, s.ID, info.Size(), size)
	}
	if end, known := s.Ends[version]; known {
		if now, err := gzipEnd(f, info.Size()); err != nil || now != end {
			return errors.Join(fmt.Errorf("%w: snapshot %s has another content than was written", ErrLost, s.ID), err)
		}
	}
	return nil
}

// DropLostSnapshots takes those snapshots of a collection off the list of which a file is
// missing, or another one than was written, and removes what there is of them. It reads only the
// end of each file. dropped are those that were listed until now.
func (db *DB) DropLostSnapshots(ctx context.Context, name string) (dropped []Snapshot, err error) {
	var c Collection
	var lost []Snapshot
	err = db.View(ctx, name, func(v *View) error {
		c = v.Collection
		all, err := v.Snapshots()
		if err != nil {
			return err
		}
		for i := range all {
			for _, version := range Forms {
				f, err := v.OpenSnapshot(&all[i], version)
				if errors.Is(err, ErrLost) {
					lost = append(lost, all[i])
					break
				}
				if err != nil {
					return err
				}
				f.Close()
			}
		}
		return nil
	})
	if err != nil || len(lost) == 0 {
		return nil, err
	}
	err = db.rows.Update(ctx, func(t *txn.Tx) error {
		dropped = nil
		now, err := getCollection(t, name)
		if err != nil || now.Epoch != c.Epoch {
			return err
		}
		listed, err := (&View{Collection: c, db: db, tx: t}).Snapshots() // one that was superseded meanwhile has no files either
		if err != nil {
			return err
		}
		for _, s := range lost {
			if !slices.ContainsFunc(listed, func(other Snapshot) bool { return other.ID == s.ID }) {
				continue
			}
			dropped = append(dropped, s)
			if err := t.Delete(keys.Sequence(keys.TableSnapshot, c.Number, s.Seq)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i := range dropped {
		db.removeSnapshot(&c, &dropped[i])
	}
	return dropped, nil
}
