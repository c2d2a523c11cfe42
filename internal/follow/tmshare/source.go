// Package tmshare reads the changes of a server of TMShare, or of SDShare, from the fragments feed of a collection.
package tmshare

import (
	"context"
	"errors"
	"fmt"
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

	// Kept accepts a feed whose stored history does not go back to the mark.
	Kept bool

	// Bundles requests fragments together with the documents that list them, if the server supports that and many are
	// new.
	Bundles bool
	Ahead   bool // one is fetched while the one before it is read

	// Link chooses the link to the fragment of an entry.
	Link func(*feeds.Entry) (feeds.Link, bool)
	// Covers reports whether fragments of a media type cover those of others: where they have all associations of their
	// topics.
	Covers func(mediaType string) bool

	// Check is given each document before any of it is used, where it came from, and whether it is the
	// recent one. It may be nil.
	Check    func(f *feeds.Feed, at string, recent bool) error
	Progress func(documents int) // may be nil

	// Advice is the remedy if a feed cannot be read back to the mark.
	Advice string
}

// MaxAtOnce bounds the ids of the entries at one time, in bytes: each commit keeps those at the mark.
const MaxAtOnce = 4 << 20

// CheckAtOnce fails where the ids of the entries at one time take too many bytes.
func (s *Source) CheckAtOnce(at time.Time, size int) error {
	if size <= MaxAtOnce {
		return nil
	}
	return fmt.Errorf(
		"too many entries of the feed have one time (%s): their ids have more than %d MB. Ask the owner of the server for "+
			"times that differ, or for a snapshot later than that; %s", feeds.FormatTime(at), MaxAtOnce>>20, s.Advice)
}

// Delta reads the feed from the recent document back to the mark. What is held does not matter.
func (s *Source) Delta(ctx context.Context, ref string, look follow.Look, _ follow.Inventory) (*follow.Delta, error) {
	for again := 0; ; again++ {
		w := s.walk(ref, look)
		n, err := w.read(ctx, ref)
		if err == nil && !n.Unchanged && n.Documents > 1 && !w.stated && w.memory != nil {
			recent := follow.Recent{URL: ref, ETag: n.ETag, Entries: w.first}
			err = recent.Stands(ctx, w.fetcher, w.Limits)
		}
		if err != nil || n.Unchanged {
			err = errors.Join(err, w.log.Close())
		}
		if !errors.Is(err, follow.ErrHeadMoved) || again == follow.MaxReadAgain {
			return n, err
		}
	}
}

// Search reads the document at a URL, and the older ones, up to most, until f returns false. It calls f with each
// document and its changes. An unreadable document ends the search.
func (s *Source) Search(ctx context.Context, ref string, most int, mark follow.Mark,
	f func(*follow.Document, []*follow.Record) bool) error {
	c := s.chain(s.Fetcher)
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

func (s *Source) chain(f *fetch.Fetcher) *follow.Chain {
	return &follow.Chain{
		Fetcher: f, Limits: s.Limits, MaxDocs: s.MaxDocs, MaxBytes: s.MaxBytes, Progress: s.Progress,
		Advice: s.Advice,
	}
}

// check compares the id of a document with that of the feed. Some servers make pages for each request, with an id for
// each.
func (s *Source) check(d *follow.Document, feed string, recent bool) error {
	if s.Check != nil {
		if err := s.Check(d.Feed, d.URL, recent); err != nil {
			return err
		}
	}
	if d.ID == feed || recent || d.Page {
		return nil
	}
	return fmt.Errorf("%s: the document belongs to another feed (%s) than the one that links to it (%s)",
		d.URL, d.ID, feed)
}

// record returns the change of an entry.
func (s *Source) record(e *feeds.Entry, document string) *follow.Record {
	r := follow.ChangeOf(e, document)
	if link, ok := s.Link(e); ok {
		r.Representations = []follow.Representation{{URL: link.Href, Type: link.Type}}
		r.Change.Covered = e.Covered && s.Covers != nil && s.Covers(link.Type)
	}
	return r
}
