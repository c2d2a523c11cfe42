package partitions_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/admin"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/ext"
	"github.com/tmshare/tmshare/internal/ext/partitions"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/served"
	"github.com/tmshare/tmshare/internal/testkit/stores"
)

// site is a server in front of two partitions, under one address.
type site struct {
	t      *testing.T
	URL    string
	front  atomic.Pointer[served.Node]
	dir    string
	places map[string]*place
}

// place is a partition whose server can be taken away.
type place struct {
	*served.Node
	socket *httptest.Server
	away   atomic.Bool
	hangs  atomic.Pointer[chan struct{}] // requests wait until it is closed
	other  atomic.Pointer[http.Handler]  // answers in its place
}

const reader = "a-reader-of-the-hidden-map"

func newSite(t *testing.T) *site {
	s := &site{t: t, dir: t.TempDir(), places: map[string]*place{}}
	public := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.front.Load().ServeHTTP(w, r)
	}))
	t.Cleanup(public.Close)
	s.URL = public.URL
	for _, name := range []string{"a", "b"} {
		p := &place{}
		p.Node = served.Start(t, s.configure, func(c *server.Config) {
			c.ReadTokens = map[string][]string{"hidden": {reader}}
		})
		inner := &httputil.ReverseProxy{FlushInterval: -1, Transport: &http.Transport{DisableCompression: true}, Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "http", p.Address, r.In.Host
		}, ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }}
		p.socket = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if hangs := p.hangs.Load(); hangs != nil {
				select {
				case <-*hangs:
				case <-r.Context().Done():
				}
			}
			if p.away.Load() {
				panic(http.ErrAbortHandler)
			}
			if other := p.other.Load(); other != nil {
				(*other).ServeHTTP(w, r)
				return
			}
			inner.ServeHTTP(w, r)
		}))
		p.socket.Config.ErrorLog = nil
		t.Cleanup(func() { p.socket.CloseClientConnections(); p.socket.Close() })
		s.places[name] = p
	}
	s.start()
	t.Cleanup(public.CloseClientConnections)
	return s
}

func (s *site) configure(c *server.Config) {
	c.BaseURL, c.Tokens, c.MaxWaiting = s.URL, []string{served.Token}, 10
}

// start starts the server in front, anew if it runs.
func (s *site) start() {
	if before := s.front.Load(); before != nil {
		before.Stop()
	}
	s.front.Store(served.StartOn(s.t, store.Options{Dir: s.dir}, s.configure, func(c *server.Config) {
		c.Parts = append(ext.Parts(), func(front *server.Server) (*server.Part, error) {
			return partitions.Serve(front, map[string]string{"a": s.places["a"].socket.URL, "b": s.places["b"].socket.URL})
		})
	}))
}

// leave takes a partition away, or brings it back.
func (s *site) leave(name string, away bool) {
	s.places[name].away.Store(away)
	s.places[name].socket.CloseClientConnections()
}

func (s *site) do(method, path, body string, headers ...string) served.Answer {
	return s.front.Load().Do(method, s.URL+path, strings.NewReader(body), headers...)
}

func (s *site) get(path string, headers ...string) served.Answer {
	return s.front.Load().Get(s.URL+path, headers...)
}

var writer = []string{"Authorization", "Bearer " + served.Token}

// overview returns the conditions of the collections in the overview, by name.
func (s *site) overview() map[string]string {
	a := s.get("/topicmaps")
	if a.StatusCode != http.StatusOK {
		return nil
	}
	feed, err := feeds.Decode(strings.NewReader(string(a.Bytes)), s.URL+"/topicmaps", feeds.Limits{})
	require.NoError(s.t, err)
	all := map[string]string{}
	for i := range feed.Entries {
		l, _ := feed.Entries[i].Link("alternate")
		all[strings.TrimPrefix(l.Href, s.URL+"/topicmaps/")] = feed.Entries[i].Condition
	}
	return all
}

func (s *site) shows(want map[string]string) {
	s.t.Helper()
	testenv.Eventually(s.t, func() bool { return assert.ObjectsAreEqual(want, s.overview()) }, want)
}

