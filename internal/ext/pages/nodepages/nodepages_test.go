package nodepages_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/ext/pages/nodepages"
	"github.com/tmshare/tmshare/internal/kv/badger"
	"github.com/tmshare/tmshare/internal/store"
	_ "github.com/tmshare/tmshare/internal/testenv" // takes -long
	"github.com/tmshare/tmshare/internal/testkit/webpage"
	"github.com/tmshare/tmshare/merge"
)

// node is a node on disk, whose pages are served on a socket.
type node struct {
	*testing.T
	*store.DB
	url  string
	now  time.Time
	site *nodepages.Site
}

func start(t *testing.T, actions nodepages.Actions) *node {
	n := &node{T: t, now: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)}
	now := func() time.Time { return n.now }
	var err error
	n.DB, err = store.Open(t.Context(), store.Options{Dir: t.TempDir(), Badger: badger.Small, Now: now})
	require.NoError(t, err)
	t.Cleanup(func() { n.Close() })
	n.site = &nodepages.Site{
		Source: &nodepages.Stored{DB: n.DB, Now: now}, Actions: actions, Token: func(*http.Request) string { return "secret" },
		Logger: slog.New(slog.DiscardHandler), Now: now,
	}
	routes := http.NewServeMux()
	n.site.Add(routes)
	s := httptest.NewServer(routes)
	t.Cleanup(s.Close)
	n.url = s.URL
	return n
}

func (n *node) get(path string) (*http.Response, []byte) {
	n.Helper()
	a, err := http.Get(n.url + path)
	require.NoError(n, err)
	defer a.Body.Close()
	body, err := io.ReadAll(a.Body)
	require.NoError(n, err)
	return a, body
}

func (n *node) page(path string) webpage.Page {
	n.Helper()
	a, body := n.get(path)
	require.Equal(n, http.StatusOK, a.StatusCode, "%s: %s", path, body)
	assert.Equal(n, "no-store", a.Header.Get("Cache-Control"))
	german := path + "?ui=de"
	if strings.Contains(path, "?") {
		german = path + "&ui=de"
	}
	_, inGerman := n.get(german)
	assert.Contains(n, string(inGerman), `<html lang="de">`)
	assert.Empty(n, webpage.EnglishInGerman(n, inGerman), german)
	return webpage.Read(n, n.url+path, a.Header, body)
}

// follow adds a subscription that is loaded, and changes it.
func (n *node) follow(name string, change func(*store.Subscription)) {
	n.Helper()
	require.NoError(n, n.AddSubscription(n.Context(), store.Subscription{Name: name, FragmentsFeed: "http://origin.example.org/" + name + "/fragments", SP: "http://origin.example.org/"}))
	require.NoError(n, n.StageSource(n.Context(), name, fragment.Records(&merge.Memory{}), store.Mark{Updated: n.now.Add(-time.Hour)}, nil))
	s, err := n.Subscription(n.Context(), name)
	require.NoError(n, err)
	require.NoError(n, n.SwitchSource(n.Context(), name, s.Staging.Generation, "the history was lost"))
	n.round(name, change)
}

// round ends a round.
func (n *node) round(name string, change func(*store.Subscription)) {
	n.Helper()
	require.NoError(n, n.UpdateSubscription(n.Context(), name, func(s *store.Subscription) {
		s.LastCheck, s.LastError = n.now, ""
		change(s)
	}))
}

func (n *node) quarantine(name string, all ...store.Quarantined) {
	n.Helper()
	require.NoError(n, n.ApplyEntries(n.Context(), name, func(a *store.Applying) error {
		for _, q := range all {
			if err := a.Quarantine(q); err != nil {
				return err
			}
		}
		return nil
	}))
}

func proven(at time.Time) func(*store.Subscription) {
	return func(s *store.Subscription) { s.State.Proof = &store.Proof{At: at, Equal: true} }
}

func failing(why string) func(*store.Subscription) {
	return func(s *store.Subscription) { s.LastError, s.LastErrorAt = why, s.LastCheck }
}

