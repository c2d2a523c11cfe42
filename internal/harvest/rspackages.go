package harvest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/tmshare/tmshare/feeds/resourcesync"
	"github.com/tmshare/tmshare/internal/fetch"
)

// pack is a package that is fetched when something of it is wanted first.
type pack struct {
	uri     string
	open    func() (*opened, error)
	file    *os.File
	trouble sync.Once // the first of it is reported
}

// opened is a package that is here, and its manifest.
type opened struct {
	*resourcesync.Package
	manifest
}

// manifest says what is in a package.
type manifest struct {
	at, until time.Time
	items     []resourcesync.Item
	by        map[string][]int // the items of a URI
}

func manifestOf(p *listing) manifest {
	m := manifest{at: p.At, until: p.Until, items: p.items, by: make(map[string][]int, len(p.items))}
	for i := range p.items {
		m.by[p.items[i].Loc] = append(m.by[p.items[i].Loc], i)
	}
	return m
}

// wanted is a record whose content a package is to supply.
type wanted struct {
	*Record
	since time.Time // the content must have all changes until then, if the record has no time
}

// find returns what has the content of a record, nil where nothing is sure to have it.
func (m *manifest) find(w wanted) *resourcesync.Item {
	for _, n := range slices.Backward(m.by[w.ID]) {
		i := &m.items[n]
		if i.Change == resourcesync.Deleted || i.Path == "" {
			continue
		}
		switch compare(Fixity{i.Representation}, w.Representations[len(w.Representations)-1].Fixity) {
		case Same:
			return i
		case Different:
			continue
		}
		// Without hashes its time must do. Of that of a second in which a package ends it
		// is not known whether the package has all.
		switch at := i.ChangeTime(); {
		case w.Updated.IsZero():
			if !w.since.IsZero() && !m.at.Before(w.since) {
				return i
			}
		case !at.IsZero() && !at.Equal(w.Updated):
		case m.at.After(w.Updated), m.until.After(w.Updated) && at.Equal(w.Updated):
			return i
		}
	}
	return nil
}

// supply makes the package the first place where the content of a record is looked for: what
// the item has of it, in all of its forms.
func (p *pack) supply(l *look, w wanted, has *resourcesync.Item) {
	if slices.ContainsFunc(w.Representations, func(r Representation) bool { return r.Open != nil }) {
		return
	}
	record := *w.Record
	var packed []Representation
	for _, r := range w.Representations {
		if _, ok := bitstream(has, r.URL); !ok || r.Copy {
			continue
		}
		// The manifest that counts is the one in the package.
		r.Open = func() (io.ReadCloser, error) {
			content, err := p.content(wanted{&record, w.since}, r)
			if err != nil {
				p.complain(l, err)
				return nil, err
			}
			return &packedContent{content, func(err error) { p.complain(l, err) }}, nil
		}
		packed = append(packed, r)
	}
	w.Representations = append(packed, w.Representations...)
}

// bitstream returns what a manifest says of the content of a resource, or of one of its
// alternates, that is in the package.
func bitstream(i *resourcesync.Item, uri string) (resourcesync.Representation, bool) {
	if uri == i.Loc {
		return i.Representation, i.Path != ""
	}
	for _, l := range i.Find(resourcesync.RelAlternate) {
		if l.Href == uri && l.Path != "" {
			return l.Representation, true
		}
	}
	return resourcesync.Representation{}, false
}

// content opens the content of a record in a form, held to what the manifest and the list say
// of it.
func (p *pack) content(w wanted, form Representation) (io.ReadCloser, error) {
	here, err := p.open()
	if err != nil {
		return nil, err
	}
	i := here.find(w)
	if i == nil {
		return nil, fmt.Errorf("%s is not in the package that should have it", w.ID)
	}
	packed, ok := bitstream(i, form.URL)
	if !ok {
		return nil, fmt.Errorf("%s is not in the package that should have it", form.URL)
	}
	content, err := here.Open(form.URL, packed)
	if err == nil && compare(Fixity{packed}, form.Fixity) != Same {
		return struct {
			io.Reader
			io.Closer
		}{form.Fixity.Verify(form.URL, content), content}, nil
	}
	return content, err
}

// complain reports the first trouble with a package. What it cannot supply is fetched from
// elsewhere.
func (p *pack) complain(l *look, err error) {
	p.trouble.Do(func() {
		l.report(fmt.Sprintf("%s: the package is not used for all that it should have: %s", p.uri, err))
	})
}

// packedContent is content of a package; its errors are that one's.
type packedContent struct {
	io.ReadCloser
	failed func(error)
}

func (c *packedContent) Read(b []byte) (int, error) {
	n, err := c.ReadCloser.Read(b)
	if err != nil && err != io.EOF {
		c.failed(err)
	}
	return n, err
}

// packageAt returns a package that is fetched, and checked, when something of it is wanted.
func (l *look) packageAt(ctx context.Context, i *resourcesync.Item) *pack {
	if p := l.packages[i.Loc]; p != nil {
		return p
	}
	p := &pack{uri: i.Loc}
	described := *i
	p.open = sync.OnceValues(func() (*opened, error) { return l.fetchPackage(ctx, p, &described) })
	if l.packages == nil {
		l.packages = map[string]*pack{}
	}
	l.packages[i.Loc] = p
	return p
}

// fetchPackage fetches a package, or what is missing of it since the last round, and its
// manifest. What is no good is removed, what is only not there in full stays.
func (l *look) fetchPackage(ctx context.Context, p *pack, i *resourcesync.Item) (*opened, error) {
	most := cmp.Or(l.MaxPackage, 16<<30)
	d := &fetch.Download{Path: filepath.Join(l.Temp, packagePrefix+shortHash(i.Loc)), Key: i.Loc, Room: l.Room, Progress: l.Downloading}
	request := fetch.Request{URL: i.Loc, Accept: resourcesync.MediaTypeZIP + ", */*;q=0.1", Max: most, Home: l.home}
	if err := d.Fetch(ctx, l.Fetcher, request); err != nil {
		return nil, err
	}
	here, err := l.unpack(d, p, i, most)
	if err != nil {
		err = errors.Join(err, d.Remove())
	}
	return here, err
}

// unpack opens a package that was fetched, once it is what the dump says.
func (l *look) unpack(d *fetch.Download, p *pack, i *resourcesync.Item, most int64) (*opened, error) {
	content, err := d.Open(most)
	if err != nil {
		return nil, err
	}
	defer content.Close()
	path, to := d.Path, io.Discard
	if d.Coded() {
		path += ".zip"
		plain, err := os.Create(path)
		if err != nil {
			return nil, err
		}
		defer plain.Close()
		to = plain
	}
	size, err := io.Copy(to, i.Representation.Verify(i.Loc, content))
	if err != nil {
		return nil, err
	}
	if p.file, err = os.Open(path); err != nil {
		return nil, err
	}
	z, err := resourcesync.OpenPackage(p.file, size, i.Loc, l.Packages)
	if err != nil {
		return nil, err
	}
	inner, err := z.Manifest()
	if err != nil {
		return nil, err
	}
	m, err := listingOf(inner)
	if err != nil {
		return nil, err
	}
	return &opened{z, manifestOf(m)}, nil
}

// Close ends the use of the packages.
func (s *ResourceSync) Close() error {
	var errs []error
	for _, p := range s.packages {
		if p.file != nil {
			errs = append(errs, p.file.Close())
		}
	}
	s.packages = nil
	return errors.Join(errs...)
}
