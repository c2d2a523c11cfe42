package server_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/publish"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/testenv"
	maps "github.com/tmshare/tmshare/testdata/xtm"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// find follows ?si= to a topic.
func (n *node) find(name, si string) answer {
	n.t.Helper()
	return n.get("/topicmaps/" + name + "/topics?si=" + url.QueryEscape(si))
}

func TestSubjectIdentifiersLeadToTheTopic(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.publish("towns", topicMap(identified("oslo", []string{"http://psi.example.org/oslo", "http://psi.example.org/Christiania?a=b&amp;c+d"}, "Oslo")))
	for _, si := range []string{"http://psi.example.org/oslo", "HTTP://psi.example.org/%6Fslo", "http://psi.example.org/Christiania?a=b&c+d"} {
		a := n.find("towns", si)
		require.Equal(t, http.StatusSeeOther, a.StatusCode, "%s: %s", si, a.body)
		assert.Equal(t, n.url("/topicmaps/towns/topics/"+fragment.Key("http://psi.example.org/oslo")), a.Header.Get("Location"))
		assert.Contains(t, string(n.mustGet(a.Header.Get("Location")).body), "<baseNameString>Oslo<")
	}
	for _, query := range []string{"", "?", "?si=", "?si=oslo", "?si=%00", "?other=http://psi.example.org/oslo", "?si=http://a/%0A"} {
		a := n.get("/topicmaps/towns/topics" + query)
		assert.Equal(t, http.StatusBadRequest, a.StatusCode, query)
		assert.Contains(t, string(a.body), "an absolute IRI")
	}
	assert.Equal(t, http.StatusNotFound, n.find("towns", "http://psi.example.org/bergen").StatusCode)
	assert.Equal(t, http.StatusNotFound, n.find("none", "http://psi.example.org/oslo").StatusCode)
}

// …/topics/{key} serves the bytes of the topic's last entry, and keeps its
// address for life, also after deletion and re-creation.
func TestTopicAddressServesTheLastEntryForLife(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.publish("small", small())
	address := n.find("small", "http://psi.example.org/tromsø").Header.Get("Location")
	same := func() document {
		t.Helper()
		e := n.feed("/topicmaps/small/fragments").Entries[0]
		for form, href := range e.typed(t, "topicmapdata") {
			for _, coding := range []string{"identity", "gzip"} {
				a := n.mustGet(address, "Accept", form, "Accept-Encoding", coding)
				assert.Equal(t, string(n.mustGet(href, "Accept-Encoding", coding).body), string(a.body))
			}
		}
		return e
	}
	assert.Contains(t, string(n.mustGet(address).body), ">Tromsø<")
	n.mustPut("small", small("Tromsø", "Romsa"))
	same()
	assert.Contains(t, string(n.mustGet(address).body), ">Romsa<")

	published(t, n.do(http.MethodDelete, address, nil))
	e := same()
	assert.Equal(t, []string{"deleted"}, e.State)
	assert.NotContains(t, string(n.mustGet(address).body), ">Romsa<")
	assert.Equal(t, http.StatusNotFound, n.find("small", "http://psi.example.org/tromsø").StatusCode)

	n.mustPut("small", small())
	e = same()
	assert.Equal(t, []string{"live"}, e.State)
	assert.Equal(t, address, n.find("small", "http://psi.example.org/tromsø").Header.Get("Location"))
}

// The fragment of a first entry keeps what its topic was like.
func TestFirstFragmentKeepsTheStateBeforeTheFirstChange(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.publish("small", small())
	entries, _ := n.history("/topicmaps/small/fragments")
	first := dataURL(t, entries[entryOf(entries, "http://psi.example.org/oslo")])
	var was []answer
	for _, coding := range []string{"identity", "gzip"} {
		a := n.mustGet(first, "Accept-Encoding", coding)
		assert.Equal(t, forEver, a.Header.Get("Cache-Control"))
		assert.NotEmpty(t, a.Header.Get("ETag"))
		assert.Contains(t, string(a.plain(t)), ">Oslo<")
		was = append(was, a)
	}
	same := func() {
		for i, coding := range []string{"identity", "gzip"} {
			a := n.mustGet(first, "Accept-Encoding", coding)
			assert.Equal(t, string(was[i].plain(t)), string(a.plain(t)))
			assert.Equal(t, was[i].Header.Get("ETag"), a.Header.Get("ETag"))
		}
	}
	n.mustPut("small", small("Oslo", "Christiania"))
	same()
	published(t, n.do(http.MethodDelete, n.find("small", "http://psi.example.org/oslo").Header.Get("Location"), nil))
	same()
}

