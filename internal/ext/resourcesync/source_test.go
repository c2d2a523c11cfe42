package resourcesync_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/feeds/resourcesync"
	"github.com/tmshare/tmshare/fragment"
	rs "github.com/tmshare/tmshare/internal/ext/resourcesync"
	"github.com/tmshare/tmshare/internal/ext/resourcesync/resources"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/rendered"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/served"
	"github.com/tmshare/tmshare/internal/testkit/stores"
	examples "github.com/tmshare/tmshare/testdata/xtm"
)

// All documents of a Source are found from any of its entrances, and are correct.
func TestResourceSyncIsWhatItSays(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	n := start(t)
	n.Publish("egov", examples.EGov)
	d := n.visit("egov")
	d.check()
	assert.Empty(t, d.closed)
	assert.NotEmpty(t, d.plain.items, "no list is empty")
	assert.NotEmpty(t, d.open.items)
	assert.NotContains(t, d.capabilities, resourcesync.ChangeDump)

	n.Publish("small", served.Small())
	n.MustPut("small", served.Small("Oslo", "Christiania"))
	before := n.visit("small")
	n.MustPut("small", served.Small("Oslo", "Kristiania"))
	n.MustPut("small", served.Replace(t, served.Small(), served.Topic("tromsø", "Tromsø"), ""))
	n.MustPut("small", served.Small())
	d = n.visit("small")
	d.check()
	assert.Equal(t, before.at, d.at, "no new snapshot, no new list")
	changes := ""
	for _, item := range d.open.items {
		changes += string(item.Change[0])
	}
	assert.Equal(t, "uuudc", changes)
}

// Documents and packages are divided where they would be too large.
func TestResourceSyncIsDivided(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sizes           resources.Sizes
		lists, packages int
	}{
		"by number": {resources.Sizes{ListItems: 7, PackageItems: 5}, 3, 5},
		"by bytes":  {resources.Sizes{ListBytes: 6000, PackageBytes: 16 << 10}, 0, 0},
		"not":       {resources.Sizes{}, 1, 1},
		"exactly":   {resources.Sizes{ListItems: 21, PackageItems: 21}, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := startWith(t, rs.Options{ChangesPerList: 4, Sizes: c.sizes})
			n.Publish("m", served.Cities(20, "a"))
			n.visit("m").check()
			n.MustPut("m", served.Cities(11, "b"))
			d := n.visited("m")
			require.Len(t, d.closed, 5)
			d.check()
			lists := strings.Count(string(n.MustGet("/topicmaps/m/resourcesync/resourcelist.xml").Bytes), "<sitemap>")
			packages := strings.Count(string(n.MustGet("/topicmaps/m/resourcesync/resourcedump.xml").Bytes), "<url>")
			if c.lists > 0 {
				assert.Equal(t, c.packages, packages)
				assert.Equal(t, max(c.lists, 1), max(lists, 1))
			} else {
				assert.Greater(t, packages, 2)
				assert.Greater(t, lists, 2)
				for i := 1; i <= packages; i++ {
					dump := d.document(d.capabilities[resourcesync.ResourceDump], false, resourcesync.ResourceDump)
					assert.LessOrEqual(t, dump.items[i-1].Length, int64(16<<10))
				}
			}
		})
	}
}

// A collection without topics has a Capability List nevertheless; it lists documents that are not empty.
func TestResourceSyncOfAnEmptyCollection(t *testing.T) {
	t.Parallel()
	n := start(t)
	require.Equal(t, http.StatusCreated, n.PutSettings("m", `{"title":"M"}`).StatusCode)
	d := n.visit("m")
	assert.Equal(t, map[resourcesync.Capability]string{resourcesync.ChangeList: n.URL("/topicmaps/m/resourcesync/changelist.xml")}, d.capabilities)
	assert.NotContains(t, string(n.MustGet("/robots.txt").Bytes), "Sitemap")
	d.check()
	n.MustPut("m", served.Cities(3, "a"))
	testenv.Eventually(t, func() bool {
		return strings.Count(string(n.Get("/topicmaps/m/resourcesync/resourcelist.xml").Bytes), "<url>") == 4
	}, "the first topics are in a list at once")
	n.visit("m").check()
}

