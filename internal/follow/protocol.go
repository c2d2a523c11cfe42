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

// Protocol is a way to learn of the changes of a source of records. Its functions are called by several goroutines.
type Protocol struct {
	Name string // unique; subscriptions keep it

	// Segment is the segment of the path by which a URL shows that what is there is followed by this protocol; "": none.
	Segment string

	// Rel is the relation of a link by which feeds lead to what is followed; "": they do not, and Find finds it.
	Rel feeds.Rel
	// Find finds what is followed, from any URL of its server. It is a [*ChoiceError] where there are several.
	Find func(ctx context.Context, r *Access, url string) (*Found, error)

	// Format is the name of the format in which records are read, if that is exchanged otherwise than XTM; "": XTM.
	Format string

	// Open returns what reads the source. If it is an [io.Closer], it is closed in the end.
	Open func(*Access) (Source, error)
}

// Found is what can be followed.
type Found struct {
	URL     string
	Prefix  string // the ServerSrcLocatorPrefix that it declares, "" for none
	Current string // where the map as of now is, "" where nothing leads there
}

// Access is what a protocol reads with.
type Access struct {
	Fetcher *fetch.Fetcher
	URL     string       // of what is followed
	Feed    feeds.Limits // of a feed document
	MaxDocs int          // in one look; 0: as many as the protocol takes by default
	Scratch Scratch

	Temp        string // a folder for packages, which stays until the source is read to its end
	MaxResource int64  // bytes of one in a package
	MaxPackage  int64  // bytes of one

	// Subjects says that a resource may be about a subject whose identifiers the source states.
	Subjects bool
	Prefix   string // the ServerSrcLocatorPrefix that was subscribed to
	// Check compares what declares a prefix, or "", with that.
	Check func(prefix, at string) error

	Documents   func(n int)             // shows how many documents are read
	Downloading func(done, total int64) // shows how many bytes of a package are fetched
	Report      func(line string)       // is told what is not as it should be but does no harm
	Tolerated   func(*xtm.SyntaxError)  // is told what documents say that is left out; may be nil
}

// ProtocolNamed returns the protocol of a name, nil where there is none.
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

// Shows reports whether a URL shows that what is there is followed by this protocol.
func (p *Protocol) Shows(ref string) bool {
	u, err := url.Parse(ref)
	return err == nil && p.Segment != "" && slices.Contains(strings.Split(u.Path, "/"), p.Segment)
}

// ChoiceError says that a URL offers several collections, or one that nothing has led to.
type ChoiceError struct {
	URL         string
	Collections []Offer
}

// Offer is a collection that can be followed.
type Offer struct {
	Title string `json:"title"` // "" where nothing says it
	URL   string `json:"url"`
}

// Outcome returns the exit code of a command whose URL is not one that can be followed.
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
