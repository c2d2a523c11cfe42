package server_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/server"
	maps "github.com/tmshare/tmshare/testdata/xtm"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

func (n *node) delete(name, si string, headers ...string) answer {
	n.t.Helper()
	return n.do(http.MethodDelete, "/topicmaps/"+name+"/topics/"+fragment.Key(fragment.Ref(si)), nil, headers...)
}

// To delete a topic an empty topic is published (TMShare, "The Topic Map
// Fragment Update Algorithm").
func TestDeletedTopicIsPublishedAsAnEmptyTopic(t *testing.T) {
	t.Parallel()
	n := start(t)
	c := n.publish("towns", topicMap(identified("oslo", []string{"http://psi.example.org/oslo", "http://psi.example.org/christiania"}, "Oslo"), topic("bergen", "Bergen")))
	p := published(t, n.delete("towns", "http://psi.example.org/oslo"))
	d := n.feed("/topicmaps/towns/fragments")
	assert.Equal(t, server.Published{Collection: "towns", Deleted: 1, Topics: c.Topics - 1, LastChange: d.updated()}, p)
	assert.Len(t, d.Entries, c.Topics+1)

	e := d.Entries[0]
	assert.Equal(t, []string{"http://psi.example.org/oslo"}, e.TopicSI)
	assert.Equal(t, []string{"deleted"}, e.State)
	assert.Equal(t, "Oslo", e.Titles[0], "what was deleted")
	n.checkData(e, "fragment")
	n.sameEntry(e)
	for _, href := range e.typed(t, "topicmapdata") {
		f, err := fragment.Read(t.Context(), bytes.NewReader(n.mustGet(href).body), xtm.Options{Base: tmdm.Locator(c.SP)}, "http://psi.example.org/oslo")
		require.NoError(t, err)
		assert.True(t, f.Deleted)
		assert.Equal(t, []tmdm.Locator{"http://psi.example.org/oslo", "http://psi.example.org/christiania"}, f.Topic.SubjectIdentifiers, "the former identifiers")
		assert.Empty(t, f.Stubs)
	}
	assert.NotContains(t, n.current("towns"), "Oslo")

	again := published(t, n.delete("towns", "http://psi.example.org/oslo"))
	assert.Equal(t, server.Published{Collection: "towns", Topics: p.Topics, LastChange: p.LastChange}, again, "deleting what is not there is success")
	assert.Equal(t, d.raw, n.feed("/topicmaps/towns/fragments").raw, "and publishes nothing")
}

func TestDeletingAPlayerPublishesTheOtherPlayers(t *testing.T) {
	t.Parallel()
	n := start(t)
	c := n.publish("small", small())
	p := published(t, n.delete("small", "http://psi.example.org/oslo"))
	assert.Equal(t, 1, p.Updated)
	assert.Equal(t, 1, p.Deleted)
	assert.Equal(t, []string{"+ norway", "- oslo"}, n.log("small", c.Topics))
	assert.NotContains(t, string(n.mustGet(n.find("small", "http://psi.example.org/norway").Header.Get("Location")).body), "oslo")
	assert.Contains(t, n.current("small"), "Bergen")

	n.mustPut("small", small())
	assert.Equal(t, n.expected("small", small()), n.current("small"), "the file brings it back")
}

// Deletion never cascades: what is typed, scoped or reified by a topic keeps it.
func TestTopicInUseIsNotDeleted(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.publish("egov", maps.EGov)
	before := n.state("egov")
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
		a := n.delete("egov", si, "Accept", "text/plain")
		require.Equal(t, http.StatusConflict, a.StatusCode, "%s: %s", si, a.body)
		assert.Equal(t, "text/plain; charset=utf-8", a.Header.Get("Content-Type"))
		lines := strings.Split(strings.TrimSpace(string(a.body)), "\n")
		require.Greater(t, len(lines), 1, "%s", a.body)
		assert.Contains(t, string(a.body), user)

		var p server.Problem
		a = n.delete("egov", si, "Accept", "application/json")
		assert.Equal(t, "application/problem+json", a.Header.Get("Content-Type"))
		require.NoError(t, json.Unmarshal(a.body, &p))
		assert.Equal(t, http.StatusConflict, p.Status)
		assert.Len(t, p.Users, len(lines)-2, "between the first line and that with the request id")
		assert.LessOrEqual(t, len(p.Users), 20)
	}
	assert.Equal(t, before, n.state("egov"))
}

func TestDeletingWhatNeverWasIsNotFound(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.publish("small", small())
	before := n.state("small")
	assert.Equal(t, http.StatusNotFound, n.delete("small", "http://psi.example.org/stavanger").StatusCode)
	assert.Equal(t, http.StatusNotFound, n.delete("none", "http://psi.example.org/oslo").StatusCode)
	assert.Equal(t, before, n.state("small"))
}

// The address of a former TopicSI speaks of a topic that lives on under another.
func TestDeletingUnderAFormerIdentifierNamesTheTopic(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.publish("small", small())
	merged := bytes.Replace(small(), []byte(topic("tromsø", "Tromsø")), nil, 1)
	merged = bytes.Replace(merged, []byte(`<subjectIndicatorRef xlink:href="http://psi.example.org/bergen"/>`),
		[]byte(`<subjectIndicatorRef xlink:href="http://psi.example.org/bergen"/><subjectIndicatorRef xlink:href="http://psi.example.org/tromsø"/>`), 1)
	n.mustPut("small", merged)
	before := n.state("small")
	a := n.delete("small", "http://psi.example.org/tromsø")
	assert.Equal(t, http.StatusConflict, a.StatusCode)
	assert.Contains(t, string(a.body), "http://psi.example.org/bergen")
	assert.Equal(t, before, n.state("small"))
	assert.Equal(t, 1, published(t, n.delete("small", "http://psi.example.org/bergen")).Deleted)
}
