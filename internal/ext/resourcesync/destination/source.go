package destination

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/feeds/resourcesync"
	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/iri"
)

// Source follows a set of resources that a Source publishes by ResourceSync (ANSI/NISO
// Z39.99). Their URIs, as [iri.NormalizeURL] has them, are the ids of the records.
type Source struct {
	Fetcher *fetch.Fetcher
	Limits  resourcesync.Limits // of one document
	MaxDocs int                 // in one look; default 100,000

	Scratch follow.Scratch // for the statements of lists

	// Packages are fetched to the folder Temp, if that is set, where they cost less than
	// single requests. They stay there until a folder.Folder of that place is done.
	Temp       string
	Packages   resourcesync.PackageLimits
	MaxPackage int64 // bytes of one package; default 16 GiB

	Alternates bool // forms with URIs of their own will do (Z39.99 §14.3): they go before the resource's own URI
	Subjects   bool // the Source states subjects of resources (Z39.99 §14.5): a document's URI identifies it

	// Check is given the set of resources before any of it is used. It may be nil.
	Check func(*Set) error

	Progress    func(documents int)     // may be nil
	Downloading func(done, total int64) // called with the bytes of packages; may be nil
	Report      func(line string)       // called with harmless faults of the Source; may be nil

	packages  packages
	reporting sync.Mutex
}

// Delta implements [Source]. It begins with the Resource List, or else the Resource Dump (Z39.99 §5.2, Baseline
// Synchronization), and continues with the Change Lists (Incremental Synchronization). If these do not reach back to
// the mark, it begins again, as it does each time if there are none.
func (s *Source) Delta(ctx context.Context, ref string, asked follow.Look, h follow.Inventory) (*follow.Delta, error) {
	l, c, err := s.lookAt(ctx, ref, asked)
	if err != nil {
		return nil, err
	}
	if s.Check != nil {
		if err := s.Check(&c.Set); err != nil {
			return nil, err
		}
	}
	_, l.keeps = c.Head.Link(feeds.RelHistory) // as TMShare servers do
	n, err := l.news(ctx, c, asked.Mark)
	if err != nil {
		return nil, err
	}
	n.Documents = l.documents
	l.reading.Loss, l.reading.Why, l.reading.Feed = n.Loss, n.Reason, c.id()
	n.Reading = l.reading
	n.Same, n.News = n.Unchanged, n.Stated != nil && n.Stated.Count() > 0
	if n.HeadAt = n.Mark.Updated; !n.HeadAt.IsZero() {
		n.Head = feeds.FormatTime(n.HeadAt)
	}
	n.HoldsTime(asked.Doubted())
	if n.Unchanged {
		return n, nil
	}
	if n.Mixed {
		n.Mark.ETag = ""
	}
	n.Mark.Feed, n.Scratch = c.id(), &s.Scratch
	n.Open = l.attach
	if l.hasPackages(c, n, h) {
		n.Supply = func(ctx context.Context, p *follow.Planning) error { return l.pack(ctx, c, n, p) }
	}
	return n, nil
}

// Set is a set of resources of a Source.
type Set struct {
	URL  string                // of its Capability List, or of another document to begin with
	Head resourcesync.Document // of that one
}

// Find finds the set of resources for a URL. The error is a *[follow.ChoiceError] if there are several.
func (s *Source) Find(ctx context.Context, ref string) (*Set, error) {
	_, c, err := s.lookAt(ctx, ref, follow.Look{})
	if err != nil {
		return nil, err
	}
	return &c.Set, nil
}

// lookAt begins a look at the set of resources to which something at a URL belongs.
func (s *Source) lookAt(ctx context.Context, ref string, asked follow.Look) (*look, *capabilities, error) {
	fetcher, err := s.Fetcher.From(ref)
	if err != nil {
		return nil, nil, err
	}
	l := &look{Source: s, fetcher: asked.Fetcher(fetcher), url: ref, asked: asked}
	c, err := l.discover(ctx, ref)
	return l, c, err
}

// id returns the identity of the set. Where the Source states the history of its resources, another history is another
// set.
func (s *Set) id() string {
	if history, ok := s.Head.Link(feeds.RelHistory); ok {
		return iri.NormalizeURL(s.URL) + " " + history.Href
	}
	return iri.NormalizeURL(s.URL)
}

