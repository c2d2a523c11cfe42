package txn

import (
	"context"
	"sync"

	"github.com/tmshare/tmshare/internal/kv"
)

// Version returns the version of the present state. With a context of [Once] it may be that of when the first was asked for.
func (db *DB) Version(ctx context.Context) (kv.Version, error) {
	known, ok := ctx.Value(onceKey{}).(*once)
	if !ok {
		return db.Engine.Version(ctx)
	}
	known.mu.Lock()
	defer known.mu.Unlock()
	var err error
	if known.version == kv.Unsettled {
		known.version, err = db.Engine.Version(ctx)
	}
	return known.version, err
}

type onceKey struct{}

// once is a version that is asked for once.
type once struct {
	mu      sync.Mutex
	version kv.Version
}

// Once returns a context for one request that reads: the version of the state is asked for once, since a database may be far
// away. What is remembered of a version is then as of the beginning of the request, or later.
func Once(ctx context.Context) context.Context { return context.WithValue(ctx, onceKey{}, &once{}) }
