package destination

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"time"

	"github.com/tmshare/tmshare/feeds/resourcesync"
	"github.com/tmshare/tmshare/internal/extsort"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/iri"
)

// goneError is the error for Change Lists that lack changes since the mark.
type goneError struct {
	reason string
	anew   bool // the held resources may be of another history
}

func (e *goneError) Error() string { return e.reason }

// changes reads the Change Lists that span the mark or are later (Z39.99 §12, Describing Changes), those of an index
// from the last one backwards. With the zero Mark it reads all.
//
// It adds to the statements all changes at the time of the mark or later, except those at the mark that were seen
// before, because others may have the same time. Changes up to handled, which is the mark or later, count as seen. It
// adds them even if the error is a *goneError.
func (l *look) changes(ctx context.Context, ref string, mark, handled follow.Mark,
	to *follow.Statements) (_ *follow.Delta, err error) {
	etag := ""
	if mark.Document == ref && (!l.asked.Whole || l.asked.IfChanged) && l.asked.Doubted() == nil {
		etag = mark.ETag
	}
	p, err := l.read(ctx, ref, etag)
	switch {
	case follow.Gone(err):
		return nil, &goneError{reason: "the Change List is not there: " + err.Error()}
	case err != nil:
		return nil, err
	case p.NotModified:
		l.note(p.Answer)
		return &follow.Delta{Unchanged: true, Mark: mark}, nil
	}
	l.note(p.Answer)
	w := l.walk(mark, handled)
	w.read[ref] = p
	n, at := &follow.Delta{}, ref
	// A list that is too late, or closed, is not the whole: its index has the others.
	if index, ok := p.Link(resourcesync.RelIndex); ok && !p.Index && !iri.SameDocument(index.Href, ref) &&
		(!p.Until.IsZero() || !w.reaches(p.From)) {
		indexed, err := l.read(ctx, index.Href, "")
		switch {
		case follow.Gone(err) && (p.From.IsZero() || !p.From.Before(mark.Updated)):
			return nil, &goneError{reason: "the index of the Change Lists is not there: " + err.Error()}
		case err != nil && !follow.Gone(err):
			return nil, err
		case err == nil && indexed.Index:
			p, at = indexed, index.Href
		}
	} else if !p.Index {
		n.Mark.Document, n.Mark.ETag = ref, p.ETag
	}
	defer func() { err = errors.Join(err, w.rows.Close()) }()
	for range mostReadings {
		if err := w.add(ctx, p, time.Time{}); err != nil {
			return nil, err
		}
		if !w.gap {
			return n, w.end(ctx, n, to)
		}
		now, err := l.read(ctx, at, "")
		switch {
		case err != nil:
			return nil, err
		case reflect.DeepEqual(now.items, p.items): // the Source is not exact with its times
			return n, w.end(ctx, n, to)
		}
		if err := w.rows.Close(); err != nil {
			return nil, err
		}
		p, w = now, l.walk(mark, handled)
	}
	return nil, fmt.Errorf("%s: the Change Lists change faster than they can be read", at)
}

// mostReadings is the number of times that an index is read if it changes while its lists are read.
const mostReadings = 5

func (l *look) walk(mark, handled follow.Mark) *changeWalk {
	return &changeWalk{look: l, mark: mark, handled: handled, read: map[string]*listing{}, added: map[string]bool{},
		rows: l.Scratch.Sorter()}
}

// changeWalk is one reading of Change Lists.
type changeWalk struct {
	*look
	mark    follow.Mark
	handled follow.Mark         // position of an earlier round
	read    map[string]*listing // before the walk
	added   map[string]bool     // by URI
	rows    *extsort.Sorter     // the changes, the oldest list first
	lists   uint32              // number of added lists, the last one first
	until   time.Time           // all changes up until then are there
	open    bool                // a list is open
	first   time.Time           // when the first list begins that was read
	reached bool                // all changes since the mark are there
	covered bool                // and all that were at its time
	placed  bool                // some changes have no time

	// gap states that the index lacks the list before one of the lists: that list was closed, and a new one begun,
	// after the index was read.
	gap bool
}

// reaches reports whether the changes from a time on include all that are later than the mark.
func (w *changeWalk) reaches(from time.Time) bool {
	return w.mark.Updated.IsZero() || !from.IsZero() && !from.After(w.mark.Updated)
}

