package follow

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/xtm"
)

// Protocol is a protocol for changes of a source of records. Its functions are safe for concurrent use.
type Protocol struct {
	Name string // unique; subscriptions keep it

	// Segment is the path segment of URLs that are followed by this protocol; "": none.
	Segment string

	// Rel is the relation of links from feeds to the followed document, a feed; "": none, and Find finds it.
	Rel feeds.Rel
	// Find finds the document to follow from any URL of its server. With several, the error is a [*ChoiceError]. It is
	// nil if feeds lead there.
	Find func(ctx context.Context, r *Access, url string) (*Found, error)

	// Format is the name of the format in which records are read, if that is exchanged otherwise than XTM; "": XTM.
	Format string

	// Open returns a reader of the source. If it is an [io.Closer], the caller closes it.
	Open func(*Access) (Source, error)
}

// Found is a source that can be followed.
type Found struct {
	URL     string
	Prefix  string // the declared ServerSrcLocatorPrefix, "" for none
	Current string // URL of the present map, "" if unknown
}

// Access holds the means by which a protocol reads.
type Access struct {
	Fetcher *fetch.Fetcher
	URL     string       // of the followed document
	Feed    feeds.Limits // of a feed document
	MaxDocs int          // in one look; 0: as many as the protocol takes by default
	Scratch Scratch

	Temp        string // a folder for packages, which stays until the source is read to its end
	MaxResource int64  // bytes of one in a package
	MaxPackage  int64  // bytes of one

	// Subjects states that a resource may be about a subject whose identifiers the source states.
	Subjects bool
	Prefix   string // the ServerSrcLocatorPrefix that was subscribed to
	// Check compares a declared prefix, or "", with the expected one.
	Check func(prefix, at string) error

	Documents   func(n int)             // shows the number of documents read
	Downloading func(done, total int64) // shows the number of bytes fetched of a package
	Report      func(line string)       // receives harmless problems
	Tolerated   func(*xtm.SyntaxError)  // receives the errors in documents that were skipped; may be nil
}

// ProtocolNamed returns the protocol with a name; nil if there is none.
func ProtocolNamed(all []Protocol, name string) *Protocol {
	for i := range all {
		if all[i].Name == name {
			return &all[i]
		}
	}
	return nil
}

// Use opens a source, and closes it after f.
func (p *Protocol) Use(r *Access, f func(Source) error) error {
	source, err := p.Open(r)
	if err != nil {
		return err
	}
	err = f(source)
	if c, ok := source.(io.Closer); ok {
		err = errors.Join(err, c.Close())
	}
	return err
}

// Shows reports whether a URL shows that it is followed by this protocol.
func (p *Protocol) Shows(ref string) bool {
	u, err := url.Parse(ref)
	return err == nil && p.Segment != "" && slices.Contains(strings.Split(u.Path, "/"), p.Segment)
}

// ChoiceError is the error for a URL with several collections, or with one that it does not lead to.
type ChoiceError struct {
	URL         string
	Collections []Offer
}

// Offer is a collection that can be followed.
type Offer struct {
	Title string `json:"title"` // "" if not stated
	URL   string `json:"url"`
}

// Outcome returns the exit code of a command whose URL cannot be followed.
func (e *ChoiceError) Outcome() int { return cli.Usage }

func (e *ChoiceError) Error() string {
	var b strings.Builder
	if len(e.Collections) == 1 {
		fmt.Fprintf(&b, "%s belongs to no set of resources that is known; its server has this one:", e.URL)
	} else {
		fmt.Fprintf(&b, "%s offers %d collections; take one of these:", e.URL, len(e.Collections))
	}
	for _, o := range e.Collections {
		fmt.Fprintf(&b, "\n  %s", o.URL)
		if o.Title != "" {
			fmt.Fprintf(&b, "  (%s)", o.Title)
		}
	}
	return b.String()
}
