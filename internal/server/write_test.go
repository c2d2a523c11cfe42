package server_test

import (
	"bytes"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/publish"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/served"
	maps "github.com/tmshare/tmshare/testdata/xtm"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// log returns the entries of a feed after the first skip ones, oldest first: "+ topic" for a live one, "- topic" for a
// deleted one.
func (n *node) log(name string, skip int) []string {
	n.T.Helper()
	entries, _ := n.History("/topicmaps/" + name + "/fragments")
	slices.Reverse(entries)
	var all []string
	for _, e := range entries[skip:] {
		sign := map[string]string{"live": "+ ", "deleted": "- "}[e.State[0]]
		all = append(all, sign+strings.TrimPrefix(e.TopicSI[0], "http://psi.example.org/"))
	}
	slices.Sort(all) // entries of one commit may stand in any order
	return all
}

func TestNewVersionPublishesWhatItChanges(t *testing.T) {
	t.Parallel()
	vocabulary := []string{
		served.Topic("city", "City"), served.Topic("note", "Note"), served.Topic("part-of", "part of"), served.Topic("role-1", "part"), served.Topic("role-2", "whole"),
		served.Topic("norway", "Norway"), served.Topic("bergen", "Bergen"),
	}
	oslo, tromso := served.Topic("oslo", "Oslo", served.Note("note", "the capital")), served.Topic("tromsø", "Tromsø")
	ofOslo, ofBergen := served.Association("part-of", "oslo", "norway"), served.Association("part-of", "bergen", "norway")
	version := func(parts ...string) []byte { return served.TopicMap(append(slices.Clone(vocabulary), parts...)...) }
	first := version(oslo, tromso, ofOslo, ofBergen)

	for name, c := range map[string]struct {
		doc     []byte
		want    publish.Published
		entries []string
	}{
		"rename": {version(served.Topic("oslo", "Christiania", served.Note("note", "the capital")), tromso, ofOslo, ofBergen),
			publish.Published{Updated: 1, Topics: 10}, []string{"+ oslo"}},
		"change an occurrence": {version(served.Topic("oslo", "Oslo", served.Note("note", "a capital")), tromso, ofOslo, ofBergen),
			publish.Published{Updated: 1, Topics: 10}, []string{"+ oslo"}},
		"give a type": {version(served.Topic("oslo", "Oslo", served.Note("note", "the capital")), strings.Replace(tromso, "<subjectIdentity>", `<instanceOf><topicRef xlink:href="#city"/></instanceOf><subjectIdentity>`, 1), ofOslo, ofBergen),
			// the class does not change; the vocabulary of typing is new
			publish.Published{Added: 3, Updated: 1, Topics: 13}, []string{"+ http://psi.topicmaps.org/iso13250/model/instance", "+ http://psi.topicmaps.org/iso13250/model/type", "+ http://psi.topicmaps.org/iso13250/model/type-instance", "+ tromsø"}},
		"delete a topic": {version(oslo, ofOslo, ofBergen),
			publish.Published{Deleted: 1, Topics: 9}, []string{"- tromsø"}},
		"delete a topic with its association": {version(tromso, ofBergen),
			publish.Published{Updated: 1, Deleted: 1, Topics: 9}, []string{"+ norway", "- oslo"}},
		"delete an association": {version(oslo, tromso, ofBergen),
			publish.Published{Updated: 2, Topics: 10}, []string{"+ norway", "+ oslo"}},
		"add a topic": {version(oslo, tromso, served.Topic("bodø", "Bodø"), ofOslo, ofBergen),
			publish.Published{Added: 1, Topics: 11}, []string{"+ bodø"}},
		"add a topic with an association": {version(oslo, tromso, served.Topic("bodø", "Bodø"), ofOslo, ofBergen, served.Association("part-of", "bodø", "norway")),
			publish.Published{Added: 1, Updated: 1, Topics: 11}, []string{"+ bodø", "+ norway"}},
		"add an identifier": {version(oslo, served.Identified("tromsø", []string{"http://psi.example.org/tromsø", "http://psi.example.org/romsa"}, "Tromsø"), ofOslo, ofBergen),
			publish.Published{Updated: 1, Topics: 10}, []string{"+ tromsø"}},
		"put another identifier in its place": {version(oslo, served.Identified("tromsø", []string{"http://psi.example.org/romsa"}, "Tromsø"), ofOslo, ofBergen),
			publish.Published{Added: 1, Deleted: 1, Topics: 10}, []string{"+ romsa", "- tromsø"}},
		"put another identifier in the place of a player's": {version(served.Identified("oslo", []string{"http://psi.example.org/christiania"}, "Oslo", served.Note("note", "the capital")), tromso, ofOslo, ofBergen),
			publish.Published{Added: 1, Updated: 1, Deleted: 1, Topics: 10}, []string{"+ christiania", "+ norway", "- oslo"}},
		"merge two topics": {version(served.Identified("oslo", []string{"http://psi.example.org/oslo", "http://psi.example.org/tromsø"}, "Oslo", served.Note("note", "the capital")), ofOslo, ofBergen),
			// the closing entry of the TopicSI that ceases shows its new owner
			publish.Published{Updated: 2, Topics: 9}, []string{"+ oslo", "+ tromsø"}},
		"another id in the document": {bytes.ReplaceAll(first, []byte(`"tromsø"`), []byte(`"x-1"`)),
			publish.Published{Topics: 10}, nil},
		"nothing": {first, publish.Published{Topics: 10}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := start(t)
			before := n.Publish("towns", first)
			require.Equal(t, 10, before.Topics)
			p := n.MustPut("towns", c.doc)
			d := n.Feed("/topicmaps/towns/fragments")
			assert.Equal(t, d.Updated(), p.LastChange)
			if c.entries == nil {
				assert.Equal(t, feedTime(before), p.LastChange)
			}
			c.want.Collection, c.want.LastChange = "towns", p.LastChange
			assert.Equal(t, c.want, p)
			assert.Equal(t, c.entries, n.log("towns", before.Topics))
			assert.Equal(t, n.Expected("towns", c.doc), n.Current("towns"))
			assert.Equal(t, p.Updated+p.Added+p.Deleted, len(c.entries), "one entry for each topic counted")
			for _, path := range []string{"/topicmaps", "/topicmaps/towns"} {
				assert.Equal(t, p.LastChange, n.Feed(path).Updated(), path)
			}

			again := n.MustPut("towns", c.doc)
			assert.Equal(t, publish.Published{Collection: "towns", Topics: p.Topics, LastChange: p.LastChange}, again, "the same again changes nothing")
			assert.Equal(t, d.Raw, n.Feed("/topicmaps/towns/fragments").Raw)
		})
	}
}

