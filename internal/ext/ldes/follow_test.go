package ldes_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/client/merged"
	"github.com/tmshare/tmshare/internal/client/status"
	"github.com/tmshare/tmshare/internal/client/watch"
	"github.com/tmshare/tmshare/internal/ext"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/follow/followtest"
	"github.com/tmshare/tmshare/internal/rdf"
	"github.com/tmshare/tmshare/internal/rdf/turtle"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testkit/node"
	"github.com/tmshare/tmshare/internal/testkit/served"
	"github.com/tmshare/tmshare/internal/testkit/stores"
)

// follower follows streams.
type follower struct {
	*client.Client
	t  testing.TB
	db *store.DB
}

func newFollower(t testing.TB, change ...func(*client.Config)) *follower {
	t.Helper()
	db := stores.Open(t, store.Options{Dir: t.TempDir(), Logger: node.Silent})
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	config := client.Config{Formats: ext.Formats(), Protocols: ext.Protocols(), Store: db, Logger: node.Silent,
		ConfirmAfter: followtest.ConfirmAfter, Backoff: time.Millisecond, Tries: 2}
	for _, f := range change {
		f(&config)
	}
	c, err := client.New(config)
	require.NoError(t, err)
	return &follower{c, t, db}
}

func (f *follower) follow(url, as string, o client.SubscribeOptions) *store.Subscription {
	f.t.Helper()
	o.Name = as
	s, err := f.Subscribe(f.t.Context(), url, o)
	require.NoError(f.t, err)
	return s
}

func (f *follower) sync(as string) *client.Round {
	f.t.Helper()
	r, err := f.Client.Sync(f.t.Context(), as)
	require.NoError(f.t, err)
	require.Zero(f.t, r.Quarantined)
	return r
}

// doubts syncs, which ends in a doubt.
func (f *follower) doubts(as string) *follow.Doubt {
	f.t.Helper()
	_, err := f.Client.Sync(f.t.Context(), as)
	var doubt *follow.DoubtError
	require.True(f.t, errors.As(err, &doubt), "%v", err)
	return doubt.Doubt
}

// graph returns the graph of a subscription.
func (f *follower) graph(as string) (all statements) {
	f.t.Helper()
	var b bytes.Buffer
	format, err := ext.Formats().All().Named("ntriples")
	require.NoError(f.t, err)
	_, err = merged.View{Store: f.db, Report: func(string) {}}.Export(f.t.Context(), &b, format, false, as)
	require.NoError(f.t, err)
	return graphOf(f.t, b.String())
}

func graphOf(t testing.TB, body string) (all statements) {
	t.Helper()
	require.NoError(t, turtle.Read(strings.NewReader(prefixes+body), turtle.Turtle, turtle.Options{}, func(q rdf.Quad) error {
		all = append(all, q)
		return nil
	}), "%s", body)
	return all
}

const prefixes = "@prefix : <" + e + "> . @prefix skos: <http://www.w3.org/2004/02/skos/core#> . @prefix as: <" + as + "> .\n" +
	"@prefix ldes: <" + ldes + "> . @prefix tree: <" + tree + "> . @prefix dcterms: <http://purl.org/dc/terms/> .\n" +
	"@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .\n"

// says requires that a subscription has a graph.
func (f *follower) says(as, body string) {
	f.t.Helper()
	has := f.graph(as)
	require.True(f.t, rdf.Isomorphic(graphOf(f.t, body), has), "it has %v", has)
}

// contents are the records of a subscription, without topics that have no statements: topics that serve the mapping
// alone are members of a stream, and need not be in a snapshot.
func (f *follower) contents(as string) map[string]string {
	f.t.Helper()
	all := map[string]string{}
	require.NoError(f.t, f.db.ReadParts(f.t.Context(), func(parts []store.Part) error {
		for _, p := range parts {
			if p.Name != as {
				continue
			}
			all = followtest.Contents(f.t, p.Source)
			for topic, err := range p.Source.Topics() {
				require.NoError(f.t, err)
				if len(topic.SubjectIdentifiers)+len(topic.SubjectLocators)+len(topic.Names)+len(topic.Occurrences) == 1 {
					delete(all, "topic "+string(topic.TopicSI()))
					delete(all, fmt.Sprintf("stub %s: %[1]s", topic.TopicSI()))
				}
			}
		}
		return nil
	}))
	return all
}

// A stream of ours that is followed gives the map that following the feed in RDF gives, whatever happens.
func TestStreamsOfOursAreFollowed(t *testing.T) {
	t.Parallel()
	for _, ending := range []string{"/ldes", "/ldes/latest", "/ldes.ttl"} {
		t.Run(ending, func(t *testing.T) {
			t.Parallel()
			n := start(t, served.DocumentSize(5))
			n.put(concepts(6, "one") + ":c0 :parts [ :in :c1 ; :and ( 1 2 ) ] .")
			f := newFollower(t)
			s := f.follow(n.URL("/topicmaps/m"+ending), "stream", client.SubscribeOptions{Protocol: "ldes"})
			require.Equal(t, store.Protocol("ldes"), s.Protocol)
			require.Equal(t, n.SP("m"), s.SP)
			f.follow(n.URL("/topicmaps/m/fragments"), "feed", client.SubscribeOptions{Asked: store.Asked{Format: "turtle"}})
			check := func() {
				t.Helper()
				f.sync("stream")
				f.sync("feed")
				current := n.parse("", n.MustGet("/topicmaps/m/snapshots/current.ttl"))
				require.True(t, rdf.Isomorphic(current, f.graph("stream")), "%v", f.graph("stream"))
				followtest.SameRecords(t, f.contents("feed"), f.contents("stream"), "stream")
			}
			check()
			require.Zero(t, f.sync("stream").Applied, "nothing is new")
			for _, body := range []string{
				concepts(6, "two"), concepts(3, "two") + ":c0 :parts [ :in :c1 ] .", concepts(9, "three") + ":c0 :parts [ :in :c5 ] .",
				":c1 skos:broader :c2 .", concepts(2, "four") + ":c1 skos:broader :gone .", concepts(4, "five"),
			} {
				n.put(body)
				check()
			}
		})
	}
}

