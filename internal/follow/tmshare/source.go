// Package tmshare finds out what has changed at a server of TMShare, or of SDShare, from the fragments
// feed of a collection.
package tmshare

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/internal/follow"
)

// Source reads a fragments feed.
type Source struct {
	Fetcher  *fetch.Fetcher
	Limits   feeds.Limits   // of one document
	MaxDocs  int            // in one look; default 100,000
	MaxBytes int64          // of the documents of one look, unpacked; default: no limit
	Scratch  follow.Scratch // for the entries

	// Until is the time of the last entries that are read, zero for no such time.
	Until time.Time

	// Kept says that what the server keeps of its history is enough, where it does not go back to the mark.
	Kept bool

	// Bundles says that the fragments are wanted with the documents that list them, where the server has them so, and there are many.
	Bundles bool
	Ahead   bool // one is fetched while the one before it is read

	// Link chooses the link to the fragment of an entry.
	Link func(*feeds.Entry) (feeds.Link, bool)

	// Check is given each document before any of it is used, where it came from, and whether it is the
	// recent one. It may be nil.
	Check    func(f *feeds.Feed, at string, recent bool) error
	Progress func(documents int) // may be nil

	// Advice says how to get past a feed that cannot be read back to the mark.
	Advice string
}

// HistoryError says that the feed does not go on from the mark, and why.
type HistoryError struct{ Reason string }

func (e *HistoryError) Error() string { return e.Reason }

// MaxAtOnce bounds the ids of the entries at one time, in bytes: each commit keeps those at the mark.
const MaxAtOnce = 4 << 20

// CheckAtOnce fails where the ids of the entries at one time take too many bytes.
func (s *Source) CheckAtOnce(at time.Time, size int) error {
	if size <= MaxAtOnce {
		return nil
	}
	return fmt.Errorf("too many entries of the feed have one time (%s): their ids have more than %d MB. Ask the owner of the server for times that differ, or for a snapshot later than that; %s", feeds.FormatTime(at), MaxAtOnce>>20, s.Advice)
}

// Delta reads the feed from the recent document back to the mark. It returns a [*HistoryError] where
// the feed shows that the history is not the one that the mark belongs to, or does not reach back to it.
// What is held does not matter.
func (s *Source) Delta(ctx context.Context, ref string, mark follow.Mark, _ follow.Inventory) (*follow.Delta, error) {
	allowURL, err := s.Fetcher.AllowURL(ref)
	if err != nil {
		return nil, err
	}
	w := s.walk(ref, mark)
	n, err := w.read(ctx, ref, allowURL)
	if err != nil || n.Unchanged {
		return n, errors.Join(err, w.log.Close())
	}
	return n, nil
}

// Search reads the document at a URL, and those behind it, up to so many, until f returns false. It
// gives f each document, and what its entries say. That a document cannot be read ends the search.
func (s *Source) Search(ctx context.Context, ref string, most int, mark follow.Mark, f func(*follow.Document, []*follow.Record) bool) error {
	allowURL, err := s.Fetcher.AllowURL(ref)
	if err != nil {
		return err
	}
	c := s.chain(mark, allowURL)
	c.Progress = nil
	c.Check = func(d *follow.Document) error { return s.check(d, mark.Feed, false) }
	for d, err := range c.Documents(ctx, ref, "") {
		if err != nil {
			return ctx.Err()
		}
		all := make([]*follow.Record, len(d.Entries))
		for i := range d.Entries {
			all[i] = s.record(&d.Entries[i], d.From)
		}
		if !f(d, all) || d.Count == most {
			break
		}
	}
	return nil
}

// Checked returns the time by the clock of the origin up to which the recent document of a feed is complete.
func Checked(a *fetch.Answer) time.Time {
	if at, err := feeds.ParseTime(a.Header.Get(feeds.CheckedHeader)); err == nil {
		return at
	}
	return a.AsOf
}

