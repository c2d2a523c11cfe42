package destination

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/tmshare/tmshare/feeds/resourcesync"
	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/iri"
)

// packages are the packages that supply content.
type packages struct {
	mu    sync.Mutex // guards the fields below, and the open files of packages
	all   []*pack    // by number, from 1 on
	byURI map[string]*pack
	open  []*pack // the most recently used comes last
}

// maxOpenPackages is the number of unused packages that are kept open, with their manifests.
const maxOpenPackages = 2

// pack is a package that is fetched when something of it is wanted first.
type pack struct {
	number uint32
	uri    string
	length int64 // as the dump states
	fetch  func() error
	reopen func() (*opened, error)

	at, until time.Time // from the manifest that was read

	opening sync.Mutex // one opens it, others wait
	fetched bool
	failed  error // it cannot be used
	here    *opened
	users   int

	trouble sync.Once // the first of it is reported
}

// opened is a package that is here, and its manifest.
type opened struct {
	*resourcesync.Package
	manifest
	file *os.File
}

// manifest is the content of a package by its manifest.
type manifest struct {
	at, until time.Time
	items     []resourcesync.Item
	by        map[string][]int // the items of a URI
}

func manifestOf(p *listing) manifest {
	m := manifest{at: p.At, until: p.Until, items: p.items, by: make(map[string][]int, len(p.items))}
	for n := range p.items {
		id := iri.NormalizeURL(p.items[n].Loc)
		m.by[id] = append(m.by[id], n)
	}
	return m
}

// borrow opens a package, which is fetched if it is not here. The caller gives it back.
func (s *packages) borrow(p *pack) (*opened, error) {
	p.opening.Lock()
	defer p.opening.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.failed == nil && p.here == nil {
		s.mu.Unlock()
		here, err := p.openHere()
		s.mu.Lock()
		if p.here, p.failed = here, err; err == nil {
			s.open = append(s.open, p)
		}
	}
	if p.failed != nil {
		return nil, p.failed
	}
	p.users++
	if i := slices.Index(s.open, p); i >= 0 {
		s.open = append(slices.Delete(s.open, i, i+1), p)
	}
	return p.here, s.closeUnused()
}

func (p *pack) openHere() (*opened, error) {
	if !p.fetched {
		if err := p.fetch(); err != nil {
			return nil, err
		}
		p.fetched = true
	}
	return p.reopen()
}

// closeUnused closes unused packages if too many are open.
func (s *packages) closeUnused() error {
	for i := 0; i < len(s.open) && len(s.open) > maxOpenPackages; {
		p := s.open[i]
		if p.users > 0 {
			i++
			continue
		}
		s.open = slices.Delete(s.open, i, i+1)
		file := p.here.file
		if p.here = nil; file != nil {
			if err := file.Close(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *packages) giveBack(p *pack) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.users--
}

// packedItem is the content of a resource by a manifest.
type packedItem struct {
	URIs   []string      // of the resource, and of its alternates in the package, in normal form
	At     time.Time     `json:",omitzero"` // when it was changed
	Fixity follow.Fixity `json:",omitzero"`
	pack   uint32
}

// packedItemOf returns the content of an item; nil if it has none.
func packedItemOf(i *resourcesync.Item) *packedItem {
	if i.Change == resourcesync.Deleted || i.Path == "" {
		return nil
	}
	has := &packedItem{URIs: []string{iri.NormalizeURL(i.Loc)}, At: i.ChangeTime(),
		Fixity: follow.Fixity{Representation: i.Representation}}
	for _, l := range i.Find(resourcesync.RelAlternate) {
		if l.Path != "" {
			has.URIs = append(has.URIs, iri.NormalizeURL(l.Href))
		}
	}
	return has
}

// has reports whether the item is sure to be the content of a record. since is up to when the content must
// have all changes, if the record has no time; at and until are those of the manifest.
func (i *packedItem) has(r *follow.Record, since, at, until time.Time) bool {
	switch follow.Compare(i.Fixity, r.Representations[len(r.Representations)-1].Fixity) {
	case follow.Same:
		return true
	case follow.Different:
		return false
	}
	// Without hashes its time must do. Of that of a second in which a package ends it
	// is not known whether the package has all.
	switch {
	case r.Alone:
		return true
	case r.Updated.IsZero():
		return !since.IsZero() && !at.Before(since)
	case !i.At.IsZero() && !i.At.Equal(r.Updated):
		return false
	case !r.Before.IsZero(): // of a day, or of a list, it may have been at its end
		return !at.Before(r.Before) || !until.Before(r.Before) && i.At.Equal(r.Updated)
	}
	return at.After(r.Updated) || until.After(r.Updated) && i.At.Equal(r.Updated)
}

// supply records which representations of a record a package has, and puts it before the other sources. A package names
// no hosts besides those of a list. It reports whether there are any.
func (l *look) supply(r *follow.Record, has *packedItem) bool {
	for n, form := range r.Representations {
		if slices.Contains(has.URIs, iri.NormalizeURL(form.URL)) && !form.Copy && l.allows(form.URL) {
			r.Packed = append(r.Packed, n)
		}
	}
	if len(r.Packed) > 0 {
		r.Pack = has.pack
	}
	return len(r.Packed) > 0
}

// attach makes the package of a record the first place where its content is looked for.
func (l *look) attach(r *follow.Record) {
	if r.Pack == 0 {
		return
	}
	p := l.packages.all[r.Pack-1]
	listed := *r
	var packed []follow.Representation
	for _, n := range r.Packed {
		form := r.Representations[n]
		// The manifest that counts is the one in the package.
		form.Open = func() (io.ReadCloser, error) {
			content, err := l.content(p, &listed, form)
			if err != nil {
				p.complain(l, err)
				return nil, err
			}
			return &packedContent{content, func(err error) { p.complain(l, err) }, func() { l.packages.giveBack(p) }}, nil
		}
		packed = append(packed, form)
	}
	r.Representations = append(packed, r.Representations...)
}

// allows reports whether a URL could be fetched.
func (l *look) allows(ref string) bool {
	u, err := url.Parse(ref)
	return err == nil && l.fetcher.Allow(u) == nil
}

// bitstream returns a manifest's statement of the content of a resource, or of an alternate, in the package.
func bitstream(i *resourcesync.Item, uri string) (resourcesync.Representation, bool) {
	if iri.SameDocument(uri, i.Loc) {
		return i.Representation, i.Path != ""
	}
	for _, l := range i.Find(resourcesync.RelAlternate) {
		if iri.SameDocument(l.Href, uri) && l.Path != "" {
			return l.Representation, true
		}
	}
	return resourcesync.Representation{}, false
}

// content opens the content of a record in a form, and checks it against the manifest and the list. The package stays
// borrowed until the content is closed.
func (l *look) content(p *pack, r *follow.Record, form follow.Representation) (_ io.ReadCloser, err error) {
	here, err := l.packages.borrow(p)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			l.packages.giveBack(p)
		}
	}()
	i := here.find(r, l.listed)
	if i == nil && len(here.by[r.ID]) > 0 {
		return nil, fmt.Errorf("the package has %s, but not in the version that is listed, or does not say in which", r.ID)
	}
	if i == nil {
		return nil, fmt.Errorf("%s is not in the package that should have it", r.ID)
	}
	packed, ok := bitstream(i, form.URL)
	if !ok {
		return nil, fmt.Errorf("%s is not in the package that should have it", form.URL)
	}
	content, err := here.Open(form.URL, packed)
	if err == nil && follow.Compare(follow.Fixity{Representation: packed}, form.Fixity) != follow.Same {
		return struct {
			io.Reader
			io.Closer
		}{form.Fixity.Verify(form.URL, content), content}, nil
	}
	return content, err
}

