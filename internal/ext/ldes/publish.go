package ldes

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"net/http"
	"slices"
	"strconv"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/ext/rdf/mapping"
	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/rdf"
	"github.com/tmshare/tmshare/internal/rdf/jsonld"
	"github.com/tmshare/tmshare/internal/rdf/turtle"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/server/addresses"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
)

// A stream is the change log in another form: its members are the versions of topics, one for each entry of the log,
// and its pages are the documents of the log. The root links to all pages by time. A closed page keeps its address. The
// latest versions are a stream of their own, with the last member of each topic.

// forms are the notations of documents; the first is the default.
var forms = []web.Form{
	web.NewForm(".ttl", "text/turtle"), web.NewForm(".trig", "application/trig"),
	web.NewForm(".nq", "application/n-quads", "application/n-triples"), web.NewForm(".jsonld", "application/ld+json"),
}

var writers = []func(w io.Writer, g []rdf.Quad, at string) error{
	inDefault(turtle.Write), writeTriG, writeQuads, inDefault(jsonld.Write),
}

type publisher struct {
	*server.Server
	times timelines
}

// stream is a stream of a collection.
type stream struct {
	root   string // its URL
	latest bool   // of the latest versions alone
}

func serve(s *server.Server) (*server.Part, error) {
	p := &publisher{Server: s}
	all := func(c *store.Collection) stream { return stream{p.URLs.Map(c) + "/ldes", false} }
	latest := func(c *store.Collection) stream { return stream{p.URLs.Map(c) + "/ldes/latest", true} }
	return &server.Part{
		Routes: func(get func(string, web.Handler)) {
			for at, streamOf := range map[string]func(*store.Collection) stream{"/ldes": all, "/ldes/latest": latest} {
				at, ending := "/topicmaps/{map}"+at, web.WithEndings(forms)
				get(at+ending, s.Waiting(p.answers(streamOf, p.rootOf)))
				get(at+"/archive/{history:[0-9a-f-]{36}}-{n:"+addresses.SeqPattern+"}"+ending, p.answers(streamOf, p.pageOf))
			}
		},
		Links: func(c *store.Collection) []feeds.Link {
			if c == nil {
				return nil
			}
			return []feeds.Link{{Rel: treeView, Href: all(c).root}}
		},
		FeedLinks: func(c *store.Collection) []feeds.Link {
			return []feeds.Link{{Rel: treeView, Type: forms[0].MediaType, Href: all(c).root}}
		},
	}, nil
}

// document is a document of a stream, with the data to make it.
type document struct {
	cache, state string
	at           string // its address
	make         func() (graph, error)
}

// answers makes a handler that answers with a document of a stream. A document that was made lately is not made again.
func (p *publisher) answers(streamOf func(*store.Collection) stream,
	find func(http.ResponseWriter, *http.Request, *store.View, stream) (*document, error)) web.Handler {
	return p.Viewed(func(w http.ResponseWriter, r *http.Request, v *store.View) error {
		s := streamOf(&v.Collection)
		d, err := find(w, r, v, s)
		if d == nil || err != nil {
			return err
		}
		i, err := web.Choose(w, r, forms)
		if err != nil {
			return err
		}
		if !s.latest { // the links of a collection lead to the other stream
			p.AddPartLinks(w.Header(), &v.Collection)
		}
		tag := p.StateTag(r, d.state+forms[i].Ending)
		return p.Answers.WriteBytes(w, r, tag, d.cache, func() ([]byte, error) {
			g, err := d.make()
			if err != nil {
				return nil, err
			}
			var b bytes.Buffer
			err = writers[i](&b, g, d.at)
			return b.Bytes(), err
		})
	})
}