// In RDF, too, the fragment of a first entry keeps what its topic was like.
func TestFirstFragmentInRDFKeepsTheStateBeforeTheFirstChange(t *testing.T) {
	t.Parallel()
	n := start(t)
	require.Equal(t, http.StatusCreated, n.do(http.MethodPut, "/topicmaps/small", strings.NewReader(`{"rdf": true}`), "Content-Type", "application/json").StatusCode)
	n.mustPut("small", small())
	entries, _ := n.history("/topicmaps/small/fragments")
	first := dataURL(t, entries[entryOf(entries, "http://psi.example.org/oslo")]) + ".ttl"
	was := n.mustGet(first)
	assert.Equal(t, forEver, was.Header.Get("Cache-Control"))
	assert.Contains(t, string(was.body), `"Oslo"`)
	same := func() {
		a := n.mustGet(first)
		assert.Equal(t, string(was.body), string(a.body))
		assert.Equal(t, was.Header.Get("ETag"), a.Header.Get("ETag"))
		n.sameHead(a)
	}
	n.mustPut("small", small("Oslo", "Christiania"))
	same()
	published(t, n.do(http.MethodDelete, n.find("small", "http://psi.example.org/oslo").Header.Get("Location"), nil))
	same()
}

func entryOf(entries []document, si string) int {
	for i := range entries {
		if entries[i].TopicSI[0] == si {
			return i
		}
	}
	return -1
}

// hub is a class whose instances have identifiers so long that its fragment is large.
func hub(name string) []byte {
	var parts []string
	if name != "" {
		parts = append(parts, topic("hub", name))
	}
	long := strings.Repeat("/a-long-identifier", 150)
	for i := range 110 {
		typ := `<instanceOf><topicRef xlink:href="#hub"/></instanceOf>`
		id := fmt.Sprintf("instance-%d", i)
		if name == "" {
			typ = ""
		}
		parts = append(parts, fmt.Sprintf(`<topic id=%q>%s<subjectIdentity><subjectIndicatorRef xlink:href="http://psi.example.org%s/%d"/></subjectIdentity></topic>`, id, typ, long, i))
	}
	return topicMap(parts...)
}

// A fragment is what its topic was after the commit of its entry, however large it is and whatever becomes of the
// topic.
func TestLargeFragmentsStayWhatTheyWere(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	n := start(t, documentSize(10_000))
	n.publish("hub", hub("Hub"))
	n.mustPut("hub", hub("Wheel"))
	entries, _ := n.history("/topicmaps/hub/fragments")
	i := entryOf(entries, "http://psi.example.org/hub")
	require.Equal(t, 0, i)
	address := n.find("hub", "http://psi.example.org/hub").Header.Get("Location")
	first := map[string]answer{}
	for _, ext := range []string{".xtm1", ".xtm21"} {
		a := n.mustGet(dataURL(t, entries[i]) + ext)
		assert.Greater(t, len(a.body), 256<<10)
		assert.Contains(t, string(a.body), ">Wheel<")
		assert.Equal(t, forEver, a.Header.Get("Cache-Control"))
		assert.Equal(t, http.StatusOK, n.do(http.MethodHead, dataURL(t, entries[i])+ext, nil).StatusCode)
		assert.Less(t, len(n.mustGet(address+ext).body), 1<<10, "the record is without instances")
		first[ext] = a
	}
	published(t, n.put("hub", hub(""), "TMShare-Max-Delete", "all")) // all lose their types
	for ext, a := range first {
		again := n.mustGet(dataURL(t, entries[i]) + ext)
		assert.Equal(t, string(a.body), string(again.body))
		assert.Equal(t, a.Header.Get("ETag"), again.Header.Get("ETag"))
		assert.Equal(t, http.StatusNotModified, n.do(http.MethodGet, dataURL(t, entries[i])+ext, nil, "If-None-Match", a.Header.Get("ETag")).StatusCode)
	}
	assert.Contains(t, string(n.mustGet(address).body), "http://psi.example.org/hub", "the tombstone")
}

