package ldes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/tmshare/tmshare/feeds/resourcesync"
	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/internal/rdf"
	"github.com/tmshare/tmshare/internal/rdf/jsonld"
	"github.com/tmshare/tmshare/internal/rdf/rdfxml"
	"github.com/tmshare/tmshare/internal/rdf/turtle"
)

// accept is the Accept header for a document of a stream, in the order of parsing cost.
const accept = "application/n-quads, application/trig;q=0.9, application/n-triples;q=0.8, text/turtle;q=0.8, " +
	"application/ld+json;q=0.6, application/rdf+xml;q=0.5, */*;q=0.1"

// read is a document of a stream that was read.
type read struct {
	*fetch.Answer
	statements []rdf.Quad
	by         map[rdf.Term][]int // the statements of a subject in the default graph, by their places
	named      map[string][]int   // those of a graph with the name of an IRI
	pointed    []string           // the views that a page in another format names
	other      bool               // it is in no notation of RDF
}

// documents fetches documents.
type documents struct {
	fetcher *fetch.Fetcher
	most    int64 // bytes of one
	// tolerated gets the syntax errors that were skipped; it may be nil
	tolerated func(*rdf.SyntaxError)
	root      bool // the document must exist
}

// fetch fetches a document. If its ETag equals the given one, it returns the answer alone. A document that is gone has
// no statements, because streams give up pages so.
func (d *documents) fetch(ctx context.Context, at, etag string) (*read, error) {
	r := fetch.Request{URL: at, Accept: accept, ETag: etag, Max: cmp.Or(d.most, 256<<20),
		Within: d.fetcher.MaxTime}
	if !d.root {
		r.Also = []int{http.StatusGone}
	}
	got, a, err := fetch.Do(ctx, d.fetcher, r, func(a *fetch.Answer) (*read, error) {
		doc := &read{by: map[rdf.Term][]int{}, named: map[string][]int{}}
		if a.Status == http.StatusGone {
			return doc, nil
		}
		err := parse(a.Body, a, doc.add, d.tolerated)
		if errors.Is(err, errOther) {
			doc.pointed = resourcesync.LinksInHeader(a.Header.Values("Link"), a.URL, treeView)
			doc.other, err = true, nil
		}
		if err == nil {
			err = doc.isWhole(a.URL)
		}
		if errors.As(err, new(*rdf.SyntaxError)) {
			err = fetch.Permanent(err)
		}
		return doc, err
	})
	if err != nil {
		return nil, err
	}
	if got == nil {
		got = &read{}
	}
	got.Answer = a
	return got, nil
}

// isWhole returns an error if a document has another number of statements than it states: it was cut in transit, which
// line-based notations do not show.
func (d *read) isWhole(at string) error {
	stated := d.first(rdf.NewIRI(at), statementsOf).Value
	if n, err := strconv.Atoi(stated); err == nil {
		distinct := map[rdf.Quad]bool{}
		for _, q := range d.statements {
			distinct[q] = true
		}
		if len(distinct) != n {
			return fmt.Errorf("%s: the document has %d statements and states that it has %d: it was cut on its way", at,
				len(distinct), n)
		}
	}
	return nil
}

// isPage returns an error for a document that is no page of a stream, such as one of a cache or a page to sign in.
func (d *read) isPage(at string) error {
	switch {
	case d.NotModified || d.Status == http.StatusGone:
		return nil
	case d.other:
		return fmt.Errorf("%s: this is no page of an event stream, as it is in no notation of RDF (%s)", at,
			cmp.Or(d.ContentType, "of no media type"))
	case len(d.statements) == 0:
		return fmt.Errorf("%s: the page of the event stream is empty, not even its address is in it", at)
	}
	return nil
}

// errOther is the error for a document in no notation of RDF.
var errOther = errors.New("ldes: no notation of RDF")

