// Package watch keeps the subscriptions of a client up to date, round after round, and reports their state to programs,
// to people and to monitoring.
package watch

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/client/status"
	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/store"
)

// Options are the options of a [Watcher]. Store is required.
type Options struct {
	Store *store.DB // the one of the client

	// Names are the subscriptions to watch; none means all, including future ones.
	Names []string

	// Interval is the time between two rounds of a source; default 5 min. It is shorter for a source that states more
	// frequent changes.
	Interval time.Duration
	Jitter   float64 // waits vary by this fraction of them, 0 to 1

	// Beat is the interval of calls of Alive while the watcher works; default 10 s.
	Beat  time.Duration
	Alive func()

	// Scheduled is called once, when the first rounds have been set going.
	Scheduled func()

	// Done receives the result of each round; it is called concurrently.
	Done func(name string, r *client.Round, err error)
}

// Limits of the wait after failed rounds: the watcher's own, and those that a server can request.
const (
	maxBackoff    = time.Hour
	maxRetryAfter = 24 * time.Hour
)

// Watcher does rounds of subscriptions again and again, each source by itself:
// one that is slow or dead does not delay the others.
type Watcher struct {
	Options
	Client  *client.Client // with reports to the watcher
	refresh chan struct{}  // requests to read the subscriptions again
	now     chan struct{}  // and begin a round of each at once

	mu        sync.Mutex
	followers map[string]*follower
	running   sync.WaitGroup // as many
	ready     error          // why it is not ready; nil: it is
}

// listenAgain is the least wait after a server stops to hold requests, because all clients then return at once.
const listenAgain = 5 * time.Second

// firstPause is the pause of listening after a round that a server requested without having changes. It doubles with
// each such round in a row.
const firstPause = time.Second

var (
	errStarting = errors.New("starting")
	errStopping = errors.New("stopping")
)

// New returns a watcher of the client's subscriptions.
func New(c *client.Client, o Options) (*Watcher, error) {
	if o.Interval < 0 || o.Jitter < 0 || o.Jitter > 1 || o.Beat < 0 {
		return nil, errors.New("the interval must be positive, and the jitter from 0 to 1")
	}
	o.Interval = cmp.Or(o.Interval, 5*time.Minute)
	o.Beat = cmp.Or(o.Beat, 10*time.Second)
	if o.Alive == nil {
		o.Alive = func() {}
	}
	if o.Scheduled == nil {
		o.Scheduled = func() {}
	}
	if o.Done == nil {
		o.Done = func(string, *client.Round, error) {}
	}
	w := &Watcher{
		Options: o, refresh: make(chan struct{}, 1), now: make(chan struct{}, 1),
		followers: map[string]*follower{}, ready: errStarting,
	}
	w.Client = w.observed(c)
	return w, nil
}

// Refresh makes the watcher look for subscriptions that were added or removed.
func (w *Watcher) Refresh() { poke(w.refresh) }

// StartRound does the same, and begins a round of each source at once.
func (w *Watcher) StartRound() { poke(w.now) }

// Yield ends the running round of a source, if any, for a client that waits to remove the source.
func (w *Watcher) Yield(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f := w.followers[name]; f != nil {
		f.interrupt()
	}
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // another request is pending
	}
}

// Run watches until ctx ends, then waits for running commits. A name without a subscription is an error at the start,
// and ignored later. Run can be called again afterwards.
func (w *Watcher) Run(ctx context.Context) error {
	defer w.followNone()
	defer w.setReady(errStopping)
	if err := w.known(ctx); err != nil {
		return err
	}
	if err := w.look(ctx); err != nil {
		return err
	}
	w.setReady(nil)
	w.Scheduled()
	beat := time.NewTicker(w.Beat)
	defer beat.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return nil
		case <-w.refresh:
			err = w.look(ctx)
		case <-w.now:
			err = w.look(ctx)
			w.mu.Lock()
			for _, f := range w.followers {
				poke(f.now)
			}
			w.mu.Unlock()
		case <-beat.C:
			err = w.look(ctx) // includes other changes
		}
		if err != nil {
			w.Client.Logger.Error("the subscriptions cannot be read", "error", err)
		} else {
			w.Alive()
		}
		w.setReady(err)
	}
}

// followNone waits until nothing is followed any more.
func (w *Watcher) followNone() {
	w.running.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.followers)
}

func (w *Watcher) setReady(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ready = err
}

// Ready returns why the watcher is not at work, nil where it is.
func (w *Watcher) Ready() error {
	if err := w.Store.Impaired(); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ready
}

