package upkeep

import (
	"cmp"
	"context"
	"errors"
	"sort"
	"sync"
	"time"

	"github.com/tmshare/tmshare/internal/locks"
	"github.com/tmshare/tmshare/internal/store"
)

// background is the work of the server without requests: it takes due snapshots, prunes history, and republishes
// records whose offered formats have changed. One worker handles one collection after the other.
type background struct {
	ctx  context.Context // ends with close
	stop context.CancelFunc
	jobs sync.WaitGroup

	mu      sync.Mutex
	duty    context.Context // ends when another process looks after the collections
	waiting map[string]care // collections to look at
	busy    bool            // a worker is at them
	idle    sync.Cond       // busy is false
	taking  locks.Locks     // of collections whose snapshots are being taken
}

// care is the extent of the work on a collection.
type care int

const (
	ofChange care = iota // work due because of a change
	ofFiles              // also for files that are missing or damaged
	ofAge                // also retention
)

func (b *background) init() {
	b.ctx, b.stop = context.WithCancel(context.Background())
	b.duty, b.waiting = b.ctx, map[string]care{}
	b.idle.L = &b.mu
}

// close stops the work and waits for it. No work starts after that.
func (b *background) close() {
	b.mu.Lock()
	b.stop()
	b.mu.Unlock()
	b.jobs.Wait()
}

// begin runs a job unless the server is closed.
func (b *background) begin(job func()) (begun bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if begun = b.ctx.Err() == nil; begun {
		b.jobs.Go(job)
	}
	return begun
}

// atOthers is the duty of a process while another one looks after the collections: it has ended.
var atOthers = func() context.Context {
	ctx, end := context.WithCancel(context.Background())
	end()
	return ctx
}()

// setDuty sets whether this process maintains collections: until ctx ends.
func (b *background) setDuty(ctx context.Context) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.duty = ctx
}

// next takes one of the waiting collections. If there is none, the worker must end: the next waiting collection starts
// another one.
func (b *background) next() (ctx context.Context, name string, look care, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.duty.Err() == nil {
		for name, look = range b.waiting {
			delete(b.waiting, name)
			return b.duty, name, look, true
		}
	}
	b.busy = false
	b.idle.Broadcast()
	return nil, "", 0, false
}

// atOnce is the number of collections that are handled in a row, so that many of them keep no processor busy.
const atOnce = 1000

// lookAfterAll maintains the next collections in the order of names; all if look is ofAge.
func (k *Keeper) lookAfterAll(ctx context.Context, look care) error {
	all, err := k.Store.Collections(ctx)
	most := min(len(all), atOnce)
	if err == nil && look == ofAge {
		most = len(all)
		err = k.SweepTasks(ctx)
	}
	next := sort.Search(len(all), func(i int) bool { return all[i].Name > k.looked })
	for i := range most {
		k.looked = all[(next+i)%len(all)].Name
		k.lookAfter(k.looked, look)
	}
	return err
}

// Changed takes a snapshot in the background if enough has changed since
// the last one.
func (k *Keeper) Changed(c *store.Collection) { k.lookAfter(c.Name, ofChange) }

// lookAfter has the worker look at a collection.
func (k *Keeper) lookAfter(collection string, look care) {
	b := &k.background
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.duty.Err() != nil {
		return // the process in charge notices the change
	}
	b.waiting[collection] = max(b.waiting[collection], look)
	if !b.busy {
		b.busy = true
		b.jobs.Go(k.work)
	}
}

// Wait waits until no collection is being maintained, or waits for it.
func (k *Keeper) Wait() {
	b := &k.background
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.busy {
		b.idle.Wait()
	}
}

func (k *Keeper) work() {
	for {
		ctx, name, look, ok := k.background.next()
		if !ok {
			return
		}
		err := k.keepUp(ctx, name, look)
		if _, leaves := errors.AsType[*store.LeavingError](err); leaves || errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil && ctx.Err() == nil {
			k.Logger.Error("a collection could not be looked after; it is tried again", "collection", name, "error", err)
		}
	}
}

// keepUp brings a collection in step with its inputs and the formats that it offers, takes a due snapshot, runs the
// tasks of extensions, and then prunes. It is called after each change, so it reads as little as possible.
func (k *Keeper) keepUp(ctx context.Context, name string, look care) error {
	if err := k.deriveAndRestate(ctx, name); err != nil {
		return err
	}
	if look >= ofFiles {
		if _, err := k.ReplaceLost(ctx, name); err != nil {
			return err
		}
	}
	l, err := k.Store.Latest(ctx, name)
	if err != nil || l.Hidden {
		return err
	}
	due, err := k.snapshotDue(ctx, l)
	if err == nil && due {
		_, _, err = k.TakeSnapshot(ctx, name)
	}
	if err != nil {
		return err
	}
	if err := k.doTasks(ctx, name, look == ofAge); err != nil {
		return err
	}
	if due || look == ofAge {
		_, err = k.Prune(ctx, name)
	}
	return err
}

// doTasks runs the tasks of extensions for a collection: due ones, or all.
func (k *Keeper) doTasks(ctx context.Context, name string, anyway bool) error {
	for _, t := range k.also {
		if err := t.KeepUp(ctx, name, anyway); err != nil {
			return err
		}
	}
	return nil
}

// SweepTasks makes extensions remove their data of removed collections.
func (k *Keeper) SweepTasks(ctx context.Context) (err error) {
	for _, t := range k.also {
		err = errors.Join(err, t.Sweep(ctx))
	}
	return err
}

// deriveAndRestate brings the records of a collection in step with its inputs, and with its settings.
func (k *Keeper) deriveAndRestate(ctx context.Context, name string) error {
	l, err := k.Store.Latest(ctx, name)
	if err == nil && len(l.DerivedFrom) > 0 {
		if filling, err := k.derive(ctx, name); filling || err != nil {
			return err
		}
		l, err = k.Store.Latest(ctx, name)
	}
	if err != nil || !l.Restating {
		return err
	}
	changed := k.Changes.Begin(name)
	defer changed()
	records, err := k.Store.OfferRecordsAnew(ctx, name)
	if records > 0 {
		k.Logger.Info("published again, as they are offered in another form", "collection", name, "records", records)
	}
	return err
}

// snapshotDue reports whether a snapshot is due: after enough changes since the newest one, or enough time since the
// first of these changes.
func (k *Keeper) snapshotDue(ctx context.Context, l *store.Latest) (due bool, err error) {
	if len(l.Snapshots) == 0 {
		return true, nil
	}
	newest := &l.Snapshots[0]
	if newest.Seq < l.Horizon { // the log after it is pruned: a newer one was lost
		return true, nil
	}
	changes := l.Head - newest.Seq
	if changes == 0 || changes >= uint64(cmp.Or(l.SnapshotEvery, k.SnapshotEvery)) {
		return changes > 0, nil
	}
	isOld := func(t time.Time) bool { return k.Now().Sub(t) >= cmp.Or(l.SnapshotAfter, k.SnapshotAfter) }
	if !isOld(newest.Updated) { // so the changes after it are younger
		return false, nil
	}
	err = k.Store.View(ctx, l.Name, func(v *store.View) error {
		first, err := v.Entry(newest.Seq + 1)
		due = err == nil && isOld(first.Updated)
		return err
	})
	return due, err
}
