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

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/server/problems"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/served"
	"github.com/tmshare/tmshare/internal/testkit/stores"
)

// startAt starts a server and its store on a clock.
func startAt(t testing.TB, c *served.Clock, configure ...func(*server.Config)) *node {
	t.Helper()
	return startOn(t, store.Options{Dir: t.TempDir(), Now: c.Now}, append(configure, func(cfg *server.Config) { cfg.Now = c.Now })...)
}

func (n *node) snapshotIDs(name string) []string {
	n.T.Helper()
	return served.IDsOf(n.Feed("/topicmaps/" + name + "/snapshots").Entries)
}

// documents returns the number of available documents of the fragments feed.
func (n *node) documents(name string) int {
	n.T.Helper()
	count := 0
	for at := "/topicmaps/" + name + "/fragments"; at != ""; count++ {
		a := n.Get(at)
		if a.StatusCode == http.StatusGone {
			break
		}
		at = served.ParseAtom(n.T, a).Link(n.T, "prev-archive")
	}
	return count
}

func TestSnapshotIsTakenWhereAskedFor(t *testing.T) {
	t.Parallel()
	n := start(t)
	c := n.Publish("small", served.Small())
	newest := func() string {
		return strings.TrimSuffix(n.Feed("/topicmaps/small/snapshots").Entries[0].Link(t, "self"), ".atom")
	}
	first := newest()
	a := n.Post("/topicmaps/small/snapshots")
	assert.Equal(t, http.StatusOK, a.StatusCode, "nothing has changed since the newest")
	assert.Empty(t, a.Header.Get("Location"))
	assert.JSONEq(t, fmt.Sprintf(`{"collection": "small", "snapshot": %q, "updated": %q, "topics": 10}`, first, feedTime(c)), string(a.Bytes))

	p := n.MustPut("small", served.Small("Oslo", "Christiania"))
	a = n.Post("/topicmaps/small/snapshots")
	assert.Equal(t, http.StatusCreated, a.StatusCode)
	assert.Equal(t, "application/json", a.Header.Get("Content-Type"))
	require.NotEqual(t, first, newest())
	assert.Equal(t, newest(), a.Header.Get("Location"))
	assert.JSONEq(t, fmt.Sprintf(`{"collection": "small", "snapshot": %q, "updated": %q, "topics": 10}`, newest(), p.LastChange), string(a.Bytes))
	assert.Equal(t, n.Expected("small", served.Small("Oslo", "Christiania")), served.Canonical(t, n.MustGet(newest()+".xtm21").Bytes, n.SP("small")))
	assert.Equal(t, http.StatusOK, n.Post("/topicmaps/small/snapshots").StatusCode)

	assert.Equal(t, http.StatusNotFound, n.Post("/topicmaps/none/snapshots").StatusCode)
	assert.Equal(t, http.StatusNotFound, n.Post("/topicmaps/none/gc").StatusCode)
	for _, path := range []string{"/topicmaps/small/snapshots", "/topicmaps/small/gc"} {
		a := n.Do(http.MethodPut, path, nil)
		assert.Equal(t, http.StatusMethodNotAllowed, a.StatusCode)
		assert.Contains(t, a.Header.Get("Allow"), "POST")
	}
}

func TestSettingsOfACollectionOutweighThoseOfTheServer(t *testing.T) {
	t.Parallel()
	n := start(t, every(1000), func(c *server.Config) { c.SnapshotsKept = 1 })
	n.Publish("small", served.Small())
	n.Settings("small", func(s *store.Settings) { s.SnapshotEvery, s.SnapshotsKept = 2, 3 })
	for i := range 8 {
		before := n.snapshotIDs("small")
		n.MustPut("small", served.Small("Oslo", fmt.Sprint(i)))
		if i%2 == 1 {
			n.Idle()
			assert.NotEqual(t, before[0], n.snapshotIDs("small")[0])
		}
		assert.Len(t, n.snapshotIDs("small"), min(1+(i+1)/2, 3))
	}
}