// Documents of version 1.1 are good for readers of 1.0, whose schema only lacks datetime and
// media types with a plus.
func TestResourceSyncDocumentsSatisfyTheSchemaOfVersion10(t *testing.T) {
	t.Parallel()
	folder := testenv.Shared(t, "schemas/resourcesync")
	testenv.Command(t, "xmllint")
	n := startWith(t, rs.Options{ChangesPerList: 3})
	n.Publish("m", served.Cities(9, "a"))
	n.visit("m")
	n.MustPut("m", served.Cities(5, "b"))
	d := n.visited("m")
	require.NotEmpty(t, d.closed)
	dir := t.TempDir()
	for i, c := range []struct {
		url, schema string
		strip       bool
	}{
		{n.URL("/.well-known/resourcesync"), "joint-sitemap", false},
		{n.URL("/topicmaps/m/resourcesync/capabilitylist.xml"), "joint-sitemap", false},
		{n.URL("/topicmaps/m/resourcesync/resourcedump.xml"), "joint-sitemap", false},
		{n.URL("/topicmaps/m/resourcesync/changedump.xml"), "joint-sitemap", false},
		{n.URL("/topicmaps/m/resourcesync/changelist-index.xml"), "joint-siteindex", false},
		{n.URL("/topicmaps/m/resourcesync/resourcelist.xml"), "joint-sitemap", true},
		{n.URL("/topicmaps/m/resourcesync/changelist.xml"), "joint-sitemap", true},
		{d.closed[0].url, "joint-sitemap", true},
	} {
		body := n.MustGet(c.url).Bytes
		file := filepath.Join(dir, strconv.Itoa(i)+".xml")
		if c.strip {
			require.NoError(t, os.WriteFile(file, body, 0o600))
			require.NotEmpty(t, served.XMLLint(t, []string{file}, "--schema", filepath.Join(folder, c.schema+".xsd")), "the check can fail")
			body = version10(body)
		}
		require.NoError(t, os.WriteFile(file, body, 0o600))
		assert.Empty(t, served.XMLLint(t, []string{file}, "--schema", filepath.Join(folder, c.schema+".xsd")), c.url)
	}
}

// No URL of the Source ends in a slash or begins that of another, as some readers make files
// of them.
func TestNoURLOfTheSourceIsThePathOfAnother(t *testing.T) {
	t.Parallel()
	n := startWith(t, rs.Options{ChangesPerList: 3})
	n.Publish("m", served.Cities(9, "a"))
	n.visit("m")
	n.MustPut("m", served.Cities(5, "b"))
	d := n.visited("m")
	require.NotEmpty(t, d.closed)
	var urls []string
	for url := range d.list {
		urls = append(urls, url)
	}
	for _, url := range d.capabilities {
		urls = append(urls, url)
		for _, item := range d.parse(url, n.MustGet(url).Bytes).items {
			urls = append(urls, item.Loc)
		}
	}
	for _, a := range urls {
		require.False(t, strings.HasSuffix(a, "/"), a)
		for _, b := range urls {
			require.False(t, strings.HasPrefix(b, a+"/"), "%s and %s", a, b)
		}
	}
	require.Greater(t, len(urls), 20)
}

