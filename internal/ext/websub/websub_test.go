package websub_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/ext/atompmh"
	"github.com/tmshare/tmshare/internal/ext/resourcesync"
	"github.com/tmshare/tmshare/internal/ext/websub"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/docs"
	"github.com/tmshare/tmshare/internal/testkit/node"
)

// moods are the faults of a hub of a test in place of accepting a ping.
type moods struct {
	mu     sync.Mutex
	tries  int
	answer func(w http.ResponseWriter, r *http.Request) bool // reports whether it has answered; it may be nil
}

// answered counts a request, and reports whether it is answered.
func (m *moods) answered(w http.ResponseWriter, r *http.Request) bool {
	m.mu.Lock()
	m.tries++
	answer := m.answer
	m.mu.Unlock()
	return answer != nil && answer(w, r)
}

func (m *moods) answering(f func(w http.ResponseWriter, r *http.Request) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.answer = f
}

func (m *moods) tried() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.tries
}

// testHub is a hub that keeps the pings.
type testHub struct {
	*httptest.Server
	moods
	requests []url.Values
}

func newHub(t *testing.T) *testHub {
	h := &testHub{}
	h.Server = httptest.NewServer(h)
	t.Cleanup(h.Close)
	return h
}

func (h *testHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	form, err := url.ParseQuery(string(body))
	if h.answered(w, r) {
		return
	}
	if err != nil || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/x-www-form-urlencoded" || !isOurs(r) {
		http.Error(w, "what is this?", http.StatusBadRequest)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.requests = append(h.requests, form)
	w.WriteHeader(http.StatusNoContent)
}

// isOurs reports whether a request comes from a server, not from a client, by its header.
func isOurs(r *http.Request) bool {
	return r.Header.Get("User-Agent") == "tmshare-server (+https://github.com/tmshare/tmshare)"
}

// topics returns the number of pings for each topic.
func (h *testHub) topics() map[string]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := map[string]int{}
	for _, form := range h.requests {
		all[form.Get("hub.url")]++
	}
	return all
}

// telling runs a publisher for the collections of a server until the end of the test, or until stop is called.
func telling(t *testing.T, o *node.Origin, change func(*websub.Publisher), hubs ...*testHub) (p *websub.Publisher, log *testenv.Log, stop func()) {
	log = &testenv.Log{}
	config := websub.Publisher{
		Store: o.DB, Every: 5 * time.Millisecond, Backoff: 5 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(log, nil)),
		Topics: func(c *store.Collection) []string { return []string{o.FeedURL(c.Name)} },
	}
	for _, h := range hubs {
		config.Hubs = append(config.Hubs, h.URL)
	}
	if change != nil {
		change(&config)
	}
	p = websub.New(config)
	return p, log, running(t, p.Run)
}

// running runs what ends with a context, until the end of the test, or until stop is called.
func running(t *testing.T, run func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); run(ctx) }()
	stop = func() {
		cancel()
		select {
		case <-ended:
		case <-time.After(5 * time.Second):
			t.Error("it does not end")
		}
	}
	t.Cleanup(stop)
	return stop
}

// pings returns a counter.
func pings(t *testing.T, p *websub.Publisher, h *testHub, result string) string {
	t.Helper()
	return fmt.Sprint(counterOf(t, p.Collector(), h.URL, result))
}

// counterOf returns the counter of a hub and a result.
func counterOf(t *testing.T, c prometheus.Collector, hub, result string) int {
	t.Helper()
	r := prometheus.NewRegistry()
	r.MustRegister(c)
	families, err := r.Gather()
	require.NoError(t, err)
	for _, m := range families[0].GetMetric() {
		if m.GetLabel()[0].GetValue() == hub && m.GetLabel()[1].GetValue() == result {
			return int(m.GetCounter().GetValue())
		}
	}
	t.Errorf("there is no counter of %s and %s", hub, result)
	return 0
}

// version returns a map of four topics; three are other than in the version before.
func version(n int) string { return docs.Map(docs.Topics(3, fmt.Sprint("v", n))...) }

// A hub gets a ping for each topic at the start, and for those that change. A burst of commits is few pings.
func TestHubsAreToldOfChanges(t *testing.T) {
	t.Parallel()
	o := node.Publishing(t, version(0))
	o.Create("other", version(0))
	h := newHub(t)
	p, _, _ := telling(t, o, func(p *websub.Publisher) { p.Every = 300 * time.Millisecond }, h)
	egov, other := o.FeedURL("egov"), o.FeedURL("other")
	testenv.Eventually(t, func() bool { all := h.topics(); return all[egov] == 1 && all[other] == 1 }, "the start")
	const commits = 20
	began := time.Now()
	for n := range commits {
		o.Put(version(n + 1))
	}
	looks := int(time.Since(began)/(300*time.Millisecond)) + 2
	testenv.Eventually(t, func() bool { return h.topics()[egov] > 1 }, "a change")
	time.Sleep(400 * time.Millisecond)
	assert.LessOrEqual(t, h.topics()[egov], 1+looks, "a burst is one ping each time")
	assert.Less(t, h.topics()[egov], commits/2)
	assert.Equal(t, 1, h.topics()[other], "it has not changed")
	for _, form := range h.requests {
		assert.Equal(t, url.Values{"hub.mode": {"publish"}, "hub.url": {form.Get("hub.url")}, "hub.topic": {form.Get("hub.url")}}, form)
	}
	assert.Equal(t, fmt.Sprint(h.tried()), pings(t, p, h, "sent"))
	assert.Equal(t, "0", pings(t, p, h, "failed"))
}

