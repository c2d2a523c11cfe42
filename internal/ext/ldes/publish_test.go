package ldes_test

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/rdf"
	"github.com/tmshare/tmshare/internal/rdf/jsonld"
	"github.com/tmshare/tmshare/internal/rdf/turtle"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testkit/served"
)

const (
	ldes        = "https://w3id.org/ldes#"
	tree        = "https://w3id.org/tree#"
	as          = "https://www.w3.org/ns/activitystreams#"
	isVersionOf = "http://purl.org/dc/terms/isVersionOf"
	e           = "http://example.org/"
)

// statements are those of a document.
type statements []rdf.Quad

// objects returns the objects of a subject and a property, in the default graph.
func (all statements) objects(s rdf.Term, property string) (found []rdf.Term) {
	for _, q := range all {
		if q.Subject == s && q.Predicate.Value == property && q.Graph.Kind == rdf.None {
			found = append(found, q.Object)
		}
	}
	return found
}

func (all statements) object(t testing.TB, s rdf.Term, property string) rdf.Term {
	t.Helper()
	found := all.objects(s, property)
	require.Len(t, found, 1, "%s of %s", property, s.Value)
	return found[0]
}

// areCounted requires that a document states the number of its statements: a cut shows.
func (all statements) areCounted(t testing.TB, at string) {
	t.Helper()
	distinct := map[rdf.Quad]bool{}
	for _, q := range all {
		distinct[q] = true
	}
	require.Equal(t, strconv.Itoa(len(distinct)), all.object(t, rdf.NewIRI(at), string(feeds.NamespaceOwn)+"/statements").Value)
}

// site is a server with a collection m.
type site struct{ *served.Node }

func start(t testing.TB, configure ...func(*server.Config)) site {
	t.Helper()
	n := site{served.Start(t, configure...)}
	require.Equal(t, http.StatusCreated, n.PutSettings("m", `{"rdf":true}`).StatusCode)
	return n
}

// put publishes a graph in Turtle.
func (n site) put(body string, headers ...string) {
	n.T.Helper()

	a := n.Put("m", []byte(prefixes+body), append(headers, "Content-Type", "text/turtle", "TMShare-Max-Delete", "1000")...)
	require.Contains(n.T, []int{http.StatusOK, http.StatusCreated}, a.StatusCode, "%s", a.Bytes)
}

// read reads a document, in the notation that it is in.
func (n site) read(url string, headers ...string) (statements, served.Answer) {
	n.T.Helper()
	a := n.MustGet(url, headers...)
	return n.parse(url, a), a
}

func (n site) parse(url string, a served.Answer) (all statements) {
	n.T.Helper()
	add := func(q rdf.Quad) error { all = append(all, q); return nil }
	var err error
	switch body := bytes.NewReader(a.Bytes); a.MediaType() {
	case "text/turtle":
		err = turtle.Read(body, turtle.Turtle, turtle.Options{URI: url}, add)
	case "application/trig":
		err = turtle.Read(body, turtle.TriG, turtle.Options{URI: url}, add)
	case "application/n-quads":
		err = turtle.Read(body, turtle.NQuads, turtle.Options{URI: url}, add)
	case "application/ld+json":
		err = jsonld.Read(body, jsonld.Options{URI: url}, add)
	default:
		n.T.Fatalf("%s is %s", url, a.MediaType())
	}
	require.NoError(n.T, err, "%s", a.Bytes)
	return all
}

// member is a version as a stream has it.
type member struct {
	id, resource, class, at string
	says                    statements // with the resource as their subject
}