// look is one look at a Source.
type look struct {
	*Source
	fetcher   *fetch.Fetcher
	asked     follow.Look
	reading   follow.Reading
	noted     bool   // the first of the lists is in the reading
	url       string // the URL that the look began with
	documents int
	places    uint64    // number of statements read
	guessed   bool      // only the server's address leads to the Source
	keeps     bool      // the Source lists changes that have a later one of the resource
	dumpOnly  bool      // there is no Resource List: only packages may have the content
	listed    time.Time // up to when the list of all resources has all changes
}

// note records the date of an answer with a list.
func (l *look) note(a *fetch.Answer) {
	if l.noted {
		l.reading.NoteNext(l.asked.Memory, a)
		return
	}
	l.noted = true
	l.reading.Note(a)
}

func (l *look) news(ctx context.Context, c *capabilities, mark follow.Mark) (*follow.Delta, error) {
	n := &follow.Delta{}
	var known *follow.Statements // about the changes since the mark
	switch {
	case mark.OfAnother(c.id()):
		n.Anew, n.Loss, n.Reason, mark = true, follow.LossFeed, "the Source has another Capability List, or another history",
			follow.Mark{}
	case mark.Begun != nil && mark.Begun.Whole:
		// Out-of-date lists may have moved it back behind the mark; their removals are no news since then.
		mark = follow.Mark{}
	case c.changes != "" && !mark.Updated.IsZero():
		known = follow.NewStatements(l.url, &l.Scratch)
		changes, err := l.changes(ctx, c.changes, mark, mark, known)
		var gone *goneError
		switch {
		case err == nil:
			changes.Stated = known
			return l.compared(ctx, c, mark, changes)
		case !errors.As(err, &gone):
			return nil, errors.Join(err, known.Close())
		}
		// If a Source pruned old changes, records missing from its list of all are counted as lost singly.
		if n.Anew, n.Reason = gone.anew, gone.reason; gone.anew {
			n.Loss = follow.LossDiverged
		}
	}
	err := l.baseline(ctx, c, mark, mark, n, known)
	if n.Stated != known || err != nil {
		err = errors.Join(err, known.Close())
	}
	return n, err
}

// compared returns the changes. If the Source is to be read to its end, it also reads all resources, because Change
// Lists do not state what was lost by mistake, or skipped.
func (l *look) compared(ctx context.Context, c *capabilities, mark follow.Mark,
	changes *follow.Delta) (*follow.Delta, error) {
	if changes.Unchanged || !l.asked.Whole {
		return changes, nil
	}
	n := &follow.Delta{}
	switch err := l.baseline(ctx, c, follow.Mark{}, mark, n, nil); {
	case err != nil:
		return nil, errors.Join(err, n.Stated.Close(), changes.Stated.Close())
	case n.Gap != "" || n.Mark.Updated.Before(mark.Updated): // the list is older than what is known
		return changes, n.Stated.Close()
	}
	return n, changes.Stated.Close()
}

// baseline reads all resources, and the changes since. A list older than the mark would undo later changes, so then it
// uses the known changes only. Handled changes are no news, see changes.
func (l *look) baseline(ctx context.Context, c *capabilities, mark, handled follow.Mark, n *follow.Delta,
	known *follow.Statements) (err error) {
	s, err := l.snapshot(ctx, c, mark)
	switch {
	case err != nil:
		return err
	case s == nil:
		n.Unchanged, n.Mark = true, mark
		return nil
	}
	defer func() {
		if n.Stated != s.stated {
			err = errors.Join(err, s.stated.Close())
		}
	}()
	if c.changes != "" && !n.Anew && s.at.Before(mark.Updated) && !s.at.IsZero() {
		l.report(fmt.Sprintf(
			"%s: %s, and the list of all resources (%s) is older than that round: what has changed in between stays unknown "+
				"until the Source publishes a newer list", c.changes, n.Reason, resourcesync.FormatTime(s.at)))
		n.Stated, n.Mark, n.Loss, n.Reason = known, mark, follow.LossNone, ""
		return nil
	}
	l.listed, l.reading.ToEnd = s.at, true
	if c.changes == "" && n.Loss == follow.LossNone && s.at.Before(mark.Updated) && !s.at.IsZero() {
		n.Loss, n.Reason = follow.LossOlder,
			fmt.Sprintf("the list of all resources (%s) is older than the one that was read last (%s)",
				resourcesync.FormatTime(s.at), resourcesync.FormatTime(mark.Updated))
	}
	n.Whole, n.Mark = true, follow.Mark{Updated: s.at, ETag: s.etag, Document: s.document, Complete: c.changes == ""}
	if c.changes != "" {
		changes, err := l.changes(ctx, c.changes, follow.Mark{Updated: s.at}, handled, s.stated)
		var gone *goneError
		switch {
		case errors.As(err, &gone):
			n.Gap = fmt.Sprintf(
				"%s: %s: what has changed since the list of all resources was made (%s) stays unknown until the Source "+
					"publishes a newer list", c.changes, gone.reason, resourcesync.FormatTime(s.at))
			l.report(n.Gap)
		case err != nil:
			return err
		default:
			n.Mark, n.Placed = changes.Mark, changes.Placed
		}
	}
	n.Stated = s.stated
	return nil
}

