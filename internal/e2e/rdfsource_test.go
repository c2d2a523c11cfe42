package e2e_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/rdf"
	"github.com/tmshare/tmshare/internal/rdf/rdfxml"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testenv"
	maps "github.com/tmshare/tmshare/testdata/xtm"
)

// rdfSource is a server of SDShare 2012 with RDF only. Its times are whole seconds. It lists each resource once, with
// its last change, and keeps no history: a fragment has the present statements about the resource, and that of a
// deleted one is an empty document.
type rdfSource struct {
	URL       string
	mediaType string

	mu        sync.Mutex
	second    int
	resources map[string]string // by resource, in Turtle; "": it is deleted
	changed   []string          // the last change last
	at        map[string]int
	instead   map[string]string // replacements of fragments
	snapshots bool
}

const prefixes = "@prefix : <http://example.org/> . @prefix skos: <http://www.w3.org/2004/02/skos/core#> . @prefix owl: <http://www.w3.org/2002/07/owl#> .\n"

func newRDFSource(t *testing.T, mediaType string) *rdfSource {
	s := &rdfSource{mediaType: mediaType, resources: map[string]string{}, at: map[string]int{}, instead: map[string]string{}, snapshots: true}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// say changes the statements about a resource, in a new second.
func (s *rdfSource) say(resource, turtle string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.second++
	s.resources[resource], s.at[resource] = turtle, s.second
	s.changed = append(slices.DeleteFunc(s.changed, func(other string) bool { return other == resource }), resource)
}

func (s *rdfSource) all() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.whole()
}

func (s *rdfSource) whole() []byte {
	var b strings.Builder
	b.WriteString(prefixes)
	for _, resource := range s.changed {
		b.WriteString(s.resources[resource])
	}
	return []byte(b.String())
}

func (s *rdfSource) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	const core = "http://www.sdshare.org/2012/core/"
	at := func(second int) string {
		return time.Date(2012, 11, 23, 10, 0, second, 0, time.UTC).Format(time.RFC3339)
	}
	feed := func(entries ...string) {
		w.Header().Set("Content-Type", "application/atom+xml")
		fmt.Fprintf(w, `<feed xmlns="http://www.w3.org/2005/Atom" xmlns:s="%s"><id>urn:x-rdf:feed</id><title>f</title><updated>%s</updated>%s</feed>`, core, at(s.second), strings.Join(entries, ""))
	}
	entry := func(second int, id, rel, mediaType, href, more string) string {
		return fmt.Sprintf(`<entry><id>urn:x-rdf:%s</id><title>%[1]s</title><updated>%s</updated><link rel="%s%s" type="%s" href="%s"/>%s</entry>`, id, at(second), core, rel, mediaType, href, more)
	}
	const atom = "application/atom+xml"
	if data := strings.HasPrefix(r.URL.Path, "/fragment/") || r.URL.Path == "/snapshot"; data && !strings.Contains(r.Header.Get("Accept"), s.mediaType) {
		w.WriteHeader(http.StatusNotAcceptable)
		return
	}
	switch path := r.URL.Path; path {
	case "/":
		feed(entry(0, "map", "collectionfeed", atom, "/map", ""))
	case "/map":
		feed(entry(0, "fragments", "fragmentsfeed", atom, "/fragments", ""), entry(0, "snapshots", "snapshotsfeed", atom, "/snapshots", ""))
	case "/snapshots":
		if s.snapshots {
			feed(entry(s.second, "snapshot", "snapshot", s.mediaType, "/snapshot", ""))
		} else {
			feed()
		}
	case "/snapshot":
		s.send(w, s.whole())
	case "/fragments":
		var entries []string
		for _, resource := range slices.Backward(s.changed) {
			id := fmt.Sprintf("%s-%d", resource, s.at[resource])
			entries = append(entries, entry(s.at[resource], id, "fragment", s.mediaType, "/fragment/"+url.PathEscape(resource), "<s:resource>http://example.org/"+resource+"</s:resource>"))
		}
		feed(entries...)
	default:
		resource := strings.TrimPrefix(path, "/fragment/")
		if instead, ok := s.instead[resource]; ok {
			w.Header().Set("Content-Type", s.mediaType)
			fmt.Fprint(w, instead)
			return
		}
		s.send(w, []byte(prefixes+s.resources[resource]))
	}
}

func (s *rdfSource) send(w http.ResponseWriter, turtle []byte) {
	w.Header().Set("Content-Type", s.mediaType)
	if s.mediaType != "application/rdf+xml" {
		_, _ = w.Write(turtle)
		return
	}
	graph, err := readGraph(turtle)
	if err == nil {
		err = rdfxml.Write(w, graph)
	}
	if err != nil {
		panic(err)
	}
}

