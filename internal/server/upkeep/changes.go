package upkeep

import (
	"context"
	"sync"
	"time"

	"github.com/tmshare/tmshare/internal/store"
)

// Changes records the time of the last change of each collection, for Last-Modified. Entries have times, but settings,
// snapshots and retention also change responses, and a commit has its time before it becomes visible.
//
// Last-Modified has whole seconds, so two states of one second would look the same. It is therefore omitted until the
// second is over, and during a change (RFC 9110 §8.8.2.1, Generation).
//
// Other processes may change a shared store. So the state is compared with the one seen last in each call; the time of
// a difference is the time at which it is noticed.
type Changes struct {
	store   Store
	started time.Time // of the server, or later: collections not in last were last changed before it
	now     func() time.Time

	mu      sync.Mutex
	running map[string]int // by collection
	last    map[string]time.Time
	seen    map[string]*store.Latest
	listing *store.Listing // of all, as it was seen last
	any     time.Time      // when one of them was last changed
}

func (c *Changes) init(s Store, now func() time.Time) {
	c.store, c.now, c.started = s, now, now()
	c.running, c.last, c.seen = map[string]int{}, map[string]time.Time{}, map[string]*store.Latest{}
}

// look notes whether a collection is another than when it was seen last.
func (c *Changes) look(ctx context.Context, collection string) {
	l, err := c.store.Latest(ctx, collection)
	c.mu.Lock()
	defer c.mu.Unlock()
	if was := c.seen[collection]; err != nil && was != nil { // it may be deleted
		delete(c.seen, collection)
	} else if err == nil && l != was {
		c.seen[collection] = l
	} else {
		return
	}
	c.changed(collection)
}

// changed notes that a collection was changed. Of one that is not in last, only a time before which it was last changed
// is known, so the time returned for it is never too early.
func (c *Changes) changed(collection string) {
	c.any = c.now()
	if c.last[collection] = c.any; c.seen[collection] == nil { // it is gone
		delete(c.last, collection)
		c.started = c.any
	}
}

// lookAtAll notes whether any collection, or one of the inputs of derived ones, has changed since the last call.
func (c *Changes) lookAtAll(ctx context.Context) {
	now, err := c.store.Listing(ctx)
	if err != nil {
		return // readers of the state get the error
	}
	c.mu.Lock()
	before := c.listing
	c.mu.Unlock()
	if now == before {
		return
	}
	names, others := now.Since(before)
	for _, name := range names {
		c.look(ctx, name)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.listing = now; others {
		c.any = c.now()
	}
}

// Begin is called before a change of a collection, and done after it.
func (c *Changes) Begin(collection string) (done func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running[collection]++
	return func() {
		c.look(context.Background(), collection)
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.running[collection]--; c.running[collection] == 0 {
			delete(c.running, collection)
		}
		c.changed(collection)
	}
}

// Settled returns the time of the last change of a collection, or of any one for "": zero if it is not known yet. It
// must be called before the state is read: if the state is newer, a client only makes one request too many.
func (c *Changes) Settled(ctx context.Context, collection string) time.Time {
	if collection == "" {
		c.lookAtAll(ctx)
	} else {
		c.look(ctx, collection)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	last, running := c.any, len(c.running)
	if collection != "" {
		last, running = c.last[collection], c.running[collection]
	}
	if last.Before(c.started) {
		last = c.started
	}
	if running > 0 || !secondIsOver(last, c.now()) {
		return time.Time{}
	}
	return last
}

func secondIsOver(t, now time.Time) bool {
	return !now.Before(t.Truncate(time.Second).Add(time.Second))
}

// Made returns the creation time of an immutable resource, once its second is over, else zero.
func (c *Changes) Made(t time.Time) time.Time {
	if !secondIsOver(t, c.now()) {
		return time.Time{}
	}
	return t
}
