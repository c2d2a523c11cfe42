package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/formats/mapdiff"
	"github.com/tmshare/tmshare/internal/store"
)

// Change is what became of a topic: with an entry, or between two states.
type Change struct {
	Entry   uint64 `json:"entry,omitempty"`  // its sequence; 0: between two states
	Commit  uint64 `json:"commit,omitempty"` // sequence of the first entry of its commit
	Updated string `json:"updated,omitempty"`
	TopicSI string `json:"topicSI"`
	Title   string `json:"title,omitempty"`
	Kind    Kind   `json:"change"`
	Topic   string `json:"topic,omitempty"` // the TopicSI under which the topic goes on, where it is [Moved]

	Author string `json:"author,omitempty"`
	Note   string `json:"note,omitempty"`

	Removed []mapdiff.Statement `json:"removed,omitempty"` // only the version before says so
	Added   []mapdiff.Statement `json:"added,omitempty"`   // only the version after does
	Missing string              `json:"missing,omitempty"` // why the two cannot be compared
}

// Kind is a kind of change.
type Kind string

// The values of Kind.
const (
	Added   Kind = "added"
	Updated Kind = "updated"
	Deleted Kind = "deleted"
	Moved   Kind = "moved" // the topic goes on under another TopicSI
)

// List is a part of the log, the newest change first.
type List struct {
	Collection string   `json:"collection"`
	Changes    []Change `json:"changes"`
	Before     uint64   `json:"before,omitempty"` // sequence before which the list goes on; 0: it ends here
	Pruned     string   `json:"pruned,omitempty"` // changes up to this time are no longer kept
}

// Query says which changes are asked for.
type Query struct {
	TopicSI fragment.Ref // "": all topics
	Since   time.Time    // not before this time
	Before  uint64       // sequence before which to begin; 0: with the newest
	Limit   int          // as many at most
	Words   bool         // with the differences
}

// Changes lists changes of a collection.
func Changes(ctx context.Context, v *store.View, q Query) (*List, error) {
	l := &List{Collection: v.Name, Changes: []Change{}}
	if v.Horizon > 0 && !q.Since.After(v.HorizonTime) {
		l.Pruned = feeds.FormatTime(v.HorizonTime)
	}
	d := differ{ctx, v.SP}
	for e, err := range entries(v, &q) {
		if err != nil {
			return nil, err
		}
		if e.Updated.Before(q.Since) {
			break
		}
		if len(l.Changes) == q.Limit {
			l.Before = l.Changes[len(l.Changes)-1].Entry
			l.Pruned = ""
			break
		}
		c := changeOf(e)
		if q.Words {
			if err := c.compare(d, v, e); err != nil {
				return nil, err
			}
		}
		l.Changes = append(l.Changes, c)
	}
	return l, nil
}

// entries iterates over the entries that are kept of those that are asked for, the newest first.
func entries(v *store.View, q *Query) iter.Seq2[*store.Entry, error] {
	seq, step := v.Head, func(e *store.Entry) uint64 { return e.Seq - 1 }
	if q.TopicSI != "" {
		seq, step = 0, func(e *store.Entry) uint64 { return e.Prior }
	}
	return func(yield func(*store.Entry, error) bool) {
		if q.TopicSI != "" {
			last, err := v.LastOf(q.TopicSI)
			if err != nil || last == nil {
				yield(nil, cmp.Or(err, fmt.Errorf("%w: a topic %s in %s", store.ErrNotFound, q.TopicSI, v.Name)))
				return
			}
			seq = last.Seq
		} else if q.Before > 0 {
			seq = min(seq, q.Before-1)
		}
		for seq > v.Horizon {
			e, err := v.Entry(seq)
			if err != nil {
				yield(nil, err)
				return
			}
			seq = step(e)
			if q.Before > 0 && e.Seq >= q.Before {
				continue
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// changeOf returns the change that an entry tells of.
func changeOf(e *store.Entry) Change {
	c := Change{
		Entry: e.Seq, Commit: cmp.Or(e.Commit, e.Seq), Updated: feeds.FormatTime(e.Updated),
		TopicSI: string(e.TopicSI), Title: e.Title, Kind: Added, Author: e.Author, Note: e.Note,
	}
	switch {
	case e.Deleted:
		c.Kind = Deleted
	case !e.Lives():
		c.Kind, c.Topic = Moved, string(e.Topic)
	case e.Modified:
		c.Kind = Updated
	}
	return c
}

// compare adds the difference between the fragment of an entry and that of the entry of the same key before it.
func (c *Change) compare(d differ, v *store.View, e *store.Entry) (err error) {
	var before, after *fragment.Fragment
	if e.Modified {
		if e.Prior <= v.Horizon {
			c.Missing = prunedVersion(v, e.TopicSI).Error()
			return nil
		}
		prior, err := v.Entry(e.Prior)
		if err == nil {
			before, err = Read(d.ctx, v, prior)
		}
		if err != nil {
			return c.lacks(err)
		}
	}
	if e.Lives() {
		if after, err = Read(d.ctx, v, e); err != nil {
			return c.lacks(err)
		}
	}
	if before != nil || after != nil {
		c.Removed, c.Added, err = d.compare(e.TopicSI, before, after)
	}
	return err
}

// lacks notes that a version is gone. Any other error it returns.
func (c *Change) lacks(err error) error {
	if errors.Is(err, store.ErrGone) {
		c.Missing = err.Error()
		return nil
	}
	return err
}

// Differences iterates over the topics that differ between two states, the older one first, by TopicSI.
func Differences(ctx context.Context, v *store.View, scratch string, from, to Moment) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		p, err := open(ctx, v, scratch, from, to.Seq)
		if err != nil {
			yield(Change{}, err)
			return
		}
		defer p.Close()
		d := differ{ctx, v.SP}
		for o, err := range p.versions() {
			var c Change
			var e *store.Entry
			if err == nil {
				e, err = v.Entry(o.last)
			}
			if err == nil {
				c, err = between(d, v, &o, e)
			}
			if err == nil && c.Kind == "" {
				continue
			}
			if !yield(c, err) || err != nil {
				return
			}
		}
	}
}

// between returns how what a topic was differs from what an entry says; a change of no kind where it does not.
func between(d differ, v *store.View, o *old, e *store.Entry) (c Change, err error) {
	if o.said == nil && !e.Lives() {
		return c, nil
	}
	c = Change{TopicSI: string(o.ref), Title: e.Title, Kind: Updated}
	var after *fragment.Fragment
	switch {
	case e.Lives():
		if o.said == nil {
			c.Kind = Added
		}
		if after, err = Read(d.ctx, v, e); err != nil {
			return c, c.lacks(err)
		}
	case e.Deleted:
		c.Kind = Deleted
	default:
		c.Kind, c.Topic = Moved, string(e.Topic)
	}
	if c.Removed, c.Added, err = d.compare(o.ref, o.said, after); err != nil {
		return c, err
	}
	if len(c.Removed)+len(c.Added) == 0 {
		c = Change{}
	}
	return c, nil
}
