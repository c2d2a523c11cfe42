package server_test

import (
	"bytes"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/pgserver"
	"github.com/tmshare/tmshare/internal/testkit/served"
	"github.com/tmshare/tmshare/internal/testkit/stores"
)

const capabilityList = "/topicmaps/small/resourcesync/capabilitylist.xml"

// A server with a read-only database answers at each of its addresses: with the stored document, or with 503 and the
// reason. It never fails.
func TestAServerThatOnlyReadsAnswersAtEachAddress(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	t.Run("a standby", func(t *testing.T) {
		t.Parallel()
		primary := pgserver.Start(t, "fsync=off")
		o := primary.Store(t)
		n := startOn(t, store.Options{Dir: t.TempDir(), Engine: pgserver.Open(t, o)})
		n.fill()
		reader := n.startReader(store.Options{Dir: t.TempDir(), Engine: pgserver.Open(t, primary.Standby().At(o))})
		follows := func() bool {
			return bytes.Equal(n.MustGet("/topicmaps/small").Bytes, reader.Get("/topicmaps/small").Bytes)
		}
		testenv.Eventually(t, follows)
		reader.answersEach(n.crawl("/topicmaps"), http.StatusServiceUnavailable)
		urls := n.crawl("/topicmaps", capabilityList)
		testenv.Eventually(t, func() bool { return reader.Get(capabilityList).StatusCode == http.StatusOK })
		reader.answersEach(urls, http.StatusOK)
	})
	t.Run("a folder", func(t *testing.T) {
		t.Parallel()
		stores.InFolders(t)
		o := store.Options{Dir: t.TempDir()}
		n := startOn(t, o)
		n.fill()
		urls := n.crawl("/topicmaps")
		n.Stop()
		reader := n.startReader(o)
		reader.answersEach(urls, http.StatusServiceUnavailable)
		reader.Stop()

		o.Access = store.Write
		n = startOn(t, o, func(c *server.Config) { c.BaseURL = n.BaseURL })
		n.HTTP.Transport.(*http.Transport).DialContext = dial(n.Address)
		urls = n.crawl("/topicmaps", capabilityList)
		n.Stop()
		n.startReader(o).answersEach(urls, http.StatusOK)
	})
}

// A server whose database accepts no changes is not ready, and is ready again when it does.
func TestReadinessEndsWithTheLastChange(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	s := pgserver.Start(t, "fsync=off")
	n := startOn(t, store.Options{Dir: t.TempDir(), Engine: pgserver.Open(t, s.Store(t))})
	n.Publish("small", served.Small())
	assert.Equal(t, "ready\n", string(n.MustGet("/readyz").Bytes))
	s.SQL(t, "ALTER SYSTEM SET default_transaction_read_only = on")
	s.SQL(t, "SELECT pg_reload_conf()")
	testenv.Eventually(t, func() bool { return n.Get("/readyz").StatusCode == http.StatusServiceUnavailable })
	a := n.Get("/readyz", "X-Request-Id", "unwritten")
	assert.Contains(t, string(a.Bytes), "takes no changes")
	assert.Contains(t, n.lines("request=unwritten")[0], "target_session_attrs=read-write")
	n.MustGet("/topicmaps/small")
	s.SQL(t, "ALTER SYSTEM RESET default_transaction_read_only")
	s.SQL(t, "SELECT pg_reload_conf()")
	testenv.Eventually(t, func() bool { return n.Get("/readyz").StatusCode == http.StatusOK })
}

// fill publishes two maps, of which one has changes.
func (n *node) fill() {
	n.Publish("small", served.Small())
	n.Publish("other", served.Small())
	n.MustSet("small", `{"changesPerList": 2}`)
	for _, name := range []string{"Christiania", "Kristiania", "Oslo"} {
		n.MustPut("small", served.Small("Oslo", name))
	}
	n.Idle()
}

