package harvest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/tmshare/tmshare/feeds/resourcesync"
	"github.com/tmshare/tmshare/internal/fetch"
)

// ResourceSync follows a set of resources that a Source publishes by ResourceSync (ANSI/NISO
// Z39.99). Their URIs are the ids of the records.
type ResourceSync struct {
	Fetcher *fetch.Fetcher
	Limits  resourcesync.Limits // of one document
	MaxDocs int                 // in one look; default 100,000

	// Packages are fetched to the folder Temp, if that is set, where many resources are
	// wanted: they cost fewer requests. Close removes them.
	Temp       string
	Packages   resourcesync.PackageLimits
	MaxPackage int64 // bytes of one package; default 16 GiB

	// Represent returns where a resource is to be had, the best first. The default is
	// [Mirrors].
	Represent func(*resourcesync.Item) []Representation

	Progress func(documents int) // may be nil
	Report   func(line string)   // told what is not as it should be but does no harm; may be nil

	packages []*pack
}

// News implements [Source]. It begins with the Resource List (Z39.99 §5.2, Baseline
// Synchronization) and goes on with the Change Lists (Incremental Synchronization). Where
// these do not reach back to the mark it begins again; so it does each time where there are
// none.
func (s *ResourceSync) News(ctx context.Context, ref string, mark Mark, h Holder) (*News, error) {
	home, err := s.Fetcher.Home(ref)
	if err != nil {
		return nil, err
	}
	l := &look{ResourceSync: s, home: home}
	c, err := l.discover(ctx, ref)
	if err != nil {
		return nil, err
	}
	n := &News{}
	switch {
	case mark.Feed != "" && mark.Feed != c.at:
		n.Anew, n.Reason = true, "the Source has another Capability List"
	case !mark.Updated.IsZero() && c.changes != "":
		changes, err := l.changes(ctx, c.changes, mark)
		if err != nil {
			return nil, err
		}
		if changes != nil {
			changes.Mark.Feed = c.at
			return changes, l.pack(ctx, c, changes, h)
		}
		n.Reason = "the Change Lists do not reach back to the last round"
	}
	if err := l.baseline(ctx, c, n); err != nil {
		return nil, err
	}
	n.Mark.Feed, n.Documents = c.at, l.documents
	return n, l.pack(ctx, c, n, h)
}

// look is one look at a Source.
type look struct {
	*ResourceSync
	home      func(*url.URL) error
	documents int
}

// page is a document that was read.
type page struct {
	*fetch.Answer
	resourcesync.Document
	parts   []resourcesync.Item // of an index, and of a list of packages: what it lists
	records []Record            // of others: what becomes of resources
}

// read fetches a document. Where its ETag is still the given one, only the answer is there.
func (l *look) read(ctx context.Context, at, etag string) (*page, error) {
	if most := cmp.Or(l.MaxDocs, 100_000); l.documents >= most {
		return nil, fmt.Errorf("%s: the Source has more than %d documents", at, most)
	}
	l.documents++
	r := fetch.Request{URL: at, Accept: acceptSitemap, ETag: etag, Max: cmp.Or(l.Limits.MaxBytes, 100<<20), Home: l.home, Within: l.Fetcher.MaxTime}
	p, a, err := fetch.Do(ctx, l.Fetcher, r, func(a *fetch.Answer) (*page, error) {
		p, err := l.page(a.Body, a.URL)
		if errors.As(err, new(*resourcesync.LimitError)) || errors.As(err, new(*resourcesync.InvalidError)) {
			err = fetch.Permanent(err)
		}
		return p, err
	})
	if err != nil {
		return nil, err
	}
	if p == nil {
		p = &page{}
	}
	p.Answer = a
	if l.Progress != nil {
		l.Progress(l.documents)
	}
	return p, nil
}

const acceptSitemap = "application/xml, text/xml;q=0.9, */*;q=0.1"

func (l *look) page(from io.Reader, uri string) (*page, error) {
	d, err := resourcesync.Read(from, uri, l.Limits)
	if err != nil {
		return nil, err
	}
	p := &page{}
	for {
		i, err := d.Next()
		if err == io.EOF {
			p.Document = d.Document
			return p, nil
		}
		if err != nil {
			return nil, err
		}
		switch d.Document.Capability {
		case resourcesync.Description, resourcesync.CapabilityList, resourcesync.ResourceDump, resourcesync.ChangeDump:
			p.parts = append(p.parts, i)
		default:
			if d.Document.Index {
				p.parts = append(p.parts, i)
			} else {
				p.records = append(p.records, l.record(&i))
			}
		}
	}
}

// record returns what a list says of a resource.
func (l *look) record(i *resourcesync.Item) Record {
	r := Record{ID: i.Loc, Updated: i.ChangeTime(), Deleted: i.Change == resourcesync.Deleted}
	if r.Deleted {
		return r
	}
	if l.Represent != nil {
		r.Representations = l.Represent(i)
	} else {
		r.Representations = Mirrors(i)
	}
	return r
}