func TestWhatIsNotThereIsNotFound(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.publish("small", small())
	e := n.feed("/topicmaps/small/fragments").Entries[0]
	next := dataURL(t, e)
	next = next[:len(next)-2] + "0b" // the id that the eleventh entry will have
	require.Len(t, n.feed("/topicmaps/small/fragments").Entries, 10)
	const id = "/00000000-0000-4000-8000-000000000000"
	for _, path := range []string{
		"/topicmap", "/topicmaps/none.html", "/topicmaps/none/types.html", "/topicmaps/small/fragments" + id + ".html", "/topicmaps/small/topics/" + strings.Repeat("a", 26) + ".html", "/topicmaps/small/topic/none", "/pages/style.css",
		"/topicmaps/", "/topicmaps/none", "/topicmaps/none.atom", "/topicmaps/none/fragments", "/topicmaps/none/snapshots",
		"/topicmaps/none/snapshots/current", "/topicmaps/none/snapshots" + id, "/topicmaps/none/fragments" + id, "/topicmaps/none/topics/" + strings.Repeat("a", 26),
		"/topicmaps/small/", "/topicmaps/small/fragments/", "/topicmaps/small/other", "/topicmaps/Small", "/topicmaps/smal", "/topicmaps/small0",
		"/topicmaps/small/fragments" + id, "/topicmaps/small/fragments" + id + ".atom", "/topicmaps/small/fragments" + id + ".xtm21",
		"/topicmaps/small/fragments/" + strings.Repeat("-", 36), "/topicmaps/small/fragments/x", next, next + ".xtm1", next + ".atom",
		"/topicmaps/small/snapshots" + id, "/topicmaps/small/snapshots" + id + ".atom", "/topicmaps/small/snapshots" + id + ".xtm1", "/topicmaps/small/snapshots/x",
		"/topicmaps/small/topics/" + strings.Repeat("a", 26), "/topicmaps/small/topics/x", "/topicmaps/small/snapshots/current.gz",
	} {
		a := n.get(path)
		assert.Equal(t, http.StatusNotFound, a.StatusCode, path)
		assert.Equal(t, "no-store", a.Header.Get("Cache-Control"))
		assert.NotEmpty(t, a.body)
	}
	n.mustPut("small", small("Oslo", "Christiania"))
	assert.Equal(t, http.StatusOK, n.get(next).StatusCode, "now it is there: nothing may have cached that it is not")
}

const psi = "http://psi.example.org/"

// postTopics posts what a document says of some topics; named are subject
// identifiers for ?topic=.
func (n *node) postTopics(name string, doc []byte, named []string, headers ...string) answer {
	n.t.Helper()
	return n.do(http.MethodPost, "/topicmaps/"+name+"/topics?"+url.Values{"topic": named}.Encode(), bytes.NewReader(doc), headers...)
}