// listing is a document that was read.
type listing struct {
	*fetch.Answer
	resourcesync.Document
	items []resourcesync.Item
}

// isNoDocument reports whether an error means that the answer is no document, or an unusable one, so that a retry would
// fail, too.
func isNoDocument(err error) bool {
	return errors.As(err, new(*resourcesync.LimitError)) || errors.As(err, new(*resourcesync.InvalidError))
}

// read fetches a document. Where its ETag is still the given one, only the answer is there.
func (l *look) read(ctx context.Context, at, etag string) (*listing, error) {
	if err := l.count(at); err != nil {
		return nil, err
	}
	r := fetch.Request{URL: at, Accept: acceptSitemap, ETag: etag, Max: l.maxBytes(),
		Within: l.fetcher.MaxTime}
	p, a, err := fetch.Do(ctx, l.fetcher, r, func(a *fetch.Answer) (*listing, error) {
		p, err := readListing(a.Body, a, l.Limits)
		if isNoDocument(err) {
			err = fetch.Permanent(err)
		}
		return p, err
	})
	if err != nil {
		return nil, err
	}
	if p == nil {
		p = &listing{}
	}
	p.Answer = a
	return p, nil
}

const acceptSitemap = "application/xml, text/xml;q=0.9, */*;q=0.1"

// maxBytes is more than a document may have: others have longer ones.
func (l *look) maxBytes() int64 { return cmp.Or(l.Limits.MaxBytes, 100<<20) }

// count counts a document before it is read.
func (l *look) count(at string) error {
	if most := cmp.Or(l.MaxDocs, 100_000); l.documents >= most {
		return fmt.Errorf("%s: the Source has more than %d documents", at, most)
	}
	l.documents++
	if l.Progress != nil {
		l.Progress(l.documents)
	}
	return nil
}

// readListing reads the document of an answer. It detects gzip, because many servers do not declare it.
func readListing(from io.Reader, a *fetch.Answer, limits resourcesync.Limits) (*listing, error) {
	start := bufio.NewReader(from)
	from, limits.ContentType = start, a.ContentType
	if magic, _ := start.Peek(2); string(magic) == "\x1f\x8b" { // RFC 1952 §2.3.1
		unpacked, err := gzip.NewReader(start)
		if err != nil {
			return nil, err
		}
		from = unpacked // as long as the limits allow
	}
	d, err := resourcesync.Read(from, a.URL, limits)
	if err != nil {
		return nil, err
	}
	return listingOf(d)
}

func listingOf(d *resourcesync.Reader) (*listing, error) {
	p := &listing{}
	for {
		i, err := d.Next()
		switch {
		case err == io.EOF:
			p.Document = d.Document
			return p, nil
		case err != nil:
			return nil, err
		}
		p.items = append(p.items, i)
	}
}

// record returns a list's statement of a resource.
func (l *look) record(i *resourcesync.Item) follow.Record {
	r := follow.Record{ID: iri.NormalizeURL(i.Loc), Updated: i.ChangeTime(), Deleted: i.Change == resourcesync.Deleted}
	if by := i.ChangedBy(); by.After(r.Updated) {
		r.Before = by
	}
	for _, about := range i.Find(resourcesync.RelDescribes) {
		if si, err := iri.Normalize(about.Href); err == nil && l.Subjects {
			r.TopicSI = append(r.TopicSI, si)
		}
	}
	if !r.Deleted {
		r.Representations = l.representations(i)
	}
	return r
}

func (l *look) report(line string) {
	l.reporting.Lock()
	defer l.reporting.Unlock()
	if l.Report != nil {
		l.Report(line)
	}
}
