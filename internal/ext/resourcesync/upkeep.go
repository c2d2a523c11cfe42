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

// What ResourceSync offers of a collection is made when somebody asks for it first. From then on it is kept up: there
// is a new set whenever there is a new snapshot, and a change list is closed when it is long or old enough. Before
// history is pruned, closed lists have all of it.

// sourcing is what is being made, by collection.
type sourcing struct {
	mu   sync.Mutex
	jobs map[string]*sourceJob
}

type sourceJob struct {
	done chan struct{}
	err  error // once it is done
}

// makingSource returns the job that makes what ResourceSync offers of a collection. There is
// one at a time; begun says that it is new.
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

// await waits until what ResourceSync offers of a collection is made, or until ctx ends. Making it goes on
// then; it ends with [context.Canceled] where the server is closed.
func (p *part) await(ctx context.Context, name string) error {
	job, _ := p.makingSource(name)
	select {
	case <-job.done:
		return job.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// keepUp sees to what ResourceSync offers of a collection, if anybody has asked for it
// and something is due, or in any case.
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
			if begun { // one that ran already may not have seen what is due
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

// newest returns the newest set of a collection, nil where none is offered. It is old if a new one is to be made: there
// is none, or a snapshot that has more, or the plain change list cannot go back to it, or it was the first and had
// nothing.
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

// cut says when change lists of a collection are closed: also before retention could take
// something away that is in none.
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
	var after uint64 // behind which change lists begin, and when that was
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

// makeSet makes a new set, if one is due, and returns the newest. It is nil where none is
// offered.
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

// makeParts makes the files of closed change lists. It returns the number up to which lists were
// dropped before, and the number up to which they are to be dropped: those that need not be kept, and
// those that cannot be made any more, with all before them. made says that there were any to be made.
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
		if len(sets) == 0 { // the options have changed since: the next request makes them anew
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
			case part == nil && list.First <= v.Horizon, // what it lists is gone
				!next.Equal(list.Until),                      // there is a gap behind it
				list.Last <= v.Horizon && list.Last < oldest, // nobody who begins now needs it
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

// sweep removes what is kept of collections that are not there any more.
func (p *part) sweep(ctx context.Context) error {
	return p.folder.Sweep(ctx, func() (epochs []uuid.UUID, err error) {
		all, err := p.server.Store.Collections(ctx)
		for i := range all {
			epochs = append(epochs, all[i].Epoch)
		}
		return epochs, err
	})
}
