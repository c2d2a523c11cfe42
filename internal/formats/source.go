package formats

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// Source is a file to read, with options.
type Source struct {
	Path  string    // "-" is Stdin
	Stdin io.Reader // default os.Stdin
	Name  string    // of the document, for messages; default Path, or "standard input"

	Format  *Format  // default: the one of Formats for the ending of Path
	From    bool     // a flag --from gives it
	Formats Registry // the formats of the program
	To      *Format  // in which the document will be written; nil: a map is needed

	ContentType string // as in xtm.Options

	// Base is the locator that the document is read on. The default is its file
	// URL, and that of the current folder for Stdin.
	Base tmdm.Locator
	// Root is the folder below which the files that mergeMap names are opened.
	// The default is the folder of the document, the current one for Stdin.
	Root string
	// Unmerged, if not nil, is called for each document that mergeMap names
	// instead of opening it.
	Unmerged func(tmdm.Locator)
	// Alone refuses documents with mergeMap.
	Alone   bool
	MaxSize int64 // bytes of all that is read, unpacked; default DefaultMaxSize

	Collection  string                 // as in ReadOptions
	Asked       url.Values             // as in ReadOptions
	Lenient     bool                   // as in xtm.Options
	DropClashes bool                   // as in xtm.Options
	Limits      xtm.Limits             // as in xtm.Options
	Tolerated   func(*xtm.SyntaxError) // as in xtm.Options
	Problem     func(*xtm.SyntaxError) // as in xtm.Options

	// ForXTM refuses content that XTM cannot represent.
	ForXTM bool

	// Looked, if not nil, is called for each file, including those that mergeMap names, with its data before it was
	// opened; nil if it is missing.
	Looked func(path string, info fs.FileInfo)

	Progress func(read, size int64) // receives the progress of reading; nil: none. A size of 0 is unknown
}

// Document is a topic map that was read.
type Document struct {
	Name    string // of the file, for messages
	Base    tmdm.Locator
	Version xtm.Version // of XTM; that of documents merged in may be another. "" for other formats
	Format  *Format     // in which it was read
	Map     *tmdm.TopicMap
	Copy    Copy // in place of Map, if Source.To needs none. The reader of the document closes it

	Tolerated xtm.Tally // violations of rules, and omitted parts
}

// Syntax names the format of the document, with its version.
func (d *Document) Syntax() string {
	if d.Version != "" {
		return "XTM " + string(d.Version)
	}
	return d.Format.Title
}

// Stdin is the name of standard input in messages.
const Stdin = "standard input"

// Read reads the document, until ctx ends.
func (s Source) Read(ctx context.Context) (*Document, error) {
	d := &Document{Name: cmp.Or(s.Name, s.Path), Base: s.Base}
	var r io.Reader
	var size int64
	if s.Path == "-" {
		d.Name = cmp.Or(s.Name, Stdin)
		if r = s.Stdin; r == nil {
			r = os.Stdin
		}
	} else {
		f, n, err := Open(s.Path, s.looked)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		r, size = f, n
	}
	r = UntilDone(ctx, r)
	if d.Base == "" {
		base, err := s.place()
		if err != nil {
			return nil, err
		}
		d.Base = base
	}
	if s.Progress != nil {
		r = &reporting{Reader: r, size: size, report: s.Progress}
	}
	err := s.read(ctx, d, r)
	if err != nil && ctx.Err() == nil && !errors.As(err, new(*fs.PathError)) {
		err = &cli.ExitError{Code: cli.BrokenInput, Err: err}
	}
	return d, err
}

// Remedy returns the advice for a file that cannot be read, or whose document cannot.
func Remedy(path string, err error) string {
	if errors.As(err, new(*fs.PathError)) {
		return "put the file there, so that this program can read it, or name another one"
	}
	return fmt.Sprintf(`mend it; "tmshare-client validate %s" lists all that is wrong`, path)
}

// place returns the default base of a document. That of standard input is the folder in which the shell would look for
// its file.
func (s Source) place() (tmdm.Locator, error) {
	if s.Path != "-" {
		return FileURL(s.Path)
	}
	here, err := FileURL(".")
	return tmdm.Locator(strings.TrimSuffix(string(here), "/") + "/"), err
}

