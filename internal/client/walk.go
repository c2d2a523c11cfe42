package client

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/store"
)

// news is what a fragments feed has beyond a mark.
type news struct {
	entries   []feeds.Entry // to apply, oldest first
	atMark    []string      // ids of the entries at the mark's time
	etag      string        // of the recent document
	unchanged bool          // the recent document is as it was
}

// walk reads the fragments feed of s from the recent document back to the mark:
// along the archive documents (RFC 5005 §4, Archived Feeds), or the pages (§3,
// Paged Feeds), of those servers that have pages; a complete feed (§2) is one
// document. Entries later than until are left for later, unless until is zero.
// It returns a [*historyError] where the feed shows that the history is not the
// one that the mark belongs to, or does not reach back to it.
func (c *Client) walk(ctx context.Context, s *store.Subscription, mark store.Mark, etag string, until time.Time, home func(*url.URL) error) (*news, error) {
	w := walker{mark: mark, found: map[string]feeds.Entry{}}
	n := &news{}
	seen := map[string]bool{}
	for at := s.FragmentsFeed; at != ""; {
		if seen[at] {
			return nil, fmt.Errorf("%s: the documents of the feed lead in a circle", at)
		}
		if len(seen) >= c.MaxDocs {
			return nil, fmt.Errorf("%s: the feed has more than %d documents since the last round", s.FragmentsFeed, c.MaxDocs)
		}
		feed, a, err := c.getFeed(ctx, at, etag, home)
		var failed *FetchError
		switch {
		case errors.As(err, &failed) && failed.Gone() && len(seen) > 0:
			return nil, &historyError{"the server keeps no history as old as the last round"}
		case err != nil && len(seen) > 0 && ctx.Err() == nil:
			return nil, fmt.Errorf("the chain of the feed's documents is broken: %w; if it stays so, \"replace %s\" starts afresh from the server's newest snapshot", err, s.Name)
		case err != nil:
			return nil, err
		case a.NotModified:
			n.unchanged = true
			return n, nil
		}
		if len(seen) == 0 {
			n.etag = a.ETag
		}
		if err := w.check(s, feed, a.URL, len(seen) == 0); err != nil {
			return nil, err
		}
		seen[at], etag = true, ""
		c.Progress(Progress{s.Name, "reading the feed", int64(len(seen)), 0, Documents})
		w.add(c, feed)
		if w.complete() {
			break
		}
		at = w.older(feed)
	}
	if w.lost() {
		return nil, &historyError{"the last entry that was applied is not in the feed any more"}
	}
	n.entries, n.atMark = w.news(until)
	return n, nil
}

// walker collects the entries of the documents of a feed.
type walker struct {
	mark    store.Mark
	found   map[string]feeds.Entry // by key
	order   []string
	passed  bool // an entry before the mark was seen
	paged   bool
	mixed   bool      // the entries are not in descending order
	earlier time.Time // the time of the last entry that was added
}

// check compares what a document says of its feed with what was pinned.
func (w *walker) check(s *store.Subscription, f *feeds.Feed, at string, recent bool) error {
	if err := checkPrefix(s, f.ServerSrcLocatorPrefix, at, recent); err != nil {
		return err
	}
	switch {
	case f.ID != s.FeedID && recent:
		return &historyError{"the feed has a new id: the server has begun a new history"}
	case f.ID != s.FeedID && !w.paged: // pages are made anew for each request, by some with an id for each
		return fmt.Errorf("%s: the document belongs to another feed (%s) than the one that links to it (%s)", at, f.ID, s.FeedID)
	}
	return nil
}

// checkPrefix compares the prefix that a document declares, or "", with the one that was
// pinned. Of feeds only the recent document must declare it.
func checkPrefix(s *store.Subscription, sp, at string, must bool) error {
	if sp == s.SP || sp == "" && (s.OwnSP || !must) {
		return nil
	}
	return &PrefixError{at, s.SP, sp}
}

