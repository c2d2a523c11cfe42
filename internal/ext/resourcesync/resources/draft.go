package resources

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash"
	"io"
	"os"
	"slices"

	"github.com/klauspost/compress/gzip"

	"github.com/tmshare/tmshare/feeds/resourcesync"
	"github.com/tmshare/tmshare/internal/store/files"
)

// draft is a group of files in the making: their names begin with its own. The notes are written last,
// and a group without notes does not show.
type draft struct {
	ctx      context.Context
	files    files.Store
	scratch  string // a folder for temporary files
	name     string // with a slash
	open     []*measured
	made     made
	finished bool
}

func (d *draft) create(name string) (*measured, error) {
	w, err := d.files.Create(d.ctx, d.name+name)
	if err != nil {
		return nil, err
	}
	m := &measured{Writer: w, name: name, hash: sha256.New()}
	d.open = append(d.open, m)
	return m, nil
}

// measured is a file in a draft whose length and hash are recorded.
type measured struct {
	files.Writer
	name   string
	hash   hash.Hash
	length int64
}

func (m *measured) Write(p []byte) (int, error) {
	n, err := m.Writer.Write(p)
	m.hash.Write(p[:n])
	m.length += int64(n)
	return n, err
}

// done closes a finished file, so that few are open at a time.
func (d *draft) done(w *measured) error {
	d.open = slices.DeleteFunc(d.open, func(open *measured) bool { return open == w })
	if d.made == nil {
		d.made = made{}
	}
	d.made[w.name] = content{w.length, hex.EncodeToString(w.hash.Sum(nil))}
	return w.Commit()
}

// finish writes the notes: about, and the content of each file. The files are visible from then on.
func (d *draft) finish(about any) (made, error) {
	n := noted{Files: d.made}
	var err error
	if n.About, err = json.Marshal(about); err != nil {
		return nil, err
	}
	if n.SHA256, err = n.sum(); err != nil {
		return nil, err
	}
	w, err := d.create(notes)
	if err != nil {
		return nil, err
	}
	if err := json.NewEncoder(w).Encode(&n); err != nil {
		return nil, err
	}
	if err := d.done(w); err != nil {
		return nil, err
	}
	d.finished = true
	return n.Files, nil
}

// end gives up a draft that is not finished.
func (d *draft) end() {
	for _, w := range d.open {
		w.Cancel()
	}
	if !d.finished {
		_ = files.RemoveAll(context.WithoutCancel(d.ctx), d.files, d.name) // remaining files have no notes
	}
}

// packedEnding is added to the name of a document for its gzipped copy.
const packedEnding = ".gz"

// packed is a gzipped file in a draft.
type packed struct {
	*gzip.Writer
	buffer *bufio.Writer
	file   *measured
}

func (d *draft) packed(name string) (*packed, error) {
	w, err := d.create(name + packedEnding)
	if err != nil {
		return nil, err
	}
	p := &packed{buffer: bufio.NewWriterSize(w, 64<<10), file: w}
	p.Writer, err = gzip.NewWriterLevel(p.buffer, gzip.BestSpeed)
	return p, err
}

// end completes the file.
func (p *packed) end(d *draft) error {
	if err := errors.Join(p.Close(), p.buffer.Flush()); err != nil {
		return err
	}
	return d.done(p.file)
}

// document is a document in a draft, as it is and gzipped.
type document struct {
	*resourcesync.Writer
	draft  *draft
	plain  *measured
	packed *packed
}

func (d *draft) document(name string, head resourcesync.Document, o resourcesync.Options) (*document, error) {
	doc := &document{draft: d}
	var err error
	if doc.plain, err = d.create(name); err != nil {
		return nil, err
	}
	if doc.packed, err = d.packed(name); err != nil {
		return nil, err
	}
	doc.Writer, err = resourcesync.NewWriter(io.MultiWriter(doc.plain, doc.packed), head, o)
	return doc, err
}

func (d *document) Close() error {
	if err := d.Writer.Close(); err != nil {
		return err
	}
	return errors.Join(d.draft.done(d.plain), d.packed.end(d.draft))
}

// copied copies a temporary file to a file and its gzipped copy.
func (d *draft) copied(f *os.File, name string) error {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	plain, err := d.create(name)
	if err != nil {
		return err
	}
	packed, err := d.packed(name)
	if err != nil {
		return err
	}
	if _, err := io.Copy(io.MultiWriter(plain, packed), f); err != nil {
		return err
	}
	return errors.Join(d.done(plain), packed.end(d))
}