// hosted is a stream on a server of its own.
type hosted struct {
	*httptest.Server
	t testing.TB

	mu    sync.Mutex
	pages map[string]hostedPage
	seen  []string
}

type hostedPage struct {
	body, kind, cache, etag string
	location, coding        string
	status                  int
}

func host(t testing.TB) *hosted {
	h := &hosted{t: t, pages: map[string]hostedPage{}}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		defer h.mu.Unlock()
		p, ok := h.pages[r.URL.RequestURI()]
		etag := cmp.Or(p.etag, fmt.Sprintf(`"%x"`, sha256.Sum256([]byte(p.body))))
		w.Header().Set("ETag", etag)
		if p.cache != "" {
			w.Header().Set("Cache-Control", p.cache)
		}
		if p.coding != "" {
			w.Header().Set("Content-Encoding", p.coding)
		}
		if p.location != "" {
			w.Header().Set("Location", p.location)
		}
		switch {
		case !ok:
			http.NotFound(w, r)
		case p.status != 0:
			w.WriteHeader(p.status)
		case r.Header.Get("If-None-Match") == etag:
			h.seen = append(h.seen, r.URL.RequestURI()+" 304")
			w.WriteHeader(http.StatusNotModified)
			return
		default:
			w.Header().Set("Content-Type", p.kind)
			_, _ = w.Write([]byte(p.body))
		}
		h.seen = append(h.seen, r.URL.RequestURI())
	}))
	t.Cleanup(h.Close)
	return h
}

// has puts a page in TriG on the server. Immutable pages begin with "!".
func (h *hosted) has(path, body string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := hostedPage{kind: "application/trig"}
	if rest, immutable := strings.CutPrefix(body, "!"); immutable {
		body, p.cache = rest, "public, max-age=604800, immutable"
	}
	p.body = prefixes + "@base <" + h.URL + "/> .\n" + body
	h.pages[path] = p
}

func (h *hosted) requests() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	seen := h.seen
	h.seen = nil
	slices.Sort(seen)
	return seen
}

// stream returns the root of a stream that has versions and times.
const stream = `<s> a ldes:EventStream ; tree:view <root> ; ldes:versionOfPath dcterms:isVersionOf ; ldes:timestampPath dcterms:modified .
`

// version is a member: the second n of a day, of a concept.
func version(id string, n int, resource, says string) string {
	return fmt.Sprintf(`<s> tree:member <%s> . <%[1]s> dcterms:isVersionOf :%s ; dcterms:modified "2026-01-01T00:00:%02dZ"^^xsd:dateTime %s .
`, id, resource, n, says)
}

func leads(from string, to ...string) (all string) {
	for _, page := range to {
		all += fmt.Sprintf("<%s> tree:relation [ a tree:Relation ; tree:node <%s> ] .\n", from, page)
	}
	return all
}

// Pages are walked along all relations, in circles too. Immutable ones are read twice; of the others those that have
// changed, and the one with the newest member.
func TestPagesAreWalked(t *testing.T) {
	t.Parallel()
	h := host(t)
	h.has("/root", stream+leads("root", "a", "b"))
	h.has("/a", "!"+version("m1", 1, "x", `; :n 1`)+leads("a", "b", "c", "root"))
	h.has("/b", "!"+version("m3", 3, "y", `; :n 1`)+leads("b", "a"))
	h.has("/c", version("m2", 2, "x", `; :n 2 , [ :n 3 ]`)+leads("c", "c#part"))
	f := newFollower(t)
	s := f.follow(h.URL+"/root", "s", client.SubscribeOptions{Protocol: "ldes"})
	require.Equal(t, h.URL+"/root", s.FragmentsFeed)
	h.requests()
	f.sync("s")
	f.says("s", ":x :n 2 , [ :n 3 ] . :y :n 1 .")
	require.Equal(t, []string{"/a", "/b", "/c", "/root"}, h.requests())
	require.Zero(t, f.sync("s").Applied)
	require.Equal(t, []string{"/a", "/b", "/c 304", "/root 304"}, h.requests())
	require.Zero(t, f.sync("s").Applied)
	require.Equal(t, []string{"/b 304", "/c 304", "/root 304"}, h.requests())

	h.has("/c", "!"+version("m2", 2, "x", `; :n 2 , [ :n 3 ]`)+version("m4", 4, "x", `; a as:Delete`)+leads("c", "c", "d"))
	h.has("/d", version("m5", 5, "z", `; :n 5 ; :knows :x`))
	f.sync("s")
	f.says("s", ":z :n 5 ; :knows :x . :y :n 1 .")
	require.Equal(t, []string{"/b 304", "/c", "/d", "/root 304"}, h.requests())
	h.has("/d", version("m5", 5, "z", `; :n 5 ; :knows :x`)+version("m6", 6, "z", "; a as:Delete"))
	f.sync("s")
	f.says("s", ":y :n 1 .")
	require.Equal(t, []string{"/c", "/d", "/root 304"}, h.requests())
}