// Mirrors returns where a resource is to be had: at its mirrors by their priority, which
// are there to spare the Source (Z39.99 §14.2, Mirrored Content), then at its own URI.
func Mirrors(i *resourcesync.Item) []Representation {
	var all []Representation
	for _, m := range append(i.Find(resourcesync.RelDuplicate), resourcesync.Link{Href: i.Loc}) {
		if u, err := url.Parse(m.Href); err == nil && (u.Scheme == "http" || u.Scheme == "https") {
			all = append(all, Representation{URL: m.Href, Type: i.Type, Fixity: i.Representation})
		}
	}
	return all
}

// baseline reads all that there is, and what has changed since then.
func (l *look) baseline(ctx context.Context, c *capabilities, n *News) error {
	listed, at, err := l.resources(ctx, c)
	if err != nil {
		return err
	}
	n.Whole, n.Mark = true, Mark{Updated: at, Complete: c.changes == ""}
	n.Records = latest(listed)
	if c.changes == "" {
		return nil
	}
	changes, err := l.changes(ctx, c.changes, Mark{Updated: at})
	if err != nil {
		return err
	}
	if changes == nil {
		return fmt.Errorf("%s: the Change Lists begin later than the list of all resources, which is of %s: what has changed between them cannot be known", c.changes, resourcesync.FormatTime(at))
	}
	n.Records, n.Mark = latest(append(listed, changes.Records...)), changes.Mark
	return nil
}

// resources reads the Resource List, or where there is none the manifests of the Resource
// Dump. It returns the time up to which they hold all changes.
func (l *look) resources(ctx context.Context, c *capabilities) ([]Record, time.Time, error) {
	ref := c.resources
	if ref == "" {
		if ref = c.dump; ref == "" {
			return nil, time.Time{}, fmt.Errorf("%s: the Source has neither a Resource List nor a Resource Dump to begin with", c.at)
		}
		return l.dumped(ctx, ref)
	}
	var listed []Record
	var at time.Time
	seen := map[string]bool{}
	for parts := []string{ref}; len(parts) > 0; parts = parts[1:] {
		if seen[parts[0]] {
			return nil, at, fmt.Errorf("%s: the lists lead in a circle", parts[0])
		}
		seen[parts[0]] = true
		p, err := l.read(ctx, parts[0], "")
		if err != nil {
			return nil, at, err
		}
		for i := range p.parts {
			parts = append(parts, p.parts[i].Loc)
		}
		began := p.At
		if began.IsZero() && !p.Index { // a plain Sitemap
			began, _ = http.ParseTime(p.Header.Get("Date"))
		}
		if !began.IsZero() && (at.IsZero() || began.Before(at)) { // of several lists, all changes until the first was begun are in them
			at = began
		}
		listed = append(listed, p.records...)
	}
	for i := range listed {
		if listed[i].Updated.IsZero() {
			listed[i].Updated = at // whether it has changed is for its hashes to tell
		}
	}
	return listed, at, nil
}

// changes reads the Change Lists that span the mark or are later. It returns nil where they
// do not reach back to it.
func (l *look) changes(ctx context.Context, ref string, mark Mark) (*News, error) {
	etag := mark.ETag
	if len(mark.At) == 0 { // right after a baseline
		etag = ""
	}
	p, err := l.read(ctx, ref, etag)
	if err != nil {
		return nil, err
	}
	if p.NotModified {
		return &News{Unchanged: true, Mark: mark, Documents: l.documents}, nil
	}
	n := &News{Mark: Mark{Updated: mark.Updated, At: mark.At}}
	// A list that is too late, or closed, is not all there is: the index has the others
	// (Z39.99 §12.1, Change List).
	if index, ok := p.Link(resourcesync.RelIndex); ok && !p.Index && (!p.Until.IsZero() || !reaches(p.From, mark)) && index.Href != ref {
		if p, err = l.read(ctx, index.Href, ""); err != nil {
			return nil, err
		}
	}
	var changed []Record
	back := reaches(p.From, mark)
	if !p.Index {
		changed, n.Mark.ETag = p.records, p.ETag
	}
	for i := range p.parts {
		part := &p.parts[i]
		if !part.Until.IsZero() && part.Until.Before(mark.Updated) {
			back = true // it is not needed, but is there
			continue
		}
		list, err := l.read(ctx, part.Loc, "")
		if err != nil {
			return nil, err
		}
		back = back || reaches(part.From, mark) || reaches(list.From, mark)
		changed = append(changed, list.records...)
	}
	if !back {
		return nil, nil
	}
	for _, r := range changed {
		switch r.Updated.Compare(n.Mark.Updated) {
		case 1:
			n.Mark.Updated, n.Mark.At = r.Updated, []string{r.ID}
		case 0:
			if !slices.Contains(n.Mark.At, r.ID) {
				n.Mark.At = append(slices.Clone(n.Mark.At), r.ID)
			}
		}
	}
	n.Records = latest(slices.DeleteFunc(changed, func(r Record) bool { return r.Updated.Before(mark.Updated) }))
	n.Documents = l.documents
	return n, nil
}

// reaches reports whether what is from a time on holds all that is later than the mark.
func reaches(from time.Time, mark Mark) bool { return !from.IsZero() && !from.After(mark.Updated) }

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
