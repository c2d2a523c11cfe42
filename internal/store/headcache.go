package store

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"time"

	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/store/files"
	"github.com/tmshare/tmshare/internal/store/inputs"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// Latest is a present collection with its snapshots, the newest first, which suffices to answer most requests, and to
// decide whether readers have the answer already. It is shared and must not be changed.
type Latest struct {
	Collection
	Snapshots []Snapshot
	Openings  []string // the last ones of the database, the newest first
	db        *DB
}

// latestAt is the data read of a state.
type latestAt struct {
	version kv.Version
	turns   uint64    // of the history of the database, see [txn.Lineage]
	checked time.Time // see [View.Checked]; of a replica
	*Latest
}

// Version identifies a state of all collections and subscriptions.
type Version = kv.Version

// Version returns the version of the present state, which each commit changes, including those of other stores on the
// engine. With a context of [Once] it may be that of the first call.
func (db *DB) Version(ctx context.Context) (Version, error) { return db.rows.Version(ctx) }

// VersionAt is [txn.DB.VersionAt].
func (db *DB) VersionAt(ctx context.Context) (Version, time.Time, error) {
	return db.rows.VersionAt(ctx)
}

// Await is [txn.DB.Await].
func (db *DB) Await(ctx context.Context, since Version, every time.Duration) (Version, error) {
	return db.rows.Await(ctx, since, every)
}

// Once is [txn.Once].
func Once(ctx context.Context) context.Context { return txn.Once(ctx) }

// Listing is all that a node publishes and follows.
type Listing = inputs.Listing

// Listing is [inputs.Lister.Listing].
func (db *DB) Listing(ctx context.Context) (*Listing, error) { return db.lister.Listing(ctx, db.rows) }

// Latest returns a collection as it is now. It caches the result until the next commit, and returns the same pointer
// while the content is the same.
func (db *DB) Latest(ctx context.Context, name string) (*Latest, error) {
	l, _, err := db.LatestAt(ctx, name)
	return l, err
}

// LatestAt is Latest, with the result of [View.Checked] of that state.
func (db *DB) LatestAt(ctx context.Context, name string) (l *Latest, checked time.Time, err error) {
	version, at, err := db.rows.VersionAt(ctx)
	if err != nil {
		return nil, at, err
	}
	turns, known := db.rows.Lineage().Turns, db.latestAt(name, version)
	if known != nil {
		if known.Replica != nil {
			at = known.checked
		}
		return known.Latest, at, nil
	}
	l = &Latest{db: db}
	err = db.View(ctx, name, func(v *View) (err error) {
		version, l.Collection = v.tx.Version(), v.Collection
		checked, err = v.Checked()
		if now := db.latestAt(name, version); now != nil { // the commits of others are known by now
			l = now.Latest
			return err
		}
		opened, snapshots := error(nil), error(nil)
		l.Openings, opened = v.Opened()
		l.Snapshots, snapshots = v.Snapshots()
		return errors.Join(err, opened, snapshots)
	})
	if err != nil {
		return nil, checked, err
	}
	return db.remember(&latestAt{version, turns, checked, l}).Latest, checked, nil
}

// latestAt returns the cached data of a collection if it is the same in the state with a version, else nil.
func (db *DB) latestAt(name string, version Version) *latestAt {
	cached, ok := db.latest.Load(name)
	if !ok {
		return nil
	}
	l := cached.(*latestAt)
	if l.version.Same(version) {
		return l
	}
	spaces := db.rows.Engine.Changed(l.version, version)
	if spaces == nil || spaces[keys.Names] || spaces[l.Number] || spaces[l.SourceKey().Number] {
		return nil
	}
	return db.remember(&latestAt{version, l.turns, l.checked, l.Latest})
}

// published caches a collection after a publication, so that it need not be read again. Its snapshots are unchanged.
func (db *DB) published(t *txn.Tx, c *Collection) {
	before := db.latestAt(c.Name, t.Version())
	if before == nil {
		return
	}
	now := &Latest{Snapshots: before.Snapshots, Openings: before.Openings, db: db}
	row, err := json.Marshal(c)
	if err == nil && json.Unmarshal(row, &now.Collection) == nil { // as its readers have it
		db.remember(&latestAt{version: t.Led(), turns: before.turns, Latest: now})
	}
}

// remember caches the data of a state, unless a later one is cached, because reads are concurrent. It returns the data,
// with the cached collection if that has the same content.
func (db *DB) remember(now *latestAt) *latestAt {
	db.keeps.Lock()
	defer db.keeps.Unlock()
	if before, ok := db.latest.Load(now.Name); ok {
		known := before.(*latestAt)
		if now.Latest != known.Latest && reflect.DeepEqual(now.Collection, known.Collection) &&
			reflect.DeepEqual(now.Snapshots, known.Snapshots) && slices.Equal(now.Openings, known.Openings) {
			now.Latest = known.Latest
		}
		if known.turns > now.turns || known.turns == now.turns && known.version.Number > now.version.Number {
			return now
		}
	}
	if now.version.Number > 0 {
		db.latest.Store(now.Name, now)
	}
	return now
}

// OpenSnapshot is [View.OpenSnapshot]. The file is of no use once ctx has ended.
func (l *Latest) OpenSnapshot(ctx context.Context, s *Snapshot) (files.File, error) {
	return l.db.snapshotFiles(&l.Collection).Open(ctx, s)
}