// walk reads a stream from its root, and holds its pages to their relations.
func (n site) walk(path, ending string) (all []member, pages map[string]served.Answer) {
	t := n.T
	t.Helper()
	root, pages := n.URL(path), map[string]served.Answer{}
	g, a := n.read(root + ending)
	g.areCounted(t, root)
	require.Contains(t, a.Header.Get("Cache-Control"), "max-age=5")
	var stream rdf.Term
	views := 0
	for _, q := range g {
		if q.Predicate.Value == tree+"view" {
			stream, views = q.Subject, views+1
			require.Equal(t, root, q.Object.Value)
		}
	}
	require.Equal(t, 1, views, "readers take the first view that they find")
	require.Equal(t, ldes+"EventStream", g.object(t, stream, rdf.Type).Value)
	timestamp := g.object(t, stream, ldes+"timestampPath").Value
	require.Equal(t, isVersionOf, g.object(t, stream, ldes+"versionOfPath").Value)
	bounds := map[string]map[string]string{} // by page and kind
	for _, r := range g.objects(rdf.NewIRI(root), tree+"relation") {
		page := g.object(t, r, tree+"node").Value
		if bounds[page] == nil {
			bounds[page] = map[string]string{}
		}
		bounds[page][strings.TrimPrefix(g.object(t, r, rdf.Type).Value, tree)] = g.object(t, r, tree+"value").Value
		require.Equal(t, timestamp, g.object(t, r, tree+"path").Value)
	}
	open := 0
	for page, bound := range bounds {
		g, a := n.read(page + ending)
		g.areCounted(t, page)
		pages[page] = a
		low, high := bound["GreaterThanOrEqualToRelation"], bound["LessThanRelation"]
		require.NotEmpty(t, low)
		if high == "" {
			open++
			require.NotContains(t, a.Header.Get("Cache-Control"), "immutable")
			high = "9"
		}
		for _, id := range g.objects(stream, tree+"member") {
			m := member{id: id.Value, resource: g.object(t, id, isVersionOf).Value, at: g.object(t, id, timestamp).Value}
			require.LessOrEqual(t, low, m.at)
			require.Less(t, m.at, high)
			m.says, m.class = n.versionIn(g, id, rdf.NewIRI(m.resource), timestamp)
			all = append(all, m)
		}
	}
	if len(bounds) > 0 {
		require.Equal(t, 1, open)
	}
	slices.SortFunc(all, func(a, b member) int { return cmp.Compare(a.at, b.at) })
	for i := 1; i < len(all); i++ {
		require.Less(t, all[i-1].at, all[i].at, "times strictly increase")
	}
	for _, m := range all {
		at, err := time.Parse("2006-01-02T15:04:05.000Z", m.at)
		require.NoError(t, err)
		require.Equal(t, at.Truncate(time.Millisecond), at)
	}
	return all, pages
}

// versionIn returns the statements of a member about its resource, with its blank nodes.
func (n site) versionIn(g statements, id, resource rdf.Term, timestamp string) (says statements, class string) {
	seen := map[rdf.Term]bool{id: true}
	for queue := []rdf.Term{id}; len(queue) > 0; queue = queue[1:] {
		for _, q := range g {
			if q.Subject != queue[0] && (q.Graph != id || queue[0] != id) {
				continue
			}
			switch {
			case q.Graph == id:
				q.Graph = rdf.Term{}
			case q.Subject == id && (q.Predicate.Value == isVersionOf || q.Predicate.Value == timestamp):
				continue
			case q.Subject == id && q.Predicate.Value == rdf.Type && strings.HasPrefix(q.Object.Value, as):
				class = strings.TrimPrefix(q.Object.Value, as)
				continue
			}
			if q.Subject == id {
				q.Subject = resource
			}
			if q.Object.Kind == rdf.Blank && !seen[q.Object] {
				seen[q.Object] = true
				queue = append(queue, q.Object)
			}
			says = append(says, q)
		}
	}
	return says, class
}