// Members may come in any order: later versions alone replace a resource that is held, and of two versions of one
// time the one that came last is kept.
func TestMembersInAnyOrder(t *testing.T) {
	t.Parallel()
	h := host(t)
	h.has("/root", stream+version("m9", 9, "x", ":n 9 .")[:0]+version("m9", 9, "x", "; :n 9")+version("m5", 5, "x", "; :n 5"))
	f := newFollower(t)
	f.follow(h.URL+"/root", "s", client.SubscribeOptions{Protocol: "ldes"})
	f.sync("s")
	f.says("s", ":x :n 9 .")
	members := version("m9", 9, "x", "; :n 9") + version("m5", 5, "x", "; :n 5")
	for _, next := range []struct{ more, says string }{
		{version("m7", 7, "x", "; :n 7"), ":x :n 9 ."},
		{version("m9b", 9, "x", "; :n 10"), ":x :n 10 ."},
		{version("m3", 3, "y", "; :n 3"), ":x :n 10 . :y :n 3 ."},
		{version("m2", 2, "y", "; a as:Delete"), ":x :n 10 . :y :n 3 ."},
		{version("m4", 4, "y", "; a as:Delete"), ":x :n 10 ."},
	} {
		members += next.more
		h.has("/root", stream+members)
		f.sync("s")
		f.says("s", next.says)
	}
}

// The terms of streams: paths that are lists, sequences, classes and paths of deletions, transactions, graphs of
// members, streams without versions, and without an order.
func TestTermsOfStreams(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ stream, members, says string }{
		"lists as paths": {
			`<s> tree:view <root> ; ldes:versionOfPath ( :of :it ) ; ldes:timestampPath ( :at :time ) .`,
			`<s> tree:member <a>, <b> . <b> :of [ :it :x ] ; :at [ :time "2026-01-01" ] ; :n 1 . <a> :of [ :it :x ] ; :at [ :time "2026-01-02" ] ; :n 2 .`,
			":x :n 2 .",
		},
		"a sequence of versions": {
			`<s> tree:view <root> ; ldes:versionOfPath :of ; ldes:timestampPath :at ; ldes:versionSequencePath :seq ; ldes:sequencePath :other .`,
			`<s> tree:member <a>, <b> . <a> :of :x ; :at "2026-01-01T00:00:00Z" ; :seq 12 ; :n 1 . <b> :of :x ; :at "2026-01-01T00:00:00Z" ; :seq 9 ; :n 2 .`,
			":x :n 1 .",
		},
		"a sequence alone": {
			`<s> tree:view <root> ; ldes:versionOfPath :of ; ldes:sequencePath :seq .`,
			`<s> tree:member <a>, <b> . <a> :of :x ; :seq 12 ; :n 1 . <b> :of :x ; :seq 9 ; :n 2 .`,
			":x :n 1 .",
		},
		"times of versions": {
			`<s> tree:view <root> ; ldes:versionOfPath :of ; ldes:timestampPath :at ; ldes:versionTimestampPath :when .`,
			`<s> tree:member <a>, <b> . <a> :of :x ; :at "2026-01-01T00:00:00Z" ; :when "2026-05-01T00:00:00.5+02:00" ; :n 1 . <b> :of :x ; :at "2026-01-02T00:00:00Z" ; :when "2026-04-30T22:00:00Z" ; :n 2 .`,
			`:x :n 1 ; :at "2026-01-01T00:00:00Z" .`,
		},
		"deletions by another path and class": {
			`<s> tree:view <root> ; ldes:versionOfPath :of ; ldes:timestampPath :at ; ldes:versionDeletePath :state ; ldes:versionDeleteObject :Gone .`,
			`<s> tree:member <a>, <b>, <c> . <a> :of :x ; :at "2026-01-01" ; :n 1 . <b> :of :x ; :at "2026-01-02" ; :state :Gone . <c> :of :y ; :at "2026-01-02" ; a as:Delete .`,
			":y a as:Delete .",
		},
		"graphs of members": {
			stream, version("a", 1, "x", "; :n 1") + `<a> { <a> :n 2 . :x :n 3 . :other :n 4 . } <b> { :x :n 5 . }`,
			":x :n 1 , 2 , 3 .",
		},
		"a transaction that is whole": {
			stream + `<s> ldes:transactionPath :in ; ldes:transactionFinalizedPath :last ; ldes:transactionFinalizedObject true .`,
			version("a", 1, "x", `; :in "1" ; :n 1`) + version("b", 2, "y", `; :in "1" ; :last true ; :n 2`) + version("c", 3, "x", `; :in "2" ; :n 3`) + version("d", 4, "z", `; :n 4`),
			":x :n 1 . :y :n 2 . :z :n 4 .",
		},
		"no versions": {
			`<s> tree:view <root> ; ldes:timestampPath :at .`,
			`<s> tree:member :a , :b . :a :at "2026-01-01" ; a as:Delete . :b :n 1 .`,
			`:a :at "2026-01-01" ; a as:Delete . :b :n 1 .`,
		},
		"no order": {
			`<s> tree:view <root> ; ldes:versionOfPath :of .`,
			`<s> tree:member <a> . <a> :of :x ; :n 1 . <s> tree:member <b> . <b> :of :x ; :n 2 .`,
			":x :n 2 .",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := host(t)
			h.has("/root", c.stream+"\n"+c.members)
			f := newFollower(t)
			f.follow(h.URL+"/root", "s", client.SubscribeOptions{Protocol: "ldes"})
			f.sync("s")
			f.says("s", c.says)
			require.Zero(t, f.sync("s").Applied)
			f.says("s", c.says)
		})
	}
}