// All collections are under one address, wherever they are. One server that is away takes its own along, and no others;
// what it had stays in the overview, also after the server in front has been started again.
func TestCollectionsAreInSeveralStores(t *testing.T) {
	s := newSite(t)
	s.front.Load().Publish("here", served.Small())
	s.places["a"].Publish("one", served.Small())
	s.places["b"].Publish("two", served.Small())
	s.shows(map[string]string{"here": "", "one": "", "two": ""})

	f := s.follower()
	for _, name := range []string{"here", "one", "two"} {
		_, err := f.Subscribe(t.Context(), s.URL+"/topicmaps/"+name, client.SubscribeOptions{Name: name})
		require.NoError(t, err)
		require.NoError(t, f.round(name))
		published := s.do("PUT", "/topicmaps/"+name, string(served.Small("Oslo", "Christiania")), append(writer, "Content-Type", served.XTM1Type)...)
		require.Equal(t, http.StatusOK, published.StatusCode, "%s", published.Bytes)
		require.NoError(t, f.round(name))
	}

	s.leave("b", true)
	s.shows(map[string]string{"here": "", "one": "", "two": "not reachable"})
	gone := s.get("/topicmaps/two/fragments", "Accept", "application/json")
	assert.Equal(t, http.StatusServiceUnavailable, gone.StatusCode)
	assert.Contains(t, string(gone.Bytes), "partition b does not answer")
	assert.NotEmpty(t, gone.Header.Get("Retry-After"))
	require.Error(t, f.round("two"))
	for _, name := range []string{"here", "one"} {
		require.NoError(t, f.round(name))
		assert.Equal(t, http.StatusOK, s.get("/topicmaps/"+name+"/fragments").StatusCode)
	}
	assert.Equal(t, http.StatusServiceUnavailable, s.get("/topicmaps/unknown").StatusCode, "b may have it")
	create := func() int {
		return s.do("PUT", "/topicmaps/unknown", "{}", append(writer, "Content-Type", "application/json")...).StatusCode
	}
	assert.Equal(t, http.StatusServiceUnavailable, create())

	s.start()
	s.shows(map[string]string{"here": "", "one": "", "two": "not reachable"})
	assert.Contains(t, string(s.get("/topicmaps.html").Bytes), "partition b does not answer")

	s.leave("b", false)
	s.shows(map[string]string{"here": "", "one": "", "two": ""})
	require.NoError(t, f.round("two"))
	assert.Equal(t, http.StatusNotFound, s.get("/topicmaps/unknown").StatusCode)
	assert.Equal(t, http.StatusCreated, create())
	s.shows(map[string]string{"here": "", "one": "", "two": "", "unknown": ""})
}

// A server that hangs holds up nobody who asks for other collections. Once it is known to hang, its own are refused at
// once; and when it goes on, they are there.
func TestAPartitionThatHangs(t *testing.T) {
	testenv.OnlyWithAll(t, "a partition hangs for a minute")
	s := newSite(t)
	s.places["a"].Publish("one", served.Small())
	s.places["b"].Publish("two", served.Small())
	s.shows(map[string]string{"one": "", "two": ""})
	hangs := make(chan struct{})
	s.places["b"].hangs.Store(&hangs)
	s.places["b"].socket.CloseClientConnections()
	assert.Equal(t, http.StatusOK, s.get("/topicmaps/one/fragments").StatusCode)
	assert.Equal(t, http.StatusServiceUnavailable, s.get("/topicmaps/unknown").StatusCode)
	s.shows(map[string]string{"one": "", "two": "not reachable"})
	assert.Equal(t, http.StatusServiceUnavailable, s.get("/topicmaps/two").StatusCode)
	s.places["b"].hangs.Store(nil)
	close(hangs)
	s.shows(map[string]string{"one": "", "two": ""})
	assert.Equal(t, http.StatusOK, s.get("/topicmaps/two").StatusCode)
}

// A request for the overview that waits is answered when a partition changes.
func TestTheOverviewWaitsForPartitions(t *testing.T) {
	s := newSite(t)
	s.places["a"].Publish("one", served.Small())
	s.shows(map[string]string{"one": ""})
	tag := s.get("/topicmaps").Header.Get("ETag")
	answer := make(chan served.Answer, 1)
	go func() { answer <- s.get("/topicmaps", "If-None-Match", tag, "Prefer", "wait=60") }()
	testenv.Eventually(t, func() bool {
		return strings.Contains(string(s.get("/metrics", writer...).Bytes), "tmshare_http_requests_waiting 1")
	})
	s.places["b"].Publish("two", served.Small())
	a := <-answer
	assert.Equal(t, http.StatusOK, a.StatusCode)
	assert.Empty(t, a.Header.Get("Last-Modified"), "the last change is that of another server")
	assert.Equal(t, http.StatusOK, s.get("/topicmaps", "If-Modified-Since", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)).StatusCode)
}