// add adds a list, or those of an index. from is the beginning of the list by the index.
func (w *changeWalk) add(ctx context.Context, p *listing, from time.Time) error {
	if !p.From.IsZero() {
		from = p.From
	}
	w.reached = w.reached || w.reaches(from)
	if p.Index {
		return w.addIndexed(ctx, p)
	}
	if w.first.IsZero() || from.Before(w.first) {
		w.first = from
	}
	w.covered = w.covered || !from.IsZero() && from.Before(w.mark.Updated)
	switch {
	case p.Until.IsZero():
		w.open = true
	case p.Until.After(w.until):
		w.until = p.Until
	}
	w.lists++
	for i := range p.items {
		r := w.record(&p.items[i])
		switch {
		case r.Updated.IsZero():
			r.Placed, r.Updated, r.Before = true, from, p.Until
		case !r.Before.IsZero(): // of a day: a date covers all of it
			r.Placed = true
		}
		w.placed = w.placed || r.Placed
		if err := w.keep(&r, i); err != nil {
			return err
		}
	}
	return nil
}

// keep keeps a change at its place in the list that is added.
func (w *changeWalk) keep(r *follow.Record, place int) error {
	if err := w.Scratch.Admit(w.url, w.rows.Count()); err != nil {
		return err
	}
	one, err := follow.StatementOf(r, follow.KindChanged, 0)
	if err != nil {
		return err
	}
	key := binary.BigEndian.AppendUint32(nil, math.MaxUint32-w.lists)
	row := one.InOrder(binary.BigEndian.AppendUint32(key, uint32(place)))
	return w.rows.Add(row.Key, row.Value)
}

// follows records whether the changes from a time on continue where the earlier ones end.
func (w *changeWalk) follows(from, end time.Time) {
	w.gap = w.gap || !end.IsZero() && from.After(end) && from.After(w.mark.Updated)
}

// addIndexed adds the lists of an index that are not older than the mark.
func (w *changeWalk) addIndexed(ctx context.Context, p *listing) error {
	parts := p.items
	if !slices.ContainsFunc(parts, func(i resourcesync.Item) bool { return i.From.IsZero() }) {
		slices.SortStableFunc(parts, func(a, b resourcesync.Item) int { return a.From.Compare(b.From) })
	}
	var next time.Time // when the next list begins by its own statement
	for i := len(parts) - 1; i >= 0 && !w.covered; i-- {
		part := &parts[i]
		until := part.Until
		if until.IsZero() && i+1 < len(parts) {
			until = parts[i+1].From
		}
		w.follows(next, until)
		if !until.IsZero() && until.Before(w.mark.Updated) {
			w.reached = true // it exists without new changes
			continue
		}
		if w.added[part.Loc] {
			continue
		}
		w.added[part.Loc] = true
		list, err := w.read[part.Loc], error(nil)
		if list == nil {
			if list, err = w.look.read(ctx, part.Loc, ""); err == nil {
				w.note(list.Answer)
			}
		}
		switch {
		case follow.Gone(err):
			return &goneError{reason: "a Change List is not there any more: " + err.Error()}
		case err != nil:
			return err
		}
		if err := w.add(ctx, list, part.From); err != nil {
			return err
		}
		w.follows(next, list.Until)
		next = list.From
	}
	if !w.covered {
		w.follows(next, p.From)
	}
	return nil
}

// begun returns the records at the target of an unfinished round, each with false. Some of that round's changes may be
// held though the server, if restored since, no longer has them.
func (w *changeWalk) begun() map[string]bool {
	ids := map[string]bool{}
	if w.mark.Begun != nil {
		for _, id := range w.mark.Begun.At {
			ids[id] = false
		}
	}
	return ids
}