// A transaction that ends later is taken then, though its pages are immutable.
func TestTransactionsEndLater(t *testing.T) {
	t.Parallel()
	h := host(t)
	root := stream + `<s> ldes:transactionPath :in ; ldes:transactionFinalizedPath :last .` + "\n"
	h.has("/root", root+leads("root", "a"))
	h.has("/a", "!"+version("a", 1, "x", `; :in "1" ; :n 1`))
	f := newFollower(t)
	f.follow(h.URL+"/root", "s", client.SubscribeOptions{Protocol: "ldes"})
	waiting := func() int {
		all, err := status.Named(t.Context(), f.db, time.Now())
		require.NoError(t, err)
		return all[0].Waiting
	}
	f.sync("s")
	f.says("s", "")
	require.Equal(t, 1, waiting())
	f.sync("s")
	require.Equal(t, 1, waiting())
	h.has("/root", root+leads("root", "a", "b"))
	h.has("/b", "!"+version("b", 2, "y", `; :in "1" ; :n 2 ; :last true`))
	f.sync("s")
	require.Zero(t, waiting())
	f.says("s", ":x :n 1 . :y :n 2 .")
}

// Keys of a document in JSON-LD without a meaning are left out, and named.
func TestWhatPagesSayWithoutMeaningIsNamed(t *testing.T) {
	t.Parallel()
	h := host(t)
	h.pages["/root"] = hostedPage{kind: "application/ld+json", body: `{"@context": {"tree": "` + tree + `", "ldes": "` + ldes + `", "@base": "` + h.URL + `/"},
		"@id": "s", "@type": "ldes:EventStream", "tree:view": {"@id": "root"},
		"tree:member": [{"@id": "` + e + `x", "` + e + `n": 1, "colour": "red"}, {"@id": "` + e + `y", "` + e + `n": 2, "colour": "blue"}]}`}
	var reports []string
	f := newFollower(t, func(c *client.Config) { c.Report = func(line string) { reports = append(reports, line) } })
	f.follow(h.URL+"/root", "s", client.SubscribeOptions{Protocol: "ldes"})
	f.sync("s")
	f.says("s", ":x :n 1 . :y :n 2 .")
	require.Contains(t, strings.Join(reports, "\n"), "colour")
	require.Contains(t, strings.Join(reports, "\n"), h.URL+"/root, line ")
}

// A document of several streams is followed by the one that the URL names. Without one it is refused with a list.
func TestSeveralStreamsOfADocument(t *testing.T) {
	t.Parallel()
	const second = "http://other.example.org/streams/t"
	for name, views := range map[string]string{"with a view": "; tree:view <root> .", "without views": "."} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := host(t)
			h.has("/root", "<root#s> a ldes:EventStream ; ldes:timestampPath :at "+views+" <"+second+"> a ldes:EventStream ; ldes:timestampPath :at "+views+
				"<root#s> tree:member :x . :x :n 1 . <"+second+"> tree:member :y . :y :n 2 .")
			f := newFollower(t)
			_, err := f.Subscribe(t.Context(), h.URL+"/root", client.SubscribeOptions{Protocol: "ldes", Name: "none"})
			var choice *follow.ChoiceError
			require.ErrorAs(t, err, &choice)
			require.Equal(t, []follow.Offer{{Title: h.URL + "/root#s", URL: h.URL + "/root#s"}, {Title: second, URL: h.URL + "/root#" + second}}, choice.Collections)
			for i, says := range []string{":x :n 1 .", ":y :n 2 ."} { // one node follows both
				as := fmt.Sprint("s", i)
				s := f.follow(choice.Collections[i].URL, as, client.SubscribeOptions{Protocol: "ldes"})
				require.Equal(t, choice.Collections[i].URL, s.FragmentsFeed)
				_, err = f.Subscribe(t.Context(), h.URL+"/root#"+choice.Collections[i].Title, client.SubscribeOptions{Protocol: "ldes", Name: "twice"})
				require.ErrorContains(t, err, "is subscribed to already, as \""+as)
				f.sync(as)
				f.says(as, says)
				require.Zero(t, f.sync(as).Applied)
			}
			h.has("/about", "<about#v> a ldes:EventStream ; tree:view <root> .")
			h.has("/root", "<about#v> a ldes:EventStream ; ldes:timestampPath :at "+views+" <root#s> a ldes:EventStream "+views+
				"<about#v> tree:member :z . :z :n 3 . <root#s> tree:member :x . :x :n 1 .")
			s := f.follow(h.URL+"/about#v", "described", client.SubscribeOptions{Protocol: "ldes"})
			require.Equal(t, h.URL+"/root#"+h.URL+"/about#v", s.FragmentsFeed)
			f.sync("described")
			f.says("described", ":z :n 3 .")
			_, err = f.Subscribe(t.Context(), h.URL+"/root#u", client.SubscribeOptions{Protocol: "ldes", Name: "none"})
			require.ErrorAs(t, err, &choice)
		})
	}
}