var constructs = regexp.MustCompile(`(?s)[ \t]*<(topic|association)[ >].*?</(topic|association)>\n`)

// Only content counts: not its order in the file, its layout or its syntax.
func TestSameContentInAnotherFormPublishesNothing(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	n := start(t)
	doc := maps.Libraries
	n.Publish("libraries", doc)
	before := n.State("libraries")

	all := constructs.FindAll(doc, -1)
	require.Greater(t, len(all), 80)
	reversed := constructs.ReplaceAllFunc(doc, func([]byte) []byte {
		last := all[len(all)-1]
		all = all[:len(all)-1]
		return last
	})
	tm, err := xtm.Read(t.Context(), bytes.NewReader(doc), xtm.Options{Base: tmdm.Locator(n.SP("libraries"))})
	require.NoError(t, err)
	var lossless bytes.Buffer
	_, err = xtm.Write(&lossless, tm, xtm.WriteOptions{Version: xtm.V21, Base: tmdm.Locator(n.SP("libraries"))})
	require.NoError(t, err)
	for name, same := range map[string][]byte{
		"the same":          doc,
		"in reverse order":  reversed,
		"with line ends":    bytes.ReplaceAll(doc, []byte("\n"), []byte("\r\n")),
		"as XTM 2.1":        lossless.Bytes(),
		"its own snapshot":  n.MustGet("/topicmaps/libraries/snapshots/current.xtm1").Bytes,
		"its snapshot, 2.1": n.MustGet("/topicmaps/libraries/snapshots/current.xtm21").Bytes,
		"gzipped":           served.Gzipped(t, doc),
	} {
		p := n.MustPut("libraries", same)
		assert.Zero(t, p.Added+p.Updated+p.Deleted, "%s: %+v", name, p)
		assert.Equal(t, before, n.State("libraries"), name)
	}
}

