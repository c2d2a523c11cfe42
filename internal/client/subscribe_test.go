package client_test

import (
	"bytes"
	"context"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/client/status"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/store"
)

// From each address that a server gives, the same feeds are found.
func TestSubscribeFindsTheFeedsFromAnyAddress(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(6, "v1")...), documentSize(4))
	archive := prevArchive(t, o.Get("/topicmaps/egov/fragments"))
	for name, ref := range map[string]string{
		"overview with one collection": "/topicmaps",
		"topic map feed":               "/topicmaps/egov",
		"fragments feed":               "/topicmaps/egov/fragments",
		"snapshots feed":               "/topicmaps/egov/snapshots",
		"archive document":             archive,
		"open archive document":        archive[:len(archive)-1] + "2",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSubscriber(t)
			sub, err := s.Subscribe(context.Background(), o.URL+ref, client.SubscribeOptions{Name: "x"})
			require.NoError(t, err)
			assert.Equal(t, o.FeedURL("egov"), sub.FragmentsFeed)
			assert.Equal(t, o.URL+"/topicmaps/egov/snapshots", sub.SnapshotsFeed)
			assert.Equal(t, o.SP("egov"), sub.SP)
			assert.NotEmpty(t, sub.FeedID)
		})
	}
}

func TestSubscribeToAFeedWithoutEntries(t *testing.T) {
	t.Parallel()
	t.Run("they are all in the archive", func(t *testing.T) {
		t.Parallel()
		o := publishing(t, doc(topics(4, "v1")...), documentSize(2))
		entries := regexp.MustCompile(`(?s)<entry .*</entry>`)
		require.Regexp(t, entries, o.Get("/topicmaps/egov/fragments"))
		o.BreakWith(rewriting(isRecent, func(body string) string { return entries.ReplaceAllString(body, "") }))
		s := newSubscriber(t)
		_, err := s.Subscribe(context.Background(), o.FeedURL("egov"), client.SubscribeOptions{})
		require.NoError(t, err)
		o.BreakWith(nil)
		s.sync()
		s.has(o, doc(topics(4, "v1")...))
	})
	t.Run("the collection is empty", func(t *testing.T) {
		t.Parallel()
		o := publishing(t, doc())
		require.NotContains(t, o.Get("/topicmaps/egov/fragments"), "<entry")
		s := newSubscriber(t)
		_, err := s.Subscribe(context.Background(), o.FeedURL("egov"), client.SubscribeOptions{})
		require.NoError(t, err)
		s.sync()
		o.Put(doc(topics(2, "v1")...))
		s.sync()
		s.has(o, doc(topics(2, "v1")...))
	})
}

func TestSubscribeListsTheCollectionsOfAnOverview(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc())
	o.Create("libraries", doc())
	_, err := newSubscriber(t).Subscribe(context.Background(), o.URL+"/topicmaps", client.SubscribeOptions{})
	var choice *follow.ChoiceError
	require.ErrorAs(t, err, &choice)
	assert.Equal(t, []follow.Offer{
		{Title: "egov", URL: o.URL + "/topicmaps/egov"},
		{Title: "libraries", URL: o.URL + "/topicmaps/libraries"},
	}, choice.Collections)
	assert.ErrorContains(t, err, o.URL+"/topicmaps/libraries")
}

func TestSubscribeTakesTheNameFromTheURL(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc())
	sub, err := newSubscriber(t).Subscribe(context.Background(), o.FeedURL("egov"), client.SubscribeOptions{})
	require.NoError(t, err)
	assert.Equal(t, "egov", sub.Name)
}

// A second subscription to a source is refused, unless it is forced or has other options.
func TestSubscribeRefusesATakenNameAndASourceThatIsFollowed(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc())
	s := subscribed(t, o)
	already := o.FeedURL("egov") + ` is subscribed to already, as "egov": use that, or "unsubscribe egov" first; --again follows it twice`
	for _, c := range []struct {
		options client.SubscribeOptions
		fails   string
	}{
		{client.SubscribeOptions{}, already},
		{client.SubscribeOptions{Name: "other"}, already},
		{client.SubscribeOptions{Again: true}, `there is a subscription "egov" already; choose another name with --as`},
		{client.SubscribeOptions{Name: "twice", Again: true}, ""},
		{client.SubscribeOptions{Name: "format", Asked: store.Asked{Format: "xtm1.0"}}, ""},
		{client.SubscribeOptions{Name: "protocol", Protocol: "atom-pmh"}, ""},
	} {
		_, err := s.Subscribe(context.Background(), o.FeedURL("egov"), c.options)
		if c.fails == "" {
			assert.NoError(t, err, "%+v", c.options)
		} else {
			assert.EqualError(t, err, c.fails, "%+v", c.options)
		}
	}
}