// A reading that is short, empty, old, or of another stream takes nothing away at once. One that comes back is right
// without a word, and a true loss is believed after three readings.
func TestStreamsInDoubt(t *testing.T) {
	t.Parallel()
	first, second := version("m1", 1, "x", "; :n 1"), version("m2", 2, "y", "; :n 2")
	whole, none := stream+leads("root", "a", "b"), "!<s> tree:view <root> ."
	for name, c := range map[string]struct {
		loss  follow.Loss
		spoil func(h *hosted)
		says  string // once it is believed
	}{
		"empty":         {follow.LossEmpty, func(h *hosted) { h.has("/a", none); h.has("/b", none) }, ""},
		"older":         {follow.LossOlder, func(h *hosted) { h.has("/root", stream+leads("root", "a")); h.has("/b", none) }, ":x :n 1 ."},
		"page gone":     {follow.LossOlder, func(h *hosted) { h.has("/root", stream+leads("root", "a")); delete(h.pages, "/b") }, ":x :n 1 ."},
		"other members": {follow.LossDiverged, func(h *hosted) { h.has("/b", "!"+version("m9", 3, "z", "; :n 3")) }, ":x :n 1 . :z :n 3 ."},
		"other content": {follow.LossDiverged, func(h *hosted) { h.has("/b", "!"+version("m2", 2, "y", "; :n 5")) }, ":x :n 1 . :y :n 5 ."},
		"another stream": {follow.LossFeed, func(h *hosted) {
			h.has("/root", strings.ReplaceAll(whole, "<s>", "<t>"))
			h.has("/a", "!"+strings.ReplaceAll(first, "<s>", "<t>"))
			h.has("/b", strings.ReplaceAll(none, "<s>", "<t>"))
		}, ":x :n 1 ."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := host(t)
			right := func() {
				h.has("/root", whole)
				h.has("/a", "!"+first)
				h.has("/b", "!"+second)
			}
			right()
			now := time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
			f := newFollower(t, func(c *client.Config) { c.Now = func() time.Time { return now } })
			f.follow(h.URL+"/root", "s", client.SubscribeOptions{Protocol: "ldes"})
			f.sync("s")
			f.sync("s") // pages are known to be immutable
			for range 2 {
				c.spoil(h)
				require.Equal(t, c.loss, f.doubts("s").Loss)
				f.says("s", ":x :n 1 . :y :n 2 .")
				right()
				f.sync("s")
				f.says("s", ":x :n 1 . :y :n 2 .")
			}
			c.spoil(h)
			for range 2 {
				f.doubts("s")
				f.says("s", ":x :n 1 . :y :n 2 .")
			}
			now = now.Add(time.Second)
			f.sync("s")
			f.says("s", c.says)
		})
	}
}

// A missing member is deleted if the stream keeps the last version of each resource, in the terms of today and of
// before, and after three readings alone. If the stream may drop more, or promises nothing, nothing is deleted.
func TestAbsence(t *testing.T) {
	t.Parallel()
	for policy, deletes := range map[string]bool{
		`ldes:versionAmount 1`: true,
		`ldes:versionAmount 1 ; ldes:fullLogDuration "P1D"^^xsd:duration`: true,
		`a ldes:LatestVersionSubset ; ldes:amount 1`:                      true,
		`ldes:versionAmount 1 ; ldes:versionDuration "P1D"`:               false,
		`ldes:fullLogDuration "P1D"`:                                      false,
		`a ldes:DurationAgoPolicy ; tree:value "P1D"`:                     false,
		`ldes:startingFrom "2026-01-01T00:00:00Z"`:                        false,
		`:none 1`: false,
	} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			h := host(t)
			root := stream + "<root> ldes:retentionPolicy [ " + policy + " ] .\n"
			h.has("/root", root+version("m1", 1, "x", "; :n 1")+version("m2", 2, "y", "; :n 2"))
			now := time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
			f := newFollower(t, func(c *client.Config) { c.Now = func() time.Time { return now } })
			f.follow(h.URL+"/root", "s", client.SubscribeOptions{Protocol: "ldes"})
			f.sync("s")
			h.has("/root", root+version("m2", 2, "y", "; :n 2"))
			f.sync("s")
			f.says("s", ":x :n 1 . :y :n 2 .")
			now = now.Add(25 * time.Hour) // all is read once a day
			for range 4 {
				_, err := f.Client.Sync(t.Context(), "s")
				if err != nil {
					require.ErrorAs(t, err, new(*follow.DoubtError))
				}
				now = now.Add(time.Hour)
			}
			if deletes {
				f.says("s", ":y :n 2 .")
			} else {
				f.says("s", ":x :n 1 . :y :n 2 .")
			}
		})
	}
}

