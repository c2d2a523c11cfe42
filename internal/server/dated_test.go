package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/checkpoint"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/pgserver"
	"github.com/tmshare/tmshare/internal/testkit/served"
	"github.com/tmshare/tmshare/internal/testkit/stores"
	maps "github.com/tmshare/tmshare/testdata/xtm"
)

// followed publishes a map, and returns the addresses of all documents that followers read.
func followed(t *testing.T, n *node) []string {
	urls := append(stored(t, n), packable(t, n)...)
	sign(t, n, newKey(t))
	const at = "/topicmaps/egov/"
	urls = append(urls, at+"fragments.bundle", at+"snapshots/current", at+"digest", at+"digest/0", at+"checkpoint", at+"checkpoint/consistency?from=1&to=2", at+"openings",
		"/.well-known/resourcesync")
	for _, name := range []string{"capabilitylist", "changelist", "changelist-open", "changelist-index", "changedump", "resourcelist", "resourcedump"} {
		urls = append(urls, at+"resourcesync/"+name+".xml")
	}
	return urls
}

func newKey(t *testing.T) (path string) {
	key, err := checkpoint.GenerateKey(filepath.Join(t.TempDir(), "key"), "maps.example.org")
	require.NoError(t, err)
	return key.Path
}

func sign(t *testing.T, n *node, key string) {
	a := n.Do(http.MethodPut, "/topicmaps/egov", strings.NewReader(fmt.Sprintf(`{"sign":%q}`, key)), "Content-Type", "application/json")
	require.Equal(t, http.StatusOK, a.StatusCode, "%s", a.Bytes)
}

func checkedOf(t *testing.T, a served.Answer) time.Time {
	t.Helper()
	at, err := feeds.ParseTime(a.Header.Get(feeds.CheckedHeader))
	require.NoError(t, err, "%s", a.Request.URL)
	return at
}

// Documents for followers have the time of their state, also if they have not changed; errors do not.
func TestDataSayOfWhenTheyAre(t *testing.T) {
	t.Parallel()
	n := start(t)
	for _, u := range followed(t, n) {
		before := time.Now().Truncate(time.Microsecond)
		a := n.MustGet(u)
		checked := checkedOf(t, a)
		assert.False(t, checked.Before(before), "%s: %s, asked at %s", u, checked, before)
		assert.False(t, checked.After(time.Now()), "%s: %s", u, checked)
		if tag := a.Header.Get("ETag"); tag != "" {
			again := n.Get(u, "If-None-Match", tag)
			assert.Equal(t, http.StatusNotModified, again.StatusCode, u)
			assert.True(t, checkedOf(t, again).After(checked), u)
		}
	}
	for _, u := range []string{"/topicmaps/none", "/topicmaps/egov/fragments/archive/60a76c80-d399-11d9-b93c-0003939e0af6-1", "/topicmaps/egov/topics/aaaaaaaaaaaaaaaaaaaaaaaaaa"} {
		a := n.Get(u)
		assert.Contains(t, []int{http.StatusNotFound, http.StatusGone}, a.StatusCode, u)
		assert.Empty(t, a.Header.Get(feeds.CheckedHeader), u)
	}
}