// end makes news of the lists.
func (w *changeWalk) end(ctx context.Context, n *follow.Delta, to *follow.Statements) error {
	place, err := w.placing(ctx)
	if err != nil {
		return err
	}
	at := w.mark.Updated
	now, last, handled := &follow.Instant{At: at}, &follow.Instant{At: at}, &follow.Instant{At: w.handled.Updated}
	known := map[string]int{} // of the changes handled at the mark: the number of each
	later := map[string]bool{}
	for _, id := range w.mark.At {
		known[id] = 0
	}
	begun := w.begun()
	// A Source whose clock was wrong lists earlier times after later ones: from the first change that is not before the
	// mark on, the held state decides.
	news := false
	for row, err := range w.rows.Sorted() {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		one := follow.ReadInOrder(row)
		if err := place(&one); err != nil {
			return err
		}
		if _, isKnown := known[one.ID]; isKnown {
			if one.Updated.Equal(at) {
				known[one.ID]++
			}
			later[one.ID] = later[one.ID] || one.Updated.After(at)
		}
		if one.Updated.Equal(at) {
			now.Add(one.ID)
		}
		if one.Updated.Equal(handled.At) {
			handled.Add(one.ID)
		}
		if _, isBegun := begun[one.ID]; isBegun && !one.Updated.Before(w.mark.Begun.Updated) {
			begun[one.ID] = true
		}
		last.Latest(one.ID, one.Updated)
		news = news || !one.Updated.Before(at)
		one.Kind, one.Place = follow.KindOlder, w.places
		if news {
			one.Kind = follow.KindChanged
		}
		w.places++
		if err := to.Add(&one); err != nil {
			return err
		}
	}
	to.Rules.Since = follow.SeenAt(&w.handled, handled)
	for id, n := range known {
		if w.covered && n == 0 && (!later[id] || w.keeps) {
			return &goneError{reason: "the last changes that were handled are not in the Change Lists any more", anew: true}
		}
		w.reached = w.reached || n > 0 // all changes after it are new (Z39.99 §12.1)
	}
	for _, is := range begun {
		if w.reached && !is {
			return &goneError{reason: "changes of a round that was not finished are not in the Change Lists any more",
				anew: true}
		}
	}
	if !w.reached {
		return &goneError{reason: "the Change Lists do not reach back to the last round"}
	}
	n.Placed = w.placed
	w.moveMark(&n.Mark, last, now)
	return nil
}

// placing returns a function that gives a change without a time that of the previous change, because lists are in the
// order of time (Z39.99 §12.1, Change List). A change that may be before or after the mark counts as one at the mark,
// unless a later change was handled. The function must be called with each change in order.
func (w *changeWalk) placing(ctx context.Context) (place func(*follow.Statement) error, err error) {
	if !w.placed {
		return func(*follow.Statement) error { return nil }, nil
	}
	// Consecutive changes without times have the same next change.
	var nexts []time.Time
	n, lastHandled, together := 0, -1, false
	for row, err := range w.rows.Sorted() {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		one := follow.ReadInOrder(row)
		if !one.Placed {
			if together {
				nexts = append(nexts, one.Updated)
			}
			if one.Updated.Equal(w.mark.Updated) && slices.Contains(w.mark.At, one.ID) {
				lastHandled = n
			}
		}
		together = one.Placed
		n++
	}
	n = -1
	var last time.Time
	together = false
	return func(one *follow.Statement) error {
		n++
		if together && !one.Placed {
			nexts = nexts[1:]
		}
		if together = one.Placed; !together {
			last = one.Updated
			return nil
		}
		if one.Updated.Before(last) {
			one.Updated = last
		}
		last = one.Updated
		r, err := one.Record()
		if err != nil {
			return err
		}
		end := r.Before
		if len(nexts) > 0 && !nexts[0].IsZero() && (end.IsZero() || nexts[0].Before(end)) {
			end = nexts[0]
		}
		if at := w.mark.Updated; one.Updated.Before(at) && n > lastHandled && (end.IsZero() || end.After(at)) {
			one.Updated = at
		}
		return nil
	}, nil
}

// moveMark moves the mark to the last changes, or to the end of the lists if all are closed.
func (w *changeWalk) moveMark(m *follow.Mark, last, now *follow.Instant) {
	switch {
	case !w.open && w.until.After(last.At):
		last = &follow.Instant{At: w.until}
	case last.At.IsZero(): // no change so far
		last = &follow.Instant{At: w.first}
	}
	if !last.At.Equal(w.mark.Updated) {
		last.Move(m)
		slices.Sort(m.At)
		return
	}
	// What was handled at the mark stays so, though a list names it no longer.
	all := slices.Clone(now.IDs)
	for _, id := range w.mark.At {
		if i := slices.Index(all, id); i >= 0 { // for each time that it is there
			all = slices.Delete(all, i, i+1)
		}
	}
	all = append(all, w.mark.At...)
	slices.Sort(all)
	m.Updated, m.At, m.AllAt = last.At, all[:min(len(all), follow.MaxAt)], now.Digest()
}
