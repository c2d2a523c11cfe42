package badger

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	badgerdb "github.com/dgraph-io/badger/v4"

	"github.com/tmshare/tmshare/internal/kv"
)

// commits orders the commits: each is compared with all earlier ones, and has the version after theirs.
type commits struct {
	writing sync.Mutex // held while commits are written; before mu

	mu   sync.Mutex
	last kv.Version // after the last commit; zero if not known
	// the number of the last commit that has changed rows of a keyspace, since the engine was opened
	spaces map[uint32]uint64
	recent kv.Recent
	next   *commitGroup // the group that is not written yet; may be nil
	large  *largeCommit // the commit that is being written in parts; may be nil
}

// commitGroup are commits that are written together: the disk is waited for once.
type commitGroup struct {
	changes []kv.Row
	size    int64  // of the changes, as Badger counts it
	before  uint64 // the id of the version before
	leads   kv.Version
	spaces  map[uint32]uint64 // the previous entries in commits.spaces of the changed keyspaces
	written chan struct{}     // closed when it is written, or err is why it is not
	err     error
}

// versionsSize is the size of the rows that each commit has, as Badger counts it.
const versionsSize = 2 * int64(len(kv.Reserved+"Jv")+16+perChange)

// Changed implements [kv.Engine].
func (e *Engine) Changed(from, to kv.Version) map[uint32]bool {
	return e.commits.recent.ChangedInOrder(from, to)
}

// Commit implements [kv.Writer].
func (t *transaction) Commit() error {
	defer t.Cancel()
	if t.spilled == nil {
		err := t.engine.commit(t)
		if !errors.Is(err, badgerdb.ErrTxnTooBig) {
			return err
		}
	}
	return t.engine.commitInParts(t)
}

// commit commits the changes in memory.
func (e *Engine) commit(t *transaction) error {
	g, first, err := e.join(t)
	if err != nil {
		return err
	}
	if first { // others join the group until the earlier commits are written
		e.commits.writing.Lock()
		e.writeNext()
		e.commits.writing.Unlock()
	}
	<-g.written
	return e.folder.place.Named(g.err)
}

// join adds the changes of t to a group, and reports whether they are the first of it.
func (e *Engine) join(t *transaction) (g *commitGroup, first bool, err error) {
	c := &e.commits
	for {
		c.mu.Lock()
		if l := c.large; l != nil && l.delays(t) {
			c.mu.Unlock()
			select {
			case <-l.ended:
				continue
			case <-t.ctx.Done():
				return nil, false, context.Cause(t.ctx)
			}
		}
		if g = c.next; g == nil || g.size+t.size < e.batchSize && int64(len(g.changes)+len(t.changes)) < e.batchCount {
			break
		}
		c.mu.Unlock()
		c.writing.Lock()
		e.writeNext()
		c.writing.Unlock()
	}
	defer c.mu.Unlock()
	if err := e.advance(t); err != nil {
		return nil, false, err
	}
	if first = g == nil; first {
		g = &commitGroup{size: versionsSize, before: c.last.ID, spaces: map[uint32]uint64{}, written: make(chan struct{})}
		c.next = g
	}
	g.changes, g.size, g.leads = append(g.changes, t.changes...), g.size+t.size, t.leads
	for space := range t.spaces {
		if _, known := g.spaces[space]; !known {
			g.spaces[space] = c.spaces[space]
		}
	}
	c.note(t)
	return g, first, nil
}

// writeNext writes the next group, if there is one. It is called with writing locked.
func (e *Engine) writeNext() {
	c := &e.commits
	c.mu.Lock()
	g := c.take()
	c.mu.Unlock()
	if e.writeGroup(g) != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.fail(g)
	}
}

// take removes and returns the next group, or nil: no more commits join it. It is called with mu locked.
func (c *commits) take() *commitGroup {
	g := c.next
	c.next = nil
	return g
}

func (e *Engine) writeGroup(g *commitGroup) error {
	if g == nil {
		return nil
	}
	at := e.clock.tick()
	if g.err = e.write(at, g.before, append(g.changes, versionRow(g.leads))...); g.err == nil {
		e.clock.show(at)
	}
	close(g.written)
	return g.err
}

// fail drops a group that could not be written, and the next one, because its versions follow a missing one. It is
// called with mu locked.
func (c *commits) fail(g *commitGroup) {
	c.last = kv.Version{}
	if next := c.take(); next != nil {
		maps.Copy(c.spaces, next.spaces)
		next.err = g.err
		close(next.written)
	}
	maps.Copy(c.spaces, g.spaces)
}

// advance sets leads to the next version if the dependencies of t are unchanged. It is called with mu locked.
func (e *Engine) advance(t *transaction) error {
	c := &e.commits
	if err := e.writable(t.ctx); err != nil {
		return err
	}
	if c.last.Number == 0 {
		var err error
		if c.last, err = e.Version(t.ctx); err != nil {
			return err
		}
	}
	if !c.last.Same(t.since) {
		if t.narrow == nil || c.last.IsBefore(t.since) || t.since.Number == 0 {
			return kv.ErrConflict
		}
		for _, space := range slices.AppendSeq(t.narrow, maps.Keys(t.spaces)) {
			if c.spaces[space] > t.since.Number {
				return kv.ErrConflict
			}
		}
	}
	t.leads.Number = c.last.Number + 1
	return nil
}

// note notes which keyspaces a commit has changed. It is called under mu.
func (c *commits) note(t *transaction) {
	for space := range t.spaces {
		c.spaces[space] = t.leads.Number
	}
	c.recent.Add(kv.Place{Number: t.leads.Number}, kv.Commit{ID: t.leads.ID - c.last.ID, Spaces: t.spaces})
	c.last = t.leads
}
