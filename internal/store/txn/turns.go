package txn

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tmshare/tmshare/internal/kv"
)

// turns orders the updates of this process. An update of a name runs concurrently with those of other names; one
// without a name runs alone. Updates wait in the order of arrival, so none waits forever.
type turns struct {
	mu      sync.Mutex
	running []*turn
	waiting []*turn
}

type turn struct {
	name    string        // "": of all
	allowed chan struct{} // closed when it runs
}

func (t *turn) excludes(other *turn) bool {
	return t.name == "" || other.name == "" || t.name == other.name
}

// take returns when it is the turn of an update. done ends it.
func (ts *turns) take(ctx context.Context, name string) (done func(), err error) {
	t := &turn{name, make(chan struct{})}
	ts.mu.Lock()
	ts.waiting = append(ts.waiting, t)
	ts.allow()
	ts.mu.Unlock()
	done = func() {
		ts.mu.Lock()
		defer ts.mu.Unlock()
		is := func(other *turn) bool { return other == t }
		ts.running = slices.DeleteFunc(ts.running, is)
		ts.waiting = slices.DeleteFunc(ts.waiting, is)
		ts.allow()
	}
	select {
	case <-t.allowed:
		return done, nil
	default:
	}
	select {
	case <-t.allowed:
		return done, nil
	case <-ctx.Done():
		done()
		return nil, context.Cause(ctx)
	}
}

// allow starts the updates that conflict neither with a running one, nor with one that has waited longer.
func (ts *turns) allow() {
	var left []*turn
	for _, t := range ts.waiting {
		if slices.ContainsFunc(ts.running, t.excludes) || slices.ContainsFunc(left, t.excludes) {
			left = append(left, t)
			continue
		}
		ts.running = append(ts.running, t)
		close(t.allowed)
	}
	ts.waiting = left
}

// refusals count the updates that were refused because of other processes' commits.
type refusals struct {
	n             int
	reads, writes []uint32 // keyspaces of the last try
	all           bool     // it depended on all of the state
	began         time.Time
	took          time.Duration // it

	turn kv.Turn // nil: others may commit
}

const (
	fairly      = 2 // refused so often, an update takes its turn
	leastTurn   = 5 * time.Second
	longestTurn = 20 * time.Second
)

// takeTurn has other processes wait where they were faster too often. A turn that cannot be had is no error: the update
// is tried without.
func (r *refusals) takeTurn(ctx context.Context, e kv.Engine) (end func()) {
	shared, ok := e.(kv.Shared)
	r.began = time.Now()
	if !ok || r.n < fairly {
		return func() {}
	}
	if r.all {
		r.reads, r.writes = nil, nil
	}
	turn, err := shared.Turn(ctx, r.reads, r.writes, min(max(leastTurn, 3*r.took), longestTurn))
	if err != nil {
		return func() {}
	}
	r.turn, r.began = turn, time.Now()
	return func() {
		r.turn = nil
		turn.End()
	}
}

func (r *refusals) begin(ctx context.Context, e kv.Engine, since kv.Version) (kv.Writer, error) {
	if r.turn != nil {
		return r.turn.Begin(ctx, since)
	}
	return e.Begin(ctx, since)
}

// ended notes how a try ended.
func (r *refusals) ended(t *Tx, err error) {
	if errors.Is(err, kv.ErrConflict) {
		r.n++
		r.took, r.all = time.Since(r.began), t.depends == nil
		r.reads, r.writes = slices.Sorted(maps.Keys(t.depends)), slices.Sorted(maps.Keys(t.writes))
	}
}