// rootOf returns the root of a stream: its description, and links to its pages.
func (p *publisher) rootOf(_ http.ResponseWriter, _ *http.Request, v *store.View, s stream) (*document, error) {
	return &document{server.CacheShortly, server.StateOf(&v.Collection), s.root, func() (graph, error) {
		times, err := p.times.timeline(v)
		if err != nil {
			return nil, err
		}
		g, c := s.head(), &v.Collection
		name, root := s.name(), rdf.NewIRI(s.root)
		g.say(name, nsDCT+"title", rdf.NewLiteral(server.Title(c), ""))
		g.say(name, string(feeds.RelPrefix), rdf.NewIRI(c.SP))
		g.say(name, string(feeds.RelHistory), rdf.NewIRI(c.Epoch.URN()))
		g.say(name, timestampPath, rdf.NewIRI(published))
		g.say(name, versionOfPath, rdf.NewIRI(isVersionOf))
		g.say(name, createObject, rdf.NewIRI(created))
		g.say(name, updateObject, rdf.NewIRI(updated))
		g.say(name, deleteObject, rdf.NewIRI(deleted))
		g.say(name, treeShape, rdf.NewBlank("shape")) // an empty shape: readers leave out members that do not fit
		g.say(rdf.NewBlank("shape"), rdf.Type, rdf.NewIRI(nsSH+"NodeShape"))
		s.retains(&g, p.Retention(c))
		for n := uint64(1); n <= v.OpenDocument(); n++ {
			if !times.has[n-1] {
				continue
			}
			page, err := addresses.Archive(v, s.root, n)
			if err != nil {
				return nil, err
			}
			g.relation(root, page, notBefore, times.from(v, n))
			if n < v.OpenDocument() {
				g.relation(root, page, before, times.from(v, n+1))
			}
		}
		return g, nil
	}}, nil
}

// pageOf returns a page of a stream.
func (p *publisher) pageOf(w http.ResponseWriter, r *http.Request, v *store.View, s stream) (*document, error) {
	n, err := server.AskedDocument(w, r, &v.Collection, v, s.root)
	if n == 0 || err != nil {
		return nil, err
	}
	at, err := addresses.Archive(v, s.root, n)
	if err != nil {
		return nil, err
	}
	made := func() (graph, error) { return p.page(v, s, n) }
	d := &document{server.CacheShortly, server.StateOf(&v.Collection), at, made}
	if n == v.OpenDocument() || s.latest {
		return d, nil
	}
	kept := false
	for e, err := range entriesOf(v, n) {
		if kept = true; err != nil || v.ShowsNow(&e) || e.Seq <= v.Horizon { // members go once they are superseded
			return d, err
		}
		if v.Replica == nil {
			break
		}
	}
	d.cache, d.state = server.CacheForEver, fmt.Sprint("closed", kept)
	return d, nil
}

// entriesOf iterates over the entries of a document of the log that are kept.
func entriesOf(v *store.View, n uint64) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		first, size := v.Document(n)
		for e, err := range v.Kept(first) {
			if err == nil && e.Seq >= first+size || !yield(e, err) {
				return
			}
		}
	}
}

// page has the members of a document of the log.
func (p *publisher) page(v *store.View, s stream, n uint64) (graph, error) {
	times, err := p.times.timeline(v)
	if err != nil {
		return nil, err
	}
	g, at := s.head(), times.before[n-1]
	for e, err := range entriesOf(v, n) {
		if err != nil {
			return nil, err
		}
		at.add(e.Seq, e.Updated)
		if s.latest || v.ShowsNow(&e) { // the content before a later entry is not stored
			last, err := v.LastOf(e.TopicSI)
			if err != nil {
				return nil, err
			}
			if last.Seq != e.Seq {
				continue
			}
		}
		if err := g.member(p, v, s.name(), &e, at); err != nil && !errors.Is(err, store.ErrGone) {
			return nil, err
		}
	}
	return g, nil
}

// graph has the statements of a document.
type graph []rdf.Quad

func (g *graph) say(s rdf.Term, property string, o rdf.Term) {
	*g = append(*g, rdf.Quad{Subject: s, Predicate: rdf.NewIRI(property), Object: o})
}

func (s stream) name() rdf.Term { return rdf.NewIRI(s.root + streamFragment) }

// head returns the statements that assign a document to its stream.
func (s stream) head() (g graph) {
	g.say(s.name(), rdf.Type, rdf.NewIRI(eventStream))
	g.say(s.name(), treeView, rdf.NewIRI(s.root))
	g.say(rdf.NewIRI(s.root), rdf.Type, rdf.NewIRI(nsTREE+"Node"))
	return g
}

// relation adds a relation: the members of a page are before or after a time.
func (g *graph) relation(root rdf.Term, page, kind, time string) {
	node := rdf.NewBlank(fmt.Sprintf("r%d", len(*g)))
	g.say(root, treeRelation, node)
	g.say(node, rdf.Type, rdf.NewIRI(kind))
	g.say(node, treeNode, rdf.NewIRI(page))
	g.say(node, treePath, rdf.NewIRI(published))
	g.say(node, treeValue, rdf.NewLiteral(time, xsdDateTime))
}