// The statements of the owner about mirrors, about the origin of the map, and about the forms of topics stand with
// every resource.
func TestResourceSyncSettings(t *testing.T) {
	t.Parallel()
	n := startWith(t, rs.Options{ChangesPerList: 2})
	n.Publish("m", served.Cities(5, "a"))
	n.MustPut("m", served.Cities(5, "b"))
	first := n.visited("m")
	first.check()
	n.MustSet("m", `{"mirrors":["http://one.example/m","http://two.example/x/m"],"via":"http://origin.example/m"}`)
	d := n.visited("m")
	d.check()
	item := d.plain.items[0]
	key := item.Loc[strings.LastIndex(item.Loc, "/"):]
	for i, want := range []string{"http://one.example/m/topics" + key, "http://two.example/x/m/topics" + key} {
		l := item.Find(resourcesync.RelDuplicate)[i]
		assert.Equal(t, want, l.Href)
		assert.Equal(t, i+1, l.Pri)
	}
	via, _ := item.Link(resourcesync.RelVia)
	assert.Equal(t, "http://origin.example/m/topics"+key, via.Href)
	for _, list := range first.closed {
		assert.Equal(t, http.StatusGone, n.Get(list.url).StatusCode, "files made for other settings")
	}

	n.MustSet("m", `{"recordFormats":["xtm2.1"]}`)
	d = n.visited("m")
	d.check()
	assert.Equal(t, "application/x-tm+xml;version=2.1", d.plain.items[len(d.plain.items)-1].Type)

	for _, wrong := range []string{`{"mirrors":["ftp://x.example"]}`, `{"mirrors":["http://x.example/"]}`, `{"mirrors":["http://x.example/m#f"]}`, `{"mirrors":["/m"]}`, `{"mirrors":["http:///m"]}`, `{"mirrors":["http://x.example/m?q"]}`, `{"via":"x"}`, `{"changesPerList":-1}`, `{"changesPerList":5001}`, `{"changeListAfter":"-1s"}`} {
		a := n.PutSettings("m", wrong)
		assert.Equal(t, http.StatusUnprocessableEntity, a.StatusCode, wrong)
	}

	n.MustSet("m", `{"resourceSync":false}`)
	assert.Equal(t, http.StatusNotFound, n.Get("/topicmaps/m/resourcesync/capabilitylist.xml").StatusCode)
	assert.NotContains(t, string(n.MustGet("/.well-known/resourcesync").Bytes), "<url>")
	assert.NotContains(t, string(n.MustGet("/robots.txt").Bytes), "Sitemap")
	assert.NotContains(t, strings.Join(n.MustGet(d.plain.items[0].Loc).Header.Values("Link"), ""), "resourcesync")
	assert.NotContains(t, string(n.MustGet("/topicmaps/m.html").Bytes), "resourcesync")
	n.MustSet("m", `{"resourceSync":true}`)
	n.visited("m").check()
}

// Nothing of a collection that one may not read is shown, and shared caches keep nothing.
func TestResourceSyncOfAPrivateCollection(t *testing.T) {
	t.Parallel()
	n := start(t, func(c *server.Config) { c.ReadTokens = map[string][]string{"m": {"0123456789abcdef"}} })
	n.Publish("m", served.Cities(2, "a"))
	n.Publish("open", served.Cities(2, "a"))
	for _, path := range []string{"/topicmaps/m/resourcesync/capabilitylist.xml", "/topicmaps/m/resourcesync/resourcelist.xml", "/topicmaps/m.html"} {
		assert.Equal(t, http.StatusUnauthorized, n.Get(path).StatusCode, path)
		a := n.MustGet(path, "Authorization", "Bearer 0123456789abcdef")
		assert.Contains(t, a.Header.Get("Cache-Control"), "private")
	}
	for _, path := range []string{"/.well-known/resourcesync", "/robots.txt", "/topicmaps.html"} {
		a := n.MustGet(path)
		assert.NotRegexp(t, `/topicmaps/m[./]`, string(a.Bytes), path)
		assert.Contains(t, string(a.Bytes), "/topicmaps/open", path)
		assert.Contains(t, a.Header.Get("Cache-Control"), "private")
	}
	assert.Contains(t, string(n.MustGet("/.well-known/resourcesync", "Authorization", "Bearer 0123456789abcdef").Bytes), "/topicmaps/m/")
	assert.NotContains(t, string(n.MustGet("/robots.txt", "Authorization", "Bearer 0123456789abcdef").Bytes), "/topicmaps/m/", "crawlers have no tokens")
}