func (s *Source) chain(mark follow.Mark, allowURL func(*url.URL) error) *follow.Chain {
	return &follow.Chain{
		Fetcher: s.Fetcher, Limits: s.Limits, MaxDocs: s.MaxDocs, MaxBytes: s.MaxBytes, AllowURL: allowURL, Progress: s.Progress, Advice: s.Advice,
		Check: func(d *follow.Document) error { return s.check(d, mark.Feed, d.Count == 1) },
	}
}

// check compares the id of the feed with the one that was followed. Pages are made anew for each
// request, by some servers with an id for each.
func (s *Source) check(d *follow.Document, feed string, recent bool) error {
	if s.Check != nil {
		if err := s.Check(d.Feed, d.URL, recent); err != nil {
			return err
		}
	}
	switch {
	case d.ID == feed:
	case recent:
		return &HistoryError{"the feed has a new id: the server has begun a new history"}
	case !d.Page:
		return fmt.Errorf("%s: the document belongs to another feed (%s) than the one that links to it (%s)", d.URL, d.ID, feed)
	}
	return nil
}

// record returns what an entry says.
func (s *Source) record(e *feeds.Entry, document string) *follow.Record {
	r := follow.ChangeOf(e, document)
	if link, ok := s.Link(e); ok {
		r.Representations = []follow.Representation{{URL: link.Href, Type: link.Type}}
	}
	return r
}

// walk is one reading of a feed.
type walk struct {
	*Source
	mark follow.Mark
	log  *follow.Log

	found     map[string]bool // by key, whether the entries were found that are to be there
	missing   int             // how many of those that stood at the mark were not
	relied    bool            // the entry that the state relies on was found, or there is none
	contained []string        // ids of the entries at the mark's time that the snapshot contains
	size      int             // bytes of these
	atMark    int             // entries of the log at the mark's time
	beyond    int             // entries later than until
	reached   bool            // an entry at the mark, or before it, was seen
	passed    bool            // an entry before the mark was seen
	paged     bool
	stated    bool      // entries state whether their topic is deleted: the server is one of TMShare in Go
	mixed     bool      // the entries are not in descending order
	earlier   time.Time // the time of the last entry that was added
	newest    time.Time // the latest time of an entry
}

func (s *Source) walk(ref string, mark follow.Mark) *walk {
	w := &walk{Source: s, mark: mark, log: follow.NewLog(ref, &s.Scratch), found: map[string]bool{}, relied: mark.Relied == ""}
	for _, id := range mark.At {
		w.found[follow.Key(id, mark.Updated)] = false
	}
	w.missing = len(w.found)
	return w
}

func (w *walk) read(ctx context.Context, ref string, allowURL func(*url.URL) error) (*follow.Delta, error) {
	n := &follow.Delta{Log: w.log, Scratch: &w.Scratch, Mark: w.mark}
	chain := w.chain(w.mark, allowURL)
	if w.Bundles {
		chain.Wants, chain.Ahead = w.wants, w.Ahead
	}
	for d, err := range chain.Documents(ctx, ref, w.mark.ETag) {
		var broken *follow.BrokenError
		var failed *fetch.Error
		switch {
		case errors.As(err, &broken) && errors.As(err, &failed) && failed.Gone() && w.Kept:
			return n, w.log.Sort(ctx)
		case errors.As(err, &broken) && errors.As(err, &failed) && failed.Gone():
			return nil, &HistoryError{"the server keeps no history as old as the last round"}
		case errors.As(err, &broken):
			return nil, fmt.Errorf("%w; if it stays so, %s", err, w.Advice)
		case err != nil:
			return nil, err
		case d.NotModified:
			return &follow.Delta{Unchanged: true, Mark: w.mark, Checked: Checked(d.Answer)}, nil
		}
		if n.Documents = d.Count; d.Count == 1 {
			n.Mark.ETag, n.AsOf, n.Checked, n.Openings = d.ETag, d.AsOf, Checked(d.Answer), d.Openings
		}
		w.paged = w.paged || d.Page
		if err := w.add(d.Feed, d.From); err != nil {
			return nil, err
		}
		if w.complete() {
			break
		}
	}
	if err := w.log.Sort(ctx); err != nil {
		return nil, err
	}
	switch {
	case w.lost():
		return nil, &HistoryError{"the last entry that was applied is not in the feed any more"}
	case w.outrun():
		return nil, &HistoryError{"the snapshot is later than all entries of the feed"}
	}
	if len(w.contained) > 0 {
		// They are kept, because a feed in which they are missing one day is that
		// of a server restored from a backup.
		n.Mark.At = w.contained
	}
	return n, nil
}

