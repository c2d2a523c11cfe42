package e2e_test

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/ext"
	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/internal/rdf"
	"github.com/tmshare/tmshare/internal/rdf/turtle"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/xtm"
)

// vocabularies returns the states of a real vocabulary, the oldest first.
func vocabularies(t *testing.T) (all [][]byte) {
	files, err := filepath.Glob(filepath.Join(testenv.Shared(t, "data"), "voc4cat", "*.ttl.gz"))
	require.NoError(t, err)
	require.Len(t, files, 6)
	for _, path := range files { // in order: Glob sorts
		all = append(all, testenv.SharedFile(t, "data/voc4cat/"+filepath.Base(path)))
	}
	return all
}

func graphOf(t testing.TB, document []byte) []rdf.Quad {
	all, err := readGraph(document)
	require.NoError(t, err)
	return all
}

func readGraph(document []byte) (all []rdf.Quad, err error) {
	err = turtle.Read(bytes.NewReader(document), turtle.Turtle, turtle.Options{URI: "http://example.org/"}, func(q rdf.Quad) error {
		all = append(all, q)
		return nil
	})
	return all, err
}

// terms are the resources that a graph names, and its languages.
func terms(graph map[rdf.Quad]bool) map[string]bool {
	all := map[string]bool{}
	for q := range graph {
		all[q.Subject.Value], all[q.Predicate.Value] = true, true
		switch {
		case q.Object.Kind != rdf.Literal:
			all[q.Object.Value] = true
		case q.Object.Language != "":
			all["https://github.com/tmshare/tmshare/ns/1/language/"+q.Object.Language] = true
		}
	}
	return all
}

// differing returns the resources with different statements in two graphs without blank nodes: as a subject, as an
// object except as a class, or by any mention.
func differing(before, after map[rdf.Quad]bool) map[string]bool {
	all := map[string]bool{}
	compare := func(a, b map[rdf.Quad]bool) {
		for q := range a {
			if b[q] {
				continue
			}
			all[q.Subject.Value] = true
			if q.Object.Kind == rdf.IRI && q.Predicate.Value != rdf.Type {
				all[q.Object.Value] = true
			}
		}
		one, other := terms(a), terms(b)
		for term := range one {
			if !other[term] {
				all[term] = true
			}
		}
	}
	compare(before, after)
	compare(after, before)
	delete(all, rdf.Type) // instances have it, as type-instance
	return all
}

func setOf(graph []rdf.Quad) map[rdf.Quad]bool {
	all := map[rdf.Quad]bool{}
	for _, q := range graph {
		all[q] = true
	}
	return all
}

// createFrom creates a collection whose first version is a vocabulary.
func createFrom(t testing.TB, s *server.Server, name string, document []byte) {
	t.Helper()
	putDocument(t, s, name, "application/json", []byte("{}"))
	putTurtle(t, s, name, document)
}

// putTurtle publishes a version of a vocabulary.
func putTurtle(t testing.TB, s *server.Server, name string, document []byte) {
	t.Helper()
	putDocument(t, s, name, "text/turtle", document)
}

// putDocument puts a document to a collection, with further headers: names and values.
func putDocument(t testing.TB, s *server.Server, name, mediaType string, document []byte, headers ...string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPut, s.BaseURL+"/topicmaps/"+name, bytes.NewReader(document))
	require.NoError(t, err)
	req.Header.Set("TMShare-Max-Delete", "all")
	req.Header.Set("Content-Type", mediaType)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Less(t, res.StatusCode, 300)
}

// published returns the topics of the entries of a collection after one, and the last entry.
func published(t testing.TB, s *server.Server, name string, after uint64) (topics []string, head uint64) {
	t.Helper()
	require.NoError(t, s.Store.View(t.Context(), name, func(v *store.View) error {
		head = v.Head
		for e, err := range v.Entries(after + 1) {
			if err != nil {
				return err
			}
			topics = append(topics, string(e.TopicSI))
		}
		return nil
	}))
	slices.Sort(topics)
	return topics, head
}