// An address of a set or list that does not exist gives an error that names it.
func TestWhatResourceSyncDoesNotHave(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.Publish("m", served.Cities(2, "a"))
	d := n.visit("m")
	dump := d.document(d.capabilities[resourcesync.ResourceDump], false, resourcesync.ResourceDump)
	zip := dump.items[0].Loc
	for url, want := range map[string]int{
		strings.Replace(zip, "-1.zip", "-2.zip", 1):               http.StatusNotFound,
		strings.Replace(zip, "-1.zip", "-0.zip", 1):               http.StatusNotFound,
		strings.Replace(zip, "-3-1.zip", "-1-1.zip", 1):           http.StatusGone,
		strings.Replace(zip, "-3-1.zip", "-3-1.xml", 1):           http.StatusNotFound,
		"/topicmaps/m/resourcesync/changelist-0123456789ab-1.xml": http.StatusGone,
		"/topicmaps/m/resourcesync/":                              http.StatusNotFound,
		"/topicmaps/none/resourcesync/capabilitylist.xml":         http.StatusNotFound,
	} {
		assert.Equal(t, want, n.Get(url).StatusCode, url)
	}
	a := n.Get(zip, "Range", "bytes=99999999-")
	assert.Equal(t, http.StatusRequestedRangeNotSatisfiable, a.StatusCode)
	h := n.Do(http.MethodHead, zip, nil)
	assert.EqualValues(t, dump.items[0].Length, h.ContentLength)
	assert.Empty(t, h.Bytes)
}

// A destination that began with a list can go on when there is a newer one; the documents of a deleted collection are
// gone, and the one that is created anew in its place is another.
func TestResourceSyncGoesOnAndEnds(t *testing.T) {
	stores.InFolders(t)
	t.Parallel()
	n := startWith(t, rs.Options{ChangesPerList: 1})
	n.Publish("m", served.Cities(3, "a"))
	old := n.visit("m")
	dump := old.document(old.capabilities[resourcesync.ResourceDump], false, resourcesync.ResourceDump)
	renew := func(name string) {
		t.Helper()
		n.MustPut("m", served.Cities(3, name))
		at := n.visited("m").at
		require.Equal(t, http.StatusCreated, n.Post("/topicmaps/m/snapshots").StatusCode)
		d := n.visited("m")
		require.True(t, d.at.After(at))
		d.check()
	}
	renew("b")
	old.openPackage(&dump.items[0])
	require.False(t, n.visit("m").plain.From.After(old.at), "from there on, too")
	renew("c")
	require.Equal(t, http.StatusGone, n.Get(dump.items[0].Loc).StatusCode, "the one before the last")

	folder := filepath.Join(n.Store.Dir(), "resourcesync")
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.Equal(t, http.StatusOK, n.Do(http.MethodDelete, "/topicmaps/m", nil).StatusCode)
	entries, err = os.ReadDir(folder)
	require.NoError(t, err)
	require.Empty(t, entries)
	n.Publish("m", served.Cities(4, "d"))
	n.visit("m").check()
	require.Equal(t, http.StatusGone, n.Get(dump.items[0].Loc).StatusCode)
}

// syncHistory is a node whose address stays when it is started again.
type syncHistory struct {
	*node
	t     *testing.T
	dir   string
	clock *served.Clock
	rng   *rand.Rand
	live  map[int]string
}

// restart starts the server again, with or without its background. Without it, unfinished work stays half done, and
// nothing but requests changes anything.
func (h *syncHistory) restart(background bool) {
	if h.node != nil {
		h.Stop()
	}
	h.node = startOn(h.t, store.Options{Dir: h.dir, Now: h.clock.Now}, rs.Options{ChangesPerList: 5, Sizes: resources.Sizes{ListItems: 4, PackageItems: 3}}, func(c *server.Config) {
		c.BaseURL, c.Now = "http://127.0.0.1:1", h.clock.Now
		c.SnapshotEvery, c.DocumentSize = 25, 3
		c.CheckEvery, c.PruneEvery = time.Hour, time.Hour
	})
	h.DialAll()
	if background {
		require.NoError(h.t, h.Start())
	}
}

func (h *syncHistory) put() { h.MustPut("m", h.document()) }

