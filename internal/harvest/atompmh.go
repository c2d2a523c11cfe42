package harvest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/fetch"
)

// AtomPMH reads feeds of the Atom Feed Protocol for Metadata Harvesting.
type AtomPMH struct {
	Fetcher *fetch.Fetcher
	Limits  feeds.Limits // of one document
	MaxDocs int          // in one look; default 100,000

	// Check is given each document of the feed, where it came from, and whether it is the
	// first, before any of it is used. It may be nil.
	Check func(f *feeds.Feed, at string, first bool) error

	Progress func(documents int) // may be nil
}

// News reads the feed at the URL from its subscription document back to where h holds
// all that it says, or to its end, and returns what is new since the mark.
//
// The documents are in the order of time, the entries in each are in none (Atom-PMH,
// Timestamps). So the walk ends at a document which has an entry from before the mark:
// those behind it have nothing that is later. It goes on, though,
// as long as h lacks something of that document: what has been handled in the order of
// time lacks nothing behind it.
//
// A complete feed says of each record that is not in it that it is deleted. An archived
// one does so by deletion entries; that it has no entry of a record means nothing, unless
// all of it is read for another reason: its id has changed, or entries that stood at the
// mark are gone, or it was a complete feed before, which has no deletion entries
// (Atom-PMH, Detecting deleted metadata records).
func (a *AtomPMH) News(ctx context.Context, ref string, mark Mark, h Holder) (*News, error) {
	home, err := a.Fetcher.Home(ref)
	if err != nil {
		return nil, err
	}
	reason := ""
	for again := 0; ; again++ {
		w := walk{AtomPMH: a, home: home, holder: h, mark: mark, whole: reason != "", best: map[string]int{}}
		n, err := w.read(ctx, ref)
		var anew *anewError
		switch {
		case errors.As(err, &anew) && reason == "":
			reason = anew.reason
			continue
		case errors.As(err, new(*brokenError)) && Gone(err) && again < 3: // the feed was cut into other documents meanwhile
			continue
		case err != nil:
			return nil, err
		}
		if reason != "" && len(n.Records) == 0 && !n.Mark.Complete && n.Mark.Feed == mark.Feed {
			return nil, fmt.Errorf("%s: the feed has no entries any more, and is no complete one: that would say that everything is deleted, without a word about it; nothing was changed", ref)
		}
		n.Reason = reason
		n.Anew = mark.ofAnother(n.Mark.Feed)
		return n, nil
	}
}

// anewError says why all of the feed must be read.
type anewError struct{ reason string }

func (e *anewError) Error() string { return e.reason }

// brokenError says that a document is not to be had though another links to it.
type brokenError struct{ err error }

func (e *brokenError) Error() string {
	return "the chain of the feed's documents is broken: " + e.err.Error()
}
func (e *brokenError) Unwrap() error { return e.err }

// walk is one reading of a feed.
type walk struct {
	*AtomPMH
	home   func(*url.URL) error
	holder Holder
	mark   Mark
	whole  bool // read all of it

	records []Record
	best    map[string]int // by id: the place in records
	ignored int
}

func (w *walk) read(ctx context.Context, ref string) (*News, error) {
	n := &News{}
	seen := map[string]bool{}
	etag := w.mark.ETag
	if w.whole {
		etag = ""
	}
	for at := ref; at != ""; {
		if seen[at] {
			return nil, fmt.Errorf("%s: the documents of the feed lead in a circle", at)
		}
		if limit := cmp.Or(w.MaxDocs, 100_000); len(seen) >= limit {
			return nil, fmt.Errorf("%s: the feed has more than %d documents", ref, limit)
		}
		first := len(seen) == 0
		feed, a, err := Feed(ctx, w.Fetcher, w.Limits, at, etag, w.home)
		switch {
		case err != nil && !first && ctx.Err() == nil:
			return nil, &brokenError{err}
		case err != nil:
			return nil, err
		case a.NotModified:
			return &News{Unchanged: true, Mark: w.mark}, nil
		}
		if w.Check != nil {
			if err := w.Check(feed, a.URL, first); err != nil {
				return nil, err
			}
		}
		if first {
			n.Mark = Mark{Feed: feed.ID, ETag: a.ETag}
			if err := w.compare(feed); err != nil {
				return nil, err
			}
		}
		seen[at], etag = true, ""
		if w.Progress != nil {
			w.Progress(len(seen))
		}
		w.add(feed)
		if feed.Complete { // it has all active entries, whatever there is behind it
			n.Whole, n.Mark.Complete = true, true
			break
		}
		done, err := w.handled(feed)
		if err != nil {
			return nil, err
		}
		if done {
			break
		}
		at = older(feed)
	}
	n.Whole = n.Whole || w.whole
	if err := w.lost(n.Whole); err != nil {
		return nil, err
	}
	n.Records, n.Documents, n.Ignored = w.records, len(seen), w.ignored
	slices.SortStableFunc(n.Records, func(a, b Record) int { return a.Updated.Compare(b.Updated) })
	w.moveMark(&n.Mark)
	return n, nil
}

