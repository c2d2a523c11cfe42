package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/fragment/losses"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// Publisher publishes to the collections of a store. It is safe for concurrent use: changes are committed one after the
// other.
type Publisher struct {
	Store         Store
	Logger        *slog.Logger
	Now           func() time.Time
	Timeout       time.Duration // of a publication with a document: others wait meanwhile
	SnapshotsKept int           // default for collections without a setting

	Begin func(collection string) (done func()) // called before a change can show
	After func(*store.Collection)               // called when a change was committed
}

// Store is the part of the store that a Publisher uses.
type Store interface {
	Latest(ctx context.Context, name string) (*store.Latest, error)
	CreateCollection(ctx context.Context, c store.Collection, src fragment.Source,
		progress func(records int)) (*store.Collection, error)
	FillCollection(ctx context.Context, name string, src fragment.Source,
		checks ...func(*store.Collection) error) (*store.Collection, error)
	Publish(ctx context.Context, name string,
		decide func(store.Collection, merge.State) (*fragment.Change, error)) (*store.Collection, error)
	Preview(ctx context.Context, name string,
		decide func(store.Collection, merge.State) (*fragment.Change, error)) (*store.Collection, error)
	TakeSnapshot(ctx context.Context, name string, keep int) (*store.Snapshot, error)
}

// The bytes that are kept of the author and of the note of a change.
const (
	MaxAuthor = 200
	MaxNote   = 1000
)

// Publication is one change to publish.
type Publication struct {
	Collection string
	DryRun     bool // everything except the commit
	// Allowed returns an error if the state of the collection forbids the publication; nil: always allowed. It is
	// called before the document is read, which saves the work, and again within the commit.
	Allowed func(*store.Collection) error
	// Read reads the document on a source locator prefix. Nil: the change has no document.
	Read func(sp string) (*tmdm.TopicMap, *xtm.Tally, error)
	// Decide computes the change.
	Decide Decision
	// RDF states that the document is a graph.
	RDF bool
	// Author and Note are the author and the reason of the change, for the entries of the log; may be "".
	Author, Note string
	// Version states that the document is the whole map. The first version of an empty collection is published without
	// a comparison.
	Version bool
	// Missing returns the collection for a dry run if there is none of the name.
	Missing func() (store.Collection, error)
}

// Decision computes the change of the published state of a collection. It ends with its context, and must not keep the
// state. The document is nil if the publication has none.
type Decision func(ctx context.Context, c store.Collection, published merge.State,
	document *tmdm.TopicMap) (*fragment.Change, error)

// NewVersion decides on the change that makes a document the published state, unless that
// loses more than it may.
func NewVersion(limit losses.Limit) Decision {
	return func(ctx context.Context, c store.Collection, published merge.State, document *tmdm.TopicMap) (*fragment.Change,
		error) {
		next, err := fragment.NameTopics(ctx, document, c.SP, published)
		if err != nil {
			return nil, err
		}
		return losses.Diff(ctx, published, next, limit)
	}
}

// Publish publishes: it reads, decides, compares and commits. An error before the commit changes nothing.
func (p *Publisher) Publish(ctx context.Context, pub Publication) (*Published, error) {
	was, there, err := p.current(ctx, &pub)
	if err != nil {
		return nil, err
	}
	if err := pub.allowed(&was); err != nil {
		return nil, err
	}

	var document *tmdm.TopicMap
	tolerated := &xtm.Tally{}
	if pub.Read != nil {
		if document, tolerated, err = pub.Read(was.SP); err != nil {
			return nil, err
		}
	}

	ctx, cancel := context.WithTimeoutCause(ctx, p.Timeout, txn.Refuse(http.StatusServiceUnavailable,
		"publishing took longer than %s, so nothing was published; publish in parts, or raise the limit of the server "+
			"(--publish-timeout)", p.Timeout))
	defer cancel()
	var done *Published
	switch {
	case !there:
		done, err = p.previewMissing(ctx, &pub, &was, document)
	case pub.DryRun:
		done, err = p.preview(ctx, &pub, &was, document)
	case pub.Version && was.Head == 0:
		if done, err = p.commitFirst(ctx, &pub, &was, document); errors.Is(err, store.ErrExists) { // somebody was quicker
			done, err = p.commit(ctx, &pub, &was, document)
		}
	default:
		done, err = p.commit(ctx, &pub, &was, document)
	}
	if err != nil {
		return nil, err
	}
	done.warn(tolerated)
	return done, nil
}

// current returns the collection as it is before the document is read.
func (p *Publisher) current(ctx context.Context, pub *Publication) (c store.Collection, there bool, err error) {
	now, err := p.Store.Latest(ctx, pub.Collection)
	former, is := errors.AsType[*store.FormerError](err)
	if errors.Is(err, store.ErrNotFound) && (!is || !former.Leads()) && pub.DryRun && pub.Missing != nil {
		c, err = pub.Missing()
		return c, false, err
	}
	if err != nil {
		return c, true, err
	}
	return now.Collection, true, now.Writable()
}

func (pub *Publication) allowed(c *store.Collection) error {
	if pub.Allowed == nil {
		return nil
	}
	return pub.Allowed(c)
}

