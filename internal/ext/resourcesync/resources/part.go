package resources

import (
	"io"

	"github.com/tmshare/tmshare/feeds/resourcesync"
	"github.com/tmshare/tmshare/internal/store"
)

// Part is a closed change list, and the package of the Change Dump with the same changes.
type Part struct {
	ChangeList
	Package Package

	group group
}

// Names of files of a part.
const (
	changeListFile     = "changelist.xml"
	changePackageFile  = "changedump" + packageEnding
	changeManifestFile = "changedump" + manifestEnding
)

// buildPart makes the files of a closed change list as a draft. Its entries must all be
// there still.
func buildPart(d *draft, site *Site, v *store.View, list ChangeList) (*Part, error) {
	defer d.end()
	part := &Part{ChangeList: list, group: group{name: d.name}}
	document, err := d.document(changeListFile, site.changeList(list), resourcesync.Options{})
	if err != nil {
		return nil, err
	}
	pack, err := d.packaging(changePackageFile, changeManifestFile, site.changes(resourcesync.ChangeDumpManifest, list),
		resourcesync.PackageOptions{})
	if err != nil {
		return nil, err
	}
	defer pack.manifest.Close()
	bytes := &contents{view: v, draft: d}
	defer bytes.close()
	for e, err := range v.Entries(list.First) {
		if err == nil {
			err = d.ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		if e.Seq > list.Last {
			break
		}
		about, err := RecordFormOf(v, &e)
		if err == nil && e.Lives() && len(about.Digests) == 0 { // it is large
			about, err = bytes.describe(&e)
		}
		if err != nil {
			return nil, err
		}
		item := site.listed(&v.Collection, &e, about)
		if err := document.Write(&item); err != nil {
			return nil, err
		}
		if err := addChange(pack, site, &e, about, bytes); err != nil {
			return nil, err
		}
	}
	if err := document.Close(); err != nil {
		return nil, err
	}
	if part.Package, err = pack.Close(); err != nil {
		return nil, err
	}
	part.group.made, err = d.finish(part)
	return part, err
}

// addChange adds a change with the resource after it to a package.
func addChange(pack *packaging, site *Site, e *store.Entry, about *RecordForm, bytes *contents) error {
	c := &bytes.view.Collection
	item := site.change(c, e, about)
	if !e.Lives() {
		return pack.Add(item, nil)
	}
	return pack.add(item, formsOf(c, e), func(f form) (io.Reader, error) { return bytes.read(e, f) })
}