// Answers of a partition are passed on as they are: conditions, ranges, codings, tokens, what a request asks to be
// repeated, moves.
func TestAnswersArePassedOnAsTheyAre(t *testing.T) {
	s := newSite(t)
	s.places["a"].Publish("one", served.Small())
	s.places["b"].Publish("hidden", served.Small())
	s.shows(map[string]string{"one": ""})
	for _, path := range []string{"", "/fragments", "/snapshots", "/snapshots/current", "/digest", "/records", "/topics/none"} {
		for _, headers := range [][]string{nil, {"Accept-Encoding", "gzip"}, {"Range", "bytes=10-20"}, {"Accept", "text/html"}} {
			direct := s.places["a"].Get("http://"+s.places["a"].Address+"/topicmaps/one"+path, headers...)
			passed := s.get("/topicmaps/one"+path, headers...)
			assert.Equal(t, direct.StatusCode, passed.StatusCode, path)
			if direct.StatusCode < 400 {
				assert.Equal(t, direct.Bytes, passed.Bytes, path)
			}
			for _, name := range []string{"Date", "X-Request-Id", "Tmshare-Checked"} {
				direct.Header.Del(name)
				passed.Header.Del(name)
			}
			if direct.StatusCode < 400 {
				assert.Equal(t, direct.Header, passed.Header, path)
			}
		}
	}
	tag := s.get("/topicmaps/one/fragments").Header.Get("ETag")
	assert.Equal(t, http.StatusNotModified, s.get("/topicmaps/one/fragments", "If-None-Match", tag).StatusCode)
	asked := s.get("/topicmaps/one/fragments?" + feeds.AskedParameter + "=12345")
	assert.Equal(t, "12345", asked.Header.Get(feeds.AskedHeader))

	assert.Equal(t, http.StatusUnauthorized, s.get("/topicmaps/hidden").StatusCode)
	assert.Equal(t, http.StatusOK, s.get("/topicmaps/hidden", "Authorization", "Bearer "+reader).StatusCode)
	assert.Equal(t, http.StatusUnauthorized, s.do("PUT", "/topicmaps/one", string(served.Small())).StatusCode)

	renamed := s.do("POST", "/topicmaps/one/rename", `{"to": "other"}`, append(writer, "Content-Type", "application/json")...)
	require.Equal(t, http.StatusOK, renamed.StatusCode, "%s", renamed.Bytes)
	former := s.get("/topicmaps/one/fragments")
	assert.Equal(t, http.StatusPermanentRedirect, former.StatusCode)
	assert.Equal(t, s.URL+"/topicmaps/other/fragments", former.Header.Get("Location"))
	assert.Equal(t, http.StatusOK, s.get("/topicmaps/other/fragments").StatusCode)
	s.shows(map[string]string{"other": ""})
}

// A server with another base URL is no partition: its links would lead elsewhere.
func TestAPartitionHasTheSameBaseURL(t *testing.T) {
	other := served.Start(t)
	front := served.Start(t, func(c *server.Config) {
		c.Parts = append(ext.Parts(), func(front *server.Server) (*server.Part, error) {
			return partitions.Serve(front, map[string]string{"other": other.BaseURL})
		})
	})
	testenv.Eventually(t, func() bool { return strings.Contains(front.Logs.String(), "its --base-url is another one") })
	assert.Equal(t, http.StatusServiceUnavailable, front.Get(front.BaseURL+"/topicmaps").StatusCode)
	for _, wrong := range []string{"ftp://x", "10.0.0.2:8080", "http://", "http://x/?q", front.BaseURL} {
		_, err := partitions.Serve(front.Server, map[string]string{"p": wrong})
		assert.Error(t, err, wrong)
	}
}

