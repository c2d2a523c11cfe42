package resources

import (
	"errors"
	"io"

	"github.com/tmshare/tmshare/feeds/resourcesync"
	"github.com/tmshare/tmshare/internal/store"
)

// Part is a closed change list, and the package of the Change Dump with the same changes.
type Part struct {
	store.ChangeList
	Package Package

	group string // of files: what their names begin with
}

// Names of files of a part.
const (
	changeListFile     = "changelist.xml"
	changePackageFile  = "changedump" + packageEnding
	changeManifestFile = "changedump" + manifestEnding
)

// buildPart makes the files of a closed change list as a draft. Its entries must all be
// there still.
func buildPart(d *draft, site *Site, v *store.View, list store.ChangeList) (*Part, error) {
	defer d.end()
	part := &Part{ChangeList: list, group: d.name}
	document, err := d.document(changeListFile, site.changeList(list), resourcesync.Options{})
	if err != nil {
		return nil, err
	}
	pack, err := d.packaging(changePackageFile, changeManifestFile, site.changes(resourcesync.ChangeDumpManifest, list), resourcesync.PackageOptions{})
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
		last, err := v.LastOf(e.TopicSI)
		if err != nil {
			return nil, err
		}
		if e.RecordStored() || last != nil && last.Seq == e.Seq {
			if err := bytes.describe(&e); err != nil {
				return nil, err
			}
		}
		item := site.listed(&v.Collection, &e)
		if err := document.Write(&item); err != nil {
			return nil, err
		}
		if err := addChange(pack, site, v, &e, bytes); err != nil {
			return nil, err
		}
	}
	if err := document.Close(); err != nil {
		return nil, err
	}
	if part.Package, err = pack.Close(); err != nil {
		return nil, err
	}
	return part, d.finish(part)
}

// addChange puts a change into a package, with what the resource was after it. Where that
// was too large to be kept, it is what the resource became later; where it was deleted
// before that, nothing is available, and a deletion follows.
func addChange(pack *packaging, site *Site, v *store.View, e *store.Entry, bytes *contents) error {
	item := site.change(&v.Collection, e)
	if !e.Lives() {
		return pack.Add(item, nil)
	}
	source, err := laterContent(v, e)
	if err != nil || source == nil {
		return err
	}
	offered := formsOf(&v.Collection, e)
	return pack.add(item, offered, func(f form) (io.Reader, error) { return bytes.of(source, f) })
}

// laterContent returns the entry whose content is available for e: e itself, or the first
// after it, or the last of its key if that lives; or nil.
func laterContent(v *store.View, e *store.Entry) (*store.Entry, error) {
	if e.RecordStored() {
		return e, nil
	}
	last, err := v.LastOf(e.TopicSI)
	if err != nil || last == nil {
		return nil, err
	}
	var found *store.Entry
	if last.Lives() {
		found = last
	}
	for at := last; at.Seq > e.Seq; {
		if at.RecordStored() && at.Lives() {
			found = at
		}
		if at.Prior <= e.Seq {
			break
		}
		before, err := v.Entry(at.Prior)
		if errors.Is(err, store.ErrGone) {
			break
		}
		if err != nil {
			return nil, err
		}
		at = before
	}
	return found, nil
}
