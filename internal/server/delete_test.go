package server_test

import (
	"bytes"
	"encoding/json"
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
	"github.com/tmshare/tmshare/internal/server/problems"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/served"
	maps "github.com/tmshare/tmshare/testdata/xtm"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// To delete a topic an empty topic is published (TMShare, "The Topic Map
// Fragment Update Algorithm").
func TestDeletedTopicIsPublishedAsAnEmptyTopic(t *testing.T) {
	t.Parallel()
	n := start(t)
	c := n.Publish("towns", served.TopicMap(served.Identified("oslo", []string{"http://psi.example.org/oslo", "http://psi.example.org/christiania"}, "Oslo"), served.Topic("bergen", "Bergen")))
	p := served.Published(t, n.Delete("towns", "http://psi.example.org/oslo"))
	d := n.Feed("/topicmaps/towns/fragments")
	assert.Equal(t, publish.Published{Collection: "towns", Deleted: 1, Topics: c.Topics - 1, LastChange: d.Updated()}, p)
	assert.Len(t, d.Entries, c.Topics+1)

	e := d.Entries[0]
	assert.Equal(t, []string{"http://psi.example.org/oslo"}, e.TopicSI)
	assert.Equal(t, []string{"deleted"}, e.State)
	assert.Equal(t, "Oslo", e.Titles[0], "what was deleted")
	n.checkData(e, "fragment")
	n.sameEntry(e)
	for _, href := range e.Typed(t, "topicmapdata") {
		f, err := fragment.Read(t.Context(), bytes.NewReader(n.MustGet(href).Bytes), xtm.Options{Base: tmdm.Locator(c.SP)}, "http://psi.example.org/oslo")
		require.NoError(t, err)
		assert.True(t, f.Deleted)
		assert.Equal(t, []tmdm.Locator{"http://psi.example.org/oslo", "http://psi.example.org/christiania"}, f.Topic.SubjectIdentifiers, "the former identifiers")
		assert.Empty(t, f.Stubs)
	}
	assert.NotContains(t, n.Current("towns"), "Oslo")

	again := served.Published(t, n.Delete("towns", "http://psi.example.org/oslo"))
	assert.Equal(t, publish.Published{Collection: "towns", Topics: p.Topics, LastChange: p.LastChange}, again, "deleting what is not there is success")
	assert.Equal(t, d.Raw, n.Feed("/topicmaps/towns/fragments").Raw, "and publishes nothing")
}

func TestDeletingAPlayerPublishesTheOtherPlayers(t *testing.T) {
	t.Parallel()
	n := start(t)
	c := n.Publish("small", served.Small())
	p := served.Published(t, n.Delete("small", "http://psi.example.org/oslo"))
	assert.Equal(t, 1, p.Updated)
	assert.Equal(t, 1, p.Deleted)
	assert.Equal(t, []string{"+ norway", "- oslo"}, n.log("small", c.Topics))
	assert.NotContains(t, string(n.MustGet(n.find("small", "http://psi.example.org/norway").Header.Get("Location")).Bytes), "oslo")
	assert.Contains(t, n.Current("small"), "Bergen")

	n.MustPut("small", served.Small())
	assert.Equal(t, n.Expected("small", served.Small()), n.Current("small"), "the file brings it back")
}

// Deletion never cascades: a topic used as a type, theme or reifier is kept.
func TestTopicInUseIsNotDeleted(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	n := start(t)
	n.Publish("egov", maps.EGov)
	before := n.State("egov")
	const psi = "https://psi.egov.example.org/"
	for si, user := range map[string]string{
		psi + "type/permit":                                     "its instance ",                 // types topics
		psi + "type/service":                                    "statements of \"Entitlement\"", // is a theme, too
		psi + "language/de":                                     "statements of ",                // is a theme
		psi + "association/part-of-territory":                   "an association of ",            // types associations
		psi + "agreement/passport-service":                      "an association of ",            // reifies one
		psi + "decision/passport-fee-2025":                      "statements of ",                // reifies an occurrence
		"http://psi.topicmaps.org/iso13250/model/topic-name":    "statements of ",                // types names
		"http://psi.topicmaps.org/iso13250/model/type-instance": "an association of ",            // types associations
		"http://psi.topicmaps.org/iso13250/model/instance":      "an association of ",            // types roles
	} {
		a := n.Delete("egov", si, "Accept", "text/plain")
		require.Equal(t, http.StatusConflict, a.StatusCode, "%s: %s", si, a.Bytes)
		assert.Equal(t, "text/plain; charset=utf-8", a.Header.Get("Content-Type"))
		lines := strings.Split(strings.TrimSpace(string(a.Bytes)), "\n")
		require.Greater(t, len(lines), 1, "%s", a.Bytes)
		assert.Contains(t, string(a.Bytes), user)

		var p problems.Problem
		a = n.Delete("egov", si, "Accept", "application/json")
		assert.Equal(t, "application/problem+json", a.Header.Get("Content-Type"))
		require.NoError(t, json.Unmarshal(a.Bytes, &p))
		assert.Equal(t, http.StatusConflict, p.Status)
		assert.Len(t, p.Users, len(lines)-2, "between the first line and that with the request id")
		assert.LessOrEqual(t, len(p.Users), 20)
	}
	assert.Equal(t, before, n.State("egov"))
}

func TestDeletingWhatNeverWasIsNotFound(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.Publish("small", served.Small())
	before := n.State("small")
	assert.Equal(t, http.StatusNotFound, n.Delete("small", "http://psi.example.org/stavanger").StatusCode)
	assert.Equal(t, http.StatusNotFound, n.Delete("none", "http://psi.example.org/oslo").StatusCode)
	assert.Equal(t, before, n.State("small"))
}

// The address of a former TopicSI speaks of a topic that lives on under another.
func TestDeletingUnderAFormerIdentifierNamesTheTopic(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.Publish("small", served.Small())
	merged := bytes.Replace(served.Small(), []byte(served.Topic("tromsø", "Tromsø")), nil, 1)
	merged = bytes.Replace(merged, []byte(`<subjectIndicatorRef xlink:href="http://psi.example.org/bergen"/>`),
		[]byte(`<subjectIndicatorRef xlink:href="http://psi.example.org/bergen"/><subjectIndicatorRef xlink:href="http://psi.example.org/tromsø"/>`), 1)
	n.MustPut("small", merged)
	before := n.State("small")
	a := n.Delete("small", "http://psi.example.org/tromsø")
	assert.Equal(t, http.StatusConflict, a.StatusCode)
	assert.Contains(t, string(a.Bytes), "http://psi.example.org/bergen")
	assert.Equal(t, before, n.State("small"))
	assert.Equal(t, 1, served.Published(t, n.Delete("small", "http://psi.example.org/bergen")).Deleted)
}

const nothing = `<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1"/>`

// numbered returns a map with topics numbered from a number on.
func numbered(from, topics int) []byte {
	var b bytes.Buffer
	b.WriteString(strings.TrimSuffix(nothing, "/>") + ">")
	for i := from; i < from+topics; i++ {
		fmt.Fprintf(&b, `<topic><subjectIdentifier href="http://psi.example.org/%d"/><occurrence><type><subjectIdentifierRef href="http://psi.example.org/note"/></type><resourceData>%d</resourceData></occurrence></topic>`, i, i)
	}
	b.WriteString("</topicMap>")
	return b.Bytes()
}

func problemOf(t *testing.T, a served.Answer, status int) problems.Problem {
	t.Helper()
	require.Equal(t, status, a.StatusCode, "%s", a.Bytes)
	var p problems.Problem
	require.NoError(t, json.Unmarshal(a.Bytes, &p))
	return p
}

// A version that would lose more than half of a map is held back: an empty file, a truncated one, another map.
func TestMassDeletionIsHeldBack(t *testing.T) {
	n := start(t)
	n.Publish("map", numbered(0, 40)) // 41 topics with the type of their occurrences
	before := n.State("map")
	for _, version := range [][]byte{[]byte(nothing), numbered(0, 19), numbered(1000, 50)} {
		p := problemOf(t, n.Put("map", version, "Accept", "application/json"), http.StatusConflict)
		require.NotNil(t, p.HeldBack)
		assert.Equal(t, 41, p.HeldBack.Topics)
		assert.Contains(t, p.Detail, fmt.Sprintf("send it with the header TMShare-Max-Delete: %d", p.HeldBack.Deleted))
		assert.Equal(t, before, n.State("map"))
	}
	p := problemOf(t, n.Put("map", numbered(1000, 50)), http.StatusConflict)
	assert.Equal(t, []int{41, 50, 0, 40, 0, 0}, []int{p.HeldBack.Topics, p.HeldBack.Added, p.HeldBack.Updated, p.HeldBack.Deleted, p.HeldBack.Emptied, p.HeldBack.Untyped})

	assert.Equal(t, http.StatusConflict, n.Put("map", numbered(0, 20), "TMShare-Max-Delete", "10%").StatusCode)
	assert.Equal(t, http.StatusConflict, n.Put("map", numbered(0, 39), "TMShare-Max-Delete", "0").StatusCode)
	p = problemOf(t, n.Put("map", numbered(0, 39), "TMShare-Max-Delete", "some"), http.StatusBadRequest)
	assert.Contains(t, p.Detail, "TMShare-Max-Delete")
	assert.Equal(t, before, n.State("map"))

	assert.Equal(t, 20, n.MustPut("map", numbered(0, 20)).Deleted, "half of it may go")
	assert.Equal(t, 19, served.Published(t, n.Put("map", numbered(0, 1), "TMShare-Max-Delete", "19")).Deleted)
	assert.Equal(t, 2, n.MustPut("map", []byte(nothing)).Deleted, "a small map has no guard by default")
	assert.Equal(t, 41, n.MustPut("map", numbered(0, 40)).Added)
	assert.Equal(t, 41, served.Published(t, n.Put("map", []byte(nothing), "TMShare-Max-Delete", "all")).Deleted)
}

// Deletions of single topics are not held back.
func TestExplicitDeletionsAreNotHeldBack(t *testing.T) {
	n := start(t, func(c *server.Config) { require.NoError(t, c.MaxDelete.UnmarshalText([]byte("0"))) })
	n.Publish("map", numbered(0, 21))
	assert.Equal(t, http.StatusConflict, n.Put("map", numbered(0, 20)).StatusCode, "the server's own limit")
	assert.Equal(t, 1, served.Published(t, n.Delete("map", "http://psi.example.org/7")).Deleted)
}

// A dry run does the same as a publication, until the commit.
func TestDryRun(t *testing.T) {
	testenv.SkipUnderRace(t)
	n := start(t)
	c := n.Publish("map", numbered(0, 40))
	before := n.State("map")
	version := bytes.Replace(numbered(1, 40), []byte(">7<"), []byte(">seven<"), 1)
	dry := func(method, path string, body []byte, headers ...string) publish.Published {
		t.Helper()
		p := served.Published(t, n.Do(method, "/topicmaps/"+path, bytes.NewReader(body), headers...))
		assert.True(t, p.DryRun)
		assert.Empty(t, p.LastChange)
		assert.Equal(t, before, n.State("map"))
		return p
	}
	p := dry("PUT", "map/dry-run", version)
	assert.Equal(t, publish.Published{
		Collection: "map", Added: 1, Updated: 1, Deleted: 1, Topics: 41, DryRun: true,
		Changes: []publish.ChangedTopic{
			{TopicSI: "http://psi.example.org/0", Title: "http://psi.example.org/0", Change: "deleted"},
			{TopicSI: "http://psi.example.org/40", Title: "http://psi.example.org/40", Change: "added"},
			{TopicSI: "http://psi.example.org/7", Title: "http://psi.example.org/7", Change: "updated"},
		},
	}, p)
	real := n.MustPut("map", version)
	assert.Equal(t, []int{p.Added, p.Updated, p.Deleted, p.Topics}, []int{real.Added, real.Updated, real.Deleted, real.Topics})
	before = n.State("map")

	assert.Equal(t, 1, dry("POST", "map/topics/dry-run", numbered(500, 1)).Added)
	assert.Equal(t, 1, dry("DELETE", "map/topics/dry-run?si=http://psi.example.org/7", nil).Deleted)
	assert.Equal(t, 1, dry("DELETE", "map/topics/"+fragment.Key("http://psi.example.org/7")+"/dry-run", nil).Deleted)
	problemOf(t, n.Do("PUT", "/topicmaps/map/dry-run", strings.NewReader(nothing)), http.StatusConflict)
	assert.Equal(t, 412, n.Do("PUT", "/topicmaps/map/dry-run", bytes.NewReader(version), "If-Match", `"old"`).StatusCode)
	assert.Equal(t, http.StatusConflict, n.Do("DELETE", "/topicmaps/map/topics/dry-run?si=http://psi.example.org/note", nil).StatusCode)
	assert.Equal(t, before, n.State("map"))
	assert.EqualValues(t, 41, c.Topics)

	// Many changes are counted, and the first ones listed.
	p = dry("PUT", "map/dry-run", numbered(1, 2000))
	assert.Equal(t, 1960, p.Added)
	assert.Len(t, p.Changes, 1000)
}

// The first version of a map that is not there, or empty.
func TestDryRunOfAFirstVersion(t *testing.T) {
	n := start(t)
	require.Equal(t, http.StatusCreated, n.PutSettings("empty", "{}").StatusCode)
	before := n.State("empty")
	for _, name := range []string{"empty", "new"} {
		p := served.Published(t, n.Do("PUT", "/topicmaps/"+name+"/dry-run", bytes.NewReader(numbered(0, 3))))
		assert.Equal(t, 4, p.Added, name)
		assert.Equal(t, 4, p.Topics, name)
		assert.Len(t, p.Changes, 4, name)
	}
	assert.Equal(t, before, n.State("empty"))
	assert.Equal(t, http.StatusNotFound, n.Get("/topicmaps/new").StatusCode)
	assert.Equal(t, http.StatusUnprocessableEntity, n.Do("PUT", "/topicmaps/new/dry-run", strings.NewReader("<topicMap>")).StatusCode)
	assert.Equal(t, http.StatusUnprocessableEntity, n.Do("PUT", "/topicmaps/a%20b/dry-run", strings.NewReader(nothing)).StatusCode)
	assert.Equal(t, http.StatusUnprocessableEntity, n.Do("PUT", "/topicmaps/new/dry-run?sp=map", strings.NewReader(nothing)).StatusCode)

	// Topics without an identifier are named as they will be.
	unnamed := `<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1"><topic id="x"/></topicMap>`
	given := "https://id.example.org/maps/"
	p := served.Published(t, n.Do("PUT", "/topicmaps/new/dry-run?sp="+url.QueryEscape(given), strings.NewReader(unnamed)))
	assert.Equal(t, given, p.SP)
	require.Len(t, p.Changes, 1)
	assert.Equal(t, given+"topic/x", p.Changes[0].TopicSI)
	p = served.Published(t, n.Do("PUT", "/topicmaps/new/dry-run", strings.NewReader(unnamed)))
	require.Equal(t, http.StatusCreated, n.PutSettings("new", "{}").StatusCode)
	assert.Equal(t, n.SP("new"), p.SP)
	require.Len(t, p.Changes, 1)
	assert.Equal(t, n.SP("new")+"topic/x", p.Changes[0].TopicSI)
}

// A dry run of pruning returns the number of entries that would be removed.
func TestDryRunOfGC(t *testing.T) {
	n := start(t, served.DocumentSize(2), func(c *server.Config) { c.KeepEntries = 4 })
	n.Publish("map", numbered(0, 9))
	n.MustPut("map", numbered(0, 10))
	a := n.Do("POST", "/topicmaps/map/snapshots", nil)
	require.Equal(t, http.StatusOK, a.StatusCode/201*200, "%s", a.Bytes)
	n.MustPut("map", numbered(0, 11))
	entries := func(path string) server.Pruned {
		var p server.Pruned
		a := n.Do("POST", path, nil)
		require.Equal(t, http.StatusOK, a.StatusCode, "%s", a.Bytes)
		require.NoError(t, json.Unmarshal(a.Bytes, &p))
		return p
	}
	var dry server.Pruned
	require.NoError(t, n.Store.View(n.T.Context(), "map", func(v *store.View) error {
		before := v.Horizon
		dry = entries("/topicmaps/map/gc/dry-run")
		assert.Equal(t, before, v.Horizon)
		return nil
	}))
	assert.True(t, dry.DryRun)
	real := entries("/topicmaps/map/gc")
	assert.False(t, real.DryRun)
	assert.Equal(t, dry.Entries, real.Entries)
}
