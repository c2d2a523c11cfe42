package upkeep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/merge"
)

// Store is the part of the store that a Keeper uses.
type Store interface {
	View(ctx context.Context, name string, f func(*store.View) error) error
	Collections(ctx context.Context) ([]store.Collection, error)
	Listing(ctx context.Context) (*store.Listing, error)
	Latest(ctx context.Context, name string) (*store.Latest, error)
	Version(ctx context.Context) (store.Version, error)
	Await(ctx context.Context, since store.Version, every time.Duration) (store.Version, error)
	Alone() bool
	Lease(ctx context.Context, job string, do func(context.Context))

	TakeSnapshot(ctx context.Context, name string, keep int) (*store.Snapshot, error)
	DropLostSnapshots(ctx context.Context, name string) (dropped []store.Snapshot, err error)
	Prune(ctx context.Context, name string, keep store.Retention) (entries uint64, err error)
	OfferRecordsAnew(ctx context.Context, name string) (records int, err error)
	Derive(ctx context.Context, name string, n int,
		decide func(*store.Deriving, merge.State) (*fragment.Change, error)) (c *store.Collection, more bool, err error)
	MayWrite() error
	Writable(ctx context.Context) error
	Impaired() error
	Refusals() map[string]bool
	Sweep(ctx context.Context) error
}

// Policy holds the settings for snapshots and history. Zero values mean the defaults.
type Policy struct {
	// Defaults for collections without settings of their own.
	SnapshotEvery int           // changes after which a new snapshot is taken; default 1,000
	SnapshotAfter time.Duration // after which a change gets into a snapshot; default 24 hours
	SnapshotsKept int           // default 3
	KeepEntries   uint64        // number of last entries to keep; default all
	KeepFor       time.Duration // time for which entries are kept; default for ever

	CheckEvery time.Duration // interval of checks for due snapshots; default a minute
	PruneEvery time.Duration // interval of pruning history; default an hour
}

// Validate checks p and fills in the defaults.
func (p *Policy) Validate() error {
	for name, negative := range map[string]bool{
		"SnapshotEvery": p.SnapshotEvery < 0, "SnapshotsKept": p.SnapshotsKept < 0, "SnapshotAfter": p.SnapshotAfter < 0,
		"KeepFor": p.KeepFor < 0, "CheckEvery": p.CheckEvery < 0, "PruneEvery": p.PruneEvery < 0,
	} {
		if negative {
			return fmt.Errorf("%s is negative", name)
		}
	}
	p.SnapshotEvery = cmp.Or(p.SnapshotEvery, 1000)
	p.SnapshotAfter = cmp.Or(p.SnapshotAfter, 24*time.Hour)
	p.SnapshotsKept = cmp.Or(p.SnapshotsKept, 3)
	p.CheckEvery = cmp.Or(p.CheckEvery, time.Minute)
	p.PruneEvery = cmp.Or(p.PruneEvery, time.Hour)
	return nil
}

// Keeper maintains the collections of a store: it takes due snapshots, runs the tasks of extensions, prunes history,
// and republishes records whose offered formats have changed. It is safe for concurrent use.
type Keeper struct {
	Config
	Changes    Changes // when collections were changed, by requests too
	background background
	also       []Task
	looked     string // the collection that was looked after last in its turn
}

// Task is the work of an extension for collections.
type Task struct {
	// KeepUp does the due work for a collection, or with anyway all of it. It is called after each change and each
	// snapshot, before history is pruned.
	KeepUp func(ctx context.Context, name string, anyway bool) error
	// Sweep removes the extension's data of removed collections.
	Sweep func(ctx context.Context) error
}

// Config has the settings of a Keeper.
type Config struct {
	Policy
	Store  Store
	Logger *slog.Logger
	Now    func() time.Time
}

// New returns a keeper, which works after Start.
func New(c Config) *Keeper {
	k := &Keeper{Config: c}
	k.Changes.init(c.Store, c.Now)
	k.background.init()
	return k
}

// Do adds a task. It must be called before Start.
func (k *Keeper) Do(t Task) { k.also = append(k.also, t) }

// Run runs a job in the background, with a context that ends with Close. It is left undone, and false, when the keeper
// is closed.
func (k *Keeper) Run(job func(context.Context)) (begun bool) {
	return k.background.begin(func() { job(k.background.ctx) })
}

// Close stops the background work and waits for it. No work starts after that.
func (k *Keeper) Close() { k.background.close() }

// Start looks after the collections in the background: now, since a crash may
// have kept a snapshot from being taken, and from then on until Close. Of several
// processes that share the store, one at a time does so.
func (k *Keeper) Start() error {
	ctx := k.background.ctx
	if k.Store.Alone() {
		if err := k.lookAtFirst(ctx); err != nil {
			if k.Store.MayWrite() == nil {
				return err
			}
			k.Logger.Error(notLookedAfter, "error", err) // existing data can be read
		}
		k.background.begin(func() { k.goOn(ctx) })
		return nil
	}
	k.background.setDuty(atOthers)
	k.background.begin(func() {
		k.Store.Lease(ctx, "upkeep", func(ctx context.Context) {
			k.background.setDuty(ctx)
			if err := errors.Join(k.lookAtFirst(ctx), k.Store.Sweep(ctx)); err != nil && ctx.Err() == nil {
				k.Logger.Error(notLookedAfter, "error", err)
			}
			k.goOn(ctx)
			k.Wait()
			k.background.setDuty(atOthers)
		})
	})
	return nil
}

const notLookedAfter = "collections not looked after"

// lookAtFirst is the first look.
func (k *Keeper) lookAtFirst(ctx context.Context) error {
	if err := k.replaceAllLost(ctx); err != nil {
		return err
	}
	return k.lookAfterAll(ctx, ofAge)
}

// goOn looks now and then, until ctx ends.
func (k *Keeper) goOn(ctx context.Context) {
	var following sync.WaitGroup
	following.Go(func() { k.follow(ctx) })
	defer following.Wait()
	check, prune := time.NewTicker(k.CheckEvery), time.NewTicker(k.PruneEvery)
	defer check.Stop()
	defer prune.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case <-check.C:
			err = k.lookAfterAll(ctx, ofFiles)
		case <-prune.C:
			err = errors.Join(k.lookAfterAll(ctx, ofAge), k.Store.Sweep(ctx))
		}
		if err != nil && ctx.Err() == nil {
			k.Logger.Error(notLookedAfter, "error", err)
		}
	}
}
