package e2e_test

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/derive"
	"github.com/tmshare/tmshare/internal/ext"
	"github.com/tmshare/tmshare/internal/rdf"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/merge"
	maps "github.com/tmshare/tmshare/testdata/xtm"
)

const twoConcepts = `@prefix : <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:a a :C ; rdfs:label "A"@en ; :knows :b . :b a :C ; rdfs:label "B"@en .`

// deriveFrom makes a derived collection, and fills it.
func deriveFrom(t *testing.T, db *store.DB, name, base string, inputs ...string) {
	t.Helper()
	_, err := db.CreateCollection(t.Context(), store.Collection{Name: name, SP: base, DerivedFrom: inputs}, &merge.Memory{}, nil)
	require.NoError(t, err)
	_, err = derive.CatchUp(t.Context(), db, name)
	require.NoError(t, err)
}

// requireInRDF checks that topics, entries and snapshots of a collection are offered in RDF.
func requireInRDF(t *testing.T, s *server.Server, name string) {
	t.Helper()
	base := s.BaseURL + "/topicmaps/" + name
	res, body := get(t, "GET", base+"/topics?si=http://example.org/a", "Accept", "text/turtle")
	require.Equal(t, http.StatusOK, res.StatusCode, "%s", body)
	require.Contains(t, graphOf(t, body), rdf.Quad{
		Subject: rdf.NewIRI("http://example.org/a"), Predicate: rdf.NewIRI("http://example.org/knows"), Object: rdf.NewIRI("http://example.org/b"),
	})
	res, body = get(t, "GET", base+"/snapshots/current.ttl")
	require.Equal(t, http.StatusOK, res.StatusCode, "%s", body)
	require.True(t, rdf.Isomorphic(graphOf(t, []byte(twoConcepts)), graphOf(t, body)), "%s", body)
	_, body = get(t, "GET", base+"/fragments")
	feed, err := feeds.Decode(strings.NewReader(string(body)), s.BaseURL, feeds.Limits{})
	require.NoError(t, err)
	require.NotEmpty(t, feed.Entries)
	for _, e := range feed.Entries {
		links := slices.DeleteFunc(e.Find("alternate"), func(l feeds.Link) bool { return l.Type != "text/turtle" })
		require.Len(t, links, 1, e.Title)
		res, body := get(t, "GET", links[0].Href)
		require.Equal(t, http.StatusOK, res.StatusCode, "%s", body)
	}
}

// A collection derived only from collections with RDF is offered in RDF: for inputs of this server, and for followed
// ones. The owner may change that.
func TestDerivedCollectionsAreOfferedInRDF(t *testing.T) {
	s := startServer(t, server.Config{})
	createFrom(t, s, "voc", []byte(twoConcepts))
	importMap(t, s, "egov", maps.EGov)
	deriveFrom(t, s.Store.(*store.DB), "one", s.BaseURL+"/topicmaps/one/", "voc")
	requireInRDF(t, s, "one")
	deriveFrom(t, s.Store.(*store.DB), "both", s.BaseURL+"/topicmaps/both/", "voc", "egov")
	res, _ := get(t, "GET", s.BaseURL+"/topicmaps/both/snapshots/current", "Accept", "text/turtle")
	assert.Equal(t, http.StatusNotAcceptable, res.StatusCode)
	putDocument(t, s, "egov", "application/json", []byte(`{"rdf": true}`))
	_, err := derive.CatchUp(t.Context(), s.Store.(*store.DB), "both")
	require.NoError(t, err)
	res, _ = get(t, "GET", s.BaseURL+"/topicmaps/both/snapshots/current.ttl")
	assert.Equal(t, http.StatusOK, res.StatusCode)
	putDocument(t, s, "both", "application/json", []byte(`{"rdf": false}`))
	_, err = derive.CatchUp(t.Context(), s.Store.(*store.DB), "both")
	require.NoError(t, err)
	res, _ = get(t, "GET", s.BaseURL+"/topicmaps/both/snapshots/current.ttl")
	assert.Equal(t, http.StatusNotFound, res.StatusCode, "no entry was in RDF")

	follower := startServer(t, server.Config{})
	c, err := client.New(client.Config{Protocols: ext.Protocols(), Store: follower.Store.(*store.DB), Logger: quiet})
	require.NoError(t, err)
	_, err = c.Subscribe(t.Context(), s.BaseURL+"/topicmaps/voc", client.SubscribeOptions{})
	require.NoError(t, err)
	_, err = c.Sync(t.Context(), "voc")
	require.NoError(t, err)
	deriveFrom(t, follower.Store.(*store.DB), "all", follower.BaseURL+"/topicmaps/all/", "voc")
	requireInRDF(t, follower, "all")
	putTurtle(t, s, "voc", []byte(twoConcepts+` :c a :C .`))
	putTurtle(t, s, "voc", []byte(twoConcepts))
	_, err = c.Sync(t.Context(), "voc")
	require.NoError(t, err)
	_, err = derive.CatchUp(t.Context(), follower.Store.(*store.DB), "all")
	require.NoError(t, err)
	requireInRDF(t, follower, "all")
}

// A format in which a collection was never offered is not found, and not gone.
func TestFormsThatNeverWereAreNotFound(t *testing.T) {
	s := startServer(t, server.Config{})
	importMap(t, s, "egov", maps.EGov)
	base := s.BaseURL + "/topicmaps/egov"
	_, body := get(t, "GET", base+"/fragments")
	feed, err := feeds.Decode(strings.NewReader(string(body)), s.BaseURL, feeds.Limits{})
	require.NoError(t, err)
	forms := feed.Entries[0].Find("alternate")
	entry, _, is := strings.Cut(forms[slices.IndexFunc(forms, func(l feeds.Link) bool { return strings.Contains(l.Type, "xtm") })].Href, ".xtm")
	require.True(t, is)
	topic := base + "/topics?si=https://psi.egov.example.org/service/dog-licence"
	at, _ := get(t, "HEAD", topic)
	for _, address := range []string{base + "/snapshots/current", at.Request.URL.String(), entry} {
		res, body := get(t, "GET", address+".ttl")
		require.Equal(t, http.StatusNotFound, res.StatusCode, "%s: %s", address, body)
		require.Contains(t, string(body), "this form is not offered here; available forms: ")
		require.NotContains(t, string(body), "any more")
		res, _ = get(t, "GET", address, "Accept", "text/turtle")
		require.Equal(t, http.StatusNotAcceptable, res.StatusCode, address)
	}
	putDocument(t, s, "egov", "application/json", []byte(`{"rdf": true}`))
	res, _ := get(t, "GET", entry+".ttl")
	require.Equal(t, http.StatusNotFound, res.StatusCode, "the entry is older")
	res, _ = get(t, "GET", base+"/snapshots/current.ttl")
	require.Equal(t, http.StatusOK, res.StatusCode)
	put(t, s, "egov", bytes.Replace(maps.EGov, []byte(">Dog licence<"), []byte(">Licence for a dog<"), 1))
	putDocument(t, s, "egov", "application/json", []byte(`{"rdf": false}`))
	res, _ = get(t, "GET", base+"/snapshots/current.ttl")
	require.Equal(t, http.StatusGone, res.StatusCode)
}
