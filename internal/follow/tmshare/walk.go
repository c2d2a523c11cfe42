package tmshare

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/internal/follow"
)

// walk is one reading of a feed.
type walk struct {
	*Source
	fetcher *fetch.Fetcher
	mark    follow.Mark
	memory  *follow.Memory // nil: none
	doubt   *follow.Doubt
	whole   bool // it is read to its end
	log     *follow.Log

	found     map[string]bool // by key, whether the expected entries were found
	missing   int             // number of missing entries of the mark
	relied    bool            // the entry on which the state relies was found, or there is none
	contained []string        // ids of the entries at the mark's time that the snapshot contains
	size      int             // size of these in bytes
	passed    bool            // an entry before the mark was seen
	paged     bool
	descends  bool      // an entry is older than the one before it
	stated    bool      // entries state whether their topic is deleted: the server is one of TMShare in Go
	mixed     bool      // the entries are not in descending order
	earlier   time.Time // the time of the last entry that was added
	newest    feeds.Entry
	digest    string // the state digest of the last entry that stood at the mark
	count     int    // of the document

	span   *follow.SpanRead
	first  map[string]bool // the entries of the recent document, by key
	doubts bool            // the newest entry of the doubtful reading was read
	gone   bool            // the server does not keep a document any more
	other  bool            // the feed has another id
}

func (s *Source) walk(ref string, look follow.Look) *walk {
	w := &walk{
		Source: s, fetcher: look.Fetcher(s.Fetcher), mark: look.Mark, memory: look.Memory, doubt: look.Doubted(),
		whole: look.Whole, log: follow.NewLog(ref, &s.Scratch),
		found: map[string]bool{}, relied: look.Relied == "", first: map[string]bool{},
	}
	if w.doubt != nil && w.doubt.Head == "" {
		w.doubt = nil
	}
	for _, id := range w.mark.At {
		w.found[follow.Key(id, w.mark.Updated)] = false
	}
	w.missing = len(w.found)
	return w
}

// etag returns the ETag of the recent document that need not be read again.
func (w *walk) etag() string {
	if w.memory != nil && w.memory.Doubt != nil {
		return w.memory.Doubt.ETag
	}
	if w.whole {
		return ""
	}
	return w.mark.ETag
}

func (w *walk) read(ctx context.Context, ref string) (*follow.Delta, error) {
	n := &follow.Delta{Log: w.log, Scratch: &w.Scratch, Mark: w.mark}
	chain := w.chain(w.fetcher)
	chain.Check = func(d *follow.Document) error { return w.check(d, n.Feed, d.Count == 1) }
	if w.Bundles {
		chain.Wants, chain.Ahead = w.wants, w.Ahead
	}
	for d, err := range chain.Documents(ctx, ref, w.etag()) {
		var broken *follow.BrokenError
		var failed *fetch.Error
		switch {
		case errors.As(err, &broken) && errors.As(err, &failed) && failed.Gone():
			w.gone = true
		case errors.As(err, &broken):
			return nil, fmt.Errorf("%w; if it stays so, %s", err, w.Advice)
		case err != nil:
			return nil, err
		case d.NotModified:
			return w.unchanged(d.Answer), nil
		}
		if w.gone {
			break
		}
		if n.Documents, w.count = d.Count, d.Count; d.Count == 1 {
			n.Note(d.Answer)
			w.span = follow.NewSpanRead(w.memory.Remembered(), d.AsOf)
			n.Feed, n.Language, n.Openings = d.ID, d.Language, d.Openings
			_, n.Replica = d.Link(feeds.RelOrigin)
			n.Mark.ETag, n.AsOf, n.Mark.Feed = d.ETag, d.AsOf, d.ID
			w.other = w.mark.Feed != "" && d.ID != w.mark.Feed
		} else {
			n.NoteNext(w.memory, d.Answer)
		}
		w.paged = w.paged || d.Page || d.LeadsToPage()
		if err := w.add(d.Feed, d.From); err != nil {
			return nil, err
		}
		if w.complete() {
			break
		}
		n.ToEnd = d.IsLast()
	}
	if err := w.log.Sort(ctx); err != nil {
		return nil, err
	}
	if len(w.contained) > 0 {
		// They are kept, because a feed in which they are missing one day is that
		// of a server restored from a backup.
		n.Mark.At = w.contained
	}
	if w.missing == 0 && len(w.mark.At) > 0 {
		n.Mark.Digest = w.digest
	}
	w.judge(n)
	return n, nil
}