// A document that is no feed of a collection is refused with the reason, and without a subscription.
func TestSubscribeRefusesWhatIsNoCollection(t *testing.T) {
	t.Parallel()
	answer := func(status int, contentType, body string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	feed := func(extra, entries string) string {
		return answer(200, "application/atom+xml", `<feed xmlns="http://www.w3.org/2005/Atom" xmlns:t="http://www.egovpt.org/tmshare">
			<id>urn:x</id><title>x</title><updated>2024-01-01T00:00:00Z</updated>`+extra+entries+`</feed>`)
	}
	entry := `<entry><id>urn:e</id><title>e</title><updated>2024-01-01T00:00:00Z</updated><t:TopicSI>http://x.example/1</t:TopicSI></entry>`
	for name, c := range map[string]struct{ ref, says string }{
		"HTML page":                  {answer(200, "text/html", "<!DOCTYPE html><html><body>Hello<br></body></html>"), `cannot be read as an Atom feed (Content-Type "text/html")`},
		"HTML page, by its content":  {answer(200, "", "<!DOCTYPE html><html><body>Hello<br></body></html>"), "this looks like an HTML page, not an Atom feed"},
		"XHTML page":                 {answer(200, "text/html", "<html xmlns='http://www.w3.org/1999/xhtml'/>"), "this looks like an HTML page, not an Atom feed"},
		"JSON":                       {answer(200, "application/json", `{"a": 1}`), `cannot be read as an Atom feed (Content-Type "application/json")`},
		"nothing":                    {answer(200, "application/atom+xml", ""), "cannot be read as an Atom feed"},
		"not found":                  {answer(404, "text/plain", "nope"), "the server answered 404 Not Found"},
		"server error":               {answer(500, "text/plain", "nope"), "the server answered 500 Internal Server Error"},
		"refused connection":         {"http://127.0.0.1:1/topicmaps", "connection refused"},
		"not a URL":                  {"localhost:8080/topicmaps", "is not an http or https URL"},
		"relative":                   {"/topicmaps", "is not an http or https URL"},
		"another scheme":             {"ftp://example.org/", "is not an http or https URL"},
		"prefix without / or #":      {feed("<t:ServerSrcLocatorPrefix>http://example.org</t:ServerSrcLocatorPrefix>", entry), `"/" or "#"`},
		"relative prefix":            {feed("<t:ServerSrcLocatorPrefix>maps/</t:ServerSrcLocatorPrefix>", entry), "feed/ServerSrcLocatorPrefix"},
		"feed of something else":     {feed("", ""), "there is nothing to subscribe to"},
		"overview without any":       {newOrigin(t).URL + "/topicmaps", "there is nothing to subscribe to"},
		"collection not there":       {newOrigin(t).URL + "/topicmaps/nope", `collection "nope"`},
		"address outside the server": {newOrigin(t).URL + "/nowhere", "the overview is at"},
		"server without any":         {newOrigin(t).URL, "there is nothing to subscribe to"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSubscriber(t)
			_, err := s.Subscribe(context.Background(), c.ref, client.SubscribeOptions{})
			assert.ErrorContains(t, err, c.says)
			all, err := s.db.Subscriptions(s.t.Context())
			assert.NoError(t, err)
			assert.Empty(t, all)
		})
	}
}

func TestSubscribeEndsWhenFeedsLeadInACircle(t *testing.T) {
	t.Parallel()
	var self *httptest.Server
	self = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		other := map[string]string{"/a": "/b", "/b": "/a"}[r.URL.Path]
		_, _ = w.Write([]byte(`<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:x</id><title>x</title><updated>2024-01-01T00:00:00Z</updated>
			<entry><id>urn:e</id><title>e</title><updated>2024-01-01T00:00:00Z</updated><link rel="topicmapfeed" href="` + self.URL + other + `"/></entry></feed>`))
	}))
	defer self.Close()
	_, err := newSubscriber(t).Subscribe(context.Background(), self.URL+"/a", client.SubscribeOptions{})
	assert.ErrorContains(t, err, "the feeds lead in a circle")
}

func TestRedirectsAreFollowedToAllowedHostsOnly(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(1, "v1")...))
	asked := 0
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		http.Redirect(w, r, o.FeedURL("egov"), http.StatusFound)
	}))
	defer elsewhere.Close()

	_, err := newSubscriber(t).Subscribe(context.Background(), elsewhere.URL, client.SubscribeOptions{})
	host := o.URL[len("http://"):]
	assert.ErrorContains(t, err, "leads away")
	assert.ErrorContains(t, err, "allow it with --host "+host)
	assert.Empty(t, o.Seen(), "the other host was asked")
	assert.Equal(t, 1, asked, "another try cannot mend it")

	allowed := newSubscriber(t, func(c *client.Config) { c.Hosts = []string{host} })
	sub, err := allowed.Subscribe(context.Background(), elsewhere.URL, client.SubscribeOptions{Name: "egov"})
	require.NoError(t, err)
	assert.Equal(t, o.FeedURL("egov"), sub.FragmentsFeed)
	allowed.sync()
	allowed.has(o, doc(topics(1, "v1")...))
}

