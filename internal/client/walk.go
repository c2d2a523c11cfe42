package client

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/client/entries"
	"github.com/tmshare/tmshare/internal/store"
)

// news is what a fragments feed has beyond a mark.
type news struct {
	entries   *entries.Queue // to apply
	contained []string       // ids of the entries at the mark's time that the snapshot contains
	etag      string         // of the recent document
	asOf      time.Time      // see [fetch.Answer], of the recent document
	unchanged bool           // the recent document is as it was
}

// walk reads the fragments feed of s from the recent document back to the mark:
// along the archive documents (RFC 5005 §4, Archived Feeds), or the pages (§3,
// Paged Feeds), of those servers that have pages; a complete feed (§2) is one
// document. Entries later than until are left for later, unless until is zero.
// It returns a [*historyError] where the feed shows that the history is not the
// one that the mark belongs to, or does not reach back to it. The entries of what
// it returns are to be closed.
func (c *Client) walk(ctx context.Context, s *store.Subscription, mark store.Mark, etag string, until time.Time, allowURL func(*url.URL) error) (*news, error) {
	w := c.newWalker(s, mark, until)
	n, err := w.walk(ctx, etag, allowURL)
	if err != nil {
		return nil, errors.Join(err, w.entries.Close())
	}
	return n, nil
}

func (w *walker) walk(ctx context.Context, etag string, allowURL func(*url.URL) error) (*news, error) {
	s, n := w.s, &news{entries: w.entries}
	seen := map[[sha256.Size]byte]bool{} // of the URLs, which may be long
	for at, size := s.FragmentsFeed, int64(0); at != ""; {
		digest := sha256.Sum256([]byte(at))
		if seen[digest] {
			return nil, fmt.Errorf("%s: the documents of the feed lead in a circle; tell the owner of the server, %s", at, afresh(s))
		}
		if len(seen) >= w.MaxDocs {
			return nil, fmt.Errorf("%s: the feed has more than %d documents since the last round: either its server makes them up, or %s", s.FragmentsFeed, w.MaxDocs, afresh(s))
		}
		feed, a, err := w.getFeed(ctx, at, etag, allowURL)
		var failed *FetchError
		switch {
		case errors.As(err, &failed) && failed.Gone() && len(seen) > 0:
			return nil, &historyError{"the server keeps no history as old as the last round"}
		case err != nil && len(seen) > 0 && ctx.Err() == nil:
			return nil, fmt.Errorf("the chain of the feed's documents is broken: %w; if it stays so, %s", err, afresh(s))
		case err != nil:
			return nil, err
		case a.NotModified:
			n.unchanged = true
			return n, nil
		}
		if size += a.Body.Size(); size > w.MaxFeed {
			return nil, fmt.Errorf("%s: the documents of the feed since the last round have more than %d MB: either its server makes them up, or %s", s.FragmentsFeed, w.MaxFeed>>20, afresh(s))
		}
		if len(seen) == 0 {
			n.etag, n.asOf = a.ETag, a.AsOf
		}
		if err := w.check(s, feed, a.URL, len(seen) == 0); err != nil {
			return nil, err
		}
		seen[digest], etag = true, ""
		w.Progress(Progress{s.Name, "reading the feed", int64(len(seen)), 0, Documents})
		if err := w.add(feed, at); err != nil {
			return nil, err
		}
		if w.complete() {
			break
		}
		at = w.older(feed)
	}
	if err := w.entries.Sort(ctx); err != nil {
		return nil, err
	}
	if w.lost() {
		return nil, &historyError{"the last entry that was applied is not in the feed any more"}
	}
	n.contained = w.contained
	return n, nil
}

// afresh says how to get past a feed that cannot be read back to the last round.
func afresh(s *store.Subscription) string {
	return fmt.Sprintf("\"replace %s\" starts afresh from the server's newest snapshot", s.Name)
}

// walker collects the entries of the documents of a feed.
type walker struct {
	*Client
	s       *store.Subscription
	mark    store.Mark
	until   time.Time
	entries *entries.Queue

	found     map[string]bool // by key, whether the entries were found that are to be there
	missing   int             // how many of those that stood at the mark were not
	relied    bool            // the entry that the state relies on was found, or there is none
	contained []string        // see news
	handled   int             // bytes of these
	atMark    int             // entries of the queue at the mark's time
	beyond    int             // entries later than until
	reached   bool            // an entry at the mark, or before it, was seen
	passed    bool            // an entry before the mark was seen
	paged     bool
	stated    bool      // entries state whether their topic is deleted: the server is one of TMShare in Go
	mixed     bool      // the entries are not in descending order
	earlier   time.Time // the time of the last entry that was added
}