// decide returns the function that the store calls within a commit: the state may differ from the one before the
// document was read, if others have published meanwhile.
func (pub *Publication) decide(ctx context.Context, was *store.Collection, document *tmdm.TopicMap,
	decided func(merge.State, *fragment.Change) error) func(store.Collection, merge.State) (*fragment.Change, error) {
	return func(c store.Collection, published merge.State) (*fragment.Change, error) {
		if c.Epoch != was.Epoch { // the document was read on the prefix of another
			return nil, txn.Refuse(http.StatusConflict,
				"%s was deleted and created anew while the document came; send it again if it belongs there", c.Name)
		}
		if err := pub.allowed(&c); err != nil {
			return nil, err
		}
		change, err := pub.Decide(ctx, c, published, document)
		if err == nil {
			change.Author, change.Note = pub.Author, pub.Note
			err = decided(published, change)
		}
		return change, err
	}
}

// commit publishes a change.
func (p *Publisher) commit(ctx context.Context, pub *Publication, was *store.Collection,
	document *tmdm.TopicMap) (*Published, error) {
	start := p.Now()
	shown := p.Begin(pub.Collection)
	defer shown()
	var done Published
	empty := false
	c, err := p.Store.Publish(ctx, pub.Collection,
		pub.decide(ctx, was, document, func(_ merge.State, change *fragment.Change) error {
			done.note(change)
			empty = change.Empty()
			return nil
		}))
	if err != nil {
		return nil, err
	}
	done.add(c)
	if !empty {
		p.committed(c, &done, start)
	}
	return &done, nil
}

// commitFirst publishes the first version of a collection, and takes its first snapshot.
func (p *Publisher) commitFirst(ctx context.Context, pub *Publication, was *store.Collection,
	document *tmdm.TopicMap) (*Published, error) {
	named, err := fragment.NameTopics(ctx, document, was.SP, nil)
	if err != nil {
		return nil, err
	}
	start := p.Now()
	shown := p.Begin(pub.Collection)
	defer shown()
	c, err := p.Store.FillCollection(ctx, pub.Collection,
		store.First{Source: named, Author: pub.Author, Note: pub.Note, RDF: pub.RDF, Snapshot: true}, pub.allowed)
	if err != nil {
		return nil, err
	}
	done := Published{Added: c.Topics}
	done.add(c)
	if _, err := p.Store.TakeSnapshot(ctx, c.Name, cmp.Or(c.SnapshotsKept, p.SnapshotsKept)); err != nil {
		p.Logger.Warn("no snapshot of the first version yet; it is taken later", "collection", c.Name, "error", err)
	}
	p.committed(c, &done, start)
	return &done, nil
}

func (p *Publisher) committed(c *store.Collection, done *Published, start time.Time) {
	p.Logger.Info("published", "collection", c.Name, "added", done.Added, "updated", done.Updated, "deleted", done.Deleted,
		"took", p.Now().Sub(start).Round(time.Millisecond))
	p.After(c)
}

// preview does the same as commit, without committing.
func (p *Publisher) preview(ctx context.Context, pub *Publication, was *store.Collection,
	document *tmdm.TopicMap) (*Published, error) {
	done := Published{DryRun: true}
	c, err := p.Store.Preview(ctx, pub.Collection, pub.decide(ctx, was, document, done.preview))
	if err != nil {
		return nil, err
	}
	done.Collection, done.Topics = c.Name, c.Topics
	return &done, nil
}

// previewMissing returns the changes of the first version of a collection that does not exist yet.
func (p *Publisher) previewMissing(ctx context.Context, pub *Publication, c *store.Collection,
	document *tmdm.TopicMap) (*Published, error) {
	done := Published{DryRun: true, Collection: c.Name, SP: c.SP}
	change, err := pub.Decide(ctx, *c, &merge.Memory{}, document)
	if err == nil {
		err = done.preview(&merge.Memory{}, change)
	}
	done.Topics = done.Added
	return &done, err
}

// Create creates a collection from a document, with its first snapshot. c needs Name, SP and DocumentSize; uri names
// the document in errors, and graph states that it is a graph.
func (p *Publisher) Create(ctx context.Context, c store.Collection, uri string, graph bool,
	read func(sp string) (*tmdm.TopicMap, error)) (*store.Collection, error) {
	if err := fragment.ValidatePrefix(c.SP); err != nil {
		return nil, fmt.Errorf("collection %s: %w", c.Name, err)
	}
	document, err := read(c.SP)
	if err != nil {
		return nil, err
	}
	named, err := fragment.NameTopics(ctx, document, c.SP, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", uri, err)
	}
	shown := p.Begin(c.Name)
	defer shown()
	created, err := p.Store.CreateCollection(ctx, c, store.First{Source: named, RDF: graph, Snapshot: true},
		func(records int) {
			p.Logger.Debug("importing", "collection", c.Name, "records", records)
		})
	if err != nil {
		return nil, err
	}
	if _, err := p.Store.TakeSnapshot(ctx, c.Name, p.SnapshotsKept); err != nil {
		return nil, err
	}
	return created, nil
}

// add notes the collection as it is after the commit.
func (d *Published) add(c *store.Collection) {
	d.Collection, d.Topics, d.LastChange = c.Name, c.Topics, feeds.FormatTime(c.Updated)
}