// Another server answers at the address of a partition: nothing is passed on to it. It would take changes that are lost
// then, and followers would take its answers for those of the partition.
func TestAnotherServerAnswersForAPartition(t *testing.T) {
	s := newSite(t)
	s.places["b"].Publish("m", served.Small())
	s.shows(map[string]string{"m": ""})
	before := s.get("/topicmaps/m/fragments").Bytes
	another := served.Start(t, func(c *server.Config) { c.Tokens = []string{served.Token} })
	another.Publish("m", served.Small("Oslo", "Another Oslo"))
	change := string(served.Small("Oslo", "Christiania"))
	answers := func(status int, body string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		})
	}
	for name, other := range map[string]http.Handler{
		"pages":       answers(http.StatusOK, "<!doctype html><title>Welcome</title>"),
		"none":        answers(http.StatusNotFound, "none"),
		"no overview": answers(http.StatusNoContent, ""), "another base URL": another.Server,
	} {
		s.places["b"].other.Store(&other)
		s.leave("b", false)
		s.shows(map[string]string{"m": "not reachable"})
		for range 2 {
			for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodPost, http.MethodDelete} {
				for _, path := range []string{"/topicmaps/m", "/topicmaps/unknown"} {
					a := s.do(method, path, change, append(writer, "Content-Type", served.XTM1Type)...)
					assert.Equal(t, http.StatusServiceUnavailable, a.StatusCode, "%s: %s %s", name, method, path)
				}
			}
			s.start()
			s.shows(map[string]string{"m": "not reachable"})
		}
		s.places["b"].other.Store(nil)
		s.leave("b", false)
		s.shows(map[string]string{"m": ""})
		assert.Equal(t, before, s.get("/topicmaps/m/fragments").Bytes)
	}
}

// A name that one partition has had is answered by the one that has it now. If a collection was moved, and the server
// that got it has it no more, followers are not told that it was deleted, and no other one gets its name.
func TestAFormerNameAtAPartition(t *testing.T) {
	s := newSite(t)
	at := func(name, method, path string) {
		a := s.places[name].Do(method, "http://"+s.places[name].Address+"/topicmaps/"+path, nil, writer...)
		require.Less(t, a.StatusCode, 300, "%s", a.Bytes)
	}
	get := func(path string) int { return s.get("/topicmaps/"+path, "Authorization", "Bearer "+reader).StatusCode }
	s.places["a"].Publish("hidden", served.Small())
	at("a", http.MethodDelete, "hidden")
	testenv.Eventually(t, func() bool { return get("hidden") == http.StatusGone })
	s.places["b"].Publish("hidden", served.Small())
	assert.Equal(t, http.StatusOK, get("hidden"), "the one with the collection answers")

	s.places["a"].Publish("m", served.Small())
	s.shows(map[string]string{"m": ""})
	var ends [2]*admin.Client
	for i, name := range []string{"a", "b"} {
		var err error
		ends[i], err = admin.New(s.places[name].socket.URL, served.Token)
		require.NoError(t, err)
	}
	_, err := admin.Move(t.Context(), ends[0], ends[1], "m")
	require.NoError(t, err)
	at("b", http.MethodDelete, "m")
	testenv.Eventually(t, func() bool { return get("m") == http.StatusGone })
	at("b", http.MethodDelete, "m/former")
	testenv.Eventually(t, func() bool { return get("m") == http.StatusServiceUnavailable })
	a := s.do(http.MethodPut, "/topicmaps/m", "{}", append(writer, "Content-Type", "application/json")...)
	assert.Equal(t, http.StatusServiceUnavailable, a.StatusCode)
	assert.Contains(t, string(a.Bytes), "was moved from the partition a")
	at("a", http.MethodDelete, "m/former")
	assert.Equal(t, http.StatusNotFound, get("m"))
}

// follower is a client with a store.
type follower struct{ *client.Client }

func (s *site) follower() *follower {
	silent := slog.New(slog.DiscardHandler)
	db := stores.Open(s.t, store.Options{Dir: s.t.TempDir(), Indexes: ext.Indexes(), Logger: silent})
	s.t.Cleanup(func() { require.NoError(s.t, db.Close()) })
	c, err := client.New(client.Config{Store: db, Protocols: ext.Protocols(), Logger: silent, Tries: 1})
	require.NoError(s.t, err)
	return &follower{c}
}

// round brings a subscription in step, and proves that it is.
func (f *follower) round(name string) error {
	r, err := f.Sync(context.Background(), name)
	if err == nil && !r.Proven {
		err = errors.New(r.Unproven)
	}
	return err
}

