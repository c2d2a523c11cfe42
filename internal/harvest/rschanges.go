package harvest

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/tmshare/tmshare/feeds/resourcesync"
)

// goneError says that the Change Lists do not tell what has happened since the mark.
type goneError struct {
	reason string
	anew   bool     // what is held may be of another history
	later  []Record // what they do tell
}

func (e *goneError) Error() string { return e.reason }

// changes reads the Change Lists that span the mark or are later (Z39.99 §12, Describing
// Changes). Those that an index names are read from the last one back. With the zero Mark it
// reads all that there are.
//
// All changes at the time of the mark or later are news, but for those at the mark that have
// been seen: there may be another one at the same time.
func (l *look) changes(ctx context.Context, ref string, mark Mark) (*News, error) {
	etag := ""
	if mark.Document == ref {
		etag = mark.ETag
	}
	p, err := l.read(ctx, ref, etag)
	switch {
	case Gone(err):
		return nil, &goneError{reason: "the Change List is not there: " + err.Error()}
	case err != nil:
		return nil, err
	case p.NotModified:
		return &News{Unchanged: true, Mark: mark}, nil
	}
	w := l.walk(mark)
	w.read[ref] = p
	n, at := &News{}, ref
	// A list that is too late, or closed, is not all there is: the index has the others.
	if index, ok := p.Link(resourcesync.RelIndex); ok && !p.Index && index.Href != ref && (!p.Until.IsZero() || !w.reaches(p.From)) {
		indexed, err := l.read(ctx, index.Href, "")
		switch {
		case Gone(err) && (p.From.IsZero() || !p.From.Before(mark.Updated)):
			return nil, &goneError{reason: "the index of the Change Lists is not there: " + err.Error()}
		case err != nil && !Gone(err):
			return nil, err
		case err == nil && indexed.Index:
			p, at = indexed, index.Href
		}
	} else if !p.Index {
		n.Mark.Document, n.Mark.ETag = ref, p.ETag
	}
	for range mostReadings {
		if err := w.add(ctx, p, time.Time{}); err != nil {
			return nil, err
		}
		if !w.gap {
			return n, w.end(n)
		}
		now, err := l.read(ctx, at, "")
		switch {
		case err != nil:
			return nil, err
		case reflect.DeepEqual(now.items, p.items): // the Source is not exact with its times
			return n, w.end(n)
		}
		p, w = now, l.walk(mark)
	}
	return nil, fmt.Errorf("%s: the Change Lists change faster than they can be read", at)
}

// mostReadings is how often an index is read that changes while its lists are.
const mostReadings = 5

func (l *look) walk(mark Mark) *changeWalk {
	return &changeWalk{look: l, mark: mark, read: map[string]*listing{}, added: map[string]bool{}}
}

// changeWalk is one reading of Change Lists.
type changeWalk struct {
	*look
	mark    Mark
	read    map[string]*listing // before the walk
	added   map[string]bool     // by URI
	lists   [][]Record          // the last one first
	until   time.Time           // all changes up until then are there
	open    bool                // a list goes on
	first   time.Time           // when the first list begins that was read
	reached bool                // all changes since the mark are there
	covered bool                // and all that were at its time

	// gap says that the index does not name what was before one of the lists: that was
	// closed, and begun anew, after the index was read.
	gap bool
}

// reaches reports whether what is from a time on holds all that is later than the mark.
func (w *changeWalk) reaches(from time.Time) bool {
	return w.mark.Updated.IsZero() || !from.IsZero() && !from.After(w.mark.Updated)
}

// add adds a list, or those of an index. from is when it begins, as the index says.
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
	w.lists = append(w.lists, w.records(p))
	return nil
}

// follows notes whether what is from a time on goes on where what was before it ends.
func (w *changeWalk) follows(from, end time.Time) {
	w.gap = w.gap || !end.IsZero() && from.After(end) && from.After(w.mark.Updated)
}