// A new version of a vocabulary publishes an entry for each resource of which its statements differ, and no other.
// A follower has proof of each state, and can export the graph that was published.
func TestVersionsOfVocabularyAreFollowed(t *testing.T) {
	testenv.SkipUnderRace(t)
	versions := vocabularies(t)
	s := startServer(t, server.Config{})
	createFrom(t, s, "voc", versions[0])
	c := newClient(t)
	_, err := c.Subscribe(t.Context(), s.BaseURL+"/topicmaps/voc", client.SubscribeOptions{})
	require.NoError(t, err)
	for i, version := range versions {
		graph := graphOf(t, version)
		if i > 0 {
			_, before := published(t, s, "voc", 0)
			putTurtle(t, s, "voc", version)
			topics, _ := published(t, s, "voc", before)
			want := slices.Sorted(maps.Keys(differing(setOf(graphOf(t, versions[i-1])), setOf(graph))))
			require.Equal(t, want, topics, "version %d", i)
		}
		round, err := c.Sync(t.Context(), "voc")
		require.NoError(t, err)
		require.Equal(t, i == 0, round.CleanStart)
		requireSameGraph(t, c, "voc", graph)
	}
}

// requireSameGraph checks that the copy of a client is proven, and is a graph.
func requireSameGraph(t testing.TB, c *node, name string, graph []rdf.Quad) {
	t.Helper()
	verdict, err := c.Verify(t.Context(), name, true)
	require.NoError(t, err)
	require.True(t, verdict.Equal)
	s, err := c.Subscription(t.Context(), name)
	require.NoError(t, err)
	require.NotNil(t, s.State.Proof)
	require.True(t, s.State.Proof.Equal)
	requireGraph(t, c, name, graph)
}

// requireGraph checks that the copy of a client is a graph.
func requireGraph(t testing.TB, c *node, name string, graph []rdf.Quad) {
	t.Helper()
	var b bytes.Buffer
	_, err := c.merged.Export(t.Context(), &b, notation("ntriples"), false, name)
	require.NoError(t, err)
	require.True(t, rdf.Isomorphic(graphOf(t, b.Bytes()), graph), "%s", firstDifference(ntriples(t, graph), b.String()))
}

func ntriples(t testing.TB, graph []rdf.Quad) string {
	var b bytes.Buffer
	require.NoError(t, turtle.WriteNTriples(&b, graph))
	return b.String()
}

// Blank nodes are only republished if their statements, or those of their objects, differ.
func TestUnchangedBlankNodesAreNotPublished(t *testing.T) {
	const head = "@prefix : <http://example.org/> . @prefix owl: <http://www.w3.org/2002/07/owl#> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n"
	restrictions := func(n int, filler string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, ":c%d a owl:Class ; rdfs:subClassOf [ a owl:Restriction ; owl:onProperty :part ; owl:someValuesFrom :%s ] .\n", i, filler)
		}
		return b.String()
	}
	const list = ":a :list ( 1 2 [ :n 3 ] 4 5 ) . :l :list ( 1 2 ) .\n"
	s := startServer(t, server.Config{})
	createFrom(t, s, "voc", []byte(head+restrictions(5, "wheel")+list))
	c := newClient(t)
	_, err := c.Subscribe(t.Context(), s.BaseURL+"/topicmaps/voc", client.SubscribeOptions{})
	require.NoError(t, err)
	_, err = c.Sync(t.Context(), "voc")
	require.NoError(t, err)
	for _, step := range []struct {
		name, document string
		named, blank   int // entries of named resources and of blank nodes
	}{
		{"as it was, in another order and with other labels", list + restrictions(5, "wheel"), 0, 0},
		{"one class more", restrictions(6, "wheel") + list, 3, 1}, // itself, what it leads to, and the part that all lead to
		{"one class less", restrictions(5, "wheel") + list, 3, 1},
		{"the first of a list", restrictions(5, "wheel") + strings.Replace(list, "( 1 2 [", "( 9 2 [", 1), 1, 3}, // a cell goes, one comes, and the next is led to by another
		{"before the first of a list", restrictions(5, "wheel") + strings.Replace(list, "( 1 2 [", "( 0 9 2 [", 1), 1, 2},
		{"the last of a list", restrictions(5, "wheel") + strings.Replace(strings.Replace(list, "( 1 2 [", "( 0 9 2 [", 1), "4 5 )", "4 6 )", 1), 2, 13}, // each cell leads to what has changed; and what was third is led to by another one
	} {
		_, before := published(t, s, "voc", 0)
		putTurtle(t, s, "voc", []byte(head+step.document))
		topics, _ := published(t, s, "voc", before)
		blank := 0
		for _, topic := range topics {
			if strings.Contains(topic, "genid") {
				blank++
			}
		}
		require.Equal(t, []int{step.named, step.blank}, []int{len(topics) - blank, blank}, "%s: %v", step.name, topics)
		_, err = c.Sync(t.Context(), "voc")
		require.NoError(t, err)
		requireSameGraph(t, c, "voc", graphOf(t, []byte(head+step.document)))
	}
}

