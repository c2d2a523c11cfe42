package txn

import (
	"context"
	"sync"
	"time"

	"github.com/tmshare/tmshare/internal/kv"
)

// Version returns the version of the present state. With a context of [Once] it may be that of the first call.
func (db *DB) Version(ctx context.Context) (kv.Version, error) {
	version, _, err := db.VersionAt(ctx)
	return version, err
}

// VersionAt is Version with a time at which that was the version of the present state: for an engine that lags behind,
// an earlier time than now; zero if unknown.
func (db *DB) VersionAt(ctx context.Context) (kv.Version, time.Time, error) {
	known, ok := ctx.Value(onceKey{}).(*once)
	if !ok {
		return db.askVersion(ctx)
	}
	known.mu.Lock()
	defer known.mu.Unlock()
	var err error
	if known.version.Number == 0 {
		known.version, known.at, err = db.askVersion(ctx)
	}
	return known.version, known.at, err
}

func (db *DB) isDated() bool {
	_, is := db.Engine.(kv.Dated)
	return is
}

func (db *DB) askVersion(ctx context.Context) (kv.Version, time.Time, error) {
	at, before := db.Now(), db.lineage.seen() // before the query, because later commits may be missing
	var version kv.Version
	var err error
	if dated, ok := db.Engine.(kv.Dated); ok {
		version, at, err = dated.VersionAt(ctx)
	} else {
		version, err = db.Engine.Version(ctx)
	}
	if err == nil {
		db.lineage.saw(before, version)
	}
	return version, at, err
}

type onceKey struct{}

// once is a version that is queried once.
type once struct {
	mu      sync.Mutex
	version kv.Version
	at      time.Time
}

// Once returns a context for one request that reads: it queries the version of the state once, because a database may
// be far away. Caches by version are then as of the begin of the request, or later.
func Once(ctx context.Context) context.Context { return context.WithValue(ctx, onceKey{}, &once{}) }