func TestHistoryIsPrunedAfterEachSnapshot(t *testing.T) {
	t.Parallel()
	n := start(t, served.DocumentSize(2), every(4), func(c *server.Config) { c.KeepEntries = 5 })
	n.Publish("small", served.Small())
	n.Publish("other", served.Small())
	n.Settings("other", func(s *store.Settings) { s.KeepEntries = 1 << 40 })
	for i := range 3 {
		n.MustPut("small", served.Small("Oslo", fmt.Sprint(i)))
	}
	assert.Equal(t, 7, n.documents("small"), "13 entries")
	for _, name := range []string{"small", "other"} {
		n.MustPut(name, served.Small("Oslo", "last", "Bergen", "last", "Norway", "last", "City", "last"))
	}
	n.Idle()
	assert.Equal(t, 3, n.documents("small"), "13 to 17 are kept, on whole documents")
	assert.Len(t, n.snapshotIDs("other"), 2)
	assert.Equal(t, 7, n.documents("other"), "which keeps more")
}

// Pruned documents are gone, with a remedy, and documents that linked to them are unchanged.
func TestWhatIsPrunedIsGone(t *testing.T) {
	t.Parallel()
	n := start(t, served.DocumentSize(4))
	n.Publish("small", served.Small())
	n.MustPut("small", served.Small("Oslo", "A", "Bergen", "B"))
	n.MustPut("small", served.Small("Oslo", "C", "Bergen", "D"))
	n.Delete("small", "http://psi.example.org/tromsø")
	all, documents := n.History("/topicmaps/small/fragments")
	require.Len(t, documents, 4)
	kept := n.MustGet(documents[1].Link(t, "self"))
	topicURL := n.find("small", "http://psi.example.org/norway").Header.Get("Location")
	norway := n.MustGet(topicURL + ".xtm21").Bytes
	n.Settings("small", func(s *store.Settings) { s.KeepEntries = 7 })
	assert.JSONEq(t, `{"collection": "small", "entries": 8}`, string(func() []byte {
		require.Equal(t, http.StatusCreated, n.Post("/topicmaps/small/snapshots").StatusCode) // prunes
		a := n.Post("/topicmaps/small/gc")
		assert.JSONEq(t, `{"collection": "small", "entries": 0}`, string(a.Bytes), "there is nothing left to do")
		return []byte(fmt.Sprintf(`{"collection": "small", "entries": %d}`, 4*(4-n.documents("small"))))
	}()))

	var gone []string
	for _, d := range documents[2:] {
		gone = append(gone, d.Link(t, "self"))
		for _, e := range d.Entries {
			gone = append(gone, e.Link(t, "self"))
			for _, href := range e.Typed(t, "topicmapdata") {
				gone = append(gone, href)
			}
		}
	}
	assert.Len(t, gone, 2+8*3)
	for _, url := range gone {
		a := n.Get(url)
		assert.Equal(t, http.StatusGone, a.StatusCode, url)
		assert.Contains(t, string(a.Bytes), n.URL("/topicmaps/small/snapshots"), "where to begin again")
		assert.Equal(t, "no-store", a.Header.Get("Cache-Control"))
		problem := n.Get(url, "Accept", "application/problem+json, */*")
		var p problems.Problem
		require.NoError(t, json.Unmarshal(problem.Bytes, &p))
		assert.Equal(t, http.StatusGone, p.Status)
	}
	again := n.MustGet(documents[1].Link(t, "self"))
	assert.Equal(t, string(kept.Bytes), string(again.Bytes), "it goes on leading to the one that is gone")
	assert.Equal(t, documents[2].Link(t, "self"), n.Feed(documents[1].Link(t, "self")).Link(t, "prev-archive"))
	for _, e := range all[:7] {
		n.sameEntry(e)
		n.MustGet(e.Typed(t, "topicmapdata")[served.XTM21Type])
	}
	assert.Equal(t, string(norway), string(n.MustGet(topicURL+".xtm21").Bytes), "a topic that lives has its current fragment, though its entry is gone")
}

