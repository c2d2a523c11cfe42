package resourcesync_test

import (
	"bytes"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/feeds/resourcesync"
	rs "github.com/tmshare/tmshare/internal/ext/resourcesync"
	"github.com/tmshare/tmshare/internal/ext/resourcesync/resources"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/served"
	"github.com/tmshare/tmshare/internal/xml/patch"
)

// A TimeGate leads to the version that was current at a time; the version has that time.
func TestTimeGateLeadsToTheVersionOfATime(t *testing.T) {
	t.Parallel()
	c := served.NewClock()
	n := startOn(t, store.Options{Dir: t.TempDir(), Now: c.Now}, rs.Options{}, func(cfg *server.Config) { cfg.Now = c.Now })
	key, times := served.PublishVersions(n.Node, c, 4)
	gate := "/topicmaps/m/timegate/" + key
	for name, want := range map[string]struct {
		headers []string
		version int
	}{
		"none given":       {nil, 3},
		"now":              {served.AcceptDatetime(c.Now()), 3},
		"the very second":  {served.AcceptDatetime(times[2]), 2},
		"a second before":  {served.AcceptDatetime(times[2].Add(-time.Second)), 1},
		"between":          {served.AcceptDatetime(times[1].Add(time.Minute)), 1},
		"before the first": {served.AcceptDatetime(times[0].Add(-time.Hour)), 0},
	} {
		a := n.Get(gate, want.headers...)
		require.Equal(t, http.StatusFound, a.StatusCode, "%s: %s", name, a.Bytes)
		assert.Equal(t, "Accept-Datetime", a.Header.Get("Vary"))
		assert.Empty(t, a.Header.Get("Memento-Datetime"), "it is no version itself")
		assert.Contains(t, a.Header.Values("Link"), "<"+n.URL("/topicmaps/m/topics/"+key)+`>; rel="original"`)
		version := n.MustGet(a.Header.Get("Location"))
		assert.Equal(t, times[want.version].UTC().Format(http.TimeFormat), version.Header.Get("Memento-Datetime"), name)
		if want.version > 0 { // the first version was not kept before it was replaced
			assert.Contains(t, string(version.Bytes), fmt.Sprint("version ", want.version), name)
		}
		assert.Contains(t, version.Header.Values("Link"), "<"+n.URL(gate)+`>; rel="timegate"`)
	}
	assert.Equal(t, http.StatusBadRequest, n.Get(gate, "Accept-Datetime", "yesterday").StatusCode)
	assert.Equal(t, http.StatusNotFound, n.Get("/topicmaps/m/timegate/"+strings.Repeat("a", 26)).StatusCode)
}

var memento = regexp.MustCompile(`<([^>]*)>; rel="([a-z ]*)"(?:; (?:type|datetime)="([^"]*)")?`)

// A TimeMap lists all versions that are kept, in pages.
func TestTimeMapListsAllVersions(t *testing.T) {
	t.Parallel()
	c := served.NewClock()
	n := startOn(t, store.Options{Dir: t.TempDir(), Now: c.Now}, rs.Options{}, func(cfg *server.Config) { cfg.Now = c.Now }, served.DocumentSize(1))
	key, times := served.PublishVersions(n.Node, c, 5)
	timeMap := "/topicmaps/m/timemap/" + key
	a := n.MustGet(timeMap)
	assert.Equal(t, "application/link-format", a.MediaType())
	links := memento.FindAllStringSubmatch(string(a.Bytes), -1)
	require.Len(t, links, 3+5)
	assert.Equal(t, []string{n.URL("/topicmaps/m/topics/" + key), "original"}, links[0][1:3])
	assert.Equal(t, []string{n.URL("/topicmaps/m/timegate/" + key), "timegate"}, links[1][1:3])
	assert.Equal(t, []string{n.URL(timeMap), "self", "application/link-format"}, links[2][1:4])
	for i, l := range links[3:] {
		want := map[int]string{0: "last memento", 4: "first memento"}[i]
		if want == "" {
			want = "memento"
		}
		at := times[4-i].UTC().Format(http.TimeFormat)
		assert.Equal(t, []string{want, at}, l[2:4])
		assert.Equal(t, at, n.MustGet(l[1]).Header.Get("Memento-Datetime"))
	}
	assert.Equal(t, http.StatusNotModified, n.Get(timeMap, "If-None-Match", a.Header.Get("ETag")).StatusCode)

	// One page goes on where the one before ends.
	page := timeMap + "-" + strconv.Itoa(int(n.sequence(links[5][1])))
	rest := memento.FindAllStringSubmatch(string(n.MustGet(page).Bytes), -1)
	require.Len(t, rest, 3+3)
	assert.Equal(t, links[5:], rest[3:])
	assert.Equal(t, http.StatusNotFound, n.Get(timeMap+"-999").StatusCode)
	assert.Equal(t, http.StatusNotFound, n.Get(timeMap+"-2").StatusCode, "a version of another topic")

	// Pruned versions are not listed.
	n.Settings("m", func(s *store.Settings) { s.KeepEntries = 1 })
	n.MustPut("m", served.Cities(1, "last"))
	require.Equal(t, http.StatusCreated, n.Post("/topicmaps/m/snapshots").StatusCode)
	require.Equal(t, http.StatusOK, n.Post("/topicmaps/m/gc").StatusCode)
	left := memento.FindAllStringSubmatch(string(n.MustGet(timeMap).Bytes), -1)
	assert.Less(t, len(left), 3+5)
	for _, l := range left[3:] {
		n.MustGet(l[1])
	}
	assert.Equal(t, http.StatusGone, n.Get(page).StatusCode)
}