// few is how many fragments are fetched by themselves rather than with all others of a document.
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
		slices.Reverse(f.Entries) // so that entries of one time are in the order of the others
		w.mixed = true
	}
	for i := range f.Entries {
		e := &f.Entries[i]
		w.stated = w.stated || e.State != ""
		if e.Updated.After(w.newest) {
			w.newest = e.Updated
		}
		w.mixed = w.mixed || !w.earlier.IsZero() && e.Updated.After(w.earlier)
		w.earlier = e.Updated
		// Where the snapshot contains the entry at its time, that one will do: those
		// before it may be pruned.
		w.passed = w.passed || w.isBefore(e) || w.isContained(e)
		w.reached = w.reached || !e.Updated.After(w.mark.Updated)
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
	found, handled := w.found[k]
	switch {
	case w.isBefore(e):
	case w.isContained(e):
		if !found {
			w.contained = append(w.contained, e.ID)
			w.found[k] = true
			w.size += len(e.ID)
			return w.CheckAtOnce(e.Updated, w.size)
		}
	case handled:
		if !found {
			w.found[k] = true
			w.missing--
			if _, again := w.mark.Unsettled[e.ID]; again {
				w.atMark++
				return w.log.Add(w.record(e, document))
			}
		}
	case !w.Until.IsZero() && e.Updated.After(w.Until):
		w.beyond++
	default:
		if !e.Updated.After(w.mark.Updated) {
			w.atMark++
		}
		return w.log.Add(w.record(e, document))
	}
	return nil
}

// isBefore reports whether an entry is from before the mark. Nothing is before the beginning.
func (w *walk) isBefore(e *feeds.Entry) bool {
	return !w.mark.Updated.IsZero() && e.Updated.Before(w.mark.Updated)
}

// complete reports whether older documents have nothing new: all entries at the
// mark are there, or one before it. The order of pages is the server's affair
// (RFC 5005 §3), so that they tell this only while all is in descending order.
func (w *walk) complete() bool {
	if w.mark.Updated.IsZero() || w.paged && w.mixed {
		return false
	}
	return w.passed || len(w.mark.At) > 0 && w.missing == 0 && w.relied
}

// lost reports whether the feed has another history than the one of the mark, or does
// not reach back to it: entries that stood at the mark are missing, or one that the
// state relies on.
func (w *walk) lost() bool { return w.missing > 0 && !w.moved() || !w.relied }

// outrun reports whether the snapshot that the source was just loaded from is later than all
// entries. It is of a history that was given up, then, and a cache has kept it: on servers that
// state what is deleted, the last entry has the time of the last change that a snapshot contains.
// A collection without entries is an empty one.
func (w *walk) outrun() bool {
	return len(w.mark.At) == 0 && w.stated && w.newest.Before(w.mark.Updated)
}

// moved reports whether the entries that are missing at the mark may have moved. Servers of
// SDShare list each topic once, with the time of its last change. A change then takes the
// entry away from the mark, and a later one is there.
func (w *walk) moved() bool {
	later := w.log.Total() - w.atMark + w.beyond
	return !w.stated && w.reached && later >= w.missing
}

// isContained reports whether the snapshot that the source was just loaded from is known to
// contain an entry. An entry at the snapshot's time is contained where times strictly
// increase, as they do on servers that state what is deleted. Others have whole seconds, and
// may have published the entry after the snapshot.
func (w *walk) isContained(e *feeds.Entry) bool {
	return len(w.mark.At) == 0 && !w.mark.Updated.IsZero() && e.State != "" && e.Updated.Equal(w.mark.Updated)
}
