package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tmshare/tmshare/internal/store/collections"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
)

func (db *DB) snapshotFiles(c *Collection) snapshotsOf {
	return snapshotsOf{Store: db.files, Epoch: c.Epoch}
}

// TakeSnapshot writes the present map to a file, and keeps the newest keep snapshots. If nothing has changed since the
// newest, it returns that one. It does not block reading and publishing.
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
		if err := db.MayWrite(); err != nil {
			return err
		}
		taken = true
		if s, err = db.snapshotFiles(&c).Write(ctx, v.Source(), c.SP); err != nil {
			return err
		}
		return s.State(v.tx, &c)
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
		if s != nil {
			db.removeSnapshot(ctx, &c, s)
		}
		err = db.unlessDeleted(context.WithoutCancel(ctx), &c, err)
	}
	if err != nil {
		return nil, err
	}
	for i := range old {
		db.removeSnapshot(ctx, &c, &old[i])
	}
	return listed, nil
}

// unlessDeleted returns err, or ErrNotFound where c was deleted meanwhile, and its
// files with it: that may be why.
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
	all, unread := db.Collections(ctx)
	if unread != nil || slices.ContainsFunc(all, func(other Collection) bool { return other.Epoch == c.Epoch }) {
		return gone // it has another name
	}
	db.snapshotFiles(c).RemoveAll(ctx) // it was created again
	return gone
}

// listSnapshot lists a snapshot whose files are written, and drops those beyond the newest keep. If another one was
// listed meanwhile that makes this one needless, it drops this one, and listed is the other.
func (db *DB) listSnapshot(ctx context.Context, c *Collection, s *Snapshot,
	keep int) (listed *Snapshot, old []Snapshot, err error) {
	err = db.rows.UpdateOf(ctx, c.Name, func(t *txn.Tx) error {
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
		if err := s.List(t, c); err != nil {
			return err
		}
		all = slices.Insert(all, at, *s)
		if listed = &all[at]; at >= keep {
			listed = &all[0]
		}
		for len(all) > keep {
			last := all[len(all)-1]
			all, old = all[:len(all)-1], append(old, last)
			if err := t.Delete(c.Log().Numbered(keys.TableSnapshot, last.Seq)); err != nil {
				return err
			}
		}
		return nil
	})
	return listed, old, err
}

func (db *DB) removeSnapshot(ctx context.Context, c *Collection, s *Snapshot) {
	db.snapshotFiles(c).Remove(ctx, s.ID)
}

// DropLostSnapshots removes those snapshots of a collection from the list whose files are missing or were replaced, and
// removes their remaining files. It reads only the end of each file. dropped are the removed ones.
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
			f, err := v.OpenSnapshot(&all[i])
			switch {
			case errors.Is(err, ErrLost):
				lost = append(lost, all[i])
			case err != nil:
				return err
			default:
				f.Close()
			}
		}
		return nil
	})
	if err != nil || len(lost) == 0 {
		return nil, err
	}
	err = db.rows.UpdateOf(ctx, name, func(t *txn.Tx) error {
		dropped = nil
		now, err := collections.Get(t, name)
		if err != nil || now.Epoch != c.Epoch {
			return err
		}
		// one that was superseded meanwhile has no files either
		listed, err := (&View{Collection: c, db: db, tx: t}).Snapshots()
		if err != nil {
			return err
		}
		for _, s := range lost {
			if !slices.ContainsFunc(listed, func(other Snapshot) bool { return other.ID == s.ID }) {
				continue
			}
			dropped = append(dropped, s)
			if err := t.Delete(c.Log().Numbered(keys.TableSnapshot, s.Seq)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i := range dropped {
		db.removeSnapshot(ctx, &c, &dropped[i])
	}
	return dropped, nil
}