// entryQueue returns a queue for the entries of a walk.
func (c *Client) entryQueue(s *store.Subscription) *entries.Queue {
	return entries.New(filepath.Join(c.Store.Scratch(), "entries-"+strconv.FormatUint(uint64(s.Number), 10)), c.queues, c.Store.CheckFreeSpace)
}

func (c *Client) newWalker(s *store.Subscription, mark store.Mark, until time.Time) *walker {
	w := &walker{Client: c, s: s, mark: mark, until: until, entries: c.entryQueue(s), found: map[string]bool{}, relied: mark.Relied == ""}
	for _, id := range mark.Handled {
		w.found[entries.Key(&feeds.Entry{ID: id, Updated: mark.Updated})] = false
	}
	w.missing = len(w.found)
	return w
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

func (w *walker) add(f *feeds.Feed, at string) error {
	if n := len(f.Entries); n > 0 && f.Entries[0].Updated.Before(f.Entries[n-1].Updated) {
		slices.Reverse(f.Entries) // so that entries of one time are in the order of the others
		w.mixed = true
	}
	for i := range f.Entries {
		e := &f.Entries[i]
		w.stated = w.stated || e.State != ""
		w.mixed = w.mixed || !w.earlier.IsZero() && e.Updated.After(w.earlier)
		w.earlier = e.Updated
		// Where the snapshot contains the entry at its time, that one will do: those
		// before it may be pruned.
		w.passed = w.passed || w.isBefore(e) || w.isContained(e)
		w.reached = w.reached || !e.Updated.After(w.mark.Updated)
		if err := w.take(e, at); err != nil {
			return err
		}
	}
	return nil
}

// take puts an entry into the queue, or notes that it is handled.
func (w *walker) take(e *feeds.Entry, at string) error {
	k := entries.Key(e)
	w.relied = w.relied || k == w.mark.Relied
	found, handled := w.found[k]
	switch {
	case w.isBefore(e):
	case w.isContained(e):
		if !found {
			w.contained = append(w.contained, e.ID)
			w.found[k] = true
			w.handled += len(e.ID)
			return checkHandledSize(w.s, e.Updated, w.handled)
		}
	case handled:
		if !found {
			w.found[k] = true
			w.missing--
			if _, again := w.mark.Unsettled[e.ID]; again {
				w.atMark++
				return w.queue(e, at)
			}
		}
	case !w.until.IsZero() && e.Updated.After(w.until):
		w.beyond++
	default:
		if !e.Updated.After(w.mark.Updated) {
			w.atMark++
		}
		return w.queue(e, at)
	}
	return nil
}

// isBefore reports whether an entry is from before the mark. Nothing is before the beginning.
func (w *walker) isBefore(e *feeds.Entry) bool {
	return !w.mark.Updated.IsZero() && e.Updated.Before(w.mark.Updated)
}

// queue adds an entry to those that are to be handled.
func (w *walker) queue(e *feeds.Entry, at string) error {
	if n := w.entries.Added(); n >= w.MaxEntries {
		return fmt.Errorf("%s: the feed has more than %d entries since the last round: either its server makes them up, or a higher --max-entries takes them, or %s", w.s.FragmentsFeed, n, afresh(w.s))
	}
	link, ok := w.dataLink(e)
	kept := entries.Entry{Entry: *e, Document: at}
	kept.Summary, kept.Author, kept.Links = "", "", nil // of no use here
	if ok {
		kept.Links = []feeds.Link{link}
	}
	return w.entries.Add(&kept)
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
	return w.passed || len(w.mark.Handled) > 0 && w.missing == 0 && w.relied
}

// lost reports whether the feed has another history than the one of the mark, or does
// not reach back to it: entries that stood at the mark are missing, or one that the
// state relies on.
func (w *walker) lost() bool { return w.missing > 0 && !w.moved() || !w.relied }

// moved reports whether the entries that are missing at the mark may have moved. Servers of
// SDShare list each topic once, with the time of its last change. A change then takes the
// entry away from the mark, and a later one is there.
func (w *walker) moved() bool {
	later := w.entries.Total() - w.atMark + w.beyond
	return !w.stated && w.reached && later >= w.missing
}

// isContained reports whether the snapshot that the source was just loaded from is known to
// contain an entry. An entry at the snapshot's time is contained where times strictly
// increase, as they do on servers that state what is deleted. Others have whole seconds, and
// may have published the entry after the snapshot.
func (w *walker) isContained(e *feeds.Entry) bool {
	return len(w.mark.Handled) == 0 && !w.mark.Updated.IsZero() && e.State != "" && e.Updated.Equal(w.mark.Updated)
}