func followingRDF(t *testing.T, s *rdfSource) *node {
	c := newClient(t)
	_, err := c.Subscribe(t.Context(), s.URL+"/", client.SubscribeOptions{Name: "voc"})
	require.NoError(t, err)
	return c
}

// A follower of a server that has RDF only has the graph that the server has.
func TestServersOfRDFAreFollowed(t *testing.T) {
	for _, mediaType := range []string{"application/rdf+xml", "text/turtle"} {
		for _, snapshots := range []bool{true, false} {
			t.Run(fmt.Sprint(mediaType, snapshots), func(t *testing.T) {
				t.Parallel()
				s := newRDFSource(t, mediaType)
				s.snapshots = snapshots
				s.say("a", `:a a skos:Concept ; skos:prefLabel "A"@en ; :knows :b ; :n 1 ; :list ( 1 [ :n 2 ] 3 ) . `)
				s.say("b", `:b skos:broader :a ; :knows [ :n 5 ] . `)
				s.say("c", `:c owl:sameAs :a ; a :Odd . `)
				c := followingRDF(t, s)
				sync := func() {
					t.Helper()
					_, err := c.Sync(t.Context(), "voc")
					require.NoError(t, err)
					requireGraph(t, c, "voc", graphOf(t, s.all()))
				}
				sync()
				for _, change := range [][2]string{
					{"a", `:a a skos:Concept ; skos:prefLabel "A"@en , "Ä"@de ; :knows :b ; :list ( 1 [ :n 2 ] 4 ) . `},
					{"b", `:b :knows [ :n 5 ] , [ :n 6 ; :up [ :n 7 ] ] . `},
					{"c", ``},                     // what others say of it stays, and a is still known by b
					{"d", `:d :knows :c , :d . `}, // of a resource that was deleted
					{"b", ``},                     // and its blank nodes
					{"a", `:a :knows :b . `},      // which is deleted
					{"a", ``}, {"d", ``},          // nothing is left
					{"a", `:a :n _:x . _:x :n _:y . _:y :n _:x . `}, // a circle
					{"a", `:a :n _:x . _:x :n _:x . `},
					{"a", `:a :n 1 . `},
				} {
					s.say(change[0], change[1])
					sync()
				}
				sync() // again, without changes
			})
		}
	}
}

// RDF compares IRIs character by character: two that have the same normal form are two resources, in feeds too.
func TestResourcesWithTheSameNormalFormAreTwo(t *testing.T) {
	for _, snapshots := range []bool{true, false} {
		t.Run(fmt.Sprint(snapshots), func(t *testing.T) {
			t.Parallel()
			s := newRDFSource(t, "text/turtle")
			s.snapshots = snapshots
			say := func(n int) {
				s.say("~me", fmt.Sprintf("<http://example.org/~me> :n %d ; :knows <http://example.org/%%7Eme> .\n", n))
				s.say("%7Eme", fmt.Sprintf("<http://example.org/%%7Eme> :n %d ; :knows <http://example.org/~me> .\n", 10+n))
				s.say("%7eme", fmt.Sprintf("<http://example.org/%%7eme> :n %d .\n", 20+n))
			}
			say(1)
			c := followingRDF(t, s)
			for n := 2; n < 5; n++ {
				_, err := c.Sync(t.Context(), "voc")
				require.NoError(t, err)
				requireGraph(t, c, "voc", graphOf(t, s.all()))
				say(n)
			}
		})
	}
}

// RDF allows characters and lengths that XTM does not. A follower omits statements with them, reports it, and can write
// its copy as XTM.
func TestStatementsThatXTMCannotCarryAreLeftOut(t *testing.T) {
	for _, snapshots := range []bool{true, false} {
		t.Run(fmt.Sprint(snapshots), func(t *testing.T) {
			t.Parallel()
			s := newRDFSource(t, "text/turtle")
			s.snapshots = snapshots
			long := strings.Repeat("x", 9<<10)
			held := func(n int) string { return fmt.Sprintf(":a :n %d ; :knows :b . ", n) }
			say := func(n int) {
				s.say("a", held(n)+fmt.Sprintf(`:a :text "%d\u0001" , "\uFFFE"^^:control ; :see <urn:x:%s> ; <urn:p:%[2]s> 1 . `, n, long))
				s.say("b", `:b :text "\u0008" . `)
			}
			say(1)
			c := followingRDF(t, s)
			for n := 1; n < 4; n++ {
				var statements []string
				c.Report = func(line string) { statements = append(statements, line) }
				round, err := c.Sync(t.Context(), "voc")
				require.NoError(t, err)
				require.Zero(t, round.Quarantined)
				requireGraph(t, c, "voc", graphOf(t, []byte(prefixes+held(n))))
				require.Contains(t, strings.Join(statements, "\n"), "XTM cannot carry")
				_, err = c.merged.Export(t.Context(), &bytes.Buffer{}, notation("xtm2.1"), false, "voc")
				require.NoError(t, err)
				say(n + 1)
			}
		})
	}
}