// logged returns the entries of the log, as a stream is to have them: id, resource and class of each member.
func (n site) logged(latest bool) (all []string) {
	n.T.Helper()
	require.NoError(n.T, n.Store.View(n.T.Context(), "m", func(v *store.View) error {
		for e, err := range v.Kept(1) {
			require.NoError(n.T, err)
			class := "Update"
			switch {
			case !e.Lives():
				class = "Delete"
			case !e.Modified:
				class = "Create"
			}
			if last, err := v.LastOf(e.TopicSI); (latest || v.ShowsNow(&e)) && (err != nil || last.Seq != e.Seq) {
				continue // its statements are not known any more
			}
			if !strings.Contains(string(e.TopicSI), "/.well-known/genid/") {
				all = append(all, fmt.Sprint(n.URLs.Fragment(&v.Collection, &e), " ", e.TopicSI, " ", class))
			}
		}
		return nil
	}))
	return all
}

func listed(all []member) (lines []string) {
	for _, m := range all {
		lines = append(lines, fmt.Sprint(m.id, " ", m.resource, " ", m.class))
	}
	return lines
}

// concepts is a scheme of so many concepts, all with a name.
func concepts(n int, name string) string {
	var b strings.Builder
	b.WriteString(":s a skos:ConceptScheme .\n")
	for i := range n {
		fmt.Fprintf(&b, ":c%d a skos:Concept ; skos:inScheme :s ; skos:prefLabel \"%s %d\"@en .\n", i, name, i)
	}
	return b.String()
}

var endings = []string{"", ".ttl", ".trig", ".nq", ".jsonld"}

// A stream has the log: a member for each entry, with the statements of its fragment in RDF. Deletions are members
// too.
func TestAStreamHasTheLog(t *testing.T) {
	t.Parallel()
	n := start(t, served.DocumentSize(7))
	n.put(concepts(9, "one"))
	n.put(concepts(9, "two") + ":c0 :parts [ :in :c1 ; :and ( 1 2 ) ] .")
	n.put(concepts(4, "two") + ":c0 :parts [ :in :c1 ] .")
	n.put(concepts(9, "two"))
	for _, ending := range endings {
		all, pages := n.walk("/topicmaps/m/ldes", ending)
		require.Equal(t, n.logged(false), listed(all), ending)
		require.Greater(t, len(pages), 3)
		classes, deleted := map[string]int{}, map[string]bool{}
		for _, m := range all {
			classes[m.class]++
			if m.class == "Delete" {
				deleted[m.resource] = true
				require.Empty(t, m.says)
				continue
			}
			fragment := n.parse(m.id, n.MustGet(m.id+".ttl"))
			require.True(t, rdf.Isomorphic(fragment, m.says), "%s: %v, not %v", m.id, m.says, fragment)
		}
		require.True(t, deleted[e+"c4"] && deleted[e+"c8"])
		require.False(t, deleted[e+"c3"])
		require.Greater(t, classes["Create"], 9)
		require.Greater(t, classes["Update"], 9)
	}
}

// Values that are not of RDF go through the mapping. A collection without entries has a stream without pages.
func TestAllCollectionsHaveStreams(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.MustSet("m", `{"rdf":false}`)
	all, pages := n.walk("/topicmaps/m/ldes", "")
	require.Empty(t, all)
	require.Empty(t, pages)
	n.MustPut("m", served.Small())
	all, _ = n.walk("/topicmaps/m/ldes", "")
	require.Equal(t, n.logged(false), listed(all))
	a := n.MustGet("/topicmaps/m/ldes")
	require.Contains(t, a.Header.Values("Link"), "<"+n.URL("/topicmaps/m/ldes")+`>; rel="https://w3id.org/tree#view"`)
	require.Equal(t, []string{n.URL("/topicmaps/m/ldes")}, n.Feed("/topicmaps/m").Hrefs(tree+"view"))
	require.Equal(t, http.StatusNotFound, n.Get("/topicmaps/none/ldes").StatusCode)
	require.Equal(t, http.StatusNotAcceptable, n.Get("/topicmaps/m/ldes", "Accept", "application/json").StatusCode)
}