// A collection that two servers have, as one of them was restored from a backup, is neither read nor written at the
// front: a follower would go back to the earlier state, and a change would go into it. It is right again when one of
// them has it no more.
func TestACollectionAtTwoServers(t *testing.T) {
	s := newSite(t)
	s.places["b"].Publish("m", served.Small("Oslo", "Oslo now"))
	s.shows(map[string]string{"m": ""})
	require.Equal(t, http.StatusOK, s.get("/topicmaps/m").StatusCode)
	before := s.get("/topicmaps/m/fragments").Bytes
	s.places["a"].Publish("m", served.Small("Oslo", "Oslo later"))
	for range 20 { // the first one stays meanwhile
		require.Equal(t, before, s.get("/topicmaps/m/fragments").Bytes)
	}
	s.shows(map[string]string{"m": "at two servers"})
	assert.Contains(t, s.front.Load().Logs.String(), "a collection is at two servers")
	s.places["b"].Publish("other", served.Small())
	testenv.Eventually(t, func() bool { return s.get("/topicmaps/other").StatusCode == http.StatusOK })
	for range 2 {
		for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodPost, http.MethodDelete} {
			a := s.do(method, "/topicmaps/m", "", writer...)
			assert.Equal(t, http.StatusServiceUnavailable, a.StatusCode, method)
			if method != http.MethodGet {
				assert.Contains(t, string(a.Bytes), "both have a collection m")
			}
		}
		assert.Equal(t, http.StatusOK, s.get("/topicmaps/other").StatusCode)
		s.leave("a", true)
		assert.Equal(t, http.StatusServiceUnavailable, s.get("/topicmaps/m").StatusCode)
		s.leave("a", false)
		s.start() // it is known again at once
		testenv.Eventually(t, func() bool { return len(s.overview()) == 2 })
	}
	require.Equal(t, http.StatusOK, s.places["a"].Do(http.MethodDelete, "http://"+s.places["a"].Address+"/topicmaps/m", nil, writer...).StatusCode)
	s.shows(map[string]string{"m": "", "other": ""})
	assert.Equal(t, before, s.get("/topicmaps/m/fragments").Bytes)

	s.front.Load().Publish("other", served.Small())
	testenv.Eventually(t, func() bool {
		return strings.Contains(string(s.get("/topicmaps/other").Bytes), "this server and the partition b both have")
	})
}

// interrupted returns a client of a partition for which a step of a move is interrupted before it is done.
func (s *site) interrupted(name, method, path string) *admin.Client {
	fault := &end{Node: s.places[name].Node}
	fault.interrupt(method, path, false)
	socket := httptest.NewServer(fault)
	s.t.Cleanup(socket.Close)
	client, err := admin.New(socket.URL, served.Token)
	require.NoError(s.t, err)
	return client
}

// While a collection moves, another one of the same name is made at another server. Followers do not get that.
func TestAnotherCollectionAppearsDuringAMove(t *testing.T) {
	s := newSite(t)
	s.places["a"].Publish("m", served.Small())
	s.shows(map[string]string{"m": ""})
	from, err := admin.New(s.places["a"].socket.URL, served.Token)
	require.NoError(t, err)
	to := s.interrupted("b", http.MethodPut, "/move/rows")
	_, err = admin.Move(t.Context(), from, to, "m")
	require.Error(t, err)
	s.shows(map[string]string{"m": "being moved"})
	s.places["b"].Publish("m", served.Small("Oslo", "Another Oslo"))
	s.shows(map[string]string{"m": "at two servers"})
	a := s.do(http.MethodPut, "/topicmaps/m", string(served.Small()), append(writer, "Content-Type", served.XTM1Type)...)
	assert.Equal(t, http.StatusServiceUnavailable, a.StatusCode, "%s", a.Bytes)
	b := "http://" + s.places["b"].Address + "/topicmaps/m"
	require.Equal(t, http.StatusOK, s.places["b"].Do(http.MethodDelete, b, nil, writer...).StatusCode)
	s.shows(map[string]string{"m": "being moved"})
	assert.Equal(t, http.StatusOK, s.get("/topicmaps/m/fragments").StatusCode)
}

// A collection moves from a partition to the server in front, and back: a move is between the servers that it names, so
// the front passes none of its steps on.
func TestACollectionMovesToTheFront(t *testing.T) {
	s := newSite(t)
	s.places["b"].Publish("m", served.Small())
	s.shows(map[string]string{"m": ""})
	want := s.get("/topicmaps/m/fragments").Bytes
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.front.Load().ServeHTTP(w, r) }))
	defer front.Close()
	ends := []string{s.places["b"].socket.URL, front.URL}
	for i := range 4 {
		var at [2]*admin.Client
		for j := range at {
			var err error
			at[j], err = admin.New(ends[(i+j)%2], served.Token)
			require.NoError(t, err)
		}
		moved, err := admin.Move(t.Context(), at[0], at[1], "m")
		require.NoError(t, err)
		require.Equal(t, ends[(i+1)%2], moved.To)
		testenv.Eventually(t, func() bool { return assert.ObjectsAreEqual(want, s.get("/topicmaps/m/fragments").Bytes) })
		listed, err := s.front.Load().Store.Collections(t.Context())
		require.NoError(t, err)
		require.Len(t, listed, (i+1)%2)
	}
}