// addIndexed adds the lists of an index that are not older than the mark.
func (w *changeWalk) addIndexed(ctx context.Context, p *listing) error {
	parts := p.items
	if !slices.ContainsFunc(parts, func(i resourcesync.Item) bool { return i.From.IsZero() }) {
		slices.SortStableFunc(parts, func(a, b resourcesync.Item) int { return a.From.Compare(b.From) })
	}
	var next time.Time // when the list behind begins, as it says itself
	for i := len(parts) - 1; i >= 0 && !w.covered; i-- {
		part := &parts[i]
		until := part.Until
		if until.IsZero() && i+1 < len(parts) {
			until = parts[i+1].From
		}
		w.follows(next, until)
		if !until.IsZero() && until.Before(w.mark.Updated) {
			w.reached = true // it is there, but has nothing new
			continue
		}
		if w.added[part.Loc] {
			continue
		}
		w.added[part.Loc] = true
		list, err := w.read[part.Loc], error(nil)
		if list == nil {
			list, err = w.look.read(ctx, part.Loc, "")
		}
		switch {
		case Gone(err):
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

// end makes news of the lists.
func (w *changeWalk) end(n *News) error {
	var all []Record
	for _, list := range slices.Backward(w.lists) {
		all = append(all, list...)
	}
	at := w.mark.Updated
	found := map[string]int{} // changes of a record at the mark
	later := map[string]bool{}
	for i := range all {
		r := &all[i]
		switch r.Updated.Compare(at) {
		case 0:
			found[r.ID]++
		case 1:
			later[r.ID] = true
		}
		if r.Updated.IsZero() {
			return &goneError{reason: "the Change Lists do not say when a resource was changed"}
		}
	}
	known := map[string]int{}
	for _, id := range w.mark.At {
		known[id]++
		if w.covered && found[id] == 0 && !later[id] {
			return &goneError{reason: "the last changes that were handled are not in the Change Lists any more", anew: true}
		}
		w.reached = w.reached || found[id] > 0 // what is behind it is all that is new (Z39.99 §12.1)
	}
	// A Source whose clock was wrong for a while lists what is earlier behind what is later: from
	// the first change on that is not before the mark, what is held decides.
	first := slices.IndexFunc(all, func(r Record) bool { return !r.Updated.Before(at) })
	if first < 0 {
		first = len(all)
	}
	n.Older, all = all[:first], all[first:]
	times := map[string]int{}
	for i := range all {
		times[all[i].ID]++
	}
	n.Records = latest(all)
	for i := range n.Records {
		r := &n.Records[i]
		// Two changes at one time are told apart by their number alone.
		r.Anew = r.Updated.After(at) && times[r.ID] > 1 || r.Updated.Equal(at) && found[r.ID] > known[r.ID]
		if times[r.ID]-known[r.ID] > 1 {
			r.dropPatches()
		}
	}
	if !w.reached {
		return &goneError{reason: "the Change Lists do not reach back to the last round", later: n.Records}
	}
	w.moveMark(&n.Mark, all, found, known)
	return nil
}

// moveMark moves the mark to the last changes, or to where lists end of which none goes on.
func (w *changeWalk) moveMark(m *Mark, all []Record, found, known map[string]int) {
	m.Updated = w.mark.Updated
	for i := range all {
		if all[i].Updated.After(m.Updated) {
			m.Updated = all[i].Updated
		}
	}
	switch {
	case !w.open && w.until.After(m.Updated):
		m.Updated = w.until
	case m.Updated.IsZero(): // nothing has ever changed
		m.Updated = w.first
	}
	if m.Updated.Equal(w.mark.Updated) {
		for id, n := range known {
			for range max(n, found[id]) {
				m.At = append(m.At, id)
			}
		}
		for id, n := range found {
			for range n {
				if known[id] == 0 {
					m.At = append(m.At, id)
				}
			}
		}
	} else {
		for i := range all {
			if all[i].Updated.Equal(m.Updated) {
				m.At = append(m.At, all[i].ID)
			}
		}
	}
	slices.Sort(m.At)
}

// latest returns of each record the last state. Of two at one time that is the one behind.
func latest(all []Record) []Record {
	at := make(map[string]int, len(all))
	var last []Record
	for _, r := range all {
		i, again := at[r.ID]
		switch {
		case !again:
			at[r.ID] = len(last)
			last = append(last, r)
		case !r.Updated.Before(last[i].Updated):
			last[i] = r
		}
	}
	slices.SortStableFunc(last, func(a, b Record) int { return a.Updated.Compare(b.Updated) })
	return last
}