// sequence returns that of the entry with a fragment.
func (n *node) sequence(url string) (seq uint64) {
	id := url[strings.LastIndex(url, "/")+1:]
	require.NoError(n.T, n.Store.View(n.T.Context(), "m", func(v *store.View) error {
		e, err := v.EntryOf(uuid.MustParse(id))
		if err == nil {
			seq = e.Seq
		}
		return err
	}))
	return seq
}

// hubOf is a topic with n occurrences, and then a text.
func hubOf(id string, notes int, text string) string {
	var more []string
	for i := range notes {
		more = append(more, served.Note("note", fmt.Sprintf("What there is to say, number %d", i)))
	}
	return served.Topic(id, id, append(more, served.Note("note", text))...)
}

func largeHub(text string) []byte {
	return served.TopicMap(served.Topic("note", "Note"), hubOf("hub", 300, text))
}

// checkPatch follows the patch link of a change, and compares the patch with its metadata: it turns the memento of
// the version before into that of this one. It reports false if the version before is not kept, so that the patch is
// not either.
func (n *node) checkPatch(collection string, item *resourcesync.Item, link resourcesync.Link) bool {
	t := n.T
	t.Helper()
	require.Equal(t, resourcesync.Updated, item.Change)
	require.Equal(t, item.LastMod, link.Modified)
	require.Equal(t, patch.MediaType, link.Type)
	require.LessOrEqual(t, 2*link.Length, item.Length)
	memento, ok := item.Link(resourcesync.RelMemento)
	require.True(t, ok)
	href, ok := strings.CutSuffix(link.Href, ".patch")
	require.True(t, ok)
	name, _, _ := strings.Cut(href[strings.LastIndex(href, "/")+1:], ".")
	id, err := uuid.Parse(name)
	require.NoError(t, err)
	kept, prior := false, ""
	require.NoError(t, n.Store.View(n.T.Context(), collection, func(v *store.View) error {
		e, err := v.EntryOf(id)
		if err != nil {
			return nil
		}
		kept = true
		require.NotZero(t, e.Prior)
		before, err := v.Entry(e.Prior)
		if err == nil {
			prior = strings.Replace(href, name, v.ID(before).String(), 1)
		}
		return nil
	}))
	if prior == "" { // one of the two fragments is pruned
		require.Equal(t, map[bool]int{true: http.StatusOK, false: http.StatusGone}[kept], n.Get(memento.Href).StatusCode)
		require.Equal(t, http.StatusGone, n.Get(link.Href).StatusCode)
		return false
	}
	before, a := n.Get(prior), n.Get(link.Href)
	require.Equal(t, http.StatusOK, before.StatusCode)
	require.Equal(t, http.StatusOK, a.StatusCode, "%s", a.Bytes)
	require.Equal(t, patch.MediaType, a.MediaType())
	(&reader{node: n}).measured(link.Href, link.Representation, a.Bytes)
	after, err := patch.Apply(before.Bytes, a.Bytes)
	require.NoError(t, err)
	require.Equal(t, string(n.MustGet(href).Bytes), string(after))
	require.Equal(t, string(n.MustGet(memento.Href).Bytes), string(after), "the one that the item is about")
	return true
}

