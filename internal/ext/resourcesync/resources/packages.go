package resources

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"

	"github.com/tmshare/tmshare/feeds/resourcesync"
	"github.com/tmshare/tmshare/internal/durable"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/rendered"
)

// Package describes a package in a dump.
type Package struct {
	resourcesync.Representation
	Items int // in its manifest
}

// packaging is a package in a draft, and the copy of its manifest.
type packaging struct {
	*resourcesync.PackageWriter
	draft    *draft
	zip      *measured
	manifest *os.File // temporary
	name     string   // of the copy
	fixity   *resourcesync.Fixity
}

func (d *draft) packaging(name, manifest string, head resourcesync.Document,
	o resourcesync.PackageOptions) (*packaging, error) {
	p := &packaging{draft: d, name: manifest, fixity: resourcesync.NewFixity()}
	var err error
	if p.zip, err = d.create(name); err != nil {
		return nil, err
	}
	if p.manifest, err = durable.Temporary(d.scratch); err != nil {
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

// add puts a topic into the package in all offered forms: the default one as the item's own, the others as its
// alternates. content returns the bytes of a form.
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

	seq   uint64                           // of the last requested entry
	small [len(store.Forms)]rendered.Small // its record forms
	large [len(store.Forms)]bool           // they are not in memory
}

// read returns a form of the topic of an entry. The result is valid until the next call.
func (c *contents) read(e *store.Entry, f form) (io.Reader, error) {
	small, err := c.inMemory(e, f.digest)
	if small != nil || err != nil {
		return bytes.NewReader(small), err
	}
	if c.file == nil {
		file, err := durable.Temporary(c.draft.scratch)
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

// inMemory returns the bytes of a form, nil where it is large.
func (c *contents) inMemory(e *store.Entry, form int) ([]byte, error) {
	if e.Seq != c.seq {
		c.seq, c.large = e.Seq, [len(store.Forms)]bool{}
		for i := range c.small {
			c.small[i].Reset()
		}
	}
	small, large := &c.small[form], &c.large[form]
	if small.Len() == 0 && !*large {
		err := c.view.WriteRecord(small, e, store.Forms[form])
		if *large = errors.Is(err, rendered.ErrLarge); err != nil && !*large {
			return nil, err
		}
	}
	if *large {
		return nil, nil
	}
	return small.Bytes(), nil
}

// describe returns the description of the record form of a live entry for stored lists, at any size.
func (c *contents) describe(e *store.Entry) (*RecordForm, error) {
	about := &RecordForm{}
	for i, version := range store.Forms {
		small, err := c.inMemory(e, i)
		if err != nil {
			return nil, err
		}
		if small != nil {
			about.Digests = append(about.Digests, rendered.DigestOf(small))
			continue
		}
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