func (s Source) read(ctx context.Context, d *Document, r io.Reader) (err error) {
	in := &input{max: s.MaxSize}
	if in.max <= 0 {
		in.max = DefaultMaxSize
	}
	in.left = in.max
	content, err := in.unpack(r)
	if err != nil {
		return &InputError{d.Name, err}
	}
	o := xtm.Options{
		Base: d.Base, URI: d.Name, ReadAs: s.readAs, ContentType: s.ContentType, Lenient: s.Lenient,
		DropClashes: s.DropClashes,
		Limits:      s.Limits,
		Tolerated:   s.tolerated(d), Problem: s.Problem, FoundVersion: func(v xtm.Version) { d.Version = v },
	}
	switch {
	case s.Unmerged != nil:
		o.Loader = s.unmerged
	case !s.Alone:
		dir := "."
		if s.Path != "-" {
			dir = filepath.Dir(s.Path)
		}
		var f *folder
		if f, err = openFolder(s.Root, dir, d.Base, in, s.looked); err != nil {
			return err
		}
		defer f.root.Close()
		o.Loader, o.Tolerated, o.Problem = f.load, f.renaming(o.Tolerated), f.renaming(o.Problem)
		defer func() {
			if refused, ok := errors.AsType[*xtm.SyntaxError](err); ok {
				f.rename(refused)
			}
		}()
	}
	d.Format = s.format()
	reading := ReadOptions{Options: o, Collection: s.Collection, Asked: s.Asked}
	if straight := s.straight(d.Format); straight != nil {
		d.Copy, err = straight(ctx, content, reading)
	} else {
		d.Map, err = d.Format.Read(ctx, content, reading)
	}
	var tooLarge *TooLargeError
	switch {
	case errors.As(err, &tooLarge):
		return fmt.Errorf("%s: %w", d.Name, tooLarge)
	case content.err != nil: // which the reader of the format may take for the end of the document
		return &InputError{d.Name, content.err}
	case err == nil && s.ForXTM && d.Version == "":
		if err = xtm.Check(d.Map); err != nil {
			return fmt.Errorf("%s: %w. It has to be written in XTM, too: change this, or take it out", d.Name, err)
		}
	}
	return err
}

// readAs returns the advice to read a document in the format with a title, or a prefix of it.
func (s Source) readAs(title string) string {
	readable := s.Formats.Readable()
	i := slices.IndexFunc(readable, func(f *Format) bool { return strings.HasPrefix(f.Title, title) })
	if i < 0 {
		return `convert it to XTM first, with "tmshare-client convert" for example`
	}
	switch f := readable[i]; {
	case s.Asked != nil:
		return SendAs + f.MediaType()
	case s.From:
		return "say --from " + f.Name + ", or give its name the ending " + f.Endings[0]
	default:
		return "give its name the ending " + f.Endings[0]
	}
}

// SendAs is the text of messages about a document in a request, before the media type.
const SendAs = "send it with the Content-Type "

// straight returns a function that reads a document without a map, nil if a map is needed.
func (s Source) straight(f *Format) Straight {
	if s.To == nil || f.Straight == nil {
		return nil
	}
	return f.Straight(s.To)
}

// tolerated counts the tolerated errors in a document.
func (s Source) tolerated(d *Document) func(*xtm.SyntaxError) {
	return func(e *xtm.SyntaxError) {
		if d.Tolerated.Add(e); s.Tolerated != nil {
			s.Tolerated(e)
		}
	}
}

// format returns the format of the ending of the file's name, if it can be read.
func (s Source) format() *Format {
	if s.Format != nil {
		return s.Format
	}
	if f, ok := s.Formats.OfFile(s.Path); ok && f.Read != nil {
		return f
	}
	return Default
}

func (s Source) looked(path string, info fs.FileInfo) {
	if s.Looked != nil {
		s.Looked(path, info)
	}
}

// unmerged replaces a document that mergeMap names and that is left out.
func (s Source) unmerged(l tmdm.Locator) (io.ReadCloser, error) {
	s.Unmerged(l)
	return io.NopCloser(strings.NewReader(`<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1"/>`)), nil
}
