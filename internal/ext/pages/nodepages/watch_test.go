package nodepages_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/client/watch"
	"github.com/tmshare/tmshare/internal/ext/pages/nodepages"
	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/docs"
	publisher "github.com/tmshare/tmshare/internal/testkit/node"
	"github.com/tmshare/tmshare/internal/testkit/stores"
)

// A watcher shows the state of its subscriptions on pages, and in JSON on request. Faults are shown, as text only. On
// the server of a node, topics in quarantine are tried again from there.
func TestPagesOfAWatcher(t *testing.T) {
	t.Parallel()
	o := publisher.Publishing(t, docs.Map(docs.Topics(2, "v1")...))
	db := stores.Open(t, store.Options{Dir: t.TempDir(), Logger: publisher.Silent})
	t.Cleanup(func() { assert.NoError(t, db.Close()) })
	c, err := client.New(client.Config{Store: db, Logger: publisher.Silent})
	require.NoError(t, err)
	_, err = c.Subscribe(t.Context(), o.URL+"/topicmaps/egov", client.SubscribeOptions{Name: "egov"})
	require.NoError(t, err)
	w, err := watch.New(c, watch.Options{Store: db, Interval: time.Hour})
	require.NoError(t, err)
	ctx, end := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(func() { end(); assert.NoError(t, <-done) })
	held := &extension.Holding{DB: db}
	require.Nil(t, nodepages.Part(held), "nobody watches")
	held.Watcher.Store(w)
	get := func(h http.Handler, path, accept string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Header.Set("Accept", accept)
		a := httptest.NewRecorder()
		h.ServeHTTP(a, r)
		return a
	}
	h := w.Handler(nodepages.Part(held))
	rounds := func(n int64) func() bool {
		return func() bool { seen := w.Watched("egov"); return seen != nil && seen.Rounds == n && !seen.Running }
	}
	testenv.Eventually(t, rounds(1), "loaded")
	const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
	for accept, json := range map[string]bool{"": false, browser: false, "application/json": true, "application/json;q=0.5, text/html": false, "*/*": false} {
		want := "text/html; charset=utf-8"
		if json {
			want = "application/json"
		}
		assert.Equal(t, want, get(h, "/status", accept).Header().Get("Content-Type"), "Accept: %s", accept)
	}
	page := get(h, "/status", browser).Body.String()
	assert.Contains(t, page, `<a href="/node/egov.html"><bdi>egov</bdi></a></td>`)
	assert.Contains(t, page, "in step")
	assert.NotContains(t, page, "Last error")
	assert.Contains(t, get(h, "/node.json", "").Body.String(), `"name": "egov"`)

	o.BreakWith(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) bool {
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, "<script>alert(1)</script>")
		return true
	})
	w.StartRound()
	testenv.Eventually(t, rounds(2), "failed")
	page = get(h, "/status", browser).Body.String()
	assert.Contains(t, page, "last round failed")
	assert.Contains(t, page, "&lt;script&gt;alert(1)")
	assert.NotContains(t, page, "<script>")

	onServer := nodepages.OnServer(held, "", "", func(*http.Request) string { return "code" }, publisher.Silent)
	send := func(path, form string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(form))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		a := httptest.NewRecorder()
		onServer.ServeHTTP(a, r)
		return a
	}
	failed := send("/node/egov.html", "all=yes&do=retry")
	assert.Equal(t, http.StatusConflict, failed.Code)
	assert.Contains(t, failed.Body.String(), "404", "the fault")
	o.BreakWith(nil)
	assert.Equal(t, http.StatusSeeOther, send("/node/egov.html", "all=yes&do=retry").Code)
	assert.Equal(t, http.StatusSeeOther, send("/node/egov.html", "all=yes&do=forget").Code)
	assert.Equal(t, http.StatusNotFound, send("/node/nope.html", "all=yes&do=retry").Code)
}
