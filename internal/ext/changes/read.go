package changes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/history"
	"github.com/tmshare/tmshare/internal/seq"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/records"
)

// consumer returns the name of the consumer for which the changes of a source are remembered.
func consumer(source string) string { return "changes/" + source }

// keep makes the store keep the changes of a source from now on. begun reports whether it did not before.
func keep(ctx context.Context, db *store.DB, source string) (begun bool, err error) {
	err = db.AddConsumer(ctx, store.Consumer{Name: consumer(source), Source: source, WithSource: true})
	if errors.Is(err, store.ErrExists) {
		return false, nil
	}
	return err == nil, err
}

// reader reads the changes of a source.
type reader struct {
	db     *store.DB
	source string
	rdf    bool // with the statements of RDF
}

// mostLines and mostBytes are the limits of one read.
const (
	mostLines = 20_000
	mostBytes = 32 << 20
)

// errFull ends reading for now.
var errFull = errors.New("as many lines as are read at a time")

// The places where reading begins, besides positions.
const (
	beginning = "beginning"
	now       = "now"
)

// read calls f with the changes after a position, until the end of the log or a limit. f returns the length of a line
// in bytes. read returns the position to continue.
func (r *reader) read(ctx context.Context, from string, f func(*Line) (int, error)) (next string, err error) {
	next = from
	lines, size := 0, 0
	tell := func(l *Line) error {
		if lines == mostLines || size > mostBytes {
			return errFull
		}
		n, err := f(l)
		lines, size, next = lines+1, size+n, l.Position
		return err
	}
	another := false
	err = r.db.Consume(ctx, consumer(r.source), func(c *store.Consumed) error {
		if another = c.Number != c.Bound || c.Generation != c.Head.Generation; another {
			return nil
		}
		p := position{history: historyOf(c.History), commit: c.Head.Commit}
		switch from {
		case now:
			next = p.String()
			return nil
		case beginning:
			p.whole = true
		default:
			if p, err = parsePosition(from); err != nil {
				return err
			}
		}
		return r.from(ctx, c, p, tell)
	})
	if another { // the source was replaced: keep the changes of the new one
		err := r.db.ChangeConsumer(ctx, consumer(r.source), func(c *store.Consumer) { c.Number = 0 })
		if err != nil {
			return next, err
		}
		return r.read(ctx, from, f)
	}
	if errors.Is(err, errFull) {
		err = nil
	}
	return next, err
}

func (r *reader) from(ctx context.Context, c *store.Consumed, p position, tell func(*Line) error) error {
	head := c.Head.Commit
	if p.history != historyOf(c.History) || p.commit < c.Since || p.commit > head {
		p = position{history: historyOf(c.History), commit: head, whole: true}
		if err := tell(&Line{Position: p.String(), Kind: Reset}); err != nil {
			return err
		}
	}
	if p.whole {
		if err := r.present(ctx, c, p, tell); err != nil {
			return err
		}
		p.whole, p.topics = false, 0
	}
	for commit, err := range c.Commits(p.commit) {
		if err == nil && commit > head {
			break
		}
		if err == nil {
			err = r.commit(ctx, c, p, commit, tell)
		}
		if err != nil {
			return err
		}
		p.commit, p.topics = commit, 0
	}
	return nil
}

// present sends lines of all topics that exist after a commit, except those already sent.
func (r *reader) present(ctx context.Context, c *store.Consumed, p position, tell func(*Line) error) error {
	state, err := c.State(p.commit)
	if err != nil {
		return err
	}
	names := fragment.Names{In: state, Languages: c.Languages}
	n := 0
	var last *Line // the last one has the position of the commit
	for t, err := range state.Topics() {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if n++; n <= p.topics {
			continue
		}
		if last != nil {
			if err := tell(last); err != nil {
				return err
			}
		}
		at := position{p.history, p.commit, n, true}
		last = &Line{Position: at.String(), Kind: Present, Topic: string(t.TopicSI()), After: stateOf(t)}
		if last.Title, err = names.Title(t); err != nil {
			return err
		}
		if r.rdf {
			f := &fragment.Fragment{Topic: t}
			for a, err := range state.PlayedBy(t.TopicSI()) {
				if err != nil {
					return err
				}
				f.Associations = append(f.Associations, a)
			}
			if err := difference(c.SP, last, nil, f); err != nil {
				return err
			}
		}
	}
	if last == nil {
		return nil
	}
	last.Position = position{history: p.history, commit: p.commit}.String()
	return tell(last)
}

// commit sends lines of the changes of a commit, except those of topics already sent.
func (r *reader) commit(ctx context.Context, c *store.Consumed, p position, commit uint64,
	tell func(*Line) error) error {
	before, err := c.State(commit - 1)
	if err != nil {
		return err
	}
	after, err := c.State(commit)
	if err != nil {
		return err
	}
	common := Line{}
	if e, err := c.Entry(commit); err != nil && !errors.Is(err, store.ErrGone) {
		return err
	} else if e != nil {
		common.Time, common.Author, common.Note = e.Updated, e.Author, e.Note
	}
	n := 0
	var last *Line
	topics := history.Topics(c, before, after, r.db.Scratch(), commit-1, commit)
	err = seq.Each(topics, func(t history.Topic) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if n++; n <= p.topics {
			return nil
		}
		if last != nil {
			if err := tell(last); err != nil {
				return err
			}
		}
		at := position{history: p.history, commit: p.commit, topics: n}
		last = &Line{Position: at.String(), Time: common.Time, Author: common.Author, Note: common.Note}
		return r.topic(c, last, &t, before, after)
	})
	if last == nil || err != nil {
		return err
	}
	last.Position = position{history: p.history, commit: commit}.String()
	return tell(last)
}

// topic sets the change of a topic in a line.
func (r *reader) topic(c *store.Consumed, l *Line, t *history.Topic, before, after records.State) (err error) {
	l.Topic, l.Kind = string(t.TopicSI), Changed
	in, as := after, t.After
	switch {
	case t.Before == nil:
		l.Kind = Added
	case t.After == nil:
		l.Kind, in, as = Deleted, before, t.Before
	}
	if t.Before != nil {
		l.Before = stateOf(t.Before.Topic)
	}
	if t.After != nil {
		l.After = stateOf(t.After.Topic)
	}
	names := fragment.Names{In: in, Languages: c.Languages}
	if l.Title, err = names.Title(as.Topic); err != nil || !r.rdf {
		return err
	}
	return difference(c.SP, l, t.Before, t.After)
}

// difference sets the removed and the added statements in a line.
func difference(sp string, l *Line, before, after *fragment.Fragment) error {
	was, err := statements(sp, before)
	if err != nil {
		return err
	}
	is, err := statements(sp, after)
	if err != nil {
		return err
	}
	only := func(these, others map[string]bool) []string {
		return slices.DeleteFunc(slices.Sorted(maps.Keys(these)), func(line string) bool { return others[line] })
	}
	l.Removed, l.Added = only(was, is), only(is, was)
	return nil
}

// gone returns the error for a removed source, with the remedy.
func gone(source string, err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("no collection and no subscription is called %q", source)
	}
	return err
}
