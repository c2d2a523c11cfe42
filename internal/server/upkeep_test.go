package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
)

// clock is a clock that tests set.
type clock struct{ now atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.now.Store(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).UnixMicro())
	return c
}

func (c *clock) Now() time.Time          { return time.UnixMicro(c.now.Load()) }
func (c *clock) advance(d time.Duration) { c.now.Add(d.Microseconds()) }

// startAt starts a server and its store on a clock.
func startAt(t testing.TB, c *clock, configure ...func(*server.Config)) *node {
	t.Helper()
	return startOn(t, store.Options{Dir: t.TempDir(), Now: c.Now}, append(configure, func(cfg *server.Config) { cfg.Now = c.Now })...)
}

func (n *node) post(path string, headers ...string) answer {
	n.t.Helper()
	return n.do(http.MethodPost, path, nil, headers...)
}

func (n *node) settings(name string, change func(*store.Settings)) {
	n.t.Helper()
	_, err := n.Store.ChangeSettings(n.t.Context(), name, func(s *store.Settings) error { change(s); return nil })
	require.NoError(n.t, err)
}

func (n *node) snapshotIDs(name string) []string {
	n.t.Helper()
	return ids(n.feed("/topicmaps/" + name + "/snapshots").Entries)
}

// first returns how many documents of the fragments feed are available.
func (n *node) documents(name string) int {
	n.t.Helper()
	count := 0
	for at := "/topicmaps/" + name + "/fragments"; at != ""; count++ {
		a := n.get(at)
		if a.StatusCode == http.StatusGone {
			break
		}
		at = parseAtom(n.t, a).link(n.t, "prev-archive")
	}
	return count
}

func TestSnapshotIsTakenWhereAskedFor(t *testing.T) {
	t.Parallel()
	n := start(t)
	c := n.publish("small", small())
	newest := func() string {
		return strings.TrimSuffix(n.feed("/topicmaps/small/snapshots").Entries[0].link(t, "self"), ".atom")
	}
	first := newest()
	a := n.post("/topicmaps/small/snapshots")
	assert.Equal(t, http.StatusOK, a.StatusCode, "nothing has changed since the newest")
	assert.Empty(t, a.Header.Get("Location"))
	assert.JSONEq(t, fmt.Sprintf(`{"collection": "small", "snapshot": %q, "updated": %q, "topics": 10}`, first, feedTime(c)), string(a.body))

	p := n.mustPut("small", small("Oslo", "Christiania"))
	a = n.post("/topicmaps/small/snapshots")
	assert.Equal(t, http.StatusCreated, a.StatusCode)
	assert.Equal(t, "application/json", a.Header.Get("Content-Type"))
	require.NotEqual(t, first, newest())
	assert.Equal(t, newest(), a.Header.Get("Location"))
	assert.JSONEq(t, fmt.Sprintf(`{"collection": "small", "snapshot": %q, "updated": %q, "topics": 10}`, newest(), p.LastChange), string(a.body))
	assert.Equal(t, n.expected("small", small("Oslo", "Christiania")), canonical(t, n.mustGet(newest()+".xtm21").body, n.sp("small")))
	assert.Equal(t, http.StatusOK, n.post("/topicmaps/small/snapshots").StatusCode)

	assert.Equal(t, http.StatusNotFound, n.post("/topicmaps/none/snapshots").StatusCode)
	assert.Equal(t, http.StatusNotFound, n.post("/topicmaps/none/gc").StatusCode)
}

func TestUpkeepIsForThoseWhoMayWrite(t *testing.T) {
	t.Parallel()
	const token = "0123456789abcdef"
	n := start(t, func(c *server.Config) { c.Tokens = []string{token} })
	n.publish("small", small())
	for _, path := range []string{"/topicmaps/small/snapshots", "/topicmaps/small/gc"} {
		assert.Equal(t, http.StatusUnauthorized, n.post(path).StatusCode, path)
		assert.Equal(t, http.StatusOK, n.post(path, "Authorization", "Bearer "+token).StatusCode, path)
		a := n.do(http.MethodPut, path, nil)
		assert.Equal(t, http.StatusMethodNotAllowed, a.StatusCode)
		assert.Contains(t, a.Header.Get("Allow"), "POST")
	}
}