// Each state of a subscription shows on the page of the node and on its own, with what to do about it.
func TestStates(t *testing.T) {
	n := start(t, nil)
	require.NoError(t, n.AddSubscription(t.Context(), store.Subscription{Name: "new", FragmentsFeed: "http://origin.example.org/new"}))
	n.follow("good", proven(n.now))
	n.follow("unproven", func(s *store.Subscription) { s.State.Proof = &store.Proof{At: n.now, Reason: "the digests differ"} })
	n.follow("behind", failing("the server does not answer. Try again later"))
	n.follow("gone", failing("http://origin.example.org/gone?token=secret-of-a-reader: 410 Gone: subscribe to another address"))
	n.follow("forked", failing((&client.CheckpointError{Name: "forked", Err: fmt.Errorf("two states are signed")}).Error()))
	n.follow("ill", func(*store.Subscription) {})
	n.quarantine("ill", store.Quarantined{TopicSI: "http://x/t", Title: "A topic", Error: "no XTM: line 3", Document: "http://origin.example.org/ill/fragments?key=hidden", Updated: n.now.Add(-30 * time.Minute)})
	n.round("ill", func(*store.Subscription) {})

	states := n.page("/node.html")
	assert.NotContains(t, states.Text, "secret-of-a-reader")
	for name, says := range map[string][]string{
		"new":      {"not loaded yet", "tmshare-client sync new"},
		"good":     {"in step", "states the same digest"},
		"unproven": {"the digests differ", "Not proven"},
		"behind":   {"last round failed", "60 min at most", "Try again later"},
		"gone":     {"http://origin.example.org/gone?…", "410 Gone: subscribe to another address"},
		"forked":   {"rewritten or forked", "two states are signed", `tmshare-client trust forked --accept`},
		"ill":      {"in step, but for what is in quarantine", "1 change could not be applied", "30 min at most"},
	} {
		page := n.url + nodepages.SubscriptionPath(name)
		assert.Contains(t, states.Links, page)
		own := n.page(strings.TrimPrefix(page, n.url))
		assert.Equal(t, name, own.Title)
		assert.Contains(t, states.Text, says[0], name)
		for _, part := range says {
			assert.Contains(t, own.Text, part, name)
		}
		assert.NotContains(t, own.Text, "secret-of-a-reader")
		assert.Empty(t, own.Forms, "no person may act here")
	}
	text := states.Text[strings.Index(states.Text, "Last check"):]
	last := 0
	for _, name := range []string{"forked", "behind", "gone", "ill", "unproven", "new", "good"} {
		at := strings.Index(text[last:], name)
		require.GreaterOrEqual(t, at, 0, "%s is not in its place: the worst first", name)
		last += at
	}
	own := n.page("/node/ill.html")
	for _, part := range []string{"A topic", "http://x/t", "no XTM: line 3", "in 1 round", "tmshare-client retry ill http://x/t", "fragments?…", "the history was lost"} {
		assert.Contains(t, own.Text, part)
	}
	assert.NotContains(t, own.Text, "hidden")
	a, body := n.get("/node/nope.html")
	assert.Equal(t, http.StatusNotFound, a.StatusCode)
	assert.Contains(t, webpage.Read(t, n.url, a.Header, body).Text, "The page of the node lists all.")
	a, body = n.get("/node.json")
	assert.Equal(t, "application/json", a.Header.Get("Content-Type"))
	assert.NotContains(t, string(body), "history")
}

// The page of a published collection shows how it is made, and the obstacles.
func TestPublished(t *testing.T) {
	n := start(t, nil)
	n.follow("other", func(*store.Subscription) {})
	for _, c := range []store.Collection{{Name: "egov", SP: "http://egov/"}, {Name: "all", SP: "http://all/", DerivedFrom: []string{"egov", "other"}}} {
		_, err := n.CreateCollection(t.Context(), c, &merge.Memory{}, nil)
		require.NoError(t, err)
	}
	p := n.page("/node.html")
	for _, part := range []string{"Written here", "Derived from egov, other", "Being filled"} {
		assert.Contains(t, p.Text, part)
	}
	require.NoError(t, n.DeleteCollection(t.Context(), "egov", ""))
	assert.Contains(t, n.page("/node.html").Text, "tmshare-server derive all --from other")
	n.site.Maps = true
	assert.Contains(t, n.page("/node.html").Links, n.url+"/topicmaps/all.html")
}

