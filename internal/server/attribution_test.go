package server_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/history"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/testkit/served"
)

// The author of a change and its reason stand in its entries, and in them alone.
func TestChangesBearAuthorAndNote(t *testing.T) {
	t.Parallel()
	n := start(t, served.DocumentSize(1), func(c *server.Config) {
		c.Tokens = []string{"the-token-of-alice", "a-token-of-nobody"}
		c.TokenNames = map[string]string{"the-token-of-alice": "Alice"}
	})
	alice, nobody := "Bearer the-token-of-alice", "Bearer a-token-of-nobody"
	require.Equal(t, http.StatusCreated, n.Do(http.MethodPut, "/topicmaps/m", strings.NewReader("{}"), "Authorization", alice, "Content-Type", "application/json").StatusCode)
	put := func(doc []byte, headers ...string) { t.Helper(); served.Published(t, n.Put("m", doc, headers...)) }
	put(served.Small(), "Authorization", alice, "TMShare-Note", "the first version")
	put(served.Small("Oslo", "1"), "Authorization", nobody)
	put(served.Small("Oslo", "2"), "Authorization", nobody, "TMShare-Author", " Jürgen & Co. ", "TMShare-Note", "<b>why</b>")
	put(served.Small("Oslo", "3"), "Authorization", alice, "TMShare-Author", "Alice")
	require.Equal(t, http.StatusOK, n.Do(http.MethodDelete, "/topicmaps/m/topics?si="+served.PSI+"bergen", nil, "Authorization", alice, "TMShare-Note", "gone").StatusCode)

	var h history.List
	require.NoError(t, json.Unmarshal(n.MustGet("/topicmaps/m/history?words=false").Bytes, &h))
	stated := map[string]bool{}
	var order []string
	for _, c := range h.Changes {
		if by := c.Author + ": " + c.Note; !stated[by] {
			stated[by] = true
			order = append(order, by)
		}
	}
	assert.Equal(t, []string{"Alice: gone", "Alice: ", "Jürgen & Co.: <b>why</b>", ": ", "Alice: the first version"}, order)
	assert.Equal(t, "Alice", h.Changes[len(h.Changes)-1].Author, "of the first entry too")

	at := "/topicmaps/m/fragments"
	seen := len(h.Changes)
	for i := 0; at != ""; i++ {
		d := n.Feed(at)
		require.Len(t, d.Entries, 1)
		e := d.Entries[0]
		assert.Equal(t, h.Changes[i].Note, n.Decoded(at).Entries[0].Summary)
		assert.True(t, strings.HasPrefix(strings.Join(e.Summary, "|"), h.Changes[i].Note), "it comes first")
		assert.Equal(t, h.Changes[i].Author, strings.Join(e.Authors, "|"))
		seen--
		at = d.Link(t, "prev-archive")
	}
	assert.Zero(t, seen)
}

func TestAttributionsThatAreRefused(t *testing.T) {
	t.Parallel()
	n := start(t, func(c *server.Config) {
		c.Tokens, c.TokenNames = []string{"the-token-of-alice"}, map[string]string{"the-token-of-alice": "Alice"}
	})
	n.Publish("m", served.Small())
	for name, c := range map[string]struct {
		status  int
		headers []string
	}{
		"another's name":  {http.StatusForbidden, []string{"TMShare-Author", "Bob"}},
		"a long name":     {http.StatusBadRequest, []string{"TMShare-Author", strings.Repeat("x", 201)}},
		"a long note":     {http.StatusBadRequest, []string{"TMShare-Note", strings.Repeat("x", 1001)}},
		"what is no text": {http.StatusBadRequest, []string{"TMShare-Note", "\xFF"}},
	} {
		a := n.Put("m", served.Small("Oslo", "other"), append(c.headers, "Authorization", "Bearer the-token-of-alice")...)
		assert.Equal(t, c.status, a.StatusCode, "%s: %s", name, a.Bytes)
	}
	assert.NotContains(t, string(n.MustGet("/topicmaps/m/snapshots/current").Bytes), "other")
}
