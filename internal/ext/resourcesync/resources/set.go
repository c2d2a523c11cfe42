package resources

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/tmshare/tmshare/feeds/resourcesync"
	"github.com/tmshare/tmshare/internal/store"
)

// Sizes are the limits of documents and packages. Zero values mean the defaults.
type Sizes struct {
	ListItems    int   // resources in a Resource List; default and most: 50,000
	ListBytes    int64 // its bytes; default and most: 50 MB
	PackageItems int   // resources in a package; default 10,000
	PackageBytes int64 // its bytes; default 100 MB

	DescribedItems int // collections in a Source Description; default and most: 50,000
}

// WithDefaults returns the sizes, with defaults for zero values.
func (s Sizes) WithDefaults() Sizes {
	or(&s.ListItems, resourcesync.MaxItems)
	or(&s.ListBytes, resourcesync.MaxBytes)
	or(&s.PackageItems, 10_000)
	or(&s.PackageBytes, 100_000_000)
	return s
}

func or[T int | int64](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}

// Set describes the state of a collection at one moment: its Resource Lists and its Resource Dump. It is made of one
// view, so at and completed are the same time: that of the last change.
type Set struct {
	Seq      uint64    // of the last entry of the log that it knows
	At       time.Time // of that entry
	Lists    int       // number of lists in the Resource List Index; 0: one list without index
	Packages []Package
	Items    int

	group group
}

// Names of files in a set.
const (
	resourceListFile = "resourcelist.xml" // the list, or the index of the parts
	resourceDumpFile = "resourcedump.xml"
)

func partFile(n int) string              { return fmt.Sprintf("resourcelist-%d.xml", n) }
func packageFile(n int, e string) string { return fmt.Sprintf("resourcedump-%d%s", n, e) }

// Endings of the names of a package and the copy of its manifest.
const (
	packageEnding  = ".zip"
	manifestEnding = "-manifest.xml"
)

// errIndexed is the error for resources that do not fit into one list.
var errIndexed = errors.New("resources: an index is needed")

// builder makes a set.
type builder struct {
	site    *Site
	view    *store.View
	sizes   Sizes
	set     *Set
	draft   *draft
	indexed bool
	list    *document
	pack    *packaging
}

// build makes the set of a view as a draft, or a second one where the resources do not fit into one list.
func build(begin func() *draft, site *Site, v *store.View, sizes Sizes) (*Set, error) {
	sizes = sizes.WithDefaults()
	indexed := v.Topics > sizes.ListItems
	for {
		set, err := buildOnce(begin(), site, v, sizes, indexed)
		if err != errIndexed {
			return set, err
		}
		indexed = true
	}
}

func buildOnce(d *draft, site *Site, v *store.View, sizes Sizes, indexed bool) (*Set, error) {
	defer d.end()
	b := &builder{site: site, view: v, sizes: sizes, draft: d, indexed: indexed,
		set: &Set{Seq: v.Head, At: v.Updated, group: group{name: d.name}}}
	defer b.close()
	if err := b.resources(d.ctx); err != nil {
		return nil, err
	}
	if err := errors.Join(b.finishList(), b.finishPackage()); err != nil {
		return nil, err
	}
	if err := errors.Join(b.index(), b.dump()); err != nil {
		return nil, err
	}
	var err error
	b.set.group.made, err = d.finish(b.set)
	return b.set, err
}

// close closes the files that an error left open.
func (b *builder) close() {
	if b.pack != nil {
		b.pack.manifest.Close()
	}
}

// resources writes all resources to lists and packages.
func (b *builder) resources(ctx context.Context) error {
	bytes := &contents{view: b.view, draft: b.draft}
	defer bytes.close()
	if !b.indexed {
		if err := b.beginList(); err != nil { // even without resources
			return err
		}
	}
	for e, err := range b.view.Records() {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		about, err := bytes.describe(&e)
		if err != nil {
			return err
		}
		item := b.site.resource(&b.view.Collection, &e, about)
		if err := b.addToList(&item); err != nil {
			return err
		}
		if err := b.addToPackage(item, &e, bytes); err != nil {
			return err
		}
		b.set.Items++
	}
	return nil
}