// A posted topic is replaced by what the document says: names, occurrences,
// associations. All else stays. Entries are published as for a whole version.
func TestPostedTopicsAreReplaced(t *testing.T) {
	t.Parallel()
	stubs := topic("part-of", "") + topic("role-1", "") + topic("role-2", "") + topic("norway", "") + topic("note", "")
	for name, c := range map[string]struct {
		doc     []byte
		named   []string
		want    publish.Published
		entries []string
		whole   []byte // the version that would have done the same
	}{
		"rename": {
			topicMap(topic("oslo", "Christiania", note("note", "the capital")), association("part-of", "oslo", "norway"), stubs), nil,
			publish.Published{Updated: 1, Topics: 10}, []string{"+ oslo"}, small("Oslo", "Christiania")},
		"an association left out": {
			topicMap(topic("oslo", "Oslo", note("note", "the capital")), stubs), nil,
			publish.Published{Updated: 2, Topics: 10}, []string{"+ norway", "+ oslo"},
			replace(t, small(), association("part-of", "oslo", "norway"), "")},
		"a new topic": {
			topicMap(topic("bodø", "Bodø"), association("part-of", "bodø", "norway"), stubs), nil,
			publish.Published{Added: 1, Updated: 1, Topics: 11}, []string{"+ bodø", "+ norway"},
			replace(t, small(), "</topicMap>", topic("bodø", "Bodø")+association("part-of", "bodø", "norway")+"</topicMap>")},
		"named, and nothing said of it": {
			topicMap(topic("oslo", "")), []string{psi + "oslo"},
			publish.Published{Updated: 2, Topics: 10}, []string{"+ norway", "+ oslo"},
			replace(t, replace(t, small(), association("part-of", "oslo", "norway"), ""), topic("oslo", "Oslo", note("note", "the capital")), topic("oslo", ""))},
		"a stub of a topic that is not there": {
			topicMap(topic("tromsø", "Tromsø", note("remark", "up north")), topic("remark", ""), topic("unused", "")), nil,
			publish.Published{Added: 1, Updated: 1, Topics: 11}, []string{"+ remark", "+ tromsø"},
			replace(t, small(), topic("tromsø", "Tromsø"), topic("remark", "")+topic("tromsø", "Tromsø", note("remark", "up north")))},
		"another id": {
			topicMap(strings.ReplaceAll(topic("oslo", "Oslo", note("note", "the capital")), `id="oslo"`, `id="bergen"`), association("part-of", "bergen", "norway"), stubs), nil,
			publish.Published{Topics: 10}, nil, small()},
		"two topics": {
			topicMap(identified("x", []string{psi + "bergen", psi + "tromsø"}, "Both"), association("part-of", "x", "norway"), stubs), nil,
			publish.Published{Updated: 2, Topics: 9}, []string{"+ bergen", "+ tromsø"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := start(t)
			before := n.publish("small", small())
			p := published(t, n.postTopics("small", c.doc, c.named))
			c.want.Collection, c.want.LastChange = "small", n.feed("/topicmaps/small").updated()
			assert.Equal(t, c.want, p)
			assert.Equal(t, c.entries, n.log("small", before.Topics))
			if c.whole != nil {
				assert.Equal(t, n.expected("small", c.whole), n.current("small"))
			}
			again := published(t, n.postTopics("small", c.doc, c.named))
			assert.Equal(t, publish.Published{Collection: "small", Topics: p.Topics, LastChange: p.LastChange}, again, "the same again")
		})
	}
}

// Whatever way a document is written, sent and packed, it says the same.
func TestPostedInAnyForm(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.publish("small", small())
	xtm1 := topicMap(topic("tromsø", "Romsa"))
	xtm2 := func(version, name string) []byte {
		return []byte(`<topicMap xmlns="http://www.topicmaps.org/xtm/" version="` + version + `"><topic id="t"><subjectIdentifier href="` + psi + `tromsø"/><name><value>` + name + `</value></name></topic></topicMap>`)
	}
	updated := func(a answer) int { t.Helper(); return published(t, a).Updated }
	assert.Equal(t, 1, updated(n.postTopics("small", xtm1, nil)))
	assert.Equal(t, 0, updated(n.postTopics("small", xtm2("2.0", "Romsa"), nil, "Content-Type", "application/x-tm+xml;version=2.0")))
	assert.Equal(t, 0, updated(n.postTopics("small", xtm2("2.1", "Romsa"), nil, "Content-Type", "application/x-tm+xml;version=2.1")))
	assert.Equal(t, 1, updated(n.postTopics("small", xtm2("2.1", "Tromso"), nil, "Content-Type", "application/x-www-form-urlencoded")), "what curl says")
	assert.Equal(t, 1, updated(n.postTopics("small", gzipped(t, xtm1), nil, "Content-Type", "text/xml", "Content-Encoding", "gzip")))
	assert.Equal(t, 0, updated(n.postTopics("small", gzipped(t, xtm1), nil, "Content-Type", "application/gzip")))
	assert.Contains(t, n.current("small"), "Romsa")
}

