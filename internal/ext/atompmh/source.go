package atompmh

import (
	"context"
	"errors"
	"hash/maphash"
	"math"
	"slices"
	"time"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/internal/follow"
)

// Source reads feeds of the Atom Feed Protocol for Metadata Harvesting.
type Source struct {
	Fetcher *fetch.Fetcher
	Limits  feeds.Limits   // of one document
	MaxDocs int            // in one look; default 100,000
	Scratch follow.Scratch // for the entries

	Check    func(*follow.Document) error // see [follow.Chain]; may be nil
	Progress func(documents int)          // may be nil
}

// Delta reads the feed at the URL from its subscription document back to where h holds all its records, or to its end,
// and returns the changes since the mark.
//
// The documents are in the order of time, but the entries in each are not (Atom-PMH, Timestamps). So the walk ends at a
// document with an entry from before the mark, because later ones have nothing newer. It continues while h lacks a
// record of that document, because records are handled in the order of time.
//
// A record missing from a complete feed is deleted. An archived feed has deletion entries; a record without an entry
// means nothing, unless the whole feed is read for another reason: its id has changed, entries at the mark are gone, or
// it was a complete feed before, which has no deletion entries (Atom-PMH, Detecting deleted metadata records).
func (a *Source) Delta(ctx context.Context, ref string, look follow.Look, h follow.Inventory) (*follow.Delta, error) {
	fetcher, err := a.Fetcher.From(ref)
	if err != nil {
		return nil, err
	}
	var anew *anewError
	for again := 0; ; again++ {
		w := a.walk(ref, look, h, anew != nil)
		w.chain = follow.Chain{Fetcher: look.Fetcher(fetcher), Limits: a.Limits, MaxDocs: a.MaxDocs,
			Check: a.Check, Progress: a.Progress}
		n, err := w.read(ctx, ref)
		if err == nil && n.Documents > 1 && !w.keeps && w.memory != nil {
			recent := follow.Recent{URL: ref, ETag: n.ETag, Entries: w.first}
			err = recent.Stands(ctx, w.chain.Fetcher, a.Limits)
		}
		if err == nil {
			n.Anew = look.OfAnother(n.Mark.Feed)
			if anew == nil && n.Anew { // it declares itself complete
				anew = anotherFeed
			}
			if anew != nil && n.Loss == follow.LossNone {
				w.loses(n, anew)
			}
			return n, nil
		}
		err = errors.Join(err, w.stated.Close())
		switch {
		case anew == nil && errors.As(err, &anew):
		// the feed was cut into other documents meanwhile
		case errors.As(err, new(*follow.BrokenError)) && follow.Gone(err) && again < 3:
		case errors.Is(err, follow.ErrHeadMoved) && again < follow.MaxReadAgain:
		default:
			return nil, err
		}
	}
}

// anewError is the reason for reading the whole feed.
type anewError struct {
	loss   follow.Loss
	reason string
}

func (e *anewError) Error() string { return e.reason }

var (
	anotherFeed = &anewError{follow.LossFeed, "the feed has a new id: its history is another one"}
	noMoreWhole = &anewError{follow.LossDiverged, "the feed was a complete one, and is an archived one now"}
)

// loses records the reason for reading the whole feed, unless the missing entries were found in a document that was not
// expected to have them.
func (w *walk) loses(n *follow.Delta, why *anewError) {
	if why != anotherFeed && why != noMoreWhole && w.lost(n.Mark.Complete) == nil {
		n.Whole = n.Mark.Complete
		return
	}
	n.Loss, n.Why, n.Reason = why.loss, why.reason, why.reason
}

// walk is one reading of a feed.
type walk struct {
	*Source
	chain  follow.Chain
	holder follow.Inventory
	mark   follow.Mark
	memory *follow.Memory
	toEnd  bool // it is read to its end
	always bool // though it has not changed
	whole  bool // to the end, to find the records without an entry

	span  *follow.SpanRead
	first map[string]bool // the entries of the subscription document, by key
	asOf  time.Time       // a time, by the server's clock, from before it was read
	count int             // of the document
	paged bool

	url     string
	stated  *follow.Statements
	ignored int
	last    follow.Instant       // the latest entries that are not later than the server's clock
	newest  time.Time            // the latest time of an entry
	atMarks map[string]time.Time // of the records at the marks, the time of the last entry
	seen    map[string]bool      // of these: an entry exists at the time of a mark
	keeps   bool                 // the server keeps the entries that later ones of the record supersede

	// So that a walk knows where to end, it remembers the last state of each record, by a hash
	// of its id. nil: it reads all of the feed anyway.
	states map[uint64]lastState
	seed   maphash.Seed
}

