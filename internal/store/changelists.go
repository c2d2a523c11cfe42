package store

import (
	"context"
	"time"

	"github.com/tmshare/tmshare/internal/store/collections"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// The change lists of ResourceSync cut the log at places of their own: after a number of
// changes, or after a while. A list that is closed stays as it is for ever. The lists begin
// when somebody asks for them first: what was before is in the first resource list.

// ChangeList is a row of entries of the log: all that changed after From, up to Until.
type ChangeList struct {
	Number      uint64
	First, Last uint64 // sequences of entries
	From, Until time.Time
}

// Cut says when a change list is closed: when it has so many changes, or when its first
// change is so old. Zero values set no limit. The last change stays open, whatever its age:
// the schemas of ResourceSync, and some readers, take no list without any.
type Cut struct {
	Changes uint64
	After   time.Duration
}

// CutChanges begins the change lists of a collection behind the entry with the sequence
// after, which was at the given time, unless they have begun before; and closes those that
// are due, if the collection passes all checks. Where the open list was pruned it begins anew, and
// the closed ones are dropped. It returns the collection after that.
func (db *DB) CutChanges(ctx context.Context, name string, after uint64, at time.Time, cut Cut, checks ...func(*Collection) error) (*Collection, error) {
	return db.update(ctx, name, checks, func(t *txn.Tx, c *Collection) error {
		if c.Changes == nil {
			c.Changes = &Changes{Open: after + 1, OpenFrom: at}
		}
		v := &View{Collection: *c, db: db, tx: t}
		if c.Changes.Pruned(c.Horizon) { // the closed lists lead to what is in no list any more
			c.Changes.Open, c.Changes.OpenFrom = c.Horizon+1, c.HorizonTime
			if err := v.dropChangeLists(c.Changes.Closed); err != nil {
				return err
			}
		}
		for {
			last, err := v.due(c.Changes, cut, db.now())
			if err != nil {
				return err
			}
			if last == 0 {
				return collections.Put(t, c)
			}
			if err := v.closeChanges(c.Changes, last); err != nil {
				return err
			}
		}
	})
}

// due returns the sequence of the last entry of the open list if it is to be closed, else
// 0.
func (v *View) due(changes *Changes, cut Cut, now time.Time) (uint64, error) {
	switch n := v.Head + 1 - changes.Open; {
	case n <= 1:
		return 0, nil
	case cut.Changes > 0 && n > cut.Changes:
		return changes.Open + cut.Changes - 1, nil
	case cut.After == 0:
		return 0, nil
	}
	first, err := v.entry(changes.Open)
	if err != nil || now.Sub(first.Updated) < cut.After {
		return 0, err
	}
	return v.Head - 1, nil
}

func (v *View) closeChanges(changes *Changes, last uint64) error {
	e, err := v.entry(last)
	if err != nil {
		return err
	}
	changes.Closed++
	list := ChangeList{changes.Closed, changes.Open, last, changes.OpenFrom, e.Updated}
	changes.Open, changes.OpenFrom = last+1, e.Updated
	return v.tx.PutJSON(v.Log().Numbered(keys.TableChangeList, list.Number), list)
}

// ChangeLists returns the closed change lists that are kept, the oldest first.
func (v *View) ChangeLists() ([]ChangeList, error) {
	var all []ChangeList
	for r, err := range v.tx.Scan(v.Log().Key(keys.TableChangeList), nil) {
		var list ChangeList
		if err == nil {
			err = txn.Decode(r, &list)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, list)
	}
	return all, nil
}

// DropChangeLists removes the closed change lists up to a number.
func (db *DB) DropChangeLists(ctx context.Context, name string, upTo uint64) error {
	_, err := db.update(ctx, name, nil, func(t *txn.Tx, c *Collection) error {
		return (&View{Collection: *c, db: db, tx: t}).dropChangeLists(upTo)
	})
	return err
}

func (v *View) dropChangeLists(upTo uint64) error {
	lists, err := v.ChangeLists()
	for i := range lists {
		if err == nil && lists[i].Number <= upTo {
			err = v.tx.Delete(v.Log().Numbered(keys.TableChangeList, lists[i].Number))
		}
	}
	return err
}