// Feed fetches a feed document, unless its ETag is still the given one.
func Feed(ctx context.Context, f *fetch.Fetcher, limits feeds.Limits, ref, etag string, home func(*url.URL) error) (*feeds.Feed, *fetch.Answer, error) {
	r := fetch.Request{URL: ref, Accept: acceptAtom, ETag: etag, Max: cmp.Or(limits.MaxBytes, 64<<20) + 1, Home: home, Within: f.MaxTime}
	return fetch.Do(ctx, f, r, func(a *fetch.Answer) (*feeds.Feed, error) {
		feed, err := feeds.Decode(a.Body, a.URL, limits)
		switch {
		case errors.As(err, new(*feeds.LimitError)):
			err = fetch.Permanent(err)
		case errors.As(err, new(*feeds.InvalidError)):
			err = fmt.Errorf("%s: %w", a.URL, err)
		case errors.As(err, new(*feeds.SyntaxError)):
			err = fmt.Errorf("cannot be read as an Atom feed (Content-Type %q): %w", a.ContentType, err)
		}
		return feed, err
	})
}

const acceptAtom = feeds.MediaTypeAtom + ", application/xml;q=0.5, text/xml;q=0.5"

// compare finds out from the subscription document whether the mark belongs to another
// feed than this one is.
func (w *walk) compare(f *feeds.Feed) error {
	if !w.whole && !f.Complete && w.mark.ofAnother(f.ID) {
		return &anewError{"the feed has a new id: its history is another one"}
	}
	return nil
}

// add takes the entries of a document.
func (w *walk) add(f *feeds.Feed) {
	if n := len(f.Entries); n > 0 && f.Entries[0].Updated.Before(f.Entries[n-1].Updated) {
		slices.Reverse(f.Entries) // so that of entries at one time the later ones come first, as in others
	}
	for i := range f.Entries {
		e := &f.Entries[i]
		r, ok := recordOf(e)
		if !ok {
			w.ignored++
			continue
		}
		at, again := w.best[e.ID]
		if !again {
			w.best[e.ID] = len(w.records)
			w.records = append(w.records, r)
			continue
		}
		best := &w.records[at]
		switch {
		case r.Updated.After(best.Updated):
			*best = r
		case r.Updated.Equal(best.Updated) && r.Deleted != best.Deleted && !best.Unsure:
			if best.Deleted {
				*best = r
			}
			best.Deleted, best.Unsure = false, true
		}
	}
}

// recordOf returns what an entry says of a record (Atom-PMH, Detecting entry type): that
// it is deleted, or where it is to be had, now or before a later entry. Other entries are
// of no defined type. One with links to representations is taken for what it is to all
// other readers of Atom, though, whatever it contains.
func recordOf(e *feeds.Entry) (Record, bool) {
	r := Record{ID: e.ID, Title: e.Title, Updated: e.Updated, Deleted: e.IsDeletion(), TopicSI: e.TopicSI, TopicSL: e.TopicSL}
	for _, l := range e.Find("alternate") {
		r.Representations = append(r.Representations, Representation{URL: l.Href, Type: l.Type})
	}
	return r, r.Deleted || len(r.Representations) > 0
}

// handled reports whether the documents behind f have nothing new.
func (w *walk) handled(f *feeds.Feed) (bool, error) {
	if w.whole || w.mark.Updated.IsZero() {
		return false, nil
	}
	before := false
	ids := make([]string, len(f.Entries))
	for i := range f.Entries {
		before = before || f.Entries[i].Updated.Before(w.mark.Updated)
		ids[i] = f.Entries[i].ID
	}
	if !before {
		return false, nil
	}
	held, err := w.holder.Versions(ids)
	if err != nil {
		return false, err
	}
	for i := range f.Entries {
		e := &f.Entries[i]
		best, ok := w.best[e.ID]
		if !ok || w.records[best].Deleted || w.records[best].Updated.After(e.Updated) {
			continue // of no record; or what it says is out of date
		}
		if version, ok := held[e.ID]; !ok || version.Before(e.Updated) {
			return false, nil
		}
	}
	return true, nil
}

// older returns the URL of the document behind f, "" where there is none. Pages (RFC 5005
// §3, Paged Feeds) are no part of Atom-PMH; where there are any, nothing is to be lost.
func older(f *feeds.Feed) string {
	if l, ok := f.Link("prev-archive"); ok {
		return l.Href
	}
	if l, ok := f.Link("next"); ok && !f.Archive {
		return l.Href
	}
	return ""
}

// lost finds out whether the feed lacks what stood at the mark, or where a round that was
// interrupted was to lead to. A record that was there has a later entry if it has not the
// same; a feed without any belongs to another history: its producer may have been restored
// from a backup.
func (w *walk) lost(whole bool) error {
	if whole {
		return nil
	}
	for _, m := range w.mark.known() {
		if m.Complete { // known here only: an empty document may come before the complete one
			return &anewError{"the feed was a complete one, and is an archived one now"}
		}
		for _, id := range m.At {
			at, ok := w.best[id]
			if !ok || w.records[at].Updated.Before(m.Updated) {
				return &anewError{"the last entries that were handled are not in the feed any more"}
			}
		}
	}
	return nil
}

// moveMark moves the mark to the latest entries.
func (w *walk) moveMark(m *Mark) {
	for i := range w.records {
		switch r := &w.records[i]; r.Updated.Compare(m.Updated) {
		case 1:
			m.Updated, m.At = r.Updated, []string{r.ID}
		case 0:
			m.At = append(m.At, r.ID)
		}
	}
}

// Gone reports whether an error says that what was asked for is not there (Atom-PMH,
// Resolvability of URIs). That one may not see it for want of a token says nothing.
func Gone(err error) bool {
	var failed *fetch.Error
	if !errors.As(err, &failed) {
		return false
	}
	switch failed.Status {
	case http.StatusForbidden, http.StatusNotFound, http.StatusGone:
		return true
	}
	return false
}
