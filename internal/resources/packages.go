package resources

import (
	"bytes"
	"errors"
	"io"
	"os"

	"github.com/tmshare/tmshare/feeds/resourcesync"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/files"
	"github.com/tmshare/tmshare/internal/store/rendered"
)

// Package is what a dump says of a package.
type Package struct {
	resourcesync.Representation
	Items int // in its manifest
}

// packaging is a package in a draft, and the copy of its manifest.
type packaging struct {
	*resourcesync.PackageWriter
	draft    *draft
	zip      files.Writer
	manifest *os.File // temporary
	name     string   // of the copy
	fixity   *resourcesync.Fixity
}

func (d *draft) packaging(name, manifest string, head resourcesync.Document, o resourcesync.PackageOptions) (*packaging, error) {
	p := &packaging{draft: d, name: manifest, fixity: resourcesync.NewFixity()}
	var err error
	if p.zip, err = d.create(name); err != nil {
		return nil, err
	}
	if p.manifest, err = d.temporary(); err != nil {
		return nil, err
	}
	p.PackageWriter, err = resourcesync.NewPackageWriter(io.MultiWriter(p.zip, p.fixity), p.manifest, head, o)
	if err == nil {
		p.PackFast()
	}
	return p, err
}

func (p *packaging) Close() (Package, error) {
	defer p.manifest.Close()
	about := Package{Items: p.Items()}
	if err := p.PackageWriter.Close(); err != nil {
		return about, err
	}
	p.fixity.Describe(&about.Representation)
	about.Type = resourcesync.MediaTypeZIP
	return about, errors.Join(p.draft.copied(p.manifest, p.name), p.draft.done(p.zip))
}

// add puts a topic into the package in all forms in which it is offered: the one that is
// served to those who ask for none as the item's own, the others as its alternates. content
// returns the bytes of a form.
func (p *packaging) add(item resourcesync.Item, offered []form, content func(form) (io.Reader, error)) error {
	item.Links = append([]resourcesync.Link(nil), item.Links...)
	for i := range item.Links {
		l := &item.Links[i]
		for _, f := range offered[1:] {
			if l.Rel != resourcesync.RelAlternate || l.Href != item.Loc+f.ending {
				continue
			}
			bytes, err := content(f)
			if err != nil {
				return err
			}
			if err := p.AddLinked(l, bytes); err != nil {
				return err
			}
		}
	}
	bytes, err := content(offered[0])
	if err != nil {
		return err
	}
	return p.Add(item, bytes)
}

// contents gives out the bytes of topics.
type contents struct {
	view  *store.View
	draft *draft
	file  *os.File // for large ones, one at a time
}

// of returns the bytes of a form of the topic that an entry is the last of: as they are
// stored, or as they are now. They are good until the next ones are asked for.
func (c *contents) of(e *store.Entry, f form) (io.Reader, error) {
	if e.RecordStored() {
		stored, err := c.view.StoredRecord(e, f.version)
		if err != nil {
			return nil, err
		}
		plain, err := stored.Plain()
		return bytes.NewReader(plain), err
	}
	if c.file == nil {
		file, err := c.draft.temporary()
		if err != nil {
			return nil, err
		}
		c.file = file
	}
	if err := c.file.Truncate(0); err != nil {
		return nil, err
	}
	if _, err := c.file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	if err := c.view.RenderRecord(c.file, e, f.version); err != nil {
		return nil, err
	}
	if _, err := c.file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	return c.file, nil
}

// describe gives an entry the digests of its record, where that is stored without them, or is not stored. In the
// latter case it is the last of its key: until the next entry it is always rendered to the same bytes.
func (c *contents) describe(e *store.Entry) error {
	if e.RecordStored() {
		return c.view.Describe(e)
	}
	if !e.Lives() {
		return nil
	}
	e.Digests = make([]rendered.Digest, len(store.Forms))
	for i, version := range store.Forms {
		d := rendered.NewDigester()
		if err := c.view.RenderRecord(d, e, version); err != nil {
			return err
		}
		e.Digests[i] = d.Digest()
	}
	return nil
}

func (c *contents) close() {
	if c.file != nil {
		c.file.Close()
	}
}
