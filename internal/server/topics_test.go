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
	"github.com/tmshare/tmshare/internal/testkit/served"
	maps "github.com/tmshare/tmshare/testdata/xtm"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// find follows ?si= to a topic.
func (n *node) find(name, si string) served.Answer {
	n.T.Helper()
	return n.Get("/topicmaps/" + name + "/topics?si=" + url.QueryEscape(si))
}

func TestSubjectIdentifiersLeadToTheTopic(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.Publish("towns", served.TopicMap(served.Identified("oslo", []string{"http://psi.example.org/oslo", "http://psi.example.org/Christiania?a=b&amp;c+d"}, "Oslo")))
	for _, si := range []string{"http://psi.example.org/oslo", "HTTP://psi.example.org/%6Fslo", "http://psi.example.org/Christiania?a=b&c+d"} {
		a := n.find("towns", si)
		require.Equal(t, http.StatusSeeOther, a.StatusCode, "%s: %s", si, a.Bytes)
		assert.Equal(t, n.URL("/topicmaps/towns/topics/"+fragment.Key("http://psi.example.org/oslo")), a.Header.Get("Location"))
		assert.Contains(t, string(n.MustGet(a.Header.Get("Location")).Bytes), "<baseNameString>Oslo<")
	}
	for _, query := range []string{"", "?", "?si=", "?si=oslo", "?si=%00", "?other=http://psi.example.org/oslo", "?si=http://a/%0A"} {
		a := n.Get("/topicmaps/towns/topics" + query)
		assert.Equal(t, http.StatusBadRequest, a.StatusCode, query)
		assert.Contains(t, string(a.Bytes), "an absolute IRI")
	}
	assert.Equal(t, http.StatusNotFound, n.find("towns", "http://psi.example.org/bergen").StatusCode)
	assert.Equal(t, http.StatusNotFound, n.find("towns", "http://psi.example.org/%62ergen").StatusCode)
	assert.Equal(t, http.StatusNotFound, n.find("none", "http://psi.example.org/oslo").StatusCode)
}

// …/topics/{key} serves the bytes of the topic's last entry, and keeps its
// address for life, also after deletion and re-creation.
func TestTopicAddressServesTheLastEntryForLife(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.Publish("small", served.Small())
	address := n.find("small", "http://psi.example.org/tromsø").Header.Get("Location")
	same := func() served.Document {
		t.Helper()
		e := n.Feed("/topicmaps/small/fragments").Entries[0]
		for form, href := range e.Typed(t, "topicmapdata") {
			for _, coding := range []string{"identity", "gzip"} {
				a := n.MustGet(address, "Accept", form, "Accept-Encoding", coding)
				assert.Equal(t, string(n.MustGet(href, "Accept-Encoding", coding).Bytes), string(a.Bytes))
			}
		}
		return e
	}
	assert.Contains(t, string(n.MustGet(address).Bytes), ">Tromsø<")
	n.MustPut("small", served.Small("Tromsø", "Romsa"))
	same()
	assert.Contains(t, string(n.MustGet(address).Bytes), ">Romsa<")

	served.Published(t, n.Do(http.MethodDelete, address, nil))
	e := same()
	assert.Equal(t, []string{"deleted"}, e.State)
	assert.NotContains(t, string(n.MustGet(address).Bytes), ">Romsa<")
	assert.Equal(t, http.StatusNotFound, n.find("small", "http://psi.example.org/tromsø").StatusCode)

	n.MustPut("small", served.Small())
	e = same()
	assert.Equal(t, []string{"live"}, e.State)
	assert.Equal(t, address, n.find("small", "http://psi.example.org/tromsø").Header.Get("Location"))
}