// A value of the query is returned in a header, and is the only difference: it changes neither tags nor content, and
// the answer is not cached.
func TestAskedAnswers(t *testing.T) {
	t.Parallel()
	n := start(t)
	with := func(u, value string) string {
		if strings.Contains(u, "?") {
			return u + "&asked=" + value
		}
		return u + "?asked=" + value
	}
	for i, u := range followed(t, n) {
		plain := n.MustGet(u)
		assert.Empty(t, plain.Header.Get(feeds.AskedHeader), u)
		value := "value-" + string(rune('a'+i%26))
		a := n.MustGet(with(u, value))
		assert.Equal(t, value, a.Header.Get(feeds.AskedHeader), u)
		assert.Equal(t, "no-store", a.Header.Get("Cache-Control"), u)
		assert.Equal(t, plain.Header.Get("ETag"), a.Header.Get("ETag"), u)
		if !strings.Contains(u, "/checkpoint") { // which is signed anew
			assert.Equal(t, string(plain.Bytes), string(a.Bytes), u)
		}
		assert.NotContains(t, string(a.Bytes), "asked=", u)
		assert.NotContains(t, strings.Join(a.Header.Values("Link"), ","), "asked=", u)
		if tag := a.Header.Get("ETag"); tag != "" {
			again := n.Get(with(u, "x.y_z"), "If-None-Match", tag)
			assert.Equal(t, http.StatusNotModified, again.StatusCode, u)
			assert.Equal(t, "x.y_z", again.Header.Get(feeds.AskedHeader), u)
			assert.Equal(t, "no-store", again.Header.Get("Cache-Control"), u)
		}
	}

	// Invalid values, and several values, are ignored; the rest of the query applies.
	const feed = "/topicmaps/egov/fragments"
	for _, query := range []string{"asked=", "asked", "asked=" + strings.Repeat("x", 65), "asked=a%0D%0ASet-Cookie:b", "asked=%C3%A4", "asked=a&asked=a", "xasked=a", "asked=a%20b", "asked=%zz"} {
		a := n.MustGet(feed + "?" + query)
		assert.Empty(t, a.Header.Get(feeds.AskedHeader), query)
		assert.Equal(t, "public, max-age=5", a.Header.Get("Cache-Control"), query)
	}
	a := n.MustGet(feed + "?%61sked=A%62&since=2000-01-01T00:00:00Z")
	assert.Equal(t, "Ab", a.Header.Get(feeds.AskedHeader))
	assert.Contains(t, string(a.Bytes), "Fragments since 2000-01-01")

	// Errors return it too, and redirects keep it in the query.
	for _, u := range []string{"/topicmaps/none?asked=v", "/nothing?asked=v", feed + "?since=never&asked=v", feed + "/archive/60a76c80-d399-11d9-b93c-0003939e0af6-1?asked=v"} {
		a := n.Get(u)
		assert.GreaterOrEqual(t, a.StatusCode, 400, u)
		assert.Equal(t, "v", a.Header.Get(feeds.AskedHeader), u)
	}
	assert.Equal(t, "v", n.Do(http.MethodPost, feed+"?asked=v", nil).Header.Get(feeds.AskedHeader), "405")
	e := n.Feed(feed).Entries[0]
	led := n.Get("/topicmaps/egov/topics?asked=v&si=" + url.QueryEscape(e.TopicSI[0]))
	assert.Equal(t, http.StatusSeeOther, led.StatusCode)
	assert.True(t, strings.HasSuffix(led.Header.Get("Location"), "?asked=v"), led.Header.Get("Location"))
}

// opened starts a server as the program does, and returns the openings that its feed states.
func opened(t *testing.T, n *node) []string {
	t.Helper()
	require.NoError(t, n.Store.BeginOpening(t.Context()))
	f, err := feeds.Decode(bytes.NewReader(n.MustGet("/topicmaps/egov/fragments").Bytes), n.BaseURL, feeds.Limits{})
	require.NoError(t, err)
	return f.Openings
}

func openingsOf(t *testing.T, n *node) (ids []string) {
	t.Helper()
	var list struct {
		Openings []struct {
			ID string    `json:"id"`
			At time.Time `json:"at"`
		} `json:"openings"`
	}
	require.NoError(t, json.Unmarshal(n.MustGet(n.Feed("/topicmaps/egov/fragments").Link(t, feeds.RelOpenings)).Bytes, &list))
	for i, o := range list.Openings {
		ids = append(ids, o.ID)
		assert.True(t, i == 0 || !o.At.After(list.Openings[i-1].At), "the newest first")
		assert.WithinDuration(t, time.Now(), o.At, time.Hour)
	}
	return ids
}

// Only the head of the feed states the last openings of the database: archive documents do not change.
func TestOpeningsInTheHeadOfTheFeed(t *testing.T) {
	t.Parallel()
	dir, base := t.TempDir(), ""
	open := func() *node {
		return startOn(t, store.Options{Dir: dir}, served.DocumentSize(2), func(c *server.Config) {
			if base == "" {
				base = c.BaseURL
			}
			c.BaseURL = base
		})
	}
	n := open()
	n.Publish("egov", maps.EGov)
	feed := n.Feed("/topicmaps/egov/fragments")
	assert.NotContains(t, string(n.MustGet("/topicmaps/egov/fragments").Bytes), "own:opening", "nothing was opened for publishing")
	archived := []string{feed.Link(t, "via"), feed.Link(t, "prev-archive"), "/topicmaps/egov/fragments?since=2000-01-01T00:00:00Z"}
	before := map[string]string{}
	for _, u := range archived {
		before[u] = string(n.MustGet(u).Bytes)
	}
	var all []string
	for i := range 11 {
		now := opened(t, n)
		require.Len(t, now, min(i+1, 8))
		assert.NotContains(t, all, now[0])
		all = append(now[:1:1], all...)
		assert.Equal(t, all[:len(now)], now)
		assert.Equal(t, all, openingsOf(t, n))
		for _, u := range archived {
			assert.Equal(t, before[u], string(n.MustGet(u).Bytes), u)
		}
		if i == 5 {
			n.Stop()
			n = open()
			n.HTTP.Transport = &http.Transport{DisableCompression: true, Proxy: nil, DialContext: dial(n.Address)}
		}
	}
	tag := n.MustGet("/topicmaps/egov/fragments").Header.Get("ETag")
	assert.Equal(t, http.StatusNotModified, n.Get("/topicmaps/egov/fragments", "If-None-Match", tag).StatusCode)
	assert.NotEqual(t, opened(t, n), all[:8])
	assert.Equal(t, http.StatusOK, n.Get("/topicmaps/egov/fragments", "If-None-Match", tag).StatusCode, "with another opening the head is another")
}

