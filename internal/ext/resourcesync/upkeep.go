package resourcesync

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/tmshare/tmshare/internal/ext/resourcesync/resources"
	"github.com/tmshare/tmshare/internal/store"
)

// The files of a collection are made at the first request for them, and maintained from then on: each new snapshot
// gives a new set, and a change list is closed when it is long or old enough. Closed lists have all history before it
// is pruned.

// sourcing holds the running jobs, by collection.
type sourcing struct {
	mu   sync.Mutex
	jobs map[string]*sourceJob
}

type sourceJob struct {
	done chan struct{}
	err  error // once it is done
}

// makingSource returns the job that makes the files of a collection. Only one runs at a time; begun reports whether it
// is new.
func (p *part) makingSource(name string) (job *sourceJob, begun bool) {
	q := &p.sourcing
	q.mu.Lock()
	defer q.mu.Unlock()
	if job := q.jobs[name]; job != nil {
		return job, false
	}
	if q.jobs == nil {
		q.jobs = map[string]*sourceJob{}
	}
	job = &sourceJob{done: make(chan struct{})}
	q.jobs[name] = job
	end := func(err error) {
		q.mu.Lock()
		defer q.mu.Unlock()
		delete(q.jobs, name)
		job.err = err
		close(job.done)
	}
	if !p.server.Run(func(ctx context.Context) { end(p.makeSource(ctx, name)) }) {
		delete(q.jobs, name)
		job.err = context.Canceled
		close(job.done)
	}
	return job, true
}