// document is the map as it is to be. Some of its topics are so large that patches of them pay.
func (h *syncHistory) document() []byte {
	var parts []string
	for i := range 40 {
		name, ok := h.live[i]
		switch {
		case ok && i < 4:
			parts = append(parts, hubOf(fmt.Sprint("city-", i), 25, name))
		case ok:
			parts = append(parts, served.Topic(fmt.Sprint("city-", i), name))
		}
	}
	return served.TopicMap(append(parts, served.Topic("note", "Note"))...)
}

// For any history of a map, and of its server: the list or the dump, with the changes since, gives the served
// resources.
func TestResourceSyncUnderRandomHistories(t *testing.T) {
	t.Parallel()
	const steps = 30
	histories := testenv.Rounds(1, 4)
	closed, indexed, pruned, patches := 0, 0, 0, 0
	for seed := range uint64(histories) {
		h := &syncHistory{t: t, dir: t.TempDir(), clock: served.NewClock(), rng: rand.New(rand.NewPCG(seed, 7)), live: map[int]string{}}
		h.restart(true)
		for i := range h.rng.IntN(12) {
			h.live[i] = "first"
		}
		h.Publish("m", h.document())
		for step := range steps {
			h.clock.Advance(time.Duration(h.rng.IntN(3)) * time.Minute)
			switch h.rng.IntN(14) {
			case 0:
				h.restart(true)
			case 1:
				h.Post("/topicmaps/m/snapshots")
			case 2:
				h.Post("/topicmaps/m/gc")
			case 3:
				h.Settings("m", func(s *store.Settings) {
					s.KeepEntries = []uint64{0, 1, 4, 30}[h.rng.IntN(4)]
					s.KeepFor = []time.Duration{0, time.Minute, time.Hour}[h.rng.IntN(3)]
				})
				pruned++
			case 4:
				h.Settings("m", func(s *store.Settings) {
					s.Mirrors = [][]string{nil, {"http://a.example/m"}, {"http://b.example/m", "http://a.example/m"}}[h.rng.IntN(3)]
				})
			case 5:
				h.Settings("m", func(s *store.Settings) { s.OmitInstances = h.rng.IntN(2) == 0 })
			case 6:
				h.Do(http.MethodPut, "/topicmaps/m", strings.NewReader(`{"recordFormats":`+[]string{`[]`, `["xtm1"]`, `["xtm2.1"]`, `["xtm2.1","xtm1"]`}[h.rng.IntN(4)]+`}`), "Content-Type", "application/json")
			case 7:
				h.clock.Advance(25 * time.Hour)
				h.restart(true)
			default:
				for range 1 + h.rng.IntN(8) {
					if i := h.rng.IntN(40); h.rng.IntN(3) == 0 {
						delete(h.live, i)
					} else {
						h.live[i] = fmt.Sprint("name ", h.rng.IntN(3))
					}
				}
				h.live[h.rng.IntN(4)] = fmt.Sprint("name ", h.rng.IntN(3))
				h.put()
			}
			if step >= 5 && h.rng.IntN(3) == 0 {
				if h.rng.IntN(2) == 0 {
					h.settle("m")
				}
				h.restart(false)
				d := h.visit("m")
				d.check()
				if len(d.closed) > 0 {
					require.NotEmpty(t, d.open.items, "the last change stays in the open list")
				}
				closed += len(d.closed)
				patches += d.patches
				if strings.HasSuffix(d.capabilities[resourcesync.ChangeList], "index.xml") {
					indexed++
				}
				h.restart(true)
			}
		}
		h.Stop()
	}
	assert.Greater(t, closed, 10*histories)
	if histories >= 4 { // in one, that depends on the time of the work that the server does without a request
		assert.Positive(t, indexed)
	}
	assert.Positive(t, pruned)
	assert.Greater(t, patches, 2*histories)
	t.Logf("%d closed lists read, %d times an index, %d patches applied", closed, indexed, patches)
}

