package resources

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"

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
	open     []files.Writer
	finished bool
}

// notes is the name of the file that has what is noted of a group.
const notes = "set.json"

func (d *draft) create(name string) (files.Writer, error) {
	w, err := d.files.Create(d.ctx, d.name+name)
	if err == nil {
		d.open = append(d.open, w)
	}
	return w, err
}

// done ends a file that will not be written any more, so that few are open at a time.
func (d *draft) done(w files.Writer) error {
	for i := range d.open {
		if d.open[i] == w {
			d.open = append(d.open[:i], d.open[i+1:]...)
			break
		}
	}
	return w.Commit()
}

// finish notes about what all files together are. They show from then on.
func (d *draft) finish(about any) error {
	w, err := d.create(notes)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(w).Encode(about); err != nil {
		return err
	}
	if err := d.done(w); err != nil {
		return err
	}
	d.finished = true
	return nil
}

// end gives up a draft that is not finished.
func (d *draft) end() {
	for _, w := range d.open {
		w.Cancel()
	}
	if !d.finished {
		_ = files.RemoveAll(context.WithoutCancel(d.ctx), d.files, d.name) // what stays has no notes
	}
}

// packedEnding is added to the name of a document for its gzipped copy.
const packedEnding = ".gz"

// packed is a gzipped file in a draft.
type packed struct {
	*gzip.Writer
	buffer *bufio.Writer
	file   files.Writer
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
	plain  files.Writer
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

// copied writes what is in a temporary file to a file, and to its gzipped copy.
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

// readNotes reads what is noted of a group into about. ok is false where that cannot be read.
func readNotes(ctx context.Context, from files.Store, group string, about any) (ok bool, err error) {
	f, err := from.Open(ctx, group+notes)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	content, err := io.ReadAll(f)
	if err != nil {
		return false, err
	}
	return json.Unmarshal(content, about) == nil, nil
}