// A page that a cache has cut, emptied, or put another page in its place, once, leaves nothing behind: the copy has
// all of the stream once the page is right again, or the reading has ended with an error.
func TestPagesThatWereCutOnce(t *testing.T) {
	t.Parallel()
	line := func(s, p, o string) string { return fmt.Sprintf("<%s%s> <%s> %s .\n", e, s, p, o) }
	version := func(id, resource string, second int) string {
		return line("s", tree+"member", "<"+e+id+">") + line(id, isVersionOf, "<"+e+resource+">") +
			line(id, "http://purl.org/dc/terms/modified", fmt.Sprintf(`"2026-01-01T00:00:%02dZ"`, second)) +
			line(id, e+"n", `"one"`) + line(id, e+"n", `"two"`)
	}
	right := line("s", tree+"view", "<http://example.org/view>") + version("m1", "x", 1) + version("m2", "y", 2)
	for name, body := range map[string]string{
		"a statement is missing":     strings.TrimSuffix(right, line("m2", e+"n", `"two"`)),
		"a member is missing":        strings.TrimSuffix(right, version("m2", "y", 2)),
		"a member has no statements": right[:strings.Index(right, "<"+e+"m2> <"+isVersionOf)],
		"all members are missing":    line("s", tree+"view", "<http://example.org/view>"),
		"it is empty":                "",
		"another page":               "<html>Please sign in</html>",
	} {
		for _, cache := range []string{"", "immutable"} {
			for _, after := range []int{0, 1, 3} { // right readings before
				t.Run(fmt.Sprint(name, " ", cache, " ", after), func(t *testing.T) {
					t.Parallel()
					h := host(t)
					h.has("/root", strings.ReplaceAll(stream, "<s>", "<"+e+"s>")+leads("root", "p", "q"))
					h.has("/q", "<"+e+"s> tree:member :m3 . :m3 dcterms:isVersionOf :z ; dcterms:modified \"2026-01-01T00:00:03Z\" ; :n 3 .")
					put := func(body, kind string) {
						h.mu.Lock()
						defer h.mu.Unlock()
						h.pages["/p"] = hostedPage{body: body, kind: kind, cache: cache}
						if after < 3 { // a cache that keeps the header
							h.pages["/p"] = hostedPage{body: body, kind: kind, cache: cache, etag: fmt.Sprintf(`"%t"`, body == right || cache != "")}
						}
					}
					put(right, "application/n-quads")
					now := time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
					f := newFollower(t, func(c *client.Config) { c.Now = func() time.Time { return now } })
					f.follow(h.URL+"/root", "s", client.SubscribeOptions{Protocol: "ldes"})
					for range after {
						f.sync("s")
					}
					kind := "application/n-quads"
					if name == "another page" {
						kind = "text/html"
					}
					put(body, kind)
					_, cut := f.Client.Sync(t.Context(), "s")
					if kind == "text/html" || body == "" {
						assert.True(t, cut != nil || after == 3, "the reading is no reading")
					}
					put(right, "application/n-quads")
					for range 2 {
						f.sync("s")
					}
					f.says("s", ":x :n \"one\" , \"two\" . :y :n \"one\" , \"two\" . :z :n 3 .")
				})
			}
		}
	}
}

// That holds of a page, too, before which more members came than are remembered one by one.
func TestOldPagesThatWereCutOnce(t *testing.T) {
	t.Parallel()
	h := host(t)
	h.has("/root", stream+leads("root", "p", "q"))
	var many strings.Builder
	for i := range follow.MaxSpan + 100 {
		fmt.Fprintf(&many, "<s> tree:member <m%d> . <m%[1]d> dcterms:isVersionOf <r%[1]d> ; dcterms:modified \"2026-02-01T00:00:00Z\" ; :n 1 .\n", i)
	}
	h.has("/q", "!"+many.String())
	h.has("/p", "!"+version("m1", 1, "x", "; :n 1"))
	f := newFollower(t)
	f.follow(h.URL+"/root", "s", client.SubscribeOptions{Protocol: "ldes"})
	f.sync("s")
	h.has("/p", "!"+version("m1", 1, "x", "; :n 1 , 2"))
	f.sync("s")
	n := 0
	for _, q := range f.graph("s") {
		if q.Subject.Value == e+"x" {
			n++
		}
	}
	require.Equal(t, 2, n)
}

// A document of ours that was cut on its way is an error at once, in any notation.
func TestCutDocumentsOfOurs(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.put(concepts(6, "one"))
	a := n.MustGet("/topicmaps/m/ldes.nq")
	lines := bytes.SplitAfter(a.Bytes, []byte("\n"))
	h := host(t)
	for i := range len(lines) - 1 {
		body := string(bytes.Join(slices.Delete(slices.Clone(lines), i, i+1), nil))
		body = strings.ReplaceAll(body, n.URL("/topicmaps/m/ldes"), h.URL+"/topicmaps/m/ldes")
		h.pages["/topicmaps/m/ldes"] = hostedPage{body: body, kind: "application/n-quads"}
		_, err := newFollower(t).Subscribe(t.Context(), h.URL+"/topicmaps/m/ldes", client.SubscribeOptions{Protocol: "ldes"})
		if i > 0 { // the number itself
			require.ErrorContains(t, err, "it was cut on its way", "%s", body)
		}
	}
}

// Paths of a kind that is not read are refused: the order of versions, or their resources, would be others.
func TestPathsOfOtherKinds(t *testing.T) {
	t.Parallel()
	h := host(t)
	for property, path := range map[string]string{
		"timestampPath": "[ <http://www.w3.org/ns/shacl#alternativePath> ( :a :b ) ]",
		"versionOfPath": "[ <http://www.w3.org/ns/shacl#inversePath> :a ]",
	} {
		h.has("/root", "<s> a ldes:EventStream ; tree:view <root> ; ldes:"+property+" "+path+" ; tree:member :m . :m :n 1 .")
		f := newFollower(t)
		_, err := f.Subscribe(t.Context(), h.URL+"/root", client.SubscribeOptions{Name: "s", Protocol: "ldes"})
		if err == nil {
			_, err = f.Client.Sync(t.Context(), "s")
		}
		require.ErrorContains(t, err, "ldes:"+property)
	}
}

