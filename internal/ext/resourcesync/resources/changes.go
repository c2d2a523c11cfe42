package resources

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/past"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// Change lists divide the log at their own places: after a number of changes, or after a time. A closed list never
// changes. The lists begin with the first request for them; earlier changes are in the first resource list.

// The kinds of rows of a collection: the first byte after the prefix of this extension.
const (
	kindChanges = 'c' // nothing → Changes (JSON)
	kindList    = 'g' // number → ChangeList (JSON)
	kindForm    = 'j' // sequence → RecordForm (JSON)
)

// key returns the key of a row.
func key(v *store.View, kind byte, number ...uint64) []byte {
	k := append(v.Extension("resourcesync"), kind)
	for _, n := range number {
		k = binary.BigEndian.AppendUint64(k, n)
	}
	return k
}

// Changes is the division of the log into change lists.
type Changes struct {
	Closed   uint64      // number of closed lists; they are numbered from 1
	Open     uint64      // sequence of the first entry of the one that is not
	OpenFrom time.Time   // its beginning: the time of the previous entry
	Noted    past.Cursor // after the entries with notes, see [Folder.Note]
	Dropped  uint64      // the horizon up to which notes were removed
}

// ChangesOf returns the division of the log; nil if change lists were never requested.
func ChangesOf(v *store.View) (*Changes, error) {
	c := &Changes{}
	if known, err := v.Tx().GetJSON(key(v, kindChanges), c); !known || err != nil {
		return nil, err
	}
	return c, nil
}

func (c *Changes) put(v *store.View) error { return v.Tx().PutJSON(key(v, kindChanges), c) }

// Pruned reports whether changes of the open list were pruned while lists were not offered. Then the list must not be
// read.
func (c *Changes) Pruned(horizon uint64) bool { return c.Open <= horizon }

// ChangeList is a row of entries of the log: all that changed after From, up to Until.
type ChangeList struct {
	Number      uint64
	First, Last uint64 // sequences of entries
	From, Until time.Time
}

// Cut is the number of changes, and the age of the first change, at which a change list is closed. Zero values set no
// limit. The last change stays in an open list at any age, because the schemas of ResourceSync, and some readers,
// accept no empty list.
type Cut struct {
	Changes uint64
	After   time.Duration
}

// CutChanges begins the change lists of a collection after the entry with the sequence after, of the given time, unless
// they have begun; and closes lists that are due. The collection must be the one of the site. If the open list was
// pruned, it begins again, and the closed ones are dropped. It returns the resulting division.
func (f *Folder) CutChanges(ctx context.Context, site *Site, name string, after uint64, at time.Time, cut Cut,
	now time.Time) (c *Changes, err error) {
	err = f.Store.Extend(ctx, name, func(v *store.View) error {
		if err := site.Check(&v.Collection); err != nil {
			return err
		}
		if c, err = ChangesOf(v); err != nil {
			return err
		}
		if c == nil {
			c = &Changes{Open: after + 1, OpenFrom: at}
		}
		if c.Pruned(v.Horizon) { // the open list after the closed ones has a gap
			c.Open, c.OpenFrom = v.Horizon+1, v.HorizonTime
			if err := dropChangeLists(v, c.Closed); err != nil {
				return err
			}
		}
		for {
			last, err := c.Due(v, cut, now)
			if err != nil {
				return err
			}
			if last == 0 {
				return c.put(v)
			}
			if err := c.close(v, last); err != nil {
				return err
			}
		}
	})
	return c, err
}

// Due returns the sequence of the last entry of the open list if it is to be closed; else 0.
func (c *Changes) Due(v *store.View, cut Cut, now time.Time) (uint64, error) {
	switch n := v.Head + 1 - c.Open; {
	case n <= 1:
		return 0, nil
	case cut.Changes > 0 && n > cut.Changes:
		return c.Open + cut.Changes - 1, nil
	case cut.After == 0:
		return 0, nil
	}
	first, err := v.Entry(c.Open)
	if err != nil || now.Sub(first.Updated) < cut.After {
		return 0, err
	}
	return v.Head - 1, nil
}

func (c *Changes) close(v *store.View, last uint64) error {
	e, err := v.Entry(last)
	if err != nil {
		return err
	}
	c.Closed++
	list := ChangeList{c.Closed, c.Open, last, c.OpenFrom, e.Updated}
	c.Open, c.OpenFrom = last+1, e.Updated
	return v.Tx().PutJSON(key(v, kindList, list.Number), list)
}

// ChangeLists returns the closed change lists that are kept, the oldest first.
func ChangeLists(v *store.View) (all []ChangeList, err error) {
	return txn.List[ChangeList](v.Tx(), key(v, kindList), nil)
}

// DropChangeLists removes the closed change lists up to a number.
func (f *Folder) DropChangeLists(ctx context.Context, name string, upTo uint64) error {
	return f.Store.Extend(ctx, name, func(v *store.View) error { return dropChangeLists(v, upTo) })
}

func dropChangeLists(v *store.View, upTo uint64) error {
	lists, err := ChangeLists(v)
	for i := range lists {
		if err == nil && lists[i].Number <= upTo {
			err = v.Tx().Delete(key(v, kindList, lists[i].Number))
		}
	}
	return err
}

// Check checks that a collection is the one that the site is of.
func (s *Site) Check(c *store.Collection) error {
	if c.Epoch != s.Epoch {
		return fmt.Errorf("%w: collection %q, which was created anew meanwhile", store.ErrNotFound, c.Name)
	}
	return nil
}