// A restored folder lacks the later openings, and has an unknown one. Its new entries have addresses of their own.
func TestAFolderThatWasPutBackIsKnownByItsOpenings(t *testing.T) {
	stores.InFolders(t)
	t.Parallel()
	dir, copied := t.TempDir(), t.TempDir()
	base := ""
	configure := []func(*server.Config){served.DocumentSize(2), func(c *server.Config) {
		if base == "" {
			base = c.BaseURL
		}
		c.BaseURL = base
	}}
	change := func(n *node, names ...string) (archive string, body string) {
		for _, name := range names {
			doc := `<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1"><topic id="a"><subjectIdentifier href="http://psi.example.org/a"/><name><value>` + name + `</value></name></topic></topicMap>`
			a := n.Do(http.MethodPost, n.URL("/topicmaps/egov")+"/topics", strings.NewReader(doc), "Content-Type", "application/x-tm+xml")
			require.Equal(t, http.StatusOK, a.StatusCode, "%s", a.Bytes)
		}
		archive = n.Feed(n.URL("/topicmaps/egov")+"/fragments").Link(t, "prev-archive")
		return archive, string(n.MustGet(archive).Bytes)
	}
	at := func(n *node) *node {
		n.HTTP.Transport = &http.Transport{DisableCompression: true, DialContext: dial(n.Address)}
		return n
	}
	n := at(startOn(t, store.Options{Dir: dir}, configure...))
	n.Publish("egov", []byte(`<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1"/>`))
	change(n, "1", "2")
	first := opened(t, n)
	n.Stop()
	require.NoError(t, os.CopyFS(copied, os.DirFS(dir)))

	n = at(startOn(t, store.Options{Dir: dir}, configure...))
	second := opened(t, n)
	assert.Equal(t, first, second[1:])
	lost, lostBody := change(n, "3", "4", "5")
	n.Stop()

	n = at(startOn(t, store.Options{Dir: copied}, configure...))
	restored := opened(t, n)
	assert.Equal(t, first, restored[1:], "what was known before the copy")
	assert.NotContains(t, restored, second[0], "what was known after it")
	archive, body := change(n, "6", "7", "8")
	number := func(u string) string { return u[strings.LastIndex(u, "-"):] }
	assert.Equal(t, number(lost), number(archive), "the same document of the feed")
	assert.NotEqual(t, lost, archive, "at another address, since others may have it for ever")
	assert.NotEqual(t, lostBody, body)
	gone := n.Get(lost)
	assert.NotEqual(t, http.StatusOK, gone.StatusCode)
	assert.NotContains(t, gone.Header.Get("Cache-Control"), "immutable")
	assert.Equal(t, "public, max-age=31536000, immutable", cacheOfFinished(t, n))
}

// cacheOfFinished returns the time for which caches keep an unchanging archive document.
func cacheOfFinished(t *testing.T, n *node) string {
	u := n.URL("/topicmaps/egov") + "/fragments"
	for range 2 {
		u = n.Feed(u).Link(t, "prev-archive")
	}
	return n.MustGet(u).Header.Get("Cache-Control")
}

// dial leads all connections to a server.
func dial(address string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, address)
	}
}