func TestGzippedBodyIsPublishedLikeAPlainOne(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.Publish("small", served.Small())
	p := n.MustPut("small", served.Gzipped(t, served.Small("Oslo", "Christiania")))
	assert.Equal(t, 1, p.Updated)
	assert.Equal(t, n.Expected("small", served.Small("Oslo", "Christiania")), n.Current("small"))
	a := n.Put("small", served.Gzipped(t, served.Small("Oslo", "Kristiania")), "Content-Encoding", "gzip", "Content-Type", "application/xtm1+xml")
	assert.Equal(t, 1, served.Published(t, a).Updated)
	a = n.Put("small", served.Gzipped(t, served.Small("Oslo", "Kristiania")), "Content-Encoding", "GZIP")
	assert.Zero(t, served.Published(t, a).Updated)
	for _, coding := range []string{"br", "zstd", "deflate", "gzip, br"} {
		a = n.Put("small", served.Small(), "Content-Encoding", coding)
		assert.Equal(t, http.StatusUnsupportedMediaType, a.StatusCode)
		assert.Contains(t, string(a.Bytes), coding)
	}
	twice := append(served.Gzipped(t, served.Small("Oslo", "Oslo!")[:300]), served.Gzipped(t, served.Small("Oslo", "Oslo!")[300:])...)
	assert.Equal(t, 1, n.MustPut("small", twice).Updated, "a gzip file of two members (RFC 1952 §2.2)")
	assert.Equal(t, n.Expected("small", served.Small("Oslo", "Oslo!")), n.Current("small"))
}

func TestPutToAnUnknownCollectionIsNotFound(t *testing.T) {
	t.Parallel()
	n := start(t)
	a := n.Put("none", served.Small(), "Accept", "text/plain")
	assert.Equal(t, http.StatusNotFound, a.StatusCode)
	assert.Contains(t, string(a.Bytes), `"none"`)
	assert.Empty(t, n.Feed("/topicmaps").Entries)
}

func TestMethodsThatAreNotPossibleSayWhichAre(t *testing.T) {
	t.Parallel()
	n := start(t)
	urls := negotiable(t, n)
	key := urls["topic"]
	for url, allow := range map[string]string{
		"/topicmaps":                                  "GET, HEAD",
		"/topicmaps/small":                            "GET, HEAD, PUT, DELETE",
		"/topicmaps/small/settings":                   "GET, HEAD",
		"/topicmaps/small.atom":                       "GET, HEAD",
		"/topicmaps/small/fragments":                  "GET, HEAD",
		"/topicmaps/small/snapshots":                  "GET, HEAD, POST",
		"/topicmaps/small/topics?si=x":                "GET, HEAD, POST, DELETE",
		urls["fragment"]:                              "GET, HEAD",
		urls["snapshot"] + ".xtm21":                   "GET, HEAD",
		urls["current snapshot"]:                      "GET, HEAD",
		key:                                           "GET, HEAD, DELETE",
		key + ".xtm1":                                 "GET, HEAD",
		"/topicmaps/none/topics/" + key[len(key)-26:]: "GET, HEAD, DELETE",
	} {
		for _, method := range []string{"GET", "HEAD", "PUT", "DELETE", "POST", "PATCH", "OPTIONS", "TRACE"} {
			if slices.Contains(strings.Split(allow, ", "), method) {
				continue
			}
			a := n.Do(method, url, strings.NewReader("x"))
			assert.Equal(t, http.StatusMethodNotAllowed, a.StatusCode, "%s %s", method, url)
			assert.Equal(t, allow, a.Header.Get("Allow"), "%s %s", method, url)
			assert.Contains(t, string(a.Bytes), method)
		}
	}
	assert.Equal(t, http.StatusNotFound, n.Do(http.MethodPost, "/nothing", nil).StatusCode)
	for _, method := range []string{"PROPFIND", "BREW", "get"} { // RFC 9110 §9.1: 501 for what is not known at all
		for _, url := range []string{"/topicmaps", "/topicmaps/small", key, "/nothing"} {
			a := n.Do(method, url, nil)
			assert.Equal(t, http.StatusNotImplemented, a.StatusCode, "%s %s", method, url)
			assert.Empty(t, a.Header.Get("Allow"))
		}
	}
}

