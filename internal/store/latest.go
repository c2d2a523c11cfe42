package store

import (
	"os"

	"github.com/tmshare/tmshare/xtm"
)

// Latest is a collection as it is now, and its snapshots, the newest first: all
// that is needed to know what most readers ask for, and whether they have it
// already. It is shared and must not be changed.
type Latest struct {
	Collection
	Snapshots []Snapshot
	db        *DB
}

// latestAt is what was read when so many commits had begun or ended.
type latestAt struct {
	commits uint64
	*Latest
}

// Latest returns a collection as it is now. It costs nothing as long as nothing is
// committed.
func (db *DB) Latest(name string) (*Latest, error) {
	db.view.RLock()
	unusable := db.unusable
	db.view.RUnlock()
	if unusable != nil {
		return nil, unusable
	}
	commits := db.commits.Load()
	known, ok := db.latest.Load(name)
	if ok && known.(*latestAt).commits == commits {
		return known.(*latestAt).Latest, nil
	}
	l := &Latest{db: db}
	err := db.View(name, func(v *View) (err error) {
		l.Collection = v.Collection
		l.Snapshots, err = v.Snapshots()
		return err
	})
	if err != nil {
		return nil, err
	}
	if commits%2 == 0 { // else one is under way, which may show any moment
		db.latest.Store(name, &latestAt{commits, l})
	}
	return l, nil
}

// OpenSnapshot is [View.OpenSnapshot].
func (l *Latest) OpenSnapshot(s *Snapshot, version xtm.Version) (*os.File, error) {
	v := View{Collection: l.Collection, db: l.db}
	return v.OpenSnapshot(s, version)
}
