package store

import (
	"context"
	"os"
	"reflect"

	"github.com/tmshare/tmshare/internal/kv"
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

// latestAt is what was read of a state.
type latestAt struct {
	version kv.Version
	*Latest
}

// Version stands for a state of all collections and subscriptions.
type Version = kv.Version

// Version returns the version of the present state, which each commit changes, those of other
// stores over the engine too.
func (db *DB) Version(ctx context.Context) (Version, error) { return db.rows.Engine.Version(ctx) }

// Latest returns a collection as it is now. It costs nothing as long as nothing is
// committed, and it is the same pointer as long as it says the same.
func (db *DB) Latest(ctx context.Context, name string) (*Latest, error) {
	version, err := db.rows.Engine.Version(ctx)
	if err != nil {
		return nil, err
	}
	var known *latestAt
	if before, ok := db.latest.Load(name); ok {
		if known = before.(*latestAt); known.version.Same(version) {
			return known.Latest, nil
		}
	}
	l := &Latest{db: db}
	err = db.View(ctx, name, func(v *View) (err error) {
		version, l.Collection = v.tx.Version(), v.Collection
		l.Snapshots, err = v.Snapshots()
		return err
	})
	if err != nil {
		return nil, err
	}
	if known != nil && reflect.DeepEqual(l.Collection, known.Collection) && reflect.DeepEqual(l.Snapshots, known.Snapshots) {
		l = known.Latest
	}
	if version != kv.Unsettled {
		db.latest.Store(name, &latestAt{version, l})
	}
	return l, nil
}

// OpenSnapshot is [View.OpenSnapshot].
func (l *Latest) OpenSnapshot(s *Snapshot, version xtm.Version) (*os.File, error) {
	v := View{Collection: l.Collection, db: l.db}
	return v.OpenSnapshot(s, version)
}