func (w *walker) add(c *Client, f *feeds.Feed) {
	if n := len(f.Entries); n > 0 && f.Entries[0].Updated.Before(f.Entries[n-1].Updated) {
		slices.Reverse(f.Entries) // so that entries of one time are in the order of the others
		w.mixed = true
	}
	for _, e := range f.Entries {
		link, ok := c.dataLink(&e)
		if e.Links = nil; ok { // the others take memory in a long feed, and are not needed
			e.Links = []feeds.Link{link}
		}
		k := key(&e)
		if _, again := w.found[k]; !again {
			w.order = append(w.order, k)
		}
		w.found[k] = e
		// Right after a snapshot, which has all up to the mark, an entry at it will
		// do: those before it may be pruned.
		w.passed = w.passed || e.Updated.Before(w.mark.Updated) || len(w.mark.Handled) == 0 && e.Updated.Equal(w.mark.Updated)
		w.mixed = w.mixed || len(w.order) > 1 && e.Updated.After(w.earlier)
		w.earlier = e.Updated
	}
}

// older returns the URL of the document with the entries before those of f, ""
// where there is none.
func (w *walker) older(f *feeds.Feed) string {
	if f.Complete {
		return ""
	}
	if l, ok := f.Link("prev-archive"); ok {
		return l.Href
	}
	if l, ok := f.Link("next"); ok && !f.Archive {
		w.paged = true
		return l.Href
	}
	return ""
}

// complete reports whether older documents have nothing new: all entries at the
// mark are there, or one before it. The order of pages is the server's affair
// (RFC 5005 §3), so that they tell this only while all is in descending order.
func (w *walker) complete() bool {
	if w.mark.Updated.IsZero() || w.paged && w.mixed {
		return false
	}
	return w.passed || len(w.mark.Handled) > 0 && !w.lost()
}

// lost reports whether entries that stood at the mark are missing, or one that
// the state relies on.
func (w *walker) lost() bool {
	for _, id := range w.mark.Handled {
		if _, ok := w.found[key(&feeds.Entry{ID: id, Updated: w.mark.Updated})]; !ok {
			return true
		}
	}
	if w.mark.Relied == "" {
		return false
	}
	_, ok := w.found[w.mark.Relied]
	return !ok
}

// key tells entries apart by id and time: other servers repeat ids.
func key(e *feeds.Entry) string { return e.ID + "\x00" + feeds.FormatTime(e.Updated) }

func (w *walker) news(until time.Time) (entries []feeds.Entry, atMark []string) {
	for i := len(w.order) - 1; i >= 0; i-- { // feeds have the newest first
		e := w.found[w.order[i]]
		switch {
		case e.Updated.Equal(w.mark.Updated):
			atMark = append(atMark, e.ID)
			// Right after a snapshot the entry at its time is contained in it.
			if len(w.mark.Handled) > 0 && !slices.Contains(w.mark.Handled, e.ID) {
				entries = append(entries, e)
			}
		case e.Updated.After(w.mark.Updated) && (until.IsZero() || !e.Updated.After(until)):
			entries = append(entries, e)
		}
	}
	slices.SortStableFunc(entries, func(a, b feeds.Entry) int { return a.Updated.Compare(b.Updated) })
	return entries, atMark
}

// latest returns the places of the entries to apply: the last for each TopicSI.
// That is enough where the server publishes closing entries, which it shows by
// stating the state of every entry; from other servers all are applied.
func latest(entries []feeds.Entry) []int {
	last := map[string]int{}
	all := make([]int, len(entries))
	coalesce := true
	for i := range entries {
		all[i] = i
		if entries[i].State == "" || len(entries[i].TopicSI) != 1 {
			coalesce = false
		} else {
			last[entries[i].TopicSI[0]] = i
		}
	}
	if !coalesce {
		return all
	}
	return slices.DeleteFunc(all, func(i int) bool { return last[entries[i].TopicSI[0]] != i })
}