func parse(body io.Reader, a *fetch.Answer, add func(rdf.Quad) error, left func(*rdf.SyntaxError)) error {
	base, _, _ := mime.ParseMediaType(a.ContentType)
	o := turtle.Options{URI: a.URL, Tolerated: left}
	switch base {
	case "application/n-quads":
		return turtle.Read(body, turtle.NQuads, o, add)
	case "application/n-triples", "text/plain":
		return turtle.Read(body, turtle.NTriples, o, add)
	case "application/trig":
		return turtle.Read(body, turtle.TriG, o, add)
	case "text/turtle", "text/n3", "application/x-turtle":
		return turtle.Read(body, turtle.Turtle, o, add)
	case "application/ld+json", "application/json":
		return jsonld.Read(body, jsonld.Options{URI: a.URL, Tolerated: left}, add)
	case "application/rdf+xml":
		return rdfxml.Read(body, rdfxml.Options{URI: a.URL, ContentType: a.ContentType, Tolerated: left}, add)
	}
	return errOther
}

func (d *read) add(q rdf.Quad) error {
	switch at := len(d.statements); q.Graph.Kind {
	case rdf.None:
		d.by[q.Subject] = append(d.by[q.Subject], at)
	case rdf.IRI:
		d.named[q.Graph.Value] = append(d.named[q.Graph.Value], at)
		if q.Subject == q.Graph { // a member with its statements in its own graph
			d.by[q.Subject] = append(d.by[q.Subject], at)
		}
	default:
		return nil
	}
	d.statements = append(d.statements, q)
	return nil
}

// objects returns the objects of the statements with a subject and a property.
func (d *read) objects(s rdf.Term, property string) (found []rdf.Term) {
	for _, at := range d.by[s] {
		if d.statements[at].Predicate.Value == property {
			found = append(found, d.statements[at].Object)
		}
	}
	return found
}

// first returns the first value of a property; the zero term if there is none.
func (d *read) first(s rdf.Term, property string) rdf.Term {
	if found := d.objects(s, property); len(found) > 0 {
		return found[0]
	}
	return rdf.Term{}
}

// path is a property path of SHACL: a sequence of properties. An empty path is invalid.
type path []string

// pathAt returns the path that a term represents. It supports sequences only, and returns nil for other paths.
func (d *read) pathAt(t rdf.Term) (p path) {
	for depth := 0; t.Kind == rdf.Blank && depth < 100; depth++ {
		step := d.first(t, rdf.First)
		if step.Kind != rdf.IRI {
			return nil
		}
		p, t = append(p, step.Value), d.first(t, rdf.Rest)
	}
	switch {
	case t.Kind == rdf.IRI && t.Value != rdf.Nil && p == nil:
		return path{t.Value}
	case t.Value == rdf.Nil:
		return p
	}
	return nil
}

// at returns the values of a path.
func (d *read) at(s rdf.Term, p path) (found []rdf.Term) {
	if len(p) == 0 {
		return nil
	}
	found = []rdf.Term{s}
	for _, property := range p {
		var next []rdf.Term
		for _, t := range found {
			next = append(next, d.objects(t, property)...)
		}
		found = next
	}
	return found
}

// subjects returns the subjects of the statements with a property, in their order.
func (d *read) subjects(property string) (found []rdf.Term) {
	for i := range d.statements {
		q := &d.statements[i]
		if q.Predicate.Value == property && q.Graph.Kind == rdf.None && !slices.Contains(found, q.Subject) {
			found = append(found, q.Subject)
		}
	}
	return found
}

// page returns the address of a document without its fragment.
func page(address string) string {
	at, _, _ := strings.Cut(address, "#")
	return at
}

// noStream returns the error for a document without a stream.
func (d *read) noStream() error {
	return fmt.Errorf("%s: this is no event stream: there is no tree:view, no tree:relation and no tree:member in it (%s)",
		d.URL, cmp.Or(d.ContentType, "of no media type"))
}