// A change of a large topic leads to the patch, which any reader of fragments may have.
func TestPatchOfAHub(t *testing.T) {
	t.Parallel()
	n := startWith(t, rs.Options{ChangesPerList: 3})
	n.Publish("m", largeHub("first"))
	n.visit("m")
	n.MustPut("m", largeHub("second"))
	d := n.visited("m")
	d.check()
	item := d.open.items[len(d.open.items)-1]
	links := item.Find(resourcesync.RelPatch)
	require.Len(t, links, 1)
	require.Less(t, links[0].Length, int64(600))
	require.Greater(t, item.Length, int64(30_000))
	require.True(t, n.checkPatch("m", &item, links[0]))
	href := links[0].Href
	other := strings.Replace(href, ".xtm1.patch", ".xtm21.patch", 1)
	n.MustGet(other)

	a := n.MustGet(href, "Accept-Encoding", "gzip")
	require.Equal(t, "gzip", a.Header.Get("Content-Encoding"))
	require.Equal(t, string(n.MustGet(href).Bytes), string(a.Plain(t)))
	require.Contains(t, a.Header.Get("Cache-Control"), "immutable")
	require.Equal(t, http.StatusNotModified, n.Get(href, "Accept-Encoding", "gzip", "If-None-Match", a.Header.Get("ETag")).StatusCode)
	h := n.Do(http.MethodHead, href, nil)
	require.EqualValues(t, links[0].Length, h.ContentLength)
	require.Empty(t, h.Bytes)
	memento, _ := item.Link(resourcesync.RelMemento)
	for url, want := range map[string]int{
		memento.Href + ".patch":                                      http.StatusNotFound, // of no form
		strings.Replace(href, ".xtm1.", ".xtm20.", 1):                http.StatusNotFound,
		strings.Replace(href, "/mementos/", "/x/", 1):                http.StatusNotFound,
		n.URL("/topicmaps/none") + href[len(n.URL("/topicmaps/m")):]: http.StatusNotFound,
	} {
		assert.Equal(t, want, n.Get(url).StatusCode, url)
	}

	// The lists that are files have it too; packages have the whole instead.
	n.MustPut("m", served.TopicMap(served.Topic("note", "Notes"), hubOf("hub", 300, "second")))
	require.NoError(t, n.Store.View(d.T.Context(), "m", func(v *store.View) error {
		for e := range v.Entries(1) {
			about, err := resources.RecordFormOf(v, &e)
			require.NoError(t, err)
			if about.Patches == nil {
				assert.Equal(t, http.StatusNotFound, n.Get(n.URL("/topicmaps/m/mementos/"+v.ID(&e).String()+".xtm1.patch")).StatusCode)
			}
		}
		return nil
	}))
	n.MustPut("m", largeHub("third"))
	n.MustPut("m", largeHub("fourth"))
	d = n.visited("m")
	d.check()
	require.NotEmpty(t, d.closed)
	patched := 0
	for _, list := range d.closed {
		for i := range list.items {
			patched += len(list.items[i].Find(resourcesync.RelPatch))
		}
	}
	require.Positive(t, patched)
	manifest := string(n.MustGet(strings.Replace(strings.Replace(d.closed[0].url, "changelist-", "changedump-", 1), ".xml", "-manifest.xml", 1)).Bytes)
	require.NotContains(t, manifest, ".patch")
}

// Resources are in the first form that is offered: a patch leads from it to it.
func TestPatchesWhenFormsChange(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.Publish("m", largeHub("first"))
	n.visit("m")
	n.MustPut("m", largeHub("second"))
	patches := func() (all []resourcesync.Link) {
		t.Helper()
		d := n.visit("m")
		d.check()
		for i := range d.plain.items {
			item := &d.plain.items[i]
			for _, l := range item.Find(resourcesync.RelPatch) {
				require.True(t, n.checkPatch("m", item, l))
				all = append(all, l)
			}
		}
		return all
	}
	require.Len(t, patches(), 1)
	n.Settings("m", func(s *store.Settings) { s.RecordForms = store.Forms[1:] })
	n.MustPut("m", largeHub("third")) // before the others are published in the other form
	require.Len(t, patches(), 1, "the version before is in another form")
	n.MustPut("m", largeHub("fourth"))
	all := patches()
	require.Len(t, all, 2)
	require.True(t, strings.HasSuffix(all[1].Href, ".xtm21.patch"))
}

// Patches are for those who may read fragments, as long as these are kept.
func TestPatchesOfPrunedAndOfPrivateTopics(t *testing.T) {
	t.Parallel()
	n := start(t, served.DocumentSize(1), func(c *server.Config) { c.ReadTokens = map[string][]string{"private": {"0123456789abcdef"}} })
	for _, name := range []string{"m", "private"} {
		token := []string{"Authorization", "Bearer 0123456789abcdef"}
		n.Publish(name, largeHub("first"))
		testenv.Eventually(t, func() bool {
			return n.Get("/topicmaps/"+name+"/resourcesync/changelist.xml", token...).StatusCode == http.StatusOK
		})
		n.MustPut(name, largeHub("second"))
		list, err := resourcesync.Read(bytes.NewReader(n.MustGet("/topicmaps/"+name+"/resourcesync/changelist.xml", token...).Bytes), "x", resourcesync.Limits{})
		require.NoError(t, err)
		href := ""
		for item, err := list.Next(); err == nil; item, err = list.Next() {
			if l, ok := item.Link(resourcesync.RelPatch); ok {
				href = l.Href
			}
		}
		require.NotEmpty(t, href)
		if name == "private" {
			require.Equal(t, http.StatusUnauthorized, n.Get(href).StatusCode)
			require.Contains(t, n.MustGet(href, token...).Header.Get("Cache-Control"), "private")
			continue
		}
		n.MustGet(href)
		n.Settings(name, func(s *store.Settings) { s.KeepEntries = 1 })
		require.Equal(t, http.StatusCreated, n.Post("/topicmaps/m/snapshots").StatusCode)
		testenv.Eventually(t, func() bool { // once the lists are closed
			n.Post("/topicmaps/m/gc")
			return n.Get(href).StatusCode == http.StatusGone
		})
		require.Contains(t, string(n.Get(href).Bytes), "start again from the newest snapshot")
	}
}