func every(n int) func(*server.Config) { return func(c *server.Config) { c.SnapshotEvery = n } }

func TestSnapshotIsTakenAfterSoManyChanges(t *testing.T) {
	t.Parallel()
	n := start(t, every(3), func(c *server.Config) { c.SnapshotsKept = 2 })
	c := n.Publish("small", served.Small())
	first := n.Feed("/topicmaps/small/snapshots").Entries
	require.Len(t, first, 1, "creating a collection publishes a snapshot")
	assert.Equal(t, feedTime(c), first[0].Updated())

	taken := func() []string { return served.IDsOf(n.Feed("/topicmaps/small/snapshots").Entries) }
	n.MustPut("small", served.Small("Oslo", "Oslo 1"))
	n.MustPut("small", served.Small("Oslo", "Oslo 2"))
	n.Idle()
	require.Equal(t, served.IDsOf(first), taken(), "two changes are not enough")
	p := n.MustPut("small", served.Small("Oslo", "Oslo 3"))
	n.Idle()
	e := n.Feed("/topicmaps/small/snapshots").Entries
	assert.Equal(t, first[0].ID(), e[1].ID(), "the newest first")
	assert.Equal(t, p.LastChange, e[0].Updated())
	assert.Equal(t, n.Expected("small", served.Small("Oslo", "Oslo 3")), served.Canonical(t, n.MustGet(e[0].Typed(t, "topicmapdata")[served.XTM21Type]).Bytes, n.SP("small")))

	n.MustPut("small", served.Small()) // one entry
	n.MustPut("small", served.Small("Oslo", "A", "Bergen", "B", "Norway", "C"))
	n.Idle()
	assert.Equal(t, e[0].ID(), taken()[1])
	assert.Len(t, taken(), 2, "as many as are kept")
	assert.Equal(t, http.StatusNotFound, n.Get(first[0].Typed(t, "topicmapdata")[served.XTM21Type]).StatusCode)
	assert.Equal(t, http.StatusNotFound, n.Get(first[0].Link(t, "self")).StatusCode)
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
	n.MustPut("small", served.Small("Oslo", "Oslo 1"))
	<-begun
	n.MustPut("small", served.Small("Oslo", "Oslo 2"))
	assert.Contains(t, n.Current("small"), "Oslo 2")
	assert.Empty(t, begun, "one snapshot at a time")
	close(finish)
	n.Idle()
	assert.Greater(t, len(n.Feed("/topicmaps/small/snapshots").Entries), 1)
}

// Close may be called during a request: its background work must not begin on a store that is about to be closed.
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
	answered := make(chan served.Answer)
	go func() { answered <- n.Put("small", served.Small("Oslo", "Oslo 1")) }()
	<-reached
	n.Close()
	close(goOn)
	assert.Equal(t, http.StatusOK, (<-answered).StatusCode)
	n.Idle()
	assert.False(t, begun.Load(), "a snapshot was begun after Close")
}

// A crash or a full disk may have prevented a snapshot: the next start takes it, with all later changes.
func TestMissingSnapshotsAreTakenAtTheNextStart(t *testing.T) {
	t.Parallel()
	n, w := watch(t, every(2))
	n.Publish("other", served.Small())
	w.snapshot = func(context.Context) error { return errors.New("the disk is full") }
	n.MustPut("small", served.Small("Oslo", "A", "Bergen", "B"))
	n.Close()
	w.snapshot = nil
	next, err := server.New(n.Config)
	require.NoError(t, err)
	defer next.Close()
	require.NoError(t, next.Start())
	testenv.Eventually(t, func() bool { return len(n.Feed("/topicmaps/small/snapshots").Entries) == 2 })
	assert.Len(t, n.Feed("/topicmaps/other/snapshots").Entries, 1, "it misses none")
}

