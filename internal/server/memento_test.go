package server_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store"
)

// publishVersions publishes so many versions of a map, an hour apart, and returns the path of one of
// its topics, without the part that says what of it.
func publishVersions(n *node, c *clock, count int) (key string, times []time.Time) {
	for i := range count {
		doc := cities(1, fmt.Sprint("version ", i))
		if i == 0 {
			n.publish("m", doc)
		} else {
			n.mustPut("m", doc)
		}
		times = append(times, c.Now())
		c.advance(time.Hour)
	}
	return fragment.Key(psi + "city-0"), times
}

func accept(t time.Time) []string {
	return []string{"Accept-Datetime", t.UTC().Format(http.TimeFormat)}
}

// A TimeGate leads to the version that was current at a time; the version says when that was.
func TestTimeGateLeadsToTheVersionOfATime(t *testing.T) {
	t.Parallel()
	c := newClock()
	n := startAt(t, c)
	key, times := publishVersions(n, c, 4)
	gate := "/topicmaps/m/timegate/" + key
	for name, want := range map[string]struct {
		headers []string
		version int
	}{
		"none given":       {nil, 3},
		"now":              {accept(c.Now()), 3},
		"the very second":  {accept(times[2]), 2},
		"a second before":  {accept(times[2].Add(-time.Second)), 1},
		"between":          {accept(times[1].Add(time.Minute)), 1},
		"before the first": {accept(times[0].Add(-time.Hour)), 0},
	} {
		a := n.get(gate, want.headers...)
		require.Equal(t, http.StatusFound, a.StatusCode, "%s: %s", name, a.body)
		assert.Equal(t, "Accept-Datetime", a.Header.Get("Vary"))
		assert.Empty(t, a.Header.Get("Memento-Datetime"), "it is no version itself")
		assert.Contains(t, a.Header.Values("Link"), "<"+n.url("/topicmaps/m/topics/"+key)+`>; rel="original"`)
		version := n.mustGet(a.Header.Get("Location"))
		assert.Equal(t, times[want.version].UTC().Format(http.TimeFormat), version.Header.Get("Memento-Datetime"), name)
		if want.version > 0 { // what the first one was was not kept before it was replaced
			assert.Contains(t, string(version.body), fmt.Sprint("version ", want.version), name)
		}
		assert.Contains(t, version.Header.Values("Link"), "<"+n.url(gate)+`>; rel="timegate"`)
	}
	assert.Equal(t, http.StatusBadRequest, n.get(gate, "Accept-Datetime", "yesterday").StatusCode)
	assert.Equal(t, http.StatusNotFound, n.get("/topicmaps/m/timegate/"+strings.Repeat("a", 26)).StatusCode)
}

var memento = regexp.MustCompile(`<([^>]*)>; rel="([a-z ]*)"(?:; (?:type|datetime)="([^"]*)")?`)

// A TimeMap lists all versions that are kept, in pages.
func TestTimeMapListsAllVersions(t *testing.T) {
	t.Parallel()
	c := newClock()
	n := startAt(t, c, documentSize(1))
	key, times := publishVersions(n, c, 5)
	timeMap := "/topicmaps/m/timemap/" + key
	a := n.mustGet(timeMap)
	assert.Equal(t, "application/link-format", a.mediaType())
	links := memento.FindAllStringSubmatch(string(a.body), -1)
	require.Len(t, links, 3+5)
	assert.Equal(t, []string{n.url("/topicmaps/m/topics/" + key), "original"}, links[0][1:3])
	assert.Equal(t, []string{n.url("/topicmaps/m/timegate/" + key), "timegate"}, links[1][1:3])
	assert.Equal(t, []string{n.url(timeMap), "self", "application/link-format"}, links[2][1:4])
	for i, l := range links[3:] {
		want := map[int]string{0: "last memento", 4: "first memento"}[i]
		if want == "" {
			want = "memento"
		}
		at := times[4-i].UTC().Format(http.TimeFormat)
		assert.Equal(t, []string{want, at}, l[2:4])
		assert.Equal(t, at, n.mustGet(l[1]).Header.Get("Memento-Datetime"))
	}
	assert.Equal(t, http.StatusNotModified, n.get(timeMap, "If-None-Match", a.Header.Get("ETag")).StatusCode)

	// One page goes on where the one before ends.
	page := timeMap + "-" + itoa(int(n.sequence(links[5][1])))
	rest := memento.FindAllStringSubmatch(string(n.mustGet(page).body), -1)
	require.Len(t, rest, 3+3)
	assert.Equal(t, links[5:], rest[3:])
	assert.Equal(t, http.StatusNotFound, n.get(timeMap+"-999").StatusCode)
	assert.Equal(t, http.StatusNotFound, n.get(timeMap+"-2").StatusCode, "a version of another topic")

	// What is pruned is not listed.
	n.settings("m", func(s *store.Settings) { s.KeepEntries = 1 })
	n.mustPut("m", cities(1, "last"))
	require.Equal(t, http.StatusCreated, n.post("/topicmaps/m/snapshots").StatusCode)
	require.Equal(t, http.StatusOK, n.post("/topicmaps/m/gc").StatusCode)
	left := memento.FindAllStringSubmatch(string(n.mustGet(timeMap).body), -1)
	assert.Less(t, len(left), 3+5)
	for _, l := range left[3:] {
		n.mustGet(l[1])
	}
	assert.Equal(t, http.StatusGone, n.get(page).StatusCode)
}

// sequence returns that of the entry with a fragment.
func (n *node) sequence(url string) (seq uint64) {
	id := url[strings.LastIndex(url, "/")+1:]
	require.NoError(n.t, n.Store.View(n.t.Context(), "m", func(v *store.View) error {
		e, err := v.EntryOf(uuid.MustParse(id))
		if err == nil {
			seq = e.Seq
		}
		return err
	}))
	return seq
}