// The fragment of a first entry keeps the first state of its topic.
func TestFirstFragmentKeepsTheStateBeforeTheFirstChange(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.Publish("small", served.Small())
	entries, _ := n.History("/topicmaps/small/fragments")
	first := served.DataURL(t, entries[entryOf(entries, "http://psi.example.org/oslo")])
	var was []served.Answer
	for _, coding := range []string{"identity", "gzip"} {
		a := n.MustGet(first, "Accept-Encoding", coding)
		assert.Equal(t, forEver, a.Header.Get("Cache-Control"))
		assert.NotEmpty(t, a.Header.Get("ETag"))
		assert.Contains(t, string(a.Plain(t)), ">Oslo<")
		was = append(was, a)
	}
	same := func() {
		for i, coding := range []string{"identity", "gzip"} {
			a := n.MustGet(first, "Accept-Encoding", coding)
			assert.Equal(t, string(was[i].Plain(t)), string(a.Plain(t)))
			assert.Equal(t, was[i].Header.Get("ETag"), a.Header.Get("ETag"))
		}
	}
	n.MustPut("small", served.Small("Oslo", "Christiania"))
	same()
	served.Published(t, n.Do(http.MethodDelete, n.find("small", "http://psi.example.org/oslo").Header.Get("Location"), nil))
	same()
}

// In RDF, too, the fragment of a first entry keeps the first state of its topic.
func TestFirstFragmentInRDFKeepsTheStateBeforeTheFirstChange(t *testing.T) {
	t.Parallel()
	n := start(t)
	require.Equal(t, http.StatusCreated, n.Do(http.MethodPut, "/topicmaps/small", strings.NewReader(`{"rdf": true}`), "Content-Type", "application/json").StatusCode)
	n.MustPut("small", served.Small())
	entries, _ := n.History("/topicmaps/small/fragments")
	first := served.DataURL(t, entries[entryOf(entries, "http://psi.example.org/oslo")]) + ".ttl"
	was := n.MustGet(first)
	assert.Equal(t, forEver, was.Header.Get("Cache-Control"))
	assert.Contains(t, string(was.Bytes), `"Oslo"`)
	same := func() {
		a := n.MustGet(first)
		assert.Equal(t, string(was.Bytes), string(a.Bytes))
		assert.Equal(t, was.Header.Get("ETag"), a.Header.Get("ETag"))
		n.sameHead(a)
	}
	n.MustPut("small", served.Small("Oslo", "Christiania"))
	same()
	served.Published(t, n.Do(http.MethodDelete, n.find("small", "http://psi.example.org/oslo").Header.Get("Location"), nil))
	same()
}

func entryOf(entries []served.Document, si string) int {
	for i := range entries {
		if entries[i].TopicSI[0] == si {
			return i
		}
	}
	return -1
}

// hub is a class whose instances have such long identifiers that its fragment is large.
func hub(name string) []byte {
	var parts []string
	if name != "" {
		parts = append(parts, served.Topic("hub", name))
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
	return served.TopicMap(parts...)
}

// A fragment of any size has the state of its topic after the commit of its entry, whatever changes later.
func TestLargeFragmentsStayWhatTheyWere(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	n := start(t, served.DocumentSize(10_000))
	n.Publish("hub", hub("Hub"))
	n.MustPut("hub", hub("Wheel"))
	entries, _ := n.History("/topicmaps/hub/fragments")
	i := entryOf(entries, "http://psi.example.org/hub")
	require.Equal(t, 0, i)
	address := n.find("hub", "http://psi.example.org/hub").Header.Get("Location")
	first := map[string]served.Answer{}
	for _, ext := range []string{".xtm1", ".xtm21"} {
		a := n.MustGet(served.DataURL(t, entries[i]) + ext)
		assert.Greater(t, len(a.Bytes), 256<<10)
		assert.Contains(t, string(a.Bytes), ">Wheel<")
		assert.Equal(t, forEver, a.Header.Get("Cache-Control"))
		assert.Equal(t, http.StatusOK, n.Do(http.MethodHead, served.DataURL(t, entries[i])+ext, nil).StatusCode)
		assert.Less(t, len(n.MustGet(address+ext).Bytes), 1<<10, "the record is without instances")
		first[ext] = a
	}
	served.Published(t, n.Put("hub", hub(""), "TMShare-Max-Delete", "all")) // all lose their types
	for ext, a := range first {
		again := n.MustGet(served.DataURL(t, entries[i]) + ext)
		assert.Equal(t, string(a.Bytes), string(again.Bytes))
		assert.Equal(t, a.Header.Get("ETag"), again.Header.Get("ETag"))
		assert.Equal(t, http.StatusNotModified, n.Do(http.MethodGet, served.DataURL(t, entries[i])+ext, nil, "If-None-Match", a.Header.Get("ETag")).StatusCode)
	}
	assert.Contains(t, string(n.MustGet(address).Bytes), "http://psi.example.org/hub", "the tombstone")
}

func TestWhatIsNotThereIsNotFound(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.Publish("small", served.Small())
	e := n.Feed("/topicmaps/small/fragments").Entries[0]
	next := served.DataURL(t, e)
	next = next[:len(next)-2] + "0b" // the id that the eleventh entry will have
	require.Len(t, n.Feed("/topicmaps/small/fragments").Entries, 10)
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
		a := n.Get(path)
		assert.Equal(t, http.StatusNotFound, a.StatusCode, path)
		assert.Equal(t, "no-store", a.Header.Get("Cache-Control"))
		assert.NotEmpty(t, a.Bytes)
	}
	n.MustPut("small", served.Small("Oslo", "Christiania"))
	assert.Equal(t, http.StatusOK, n.Get(next).StatusCode, "now it is there: nothing may have cached that it is not")
}

