package txn

import (
	"context"
	"sync"
	"time"

	"github.com/tmshare/tmshare/internal/kv"
)

// Version returns the version of the present state. With a context of [Once] it may be that of when the first was asked
// for.
func (db *DB) Version(ctx context.Context) (kv.Version, error) {
	version, _, err := db.VersionAt(ctx)
	return version, err
}

// VersionAt is Version, and a time at which that was the version of the present state: of an engine that lags behind it
// is an earlier time than now; zero where that is not known.
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
	at, before := db.Now(), db.lineage.seen() // before the question: what is committed meanwhile may be missing
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

// once is a version that is asked for once.
type once struct {
	mu      sync.Mutex
	version kv.Version
	at      time.Time
}

// Once returns a context for one request that reads: the version of the state is asked for once, since a database may
// be far away. What is remembered of a version is then as of the beginning of the request, or later.
func Once(ctx context.Context) context.Context { return context.WithValue(ctx, onceKey{}, &once{}) }