// A hub that fails for a while is asked again; nothing else waits for that.
func TestHubsThatFailForAWhile(t *testing.T) {
	t.Parallel()
	o := node.Publishing(t, version(0))
	h := newHub(t)
	h.answering(func(w http.ResponseWriter, _ *http.Request) bool {
		if h.tried() > 3 {
			return false
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	})
	p, _, _ := telling(t, o, nil, h)
	testenv.Eventually(t, func() bool { return pings(t, p, h, "sent") == "1" }, "the fourth try")
	assert.Equal(t, 4, h.tried())
	assert.Equal(t, "0", pings(t, p, h, "failed"))
}

// A hub that fails is given up after five tries, for all topics, until the next change.
func TestHubsThatFail(t *testing.T) {
	t.Parallel()
	o := node.Publishing(t, version(0))
	o.Create("other", version(0))
	h := newHub(t)
	h.answering(func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusBadGateway)
		return true
	})
	p, log, _ := telling(t, o, nil, h)
	testenv.Eventually(t, func() bool { return pings(t, p, h, "failed") == "2" }, "the end of the tries")
	time.Sleep(50 * time.Millisecond)
	assert.Equal(t, 5, h.tried())
	assert.Contains(t, log.String(), "Check that the hub runs, that --hub is its address")
	assert.Contains(t, log.String(), "502")
	h.answering(nil)
	o.Put(version(1))
	testenv.Eventually(t, func() bool { return h.topics()[o.FeedURL("egov")] == 1 }, "the next change")
}

// A hub that refuses a topic is not asked again for it, but gets pings for the others.
func TestHubsThatRefuseATopic(t *testing.T) {
	t.Parallel()
	o := node.Publishing(t, version(0))
	o.Create("other", version(0))
	h := newHub(t)
	h.answering(func(w http.ResponseWriter, _ *http.Request) bool {
		if h.tried() == 1 {
			http.Error(w, strings.Repeat("no ", 1<<20), http.StatusBadRequest)
			return true
		}
		return false
	})
	p, _, _ := telling(t, o, nil, h)
	testenv.Eventually(t, func() bool { return pings(t, p, h, "sent") == "1" && pings(t, p, h, "failed") == "1" }, "both")
	assert.Equal(t, 2, h.tried())
}

// Redirects are not followed, wherever they lead.
func TestHubsThatRedirect(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		o := node.Publishing(t, version(0))
		inside := newHub(t)
		h := newHub(t)
		for _, to := range []string{inside.URL + "/", h.URL + "/elsewhere", "file:///etc/passwd"} {
			h.answering(func(w http.ResponseWriter, r *http.Request) bool {
				http.Redirect(w, r, to, status)
				return true
			})
			before := h.tried()
			p, log, stop := telling(t, o, nil, h)
			testenv.Eventually(t, func() bool { return pings(t, p, h, "failed") == "1" }, to)
			stop()
			assert.Equal(t, before+1, h.tried(), "%d %s", status, to)
			assert.Contains(t, log.String(), "redirects to "+to)
		}
		assert.Zero(t, inside.tried())
	}
}

// A hub that does not answer delays neither the other hub nor commits, and the publisher ends at once.
func TestHubsThatDoNotAnswer(t *testing.T) {
	t.Parallel()
	o := node.Publishing(t, version(0))
	slow, quick := newHub(t), newHub(t)
	release := make(chan struct{})
	slow.answering(func(_ http.ResponseWriter, r *http.Request) bool {
		select {
		case <-release:
		case <-r.Context().Done():
		}
		return true
	})
	t.Cleanup(func() { close(release) })
	p, _, stop := telling(t, o, func(p *websub.Publisher) { p.Within = time.Hour }, slow, quick)
	testenv.Eventually(t, func() bool { return slow.tried() == 1 }, "the slow hub is asked")
	o.Put(version(1))
	testenv.Eventually(t, func() bool { return quick.topics()[o.FeedURL("egov")] == 2 }, "the other hub")
	stop()
	assert.Equal(t, "0", pings(t, p, slow, "failed"), "it was not the hub that failed")
	assert.Equal(t, 1, slow.tried())
}

// A server that was killed before it sent a ping sends it at the next start.
func TestHubsAreToldOfWhatChangedBefore(t *testing.T) {
	t.Parallel()
	o := node.Publishing(t, version(0))
	h := newHub(t)
	_, _, stop := telling(t, o, nil, h)
	testenv.Eventually(t, func() bool { return len(h.topics()) == 1 }, "the start")
	stop()
	before := h.topics()[o.FeedURL("egov")]
	o.Put(version(1))
	time.Sleep(20 * time.Millisecond)
	require.Equal(t, before, h.topics()[o.FeedURL("egov")], "nobody tells")
	telling(t, o, nil, h)
	testenv.Eventually(t, func() bool { return h.topics()[o.FeedURL("egov")] == before+1 }, "the next start")
}