// postTopics posts the statements of a document about some topics; named are subject identifiers for ?topic=.
func (n *node) postTopics(name string, doc []byte, named []string, headers ...string) served.Answer {
	n.T.Helper()
	return n.Do(http.MethodPost, "/topicmaps/"+name+"/topics?"+url.Values{"topic": named}.Encode(), bytes.NewReader(doc), headers...)
}

// The document replaces the statements of a posted topic: names, occurrences, associations. All else is kept. Entries
// are published as for a whole version.
func TestPostedTopicsAreReplaced(t *testing.T) {
	t.Parallel()
	stubs := served.Topic("part-of", "") + served.Topic("role-1", "") + served.Topic("role-2", "") + served.Topic("norway", "") + served.Topic("note", "")
	for name, c := range map[string]struct {
		doc     []byte
		named   []string
		want    publish.Published
		entries []string
		whole   []byte // the version with the same effect
	}{
		"rename": {
			served.TopicMap(served.Topic("oslo", "Christiania", served.Note("note", "the capital")), served.Association("part-of", "oslo", "norway"), stubs), nil,
			publish.Published{Updated: 1, Topics: 10}, []string{"+ oslo"}, served.Small("Oslo", "Christiania")},
		"an association left out": {
			served.TopicMap(served.Topic("oslo", "Oslo", served.Note("note", "the capital")), stubs), nil,
			publish.Published{Updated: 2, Topics: 10}, []string{"+ norway", "+ oslo"},
			served.Replace(t, served.Small(), served.Association("part-of", "oslo", "norway"), "")},
		"a new topic": {
			served.TopicMap(served.Topic("bodø", "Bodø"), served.Association("part-of", "bodø", "norway"), stubs), nil,
			publish.Published{Added: 1, Updated: 1, Topics: 11}, []string{"+ bodø", "+ norway"},
			served.Replace(t, served.Small(), "</topicMap>", served.Topic("bodø", "Bodø")+served.Association("part-of", "bodø", "norway")+"</topicMap>")},
		"named, and nothing said of it": {
			served.TopicMap(served.Topic("oslo", "")), []string{served.PSI + "oslo"},
			publish.Published{Updated: 2, Topics: 10}, []string{"+ norway", "+ oslo"},
			served.Replace(t, served.Replace(t, served.Small(), served.Association("part-of", "oslo", "norway"), ""), served.Topic("oslo", "Oslo", served.Note("note", "the capital")), served.Topic("oslo", ""))},
		"a stub of a topic that is not there": {
			served.TopicMap(served.Topic("tromsø", "Tromsø", served.Note("remark", "up north")), served.Topic("remark", ""), served.Topic("unused", "")), nil,
			publish.Published{Added: 1, Updated: 1, Topics: 11}, []string{"+ remark", "+ tromsø"},
			served.Replace(t, served.Small(), served.Topic("tromsø", "Tromsø"), served.Topic("remark", "")+served.Topic("tromsø", "Tromsø", served.Note("remark", "up north")))},
		"another id": {
			served.TopicMap(strings.ReplaceAll(served.Topic("oslo", "Oslo", served.Note("note", "the capital")), `id="oslo"`, `id="bergen"`), served.Association("part-of", "bergen", "norway"), stubs), nil,
			publish.Published{Topics: 10}, nil, served.Small()},
		"two topics": {
			served.TopicMap(served.Identified("x", []string{served.PSI + "bergen", served.PSI + "tromsø"}, "Both"), served.Association("part-of", "x", "norway"), stubs), nil,
			publish.Published{Updated: 2, Topics: 9}, []string{"+ bergen", "+ tromsø"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := start(t)
			before := n.Publish("small", served.Small())
			p := served.Published(t, n.postTopics("small", c.doc, c.named))
			c.want.Collection, c.want.LastChange = "small", n.Feed("/topicmaps/small").Updated()
			assert.Equal(t, c.want, p)
			assert.Equal(t, c.entries, n.log("small", before.Topics))
			if c.whole != nil {
				assert.Equal(t, n.Expected("small", c.whole), n.Current("small"))
			}
			again := served.Published(t, n.postTopics("small", c.doc, c.named))
			assert.Equal(t, publish.Published{Collection: "small", Topics: p.Topics, LastChange: p.LastChange}, again, "the same again")
		})
	}
}