// known checks the names that were given.
func (w *Watcher) known(ctx context.Context) error {
	for _, name := range w.Names {
		if _, err := w.Client.Subscription(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// look starts to follow new subscriptions, and stops following removed ones.
func (w *Watcher) look(ctx context.Context) error {
	all, err := w.Store.Subscriptions(ctx)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	numbers := map[string]uint32{} // one of the same name may be another one
	for i := range all {
		if s := &all[i]; len(w.Names) == 0 || slices.Contains(w.Names, s.Name) {
			numbers[s.Name] = s.Number
		}
	}
	for name, f := range w.followers {
		if number, ok := numbers[name]; !ok || number != f.number {
			f.stop()
			delete(w.followers, name)
		}
	}
	for name, number := range numbers {
		if w.followers[name] == nil {
			w.follow(ctx, name, number)
		}
	}
	return nil
}

// follower does the rounds of one source.
type follower struct {
	name   string
	number uint32
	now    chan struct{}
	stop   context.CancelFunc
	seen
}

func (w *Watcher) follow(ctx context.Context, name string, number uint32) {
	f := &follower{name: name, number: number, now: make(chan struct{}, 1)}
	ctx, f.stop = context.WithCancel(ctx)
	w.followers[name] = f
	w.running.Go(func() {
		defer f.stop()
		waits := w.waits()
		pushed, pause := false, time.Duration(0)
		for {
			r, wait := w.round(ctx, f, waits)
			if ctx.Err() != nil {
				return
			}
			f.next(time.Now().Add(wait))
			timer := time.NewTimer(wait)
			var changed <-chan struct{}
			listening, hangUp := context.WithCancel(ctx)
			switch {
			case r == nil || !pushed || r.Entries > 0:
				pause = 0
			default: // the server announced changes that were none: a truncated list, or a server that always does
				pause = max(firstPause, 2*pause)
			}
			if r != nil {
				changed = w.listen(listening, name, pause)
			}
			pushed = false
			select {
			case <-ctx.Done():
			case <-f.now:
			case <-timer.C:
			case <-changed:
				pushed = true
			}
			timer.Stop()
			hangUp()
			if ctx.Err() != nil {
				return
			}
		}
	})
}

// listen returns a channel that is closed when the server announces changes of the source; never if the server does not
// hold requests. It listens after a pause; changes in between are announced then.
func (w *Watcher) listen(ctx context.Context, name string, pause time.Duration) <-chan struct{} {
	changed := make(chan struct{})
	w.running.Go(func() {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		for heard := false; ; {
			is, waited, err := w.Client.Wait(ctx, name)
			heard = heard || waited
			switch {
			case is:
				close(changed)
				return
			case waited:
				continue
			case !heard:
				return
			}
			// The server has let requests wait: it stops, or has no room now.
			w.Client.Logger.Debug("not told of changes", "subscription", name, "error", err)
			select {
			case <-ctx.Done():
				return
			case <-time.After(listenAgain + rand.N(listenAgain)):
			}
		}
	})
	return changed
}

// round does one round and returns its result, nil if it failed, and the time to the next one.
func (w *Watcher) round(ctx context.Context, f *follower,
	waits *backoff.ExponentialBackOff) (*client.Round, time.Duration) {
	ctx, end := context.WithCancel(context.WithValue(ctx, fetchedKey{}, &f.fetched))
	defer end()
	f.begin(end)
	r, err := w.Client.Sync(ctx, f.name)
	stopped := ctx.Err() != nil
	f.end(r, err, stopped)
	if stopped {
		return nil, w.Interval
	}
	if w.Done(f.name, r, err); err != nil {
		r = nil
	}
	return r, w.wait(waits, r, err)
}

// waits are those after rounds that fail: twice as long each time.
func (w *Watcher) waits() *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.Multiplier, b.MaxInterval, b.RandomizationFactor = w.Interval, 2,
		max(maxBackoff, w.Interval), w.Jitter
	b.Reset()
	return b
}

// wait returns the time to the next round after one that ended with err.
func (w *Watcher) wait(waits *backoff.ExponentialBackOff, r *client.Round, err error) time.Duration {
	interval := w.Interval
	if r != nil && r.Every > 0 {
		interval = min(interval, r.Every)
	}
	doubted := errors.As(err, new(*follow.DoubtError))
	if doubted { // later readings confirm it, or end it
		interval = min(interval, max(w.Client.ConfirmAfter/2, time.Second))
	}
	if err == nil || doubted {
		waits.Reset()
		return time.Duration(float64(interval) * (1 + w.Jitter*(2*rand.Float64()-1)))
	}
	wait := waits.NextBackOff()
	if failed, ok := errors.AsType[*fetch.Error](err); ok {
		wait = max(wait, min(failed.RetryAfter, maxRetryAfter))
	}
	return wait
}

// Status is the status of a subscription with the observations of the watcher since its start.
type Status struct {
	status.Status
	status.Seen
	Watched bool `json:"watched"` // false: it is none of those named
}

// Status returns the status of each subscription.
func (w *Watcher) Status(ctx context.Context) ([]Status, error) {
	now := w.Client.Now()
	all, err := status.Named(ctx, w.Store, now)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	list := make([]Status, len(all))
	for i := range all {
		list[i].Status = all[i]
		f := w.followers[all[i].Name]
		if f == nil {
			continue
		}
		list[i].Watched, list[i].Seen = true, f.all()
	}
	return list, nil
}
