package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/server/problems"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/stores"
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
	for _, path := range []string{"/topicmaps/small/snapshots", "/topicmaps/small/gc"} {
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
		var p problems.Problem
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

func every(n int) func(*server.Config) { return func(c *server.Config) { c.SnapshotEvery = n } }

func TestSnapshotIsTakenAfterSoManyChanges(t *testing.T) {
	t.Parallel()
	n := start(t, every(3), func(c *server.Config) { c.SnapshotsKept = 2 })
	c := n.publish("small", small())
	first := n.feed("/topicmaps/small/snapshots").Entries
	require.Len(t, first, 1, "creating a collection publishes a snapshot")
	assert.Equal(t, feedTime(c), first[0].updated())

	taken := func() []string { return ids(n.feed("/topicmaps/small/snapshots").Entries) }
	n.mustPut("small", small("Oslo", "Oslo 1"))
	n.mustPut("small", small("Oslo", "Oslo 2"))
	n.Idle()
	require.Equal(t, ids(first), taken(), "two changes are not enough")
	p := n.mustPut("small", small("Oslo", "Oslo 3"))
	n.Idle()
	e := n.feed("/topicmaps/small/snapshots").Entries
	assert.Equal(t, first[0].id(), e[1].id(), "the newest first")
	assert.Equal(t, p.LastChange, e[0].updated())
	assert.Equal(t, n.expected("small", small("Oslo", "Oslo 3")), canonical(t, n.mustGet(e[0].typed(t, "topicmapdata")[xtm21Type]).body, n.sp("small")))

	n.mustPut("small", small()) // one entry
	n.mustPut("small", small("Oslo", "A", "Bergen", "B", "Norway", "C"))
	n.Idle()
	assert.Equal(t, e[0].id(), taken()[1])
	assert.Len(t, taken(), 2, "as many as are kept")
	assert.Equal(t, http.StatusNotFound, n.get(first[0].typed(t, "topicmapdata")[xtm21Type]).StatusCode)
	assert.Equal(t, http.StatusNotFound, n.get(first[0].link(t, "self")).StatusCode)
}

func TestSnapshotsInTheBackgroundHoldNobodyUp(t *testing.T) {
	t.Parallel()
	n, w := watch(t, every(1))
	begun, finish := make(chan bool, 10), make(chan bool)
	w.snapshot = func(ctx context.Context) error {
		begun <- true
		<-finish
		return nil
	}
	n.mustPut("small", small("Oslo", "Oslo 1"))
	<-begun
	n.mustPut("small", small("Oslo", "Oslo 2"))
	assert.Contains(t, n.current("small"), "Oslo 2")
	assert.Empty(t, begun, "one snapshot at a time")
	close(finish)
	n.Idle()
	assert.Greater(t, len(n.feed("/topicmaps/small/snapshots").Entries), 1)
}

// Close may come while a request is being answered: what that leaves to do must
// not begin on a store that is about to be closed.
func TestNothingBeginsInTheBackgroundAfterClose(t *testing.T) {
	t.Parallel()
	n, w := watch(t, every(1))
	reached, goOn := make(chan bool), make(chan bool)
	w.publish = func() {
		close(reached)
		<-goOn
	}
	var begun atomic.Bool
	w.snapshot = func(context.Context) error {
		begun.Store(true)
		return nil
	}
	answered := make(chan answer)
	go func() { answered <- n.put("small", small("Oslo", "Oslo 1")) }()
	<-reached
	n.Close()
	close(goOn)
	assert.Equal(t, http.StatusOK, (<-answered).StatusCode)
	n.Idle()
	assert.False(t, begun.Load(), "a snapshot was begun after Close")
}

// A crash or a full disk may have kept a snapshot from being taken: the next
// start makes up for it, with what was published meanwhile.
func TestMissingSnapshotsAreTakenAtTheNextStart(t *testing.T) {
	t.Parallel()
	n, w := watch(t, every(2))
	n.publish("other", small())
	w.snapshot = func(context.Context) error { return errors.New("the disk is full") }
	n.mustPut("small", small("Oslo", "A", "Bergen", "B"))
	n.Close()
	w.snapshot = nil
	next, err := server.New(n.Config)
	require.NoError(t, err)
	defer next.Close()
	require.NoError(t, next.Start())
	testenv.Eventually(t, func() bool { return len(n.feed("/topicmaps/small/snapshots").Entries) == 2 })
	assert.Len(t, n.feed("/topicmaps/other/snapshots").Entries, 1, "it misses none")
}

// A snapshot whose file is missing or damaged is not listed: one is taken anew at the start, or by
// the first request for it, and then leads to the same map.
func TestLostSnapshotsAreTakenAnew(t *testing.T) {
	stores.InFolders(t)
	t.Parallel()
	cutShort := func(path string) error { return os.Truncate(path, 20) }
	for what, lose := range map[string]func(files []string) error{
		"missing": func(files []string) error { return os.Remove(files[0]) },
		"cut":     func(files []string) error { return cutShort(files[0]) },
		"empty":   func(files []string) error { return os.Truncate(files[0], 0) },
		"folder":  func(files []string) error { return os.RemoveAll(filepath.Dir(files[0])) },
	} {
		for _, asked := range []string{".xtm1", ".xtm21", ""} { // "": another process finds it
			dir := t.TempDir()
			n := startOn(t, store.Options{Dir: dir})
			n.publish("small", small())
			first := n.feed("/topicmaps/small/snapshots").Entries[0]
			current := n.current("small")
			files, err := filepath.Glob(filepath.Join(dir, "snapshots", "*", "*.gz"))
			require.NoError(t, err)
			require.Len(t, files, 1)
			if asked == "" {
				n.stop()
				require.NoError(t, lose(files), what)
				n = startOn(t, store.Options{Dir: dir})
				require.NoError(t, n.Start())
				testenv.Eventually(t, func() bool { return len(n.feed("/topicmaps/small/snapshots").Entries) == 1 }, what)
			} else {
				require.NoError(t, lose(files), what)
				a := n.get("/topicmaps/small/snapshots/" + first.id()[len("urn:uuid:"):] + asked)
				require.Equal(t, http.StatusNotFound, a.StatusCode, what)
				assert.NotContains(t, a.Header.Get("Cache-Control"), "immutable", what)
				assert.Contains(t, string(a.body), "the snapshots feed lists those that are kept", what)
			}
			again := n.feed("/topicmaps/small/snapshots").Entries
			require.Len(t, again, 1, what)
			assert.NotEqual(t, first.id(), again[0].id(), what)
			assert.Equal(t, first.updated(), again[0].updated(), what)
			for _, form := range []string{xtm1Type, xtm21Type} {
				assert.NotEmpty(t, n.mustGet(again[0].typed(t, "topicmapdata")[form]).body, what)
			}
			assert.Equal(t, current, n.current("small"), what)
			assert.Contains(t, n.logs.String(), "the files of a snapshot are missing or damaged", what)
			n.stop()
		}
	}
}

// Where an older snapshot is left, from before the history that is kept, one is taken anew.
func TestALostSnapshotBehindTheHorizonIsTakenAnew(t *testing.T) {
	stores.InFolders(t)
	t.Parallel()
	dir := t.TempDir()
	n := startOn(t, store.Options{Dir: dir})
	n.publish("small", small())
	n.mustPut("small", small("Oslo", "Oslo 1"))
	require.Equal(t, http.StatusCreated, n.do("POST", "/topicmaps/small/snapshots", nil).StatusCode)
	before := n.feed("/topicmaps/small/snapshots").Entries
	require.Len(t, before, 2)
	files, err := filepath.Glob(filepath.Join(dir, "snapshots", "*", before[0].id()[len("urn:uuid:"):]+"*"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	require.NoError(t, os.Remove(files[0]))
	require.NoError(t, n.Start())
	testenv.Eventually(t, func() bool { return len(n.feed("/topicmaps/small/snapshots").Entries) == 2 })
	after := n.feed("/topicmaps/small/snapshots").Entries
	assert.Equal(t, before[1].id(), after[1].id())
	assert.NotEqual(t, before[0].id(), after[0].id())
}

// A full disk keeps a server with a lost snapshot from writing, not from starting. Other errors do.
func TestAServerWithALostSnapshotStartsOnAFullDisk(t *testing.T) {
	t.Parallel()
	n, w := watch(t)
	for _, err := range []error{syscall.ENOSPC, syscall.EDQUOT} {
		full := fmt.Errorf("writing: %w", err)
		w.drop.Store(&full)
		require.NoError(t, n.Start())
		assert.NotEmpty(t, n.current("small"))
	}
	assert.Contains(t, n.logs.String(), "stay listed, as the disk is full")
	broken := error(syscall.EIO)
	w.drop.Store(&broken)
	require.ErrorIs(t, n.Start(), syscall.EIO)
}
