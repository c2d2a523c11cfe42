package publish

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"

	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// Reader reads documents to be published. It is safe for concurrent use.
type Reader struct {
	MaxSize int64            // bytes of an unpacked document, with the maps that it merges in
	Lenient bool             // as in xtm.Options
	Limits  xtm.Limits       // as in xtm.Options
	Formats formats.Registry // the formats of the program
	Logger  *slog.Logger
}

// TooLarge refuses a document by its size. name is that of the document.
func (d *Reader) TooLarge(name string) error {
	return tooLarge(fmt.Sprintf("%s: larger than %d bytes, unpacked", name, d.MaxSize))
}

func tooLarge(what string) error {
	return txn.Refuse(http.StatusRequestEntityTooLarge,
		"%s, which is the limit; publish it in parts, or raise the limit of the server (--max-body)", what)
}

// Read reads a document in a format, gzipped or not, on a source locator prefix as its base, until ctx ends. Nothing is
// merged into it. What breaks the rules and is tolerated is logged and counted.
func (d *Reader) Read(ctx context.Context, r io.Reader, f *formats.Format, name,
	sp string) (*tmdm.TopicMap, *xtm.Tally, error) {
	return d.readAlone(ctx, formats.Source{Path: "-", Stdin: r, Name: name, Format: f}, sp)
}

// ReadTyped is Read of a document with a Content-Type, which determines its format and its charset. asked has the
// options for reading it. Errors in the document are a *[DocumentError].
func (d *Reader) ReadTyped(ctx context.Context, r io.Reader, contentType string, asked url.Values, name,
	sp string) (*tmdm.TopicMap, *xtm.Tally, error) {
	tm, tolerated, err := d.readAlone(ctx, formats.Source{Path: "-", Stdin: r, Name: name,
		Format: d.Formats.ToRead(contentType), ContentType: contentType, Asked: asked}, sp)
	if err != nil && ctx.Err() == nil {
		err = &DocumentError{err}
	}
	return tm, tolerated, err
}

// DocumentError is the error of an unreadable document.
type DocumentError struct{ error }

func (e *DocumentError) Unwrap() error { return e.error }

func (d *Reader) readAlone(ctx context.Context, src formats.Source, sp string) (*tmdm.TopicMap, *xtm.Tally, error) {
	tolerated := &xtm.Tally{}
	src.Alone = true
	tm, err := d.from(ctx, src, src.Name, sp, tolerated)
	if err != nil {
		return nil, nil, err
	}
	d.logTolerated(tolerated)
	return tm, tolerated, nil
}

// IsExchanged reports whether a file is in a format that is exchanged otherwise than XTM, by the ending of its name.
func (d *Reader) IsExchanged(file string) bool {
	f, ok := d.Formats.OfFile(file)
	return ok && f.Exchange != nil
}

// fileRead is the result of reading a file.
type fileRead struct {
	tm        *tmdm.TopicMap
	tolerated xtm.Tally // violated rules of content that was read nevertheless
	seen      looks     // the states of the file and of those that it merges in, before they were opened
	content   digests   // of them
}

// readFile reads a local file, and files that it merges in from the folder root ("": its own). The files that it has
// looked at are returned even with an error.
func (d *Reader) readFile(ctx context.Context, w *Watched, sp string) (*fileRead, error) {
	f := &fileRead{seen: looks{}}
	var err error
	f.tm, err = d.from(ctx, formats.Source{
		Path: w.File, Root: w.Root, Collection: w.Collection, Looked: func(path string, info fs.FileInfo) {
			f.seen[path] = info
		},
	}, w.File, sp, &f.tolerated)
	if err == nil {
		f.content, err = f.seen.read(ctx)
	}
	return f, err
}

func (d *Reader) from(ctx context.Context, src formats.Source, name, sp string,
	tolerated *xtm.Tally) (*tmdm.TopicMap, error) {
	src.MaxSize, src.Base, src.Tolerated = d.MaxSize, tmdm.Locator(sp), tolerated.Add
	src.Formats, src.Lenient, src.Limits, src.DropClashes, src.ForXTM = d.Formats, d.Lenient, d.Limits, true, true
	document, err := src.Read(ctx)
	var large *formats.TooLargeError
	switch {
	case errors.As(err, &large):
		return nil, d.TooLarge(name)
	case errors.Is(err, xtm.ErrMemory):
		return nil, tooLarge(err.Error())
	case err != nil:
		return nil, err
	}
	tallyVariants(document.Map, name, tolerated)
	return document.Map, nil
}

// tallyVariants counts the variants that are not published (see [fragment.Topic.Canonical]). Where they stand is not
// known: it may be that two topics of their scopes have become one.
func tallyVariants(tm *tmdm.TopicMap, name string, tolerated *xtm.Tally) {
	for t := range tm.Topics() {
		for _, n := range t.Names() {
			for _, v := range n.Variants() {
				if n.Scope().Contains(v.Scope()) {
					tolerated.Add(&xtm.SyntaxError{URI: name, Line: 1, Column: 1, Rule: xtm.VariantScopes,
						Reason: "of the " + tmdm.Describe(v)})
				}
			}
		}
	}
}

func (d *Reader) logTolerated(t *xtm.Tally) {
	for _, c := range t.Counts() {
		d.Logger.Warn(c.Warning(), "file", c.First.URI, "line", c.First.Line, "column", c.First.Column)
	}
}

// First reads the first version of a collection from its file.
func (d *Reader) First(ctx context.Context, w *Watched, sp string) (*tmdm.TopicMap, error) {
	file, err := d.readFile(ctx, w, sp)
	if w.was, w.content = file.seen, file.content; err == nil {
		d.logTolerated(&file.tolerated)
	}
	return file.tm, err
}