func TestSettingsOfACollectionOutweighThoseOfTheServer(t *testing.T) {
	t.Parallel()
	n := start(t, every(1000), func(c *server.Config) { c.SnapshotsKept = 1 })
	n.publish("small", small())
	n.settings("small", func(s *store.Settings) { s.SnapshotEvery, s.SnapshotsKept = 2, 3 })
	for i := range 8 {
		before := n.snapshotIDs("small")
		n.mustPut("small", small("Oslo", fmt.Sprint(i)))
		if i%2 == 1 {
			n.Idle()
			assert.NotEqual(t, before[0], n.snapshotIDs("small")[0])
		}
		assert.Len(t, n.snapshotIDs("small"), min(1+(i+1)/2, 3))
	}
}

func TestHistoryIsPrunedAfterEachSnapshot(t *testing.T) {
	t.Parallel()
	n := start(t, documentSize(2), every(4), func(c *server.Config) { c.KeepEntries = 5 })
	n.publish("small", small())
	n.publish("other", small())
	n.settings("other", func(s *store.Settings) { s.KeepEntries = 1 << 40 })
	for i := range 3 {
		n.mustPut("small", small("Oslo", fmt.Sprint(i)))
	}
	assert.Equal(t, 7, n.documents("small"), "13 entries")
	for _, name := range []string{"small", "other"} {
		n.mustPut(name, small("Oslo", "last", "Bergen", "last", "Norway", "last", "City", "last"))
	}
	n.Idle()
	assert.Equal(t, 3, n.documents("small"), "13 to 17 are kept, on whole documents")
	assert.Len(t, n.snapshotIDs("other"), 2)
	assert.Equal(t, 7, n.documents("other"), "which keeps more")
}

// What is given up is gone, says what to do, and leaves what it was linked from
// as it is.
func TestWhatIsPrunedIsGone(t *testing.T) {
	t.Parallel()
	n := start(t, documentSize(4))
	n.publish("small", small())
	n.mustPut("small", small("Oslo", "A", "Bergen", "B"))
	n.mustPut("small", small("Oslo", "C", "Bergen", "D"))
	n.delete("small", "http://psi.example.org/tromsø")
	all, documents := n.history("/topicmaps/small/fragments")
	require.Len(t, documents, 4)
	kept := n.mustGet(documents[1].link(t, "self"))
	topicURL := n.find("small", "http://psi.example.org/norway").Header.Get("Location")
	norway := n.mustGet(topicURL + ".xtm21").body
	n.settings("small", func(s *store.Settings) { s.KeepEntries = 7 })
	assert.JSONEq(t, `{"collection": "small", "entries": 8}`, string(func() []byte {
		require.Equal(t, http.StatusCreated, n.post("/topicmaps/small/snapshots").StatusCode) // prunes
		a := n.post("/topicmaps/small/gc")
		assert.JSONEq(t, `{"collection": "small", "entries": 0}`, string(a.body), "there is nothing left to do")
		return []byte(fmt.Sprintf(`{"collection": "small", "entries": %d}`, 4*(4-n.documents("small"))))
	}()))

	var gone []string
	for _, d := range documents[2:] {
		gone = append(gone, d.link(t, "self"))
		for _, e := range d.Entries {
			gone = append(gone, e.link(t, "self"))
			for _, href := range e.typed(t, "topicmapdata") {
				gone = append(gone, href)
			}
		}
	}
	assert.Len(t, gone, 2+8*3)
	for _, url := range gone {
		a := n.get(url)
		assert.Equal(t, http.StatusGone, a.StatusCode, url)
		assert.Contains(t, string(a.body), n.url("/topicmaps/small/snapshots"), "where to begin again")
		assert.Equal(t, "no-store", a.Header.Get("Cache-Control"))
		problem := n.get(url, "Accept", "application/problem+json, */*")
		var p server.Problem
		require.NoError(t, json.Unmarshal(problem.body, &p))
		assert.Equal(t, http.StatusGone, p.Status)
	}
	again := n.mustGet(documents[1].link(t, "self"))
	assert.Equal(t, string(kept.body), string(again.body), "it goes on leading to the one that is gone")
	assert.Equal(t, documents[2].link(t, "self"), n.feed(documents[1].link(t, "self")).link(t, "prev-archive"))
	for _, e := range all[:7] {
		n.sameEntry(e)
		n.mustGet(e.typed(t, "topicmapdata")[xtm21Type])
	}
	assert.Equal(t, string(norway), string(n.mustGet(topicURL+".xtm21").body), "a topic that lives has its current fragment, though its entry is gone")
}