// Two servers have one database, and one of them reads a copy that lags. Its answers have the time of the copy, which
// is never later than that of a missing change.
func TestAServerOnADatabaseThatLags(t *testing.T) {
	t.Parallel()
	s := pgserver.Start(t, "fsync=off")
	o := s.Store(t)
	on := func(database *pgserver.Server, access store.Access, base string) *node {
		return startOn(t, store.Options{Dir: t.TempDir(), Engine: pgserver.Open(t, database.At(o)), Access: access}, served.DocumentSize(2), func(c *server.Config) {
			if base != "" {
				c.BaseURL = base
			}
		})
	}
	n := on(s, store.Create, "")
	n.Publish("egov", maps.EGov)
	sign(t, n, newKey(t))
	standby := s.Standby()
	lagging := on(standby, store.Read, n.BaseURL)
	lagging.HTTP.Transport = &http.Transport{DisableCompression: true, DialContext: dial(lagging.Address)}
	const at = "/topicmaps/egov/"
	documents := []string{at + "fragments", at + "records", at + "snapshots", at + "snapshots/current.xtm21", at + "digest", at + "checkpoint", "/topicmaps", "/topicmaps/egov"}
	inStep := func() bool {
		return n.Feed(at + "fragments").Entries[0].ID() == lagging.Feed(at + "fragments").Entries[0].ID()
	}
	change := func(name string) {
		n.MustPut("egov", served.Replace(t, maps.EGov, "<baseNameString>Sort key</baseNameString>", "<baseNameString>"+name+"</baseNameString>"))
	}
	change("Sorting")
	testenv.Eventually(t, inStep)
	for i := range 3 {
		standby.Pause(t)
		before := map[string]string{}
		for _, u := range documents {
			before[u] = lagging.MustGet(u).Header.Get("ETag")
		}
		change(fmt.Sprint("Sorting ", i))
		missing := n.Feed(at + "fragments").Entries[0]
		made, err := feeds.ParseTime(missing.Updated())
		require.NoError(t, err)
		for _, u := range documents {
			old, now := lagging.MustGet(u), n.MustGet(u)
			assert.Equal(t, before[u], old.Header.Get("ETag"), "%s: it lags", u)
			assert.True(t, checkedOf(t, old).Before(made), "%s is of %s, and lacks what was published at %s", u, checkedOf(t, old), made)
			assert.False(t, checkedOf(t, now).Before(made), u)
			assert.Equal(t, "v", lagging.MustGet(u+"?asked=v").Header.Get(feeds.AskedHeader), "asking does not make it newer")
			if tag := old.Header.Get("ETag"); tag != "" {
				again := lagging.Get(u, "If-None-Match", tag)
				assert.Equal(t, http.StatusNotModified, again.StatusCode, u)
				assert.True(t, checkedOf(t, again).Before(made), u)
			}
		}
		standby.Resume(t)
		testenv.Eventually(t, func() bool { return inStep() && !checkedOf(t, lagging.MustGet(at+"fragments")).Before(made) })
	}
}

// A derived collection is an origin: its documents have the time at which they are read, and the openings of the node.
// If readers need a token, answers without one have no data.
func TestDerivedAndClosedCollectionsSayOfWhenTheyAre(t *testing.T) {
	t.Parallel()
	secret := strings.Repeat("r", 40)
	n := start(t, func(c *server.Config) { c.ReadTokens = map[string][]string{"closed": {secret}} })
	n.Publish("egov", maps.EGov)
	n.Publish("closed", maps.EGov)
	require.Equal(t, http.StatusCreated, n.Put("all", []byte(`{"derivedFrom": ["egov"]}`), "Content-Type", "application/json").StatusCode)
	n.Idle()
	openings := opened(t, n)
	for _, u := range []string{"fragments", "records", "snapshots", "snapshots/current", "digest", "openings"} {
		u := "/topicmaps/all/" + u
		before := time.Now().Truncate(time.Microsecond)
		a := n.MustGet(u + "?asked=v")
		assert.False(t, checkedOf(t, a).Before(before), u)
		assert.Equal(t, "v", a.Header.Get(feeds.AskedHeader), u)
	}
	f, err := feeds.Decode(bytes.NewReader(n.MustGet("/topicmaps/all/fragments").Bytes), n.BaseURL, feeds.Limits{})
	require.NoError(t, err)
	assert.Equal(t, openings, f.Openings)

	refused := n.Get("/topicmaps/closed/fragments?asked=v")
	assert.Equal(t, http.StatusUnauthorized, refused.StatusCode)
	assert.Equal(t, "v", refused.Header.Get(feeds.AskedHeader))
	assert.Empty(t, refused.Header.Get(feeds.CheckedHeader))
	read := n.MustGet("/topicmaps/closed/fragments?asked=v", "Authorization", "Bearer "+secret)
	assert.Equal(t, "no-store", read.Header.Get("Cache-Control"))
	assert.Contains(t, strings.Join(read.Header.Values("Vary"), ","), "Authorization")
	checkedOf(t, read)
}
