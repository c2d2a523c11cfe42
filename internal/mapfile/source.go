package mapfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// Source says which file to read and how.
type Source struct {
	Path  string    // "-" is Stdin
	Stdin io.Reader // default os.Stdin

	// Base is the locator that the document is read on. The default is its file
	// URL, and that of the current folder for Stdin.
	Base tmdm.Locator
	// Root is the folder below which the files that mergeMap names are opened.
	// The default is the folder of the document, the current one for Stdin.
	Root string
	// Unmerged, if not nil, is called for each document that mergeMap names
	// instead of opening it.
	Unmerged func(tmdm.Locator)
	MaxSize  int64 // bytes of all that is read, unpacked; default DefaultMaxSize

	Lenient bool                   // as in xtm.Options
	Dropped func(*xtm.SyntaxError) // as in xtm.Options
	Problem func(*xtm.SyntaxError) // as in xtm.Options

	Progress io.Writer // where to say how far a long document is read; nil: nowhere
}

// Document is a topic map that was read.
type Document struct {
	Name    string // of the file, for messages
	Base    tmdm.Locator
	Version xtm.Version // of its syntax; that of documents merged in may be another
	Map     *tmdm.TopicMap
}

// Stdin is the name of standard input in messages.
const Stdin = "standard input"

// Read reads the document.
func (s Source) Read() (*Document, error) {
	d := &Document{Name: s.Path, Base: s.Base}
	var r io.Reader
	var size int64
	if s.Path == "-" {
		d.Name = Stdin
		if r = s.Stdin; r == nil {
			r = os.Stdin
		}
	} else {
		f, n, err := openFile(s.Path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		r, size = f, n
	}
	if d.Base == "" {
		base, err := s.place()
		if err != nil {
			return nil, err
		}
		d.Base = base
	}
	if s.Progress != nil {
		p := &progress{r: r, out: s.Progress, name: d.Name, size: size}
		defer p.done()
		r = p
	}
	return d, s.read(d, r)
}

// place returns the base of a document for which none is given. That of
// standard input is the folder in which the shell would look for its file.
func (s Source) place() (tmdm.Locator, error) {
	if s.Path != "-" {
		return FileURL(s.Path)
	}
	here, err := FileURL(".")
	return tmdm.Locator(strings.TrimSuffix(string(here), "/") + "/"), err
}

func (s Source) read(d *Document, r io.Reader) error {
	in := &input{max: s.MaxSize}
	if in.max <= 0 {
		in.max = DefaultMaxSize
	}
	in.left = in.max
	content, err := in.unpack(r)
	if err != nil {
		return fmt.Errorf("mapfile: %s: %w", d.Name, err)
	}
	o := xtm.Options{Base: d.Base, URI: d.Name, Lenient: s.Lenient, Dropped: s.Dropped, Problem: s.Problem}
	if o.Loader = s.unmerged; s.Unmerged == nil {
		dir := "."
		if s.Path != "-" {
			dir = filepath.Dir(s.Path)
		}
		f, err := openFolder(s.Root, dir, d.Base, in)
		if err != nil {
			return err
		}
		defer f.root.Close()
		o.Loader = f.load
	}
	v := newVersionOf(content, o)
	d.Map, err = xtm.Read(v, o)
	d.Version = v.end()
	var tooLarge *TooLargeError
	if errors.As(err, &tooLarge) {
		return fmt.Errorf("mapfile: %s: %w", d.Name, tooLarge)
	}
	return err
}

// unmerged stands for a document that mergeMap names and that is left out.
func (s Source) unmerged(l tmdm.Locator) (io.ReadCloser, error) {
	s.Unmerged(l)
	return io.NopCloser(strings.NewReader(`<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1"/>`)), nil
}