// A name that no collection can have is refused as such.
func TestPutOfAnImpossibleName(t *testing.T) {
	t.Parallel()
	n := start(t)
	for _, name := range []string{"a.b", "-a", "a%20b", "a%2Fb", "%C3%B8", strings.Repeat("a", 65)} {
		for _, contentType := range []string{"application/json", "application/xml"} {
			a := n.Do(http.MethodPut, "/topicmaps/"+name, strings.NewReader("{}"), "Content-Type", contentType)
			assert.Equal(t, http.StatusUnprocessableEntity, a.StatusCode, "%s: %s", name, a.Bytes)
			assert.Contains(t, string(a.Bytes), "collection name")
		}
	}
}

// Letters are the same with percent-encoding and without (RFC 3986 §6.2.2.2, Percent-Encoding
// Normalization). A slash is not.
func TestPercentEncodedNamesAreTheSameNames(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.Publish("small", served.Small())
	for url, same := range map[string]string{
		"/topicmaps/%73mall": "/topicmaps/small", "/%74opicmaps": "/topicmaps",
		"/topicmaps/sm%61ll/snapshots/curren%74%2extm1": "/topicmaps/small/snapshots/current.xtm1",
	} {
		want, a := n.MustGet(same), n.MustGet(url)
		assert.Equal(t, string(want.Bytes), string(a.Bytes), url)
		assert.Equal(t, want.Header.Get("ETag"), a.Header.Get("ETag"), url)
	}
	assert.Equal(t, http.StatusNotFound, n.Get("/topicmaps%2Fsmall").StatusCode)
	assert.Equal(t, http.StatusNotFound, n.Get("/topicmaps/small%2ffragments").StatusCode)
	served.Published(t, n.Do(http.MethodPut, "/topicmaps/%73mall", bytes.NewReader(served.Small("Oslo", "Christiania"))))
	assert.Contains(t, string(n.MustGet("/topicmaps/small/snapshots/current").Bytes), "Christiania")
}

// The first version of a map that was created empty shows at once, as if it had
// been created with it: an entry for each topic, and a snapshot of all.
func TestFirstVersionOfAnEmptyCollection(t *testing.T) {
	n := start(t)
	require.Equal(t, http.StatusCreated, n.PutSettings("new", `{"title": "New"}`).StatusCode)
	var empty store.Collection
	require.NoError(t, n.Store.View(n.T.Context(), "new", func(v *store.View) error { empty = v.Collection; return nil }))

	assert.Equal(t, 226, n.MustPut("new", maps.EGov).Added)
	require.NoError(t, n.Store.View(n.T.Context(), "new", func(v *store.View) error {
		assert.EqualValues(t, 226, v.Head)
		assert.Equal(t, 226, v.Topics)
		assert.Equal(t, "New", v.Title)
		assert.Equal(t, empty.Epoch, v.Epoch)
		snapshots, err := v.Snapshots()
		require.NoError(t, err)
		require.Len(t, snapshots, 1, "that of the empty map is of no use any more")
		assert.Equal(t, v.Head, snapshots[0].Seq)
		return nil
	}))
	p := n.MustPut("new", maps.EGov)
	assert.Zero(t, p.Added+p.Updated+p.Deleted, "the same again publishes nothing")
}