// find returns the item with the content of a record; nil if none certainly has it.
func (m *manifest) find(r *follow.Record, since time.Time) *resourcesync.Item {
	for _, n := range slices.Backward(m.by[r.ID]) {
		if has := packedItemOf(&m.items[n]); has != nil && has.has(r, since, m.at, m.until) {
			return &m.items[n]
		}
	}
	return nil
}

// complain reports the first trouble with a package. What it cannot supply is fetched from elsewhere.
func (p *pack) complain(l *look, err error) {
	p.trouble.Do(func() {
		l.report(fmt.Sprintf("%s: the package is not used for all that it should have: %s", p.uri, err))
	})
}

// packedContent is content of a package; its errors are that one's.
type packedContent struct {
	io.ReadCloser
	failed func(error)
	done   func()
}

// Close gives the package back.
func (c *packedContent) Close() error {
	defer c.done()
	return c.ReadCloser.Close()
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
	all := &l.packages
	if p := all.byURI[i.Loc]; p != nil {
		return p
	}
	p := &pack{number: uint32(len(all.all) + 1), uri: i.Loc, length: i.Length}
	described := *i
	most := cmp.Or(l.MaxPackage, 16<<30)
	d := &fetch.Download{Path: follow.PackagePath(l.Temp, i.Loc), Key: i.Loc, CheckSpace: l.Scratch.CheckSpace,
		Progress: l.Downloading}
	var path string
	var size int64
	// An invalid package is removed; an incomplete one is kept for the next round.
	p.fetch = func() (err error) {
		request := fetch.Request{URL: i.Loc, Accept: resourcesync.MediaTypeZIP + ", */*;q=0.1", Max: most}
		if err := d.Fetch(ctx, l.fetcher, request); err != nil {
			return err
		}
		if path, size, err = unpackTo(d, &described, most); err != nil {
			err = errors.Join(err, d.Remove())
		}
		return err
	}
	p.reopen = func() (*opened, error) {
		here, err := openPackage(path, size, i.Loc, l.Packages)
		if err != nil {
			err = errors.Join(err, d.Remove())
		}
		return here, err
	}
	if all.byURI == nil {
		all.byURI = map[string]*pack{}
	}
	all.byURI[i.Loc], all.all = p, append(all.all, p)
	return p
}

// unpackTo checks a fetched package against the dump, and returns its path without content coding.
func unpackTo(d *fetch.Download, i *resourcesync.Item, most int64) (path string, size int64, err error) {
	content, err := d.Open(most)
	if err != nil {
		return "", 0, err
	}
	defer content.Close()
	path, to := d.Path, io.Discard
	if d.Coded() {
		path += ".zip"
		plain, err := os.Create(path)
		if err != nil {
			return "", 0, err
		}
		defer plain.Close()
		to = plain
	}
	size, err = io.Copy(to, i.Representation.Verify(i.Loc, content))
	return path, size, err
}

// openPackage opens a package that was fetched, and reads its manifest.
func openPackage(path string, size int64, uri string, limits resourcesync.PackageLimits) (_ *opened, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, file.Close())
		}
	}()
	z, err := resourcesync.OpenPackage(file, size, uri, limits)
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
	return &opened{z, manifestOf(m), file}, nil
}

// Close ends the use of the packages.
func (s *Source) Close() error {
	var errs []error
	for _, p := range s.packages.open {
		errs = append(errs, p.here.file.Close())
	}
	s.packages.all, s.packages.byURI, s.packages.open = nil, nil, nil
	return errors.Join(errs...)
}