// get fetches something, and returns the answer with its body.
func get(t testing.TB, method, url string, headers ...string) (*http.Response, []byte) {
	t.Helper()
	req, err := http.NewRequest(method, url, nil)
	require.NoError(t, err)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res, body
}

// served are the notations in which a collection is offered, by the endings of addresses.
var served = map[string]*formats.Format{".ttl": notation("turtle"), ".nt": notation("ntriples"), ".rdf": notation("rdfxml")}

func notation(name string) *formats.Format {
	f, err := ext.Formats().All().Named(name)
	if err != nil {
		panic(err)
	}
	return f
}

// graphIn reads a document in a notation of RDF, through a topic map.
func graphIn(t testing.TB, f *formats.Format, document []byte) []rdf.Quad {
	t.Helper()
	m, err := f.Read(t.Context(), bytes.NewReader(document), formats.ReadOptions{Options: xtm.Options{Base: "http://example.org/"}})
	require.NoError(t, err, "%s", document)
	var b bytes.Buffer
	_, err = notation("ntriples").Write(&b, m, formats.WriteOptions{})
	require.NoError(t, err)
	return graphOf(t, b.Bytes())
}

// A collection that was RDF is served in RDF: its fragments, its snapshots, its topics.
func TestCollectionIsServedInRDF(t *testing.T) {
	const before = `@prefix : <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
		:a a :C ; rdfs:label "A"@en , "a" ; :n 1 ; :knows :b , [ :n 2 ; :list ( 3 [ :n 4 ] ) ] .
		:b :knows :a ; :date "2024-01-01"^^<http://www.w3.org/2001/XMLSchema#date> . [] a :Alone .`
	after := strings.NewReplacer(":n 4", ":n 5", `:b :knows :a ;`, ``, `:date`, `:b :date`).Replace(before)
	s := startServer(t, server.Config{})
	createFrom(t, s, "voc", []byte(before))
	_, head := published(t, s, "voc", 0)
	putTurtle(t, s, "voc", []byte(after))
	feedURL := s.BaseURL + "/topicmaps/voc/fragments"
	res, body := get(t, "GET", feedURL)
	require.Equal(t, 200, res.StatusCode)
	feed, err := feeds.Decode(bytes.NewReader(body), feedURL, feeds.Limits{})
	require.NoError(t, err)

	about := func(document, resource string) (all []rdf.Quad) { // of resources that lead to each blank node but one
		for _, q := range graphOf(t, []byte(document)) {
			if q.Subject == rdf.NewIRI(resource) || resource == "http://example.org/a" && q.Subject.Kind == rdf.Blank && q.Object.Value != "http://example.org/Alone" {
				all = append(all, q)
			}
		}
		return all
	}
	documents := map[string]string{}
	for _, e := range feed.Entries[:len(feed.Entries)-int(head)] {
		for _, rel := range []feeds.Rel{"alternate", feeds.RelSDShareFragment} {
			found := 0
			for _, l := range e.Find(rel) {
				for ending, f := range served {
					if l.Type == f.MediaType() && strings.HasSuffix(l.Href, ending) {
						found++
						documents[e.TopicSI[0]+ending] = l.Href
					}
				}
			}
			require.Equal(t, 3, found, "%s", e.TopicSI)
		}
	}
	for ending, f := range served {
		for _, resource := range []string{"a", "b"} {
			resource = "http://example.org/" + resource
			res, body := get(t, "GET", documents[resource+ending])
			require.Equal(t, 200, res.StatusCode)
			require.Equal(t, f.MediaType(), res.Header.Get("Content-Type"))
			require.True(t, rdf.Isomorphic(about(after, resource), graphIn(t, f, body)), "%s", body)
			tag := res.Header.Get("ETag")
			require.NotEmpty(t, tag)
			require.NotContains(t, tag, "W/")
			res, _ = get(t, "GET", documents[resource+ending], "If-None-Match", tag)
			require.Equal(t, 304, res.StatusCode)
			res, body = get(t, "HEAD", documents[resource+ending], "Accept-Encoding", "gzip")
			require.Equal(t, []any{200, 0, tag}, []any{res.StatusCode, len(body), res.Header.Get("ETag")})
			res, _ = get(t, "GET", documents[resource+ending], "Accept", "application/pdf")
			require.Equal(t, 406, res.StatusCode)

			// Linked Data: the topic in the requested notation.
			res, body = get(t, "GET", s.BaseURL+"/topicmaps/voc/topics?si="+resource, "Accept", f.MediaType()+", text/html;q=0.5")
			require.Equal(t, 200, res.StatusCode)
			require.Equal(t, f.MediaType(), res.Header.Get("Content-Type"))
			require.Contains(t, res.Header.Get("Vary"), "Accept")
			require.True(t, rdf.Isomorphic(about(after, resource), graphIn(t, f, body)), "%s", body)
		}
		for _, e := range feed.Entries {
			if strings.Contains(e.TopicSI[0], "genid") && documents[e.TopicSI[0]+ending] != "" { // what is deleted, or only has this IRI in the map
				_, body := get(t, "GET", documents[e.TopicSI[0]+ending])
				require.Empty(t, graphIn(t, f, body))
			}
		}
		for _, snapshot := range []string{"/topicmaps/voc/snapshots/current", ""} {
			address, document := s.BaseURL+snapshot+ending, after
			if snapshot == "" {
				_, body := get(t, "GET", s.BaseURL+"/topicmaps/voc/snapshots")
				feed, err := feeds.Decode(bytes.NewReader(body), s.BaseURL, feeds.Limits{})
				require.NoError(t, err)
				for _, l := range feed.Entries[0].Find(feeds.RelSDShareSnapshot) {
					if l.Type == f.MediaType() {
						address, document = l.Href, before
					}
				}
				require.Equal(t, before, document)
			}
			res, body := get(t, "GET", address)
			require.Equal(t, 200, res.StatusCode, "%s", body)
			require.True(t, rdf.Isomorphic(graphOf(t, []byte(document)), graphIn(t, f, body)), "%s", body)
		}
		res, body := get(t, "GET", s.BaseURL+"/topicmaps/voc/topics?si=http://example.org/a", "Accept", "text/html", "Upgrade-Insecure-Requests", "1")
		require.Equal(t, 200, res.StatusCode)
		require.Contains(t, html.UnescapeString(string(body)), `<link rel="alternate" type="`+f.MediaType()+`"`)
		require.Contains(t, string(body), ">"+f.Title+"<")
	}
	_, body = get(t, "GET", s.BaseURL+"/topicmaps/voc/topics?si=http://example.org/a")
	require.Contains(t, string(body), "http://www.topicmaps.org/xtm/1.0/", "who asks for nothing gets what always came")

	// Published entries keep their formats; the owner sets those of later ones.
	_, recent := get(t, "GET", feedURL)
	putDocument(t, s, "voc", "application/json", []byte(`{"rdf": false}`))
	putTurtle(t, s, "voc", []byte(strings.Replace(after, ":n 1", ":n 9", 1)))
	_, body = get(t, "GET", feedURL)
	require.Equal(t, strings.Count(string(recent), "text/turtle"), strings.Count(string(body), "text/turtle")+1, "but for the link to the map as of now")
	res, _ = get(t, "GET", s.BaseURL+"/topicmaps/voc/topics?si=http://example.org/a", "Accept", "text/turtle")
	require.Equal(t, 406, res.StatusCode)
	res, _ = get(t, "GET", documents["http://example.org/b.ttl"])
	require.Equal(t, 200, res.StatusCode)
}
