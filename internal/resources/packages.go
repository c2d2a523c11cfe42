package resources

import (
	"bufio"
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

	seq  uint64                           // of the entry that was described last
	made [len(store.Forms)]rendered.Small // its record forms; empty where they are large
}

// of returns the bytes of a form of the topic that an entry shows. They are good until the next ones are asked for.
func (c *contents) of(e *store.Entry, f form) (io.Reader, error) {
	if made := &c.made[f.digest]; e.Seq == c.seq && made.Len() > 0 {
		return bytes.NewReader(made.Bytes()), nil
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
	buffered := bufio.NewWriterSize(c.file, 64<<10)
	if err := errors.Join(c.view.WriteRecord(buffered, e, f.version), buffered.Flush()); err != nil {
		return nil, err
	}
	if _, err := c.file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	return c.file, nil
}

// describe returns what a list of resources says of the record form of the last entry of a topic, however large that is.
func (c *contents) describe(e *store.Entry) (*store.RecordForm, error) {
	about := &store.RecordForm{}
	c.seq = e.Seq
	for i, version := range store.Forms {
		made := &c.made[i]
		made.Reset()
		err := c.view.WriteRecord(made, e, version)
		if err == nil {
			about.Digests = append(about.Digests, rendered.DigestOf(made.Bytes()))
			continue
		}
		if !errors.Is(err, rendered.ErrLarge) {
			return nil, err
		}
		made.Reset()
		d := rendered.NewDigester()
		if err := c.view.WriteRecord(d, e, version); err != nil {
			return nil, err
		}
		about.Digests = append(about.Digests, d.Digest())
	}
	return about, nil
}

func (c *contents) close() {
	if c.file != nil {
		c.file.Close()
	}
}
