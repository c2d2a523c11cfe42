package ext_test

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/ext"
	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/internal/store"
	_ "github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/docs"
	"github.com/tmshare/tmshare/internal/testkit/node"
	"github.com/tmshare/tmshare/internal/testkit/stores"
)

func version(name string) string { return docs.Map(docs.Topics(5, name)...) }

// A server works without any one extension, and without all, on a folder that was written with all. The data of an
// extension stay there, and are right when it is back.
func TestExtensionsMayBeMissing(t *testing.T) {
	t.Parallel()
	names := []string{"all"}
	for _, e := range ext.All() {
		assert.NotContains(t, names, e.Name)
		names = append(names, e.Name)
	}
	for _, missing := range names {
		t.Run(missing, func(t *testing.T) {
			t.Parallel()
			o := node.Publishing(t, version("v1"))
			const list = "/topicmaps/egov/resourcesync/changelist.xml"
			o.Get(list) // from now on there is one
			follower := stores.Open(t, store.Options{Dir: t.TempDir(), Logger: node.Silent})
			t.Cleanup(func() { assert.NoError(t, follower.Close()) })
			c, err := client.New(client.Config{Protocols: ext.Protocols(), Store: follower, Logger: node.Silent})
			require.NoError(t, err)
			_, err = c.Subscribe(t.Context(), o.URL+"/topicmaps/egov", client.SubscribeOptions{Name: "egov"})
			require.NoError(t, err)
			_, err = c.Sync(t.Context(), "egov")
			require.NoError(t, err)

			with := func(extensions []extension.Extension) {
				o.Stop()
				o.Config.Parts, o.Config.Formats, o.Indexes = extension.Parts(extensions), extension.Formats(extensions), extension.Indexes(extensions)
				o.Start(o.Dir)
			}
			check := func() {
				require.NoError(t, o.DB.Check(t.Context(), false, func(f store.Finding) { t.Errorf("%+v", f) }, func(string) {}))
			}
			some := slices.DeleteFunc(ext.All(), func(e extension.Extension) bool { return missing == "all" || e.Name == missing })
			with(some)
			o.Put(version("v2"))
			o.Create("another", version("v1"))
			r := o.Ask(http.MethodGet, list, "", "")
			if missing == "all" || missing == "resourcesync" {
				assert.Equal(t, http.StatusNotFound, r.Code)
			} else {
				assert.Equal(t, http.StatusOK, r.Code)
			}
			for about, protocol := range map[string]string{"": "", "/fragments": "", "/records": "atompmh", "/snapshots/current": ""} {
				status := http.StatusOK
				if protocol != "" && (missing == "all" || missing == protocol) {
					status = http.StatusNotFound
				}
				assert.Equal(t, status, o.Ask(http.MethodGet, "/topicmaps/egov"+about, "", "").Code, about)
			}
			browser := func(path string) *http.Response {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, o.URL+path, nil)
				require.NoError(t, err)
				r.Header.Set("Accept", "text/html, */*;q=0.1")
				r.Header.Set("Sec-Fetch-Mode", "navigate")
				answer, err := http.DefaultClient.Do(r)
				require.NoError(t, err)
				answer.Body.Close()
				return answer
			}
			types := []string{"text/html; charset=utf-8", "text/html; charset=utf-8"}
			if missing == "all" || missing == "pages" {
				types = []string{"application/atom+xml", "text/plain; charset=utf-8"}
			}
			assert.Equal(t, types[0], browser("/topicmaps/egov/fragments").Header.Get("Content-Type"))
			assert.Equal(t, types[1], browser("/topicmaps/nothing").Header.Get("Content-Type"))
			form := browser("/topicmaps/egov/topics/new.html")
			assert.Equal(t, missing != "all" && missing != "pages" && missing != "editing", form.StatusCode == http.StatusOK, form.Status)

			round, err := c.Sync(t.Context(), "egov")
			require.NoError(t, err)
			assert.Equal(t, 5, round.Applied)
			v, err := c.Verify(t.Context(), "egov", true)
			require.NoError(t, err)
			assert.True(t, v.Equal)

			check()
			with(ext.All())
			const search = "/topicmaps/egov/search?q=v3"
			o.Put(version("v3"))
			assert.Equal(t, 5, strings.Count(o.Get(search), `"topicSI"`))
			assert.Equal(t, 10, strings.Count(o.Get(list), `change="updated"`), "changes made meanwhile are in it, too")
			check()
			for _, e := range ext.All() {
				if e.Check != nil {
					require.NoError(t, e.Check(t.Context(), o.DB, false, func(f store.Finding) { t.Errorf("%+v", f) }, func(string) {}), e.Name)
				}
			}
		})
	}
}

