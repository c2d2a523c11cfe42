package txn

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tmshare/tmshare/internal/kv"
)

// Await waits until the version of the present state differs from since, and returns it; at once if since is zero.
// Commits of this DB are noticed without a query. For other processes that share the engine, one query serves all
// waiting callers, at the shortest of their intervals (every).
func (db *DB) Await(ctx context.Context, since kv.Version, every time.Duration) (kv.Version, error) {
	w := &waiter{since, every, make(chan found, 1)}
	if err := db.enter(w); err != nil {
		return since, err
	}
	defer db.awaited.leave(w)
	select {
	case f := <-w.found:
		return f.version, f.err
	case <-ctx.Done():
		return since, context.Cause(ctx)
	case <-db.stopped.Done():
		return since, kv.ErrClosed
	}
}

// Committed makes waiting callers compare the version after a commit.
func (db *DB) Committed() { db.awaited.wake() }

// awaited are the callers that wait for a commit.
type awaited struct {
	mu      sync.Mutex
	waiters map[*waiter]bool
	asking  bool
	again   chan struct{} // buffered once: a commit, or a new caller
}

type waiter struct {
	since kv.Version
	every time.Duration
	found chan found // of one place
}

type found struct {
	version kv.Version
	err     error
}

func (db *DB) enter(w *waiter) error {
	db.open.RLock()
	defer db.open.RUnlock()
	if db.closed {
		return kv.ErrClosed
	}
	a := &db.awaited
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waiters[w] = true
	if a.asking {
		a.wake()
	} else {
		a.asking = true
		db.Go(db.ask)
	}
	return nil
}

func (a *awaited) leave(w *waiter) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.waiters, w)
}

func (a *awaited) wake() {
	select {
	case a.again <- struct{}{}:
	default: // that is known already
	}
}

// ask queries the version while there are waiting callers.
func (db *DB) ask(ctx context.Context) {
	a := &db.awaited
	for {
		asked := a.all() // before the query, because later callers may know a later version
		before := db.lineage.seen()
		version, err := db.Engine.Version(ctx)
		if err == nil {
			db.lineage.saw(before, version)
		}
		every, anybody := a.tell(asked, version, err)
		if !anybody {
			return
		}
		var due <-chan time.Time
		if db.Shared {
			due = time.After(every)
		}
		select {
		case <-a.again:
		case <-due:
		case <-ctx.Done(): // all waiting ends with it
		}
	}
}

func (a *awaited) all() []*waiter {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Collect(maps.Keys(a.waiters))
}

// tell passes the result to the callers from before the query. It returns the interval that the others request, and
// whether there are any.
func (a *awaited) tell(asked []*waiter, version kv.Version, err error) (every time.Duration, anybody bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, w := range asked {
		if a.waiters[w] && (err != nil || !version.Same(w.since)) {
			delete(a.waiters, w)
			w.found <- found{version, err}
		}
	}
	for w := range a.waiters {
		if every == 0 || w.every < every {
			every = w.every
		}
	}
	a.asking = len(a.waiters) > 0
	return every, a.asking
}