// A request that takes too long is a failure.
func TestPingsHaveATime(t *testing.T) {
	t.Parallel()
	o := node.Publishing(t, version(0))
	h := newHub(t)
	h.answering(func(_ http.ResponseWriter, r *http.Request) bool {
		<-r.Context().Done()
		return true
	})
	p, log, _ := telling(t, o, func(p *websub.Publisher) { p.Within = 50 * time.Millisecond }, h)
	testenv.Eventually(t, func() bool { return pings(t, p, h, "failed") == "1" }, "the end of the tries")
	assert.Contains(t, log.String(), "within 50ms")
}

// A server names its hubs in the documents that these get pings for, and nowhere else; and none if only some may
// read.
func TestFeedsNameTheirHubs(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	var plain, closed *node.Origin
	withHub := func(c *server.Config) {
		c.Parts, c.DocumentSize = append(c.Parts, atompmh.Extension().Serve, resourcesync.Extension().Serve, func(s *server.Server) (*server.Part, error) { return websub.Serve(s, []string{h.URL}) }), 2
	}
	plain = node.Publishing(t, version(0), withHub)
	closed = node.Publishing(t, version(0), withHub, func(c *server.Config) { c.ReadTokens = map[string][]string{"egov": {"a token that is long"}} })
	for _, o := range []*node.Origin{plain, closed} {
		require.NoError(t, o.Server.Start())
	}
	for _, topic := range []string{plain.FeedURL("egov"), plain.RecordsURL("egov", "/records")} {
		a, err := http.Get(topic)
		require.NoError(t, err)
		feed, err := feeds.Decode(a.Body, topic, feeds.Limits{})
		a.Body.Close()
		require.NoError(t, err)
		link, ok := feed.Link("hub")
		assert.True(t, ok)
		assert.Equal(t, h.URL, strings.TrimSuffix(link.Href, "/"))
		self, _ := feed.Link("self")
		assert.Equal(t, topic, self.Href)
		header := strings.Join(a.Header.Values("Link"), ", ")
		assert.Contains(t, header, "<"+h.URL+`>; rel="hub"`)
		assert.Contains(t, header, "<"+topic+`>; rel="self"`)
		assert.Equal(t, 1, strings.Count(header, `rel="self"`))

		before, ok := feed.Link("prev-archive")
		require.True(t, ok)
		archive, err := http.Get(before.Href)
		require.NoError(t, err)
		b, err := io.ReadAll(archive.Body)
		archive.Body.Close()
		require.NoError(t, err)
		assert.NotContains(t, string(b), h.URL)
		assert.NotContains(t, strings.Join(archive.Header.Values("Link"), ""), h.URL)
		testenv.Eventually(t, func() bool { return h.topics()[topic] > 0 }, topic)
	}
	changes := plain.URL + "/topicmaps/egov/resourcesync/changelist.xml"
	list, err := http.Get(changes)
	require.NoError(t, err)
	list.Body.Close()
	require.Equal(t, http.StatusOK, list.StatusCode)
	assert.Equal(t, []string{"<" + h.URL + `>; rel="hub", <` + changes + `>; rel="self"`}, list.Header.Values("Link"), "on one line")
	testenv.Eventually(t, func() bool { return h.topics()[changes] > 0 }, changes)

	r, err := http.NewRequest(http.MethodGet, closed.FeedURL("egov"), nil)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer a token that is long")
	a, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, a.StatusCode)
	assert.NotContains(t, string(b), h.URL)
	assert.NotContains(t, strings.Join(a.Header.Values("Link"), ""), h.URL)

	was := plain.Server
	count := h.topics()[plain.FeedURL("egov")]
	plain.Put(version(1))
	testenv.Eventually(t, func() bool { return h.topics()[plain.FeedURL("egov")] > count }, "a change")
	was.Close()
	all := h.topics()
	assert.Len(t, all, 3, "there is no ping for the closed collection: %v", all)
}

func TestHubsThatAreRefused(t *testing.T) {
	t.Parallel()
	for _, hubs := range [][]string{
		{"hub.example.org"}, {"ftp://hub.example.org/"}, {"http://"}, {"https://user:secret@hub.example.org/"}, {"https://hub.example.org/#x"},
		{"https://hub.example.org/", "https://hub.example.org/"}, {"http://a/", "http://b/", "http://c/", "http://d/", "http://e/", "http://f/"},
	} {
		err := websub.Validate(hubs)
		if assert.Error(t, err, "%q", hubs) {
			assert.NotContains(t, err.Error(), "secret")
		}
	}
	assert.ErrorContains(t, websub.Validate([]string{"http://127.0.0.1:99999/"}), "port 99999")
	assert.ErrorContains(t, websub.Validate([]string{"http://127.0.0.1:8090/#a"}), "fragment (#a)")
	assert.NoError(t, websub.Validate([]string{"https://hub.example.org/", "http://127.0.0.1:8090/hub?x=y"}))
}