// A server that redirects to another host for good is not followed there by itself: the error names the command that does.
func TestSourcesThatMoveSaySo(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(1, "v1")...))
	o.CreateWithPrefix("moving", "http://maps.example.org/moving/", doc(topics(1, "v1")...))
	var status atomic.Int64 // of a redirect; 0: none
	var before *httptest.Server
	before = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if status.Load() != 0 {
			http.Redirect(w, r, o.URL+r.URL.Path, int(status.Load()))
			return
		}
		r.Header.Del("Accept-Encoding")
		answer := httptest.NewRecorder()
		o.ServeHTTP(answer, r)
		for _, name := range []string{"Content-Type", "TMShare-Checked", "TMShare-Asked"} {
			w.Header().Set(name, answer.Header().Get(name))
		}
		_, _ = w.Write(bytes.ReplaceAll(answer.Body.Bytes(), []byte(o.URL), []byte(before.URL)))
	}))
	defer before.Close()
	s := newSubscriber(t)
	_, err := s.Subscribe(t.Context(), before.URL+"/topicmaps/moving", client.SubscribeOptions{Name: "egov"})
	require.NoError(t, err)
	for _, code := range []int64{http.StatusMovedPermanently, http.StatusPermanentRedirect} {
		status.Store(code)
		_, err = s.Sync(t.Context(), "egov")
		assert.ErrorContains(t, err, `"tmshare-client source set-url egov `+o.FeedURL("moving")+`"`)
	}
	status.Store(http.StatusFound)
	_, err = s.Sync(t.Context(), "egov")
	assert.ErrorContains(t, err, "leads away")
	assert.NotContains(t, err.Error(), "set-url", "it may come back")

	// With the setting it is followed, but not to another history, and no token is shown to another host.
	status.Store(http.StatusPermanentRedirect)
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("a-token-for-reading"), 0o600))
	accept := func(accepts bool, tokenFile string) {
		require.NoError(t, s.db.UpdateSubscription(t.Context(), "egov", func(sub *store.Subscription) {
			sub.AcceptMoves, sub.TokenFile = accepts, tokenFile
		}))
	}
	accept(true, token)
	_, err = s.Sync(t.Context(), "egov")
	assert.ErrorContains(t, err, "source set-url")
	accept(true, "")
	o.PutAs("moving", doc(topics(1, "v2")...))
	s.sync()
	sub, err := s.Subscription(t.Context(), "egov")
	require.NoError(t, err)
	assert.Equal(t, o.FeedURL("moving"), sub.FragmentsFeed)
	s.hasAs("egov", "http://maps.example.org/moving/", doc(topics(1, "v2")...))

	// What is in quarantine stays there when the source moves, and is taken from the new address.
	status.Store(0)
	o.BreakWith(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		broken := strings.Contains(r.URL.Path, "/fragments/")
		if broken {
			http.NotFound(w, r)
		}
		return broken
	})
	o.PutAs("moving", doc(topics(1, "v3")...))
	_, was := s.syncPasses(1)
	_, err = s.SetURL(t.Context(), "egov", []string{before.URL + "/topicmaps/moving/fragments"}, false)
	require.NoError(t, err)
	kept, err := s.db.Quarantine(t.Context(), "egov")
	require.NoError(t, err)
	require.Len(t, kept, 1)
	assert.Equal(t, was[0].Tries, kept[0].Tries)
	assert.Equal(t, before.URL+strings.TrimPrefix(was[0].Link, o.URL), kept[0].Link)
	o.BreakWith(nil)
	s.syncPasses(0)
	s.hasAs("egov", "http://maps.example.org/moving/", doc(topics(1, "v3")...))
}