// A reader that asks while the first lists are made waits, but not for ever; they are made once.
func TestWaitingForTheFirstList(t *testing.T) {
	t.Parallel()
	begun, goOn := make(chan struct{}, 10), make(chan struct{})
	n := start(t, func(c *server.Config) {
		c.Store = slowToCut{c.Store, begun, goOn}
		c.SlowClientTimeout = 100 * time.Millisecond
	})
	n.Publish("m", served.Cities(3, "a"))
	for range 3 {
		a := n.Get("/topicmaps/m/resourcesync/resourcelist.xml")
		require.Equal(t, http.StatusServiceUnavailable, a.StatusCode)
		assert.Equal(t, "30", a.Header.Get("Retry-After"))
	}
	close(goOn)
	testenv.Eventually(t, func() bool { return n.Get("/topicmaps/m/resourcesync/resourcelist.xml").StatusCode == http.StatusOK })
	n.visit("m").check()
	assert.Len(t, begun, 1)
}

// slowToCut takes its time with the first step after the resource list is there.
type slowToCut struct {
	server.Store
	begun chan<- struct{}
	goOn  <-chan struct{}
}

func (s slowToCut) Extend(ctx context.Context, name string, f func(*store.View) error) error {
	var before *resources.Changes
	err := s.View(ctx, name, func(v *store.View) (err error) { before, err = resources.ChangesOf(v); return err })
	if before == nil && err == nil {
		s.begun <- struct{}{}
		<-s.goOn
	}
	return errors.Join(err, s.Store.Extend(ctx, name, f))
}

// A set that cannot be made is an error in the log, and is tried again.
func TestListThatCannotBeMade(t *testing.T) {
	stores.InFolders(t)
	t.Parallel()
	n := start(t)
	n.Publish("m", served.Cities(3, "a"))
	file := filepath.Join(n.Store.Dir(), "resourcesync")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	assert.Equal(t, http.StatusInternalServerError, n.Get("/topicmaps/m/resourcesync/capabilitylist.xml").StatusCode)
	assert.Contains(t, n.Logs.String(), "not a directory")
	require.NoError(t, os.Remove(file))
	n.visit("m").check()
}

// Before history is pruned, its changes are in closed lists: later readers find no gap.
func TestRetentionLeavesNoGapInChangeLists(t *testing.T) {
	t.Parallel()
	n := startWith(t, rs.Options{ChangesPerList: 1000}, served.DocumentSize(2))
	n.Publish("m", served.Cities(3, "a"))
	old := n.visit("m")
	n.Settings("m", func(s *store.Settings) { s.KeepEntries = 2 })
	for i := range 10 {
		n.MustPut("m", served.Cities(3, fmt.Sprint("b", i)))
	}
	require.Equal(t, http.StatusCreated, n.Post("/topicmaps/m/snapshots").StatusCode)
	require.Equal(t, http.StatusOK, n.Post("/topicmaps/m/gc").StatusCode)
	n.settle("m")
	require.Equal(t, http.StatusOK, n.Post("/topicmaps/m/gc").StatusCode)
	d := n.visit("m")
	d.check()
	require.NotEmpty(t, d.closed)
	require.False(t, d.closed[0].From.After(old.at), "a reader of the first list can go on")
	require.NoError(t, n.Store.View(d.T.Context(), "m", func(v *store.View) error {
		require.Greater(t, v.Horizon, uint64(20), "history was pruned")
		return nil
	}))
}

// Another program may prune the store, without knowing of change lists. The entries of the open list are gone then:
// no list claims to have them, and readers begin from a list of all resources.
func TestWhatAnotherProgramPrunesIsInNoList(t *testing.T) {
	t.Parallel()
	n := startWith(t, rs.Options{ChangesPerList: 5}, served.DocumentSize(2))
	n.Publish("m", served.Cities(3, "a"))
	n.visit("m").check()
	for i := range 20 {
		n.MustPut("m", served.Cities(3, fmt.Sprint("b", i)))
		n.settle("m")
	}
	require.NotEmpty(t, n.visit("m").closed)
	n.MustSet("m", `{"changesPerList": 1000}`)
	for i := range 10 {
		n.MustPut("m", served.Cities(3, fmt.Sprint("c", i)))
	}
	_, err := n.Store.TakeSnapshot(t.Context(), "m", 3)
	require.NoError(t, err)
	pruned, err := n.Store.Prune(t.Context(), "m", store.Retention{Entries: 1})
	require.NoError(t, err)
	require.Greater(t, pruned, uint64(60))
	d := n.visit("m")
	d.check()
	require.Empty(t, d.closed, "none of them leads to the open list")
	testenv.Eventually(t, func() bool { // the files go after the lists
		parts, err := filepath.Glob(filepath.Join(n.Store.Dir(), "resourcesync", "*", "*", "changes-*"))
		require.NoError(t, err)
		return len(parts) == 0
	})
}

