package resources

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/gzip"

	"github.com/tmshare/tmshare/feeds/resourcesync"
	"github.com/tmshare/tmshare/internal/durable"
)

// draft is a folder in the making. It shows under its name when it is complete and on
// disk: what a crash leaves has another.
type draft struct {
	path string
	open []*os.File
}

const (
	unfinished = ".tmp"     // ends the names of drafts
	notes      = "set.json" // what is noted of a folder; written last
)

func begin(path string) (*draft, error) {
	d := &draft{path: path}
	if err := os.RemoveAll(path + unfinished); err != nil {
		return nil, err
	}
	return d, os.MkdirAll(path+unfinished, 0o700)
}

func (d *draft) create(name string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(d.path+unfinished, name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		d.open = append(d.open, f)
	}
	return f, err
}

// finish notes about what all files together are, and shows the folder.
func (d *draft) finish(about any) error {
	b, err := json.Marshal(about)
	if err != nil {
		return err
	}
	f, err := d.create(notes)
	if err != nil {
		return err
	}
	if _, err := f.Write(b); err != nil {
		return err
	}
	for _, f := range d.open {
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return err
		}
	}
	d.open = nil
	if err := durable.SyncFolder(d.path + unfinished); err != nil {
		return err
	}
	if err := os.RemoveAll(d.path); err != nil { // one whose notes cannot be read
		return err
	}
	if err := os.Rename(d.path+unfinished, d.path); err != nil {
		return err
	}
	return durable.SyncFolder(filepath.Dir(d.path))
}

// end closes what is open. A draft that is not finished is gone then.
func (d *draft) end() {
	for _, f := range d.open {
		f.Close()
	}
	os.RemoveAll(d.path + unfinished)
}

// done closes a file that will not be written any more, so that few are open at a time.
func (d *draft) done(f *os.File) error {
	for i := range d.open {
		if d.open[i] == f {
			d.open = append(d.open[:i], d.open[i+1:]...)
			break
		}
	}
	return errors.Join(f.Sync(), f.Close())
}

// packedEnding is added to the name of a document for its gzipped copy.
const packedEnding = ".gz"

// document is a document in a draft, as it is and gzipped.
type document struct {
	*resourcesync.Writer
	draft  *draft
	plain  *os.File
	packed *os.File
	zip    *gzip.Writer
	buffer *bufio.Writer
}

func (d *draft) document(name string, head resourcesync.Document, o resourcesync.Options) (*document, error) {
	doc := &document{draft: d}
	var err error
	if doc.plain, err = d.create(name); err != nil {
		return nil, err
	}
	if doc.packed, err = d.create(name + packedEnding); err != nil {
		return nil, err
	}
	doc.buffer = bufio.NewWriterSize(doc.packed, 64<<10)
	if doc.zip, err = gzip.NewWriterLevel(doc.buffer, gzip.BestSpeed); err != nil {
		return nil, err
	}
	doc.Writer, err = resourcesync.NewWriter(io.MultiWriter(doc.plain, doc.zip), head, o)
	return doc, err
}

func (d *document) Close() error {
	if err := errors.Join(d.Writer.Close(), d.zip.Close(), d.buffer.Flush()); err != nil {
		return err
	}
	return errors.Join(d.draft.done(d.plain), d.draft.done(d.packed))
}

// pack writes the gzipped copy of a file that is complete.
func (d *draft) pack(f *os.File, name string) error {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	to, err := d.create(name + packedEnding)
	if err != nil {
		return err
	}
	z, err := gzip.NewWriterLevel(to, gzip.BestSpeed)
	if err != nil {
		return err
	}
	if _, err := io.Copy(z, f); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	return d.done(to)
}

// readNotes reads what is noted of a folder into about.
func readNotes(path string, about any) error {
	b, err := os.ReadFile(filepath.Join(path, notes))
	if err != nil {
		return err
	}
	return json.Unmarshal(b, about)
}

func isDraft(name string) bool { return strings.HasSuffix(name, unfinished) }
