package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/history"
	"github.com/tmshare/tmshare/internal/testkit/served"
)

// changes returns the changes of a map, the newest first.
func (n *node) changes(name string) []history.Change {
	n.T.Helper()
	var h history.List
	require.NoError(n.T, json.Unmarshal(n.MustGet("/topicmaps/"+name+"/history?words=false&limit=1000").Bytes, &h))
	return h.Changes
}

// What is reverted is a new change; the log keeps the one that it takes back.
func TestRevertingIsAChange(t *testing.T) {
	t.Parallel()
	c := served.NewClock()
	n := startAt(t, c)
	n.Publish("m", served.Small())
	first := n.recordState("m")
	c.Advance(time.Hour)
	n.MustPut("m", served.Small("Oslo", "Christiania", "Bergen", "Bjørgvin"))
	renamed := n.recordState("m")
	before := n.changes("m")

	revert := "/topicmaps/m/revert"
	require.NotEqual(t, before[1].Commit, before[1].Entry)
	commit := fmt.Sprintf("?commit=%d", before[1].Entry) // any entry of a commit stands for it
	p := served.Published(t, n.Post(revert+"/dry-run"+commit))
	assert.True(t, p.DryRun)
	assert.Equal(t, 2, p.Updated)
	assert.Len(t, n.changes("m"), len(before), "a dry run changes nothing")

	p = served.Published(t, n.Post(revert+commit))
	assert.Equal(t, []int{0, 2, 0}, []int{p.Added, p.Updated, p.Deleted})
	assert.Equal(t, first.state, n.recordState("m").state)
	after := n.changes("m")
	assert.Equal(t, before, after[2:], "what was said stays")
	assert.Equal(t, "Reverts commit "+fmt.Sprint(before[0].Commit), after[0].Note)
	served.Published(t, n.Post(fmt.Sprintf("%s?commit=%d", revert, after[0].Entry), "TMShare-Note", "after all"))
	assert.Equal(t, renamed.state, n.recordState("m").state)
	assert.Equal(t, "after all", n.changes("m")[0].Note)

	then := url.Values{"si": {served.PSI + "oslo"}, "to": {first.at}}
	p = served.Published(t, n.Post(revert+"?"+then.Encode()))
	assert.Equal(t, []int{0, 1, 0}, []int{p.Added, p.Updated, p.Deleted})
	a := n.MustGet("/topicmaps/m/snapshots/current.xtm21")
	assert.Contains(t, string(a.Bytes), "Oslo")
	assert.Contains(t, string(a.Bytes), "Bjørgvin", "only the topic goes back")
	assert.Zero(t, served.Published(t, n.Post(revert+"?"+then.Encode())).Updated, "it is so already")
}

func TestRevertsThatAreRefused(t *testing.T) {
	t.Parallel()
	c := served.NewClock()
	n := startAt(t, c)
	n.Publish("m", served.Cities(30, "a city"))
	c.Advance(time.Hour)
	n.MustPut("m", served.Cities(30, "a town"))
	town := n.changes("m")[0].Commit
	c.Advance(time.Hour)
	n.MustPut("m", served.Cities(31, "a town"))
	joined := n.changes("m")[0].Commit
	require.Equal(t, http.StatusOK, n.Do(http.MethodDelete, "/topicmaps/m/topics?si="+served.PSI+"city-7", nil).StatusCode)
	etag := n.MustGet("/topicmaps/m").Header.Get("ETag")
	for query, want := range map[string]int{
		"":                                     http.StatusBadRequest,
		"?commit=0":                            http.StatusBadRequest,
		"?commit=x":                            http.StatusBadRequest,
		"?commit=99999":                        http.StatusNotFound,
		"?si=" + served.PSI + "city-1":         http.StatusBadRequest,
		"?si=" + served.PSI + "city-1&to=noon": http.StatusBadRequest,
		"?si=" + served.PSI + "city-1&to=2020-01-01": http.StatusNotFound,
		"?si=" + served.PSI + "nobody&to=2027-01-01": http.StatusNotFound,
		"?commit=1&si=" + served.PSI + "city-1":      http.StatusBadRequest,
		fmt.Sprint("?commit=", town):                 http.StatusConflict, // city-7 has gone since
		fmt.Sprint("?commit=", 1):                    http.StatusConflict,
	} {
		a := n.Post("/topicmaps/m/revert" + query)
		assert.Equal(t, want, a.StatusCode, "%s: %s", query, a.Bytes)
	}
	assert.Equal(t, http.StatusPreconditionFailed, n.Post(fmt.Sprint("/topicmaps/m/revert?commit=", joined), "If-Match", `"other"`).StatusCode)
	assert.Equal(t, etag, n.MustGet("/topicmaps/m").Header.Get("ETag"), "nothing has changed")
	p := served.Published(t, n.Post(fmt.Sprint("/topicmaps/m/revert?commit=", joined), "If-Match", etag))
	assert.Equal(t, 1, p.Deleted)

	// The rest of a commit can be taken back where some of it has changed since.
	a := n.Post(fmt.Sprint("/topicmaps/m/revert?commit=", town))
	assert.Contains(t, string(a.Bytes), served.PSI+"city-7: it has changed since")
	assert.Equal(t, http.StatusBadRequest, n.Post(fmt.Sprint("/topicmaps/m/revert?force=perhaps&commit=", town)).StatusCode)
	assert.Equal(t, 29, served.Published(t, n.Post(fmt.Sprint("/topicmaps/m/revert?force=true&commit=", town))).Updated)

	// To take back the first version deletes nearly all.
	n.Publish("other", served.Cities(30, "a city"))
	first := n.changes("other")[0].Commit
	a = n.Post(fmt.Sprint("/topicmaps/other/revert?commit=", first))
	assert.Equal(t, http.StatusConflict, a.StatusCode)
	assert.Contains(t, string(a.Bytes), "would lose")
	p = served.Published(t, n.Post(fmt.Sprint("/topicmaps/other/revert?commit=", first), "TMShare-Max-Delete", "all"))
	assert.Zero(t, p.Topics)
}