// A page is cached for ever once it is closed, at the address that it had while it was open, and is not made again for
// those who have it.
func TestClosedPagesAreImmutable(t *testing.T) {
	t.Parallel()
	n := start(t, served.DocumentSize(4))
	n.put(concepts(2, "one"))
	_, open := n.walk("/topicmaps/m/ldes", ".nq")
	n.put(concepts(9, "two"))
	_, pages := n.walk("/topicmaps/m/ldes", ".nq")
	immutable := 0
	for page, a := range pages {
		if strings.Contains(a.Header.Get("Cache-Control"), "immutable") {
			immutable++
			delete(open, page)
		}
		again := n.Get(page+".nq", "If-None-Match", a.Header.Get("ETag"))
		assert.Equal(t, http.StatusNotModified, again.StatusCode)
	}
	require.Equal(t, len(pages)-1, immutable)
	n.put(concepts(12, "three"))
	_, later := n.walk("/topicmaps/m/ldes", ".nq")
	for page, a := range pages {
		if strings.Contains(a.Header.Get("Cache-Control"), "immutable") {
			require.Equal(t, string(a.Bytes), string(later[page].Bytes), page)
		}
	}
	gone := n.Get("/topicmaps/m/ldes/archive/00000000-0000-0000-0000-000000000000-1")
	require.Equal(t, http.StatusGone, gone.StatusCode)
	require.Equal(t, http.StatusNotFound, n.Get(slices.Sorted(maps.Keys(pages))[0]+"99").StatusCode)
}

// Members of a burst are a millisecond apart, and time goes on behind them.
func TestTimesOfABurst(t *testing.T) {
	t.Parallel()
	clock := served.NewClock()
	n := start(t, served.DocumentSize(10), func(c *server.Config) { c.Now = clock.Now })
	n.put(concepts(30, "one"))
	n.put(concepts(30, "two"))
	all, _ := n.walk("/topicmaps/m/ldes", ".nq")
	require.Greater(t, len(all), 60)
	clock.Advance(time.Hour)
	n.put(concepts(30, "three"))
	later, _ := n.walk("/topicmaps/m/ldes", ".nq")
	for i, m := range all {
		require.Equal(t, m.at, later[i].at)
	}
}

// The view of the latest versions is the state, with the deleted resources.
func TestTheLatestVersions(t *testing.T) {
	t.Parallel()
	n := start(t, served.DocumentSize(5))
	n.put(concepts(9, "one"))
	n.put(concepts(6, "two") + ":c0 :parts [ :in :c1 ] .")
	for _, ending := range endings {
		all, _ := n.walk("/topicmaps/m/ldes/latest", ending)
		require.Equal(t, n.logged(true), listed(all))
		var says statements
		for i, m := range all {
			for _, q := range m.says {
				if q.Object.Value == served.Own+"/Topic" { // a whole graph has no need to say that it is there
					continue
				}
				for _, term := range []*rdf.Term{&q.Subject, &q.Object} {
					if term.Kind == rdf.Blank {
						term.Value += fmt.Sprint(i)
					}
				}
				says = append(says, q)
			}
		}
		current := n.MustGet("/topicmaps/m/snapshots/current.ttl")
		require.True(t, rdf.Isomorphic(n.parse("", current), says), "%s: %v", ending, says)
	}
	g, _ := n.read("/topicmaps/m/ldes/latest")
	policy := g.object(t, rdf.NewIRI(n.URL("/topicmaps/m/ldes/latest")), ldes+"retentionPolicy")
	require.Equal(t, "1", g.object(t, policy, ldes+"versionAmount").Value)
	g, _ = n.read("/topicmaps/m/ldes")
	require.Empty(t, g.objects(rdf.NewIRI(n.URL("/topicmaps/m/ldes")), ldes+"retentionPolicy"), "all is kept")
}