// An unreadable fragment is in quarantine, and the others are applied.
func TestFragmentsInRDFThatAreNone(t *testing.T) {
	s := newRDFSource(t, "text/turtle")
	s.say("old", `:old :n 1 . `) // where the round before ended is in the feed
	s.say("a", `:a :n 1 . `)
	s.say("b", `:b :n 1 . `)
	c := followingRDF(t, s)
	_, err := c.Sync(t.Context(), "voc")
	require.NoError(t, err)
	held := graphOf(t, s.all())
	for name, document := range map[string]string{
		"no Turtle":      `:a :n`,
		"another format": `<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1"/>`,
		"deep":           `<http://example.org/a> <http://example.org/n> ` + strings.Repeat("( ", 100_000),
		"several graphs": "\x00",
	} {
		s.say("a", `:a :n 2 . `)
		s.instead["a"] = document
		s.say("b", `:b :n 1 . `)
		round, err := c.Sync(t.Context(), "voc")
		require.NoError(t, err)
		require.Equal(t, 1, round.Quarantined, "%s: %+v", name, round)
		requireGraph(t, c, "voc", held)
	}
	delete(s.instead, "a")
	_, err = c.Sync(t.Context(), "voc")
	require.NoError(t, err)
	requireGraph(t, c, "voc", graphOf(t, s.all()))
}

// Random changes of resources that lead to each other, and to blank nodes of their own.
func TestRandomGraphsAreFollowed(t *testing.T) {
	for seed := range uint64(testenv.Rounds(3, 100)) {
		random := rand.New(rand.NewPCG(testenv.Seed(), seed))
		s := newRDFSource(t, "application/rdf+xml")
		c := followingRDF(t, s)
		for range 12 {
			for range 1 + random.IntN(3) {
				resource := string(rune('a' + random.IntN(4)))
				var b strings.Builder
				for range random.IntN(4) {
					fmt.Fprintf(&b, ":%s :p%d %s . ", resource, random.IntN(2), object(random, 3))
				}
				s.say(resource, b.String())
			}
			_, err := c.Sync(t.Context(), "voc")
			require.NoError(t, err)
			requireGraph(t, c, "voc", graphOf(t, s.all()))
		}
	}
}

func object(random *rand.Rand, depth int) string {
	switch n := random.IntN(5); {
	case n == 0 && depth > 0:
		return fmt.Sprintf("[ :p%d %s ; :n %d ]", random.IntN(2), object(random, depth-1), random.IntN(2))
	case n == 1 && depth > 0:
		return fmt.Sprintf("( %s %s )", object(random, depth-1), object(random, depth-1))
	case n < 4:
		return ":" + string(rune('a'+random.IntN(4)))
	}
	return fmt.Sprintf("%q", fmt.Sprint(random.IntN(3)))
}

// A TMShare server is followed in RDF if the subscription requests it.
func TestOwnServerIsFollowedInRDF(t *testing.T) {
	testenv.SkipUnderRace(t)
	s := startServer(t, server.Config{})
	versions := vocabularies(t)[:2]
	with := func(version []byte, more string) []byte {
		return bytes.Join([][]byte{version, []byte(prefixes), []byte(more)}, []byte("\n"))
	}
	documents := [][]byte{
		with(versions[0], `:list :is ( 1 2 [ :n 3 ] ) .`), with(versions[1], `:list :is ( 1 2 [ :n 4 ] ) .`), with(versions[0], `:list :is ( 1 [ :n 4 ] ) .`),
	}
	createFrom(t, s, "voc", documents[0])
	c := newClient(t)
	_, err := c.Subscribe(t.Context(), s.BaseURL+"/topicmaps/voc", client.SubscribeOptions{Asked: store.Asked{Format: "ntriples"}})
	require.NoError(t, err)
	for i, document := range documents {
		if i > 0 {
			putTurtle(t, s, "voc", document)
		}
		round, err := c.Sync(t.Context(), "voc")
		require.NoError(t, err)
		assert.Equal(t, i == 0, round.CleanStart)
		requireGraph(t, c, "voc", graphOf(t, document))
	}
}