// A redirect for good from HTTP to HTTPS of the same host is followed where that is accepted, with a token, too.
func TestSourcesThatMoveToHTTPS(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(1, "v1")...))
	var plain, secure *httptest.Server
	var moved atomic.Bool
	serve := func(own **httptest.Server) http.HandlerFunc { // links of the origin are those of the server
		return func(w http.ResponseWriter, r *http.Request) {
			if *own == plain && moved.Load() {
				http.Redirect(w, r, secure.URL+r.URL.Path, http.StatusPermanentRedirect)
				return
			}
			r.Header.Del("Accept-Encoding")
			answer := httptest.NewRecorder()
			o.ServeHTTP(answer, r)
			w.Header().Set("Content-Type", answer.Header().Get("Content-Type"))
			w.WriteHeader(answer.Code)
			_, _ = w.Write(bytes.ReplaceAll(answer.Body.Bytes(), []byte(o.URL), []byte((*own).URL)))
		}
	}
	o.CreateWithPrefix("moving", "http://maps.example.org/moving/", doc(topics(1, "v1")...))
	plain, secure = httptest.NewServer(serve(&plain)), httptest.NewTLSServer(serve(&secure))
	defer plain.Close()
	defer secure.Close()
	dir := t.TempDir()
	token, authority := filepath.Join(dir, "token"), filepath.Join(dir, "ca.pem")
	require.NoError(t, os.WriteFile(token, []byte("a-token-for-reading"), 0o600))
	require.NoError(t, os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}), 0o600))

	s := newSubscriber(t)
	_, err := s.Subscribe(t.Context(), plain.URL+"/topicmaps/moving", client.SubscribeOptions{Name: "egov", Asked: store.Asked{TokenFile: token, CACert: authority}})
	require.NoError(t, err)
	s.sync()
	moved.Store(true)
	_, err = s.Sync(t.Context(), "egov")
	assert.ErrorContains(t, err, "; the source says that it has moved for good")
	failed, unknown := s.Subscription(t.Context(), "egov")
	require.NoError(t, unknown)
	assert.Equal(t, err.Error(), failed.LastError, "status says what sync says")
	st := status.Describe(failed, nil, time.Now())
	assert.Equal(t, `"tmshare-client source set-url egov `+secure.URL+`/topicmaps/moving/fragments"`, st.Moves)
	_, err = s.Set(t.Context(), "egov", nil, func(s *store.Subscription) { s.AcceptMoves = true })
	require.NoError(t, err)
	o.PutAs("moving", doc(topics(1, "v2")...))
	s.sync()
	sub, err := s.Subscription(t.Context(), "egov")
	require.NoError(t, err)
	assert.Equal(t, secure.URL+"/topicmaps/moving/fragments", sub.FragmentsFeed)
	s.hasAs("egov", "http://maps.example.org/moving/", doc(topics(1, "v2")...))
}

// Another address of the same server is taken over, without a word.
func TestSourcesThatMoveOnTheirHost(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(1, "v1")...))
	s := newSubscriber(t)
	_, err := s.Subscribe(t.Context(), o.FeedURL("egov"), client.SubscribeOptions{Name: "egov"})
	require.NoError(t, err)
	s.sync()
	require.Equal(t, http.StatusOK, o.Ask(http.MethodPost, "/topicmaps/egov/rename", "application/json", `{"to": "services"}`).Code)
	r, err := s.Sync(t.Context(), "egov")
	require.NoError(t, err)
	assert.Equal(t, o.FeedURL("services"), r.Moved)
	assert.True(t, r.Proven)
	sub, err := s.Subscription(t.Context(), "egov")
	require.NoError(t, err)
	assert.Equal(t, o.FeedURL("services"), sub.FragmentsFeed)
	require.Equal(t, http.StatusOK, o.Ask(http.MethodDelete, "/topicmaps/egov/former", "", "").Code)
	r, err = s.Sync(t.Context(), "egov")
	require.NoError(t, err)
	assert.Empty(t, r.Moved)
	var noted []string
	require.NoError(t, s.db.Activity(t.Context(), func(a store.Activity) bool {
		if a.Kind == "moved" {
			noted = append(noted, a.Note)
		}
		return true
	}))
	assert.Equal(t, []string{o.FeedURL("services")}, noted)
}

func TestLinksAreFollowedToAllowedHostsOnly(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(1, "v1")...))
	other := httptest.NewServer(http.HandlerFunc(o.ServeHTTP)) // its links lead to o
	defer other.Close()

	_, err := newSubscriber(t).Subscribe(context.Background(), other.URL+"/topicmaps", client.SubscribeOptions{})
	assert.ErrorContains(t, err, "allow it with --host "+o.URL[len("http://"):])

	allowed := newSubscriber(t, func(c *client.Config) { c.Hosts = []string{"127.0.0.1"} })
	_, err = allowed.Subscribe(context.Background(), other.URL+"/topicmaps", client.SubscribeOptions{})
	assert.NoError(t, err)
}

// prevArchive returns the path of the archive document that a feed links to.
func prevArchive(t *testing.T, feed string) string {
	t.Helper()
	path := attribute(feed, `rel="prev-archive"`, "href")
	require.NotEmpty(t, path)
	return path
}
