package e2e_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/client/status"
	"github.com/tmshare/tmshare/internal/client/watch"
	"github.com/tmshare/tmshare/internal/clientcmd"
	"github.com/tmshare/tmshare/internal/control"
	"github.com/tmshare/tmshare/internal/ext"
	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testkit/stores"
	"github.com/tmshare/tmshare/internal/testkit/webpage"
	maps "github.com/tmshare/tmshare/testdata/xtm"
)

// After a failed round, commands, pages, JSON and metrics report the same state of a copy, and as its lag the time
// since it was proven last. The last change of the source is older, and the failed round is later.
func TestLagIsTheSameInAllViews(t *testing.T) {
	begin := time.Now().UTC()
	proven := begin.Add(-time.Hour)
	var earlier atomic.Int64
	earlier.Store(int64(5 * time.Hour))
	published := stores.Open(t, store.Options{Dir: t.TempDir(), Logger: quiet, Indexes: ext.Indexes(), Now: func() time.Time { return time.Now().Add(-time.Duration(earlier.Load())) }})
	t.Cleanup(func() { published.Close() })
	reachable := httptest.NewUnstartedServer(nil)
	origin, err := server.New(server.Config{Store: published, BaseURL: "http://" + reachable.Listener.Addr().String(), OnLoopback: true, Logger: quiet, Formats: ext.Formats()})
	require.NoError(t, err)
	t.Cleanup(func() { origin.Close() })
	reachable.Config.Handler = origin
	reachable.Start()
	t.Cleanup(reachable.Close)
	importMap(t, origin, "egov", maps.EGov)
	earlier.Store(0)

	db := openStore(t)
	now := proven
	c, err := client.New(client.Config{Formats: ext.Formats(), Protocols: ext.Protocols(), Store: db, Logger: quiet, Tries: 1,
		Now: func() time.Time { return now }})
	require.NoError(t, err)
	_, err = c.Subscribe(t.Context(), origin.BaseURL+"/topicmaps/egov", client.SubscribeOptions{})
	require.NoError(t, err)
	_, err = c.Sync(t.Context(), "egov")
	require.NoError(t, err)
	now = begin.Add(-20 * time.Minute)
	reachable.Close()
	_, err = c.Sync(t.Context(), "egov")
	require.Error(t, err)

	held := &extension.Holding{DB: db, Execute: clientcmd.Executing(ext.All)}
	watching, err := client.New(client.Config{Formats: ext.Formats(), Protocols: ext.Protocols(), Store: db, Logger: quiet})
	require.NoError(t, err)
	w, err := watch.New(watching, watch.Options{Store: db, Interval: time.Hour})
	require.NoError(t, err)
	held.Watcher.Store(w)
	watcher := httptest.NewServer(w.Handler(extension.Held(ext.All(), held)...))
	t.Cleanup(watcher.Close)
	node := startNode(t, held)
	command := func(args ...string) string {
		var out bytes.Buffer
		code := held.Execute(t.Context(), &control.Request{Program: "tmshare-client", Args: args, Env: map[string]string{}, Stdin: strings.NewReader(""), Stdout: &out, Stderr: io.Discard}, held)
		require.Zero(t, code, "%s", out.String())
		return out.String()
	}

	said := map[string]time.Duration{}
	seconds := func(view string, lag *float64) {
		require.NotNil(t, lag, view)
		said[view] = time.Duration(*lag * float64(time.Second))
	}
	list := func(view, text string) {
		var all []status.Status
		require.NoError(t, json.Unmarshal([]byte(text), &all), view)
		require.Len(t, all, 1)
		assert.Equal(t, status.RoundFailed, all[0].State, view)
		assert.Equal(t, proven.UTC().Truncate(time.Millisecond), all[0].InStep.UTC().Truncate(time.Millisecond), view)
		assert.Equal(t, all[0].Proven.UTC(), all[0].InStep.UTC(), view)
		seconds(view, all[0].Lag)
	}
	whole := func(view, text string) {
		var n status.Node
		require.NoError(t, json.Unmarshal([]byte(text), &n), view)
		follows, err := json.Marshal(n.Follows)
		require.NoError(t, err)
		list(view, string(follows))
	}
	words := func(view, text, pattern string) {
		assert.Contains(t, text, string(status.RoundFailed), view)
		found := regexp.MustCompile(pattern).FindStringSubmatch(text)
		require.NotNil(t, found, "%s: %s", view, text)
		lag, err := time.ParseDuration(strings.NewReplacer(" ", "", "min", "m").Replace(found[1]))
		require.NoError(t, err, view)
		said[view] = lag
	}
	page := func(url string) string {
		answer, err := http.Get(url)
		require.NoError(t, err)
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		return webpage.Read(t, url, answer.Header, body).Text
	}
	list("status --json", command("status", "--json"))
	words("status", command("status"), `egov +last round failed +(\S+)`)
	words("status --verbose", command("status", "--verbose"), `lag +(\S+) at most`)
	whole("status --node --json", command("status", "--node", "--json"))
	for _, base := range []string{watcher.URL, node} {
		whole(base+"/node.json", string(fetched(t, base+"/node.json")))
		words(base+"/node.html", page(base+"/node.html"), `((?:\d+ ?(?:h|min|m|s) ?)+) at most`)
		words(base+"/node/egov.html", page(base+"/node/egov.html"), `Lag\s*((?:\d+ ?(?:h|min|m|s) ?)+) at most`)
	}
	list("/status.json", string(fetched(t, watcher.URL+"/status.json")))
	found := regexp.MustCompile(`(?m)^tmshare_\w*lag\w*\{[^}]*"egov"[^}]*\} (\S+)`).FindSubmatch(fetched(t, watcher.URL+"/metrics"))
	require.NotNil(t, found)
	lag, err := strconv.ParseFloat(string(found[1]), 64)
	require.NoError(t, err)
	seconds("/metrics", &lag)

	took := time.Since(begin)
	for view, lag := range said { // texts have whole seconds
		assert.LessOrEqual(t, lag, time.Hour+took+time.Second, view)
		assert.GreaterOrEqual(t, lag, time.Hour-time.Second, view)
	}
	assert.Len(t, said, 12)
}

// fetched returns the document at an address, as for programs.
func fetched(t *testing.T, url string) []byte {
	answer, err := http.Get(url)
	require.NoError(t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, answer.StatusCode, url)
	return body
}