func TestPlotsOfADay(t *testing.T) {
	n := start(t, nil)
	n.follow("egov", proven(n.now))
	p := n.page("/node/egov.html")
	assert.Contains(t, p.Text, "Lag: how old the copy was at most")
	for range 300 {
		n.now = n.now.Add(5 * time.Minute)
		n.round("egov", func(s *store.Subscription) {
			s.State.Applied += 2
			if n.now.Hour() > 4 {
				s.State.Proof = &store.Proof{At: n.now, Equal: true}
			}
		})
	}
	_, body := n.get("/node/egov.html")
	assert.Equal(t, 3, strings.Count(string(body), "<svg"))
	assert.Less(t, len(body), 100<<10)
	text := n.page("/node/egov.html").Text
	assert.Contains(t, text, "greatest 24", "entries per hour")
	n.now = n.now.Add(3 * time.Hour)
	assert.Contains(t, n.page("/node.html").Text, "3 h at most")
	n.now = n.now.Add(48 * time.Hour)
	assert.Contains(t, n.page("/node/egov.html").Text, "no figures yet", "of the last day")
}

func TestHostileTexts(t *testing.T) {
	n := start(t, &acting{})
	const markup = `</title><script>alert(1)</script><img src=x onerror=alert(1)>"'`
	n.follow("egov", failing(markup+strings.Repeat("long ", 300_000)))
	var all []store.Quarantined
	for i := range 300 {
		all = append(all, store.Quarantined{TopicSI: fmt.Sprint("javascript:alert(", i, ")"), Title: markup + "\u202e", Error: markup, Document: "javascript:alert(1)", Updated: n.now})
	}
	n.quarantine("egov", all...)
	_, body := n.get("/node/egov.html")
	assert.Less(t, len(body), 400<<10)
	p := n.page("/node/egov.html")
	assert.Contains(t, p.Text, "<script>alert(1)", "as text")
	assert.Contains(t, p.Text, "And 200 more")
	n.page("/node.html")
}

// acting remembers the actions that it was asked for.
type acting struct {
	asked []string
	err   error
}

func (a *acting) Retry(_ context.Context, name string, topics ...string) error {
	a.asked = append(a.asked, fmt.Sprint("retry ", name, topics))
	return a.err
}

func (a *acting) Forget(_ context.Context, name string, topics ...string) error {
	a.asked = append(a.asked, fmt.Sprint("forget ", name, topics))
	return a.err
}

func TestButtons(t *testing.T) {
	did := &acting{}
	n := start(t, did)
	n.follow("egov", func(*store.Subscription) {})
	n.quarantine("egov", store.Quarantined{TopicSI: "http://x/ü t", Error: "bad", Updated: n.now})
	p := n.page("/node/egov.html")
	require.Len(t, p.Forms, 2)
	form := p.Forms[1]
	assert.Equal(t, http.MethodPost, form.Method)
	assert.Equal(t, "secret", form.Fields.Get("code"))
	assert.Equal(t, []string{"retry", "forget"}, form.Fields["do"])
	for _, do := range form.Fields["do"] {
		a, err := http.PostForm(form.Action, url.Values{"topic": form.Fields["topic"], "do": {do}})
		require.NoError(t, err)
		a.Body.Close()
		assert.Equal(t, http.StatusOK, a.StatusCode)
		assert.Equal(t, "/node/egov.html?done="+do, a.Request.URL.RequestURI())
	}
	_, err := http.PostForm(p.Forms[0].Action, url.Values{"all": {"yes"}, "do": {"retry"}})
	require.NoError(t, err)
	assert.Equal(t, []string{"retry egov[http://x/ü t]", "forget egov[http://x/ü t]", "retry egov[]"}, did.asked)
	for _, bad := range []url.Values{{}, {"do": {"retry"}}, {"do": {"explode"}, "all": {"yes"}}, {"topic": {""}, "do": {"forget"}}} {
		a, err := http.PostForm(p.Forms[0].Action, bad)
		require.NoError(t, err)
		a.Body.Close()
		assert.Equal(t, http.StatusBadRequest, a.StatusCode, bad)
	}
	did.err = &nodepages.Problem{Status: http.StatusConflict, Text: "it cannot be"}
	a, err := http.PostForm(p.Forms[0].Action, url.Values{"all": {"yes"}, "do": {"retry"}})
	require.NoError(t, err)
	body, err := io.ReadAll(a.Body)
	require.NoError(t, err)
	assert.Equal(t, http.StatusConflict, a.StatusCode)
	assert.Contains(t, webpage.Read(t, n.url, a.Header, body).Text, "It cannot be")
	assert.Len(t, did.asked, 4)
}