// A stream whose log is pruned announces it before, and keeps the last version of each topic.
func TestPrunedStreams(t *testing.T) {
	t.Parallel()
	n := start(t, served.DocumentSize(5))
	n.put(concepts(9, "one"))
	n.put(concepts(6, "two"))
	n.put(concepts(6, "three"))
	before, pages := n.walk("/topicmaps/m/ldes", ".nq")
	n.MustSet("m", `{"keepFor":"1ms"}`)
	root := rdf.NewIRI(n.URL("/topicmaps/m/ldes"))
	g, _ := n.read(root.Value)
	policy := g.object(t, root, ldes+"retentionPolicy")
	require.Equal(t, "1", g.object(t, policy, ldes+"versionAmount").Value)
	require.Equal(t, "PT0S", g.object(t, policy, ldes+"fullLogDuration").Value)
	require.Equal(t, http.StatusCreated, n.Post("/topicmaps/m/snapshots").StatusCode)
	n.put(concepts(6, "four"))
	require.Equal(t, http.StatusCreated, n.Post("/topicmaps/m/snapshots").StatusCode)
	require.Equal(t, http.StatusOK, n.Post("/topicmaps/m/gc").StatusCode)
	after, _ := n.walk("/topicmaps/m/ldes", ".nq")
	require.Equal(t, n.logged(false), listed(after))
	require.Less(t, len(after), len(before))
	kept := map[string]member{}
	for _, m := range before {
		kept[m.id] = m
	}
	living := map[string]bool{}
	for _, m := range after {
		if old, ok := kept[m.id]; ok {
			require.ElementsMatch(t, old.says, m.says)
		}
		living[m.resource] = m.class != "Delete"
	}
	require.True(t, living[e+"c5"])
	require.False(t, living[e+"c8"])
	n.put(concepts(3, "five") + concepts(6, "four")) // the kept version is superseded
	later, answers := n.walk("/topicmaps/m/ldes", ".nq")
	require.Equal(t, n.logged(false), listed(later))
	for _, m := range later {
		if old, ok := kept[m.id]; ok {
			require.ElementsMatch(t, old.says, m.says, "a member never changes")
		}
	}
	require.NotContains(t, answers[pageOf(t, after[0].id, answers)].Header.Get("Cache-Control"), "immutable", "its members may go")
	for page := range pages { // those that have nothing left are there still: readers would end without them
		n.MustGet(page)
	}
}

// pageOf returns the page that has a member.
func pageOf(t testing.TB, id string, pages map[string]served.Answer) string {
	t.Helper()
	for page, a := range pages {
		if bytes.Contains(a.Bytes, []byte(id)) {
			return page
		}
	}
	t.Fatalf("no page has %s", id)
	return ""
}

// Statements of a resource with the terms of the stream are in a graph of the member, if the notation has graphs.
func TestStatementsWithTheTermsOfTheStream(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.put(`:a skos:prefLabel "a" ; <` + isVersionOf + `> :b ; as:published "today" ; a as:Delete , skos:Concept .`)
	for _, ending := range endings {
		all, _ := n.walk("/topicmaps/m/ldes", ending)
		i := slices.IndexFunc(all, func(m member) bool { return m.resource == e+"a" })
		require.GreaterOrEqual(t, i, 0)
		require.Equal(t, "Create", all[i].class)
		want := 5
		if ending != ".trig" && ending != ".nq" {
			want = 2
		}
		require.Len(t, all[i].says, want, "%s: %v", ending, all[i].says)
	}
}

// A stream is read by many while it grows.
func TestStreamsAreReadWhileTheyGrow(t *testing.T) {
	t.Parallel()
	n := start(t, served.DocumentSize(5))
	n.put(concepts(2, "one"))
	var readers sync.WaitGroup
	done := make(chan struct{})
	for range 3 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					a := n.Get("/topicmaps/m/ldes.nq")
					assert.Equal(t, http.StatusOK, a.StatusCode)
				}
			}
		})
	}
	for i := range 10 {
		n.put(concepts(3+i%2, fmt.Sprint("name ", i)))
	}
	close(done)
	readers.Wait()
	all, _ := n.walk("/topicmaps/m/ldes", ".nq")
	require.Equal(t, n.logged(false), listed(all))
}