// startReader starts a server that may only read a store, under the address of this one.
func (n *node) startReader(o store.Options) *node {
	o.Access = store.Read
	reader := startOn(n.T, o, func(c *server.Config) { c.BaseURL = n.BaseURL })
	reader.HTTP.Transport.(*http.Transport).DialContext = dial(reader.Address)
	require.NoError(n.T, reader.Start())
	return reader
}

var linked = regexp.MustCompile(`(?:href|src|action|rdf:resource)="([^"]*)"|<loc>([^<]*)</loc>`)

// crawl returns the paths of all addresses to which links of all documents lead, from some of them.
func (n *node) crawl(from ...string) []string {
	n.T.Helper()
	seen, all := map[string]bool{}, []string{}
	add := func(u string) {
		u = strings.ReplaceAll(strings.TrimPrefix(u, n.BaseURL), "&amp;", "&")
		u, _, _ = strings.Cut(u, "#")
		if strings.HasPrefix(u, "/") && !strings.HasPrefix(u, "//") && !seen[u] {
			seen[u] = true
			all = append(all, u)
		}
	}
	for _, u := range append(from, "/", "/robots.txt", "/.well-known/resourcesync", "/healthz", "/readyz", "/metrics") {
		add(u)
	}
	for i := 0; i < len(all); i++ {
		require.Less(n.T, i, maxWalk, "links lead to more and more documents")
		if strings.Contains(all[i], "/resourcesync/") && len(from) == 1 {
			continue // the request makes it
		}
		a := n.Get(all[i], "Accept", "text/html;q=0.5, */*")
		require.Less(n.T, a.StatusCode, 500, all[i])
		for _, m := range linked.FindAllStringSubmatch(string(a.Bytes), -1) {
			add(m[1])
			add(m[2])
		}
	}
	return all
}

// answersEach requests all addresses, and each kind of address with each of its methods. ResourceSync documents have
// the given status.
func (n *node) answersEach(urls []string, resourceSync int) {
	n.T.Helper()
	check := func(method, u string) served.Answer {
		a := n.Do(method, u, strings.NewReader("{}"), "Content-Type", "application/json", "Accept", "*/*")
		if a.StatusCode != http.StatusServiceUnavailable {
			assert.Less(n.T, a.StatusCode, 500, "%s %s: %s", method, u, a.Bytes)
		} else {
			assert.NotEmpty(n.T, a.Header.Get("Retry-After"), "%s %s", method, u)
			if method != http.MethodHead {
				assert.Contains(n.T, string(a.Bytes), "only reads", "%s %s says why", method, u)
			}
		}
		return a
	}
	refused := check(http.MethodPut, "/topicmaps/new")
	assert.Equal(n.T, http.StatusServiceUnavailable, refused.StatusCode, "%s", refused.Bytes)
	there := 0
	vars := map[string]string{"name": "style.css", "path": "0", "n": "1", "tag": "x", "seq": "1", "minted": "topic/1"}
	for _, u := range urls {
		a := check(http.MethodGet, u)
		check(http.MethodHead, u)
		if strings.Contains(u, "/resourcesync/") {
			assert.Equal(n.T, resourceSync, a.StatusCode, u)
		}
		if a.StatusCode == http.StatusOK {
			there++
		}
	}
	assert.Greater(n.T, there, len(urls)/2)
	for _, u := range urls {
		for name, m := range map[string]string{"id": `/fragments/([0-9a-f-]{36})`, "key": `/topics/([a-z2-7]{26})`, "history": `/archive/([0-9a-f-]{36})-`} {
			if found := regexp.MustCompile(m).FindStringSubmatch(u); found != nil && strings.HasPrefix(u, "/topicmaps/small/") {
				vars[name] = found[1]
			}
		}
	}
	vars["map"] = "small"
	for path, methods := range n.Addresses() {
		u := regexp.MustCompile(`\{(\w+)\}`).ReplaceAllStringFunc(path, func(v string) string { return vars[strings.Trim(v, "{}")] })
		for _, method := range methods {
			check(method, u)
		}
	}
}
