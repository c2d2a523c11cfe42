package history

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/formats/mapdiff"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/titles"
)

// Change is the change of a topic: with an entry, or between two states.
type Change struct {
	Entry   uint64 `json:"entry,omitempty"`  // its sequence; 0: between two states
	Commit  uint64 `json:"commit,omitempty"` // its number: the sequence of its last entry
	Updated string `json:"updated,omitempty"`
	TopicSI string `json:"topicSI"`
	Title   string `json:"title,omitempty"`
	Kind    Kind   `json:"change"`
	Topic   string `json:"topic,omitempty"` // the new TopicSI of a topic that is [Moved]

	Author string `json:"author,omitempty"`
	Note   string `json:"note,omitempty"`

	Removed []mapdiff.Statement `json:"removed,omitempty"` // only in the version before
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
	Moved   Kind = "moved" // the topic has another TopicSI
)

// List is a part of the log, the newest change first.
type List struct {
	Collection string   `json:"collection"`
	Changes    []Change `json:"changes"`
	Commits    []Commit `json:"commits,omitempty"` // in place of the changes, if requested
	Before     uint64   `json:"before,omitempty"`  // sequence before which the list continues; 0: it ends here
	Pruned     string   `json:"pruned,omitempty"`  // changes up to this time are no longer kept
}

// Commit is a commit of a collection.
type Commit struct {
	Commit  uint64 `json:"commit"` // its number: the sequence of its last entry
	Time    string `json:"time"`   // of that
	Author  string `json:"author,omitempty"`
	Note    string `json:"note,omitempty"`
	Added   int    `json:"added"`
	Updated int    `json:"updated"`
	Deleted int    `json:"deleted"`
	Moved   int    `json:"moved,omitempty"`
}

// Query selects changes.
type Query struct {
	TopicSI fragment.Ref // "": all topics
	Since   time.Time    // not before this time
	Before  uint64       // sequence before which to begin; 0: with the newest
	Limit   int          // as many at most
	Words   bool         // with the differences
	Commits bool         // commits in place of changes
	Author  string       // of the changes; "": any

	Languages titles.Languages // in which topics are called, the best first, before that of the map
}

// Changes lists changes of a collection.
func Changes(ctx context.Context, v *store.View, q Query) (*List, error) {
	l := &List{Collection: v.Name, Changes: []Change{}}
	if v.Horizon > 0 && !q.Since.After(v.HorizonTime) {
		l.Pruned = feeds.FormatTime(v.HorizonTime)
	}
	for e, err := range entries(v, &q) {
		if err != nil {
			return nil, err
		}
		if e.Updated.Before(q.Since) {
			break
		}
		if q.Author != "" && e.Author != q.Author {
			continue
		}
		if q.Commits {
			if more, err := l.count(v, e, q.Limit); err != nil || !more {
				return l, err
			}
			continue
		}
		if len(l.Changes) == q.Limit {
			l.Before = l.Changes[len(l.Changes)-1].Entry
			l.Pruned = ""
			break
		}
		c, err := changeOf(v, e, q.Languages)
		if err != nil {
			return nil, err
		}
		l.Changes = append(l.Changes, c)
	}
	if q.Words {
		return l, compare(ctx, v, l.Changes, q.Languages)
	}
	return l, nil
}

// count counts an entry in its commit. It returns false if that exceeds the limit: the next page begins there.
func (l *List) count(v *store.View, e *store.Entry, limit int) (more bool, err error) {
	number, err := v.CommitOf(e.Seq)
	if err != nil {
		return false, err
	}
	if n := len(l.Commits); n == 0 || l.Commits[n-1].Commit != number {
		if n == limit {
			l.Before, l.Pruned = e.Seq+1, ""
			return false, nil
		}
		l.Commits = append(l.Commits,
			Commit{Commit: number, Time: feeds.FormatTime(e.Updated), Author: e.Author, Note: e.Note})
	}
	c := &l.Commits[len(l.Commits)-1]
	*map[Kind]*int{Added: &c.Added, Updated: &c.Updated, Deleted: &c.Deleted, Moved: &c.Moved}[KindOf(e)]++
	return true, nil
}

// entries iterates over the stored entries that a query selects, the newest first.
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

// changeOf returns the change of an entry.
func changeOf(v *store.View, e *store.Entry, languages titles.Languages) (Change, error) {
	if len(languages) > 0 {
		languages = slices.Concat(languages, v.Languages())
	}
	if err := v.SetTitle(e, languages...); err != nil {
		return Change{}, err
	}
	commit, err := v.CommitOf(e.Seq)
	c := Change{
		Entry: e.Seq, Commit: commit, Updated: feeds.FormatTime(e.Updated),
		TopicSI: string(e.TopicSI), Title: e.Title, Kind: KindOf(e), Author: e.Author, Note: e.Note,
	}
	if c.Kind == Moved {
		c.Topic = string(e.Topic)
	}
	return c, err
}

// KindOf returns the kind of change of an entry.
func KindOf(e *store.Entry) Kind {
	switch {
	case e.Deleted:
		return Deleted
	case !e.Lives():
		return Moved
	case e.Modified:
		return Updated
	}
	return Added
}

// compare adds the differences to changes. Those of one commit must be adjacent.
func compare(ctx context.Context, v *store.View, changes []Change, languages titles.Languages) error {
	for len(changes) > 0 {
		n := 1
		for n < len(changes) && changes[n].Commit == changes[0].Commit {
			n++
		}
		if err := compareCommit(ctx, v, changes[:n], languages); err != nil {
			return err
		}
		changes = changes[n:]
	}
	return nil
}

// compareCommit is compare for changes of one commit.
func compareCommit(ctx context.Context, v *store.View, changes []Change, languages titles.Languages) error {
	b, err := commit(v, changes[0].Commit, languages...)
	if errors.Is(err, store.ErrGone) {
		return b.withoutBefore(ctx, changes, err)
	}
	if err != nil {
		return err
	}
	about := make(map[fragment.Ref][][]byte, len(changes)) // the keys of the rows about each topic
	for i := range changes {
		about[fragment.Ref(changes[i].TopicSI)] = nil
	}
	err = b.rows(changes[0].Commit-1, changes[0].Commit, func(ref fragment.Ref, key []byte) error {
		if rows, ok := about[ref]; ok {
			about[ref] = append(rows, bytes.Clone(key))
		}
		return nil
	})
	for i := range changes {
		c := &changes[i]
		ref := fragment.Ref(c.TopicSI)
		var before, after *fragment.Fragment
		if err == nil {
			slices.SortFunc(about[ref], bytes.Compare)
			before, after, err = b.topics(ref, slices.CompactFunc(about[ref], bytes.Equal))
		}
		if err == nil && (before != nil || after != nil) {
			err = b.inWords(ctx, c, ref, before, after)
		}
	}
	return err
}

// withoutBefore compares changes of which the state before is not known: that is needed only for topics that were
// there.
func (b *between) withoutBefore(ctx context.Context, changes []Change, gone error) error {
	for i := range changes {
		c := &changes[i]
		c.Missing = gone.Error()
		if c.Kind != Added || !b.later {
			continue
		}
		ref := fragment.Ref(c.TopicSI)
		t, err := topicOf(b.after, ref)
		if err == nil && t != nil {
			var is *fragment.Fragment
			if is, err = fragmentThen(b.after, t); err == nil {
				c.Missing = ""
				err = b.inWords(ctx, c, ref, nil, is)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}