// A stream states when a new member is expected. It is read then, but no earlier than caches on the way give another
// answer, and at least as often as the interval of the watcher.
func TestPollingIntervals(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		polling, root, open string // the statement of the stream, and Cache-Control of its pages
		every               time.Duration
	}{
		"none":                   {"", "max-age=5", "max-age=5", 0},
		"nothing of caches":      {"60", "", "", time.Minute},
		"caches are quick":       {"60", "max-age=5", "public, max-age=10", time.Minute},
		"caches are slow":        {"1", "max-age=50", "max-age=\"40\"", 40 * time.Second},
		"the open page is quick": {"1", "max-age=50", "Public, Max-Age=2", 2 * time.Second},
		"no number":              {`"PT1S"`, "", "", 0},
		"less than nothing":      {"-1", "", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := host(t)
			polling := ""
			if c.polling != "" {
				polling = "<s> ldes:pollingInterval " + c.polling + " .\n"
			}
			h.has("/root", stream+polling+leads("root", "old", "open"))
			h.has("/old", "!"+version("m1", 1, "x", "; :n 1"))
			h.has("/open", version("m2", 2, "y", "; :n 2"))
			for path, cache := range map[string]string{"/root": c.root, "/open": c.open} {
				p := h.pages[path]
				p.cache = cache
				h.pages[path] = p
			}
			f := newFollower(t)
			f.follow(h.URL+"/root", "s", client.SubscribeOptions{Protocol: "ldes"})
			for range 3 {
				require.Equal(t, c.every, f.sync("s").Every)
			}
		})
	}
}

// A watcher reads at the time that the stream states, if that is earlier than by its interval.
func TestWatchersPoll(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		polling  string
		interval time.Duration
	}{{"1", time.Hour}, {"3600", time.Millisecond}} {
		h := host(t)
		h.has("/root", stream+"<s> ldes:pollingInterval "+c.polling+" .\n"+version("m1", 1, "x", "; :n 1"))
		f := newFollower(t)
		f.follow(h.URL+"/root", "s", client.SubscribeOptions{Protocol: "ldes"})
		rounds := make(chan *client.Round, 100)
		w, err := watch.New(f.Client, watch.Options{Store: f.db, Interval: c.interval, Done: func(_ string, r *client.Round, err error) {
			assert.NoError(t, err)
			select {
			case rounds <- r:
			default:
			}
		}})
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { assert.NoError(t, w.Run(ctx)) })
		for range 3 {
			<-rounds
		}
		stop()
		running.Wait()
	}
}

// Members without times are in the order in which they came, also where a page has them in another one later.
func TestOrderOfArrival(t *testing.T) {
	t.Parallel()
	h := host(t)
	says := map[string]string{"e1": `"1"`, "e2": `"2"`, "e3": `"3"`, "e4": `"4"`}
	has := func(members ...string) {
		body := "<s> a ldes:EventStream ; tree:view <root> ; ldes:versionOfPath dcterms:isVersionOf .\n"
		for _, m := range members {
			body += fmt.Sprintf("<s> tree:member :%s . :%[1]s dcterms:isVersionOf :x ; :n %s .\n", m, says[m])
		}
		h.has("/root", body)
	}
	f := newFollower(t)
	has("e1", "e2")
	f.follow(h.URL+"/root", "s", client.SubscribeOptions{Protocol: "ldes"})
	for _, next := range []struct {
		members []string
		n       string
	}{
		{[]string{"e1", "e2"}, "2"}, {[]string{"e2", "e1"}, "2"}, {[]string{"e3", "e2", "e1"}, "3"}, {[]string{"e4", "e3", "e1", "e2"}, "4"},
	} {
		has(next.members...)
		f.sync("s")
		f.says("s", `:x :n "`+next.n+`" .`)
	}
}

// A member may have all of its statements in a graph of its name.
func TestMembersInGraphs(t *testing.T) {
	t.Parallel()
	h := host(t)
	h.has("/root", stream+"<s> tree:member :m . GRAPH :m { :m dcterms:isVersionOf :x ; dcterms:modified \"2026-01-01T00:00:00Z\" ; :n 1 . }")
	f := newFollower(t)
	f.follow(h.URL+"/root", "s", client.SubscribeOptions{Protocol: "ldes"})
	f.sync("s")
	f.says("s", ":x :n 1 .")
}

// A collection with another name is the same stream: members read before count.
func TestStreamsThatAreRenamed(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.put(concepts(6, "one"))
	var reported []string
	f := newFollower(t, func(c *client.Config) { c.Report = func(line string) { reported = append(reported, line) } })
	f.follow(n.URL("/topicmaps/m/ldes"), "s", client.SubscribeOptions{Protocol: "ldes"})
	f.sync("s")
	before := f.graph("s")
	_, err := n.Store.RenameCollection(t.Context(), "m", "renamed")
	require.NoError(t, err)
	_, err = f.Client.Sync(t.Context(), "s")
	require.NotErrorAs(t, err, new(*follow.DoubtError))
	require.Contains(t, strings.Join(reported, "\n"), "source set-url s "+n.URL("/topicmaps/renamed/ldes")+" --accept")
	require.True(t, rdf.Isomorphic(before, f.graph("s")))
}

// A member that is a version of two resources, or has no statements, ends the reading: its meaning is not clear.
func TestMembersThatAreUnclear(t *testing.T) {
	t.Parallel()
	h := host(t)
	for body, says := range map[string]string{
		version("m1", 1, "x", "; dcterms:isVersionOf :y"): "a version of two resources",
		"<s> tree:member :m .":                            "says nothing of it",
	} {
		h.has("/root", stream+body)
		f := newFollower(t)
		f.follow(h.URL+"/root", "s", client.SubscribeOptions{Protocol: "ldes"})
		_, err := f.Client.Sync(t.Context(), "s")
		require.ErrorContains(t, err, says)
	}
}