// A document has the same effect in all forms and codings.
func TestPostedInAnyForm(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.Publish("small", served.Small())
	xtm1 := served.TopicMap(served.Topic("tromsø", "Romsa"))
	xtm2 := func(version, name string) []byte {
		return []byte(`<topicMap xmlns="http://www.topicmaps.org/xtm/" version="` + version + `"><topic id="t"><subjectIdentifier href="` + served.PSI + `tromsø"/><name><value>` + name + `</value></name></topic></topicMap>`)
	}
	updated := func(a served.Answer) int { t.Helper(); return served.Published(t, a).Updated }
	assert.Equal(t, 1, updated(n.postTopics("small", xtm1, nil)))
	assert.Equal(t, 0, updated(n.postTopics("small", xtm2("2.0", "Romsa"), nil, "Content-Type", "application/x-tm+xml;version=2.0")))
	assert.Equal(t, 0, updated(n.postTopics("small", xtm2("2.1", "Romsa"), nil, "Content-Type", "application/x-tm+xml;version=2.1")))
	assert.Equal(t, 1, updated(n.postTopics("small", xtm2("2.1", "Tromso"), nil, "Content-Type", "application/x-www-form-urlencoded")), "what curl says")
	assert.Equal(t, 1, updated(n.postTopics("small", served.Gzipped(t, xtm1), nil, "Content-Type", "text/xml", "Content-Encoding", "gzip")))
	assert.Equal(t, 0, updated(n.postTopics("small", served.Gzipped(t, xtm1), nil, "Content-Type", "application/gzip")))
	assert.Contains(t, n.Current("small"), "Romsa")
}