// unchanged returns the result for a feed whose ETag is the same.
func (w *walk) unchanged(a *fetch.Answer) *follow.Delta {
	n := &follow.Delta{Unchanged: true, Mark: w.mark, AsOf: a.AsOf}
	if w.memory != nil && w.memory.Doubt != nil {
		n.Again(w.memory.Doubt)
	}
	etag := n.ETag
	n.Note(a)
	n.ETag, n.Same = etag, true
	return n
}

// judge determines whether the feed continues from the mark.
func (w *walk) judge(n *follow.Delta) {
	n.Head, n.HeadAt = "", w.newest.Updated
	if w.newest.ID != "" {
		n.Head = follow.Key(w.newest.ID, w.newest.Updated)
	}
	n.News = w.log.Total() > 0
	doubt := w.doubt
	n.Holds = func(key string) bool { return doubt != nil && key == doubt.Head && w.doubts }
	n.Loss, n.Why = w.lost(n)
	if w.mixed || w.paged && !w.descends || n.Mixed { // a later entry need not change the recent document
		n.Mark.ETag = ""
	}
	n.KeepMark = n.Mixed
	if !w.stated && w.memory != nil && w.Until.IsZero() {
		n.Span = w.span.Span(n.ToEnd)
	}
}

// lost returns the reason why the feed does not continue from the mark.
func (w *walk) lost(n *follow.Delta) (follow.Loss, string) {
	known := w.memory.Remembered()
	anchor := w.mark.Updated
	if newest := known.Newest(); newest.After(anchor) {
		anchor = newest
	}
	switch {
	case w.Kept:
		return follow.LossNone, ""
	case w.other:
		return follow.LossFeed, "the feed has a new id: the server has begun a new history"
	case anchor.IsZero():
		return follow.LossNone, ""
	case w.newest.ID == "" && w.hadEntries():
		return follow.LossEmpty, "the feed has no entries any more"
	case w.outrun():
		return follow.LossOlder, "the snapshot is later than all entries of the feed"
	}
	if w.stands() {
		return follow.LossNone, ""
	}
	switch {
	case w.newest.Updated.Before(anchor):
		return follow.LossOlder,
			fmt.Sprintf("the newest entry of the feed (%s) is older than the last one that was applied (%s)",
				feeds.FormatTime(w.newest.Updated), feeds.FormatTime(anchor))
	case w.gone:
		return follow.LossShort, "the server keeps no history as old as the last round"
	case !w.passed:
		return follow.LossShort, "the feed does not reach back to the last entry that was applied"
	}
	return follow.LossDiverged, "the last entry that was applied is not in the feed any more"
}

// hadEntries reports whether the feed had entries before.
func (w *walk) hadEntries() bool {
	return len(w.mark.At) > 0 || w.memory != nil && len(w.memory.Held) > 0
}

// stands reports whether the feed still has the handled entries: those at the mark, the one on which the state relies,
// and on servers that prove nothing all remembered ones of the time that was read, or a later entry of the same topic.
// Servers of SDShare list each topic once, with the time of its last change.
func (w *walk) stands() bool {
	switch {
	case w.gone && !w.arrived():
		return false
	case w.stated || w.memory.Remembered() == nil:
		return w.relied && (w.missing == 0 || !w.stated && w.moved())
	}
	return !w.span.Lacks() && w.span.Stands()
}

// few is the maximum number of fragments that are fetched one by one instead of with the whole document.
const few = 3

// wants reports whether the fragments of a document are wanted with it: much of it is new.
func (w *walk) wants(d *follow.Document) bool {
	news := 0
	for i := range d.Entries {
		if e := &d.Entries[i]; e.State != "" && e.Updated.After(w.mark.Updated) {
			news++
		}
	}
	return news > few && 4*news >= len(d.Entries)
}

func (w *walk) add(f *feeds.Feed, document string) error {
	if n := len(f.Entries); n > 0 && f.Entries[0].Updated.Before(f.Entries[n-1].Updated) {
		slices.Reverse(f.Entries) // for the same order of entries of one time
		w.mixed = true
	}
	for i := range f.Entries {
		e := &f.Entries[i]
		w.stated = w.stated || e.State != ""
		if e.Updated.After(w.newest.Updated) {
			w.newest = *e
			w.newest.Fragment = nil
		}
		w.mixed = w.mixed || !w.earlier.IsZero() && e.Updated.After(w.earlier)
		w.descends = w.descends || e.Updated.Before(w.earlier)
		w.earlier = e.Updated
		// An entry at the time of the snapshot will do, if that contains it: those
		// before it may be pruned.
		w.passed = w.passed || w.isBefore(e) || w.isContained(e)
		if err := w.take(e, document); err != nil {
			return err
		}
	}
	return nil
}