// A stream that cannot be followed is refused with the reason.
func TestWhatIsNoStream(t *testing.T) {
	t.Parallel()
	h := host(t)
	h.has("/nothing", ":a :b :c .")
	h.has("/several", "<s> tree:view <root> . <t> tree:view <other> .")
	h.has("/circle", "<s> tree:view <circle2> .")
	h.has("/circle2", "<s> tree:view <circle> .")
	h.has("/broken", "<s> tree:view")
	h.pages["/text"] = hostedPage{body: "hello", kind: "text/html"}
	f := newFollower(t)
	for path, says := range map[string]string{
		"/nothing": "this is no event stream", "/several": "offers 2 collections", "/circle": "this is no event stream",
		"/text": "(text/html)", "/none": "404", "/broken": "/broken:",
	} {
		_, err := f.Subscribe(t.Context(), h.URL+path, client.SubscribeOptions{Protocol: "ldes"})
		assert.ErrorContains(t, err, says, path)
	}
	_, err := f.Subscribe(t.Context(), h.URL+"/root", client.SubscribeOptions{Protocol: "ldes", Asked: store.Asked{Format: "turtle"}})
	require.Error(t, err)
}

// A stream is found from what describes it, and from a page whose header leads to it.
func TestStreamsAreFound(t *testing.T) {
	t.Parallel()
	h := host(t)
	h.has("/root", stream+version("m1", 1, "x", "; :n 1"))
	h.has("/about", "<s> a ldes:EventStream ; tree:view <root> .")
	h.has("/bare", `<s> tree:member :a . :a :n 1 .`)
	f := newFollower(t)
	h.has("/described", strings.ReplaceAll(strings.ReplaceAll(stream, "<s>", "<described>"), "<root>", "<minimal>"))
	h.has("/minimal", strings.ReplaceAll(version("m1", 1, "x", "; :n 1")+version("m2", 2, "x", "; :n 2"), "<s>", "<described>"))
	require.Equal(t, h.URL+"/minimal", f.follow(h.URL+"/described", "d", client.SubscribeOptions{Protocol: "ldes"}).FragmentsFeed)
	f.sync("d")
	f.says("d", ":x :n 2 .")
	require.Equal(t, h.URL+"/root", f.follow(h.URL+"/about", "a", client.SubscribeOptions{Protocol: "ldes"}).FragmentsFeed)
	require.Equal(t, h.URL+"/bare", f.follow(h.URL+"/bare", "b", client.SubscribeOptions{Protocol: "ldes"}).FragmentsFeed)
	n := start(t)
	n.put(concepts(2, "one"))
	s := f.follow(n.URL("/topicmaps/m"), "m", client.SubscribeOptions{Protocol: "ldes"})
	require.Equal(t, n.URL("/topicmaps/m/ldes"), s.FragmentsFeed)
	f.sync("m")
}

// A program that reads no RDF reports it, and leaves the map as it is.
func TestWithoutRDF(t *testing.T) {
	t.Parallel()
	h := host(t)
	h.has("/root", stream+version("m1", 1, "x", "; :n 1"))
	f := newFollower(t, func(c *client.Config) { c.Formats = nil })
	f.follow(h.URL+"/root", "s", client.SubscribeOptions{Protocol: "ldes"})
	_, err := f.Client.Sync(t.Context(), "s")
	require.ErrorContains(t, err, "its records are followed by ldes")
}

// A member that cannot be taken waits in quarantine, and the resource stays as it is held. The other members come,
// and the next version of the resource repairs it.
func TestMembersInQuarantine(t *testing.T) {
	t.Parallel()
	h := host(t)
	first := version("m1", 1, "x", "; :n 1")
	h.has("/root", stream+first)
	f := newFollower(t)
	f.follow(h.URL+"/root", "s", client.SubscribeOptions{Protocol: "ldes"})
	f.sync("s")
	const own = "@prefix t: <" + served.Own + "/> . @prefix r: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .\n"
	bad := version("m2", 2, "x", "; :n 2") + own + `<m2> { :x :p "<b>" . _:s a t:Statement ; r:subject :x ; r:predicate :p ; r:object "<b>" ; t:datatype xsd:anyType . }` + "\n"
	h.has("/root", stream+first+bad+version("m3", 3, "y", "; :n 3"))
	for range 2 {
		r, err := f.Client.Sync(t.Context(), "s")
		require.NoError(t, err)
		require.Equal(t, 1, r.Quarantined)
		f.says("s", ":x :n 1 . :y :n 3 .")
	}
	h.has("/root", stream+first+bad+version("m3", 3, "y", "; :n 3")+version("m4", 4, "x", "; :n 4"))
	f.sync("s")
	f.says("s", ":x :n 4 . :y :n 3 .")
}

// A member of 10 MB is taken like others.
func TestLargeMembers(t *testing.T) {
	t.Parallel()
	h := host(t)
	large := strings.Repeat("large ", 10<<20/6)
	h.has("/root", stream+version("m1", 1, "x", `; :n "`+large+`"`)+version("m2", 2, "y", "; :n 2"))
	f := newFollower(t)
	f.follow(h.URL+"/root", "s", client.SubscribeOptions{Protocol: "ldes"})
	f.sync("s")
	f.says("s", `:x :n "`+large+`" . :y :n 2 .`)
}