// A served fragment, posted back, changes nothing; edited, it changes that topic, and the instances of a class keep
// their statements.
func TestServedFragmentIsEditedAndPosted(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.Publish("egov", maps.EGov)
	class := "https://psi.egov.example.org/type/topic-type"
	a := n.find("egov", class)
	record := n.MustGet(a.Header.Get("Location") + ".xtm21").Bytes
	assert.Zero(t, bytes.Count(record, []byte("iso13250/model/instance")), "the record is without instances")
	p := served.Published(t, n.postTopics("egov", record, nil))
	assert.Zero(t, p.Added+p.Updated+p.Deleted)
	entries, _ := n.History("/topicmaps/egov/fragments")
	f := n.MustGet(served.DataURL(t, entries[entryOf(entries, class)]) + ".xtm21").Bytes
	require.Greater(t, bytes.Count(f, []byte("iso13250/model/instance")), 30, "a class with instances")
	p = served.Published(t, n.postTopics("egov", f, nil))
	assert.Zero(t, p.Added+p.Updated+p.Deleted)
	edited := served.Replace(t, f, "<value>Topic type</value>", "<value>Kind</value>")
	p = served.Published(t, n.postTopics("egov", edited, nil))
	assert.Equal(t, 1, p.Updated)
	assert.Zero(t, p.Added+p.Deleted)
	tm, err := xtm.Read(t.Context(), bytes.NewReader(maps.EGov), xtm.Options{Base: tmdm.Locator(n.SP("egov"))})
	require.NoError(t, err)
	for _, name := range tm.TopicBySubjectIdentifier(tmdm.Locator(class)).Names() {
		if name.Value() == "Topic type" {
			name.SetValue("Kind")
		}
	}
	var whole bytes.Buffer
	_, err = xtm.Write(&whole, tm, xtm.WriteOptions{Version: xtm.V21, Base: tmdm.Locator(n.SP("egov"))})
	require.NoError(t, err)
	assert.Equal(t, n.Expected("egov", whole.Bytes()), n.Current("egov"))
}

func TestRefusedPostsChangeNothing(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	n := start(t, func(c *server.Config) { c.MaxBody = maxBody })
	n.Publish("small", served.Small())
	n.Publish("egov", maps.EGov)
	before, egov := n.State("small"), n.State("egov")
	oslo := served.TopicMap(served.Topic("oslo", "Oslo"))
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
		"a topic not in the document":       {"small", oslo, []string{served.PSI + "bergen"}, nil, 422, []string{served.PSI + "bergen"}},
		"a name that is no identifier":      {"small", oslo, []string{"oslo"}, nil, 400, []string{"?topic=oslo"}},
		"stubs alone":                       {"small", served.TopicMap(served.Topic("oslo", "")), nil, nil, 422, []string{"describes no topic"}},
		"an association of stubs":           {"small", served.TopicMap(served.Topic("tromsø", "T"), served.Topic("oslo", ""), served.Topic("role-1", ""), served.Topic("part-of", ""), served.Association("part-of", "oslo")), nil, nil, 422, []string{"association of type topic " + served.PSI + "part-of", "no player"}},
		"no identifier":                     {"small", served.TopicMap(`<topic id="x"><baseName><baseNameString>X</baseNameString></baseName></topic>`), nil, nil, 422, []string{n.SP("small") + "#x", "subject identifier"}},
		"a stub of two topics":              {"small", served.TopicMap(served.Topic("tromsø", "T", served.Note("n", "x")), served.Identified("n", []string{served.PSI + "oslo", served.PSI + "bergen"}, "")), nil, nil, 422, []string{served.PSI + "oslo", served.PSI + "bergen", "several topics"}},
		"an image":                          {"small", oslo, nil, []string{"Content-Type", "image/png"}, 415, []string{"image/png"}},
		"JSON":                              {"small", []byte("{}"), nil, []string{"Content-Type", "application/json"}, 415, []string{"application/json"}},
		"a coding":                          {"small", oslo, nil, []string{"Content-Encoding", "br"}, 415, []string{"br"}},
		"too large":                         {"small", append(bytes.Clone(oslo), bytes.Repeat([]byte(" "), maxBody)...), nil, nil, 413, []string{"300000"}},
		"half of gzip":                      {"small", served.Gzipped(t, oslo)[:60], nil, nil, 400, []string{"request body"}},
		"an old ETag":                       {"small", oslo, nil, []string{"If-Match", `"old"`}, 412, []string{"has changed since"}},
		"not if it is there":                {"small", oslo, nil, []string{"If-None-Match", `*`}, 412, []string{"is there"}},
		"a class merged, that has mentions": {"egov", served.TopicMap(served.Identified("x", []string{"https://psi.egov.example.org/type/permit", "https://psi.egov.example.org/type/service"}, "x")), nil, nil, 409, []string{"statements of \"Entitlement\"", "an association of ", "https://psi.egov.example.org/type/service"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := n.postTopics(c.collection, c.doc, c.named, append([]string{"Accept", "text/plain"}, c.headers...)...)
			assert.Equal(t, c.status, a.StatusCode, "%s", a.Bytes)
			for _, s := range c.says {
				assert.Contains(t, string(a.Bytes), s)
			}
			assert.Equal(t, before, n.State("small"))
		})
	}
	assert.Equal(t, egov, n.State("egov"))
	assert.Empty(t, n.errors())
}

