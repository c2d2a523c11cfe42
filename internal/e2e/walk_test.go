//go:build !race

package e2e_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/clientcmd"
	"github.com/tmshare/tmshare/internal/derive"
	"github.com/tmshare/tmshare/internal/ext"
	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/browser"
	"github.com/tmshare/tmshare/merge"
)

// People read, compare and edit a real vocabulary by name: they browse it, find a term in German, see its place, its
// history and the authors, revert an error, and see that a follower has it, who can reject a statement.
func walkThroughAVocabulary(t *testing.T, b *browser.Browser) {
	const token, si = "0123456789abcdef0123", "https://w3id.org/nfdi4cat/voc4cat_0000001"
	states := vocabularies(t)
	s := startServer(t, server.Config{Tokens: []string{token}, TokenNames: map[string]string{token: "Ada"}})
	importMap(t, s, "voc4cat", []byte(`<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1"/>`))
	for i, note := range []string{"the sixth state", "the seventh state"} {
		putDocument(t, s, "voc4cat", "text/turtle", states[4+i], "Authorization", "Bearer "+token, "TMShare-Note", note)
	}
	db := openStore(t)
	follower := startNode(t, &extension.Holding{DB: db, Execute: clientcmd.Executing(ext.All)}, token)
	c, err := client.New(client.Config{Formats: ext.Formats(), Protocols: ext.Protocols(), Store: db, Logger: quiet})
	require.NoError(t, err)
	_, err = c.Subscribe(t.Context(), s.BaseURL+"/topicmaps/voc4cat", client.SubscribeOptions{})
	require.NoError(t, err)
	_, err = db.CreateCollection(t.Context(), store.Collection{Name: "all", SP: follower + "/topicmaps/all/", DerivedFrom: []string{"voc4cat"}}, &merge.Memory{}, nil)
	require.NoError(t, err)
	syncs := func() {
		_, err := c.Sync(t.Context(), "voc4cat")
		require.NoError(t, err)
		_, err = derive.CatchUp(t.Context(), db, "all")
		require.NoError(t, err)
	}
	syncs()

	b.Visit(s.BaseURL)
	b.Follow("voc4cat")
	b.Follow("Hierarchy of concepts")
	for _, concept := range []string{"physical entity", "equipment", "optical equipment", "irradiation system", "light source", "xenon lamp"} {
		b.Follow(concept)
		assert.Equal(t, concept, b.Title())
	}
	b.Follow("A–Z")
	b.Follow("P")
	b.Follow("photocatalysis")
	assert.Regexp(t, `(?s)Where it stands.*non-temporal abstract entity.*catalysis research field.*nanocatalysis.*photocatalysis`, b.Text())
	assert.Regexp(t, `(?s)History.*changed by Ada: the seventh state.*added by Ada: the sixth state`, b.Text())
	b.Follow("changes since")
	assert.Regexp(t, `(?s)What differs in photocatalysis.*Broader: catalysis research field.*alternative label: “photocatalytic reaction”.*Broader: processes`, b.Text())
	b.Follow("voc4cat")
	assert.Regexp(t, `\d+ added, \d+ changed(, \d+ deleted)? by Ada: the seventh state`, b.Text())
	b.Follow("what has changed")
	assert.Regexp(t, `(?s)What differs in voc4cat.*was\s+“supported catalyst”\s+is\s+“catalysis research field”`, b.Text())

	b.Visit(s.BaseURL + "/sign-in.html")
	b.Fill("Token", token)
	require.Equal(t, http.StatusOK, b.Press("Sign in"))
	concept := s.BaseURL + "/topicmaps/voc4cat/topics/" + fragment.Key(si) + ".html"
	edit := func(note string, fields map[string]string) { // the texts by their fields

		t.Helper()
		b.Visit(concept)
		b.Follow("Edit this topic")
		for field, text := range fields {
			require.True(t, browser.Eval[bool](b, `(f => { f.closest("details").open = true; f.focus(); f.select(); return document.activeElement === f })(
				[...document.querySelectorAll("form [name^=name-]")].find(f => f.value === "`+field+`" || f.id === "`+field+`"))`), field)
			b.Keys(text)
		}
		b.Fill("Note: why", note)
		require.Equal(t, http.StatusOK, b.Press("Show what will be published"))
		require.Equal(t, http.StatusOK, b.Press("Publish"))
		assert.Contains(t, b.Text(), note)
	}
	edit("its German label", map[string]string{"name-1-value": "Photokatalyse", "name-1-type": "preferred label", "name-1-language": "de"})
	b.Follow("A–Z")
	b.Follow("German") // names in it, and the pages as they were
	b.Fill("Find a topic", "photokat")
	require.Equal(t, http.StatusOK, b.Press("Find"))
	b.Follow("Photokatalyse")
	assert.Equal(t, "Photokatalyse", b.Title())
	assert.Regexp(t, `(?s)Where it stands.*catalysis research field.*nanocatalysis.*Photokatalyse`, b.Text())
	b.Follow("Deutsch")
	assert.Regexp(t, `(?s)Oberbegriff.*catalysis research field.*Deutsch\s+Photokatalyse`, b.Text())
	b.Audit(browser.Axe(t))

	edit("a mistake", map[string]string{"photocatalysis": "photography"})
	assert.Equal(t, "photography", b.Title())
	syncs()                                                                                  // a follower may have it by now
	b.Follow(browser.Eval[string](b, `document.querySelector("li > a > time").textContent`)) // the newest change in its history
	b.Follow("Undo the whole commit")
	assert.Regexp(t, `(?s)was\s+“photography”\s+is\s+“photocatalysis”`, b.Text())
	require.Equal(t, http.StatusOK, b.Press("Undo the commit"))
	b.Follow("Changes")
	assert.Regexp(t, `(?s)Ada: Takes back the change of .*Ada: a mistake.*Ada: its German label.*Ada: the seventh state`, b.Text())

	b.Visit(concept)
	b.Follow("Move it under another concept")
	b.Audit(browser.Axe(t))
	b.Fill("Broader", "light sour")
	testenv.Eventually(t, func() bool {
		return browser.Eval[bool](b, `[...document.getElementById("under").list?.options ?? []].some(o => o.value === "light source")`)
	})
	b.Keys("ce")
	require.Equal(t, http.StatusOK, b.Press("Show what will be published"))
	assert.Regexp(t, `(?s)photocatalysis will be below light source.*No longer said:\s+Broader: catalysis research field`, b.Text())
	b.Audit(browser.Axe(t))
	b.Fill("Note: why", "a better place")
	require.Equal(t, http.StatusOK, b.Press("Move the concept"))
	assert.Regexp(t, `(?s)Where it stands.*equipment.*irradiation system.*light source.*photocatalysis`, b.Text())

	syncs()
	b.Visit(follower + "/node.html")
	b.Fill("Token", token)
	require.Equal(t, http.StatusOK, b.Press("Sign in"))
	b.Follow("voc4cat")
	assert.Regexp(t, `(?s)State\s+in step.*Proven.*the source states the same digest`, b.Text())
	b.Visit(follower + "/topicmaps/all.html")
	b.Fill("Find a topic", "photokat")
	require.Equal(t, http.StatusOK, b.Press("Find"))
	b.Follow("photocatalysis")
	b.Follow("Who says what, and what to reject")
	require.True(t, browser.Eval[bool](b, `(e => { e.open = true; const reason = e.querySelector("input[name=reason]"); reason.focus(); return document.activeElement === reason })(
		[...document.querySelectorAll("li")].find(e => e.innerText.startsWith("Photokatalyse")).querySelector("details"))`))
	b.Keys("It is not our word")
	require.Equal(t, http.StatusOK, b.Enter())
	assert.Regexp(t, "(?s)Rejected: it no longer shows.*Rejected.*Photokatalyse.*said by voc4cat: It is not our word", b.Text())
	syncs()
	b.Visit(follower + "/topicmaps/all/topics/" + fragment.Key(si) + ".html")
	assert.Contains(t, b.Text(), "photocatalysis")
	assert.NotContains(t, b.Text(), "Photokatalyse")
	assert.Empty(t, b.Complaints())
}