// A snapshot with a missing or damaged file is not listed: a new one is taken at the start, or by the first request for
// it, and then has the same map.
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
			n.Publish("small", served.Small())
			first := n.Feed("/topicmaps/small/snapshots").Entries[0]
			current := n.Current("small")
			files, err := filepath.Glob(filepath.Join(dir, "snapshots", "*", "*.gz"))
			require.NoError(t, err)
			require.Len(t, files, 1)
			if asked == "" {
				n.Stop()
				require.NoError(t, lose(files), what)
				n = startOn(t, store.Options{Dir: dir})
				require.NoError(t, n.Start())
				testenv.Eventually(t, func() bool { return len(n.Feed("/topicmaps/small/snapshots").Entries) == 1 }, what)
			} else {
				require.NoError(t, lose(files), what)
				a := n.Get("/topicmaps/small/snapshots/" + first.ID()[len("urn:uuid:"):] + asked)
				require.Equal(t, http.StatusNotFound, a.StatusCode, what)
				assert.NotContains(t, a.Header.Get("Cache-Control"), "immutable", what)
				assert.Contains(t, string(a.Bytes), "the snapshots feed lists those that are kept", what)
			}
			again := n.Feed("/topicmaps/small/snapshots").Entries
			require.Len(t, again, 1, what)
			assert.NotEqual(t, first.ID(), again[0].ID(), what)
			assert.Equal(t, first.Updated(), again[0].Updated(), what)
			for _, form := range []string{served.XTM1Type, served.XTM21Type} {
				assert.NotEmpty(t, n.MustGet(again[0].Typed(t, "topicmapdata")[form]).Bytes, what)
			}
			assert.Equal(t, current, n.Current("small"), what)
			assert.Contains(t, n.Logs.String(), "the files of a snapshot are missing or damaged", what)
			n.Stop()
		}
	}
}

// A snapshot from before the horizon is useless: a new one is taken.
func TestALostSnapshotBehindTheHorizonIsTakenAnew(t *testing.T) {
	stores.InFolders(t)
	t.Parallel()
	dir := t.TempDir()
	n := startOn(t, store.Options{Dir: dir})
	n.Publish("small", served.Small())
	n.MustPut("small", served.Small("Oslo", "Oslo 1"))
	require.Equal(t, http.StatusCreated, n.Do("POST", "/topicmaps/small/snapshots", nil).StatusCode)
	before := n.Feed("/topicmaps/small/snapshots").Entries
	require.Len(t, before, 2)
	files, err := filepath.Glob(filepath.Join(dir, "snapshots", "*", before[0].ID()[len("urn:uuid:"):]+"*"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	require.NoError(t, os.Remove(files[0]))
	require.NoError(t, n.Start())
	testenv.Eventually(t, func() bool { return len(n.Feed("/topicmaps/small/snapshots").Entries) == 2 })
	after := n.Feed("/topicmaps/small/snapshots").Entries
	assert.Equal(t, before[1].ID(), after[1].ID())
	assert.NotEqual(t, before[0].ID(), after[0].ID())
}

// A full disk keeps a server with a lost snapshot from writing, not from starting. Other errors do.
func TestAServerWithALostSnapshotStartsOnAFullDisk(t *testing.T) {
	t.Parallel()
	n, w := watch(t)
	for _, err := range []error{syscall.ENOSPC, syscall.EDQUOT} {
		full := fmt.Errorf("writing: %w", err)
		w.drop.Store(&full)
		require.NoError(t, n.Start())
		assert.NotEmpty(t, n.Current("small"))
	}
	assert.Contains(t, n.Logs.String(), "stay listed, as the disk is full")
	broken := error(syscall.EIO)
	w.drop.Store(&broken)
	require.ErrorIs(t, n.Start(), syscall.EIO)
}