// await waits until the files of a collection are made, or until ctx ends. Making them continues then; it ends with
// [context.Canceled] if the server is closed.
func (p *part) await(ctx context.Context, name string) error {
	job, _ := p.makingSource(name)
	select {
	case <-job.done:
		return job.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// keepUp makes files of a collection that are due if the collection has any; with anyway, in any case.
func (p *part) keepUp(ctx context.Context, name string, anyway bool) error {
	asked, due := false, false
	err := p.server.Store.View(ctx, name, func(v *store.View) error {
		c, err := resources.ChangesOf(v)
		if asked = c != nil; asked && err == nil {
			due, err = p.sourceDue(v, c)
		}
		return err
	})
	if err == nil && asked {
		err = p.folder.Note(ctx, name)
	}
	if due = due || anyway; err != nil || !asked || !due {
		return err
	}
	for {
		job, begun := p.makingSource(name)
		select {
		case <-job.done:
			if begun { // a running job may have begun before it was due
				return job.err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (p *part) sourceDue(v *store.View, c *resources.Changes) (bool, error) {
	set, old, err := p.newest(v)
	if err != nil || old || set == nil {
		return old, err
	}
	return p.changesDue(v, c)
}

// newest returns the newest set of a collection; nil if none is offered. old reports whether a new one is needed: there
// is none, a snapshot has more, the plain change list cannot reach back to it, or it was the first and empty.
func (p *part) newest(v *store.View) (set *resources.Set, old bool, err error) {
	if !resources.IsOffered(&v.Collection) {
		return nil, false, nil
	}
	sets, err := p.folder.Sets(v, p.site(&v.Collection))
	if err != nil || len(sets) == 0 {
		return nil, err == nil, err
	}
	set = sets[0]
	if set.Seq < v.Horizon || v.Head-set.Seq >= resources.MostPlain || set.Items == 0 && v.Topics > 0 {
		return set, true, nil
	}
	snapshots, err := v.Snapshots()
	return set, len(snapshots) > 0 && snapshots[0].Seq > set.Seq, err
}

// cut returns when change lists of a collection are closed: also before retention prunes changes that are in no closed
// list.
func (p *part) cut(c *store.Collection) resources.Cut {
	cut := resources.Cut{
		Changes: uint64(cmp.Or(store.ValueOf[int](&resources.ChangesPerList, c), p.ChangesPerList)),
		After:   cmp.Or(time.Duration(store.ValueOf[store.Period](&resources.ChangeListAfter, c)), p.ChangeListAfter),
	}
	if keep := cmp.Or(c.KeepEntries, p.server.KeepEntries); keep > 0 {
		cut.Changes = min(cut.Changes, keep)
	}
	if keep := cmp.Or(c.KeepFor, p.server.KeepFor); keep > 0 {
		cut.After = min(cut.After, max(keep/2, 1)) // some time passes until something is pruned
	}
	return cut
}

// changesDue reports whether the open change list is to be closed.
func (p *part) changesDue(v *store.View, c *resources.Changes) (bool, error) {
	if c.Pruned(v.Horizon) {
		return true, nil
	}
	last, err := c.Due(v, p.cut(&v.Collection), p.server.Now())
	return last > 0, err
}

// makeSource makes the set that is due, closes the change lists that are, and makes their
// files.
func (p *part) makeSource(ctx context.Context, name string) error {
	set, err := p.makeSet(ctx, name)
	if err != nil || set == nil {
		return err
	}
	var site *resources.Site
	var cut resources.Cut
	var after uint64 // the entry before the change lists, and its time
	var at time.Time
	due := true
	err = p.server.Store.View(ctx, name, func(v *store.View) error {
		site, cut = p.site(&v.Collection), p.cut(&v.Collection)
		c, err := resources.ChangesOf(v)
		if c != nil && err == nil {
			due, err = p.changesDue(v, c)
		} else if err == nil {
			after, at, err = resources.Beginning(v, set)
		}
		return err
	})
	if err != nil {
		return err
	}
	if due {
		if _, err := p.folder.CutChanges(ctx, site, name, after, at, cut, p.server.Now()); err != nil {
			return err
		}
	}
	if err := p.folder.Note(ctx, name); err != nil {
		return err
	}
	dropped, lost, made, err := p.makeParts(ctx, name, site)
	if err == nil && lost > dropped {
		err = p.folder.DropChangeLists(ctx, name, lost)
	}
	if err != nil || lost == 0 && !made {
		return err
	}
	return p.server.Store.View(ctx, name, func(v *store.View) error { // also of lists that were dropped before
		return p.folder.DropParts(ctx, v, site, lost)
	})
}

// makeSet makes a new set if one is due, and returns the newest; nil if none is offered.
func (p *part) makeSet(ctx context.Context, name string) (set *resources.Set, err error) {
	old := false
	err = p.server.Store.View(ctx, name, func(v *store.View) (err error) {
		set, old, err = p.newest(v)
		return err
	})
	if err != nil || !old {
		return set, err
	}
	if err := p.server.Store.MayWrite(); err != nil {
		return nil, err
	}
	began := time.Now()
	err = p.server.Store.View(ctx, name, func(v *store.View) (err error) {
		set, err = p.folder.Build(ctx, p.site(&v.Collection), v)
		return err
	})
	if err == nil {
		p.server.Logger.Info("resource list made", "collection", name, "resources", set.Items, "took", time.Since(began))
	}
	return set, err
}

// makeParts makes the files of closed change lists. It returns the number up to which lists were dropped before, and
// the number up to which lists are to be dropped: those no longer needed, and those that cannot be made any more, with
// all before them. made reports whether there were any to make.
func (p *part) makeParts(ctx context.Context, name string,
	site *resources.Site) (dropped, lost uint64, made bool, err error) {
	err = p.server.Store.View(ctx, name, func(v *store.View) error {
		if err := site.Check(&v.Collection); err != nil {
			return err
		}
		lists, err := resources.ChangeLists(v)
		if err != nil {
			return err
		}
		c, err := resources.ChangesOf(v)
		if err != nil || c == nil {
			return err
		}
		sets, err := p.folder.Sets(v, site)
		if err != nil {
			return err
		}
		if len(sets) == 0 { // the options have changed: the next request makes them again
			return nil
		}
		oldest := sets[len(sets)-1].Seq
		if dropped = c.Closed; len(lists) > 0 {
			dropped = lists[0].Number - 1
		}
		lost = dropped
		for i, list := range lists {
			part, err := p.folder.Part(v, site, list.Number)
			if err != nil {
				return err
			}
			next := c.OpenFrom
			if i+1 < len(lists) {
				next = lists[i+1].From
			}
			switch {
			case part == nil && list.First <= v.Horizon, // its changes are pruned
				!next.Equal(list.Until),                      // a gap follows it
				list.Last <= v.Horizon && list.Last < oldest, // new readers do not need it
				len(lists)-i > resources.MostLists:
				lost = list.Number
				continue
			}
			built, err := p.folder.BuildPart(ctx, site, v, list)
			if made = made || built; err != nil {
				return err
			}
		}
		return nil
	})
	return dropped, lost, made, err
}

// sweep removes the files of removed collections.
func (p *part) sweep(ctx context.Context) error {
	return p.folder.Sweep(ctx, func() (epochs []uuid.UUID, err error) {
		all, err := p.server.Store.Collections(ctx)
		for i := range all {
			epochs = append(epochs, all[i].Epoch)
		}
		return epochs, err
	})
}