// A protocol determines how the document to follow is found: by a link of a feed, or in its own way. A Segment alone
// leads to an Atom feed.
func TestProtocolsFindTheirSources(t *testing.T) {
	names := map[string]bool{}
	for _, p := range ext.Protocols() {
		assert.True(t, p.Rel != "" || p.Find != nil, p.Name)
		assert.False(t, names[p.Name], p.Name)
		names[p.Name] = true
	}
	assert.NotEmpty(t, names)
}

// A source that is followed by the protocol of an extension stays as it is without that, and goes on when it is back.
func TestProtocolsMayBeMissing(t *testing.T) {
	t.Parallel()
	for protocol, at := range map[string]string{"atom-pmh": "/records", "resourcesync": "/resourcesync/capabilitylist.xml"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			o := node.Publishing(t, version("v1"))
			db := stores.Open(t, store.Options{Dir: t.TempDir(), Logger: node.Silent})
			t.Cleanup(func() { assert.NoError(t, db.Close()) })
			client := func(protocols []follow.Protocol) *client.Client {
				c, err := client.New(client.Config{Protocols: protocols, Store: db, Logger: node.Silent})
				require.NoError(t, err)
				return c
			}
			verify := func() {
				v, err := client(ext.Protocols()).Verify(t.Context(), "egov", true)
				require.NoError(t, err)
				assert.True(t, v.Equal)
			}
			others := slices.DeleteFunc(ext.Protocols(), func(p follow.Protocol) bool { return p.Name == protocol })
			_, err := client(others).Subscribe(t.Context(), o.URL+"/topicmaps/egov"+at, options(protocol))
			assert.ErrorContains(t, err, "unknown protocol")
			s, err := client(ext.Protocols()).Subscribe(t.Context(), o.URL+"/topicmaps/egov"+at, options(""))
			require.NoError(t, err)
			assert.EqualValues(t, protocol, s.Protocol)
			verify()

			o.Put(version("v2"))
			before, err := db.DigestNode(t.Context(), "egov", nil)
			require.NoError(t, err)
			for _, do := range []func() error{
				func() error { _, err := client(others).Sync(t.Context(), "egov"); return err },
				func() error { _, err := client(others).Verify(t.Context(), "egov", true); return err },
			} {
				assert.ErrorContains(t, do(), "the protocol "+protocol+", which this program does not have")
			}
			after, err := db.DigestNode(t.Context(), "egov", nil)
			require.NoError(t, err)
			assert.Equal(t, before.Digest(), after.Digest())
			verify()
		})
	}
}

func options(protocol string) client.SubscribeOptions {
	return client.SubscribeOptions{Name: "egov", Protocol: protocol}
}