// retains adds the retention policy if not all members are kept: the last member of each topic is kept, even a
// deletion.
func (s stream) retains(g *graph, keep store.Retention) {
	if !s.latest && keep == (store.Retention{}) {
		return
	}
	policy := rdf.NewBlank("retention")
	g.say(rdf.NewIRI(s.root), retention, policy)
	g.say(policy, rdf.Type, rdf.NewIRI(nsLDES+"RetentionPolicy"))
	g.say(policy, versionAmount, rdf.NewLiteral("1", xsdInteger))
	if keep.Entries == 0 && !s.latest {
		seconds := strconv.FormatInt(int64(math.Floor(keep.For.Seconds())), 10)
		g.say(policy, fullLog, rdf.NewLiteral("PT"+seconds+"S", xsdDuration))
	}
}

// member adds the statements of an entry about its resource, as statements about a version of it. Statements about
// blank nodes are in the members of the resources that refer to them.
func (g *graph) member(p *publisher, v *store.View, stream rdf.Term, e *store.Entry, at lead) error {
	if mapping.IsBlank(e.TopicSI) {
		return nil
	}
	id, resource := rdf.NewIRI(p.URLs.Fragment(&v.Collection, e)), rdf.NewIRI(iri.FromLocator(string(e.TopicSI)))
	was := len(*g)
	kind := updated
	switch {
	case !e.Lives():
		kind = deleted
	case !e.Modified:
		kind = created
	}
	g.say(stream, treeMember, id)
	g.say(id, rdf.Type, rdf.NewIRI(kind))
	g.say(id, isVersionOf, resource)
	g.say(id, published, rdf.NewLiteral(at.time(e.Seq), xsdDateTime))
	if kind == deleted {
		return nil
	}
	then, _, err := v.Shown(e)
	if err == nil {
		own := func(t rdf.Term) rdf.Term { // two versions of a node have one label
			if t.Kind == rdf.Blank {
				t.Value = fmt.Sprintf("v%d_%s", e.Seq, t.Value)
			}
			return t
		}
		err = mapping.NewRecords(v.SP, func(q rdf.Quad) error {
			switch {
			case q.Subject == resource && isOfStream(q): // about the member, it would have another meaning
				q.Graph = id
			case q.Subject == resource:
				q.Subject = id
			}
			q.Subject, q.Object = own(q.Subject), own(q.Object)
			*g = append(*g, q)
			return nil
		}).Resource(then, e.TopicSI)
	}
	if err != nil {
		*g = slices.Delete(*g, was, len(*g))
	}
	return err
}

// isOfStream reports whether readers would take a statement about a member for one of the stream.
func isOfStream(q rdf.Quad) bool {
	switch q.Predicate.Value {
	case isVersionOf, published:
		return true
	case rdf.Type:
		return q.Object.Value == created || q.Object.Value == updated || q.Object.Value == deleted
	}
	return false
}

// counted returns the statements of a document, preceded by their number.
func counted(all []rdf.Quad, at string) []rdf.Quad {
	distinct := map[rdf.Quad]bool{}
	for _, q := range all {
		distinct[q] = true
	}
	n := rdf.NewLiteral(strconv.Itoa(len(distinct)+1), xsdInteger)
	return append([]rdf.Quad{{Subject: rdf.NewIRI(at), Predicate: rdf.NewIRI(statementsOf), Object: n}}, all...)
}

func isNamed(q rdf.Quad) bool { return q.Graph.Kind != rdf.None }

// inDefault removes the statements in named graphs, for notations without graphs.
func inDefault(write func(io.Writer, []rdf.Quad) error) func(io.Writer, []rdf.Quad, string) error {
	return func(w io.Writer, all []rdf.Quad, at string) error {
		return write(w, counted(slices.DeleteFunc(slices.Clone(all), isNamed), at))
	}
}

func writeTriG(w io.Writer, all []rdf.Quad, at string) error {
	all = counted(all, at)
	err := turtle.Write(w, slices.DeleteFunc(slices.Clone(all), isNamed))
	for _, q := range all {
		if q.Graph.Kind != rdf.None && err == nil {
			to := turtle.NewOrdered(w, rdf.UsedPrefixes(nil), nil)
			err = errors.Join(to.Write(q), to.Close())
		}
	}
	return err
}

func writeQuads(w io.Writer, all []rdf.Quad, at string) error {
	to := turtle.NewLineWriter(w)
	for _, q := range counted(all, at) {
		if err := to.Write(q); err != nil {
			return err
		}
	}
	return to.Close()
}