// A large topic is written when it is asked for, each of its versions as it was. Lists that are made
// ahead state the length and hashes of each version, packages have it; the open change list leads to it.
func TestResourceSyncOfLargeTopics(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	large := func(text string) []byte {
		return served.TopicMap(served.Topic("large", "Large", served.Note("note", strings.Repeat(text, rendered.MaxSmall))), served.Topic("note", "Note"), served.Topic("other", "Other"))
	}
	n := startWith(t, rs.Options{ChangesPerList: 2})
	n.Publish("m", large("x"))
	url := n.URL("/topicmaps/m/topics/" + fragment.Key(served.PSI+"large"))
	d := &reader{node: n, name: "m"}
	list := d.document(n.URL("/topicmaps/m/resourcesync/resourcelist.xml"), false, resourcesync.ResourceList)
	find := func(list *listed) (all []*resourcesync.Item) {
		for i := range list.items {
			if list.items[i].Loc == url {
				all = append(all, &list.items[i])
			}
		}
		return all
	}
	require.Len(t, find(list), 1)
	item := find(list)[0]
	assert.Equal(t, "application/xtm1+xml", item.Type)
	states := func(item *resourcesync.Item) {
		t.Helper()
		require.Len(t, item.Hashes, 2, "md5 and sha-256")
		d.measured(item.Loc, item.Representation, n.MustGet(url).Bytes)
		for _, l := range item.Find(resourcesync.RelAlternate) {
			d.measured(l.Href, l.Representation, n.MustGet(l.Href).Bytes)
		}
	}
	states(item)
	n.MustPut("m", served.Replace(t, large("x"), served.PSI+`note"/>`, served.PSI+`note"/><subjectIndicatorRef xlink:href="http://z.example.org/note"/>`))
	states(item) // another topic has changed
	dump := d.document(n.URL("/topicmaps/m/resourcesync/resourcedump.xml"), false, resourcesync.ResourceDump)
	p, manifest := d.openPackage(&dump.items[0])
	require.Len(t, find(manifest), 1)
	item = find(manifest)[0]
	assert.True(t, string(n.MustGet(url).Bytes) == d.unpack(p, item.Loc, item.Representation), "the package has it whole")

	// version returns the resource that a change in the open list leads to.
	version := func(item *resourcesync.Item) string {
		t.Helper()
		memento, ok := item.Link(resourcesync.RelMemento)
		require.True(t, ok)
		return string(n.MustGet(memento.Href).Bytes)
	}
	for _, text := range []string{"y", "z"} {
		n.MustPut("m", large(text))
		n.settle("m")
		all := find(d.document(n.URL("/topicmaps/m/resourcesync/changelist.xml"), false, resourcesync.ChangeList))
		last := all[len(all)-1]
		assert.Empty(t, last.Hashes, "this list is made for each request")
		assert.True(t, version(last) == string(n.MustGet(url).Bytes))
	}
	n.MustPut("m", served.Replace(t, large("z"), "Other", "Others"))
	n.MustPut("m", large("a"))
	n.MustPut("m", served.TopicMap(served.Topic("note", "Note"), served.Topic("other", "Others"))) // it is deleted
	n.MustPut("m", served.TopicMap(served.Topic("note", "Note"), served.Topic("other", "Other")))
	n.MustPut("m", served.TopicMap(served.Topic("note", "Note"), served.Topic("other", "Others")))
	n.MustPut("m", served.TopicMap(served.Topic("note", "Note"), served.Topic("other", "Other")))
	n.settle("m")

	index := d.document(n.URL("/topicmaps/m/resourcesync/changelist-index.xml"), true, resourcesync.ChangeList)
	changes := d.document(n.URL("/topicmaps/m/resourcesync/changedump.xml"), false, resourcesync.ChangeDump)
	require.Len(t, index.items, len(changes.items)+1)
	saw := ""
	for i := range changes.items {
		closed := find(d.document(index.items[i].Loc, false, resourcesync.ChangeList))
		p, manifest := d.openPackage(&changes.items[i])
		packed := find(manifest)
		require.Len(t, packed, len(closed))
		for j, item := range closed {
			if item.Change == resourcesync.Deleted {
				assert.Equal(t, resourcesync.Deleted, packed[j].Change)
				saw += " deleted"
				continue
			}
			body := version(item)
			d.measured(item.Loc, item.Representation, []byte(body))
			assert.True(t, body == d.unpack(p, packed[j].Loc, packed[j].Representation), "as it was after the change")
			for _, text := range []string{"x", "y", "z", "a"} {
				if strings.Contains(body, strings.Repeat(text, rendered.MaxSmall)) {
					saw += " " + text
				}
			}
			memento, _ := item.Link(resourcesync.RelMemento)
			other := packed[j].Find(resourcesync.RelAlternate)[1]
			assert.True(t, string(n.MustGet(memento.Href+".xtm21").Bytes) == d.unpack(p, other.Href, other.Representation))
		}
	}
	assert.Regexp(t, " y z a deleted$", saw)
}