// Without its extension, RDF is neither served nor taken, and a subscription that needs RDF reports it. All else
// works, and data stay: with the extension, all goes on.
func TestRDFMayBeMissing(t *testing.T) {
	t.Parallel()
	o := node.Publishing(t, version("v1"))
	require.Equal(t, http.StatusOK, o.Ask(http.MethodPut, "/topicmaps/egov", "application/json", `{"rdf": true}`).Code)
	follower := stores.Open(t, store.Options{Dir: t.TempDir(), Logger: node.Silent})
	t.Cleanup(func() { assert.NoError(t, follower.Close()) })
	following := func(known formats.Registry) *client.Client {
		c, err := client.New(client.Config{Formats: known, Store: follower, Logger: node.Silent})
		require.NoError(t, err)
		return c
	}
	with := func(known formats.Registry) {
		o.Stop()
		o.Config.Formats = known
		o.Start(o.Dir)
	}
	accepted := func(path string) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, o.URL+path, nil)
		require.NoError(t, err)
		r.Header.Set("Accept", "text/turtle")
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		answer.Body.Close()
		return answer.StatusCode
	}
	const current = "/topicmaps/egov/snapshots/current"
	o.TakeSnapshot()
	c := following(ext.Formats())
	for name, options := range map[string]client.SubscribeOptions{"xtm": {}, "rdf": {Asked: store.Asked{Format: "turtle"}}} {
		options.Name, options.Again = name, true
		_, err := c.Subscribe(t.Context(), o.URL+"/topicmaps/egov", options)
		require.NoError(t, err)
		_, err = c.Sync(t.Context(), name)
		require.NoError(t, err)
	}
	assert.Equal(t, http.StatusOK, accepted(current))
	assert.Contains(t, o.Get(current+".ttl"), "v1")

	with(nil)
	assert.Equal(t, http.StatusNotAcceptable, accepted(current))
	assert.Equal(t, http.StatusNotFound, o.Ask(http.MethodGet, current+".ttl", "", "").Code)
	r := o.Ask(http.MethodPut, "/topicmaps/egov", "application/json", `{"rdf": true}`)
	assert.Equal(t, http.StatusUnprocessableEntity, r.Code)
	r = o.Ask(http.MethodPut, "/topicmaps/egov", "text/turtle", "<http://a> <http://b> <http://c> .")
	assert.Equal(t, http.StatusUnsupportedMediaType, r.Code)
	assert.NotContains(t, r.Header().Get("Accept"), "turtle")
	o.Put(version("v2"))
	c = following(nil)
	round, err := c.Sync(t.Context(), "xtm")
	require.NoError(t, err)
	assert.Equal(t, 5, round.Applied)
	_, err = c.Sync(t.Context(), "rdf")
	require.ErrorContains(t, err, `rdf asks for "turtle", which needs an extension that this program does not have`)
	s, err := c.Subscription(t.Context(), "rdf")
	require.NoError(t, err)
	assert.NotNil(t, s.State, "the data read before stay")

	with(ext.Formats())
	assert.Contains(t, o.Get(current+".ttl"), "v2")
	round, err = following(ext.Formats()).Sync(t.Context(), "rdf")
	require.NoError(t, err)
	assert.Equal(t, 5, round.Applied)
}