// lastState is the last that a walk has seen of a record.
type lastState struct {
	updated int64 // microseconds since 1970
	deleted bool
}

func (a *Source) walk(ref string, look follow.Look, h follow.Inventory, whole bool) *walk {
	mark := look.Mark
	w := &walk{Source: a, holder: h, mark: mark, memory: look.Memory, toEnd: look.Whole || whole, whole: whole,
		always: look.Whole && !look.IfChanged, first: map[string]bool{}, url: ref,
		stated: follow.NewStatements(ref, &a.Scratch), atMarks: map[string]time.Time{}, seen: map[string]bool{},
		seed: maphash.MakeSeed()}
	w.stated.Rules.Unsure = true
	for _, m := range mark.Known() {
		for _, id := range m.At {
			w.atMarks[id] = time.Time{}
		}
	}
	if !w.toEnd && !mark.Updated.IsZero() {
		w.states = map[uint64]lastState{}
	}
	return w
}

func (w *walk) read(ctx context.Context, ref string) (*follow.Delta, error) {
	n := &follow.Delta{}
	etag := w.mark.ETag
	var doubt *follow.Doubt
	if w.memory != nil {
		doubt = w.memory.Doubt
	}
	switch {
	case w.whole:
		etag = ""
	case doubt != nil:
		etag = doubt.ETag
	case w.always:
		etag = ""
	}
	for d, err := range w.chain.Documents(ctx, ref, etag) {
		switch {
		case err != nil:
			return nil, err
		case d.NotModified:
			n.Unchanged, n.Mark = true, w.mark
			if doubt != nil {
				n.Again(doubt)
				n.HoldsTime(doubt)
			}
			n.Note(d.Answer)
			n.ETag, n.Same = etag, true
			return n, w.stated.Close()
		}
		w.count, w.paged = d.Count, w.paged || d.Page || d.LeadsToPage()
		if n.Documents = d.Count; d.Count > 1 {
			n.NoteNext(w.memory, d.Answer)
		} else {
			n.Note(d.Answer)
			n.Feed, n.Language, n.AsOf, w.asOf = d.ID, d.Language, d.AsOf, d.AsOf
			w.span = follow.NewSpanRead(w.memory.Remembered(), d.AsOf)
			n.Mark = follow.Mark{Feed: d.ID, ETag: d.ETag}
			if err := w.compare(d.Feed); err != nil {
				return nil, err
			}
		}
		if err := w.add(d.Feed); err != nil {
			return nil, err
		}
		n.ToEnd = d.IsLast()
		if d.Complete { // it has all active entries
			n.Whole, n.Mark.Complete = true, true
			break
		}
		done, err := w.handled(ctx, d.Feed)
		if err != nil {
			return nil, err
		}
		if done {
			break
		}
	}
	if n.Whole = n.Whole || w.whole; !n.Whole {
		if err := w.lost(false); err != nil {
			return nil, err
		}
	}
	n.Stated, n.Scratch, n.Ignored = w.stated, &w.Scratch, w.ignored
	w.last.Move(&n.Mark)
	n.News, n.HeadAt = w.stated.Count() > 0, w.newest
	if !w.newest.IsZero() {
		n.Head = feeds.FormatTime(w.newest)
	}
	n.HoldsTime(doubt)
	if n.Mixed {
		etag, feed := "", n.Mark.Feed
		n.Mark = w.mark
		n.Mark.ETag, n.Mark.Feed = etag, feed
	}
	if w.whole && w.stated.Count() == 0 && !n.Mark.Complete && n.Mark.Feed == w.mark.Feed { // deletions are stated
		n.Loss, n.Silent, n.Whole = follow.LossEmpty, true, false
		n.Why = "the feed has no entries any more, and is no complete one: that would say that everything is deleted, " +
			"without a word about it"
	}
	if !n.Mark.Complete {
		n.Span = w.span.Span(n.ToEnd)
	}
	return n, nil
}

// compare finds out from the subscription document whether the mark belongs to another
// feed than this one is.
func (w *walk) compare(f *feeds.Feed) error {
	if !w.whole && !f.Complete && w.mark.OfAnother(f.ID) {
		return anotherFeed
	}
	return nil
}

// add takes the entries of a document.
func (w *walk) add(f *feeds.Feed) error {
	if n := len(f.Entries); n > 0 && f.Entries[0].Updated.Before(f.Entries[n-1].Updated) {
		slices.Reverse(f.Entries) // so that, as elsewhere, the later of entries at one time come first
	}
	for i := range f.Entries {
		r, ok := recordOf(&f.Entries[i])
		if !ok {
			w.ignored++
			continue
		}
		r.Fresh = w.memory.Remembered().IsNew(follow.Key(r.ID, r.Updated), r.Updated)
		// Of entries at one time the first that is read counts.
		one, err := follow.StatementOf(&r, follow.KindChanged, math.MaxUint64-uint64(w.stated.Count()))
		if err == nil {
			err = w.stated.Add(&one)
		}
		if err != nil {
			return err
		}
		w.keeps = f.Entries[i].State != "" // as servers of ours do
		w.notice(&r)
	}
	return nil
}