// at returns the head of a document of the set.
func (b *builder) at(capability resourcesync.Capability) resourcesync.Document {
	return resourcesync.Document{
		Capability: capability, Times: resourcesync.Times{At: b.set.At, Completed: b.set.At},
		Links: []resourcesync.Link{{Rel: resourcesync.RelUp, Href: b.site.CapabilityListURL()}},
	}
}

func (b *builder) listOptions() resourcesync.Options {
	return resourcesync.Options{MaxItems: b.sizes.ListItems, MaxBytes: b.sizes.ListBytes}
}

func (b *builder) beginList() (err error) {
	head, name := b.at(resourcesync.ResourceList), resourceListFile
	if b.indexed {
		b.set.Lists++
		name = partFile(b.set.Lists)
		head.Links = append(head.Links, resourcesync.Link{Rel: resourcesync.RelIndex, Href: b.site.ResourceListURL()})
	}
	b.list, err = b.draft.document(name, head, b.listOptions())
	return err
}

func (b *builder) finishList() error {
	if b.list == nil {
		return nil
	}
	list := b.list
	b.list = nil
	return list.Close()
}

func (b *builder) addToList(item *resourcesync.Item) error {
	if b.list == nil {
		if err := b.beginList(); err != nil {
			return err
		}
	}
	err := b.list.Write(item)
	if !errors.Is(err, resourcesync.ErrFull) {
		return err
	}
	if !b.indexed {
		return errIndexed
	}
	if err := b.finishList(); err != nil {
		return err
	}
	return b.addToList(item)
}

// index writes the Resource List Index (Z39.99 §10.2).
func (b *builder) index() error {
	if !b.indexed {
		return nil
	}
	head := b.at(resourcesync.ResourceList)
	head.Index = true
	d, err := b.draft.document(resourceListFile, head, resourcesync.Options{})
	if err != nil {
		return err
	}
	for n := range b.set.Lists {
		item := resourcesync.Item{Loc: b.site.setURL("resourcelist", b.set.Seq, n+1, ".xml"), LastMod: b.set.At}
		item.Times = head.Times
		if err := d.Write(&item); err != nil {
			return err
		}
	}
	return d.Close()
}

func (b *builder) addToPackage(item resourcesync.Item, e *store.Entry, bytes *contents) (err error) {
	if b.pack == nil {
		n := len(b.set.Packages) + 1
		b.pack, err = b.draft.packaging(packageFile(n, packageEnding), packageFile(n, manifestEnding),
			b.at(resourcesync.ResourceDumpManifest),
			resourcesync.PackageOptions{MaxBytes: b.sizes.PackageBytes,
				Manifest: resourcesync.Options{MaxItems: b.sizes.PackageItems}})
		if err != nil {
			return err
		}
	}
	err = b.pack.add(item, formsOf(&b.view.Collection, e), func(f form) (io.Reader, error) { return bytes.read(e, f) })
	if !errors.Is(err, resourcesync.ErrFull) || b.pack.Items() == 0 {
		return err
	}
	if err := b.finishPackage(); err != nil {
		return err
	}
	return b.addToPackage(item, e, bytes)
}

func (b *builder) finishPackage() error {
	if b.pack == nil {
		return nil
	}
	p, err := b.pack.Close()
	b.set.Packages, b.pack = append(b.set.Packages, p), nil
	return err
}

// dump writes the Resource Dump (Z39.99 §11.1).
func (b *builder) dump() error {
	head := b.at(resourcesync.ResourceDump)
	d, err := b.draft.document(resourceDumpFile, head, resourcesync.Options{})
	if err != nil {
		return err
	}
	for i, p := range b.set.Packages {
		item := resourcesync.Item{Loc: b.site.setURL("resourcedump", b.set.Seq, i+1, packageEnding), LastMod: b.set.At}
		item.Times, item.Representation = head.Times, p.Representation
		item.Links = []resourcesync.Link{contentsLink(b.site.setURL("resourcedump", b.set.Seq, i+1, manifestEnding))}
		if err := d.Write(&item); err != nil {
			return err
		}
	}
	return d.Close()
}

func contentsLink(manifest string) resourcesync.Link {
	return resourcesync.Link{Rel: resourcesync.RelContents, Href: manifest,
		Representation: resourcesync.Representation{Type: resourcesync.MediaTypeXML}}
}