// The record of a class has its own types, but not its instances, which come and go without a change of it. The
// fragment of its entry has them.
func TestRecordsOfClassesAreWithoutTheirInstances(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	for name, instances := range map[string]int{"small": 3, "large": 150} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := startWith(t, rs.Options{ChangesPerList: 4})
			n.Publish("m", served.Classified(instances, "Town"))
			url := n.URL("/topicmaps/m/topics/" + fragment.Key(served.PSI+"town"))
			n.visited("m").check()
			same := func(was, is served.Answer) {
				t.Helper()
				assert.Equal(t, string(was.Bytes), string(is.Bytes))
				assert.Equal(t, was.Header.Get("ETag"), is.Header.Get("ETag"))
				assert.Equal(t, was.Header.Get("TMShare-Record-Updated"), is.Header.Get("TMShare-Record-Updated"))
			}
			first := n.MustGet(url)
			assert.Contains(t, string(first.Bytes), served.PSI+"kind")
			assert.NotContains(t, string(first.Bytes), served.PSI+"town-")
			n.MustPut("m", served.Classified(instances-1, "Town"))
			n.visited("m").check()
			same(first, n.MustGet(url))

			n.MustPut("m", served.Classified(instances-1, "Village"))
			n.visited("m").check()
			second := n.MustGet(url)
			assert.NotEqual(t, first.Header.Get("ETag"), second.Header.Get("ETag"))
			n.MustPut("m", served.Classified(instances+1, "Village"))
			n.visited("m").check()
			same(second, n.MustGet(url))

			// The fragment has them; the version of the topic is the record.
			entry := ""
			require.NoError(t, n.Store.View(n.T.Context(), "m", func(v *store.View) error {
				e, err := v.Last(fragment.Key(served.PSI + "town"))
				entry = v.ID(e).String()
				return err
			}))
			a := n.MustGet("/topicmaps/m/fragments/" + entry)
			assert.Contains(t, string(a.Bytes), served.PSI+"town-")
			assert.Empty(t, a.Header.Get("Memento-Datetime"))
			link := regexp.MustCompile(`<([^>]*)>; rel="memento"`).FindStringSubmatch(strings.Join(second.Header.Values("Link"), ","))
			require.NotNil(t, link)
			a = n.MustGet(link[1])
			assert.Equal(t, string(second.Bytes), string(a.Bytes))
			assert.NotEmpty(t, a.Header.Get("Memento-Datetime"))
			assert.Contains(t, a.Header.Get("Cache-Control"), "immutable")
		})
	}
}