// Errors in a document are the fault of its sender, and the answer names them: in whole maps, in topics, and in the
// changes to publish.
func TestWhatIsWrongInADocumentIsTheFaultOfWhoSendsIt(t *testing.T) {
	t.Parallel()
	o := node.Publishing(t, version("v1"))
	const ours = `@prefix t: <https://github.com/tmshare/tmshare/ns/1/> . @prefix r: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> . @prefix : <http://e/> . `
	const statement = `[ a t:Statement ; r:subject :a ; r:predicate :p ; r:object "%s" ; %s ] . :a :p "%[1]s" . `
	const anyType = "<http://www.w3.org/2001/XMLSchema#anyType>"
	long, themes := strings.Repeat("b", 8191), make([]string, 201)
	for i := range themes {
		themes[i] = strconv.Itoa(i)
	}
	for _, c := range []struct{ mediaType, document, says string }{
		{"application/n-quads", "<x:a> <x:p> <x:b> <x:g> .\n<x:a> <x:p> <x:b> .", "several graphs"},
		{"application/trig", "<x:g> { <x:a> <x:p> <x:b> } { <x:a> <x:p> <x:b> }", "several graphs"},
		{"application/ld+json", `[{"@id": "x:g", "@graph": [{"@id": "x:a", "x:p": 1}]}, {"@id": "x:a", "x:p": 1}]`, "several graphs"},
		{"application/ld+json", `{"@id": "x:a", "x:p": "\ud800"}`, "half of a surrogate pair"},
		{"application/ld+json", `{"@context": "http://e/", "@id": "x:a"}`, "is not fetched"},
		{"text/turtle", ours + fmt.Sprintf(statement, "1", "t:reifier :r") + fmt.Sprintf(statement, "2", "t:reifier :r"), "let it be the reifier of one statement only"},
		{"text/turtle", ours + fmt.Sprintf(statement, "1", `t:itemIdentifier <http://e/i>`) + fmt.Sprintf(statement, "2", `t:itemIdentifier <http://e/i>`), "let it be the item identifier of one thing only"},
		{"text/turtle", `<x:a> <x:p>`, "request body:1:"},
		{"application/rdf+xml", `<a/>`, "request body:1:"},
		{"application/xml", `<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1"><topic id="a"/><topic id="b"/><association reifier="#a"/></topicMap>`, "request body:1:"},
		{"application/xml", "\xff", "request body:1:"},
		{"text/turtle", `<x:a> <http://www.w3.org/2000/01/rdf-schema#label> "a\u0001b" .`, "XML cannot carry the character U+0001"},
		{"text/turtle", `<x:a> <x:p> "a\uFFFE"@en .`, "XML cannot carry the character U+FFFE"},
		{"application/n-triples", "<x:a> <x:p> <x:b\uffff> .", "XML cannot carry the character U+FFFF"},
		{"application/ld+json", `{"@id": "x:a", "http://schema.org/name": "a\u0000"}`, "XML cannot carry the character U+0000"},
		{"text/turtle", ours + fmt.Sprintf(statement, "<b>", "t:datatype "+anyType), "is not canonical XML"},
		{"text/turtle", ours + fmt.Sprintf(statement, strings.Repeat("<b>", 198)+strings.Repeat("</b>", 198), "t:datatype "+anyType), "elements are nested more than 200 deep"},
		{"text/turtle", ours + fmt.Sprintf(statement, "b", "t:datatype <http://www.w3.org/2001/XMLSchema#anyURI>"), "has no scheme"},
		{"text/turtle", ours + fmt.Sprintf(statement, "x:%7Eb", "t:datatype <http://www.w3.org/2001/XMLSchema#anyURI>"), `readers would take it for \"x:~b\"`},
		{"text/turtle", ours + fmt.Sprintf(statement, "b", "t:datatype <X:b>"), `readers would take it for \"x:b\"`},
		{"text/turtle", ours + fmt.Sprintf(statement, "b", "t:datatype <x:"+long+">"), "a locator of 8193 bytes is too long"},
		{"text/turtle", ours + fmt.Sprintf(statement, "b", "t:itemIdentifier <x:"+long+">"), "a locator of 8193 bytes is too long"},
		{"text/turtle", ours + fmt.Sprintf(statement, "b", "t:scope <x:"+strings.Join(themes, ">, <x:")+">"), "a scope of more than 200 topics"},
		{"text/turtle", "<x:" + long + "> <x:p> 1 .", "a locator of 8193 bytes is too long"},
		{"text/turtle", "<x:" + strings.Repeat("%20", 2731) + "> <x:p> 1 .", "a locator of 8195 bytes, with spaces as %20, is too long"},
	} {
		for _, path := range []string{"/topicmaps/egov", "/topicmaps/egov/dry-run", "/topicmaps/egov/topics", "/topicmaps/egov/topics/dry-run"} {
			method := http.MethodPut
			if strings.Contains(path, "egov/topics") {
				method = http.MethodPost
			}
			a := o.Ask(method, path, c.mediaType, c.document)
			assert.Equal(t, http.StatusUnprocessableEntity, a.Code, "%s %s: %s", path, c.document, a.Body)
			assert.Contains(t, a.Body.String(), c.says, "%s %s", path, c.document)
		}
	}
}