// A topic without statements, or with only a name, is not deleted for followers in RDF.
func TestBareTopicsAreFollowedInRDF(t *testing.T) {
	const xtm21 = `<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1">%s</topicMap>`
	const named = `<topic id="n"><subjectIdentifier href="http://example.org/named"/><name><value>Named</value></name></topic>`
	const bare = `<topic id="b"><subjectIdentifier href="http://example.org/bare"/></topic>`
	const two = `<topic id="t"><subjectIdentifier href="http://example.org/two"/><subjectIdentifier href="http://example.org/zwei"/></topic>`
	s := startServer(t, server.Config{})
	createFrom(t, s, "voc", []byte(prefixes+`:a :knows :b .`))
	for _, format := range []string{"turtle", "ntriples", "rdfxml"} {
		c := newClient(t)
		_, err := c.Subscribe(t.Context(), s.BaseURL+"/topicmaps/voc", client.SubscribeOptions{Asked: store.Asked{Format: format}})
		require.NoError(t, err)
		for _, document := range []string{"", named, named + bare, bare + two, ""} {
			putDocument(t, s, "voc", "application/x-tm+xml", fmt.Appendf(nil, xtm21, document+`<topic id="a"><subjectIdentifier href="http://example.org/a"/></topic>`))
			_, err := c.Sync(t.Context(), "voc")
			require.NoError(t, err)
			verdict, err := c.Verify(t.Context(), "voc", true)
			require.NoError(t, err)
			require.True(t, verdict.Equal, "%s of %s", format, document)
		}
	}
	_, body := get(t, "GET", s.BaseURL+"/topicmaps/voc/topics?si=http://example.org/a", "Accept", "text/turtle")
	require.Equal(t, []rdf.Quad{{
		Subject: rdf.NewIRI("http://example.org/a"), Predicate: rdf.NewIRI(rdf.Type), Object: rdf.NewIRI("https://github.com/tmshare/tmshare/ns/1/Topic"),
	}}, graphOf(t, body))
	putDocument(t, s, "voc", "application/x-tm+xml", fmt.Appendf(nil, xtm21, named))
	_, body = get(t, "GET", s.BaseURL+"/topicmaps/voc/topics?si=http://example.org/named", "Accept", "text/turtle")
	for _, property := range []string{"http://www.w3.org/2000/01/rdf-schema#label", "http://psi.topicmaps.org/iso13250/model/topic-name"} {
		require.Contains(t, graphOf(t, body), rdf.Quad{
			Subject: rdf.NewIRI("http://example.org/named"), Predicate: rdf.NewIRI(property), Object: rdf.NewLiteral("Named", ""),
		})
	}
}

// A map that was XTM is offered in RDF where its owner decides so, from the next change on.
func TestMapIsOfferedInRDF(t *testing.T) {
	s := startServer(t, server.Config{})
	importMap(t, s, "egov", maps.EGov)
	current := s.BaseURL + "/topicmaps/egov/snapshots/current"
	res, _ := get(t, "GET", current, "Accept", "text/turtle")
	require.Equal(t, http.StatusNotAcceptable, res.StatusCode)
	putDocument(t, s, "egov", "application/json", []byte(`{"rdf": true}`))

	_, document := get(t, "GET", current, "Accept", "text/turtle")
	whole := graphOf(t, document)
	require.Greater(t, len(whole), 1000)
	for ending, f := range served {
		_, document := get(t, "GET", current+ending)
		require.True(t, rdf.Isomorphic(whole, graphIn(t, f, document)), ending)
	}
	changed := bytes.Replace(maps.EGov, []byte(">Dog licence<"), []byte(">Licence for a dog<"), 1)
	require.Equal(t, 1, entries(put(t, s, "egov", changed)))
	_, body := get(t, "GET", s.BaseURL+"/topicmaps/egov/fragments")
	feed, err := feeds.Decode(bytes.NewReader(body), s.BaseURL, feeds.Limits{})
	require.NoError(t, err)
	for i, e := range feed.Entries {
		links := slices.DeleteFunc(e.Find("alternate"), func(l feeds.Link) bool { return l.Type != "text/turtle" })
		if i > 0 {
			require.Empty(t, links, "it was published before")
			continue
		}
		require.Len(t, links, 1)
		_, body := get(t, "GET", links[0].Href)
		require.Contains(t, string(body), `"Licence for a dog"`)
		for _, q := range graphOf(t, body) {
			require.Equal(t, e.TopicSI[0], q.Subject.Value)
		}
	}
}