// What the server serves of a topic, posted back, changes nothing; edited, it
// changes that topic, and the instances of a class keep what is said of them.
func TestServedFragmentIsEditedAndPosted(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.publish("egov", maps.EGov)
	class := "https://psi.egov.example.org/type/topic-type"
	a := n.find("egov", class)
	record := n.mustGet(a.Header.Get("Location") + ".xtm21").body
	assert.Zero(t, bytes.Count(record, []byte("iso13250/model/instance")), "the record is without instances")
	p := published(t, n.postTopics("egov", record, nil))
	assert.Zero(t, p.Added+p.Updated+p.Deleted)
	entries, _ := n.history("/topicmaps/egov/fragments")
	f := n.mustGet(dataURL(t, entries[entryOf(entries, class)]) + ".xtm21").body
	require.Greater(t, bytes.Count(f, []byte("iso13250/model/instance")), 30, "a class with instances")
	p = published(t, n.postTopics("egov", f, nil))
	assert.Zero(t, p.Added+p.Updated+p.Deleted)
	edited := replace(t, f, "<value>Topic type</value>", "<value>Kind</value>")
	p = published(t, n.postTopics("egov", edited, nil))
	assert.Equal(t, 1, p.Updated)
	assert.Zero(t, p.Added+p.Deleted)
	tm, err := xtm.Read(t.Context(), bytes.NewReader(maps.EGov), xtm.Options{Base: tmdm.Locator(n.sp("egov"))})
	require.NoError(t, err)
	for _, name := range tm.TopicBySubjectIdentifier(tmdm.Locator(class)).Names() {
		if name.Value() == "Topic type" {
			name.SetValue("Kind")
		}
	}
	var whole bytes.Buffer
	_, err = xtm.Write(&whole, tm, xtm.WriteOptions{Version: xtm.V21, Base: tmdm.Locator(n.sp("egov"))})
	require.NoError(t, err)
	assert.Equal(t, n.expected("egov", whole.Bytes()), n.current("egov"))
}

func TestRefusedPostsChangeNothing(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	n := start(t, func(c *server.Config) { c.MaxBody = maxBody })
	n.publish("small", small())
	n.publish("egov", maps.EGov)
	before, egov := n.state("small"), n.state("egov")
	oslo := topicMap(topic("oslo", "Oslo"))
	for name, c := range map[string]struct {
		collection string
		doc        []byte
		named      []string
		headers    []string
		status     int
		says       []string
	}{
		"no such map":                       {"none", oslo, nil, nil, 404, []string{`"none"`}},
		"not XML":                           {"small", []byte("oslo"), nil, nil, 422, []string{":1:1:"}},
		"a topic not in the document":       {"small", oslo, []string{psi + "bergen"}, nil, 422, []string{psi + "bergen"}},
		"a name that is no identifier":      {"small", oslo, []string{"oslo"}, nil, 400, []string{"?topic=oslo"}},
		"stubs alone":                       {"small", topicMap(topic("oslo", "")), nil, nil, 422, []string{"describes no topic"}},
		"an association of stubs":           {"small", topicMap(topic("tromsø", "T"), topic("oslo", ""), topic("role-1", ""), topic("part-of", ""), association("part-of", "oslo")), nil, nil, 422, []string{"association of type topic " + psi + "part-of", "no player"}},
		"no identifier":                     {"small", topicMap(`<topic id="x"><baseName><baseNameString>X</baseNameString></baseName></topic>`), nil, nil, 422, []string{n.sp("small") + "#x", "subject identifier"}},
		"a stub of two topics":              {"small", topicMap(topic("tromsø", "T", note("n", "x")), identified("n", []string{psi + "oslo", psi + "bergen"}, "")), nil, nil, 422, []string{psi + "oslo", psi + "bergen", "several topics"}},
		"an image":                          {"small", oslo, nil, []string{"Content-Type", "image/png"}, 415, []string{"image/png"}},
		"JSON":                              {"small", []byte("{}"), nil, []string{"Content-Type", "application/json"}, 415, []string{"application/json"}},
		"a coding":                          {"small", oslo, nil, []string{"Content-Encoding", "br"}, 415, []string{"br"}},
		"too large":                         {"small", append(bytes.Clone(oslo), bytes.Repeat([]byte(" "), maxBody)...), nil, nil, 413, []string{"300000"}},
		"half of gzip":                      {"small", gzipped(t, oslo)[:60], nil, nil, 400, []string{"request body"}},
		"an old ETag":                       {"small", oslo, nil, []string{"If-Match", `"old"`}, 412, []string{"has changed since"}},
		"not if it is there":                {"small", oslo, nil, []string{"If-None-Match", `*`}, 412, []string{"is there"}},
		"a class merged, that has mentions": {"egov", topicMap(identified("x", []string{"https://psi.egov.example.org/type/permit", "https://psi.egov.example.org/type/service"}, "x")), nil, nil, 409, []string{"statements of \"Entitlement\"", "an association of ", "https://psi.egov.example.org/type/service"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := n.postTopics(c.collection, c.doc, c.named, append([]string{"Accept", "text/plain"}, c.headers...)...)
			assert.Equal(t, c.status, a.StatusCode, "%s", a.body)
			for _, s := range c.says {
				assert.Contains(t, string(a.body), s)
			}
			assert.Equal(t, before, n.state("small"))
		})
	}
	assert.Equal(t, egov, n.state("egov"))
	assert.Empty(t, n.errors())
}