// notice records the data of an entry that the walk needs.
func (w *walk) notice(r *follow.Record) {
	key := follow.Key(r.ID, r.Updated)
	w.span.Add(key, r.ID, r.Updated)
	if w.count == 1 {
		w.first[key] = true
	}
	if r.Updated.After(w.newest) {
		w.newest = r.Updated
	}
	latest := w.asOf
	if w.keeps {
		latest = latest.Add(follow.Grace)
	}
	if !r.Updated.After(latest) { // otherwise a later entry may have an earlier time
		w.last.Latest(r.ID, r.Updated)
	}
	if last, ok := w.atMarks[r.ID]; ok {
		if r.Updated.After(last) {
			w.atMarks[r.ID] = r.Updated
		}
		w.seen[atTime(r.ID, r.Updated)] = true
	}
	if w.states == nil {
		return
	}
	id := maphash.String(w.seed, r.ID)
	now := lastState{r.Updated.UnixMicro(), r.Deleted}
	switch before, again := w.states[id]; {
	case again && before.updated > now.updated:
	case again && before.updated == now.updated:
		now.deleted = before.deleted && now.deleted // one of them may be there
		fallthrough
	default:
		w.states[id] = now
	}
}

// atTime is a key for an entry of a record at a time.
func atTime(id string, at time.Time) string { return at.UTC().Format(time.RFC3339Nano) + " " + id }

// recordOf returns the record of an entry (Atom-PMH, Detecting entry type): that it is deleted, or available, now or
// before a later entry. Other entries have no defined type. An entry with links to representations counts as a record
// whatever else it contains, because other readers of Atom treat it so.
func recordOf(e *feeds.Entry) (follow.Record, bool) {
	r := follow.Record{ID: e.ID, Title: e.Title, Updated: e.Updated, Deleted: e.IsDeletion(), TopicSI: e.TopicSI,
		TopicSL: e.TopicSL}
	for _, l := range e.Find("alternate") {
		r.Representations = append(r.Representations, follow.Representation{URL: l.Href, Type: l.Type})
	}
	return r, r.Deleted || len(r.Representations) > 0
}

// handled reports whether the documents after f have nothing new.
func (w *walk) handled(ctx context.Context, f *feeds.Feed) (bool, error) {
	if w.states == nil {
		return false, nil
	}
	before, reach := false, w.mark.Updated
	if !w.keeps && w.paged {
		reach = reach.Add(-follow.Grace)
	}
	ids := make([]string, len(f.Entries))
	for i := range f.Entries {
		before = before || f.Entries[i].Updated.Before(reach)
		ids[i] = f.Entries[i].ID
	}
	if !before {
		return false, nil
	}
	held, err := w.holder.Versions(ctx, ids)
	if err != nil {
		return false, err
	}
	for i := range f.Entries {
		e := &f.Entries[i]
		last, ok := w.states[maphash.String(w.seed, e.ID)]
		if !ok || last.deleted || last.updated > e.Updated.UnixMicro() {
			continue // it belongs to no record, or is out of date
		}
		if version, ok := held[e.ID]; !ok || version.Before(e.Updated) {
			return false, nil
		}
	}
	return true, nil
}

// lost finds out whether the feed lacks the entries at the mark, or at the target of an interrupted round. If a
// record's same entry is gone, it must have a later one; without any, the feed has another history, such as after a
// restored backup. A feed that keeps superseded entries has another history if it lacks the same entry; or it was
// pruned that far, and must be read as a whole, too.
func (w *walk) lost(complete bool) error {
	for _, m := range w.mark.Known() {
		if m.Complete { // only here: the complete document may follow an empty one
			return noMoreWhole
		}
		for _, id := range m.At {
			if w.atMarks[id].Before(m.Updated) || w.keeps && !w.seen[atTime(id, m.Updated)] {
				loss := follow.LossDiverged
				if w.newest.Before(m.Updated) {
					loss = follow.LossOlder
				}
				return &anewError{loss, "the last entries that were handled are not in the feed any more"}
			}
		}
	}
	if w.memory != nil && !complete && w.span.Lacks() {
		return &anewError{follow.LossDiverged, "entries that were handled are not in the feed any more"}
	}
	return nil
}
