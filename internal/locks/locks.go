// Package locks prevents concurrent operations on one object: rounds of a subscription, snapshots of a collection.
package locks

import (
	"context"
	"sync"
)

// Locks are locks by name. Free ones need no memory. The zero value is ready, and safe for concurrent use.
type Locks struct {
	mu   sync.Mutex
	held map[string]*waiting
}

// waiting is a lock, with the number of its holder and waiters.
type waiting struct {
	free  chan struct{} // has an element while the lock is free
	users int
}

// Lock waits until nobody holds the named lock, and holds it until unlock is called. wait is called where it has to
// wait; it may be nil. An error means that ctx has ended.
func (l *Locks) Lock(ctx context.Context, name string, wait func()) (unlock func(), err error) {
	l.mu.Lock()
	w := l.held[name]
	if w == nil {
		w = &waiting{free: make(chan struct{}, 1)}
		w.free <- struct{}{}
		if l.held == nil {
			l.held = map[string]*waiting{}
		}
		l.held[name] = w
	}
	w.users++
	l.mu.Unlock()
	leave := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if w.users--; w.users == 0 {
			delete(l.held, name)
		}
	}
	select {
	case <-w.free:
	default:
		if wait != nil {
			wait()
		}
		select {
		case <-w.free:
		case <-ctx.Done():
			leave()
			return nil, ctx.Err()
		}
	}
	var once sync.Once
	return func() { once.Do(func() { w.free <- struct{}{}; leave() }) }, nil
}