// An id names a topic in its document only.
func TestIDsOfTopicsDoNotMeetAcrossDocuments(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.Publish("towns", served.TopicMap(`<topic id="t1"><baseName><baseNameString>First</baseNameString></baseName></topic>`))
	was := n.SP("towns") + "topic/t1"
	p := served.Published(t, n.postTopics("towns", served.TopicMap(served.Identified("t1", []string{served.PSI + "other"}, "Second")), nil))
	assert.Equal(t, 1, p.Added)
	assert.Zero(t, p.Updated)
	current := n.Current("towns")
	assert.Contains(t, current, "First")
	assert.Contains(t, current, "Second")

	p = served.Published(t, n.postTopics("towns", served.TopicMap(served.Identified("x", []string{was, served.PSI + "first"}, "First!")), nil))
	assert.Equal(t, 1, p.Updated, "the identifier that the server assigned leads to the topic")
	p = served.Published(t, n.postTopics("towns", served.TopicMap(served.Identified("x", []string{served.PSI + "first"}, "First")), nil))
	assert.Equal(t, 1, p.Updated, "which keeps it, though the document does not give it")
	assert.Equal(t, http.StatusSeeOther, n.find("towns", was).StatusCode)
}

// ?si= leads DELETE to a topic by any of its subject identifiers.
func TestTopicIsDeletedByItsSubjectIdentifier(t *testing.T) {
	t.Parallel()
	n := start(t)
	c := n.Publish("towns", served.TopicMap(served.Identified("oslo", []string{served.PSI + "oslo", served.PSI + "christiania"}, "Oslo"), served.Topic("bergen", "Bergen", served.Note("bergen", "x"))))
	remove := func(si string, headers ...string) served.Answer {
		return n.Do(http.MethodDelete, "/topicmaps/towns/topics?"+url.Values{"si": {si}}.Encode(), nil, headers...)
	}
	tag := n.MustGet("/topicmaps/towns").Header.Get("ETag")
	assert.Equal(t, http.StatusBadRequest, remove("").StatusCode)
	assert.Equal(t, http.StatusBadRequest, n.Do(http.MethodDelete, "/topicmaps/towns/topics", nil).StatusCode)
	assert.Equal(t, http.StatusNotFound, remove(served.PSI+"stavanger").StatusCode)
	assert.Equal(t, http.StatusPreconditionFailed, remove(served.PSI+"oslo", "If-Match", `"x"`).StatusCode)
	p := served.Published(t, remove(served.PSI+"christiania", "If-Match", tag))
	assert.Equal(t, publish.Published{Collection: "towns", Deleted: 1, Topics: c.Topics - 1, LastChange: p.LastChange}, p)
	assert.Equal(t, []string{"- oslo"}, n.log("towns", c.Topics))
	assert.Zero(t, served.Published(t, remove(served.PSI+"oslo")).Deleted, "it is not there any more")

	n.MustPut("towns", served.TopicMap(served.Topic("bergen", "Bergen"), served.Topic("oslo", "Oslo", served.Note("bergen", "x"))))
	a := remove(served.PSI + "bergen")
	assert.Equal(t, http.StatusConflict, a.StatusCode, "%s", a.Bytes)
	assert.Contains(t, string(a.Bytes), `statements of \"Oslo\"`)
	assert.Equal(t, http.StatusMethodNotAllowed, n.Do(http.MethodPut, "/topicmaps/towns/topics", nil).StatusCode)
	_, err := fragment.Read(t.Context(), bytesOf(n, n.find("towns", served.PSI+"bergen").Header.Get("Location")), xtm.Options{Base: tmdm.Locator(n.SP("towns"))}, served.PSI+"bergen")
	assert.NoError(t, err, "it is still there")
}
