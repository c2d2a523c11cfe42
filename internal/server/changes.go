package server

import (
	"sync"
	"time"
)

// changes knows when each collection was last changed, for Last-Modified. What
// is published says so itself, but settings, snapshots and retention change what
// is served too, and a commit has its time before it shows.
//
// Last-Modified has whole seconds, so two states of one second would look the
// same. It is therefore not given before the second is over, nor while a change
// is under way (RFC 9110 §8.8.2.1, Generation).
type changes struct {
	started time.Time // when the server was: whatever changed before changed before that
	now     func() time.Time

	mu      sync.Mutex
	running map[string]int // by collection
	last    map[string]time.Time
}

func (c *changes) init(now func() time.Time) {
	c.now, c.started = now, now()
	c.running, c.last = map[string]int{}, map[string]time.Time{}
}

// begin is called before a collection is changed, and what it returns after that.
func (c *changes) begin(collection string) (done func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running[collection]++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.running[collection]--; c.running[collection] == 0 {
			delete(c.running, collection)
		}
		c.last[collection] = c.now()
	}
}

// settled returns when a collection was last changed, or "" any of them: zero if
// that cannot be said yet. It is to be called before the state is read: if that
// is later than settled says, the client only asks once too often.
func (c *changes) settled(collection string) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	last, running := c.started, len(c.running)
	if collection != "" {
		running = c.running[collection]
	}
	for name, t := range c.last {
		if (collection == "" || name == collection) && t.After(last) {
			last = t
		}
	}
	if running > 0 || !secondIsOver(last, c.now()) {
		return time.Time{}
	}
	return last
}

func secondIsOver(t, now time.Time) bool {
	return !now.Before(t.Truncate(time.Second).Add(time.Second))
}
