package harvest

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/tmshare/tmshare/feeds/resourcesync"
	"github.com/tmshare/tmshare/internal/fetch"
)

// A package of a dump holds what many requests would bring (Z39.99 §11, Packaging
// Resources; §13, Packaging Changes). What the lists say counts: packages only supply the
// content for it, and where one is no good, the resources are fetched one by one.

// many is how many resources must be wanted for packages to be worth their while.
const many = 50

// pack is a package that is fetched when something of it is wanted first.
type pack struct {
	uri      string
	fetch    func() (*resourcesync.Package, error)
	file     *os.File
	download *fetch.Download
}

// pack finds packages with what the news want to be fetched, if that is much: of the
// Resource Dump where most of all is wanted, else of the Change Dump.
func (l *look) pack(ctx context.Context, c *capabilities, n *News, h Holder) error {
	if l.Temp == "" || n.Unchanged {
		return nil
	}
	todo, err := n.Todo(h)
	if err != nil {
		return err
	}
	wanted := map[string]*Record{}
	there := 0
	for i := range n.Records {
		if !n.Records[i].Deleted {
			there++
		}
	}
	for i := range todo {
		if !todo[i].Deleted {
			wanted[todo[i].ID] = &todo[i]
		}
	}
	var ref string
	switch {
	case len(wanted) < many:
	case n.Whole && 2*len(wanted) > there:
		ref = c.dump
	case !n.Whole:
		ref = c.changeDump
	}
	if ref == "" {
		return nil
	}
	if err := l.supply(ctx, ref, wanted); err != nil {
		if ctx.Err() != nil {
			return err
		}
		l.report(fmt.Sprintf("%s: the dump cannot be used, resources are fetched one by one: %s", ref, err))
	}
	// Todo has copies of the records.
	for i := range n.Records {
		if r := wanted[n.Records[i].ID]; r != nil {
			n.Records[i].Representations = r.Representations
		}
	}
	return nil
}

func (l *look) report(line string) {
	if l.Report != nil {
		l.Report(line)
	}
}

// supply looks into the packages of a dump for the content of the wanted records.
func (l *look) supply(ctx context.Context, ref string, wanted map[string]*Record) error {
	return l.eachPackage(ctx, ref, func(p *pack, manifest *page) {
		for i := range manifest.records {
			packed := &manifest.records[i]
			r := wanted[packed.ID]
			if r == nil || packed.Deleted || !packed.Updated.IsZero() && !packed.Updated.Equal(r.Updated) {
				continue
			}
			for j := range r.Representations {
				for _, from := range packed.Representations {
					if from.URL == r.Representations[j].URL && from.Fixity.Path != "" && from.Fixity.agrees(r.Representations[j].Fixity) {
						r.Representations[j].open = p.opener(from)
					}
				}
			}
		}
	})
}

// dumped reads what is there from the manifests of a Resource Dump.
func (l *look) dumped(ctx context.Context, ref string) (all []Record, at time.Time, err error) {
	if l.Temp == "" {
		return nil, at, fmt.Errorf("%s: the Source has no Resource List, and packages are not to be fetched", ref)
	}
	err = l.eachPackage(ctx, ref, func(p *pack, manifest *page) {
		if t := manifest.At; !t.IsZero() && (at.IsZero() || t.Before(at)) {
			at = t
		}
		for _, r := range manifest.records {
			for j := range r.Representations {
				r.Representations[j].open = p.opener(r.Representations[j])
			}
			all = append(all, r)
		}
	})
	for i := range all {
		if all[i].Updated.IsZero() {
			all[i].Updated = at
		}
	}
	return all, at, err
}

// eachPackage calls f with each package of a dump, or of several by an index, and its
// manifest: a copy, if there is one.
func (l *look) eachPackage(ctx context.Context, ref string, f func(*pack, *page)) error {
	p, err := l.read(ctx, ref, "")
	if err != nil {
		return err
	}
	for i := range p.parts {
		part := &p.parts[i]
		if p.Index {
			if err := l.eachPackage(ctx, part.Loc, f); err != nil {
				return err
			}
			continue
		}
		packed := l.package_(ctx, part)
		var manifest *page
		if copied, ok := part.Link(resourcesync.RelContents); ok {
			manifest, err = l.read(ctx, copied.Href, "")
		} else {
			manifest, err = packed.manifest(l)
		}
		if err != nil {
			return err
		}
		f(packed, manifest)
	}
	return nil
}

// package_ returns a package that is fetched, and checked, when something of it is wanted.
func (l *look) package_(ctx context.Context, i *resourcesync.Item) *pack {
	p := &pack{uri: i.Loc}
	l.packages = append(l.packages, p)
	p.download = &fetch.Download{Path: filepath.Join(l.Temp, fmt.Sprintf("package-%d", len(l.packages))), Key: i.Loc}
	p.fetch = sync.OnceValues(func() (*resourcesync.Package, error) {
		request := fetch.Request{URL: i.Loc, Accept: resourcesync.MediaTypeZIP + ", */*;q=0.1", Max: cmp.Or(l.MaxPackage, 16<<30), Home: l.home}
		if err := p.download.Fetch(ctx, l.Fetcher, request); err != nil {
			return nil, err
		}
		// What is kept is how it came: content codings are taken off here.
		content, err := p.download.Open(cmp.Or(l.MaxPackage, 16<<30))
		if err != nil {
			return nil, err
		}
		defer content.Close()
		if p.file, err = os.Create(p.download.Path + ".zip"); err != nil {
			return nil, err
		}
		size, err := io.Copy(p.file, i.Representation.Verify(i.Loc, content))
		if err != nil {
			return nil, err
		}
		if err := p.download.Remove(); err != nil {
			return nil, err
		}
		return resourcesync.OpenPackage(p.file, size, i.Loc, l.Packages)
	})
	return p
}

// manifest reads the manifest in the package.
func (p *pack) manifest(l *look) (*page, error) {
	z, err := p.fetch()
	if err != nil {
		return nil, err
	}
	d, err := z.Manifest()
	if err != nil {
		return nil, err
	}
	m := &page{Document: d.Document}
	for {
		i, err := d.Next()
		if err == io.EOF {
			m.Document = d.Document
			return m, nil
		}
		if err != nil {
			return nil, err
		}
		m.records = append(m.records, l.record(&i))
	}
}

// opener opens the bitstream of a representation in the package.
func (p *pack) opener(r Representation) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) {
		z, err := p.fetch()
		if err != nil {
			return nil, err
		}
		return z.Open(r.URL, r.Fixity)
	}
}

// Close removes the packages that were fetched.
func (s *ResourceSync) Close() error {
	for _, p := range s.packages {
		if p.file != nil {
			p.file.Close()
			os.Remove(p.file.Name())
		}
	}
	s.packages = nil
	return nil
}