// An id names a topic in its document only.
func TestIDsOfTopicsDoNotMeetAcrossDocuments(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.publish("towns", topicMap(`<topic id="t1"><baseName><baseNameString>First</baseNameString></baseName></topic>`))
	was := n.sp("towns") + "topic/t1"
	p := published(t, n.postTopics("towns", topicMap(identified("t1", []string{psi + "other"}, "Second")), nil))
	assert.Equal(t, 1, p.Added)
	assert.Zero(t, p.Updated)
	current := n.current("towns")
	assert.Contains(t, current, "First")
	assert.Contains(t, current, "Second")

	p = published(t, n.postTopics("towns", topicMap(identified("x", []string{was, psi + "first"}, "First!")), nil))
	assert.Equal(t, 1, p.Updated, "the identifier that the server assigned leads to the topic")
	p = published(t, n.postTopics("towns", topicMap(identified("x", []string{psi + "first"}, "First")), nil))
	assert.Equal(t, 1, p.Updated, "which keeps it, though the document does not give it")
	assert.Equal(t, http.StatusSeeOther, n.find("towns", was).StatusCode)
}

// ?si= leads DELETE to a topic by any of its subject identifiers.
func TestTopicIsDeletedByItsSubjectIdentifier(t *testing.T) {
	t.Parallel()
	n := start(t)
	c := n.publish("towns", topicMap(identified("oslo", []string{psi + "oslo", psi + "christiania"}, "Oslo"), topic("bergen", "Bergen", note("bergen", "x"))))
	remove := func(si string, headers ...string) answer {
		return n.do(http.MethodDelete, "/topicmaps/towns/topics?"+url.Values{"si": {si}}.Encode(), nil, headers...)
	}
	tag := n.mustGet("/topicmaps/towns").Header.Get("ETag")
	assert.Equal(t, http.StatusBadRequest, remove("").StatusCode)
	assert.Equal(t, http.StatusBadRequest, n.do(http.MethodDelete, "/topicmaps/towns/topics", nil).StatusCode)
	assert.Equal(t, http.StatusNotFound, remove(psi+"stavanger").StatusCode)
	assert.Equal(t, http.StatusPreconditionFailed, remove(psi+"oslo", "If-Match", `"x"`).StatusCode)
	p := published(t, remove(psi+"christiania", "If-Match", tag))
	assert.Equal(t, publish.Published{Collection: "towns", Deleted: 1, Topics: c.Topics - 1, LastChange: p.LastChange}, p)
	assert.Equal(t, []string{"- oslo"}, n.log("towns", c.Topics))
	assert.Zero(t, published(t, remove(psi+"oslo")).Deleted, "it is not there any more")

	n.mustPut("towns", topicMap(topic("bergen", "Bergen"), topic("oslo", "Oslo", note("bergen", "x"))))
	a := remove(psi + "bergen")
	assert.Equal(t, http.StatusConflict, a.StatusCode, "%s", a.body)
	assert.Contains(t, string(a.body), `statements of \"Oslo\"`)
	assert.Equal(t, http.StatusMethodNotAllowed, n.do(http.MethodPut, "/topicmaps/towns/topics", nil).StatusCode)
	_, err := fragment.Read(t.Context(), bytesOf(n, n.find("towns", psi+"bergen").Header.Get("Location")), xtm.Options{Base: tmdm.Locator(n.sp("towns"))}, psi+"bergen")
	assert.NoError(t, err, "it is still there")
}
