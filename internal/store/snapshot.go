package store

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/uuid"
	"github.com/klauspost/compress/gzip"

	"github.com/tmshare/tmshare/internal/durable"
	"github.com/tmshare/tmshare/internal/store/collections"
	"github.com/tmshare/tmshare/internal/store/datafolder"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/xtm"
)

func (db *DB) snapshotFolder(c *Collection) string {
	return filepath.Join(db.dir, datafolder.Snapshots, c.Epoch.String())
}

// snapshotFile returns the path of a snapshot's file.
func (db *DB) snapshotFile(c *Collection, s *Snapshot, version xtm.Version) string {
	return filepath.Join(db.snapshotFolder(c), s.ID.String()+datafolder.SnapshotExt(version))
}

// TakeSnapshot writes the map as it is now to files, and keeps the newest keep
// snapshots. Where nothing has changed since the newest, it returns that one.
// Reading and publishing go on meanwhile.
func (db *DB) TakeSnapshot(ctx context.Context, name string, keep int) (*Snapshot, error) {
	var s *Snapshot
	var c Collection
	taken := false
	err := db.View(ctx, name, func(v *View) error {
		c = v.Collection
		all, err := v.Snapshots()
		if err != nil {
			return err
		}
		if len(all) > 0 && all[0].Seq == v.Head {
			s = &all[0]
			return nil
		}
		if err := db.CheckFreeSpace(); err != nil {
			return err
		}
		taken = true
		digest, err := c.Digest(v.tx)
		if err != nil {
			return err
		}
		s = &Snapshot{ID: uuid.New(), Seq: v.Head, Updated: v.Updated, Topics: v.Topics, Digest: digest, Sizes: map[xtm.Version]int64{}, Ends: map[xtm.Version]uint64{}}
		for _, version := range Forms {
			if s.Sizes[version], err = db.writeSnapshotFile(ctx, v, s, version); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && !taken {
		return s, nil
	}
	var listed *Snapshot
	var old []Snapshot
	if err == nil {
		listed, old, err = db.listSnapshot(ctx, &c, s, max(keep, 1))
	}
	if err != nil && taken {
		db.removeSnapshot(&c, s)
		err = db.unlessDeleted(context.WithoutCancel(ctx), &c, err)
	}
	if err != nil {
		return nil, err
	}
	for i := range old {
		db.removeSnapshot(&c, &old[i])
	}
	return listed, nil
}

// unlessDeleted returns err, or ErrNotFound where c was deleted meanwhile, and its
// folder with it: that may be why.
func (db *DB) unlessDeleted(ctx context.Context, c *Collection, err error) error {
	gone := db.View(ctx, c.Name, func(v *View) error {
		if v.Epoch != c.Epoch {
			return fmt.Errorf("%w: collection %q, which was created anew meanwhile", ErrNotFound, c.Name)
		}
		return nil
	})
	if !errors.Is(gone, ErrNotFound) {
		return err
	}
	os.RemoveAll(db.snapshotFolder(c)) // where it was made anew
	return gone
}

// listSnapshot lists a snapshot whose files are written, and drops those beyond
// the newest keep. Where another was listed meanwhile that makes this one
// needless, it is the one to drop, and listed is the other.
func (db *DB) listSnapshot(ctx context.Context, c *Collection, s *Snapshot, keep int) (listed *Snapshot, old []Snapshot, err error) {
	err = db.rows.Update(ctx, func(t *txn.Tx) error {
		listed, old = nil, nil
		now, err := collections.Get(t, c.Name)
		if err == nil && now.Epoch != c.Epoch {
			err = fmt.Errorf("%w: collection %q, which was created anew meanwhile", ErrNotFound, c.Name)
		}
		if err != nil {
			return err
		}
		all, err := (&View{Collection: *c, db: db, tx: t}).Snapshots()
		if err != nil {
			return err
		}
		at := slices.IndexFunc(all, func(other Snapshot) bool { return other.Seq <= s.Seq })
		if at < 0 {
			at = len(all)
		}
		if at < len(all) && all[at].Seq == s.Seq {
			listed, old = &all[at], []Snapshot{*s}
			return nil
		}
		if err := t.PutJSON(keys.Sequence(keys.TableSnapshot, c.Number, s.Seq), s); err != nil {
			return err
		}
		all = slices.Insert(all, at, *s)
		if listed = &all[at]; at >= keep {
			listed = &all[0]
		}
		for len(all) > keep {
			last := all[len(all)-1]
			all, old = all[:len(all)-1], append(old, last)
			if err := t.Delete(keys.Sequence(keys.TableSnapshot, c.Number, last.Seq)); err != nil {
				return err
			}
		}
		return nil
	})
	return listed, old, err
}

// removeSnapshot removes the files of a snapshot. What stays behind goes when
// the store is opened.
func (db *DB) removeSnapshot(c *Collection, s *Snapshot) {
	for _, version := range Forms {
		os.Remove(db.snapshotFile(c, s, version))
	}
}

// writeSnapshotFile writes one form under a temporary name, syncs it and renames
// it into place.
func (db *DB) writeSnapshotFile(ctx context.Context, v *View, s *Snapshot, version xtm.Version) (size int64, err error) {
	path := db.snapshotFile(&v.Collection, s, version)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return 0, err
	}
	if err := durable.SyncFolder(filepath.Dir(filepath.Dir(path))); err != nil { // the folder may be new
		return 0, err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "*.tmp")
	if err != nil {
		return 0, err
	}
	defer func() {
		f.Close()
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	buffer := bufio.NewWriterSize(f, 64<<10)
	z := gzip.NewWriter(buffer)
	if err := v.WriteSnapshot(durable.ContextWriter{Context: ctx, Writer: z}, version); err != nil {
		return 0, err
	}
	if err := z.Close(); err != nil {
		return 0, err
	}
	if err := buffer.Flush(); err != nil {
		return 0, err
	}
	if err := f.Sync(); err != nil {
		return 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	if s.Ends[version], err = collections.GzipEnd(f, info.Size()); err != nil {
		return 0, err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return 0, err
	}
	return info.Size(), durable.SyncFolder(filepath.Dir(path))
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
		now, err := collections.Get(t, name)
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