// take adds an entry to the log, or notes that it is handled.
func (w *walk) take(e *feeds.Entry, document string) error {
	k := follow.Key(e.ID, e.Updated)
	w.relied = w.relied || k == w.mark.Relied
	if w.count == 1 {
		w.first[k] = true
	}
	w.doubts = w.doubts || w.doubt != nil && k == w.doubt.Head
	record := func() *follow.Record { return w.record(e, document) }
	if e.State == "" {
		w.span.Add(k, record().Topic(), e.Updated)
	}
	found, handled := w.found[k]
	switch {
	case handled:
		w.digest = e.Digest
		if !found {
			w.found[k] = true
			w.missing--
			if w.isUnsettled(k) {
				return w.log.Add(record())
			}
		}
	case w.isKnown(e, k):
		if w.isUnsettled(k) {
			return w.log.Add(record())
		}
	case w.isContained(e):
		if !found {
			w.contained = append(w.contained, e.ID)
			w.found[k] = true
			w.size += len(e.ID)
			return w.CheckAtOnce(e.Updated, w.size)
		}
	case !w.Until.IsZero() && e.Updated.After(w.Until):
	default:
		return w.log.Add(record())
	}
	return nil
}

func (w *walk) isUnsettled(key string) bool {
	_, again := w.mark.Unsettled[key]
	return again
}

// isKnown reports whether an entry was handled. On TMShare servers times strictly increase, so all entries before the
// mark were. On others an entry may be published late, with an earlier time: it is new unless it is remembered. An
// unread document with only older entries was published long ago.
func (w *walk) isKnown(e *feeds.Entry, key string) bool {
	span := w.memory.Remembered()
	if e.State != "" || span == nil {
		return w.isBefore(e) || w.memory != nil && w.memory.Handles(key)
	}
	return span.Has(key) || w.memory.Handles(key) || w.count > 1 && !span.Reaches(e.Updated)
}

// isBefore reports whether an entry is from before the mark. Nothing is before the beginning.
func (w *walk) isBefore(e *feeds.Entry) bool {
	return !w.mark.Updated.IsZero() && e.Updated.Before(w.mark.Updated)
}

// complete reports whether older documents have no new entries: all entries at the mark were found, or one before it.
// Servers choose the order of pages (RFC 5005 §3), so this holds only for descending ones.
func (w *walk) complete() bool {
	switch {
	case w.whole, w.mark.Updated.IsZero(), w.paged && (w.mixed || !w.descends):
		return false
	case w.doubt != nil && !w.doubts && !w.earlier.Before(w.doubt.HeadAt):
		return false
	case w.other:
		return true
	case !w.stated && w.memory.Remembered() != nil && w.paged:
		return w.earlier.Before(w.mark.Updated.Add(-follow.Grace))
	case !w.stated && w.memory.Remembered() != nil:
		return w.arrived() && w.span.Stands()
	}
	return w.arrived()
}

// arrived reports whether the walk has reached the mark.
func (w *walk) arrived() bool {
	return w.passed || len(w.mark.At) > 0 && w.missing == 0 && w.relied
}

// outrun reports whether the snapshot just loaded is later than all entries. Then it is a cached one of a lost history:
// on servers that state deletions, the last entry has the time of the last change in a snapshot. A collection without
// entries is an empty one.
func (w *walk) outrun() bool {
	return len(w.mark.At) == 0 && w.stated && w.newest.Updated.Before(w.mark.Updated)
}

// moved reports whether the missing entries at the mark may have moved, if none are remembered: a change moves an entry
// from the mark to a later place.
func (w *walk) moved() bool { return w.passed && w.log.Total() >= w.missing }

// isContained reports whether the snapshot just loaded certainly contains an entry. It contains an entry at its time if
// times strictly increase, as on servers that state deletions. Others have whole seconds, and may have published the
// entry after the snapshot.
func (w *walk) isContained(e *feeds.Entry) bool {
	return len(w.mark.At) == 0 && !w.mark.Updated.IsZero() && e.State != "" && e.Updated.Equal(w.mark.Updated)
}
