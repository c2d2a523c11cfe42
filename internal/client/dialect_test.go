package client_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/faults"
)

// site serves documents by their paths, as they are.
type site struct {
	*httptest.Server
	faults.Front
	mu        sync.Mutex
	documents map[string]string
}

func newSite(t *testing.T) *site {
	s := &site{documents: map[string]string{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.Answer(w, r, http.HandlerFunc(s.show))
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *site) show(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	document, ok := s.documents[r.URL.RequestURI()]
	s.mu.Unlock()
	switch {
	case !ok:
		w.WriteHeader(http.StatusNotFound)
		return
	case strings.Contains(document, "<topicMap"):
		w.Header().Set("Content-Type", "application/x-tm+xml")
	default:
		w.Header().Set("Content-Type", "application/atom+xml")
	}
	_, _ = w.Write([]byte(document))
}

const feedHead = `<feed xmlns="http://www.w3.org/2005/Atom" xmlns:t="http://www.egovpt.org/tmshare" xmlns:sd="http://www.sdshare.org/2012/core/" xmlns:fh="http://purl.org/syndication/history/1.0">
<id>urn:feed</id><title>f</title><updated>2024-01-01T00:00:00Z</updated>`

const declared = `<t:ServerSrcLocatorPrefix>` + foreignSP + `</t:ServerSrcLocatorPrefix>`

func (s *site) feed(path, head string, entries ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.documents[path] = feedHead + head + strings.Join(entries, "\n") + `</feed>`
}

// entry returns the entry of the nth second, whose fragment names the topic.
func (s *site) entry(n int, names, id, name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	path := fmt.Sprintf("/data/%d", n)
	s.documents[path] = doc(topic(id, name))
	return fmt.Sprintf(`<entry><id>urn:e%d</id><title>e</title><updated>2024-01-01T00:00:%02dZ</updated><link rel="alternate" type="application/x-tm+xml;version=2.1" href="%s"/>%s</entry>`, n, n, path, names)
}

func (s *site) entryOf(n int, id, name string) string {
	return s.entry(n, "<t:TopicSI>"+si(id)+"</t:TopicSI>", id, name)
}

func following(t *testing.T, s *site) *subscriber {
	c := newSubscriber(t)
	_, err := c.Subscribe(context.Background(), s.URL+"/feed", client.SubscribeOptions{Name: "egov"})
	require.NoError(t, err)
	s.Seen()
	return c
}

// RFC 5005 §3: the pages of a paged feed together are the feed.
func TestPagedFeed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	e := make([]string, 8)
	for i := range e {
		e[i] = s.entryOf(i, fmt.Sprint("t", i), fmt.Sprintf("Topic %d v1", i))
	}
	next := func(path string) string { return declared + `<link rel="next" href="` + path + `"/>` }
	s.feed("/feed", next("/feed?page=2"), e[4], e[3])
	s.feed("/feed?page=2", next("/feed?page=3"), e[2], e[1])
	s.feed("/feed?page=3", declared, e[0])
	c := following(t, s)
	c.sync()
	c.hasForeign(topics(5, "v1")...)
	s.Seen()

	s.feed("/feed", next("/feed?page=2"), e[5], e[4])
	s.feed("/feed?page=2", next("/feed?page=3"), e[3], e[2])
	s.feed("/feed?page=3", declared, e[1], e[0])
	c.sync()
	assert.Equal(t, []string{"/feed", "/feed?page=2", "/feed?page=3", "/feed", "/data/5"}, s.Seen(), "no page that is more than a minute beyond the mark; the recent one once more")
	c.hasForeign(topics(6, "v1")...)

	// In ascending order, new entries are on the last page.
	s.feed("/feed", next("/feed?page=2"), e[0], e[1], e[2])
	s.feed("/feed?page=2", next("/feed?page=3"), e[3], e[4], e[5])
	s.feed("/feed?page=3", declared, e[6], e[7])
	c.sync()
	c.hasForeign(topics(8, "v1")...)
}

func TestPagesThatLeadInACircle(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	e := s.entryOf(1, "t1", "x")
	s.feed("/feed", declared+`<link rel="next" href="/feed?page=2"/>`, e)
	s.feed("/feed?page=2", declared+`<link rel="next" href="/feed"/>`)
	c := following(t, s)
	_, err := c.syncFails()
	assert.ErrorContains(t, err, "lead in a circle")
}

// RFC 5005 §2: a complete feed is one document, even with links to others.
func TestCompleteFeed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	e := []string{s.entryOf(0, "t0", "Topic 0 v1"), s.entryOf(1, "t1", "Topic 1 v1"), s.entryOf(2, "t0", "Topic 0 v2")}
	complete := declared + `<fh:complete/><link rel="next" href="/nowhere"/>`
	s.feed("/feed", complete, e[1], e[0])
	c := following(t, s)
	c.sync()
	c.hasForeign(topics(2, "v1")...)
	s.feed("/feed", complete, e[2], e[1])
	assert.False(t, c.sync().CleanStart)
	c.hasForeign(topics(2, "v1")[1], topics(1, "v2")[0])
}

// An entry may name its topic by several identifiers, of which the fragment has
// one, or by a subject locator alone.
func TestEntriesThatNameTheirTopicDifferently(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	several := "<t:TopicSI>" + si("elsewhere") + "</t:TopicSI><t:TopicSI>" + si("t0") + "</t:TopicSI>"
	resource := "<sd:resource>" + si("t1") + "</sd:resource>"
	first, second := s.entry(0, several, "t0", "Topic 0 v1"), s.entry(1, resource, "t1", "Topic 1 v1")
	s.feed("/feed", declared, second, first)
	c := following(t, s)
	c.sync()
	c.hasForeign(topics(2, "v1")...)

	located := s.entry(2, `<sl:TopicSL xmlns:sl="http://www.egovpt.org/sdshare">http://example.org/page</sl:TopicSL>`, "x", "x")
	page := func(name string) string {
		return `<topic id="t1"><subjectLocator href="http://example.org/page"/>` + name + `</topic>`
	}
	s.documents["/data/2"] = doc(page("<name><value>Page</value></name>"))
	s.feed("/feed", declared, located, second, first)
	c.syncPasses(0)
	tm, _, err := c.Merged(c.t.Context(), false, "egov")
	require.NoError(t, err)
	require.NotNil(t, tm.TopicBySubjectLocator("http://example.org/page"))
	s.feed("/feed", declared, strings.ReplaceAll(strings.Replace(located, "00:00:02", "00:00:03", 1), "/data/2", "/data/3"), located, second, first)
	s.documents["/data/3"] = doc(page(""))
	c.syncPasses(0)
	c.hasForeign(topics(2, "v1")...)
}

// A feed without a prefix gets one made of its URL, or the subscriber's; a prefix that it declares later would be
// another one.
func TestFeedWithoutAPrefix(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.feed("/feed", "", s.entryOf(0, "t0", "Topic 0 v1"))
	c := following(t, s)
	sub := c.known("egov")
	assert.Equal(t, s.URL+"/feed#", sub.SP)
	assert.True(t, sub.OwnSP)
	assert.Contains(t, c.reported(), "has no source locator prefix of its own; its statements will bear "+sub.SP)
	c.sync()
	c.hasAs("egov", sub.SP, doc(topics(1, "v1")...))

	other, err := newSubscriber(t).Subscribe(context.Background(), s.URL+"/feed", client.SubscribeOptions{SP: "urn:x-own:/"})
	require.NoError(t, err)
	assert.Equal(t, "urn:x-own:/", other.SP)
	_, err = newSubscriber(t).Subscribe(context.Background(), s.URL+"/feed", client.SubscribeOptions{SP: "urn:x-own"})
	assert.ErrorContains(t, err, `"/" or "#"`)

	s.feed("/feed", declared, s.entryOf(0, "t0", "Topic 0 v2"))
	_, err = c.syncFails()
	assert.ErrorAs(t, err, new(*client.PrefixError))
	_, err = newSubscriber(t).Subscribe(context.Background(), s.URL+"/feed", client.SubscribeOptions{SP: "urn:x-own:/"})
	assert.ErrorContains(t, err, "would never match")
}

// The token is sent to the subscribed server, and is read in each round.
func TestTokenForReading(t *testing.T) {
	t.Parallel()
	elsewhere, s := newSite(t), newSite(t)
	guarded := damage(func(r *http.Request) bool { return r.Header.Get("Authorization") != "Bearer secret" }, always, answering(http.StatusUnauthorized))
	s.BreakWith(guarded)
	elsewhere.BreakWith(guarded)
	e := s.entryOf(0, "t0", "Topic 0 v1")
	s.feed("/feed", declared, e)
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("secret\n"), 0o600))
	c := newSubscriber(t, func(c *client.Config) { c.Hosts = []string{elsewhere.Listener.Addr().String()} })
	_, err := c.Subscribe(context.Background(), s.URL+"/feed", client.SubscribeOptions{Name: "egov"})
	assert.ErrorContains(t, err, "401 Unauthorized")
	assert.ErrorContains(t, err, "--token-file FILE")
	_, err = c.Subscribe(context.Background(), s.URL+"/feed", client.SubscribeOptions{Name: "egov", Asked: store.Asked{TokenFile: file}})
	require.NoError(t, err)
	c.sync()
	c.hasForeign(topics(1, "v1")...)

	s.feed("/feed", declared, strings.Replace(s.entryOf(1, "t1", "x"), `href="/data`, `href="`+elsewhere.URL+`/data`, 1), e)
	_, bad := c.syncPasses(1)
	assert.Contains(t, bad[0].Error, "401", "another host does not get it")

	require.NoError(t, os.Remove(file))
	_, err = c.syncFails()
	assert.ErrorContains(t, err, "the file with tokens")
}

// A requested format is the fetched one.
func TestFormatThatIsAskedFor(t *testing.T) {
	t.Parallel()
	for format, ending := range map[string]string{"xtm1": ".xtm1", "xtm1.0": ".xtm1", "xtm2.1": ".xtm21"} {
		o := publishing(t, doc(topics(2, "v1")...))
		s := newSubscriber(t)
		s.mayDiffer = true // the digest includes what XTM 1.0 cannot express
		_, err := s.Subscribe(context.Background(), o.FeedURL("egov"), client.SubscribeOptions{Asked: store.Asked{Format: format}})
		require.NoError(t, err)
		s.sync()
		o.Put(doc(topics(2, "v2")...))
		o.Seen()
		s.sync()
		assert.Equal(t, 2, times(o.Seen(), ending), format)
		s.has(o, doc(topics(2, "v2")...))
	}
	_, err := newSubscriber(t).Subscribe(context.Background(), "http://example.org/", client.SubscribeOptions{Asked: store.Asked{Format: "ltm"}})
	assert.ErrorContains(t, err, `unknown format "ltm"`)
}

// Servers may use either content coding that the client can decode.
func TestContentCodings(t *testing.T) {
	t.Parallel()
	pack := map[string]func(string) []byte{
		"gzip": func(s string) []byte {
			var b bytes.Buffer
			z := gzip.NewWriter(&b)
			_, _ = z.Write([]byte(s))
			_ = z.Close()
			return b.Bytes()
		},
		"zstd": func(s string) []byte {
			z, _ := zstd.NewWriter(nil)
			return z.EncodeAll([]byte(s), nil)
		},
	}
	for coding := range pack {
		o := publishing(t, doc(topics(3, "v1")...))
		s := inStep(t, o)
		o.Put(doc(topics(3, "v2")...))
		damaged := false
		asked := map[string]bool{}
		o.BreakWith(func(w http.ResponseWriter, r *http.Request, real http.Handler) bool {
			asked[r.Header.Get("Accept-Encoding")] = true
			answer, body := record(real, r)
			if answer.Code != http.StatusOK {
				return false
			}
			packed := pack[coding](string(body))
			if isFragment(r) && !damaged {
				damaged = true
				packed = packed[:len(packed)-5]
			}
			w.Header().Set("Content-Type", answer.Header().Get("Content-Type"))
			w.Header().Set("Content-Encoding", coding)
			_, _ = w.Write(packed)
			return true
		})
		s.configure(func(c *client.Config) { c.Parallel = 1 })
		assert.Equal(t, 3, s.sync().Applied, coding)
		assert.True(t, damaged, "a damaged answer was tried again")
		assert.Equal(t, map[string]bool{"gzip, zstd;q=0.9": true}, asked)
		s.has(o, doc(topics(3, "v2")...))

		o.Put(doc(topics(3, "v3")...))
		o.BreakWith(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			w.Header().Set("Content-Encoding", "br")
			_, _ = w.Write([]byte("x"))
			return true
		})
		_, err := s.syncFails()
		assert.ErrorContains(t, err, `the content coding "br" is not known`)
	}
}

// Names and passwords in URLs would be in all lists and messages.
func TestCredentialsInTheURLAreRefused(t *testing.T) {
	t.Parallel()
	_, err := newSubscriber(t).Subscribe(context.Background(), "http://user:secret@127.0.0.1:1/feed", client.SubscribeOptions{})
	assert.ErrorContains(t, err, "--token-file")
	assert.NotContains(t, err.Error(), "secret")
}

func TestNamesOfSubscriptions(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.feed("/feed", declared, s.entryOf(0, "t0", "x"))
	for name, ok := range map[string]bool{"Tøm 1": true, "-x": false, "a\nb": false, "../x": false, strings.Repeat("x", 101): false} {
		_, err := newSubscriber(t).Subscribe(context.Background(), s.URL+"/feed", client.SubscribeOptions{Name: name})
		assert.Equal(t, ok, err == nil, "%q: %v", name, err)
	}
}

// XTM 1.0 cannot express everything: a subscription to it alone is compared with that form.
func TestVerifyOfAFormatThatWasAskedFor(t *testing.T) {
	t.Parallel()
	typed := `<topic><subjectIdentifier href="http://psi.example.org/a"/><name><type><subjectIdentifierRef href="http://psi.example.org/type"/></type><value>A</value></name></topic>`
	o := publishing(t, doc(typed))
	s := newSubscriber(t)
	s.mayDiffer = true // the digest includes what XTM 1.0 cannot express
	_, err := s.Subscribe(context.Background(), o.FeedURL("egov"), client.SubscribeOptions{Asked: store.Asked{Format: "xtm1.0"}})
	require.NoError(t, err)
	s.sync()
	assert.True(t, s.verify().Equal)
}

// Of large fragments, one at a time is read: many cannot fill the memory.
func TestLargeFragmentsAreReadOneAtATime(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	o := publishing(t, doc(topics(4, "v1")...))
	s := inStep(t, o)
	o.Put(doc(topics(4, "v2")...))
	var mu sync.Mutex
	now, most := 0, 0
	o.BreakWith(func(w http.ResponseWriter, r *http.Request, real http.Handler) bool {
		if !isFragment(r) {
			return false
		}
		_, body := record(real, r)
		begin, end, _ := bytes.Cut(body, []byte("</topicMap>"))
		_, _ = w.Write(begin)
		comment := []byte("<!--" + strings.Repeat(" ", 1<<20) + "-->")
		const megabytes, buffered = 40, 24 // the second is more than sockets hold
		for i := range megabytes {
			_, _ = w.Write(comment)
			if i == buffered {
				mu.Lock()
				now++
				most = max(most, now)
				mu.Unlock()
			}
		}
		mu.Lock()
		now--
		mu.Unlock()
		_, _ = w.Write([]byte("</topicMap>"))
		_, _ = w.Write(end)
		return true
	})
	assert.Equal(t, 4, s.sync().Applied)
	s.has(o, doc(topics(4, "v2")...))
	assert.LessOrEqual(t, most, 2, "one is read, and the one before may not have heard yet that it is")
}

// Pages may be in ascending order (RFC 5005 §3), with new entries on the last one. It is found for all sizes of pages,
// with an initial snapshot and without; and without new entries, there is no replacement.
func TestAscendingPages(t *testing.T) {
	t.Parallel()
	for size := 1; size <= 7; size++ {
		for _, snapshot := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d entries, snapshot %t", size, snapshot), func(t *testing.T) {
				t.Parallel()
				s := newSite(t)
				var entries []string
				publish := func(n int) {
					for i := len(entries); i < n; i++ {
						entries = append(entries, s.entryOf(i, fmt.Sprint("t", i), fmt.Sprintf("Topic %d v1", i)))
					}
					for page := 0; page*size < n; page++ {
						path, head := "/feed", ""
						if page == 0 {
							head = declared
						} else {
							path = fmt.Sprintf("/feed?page=%d", page)
						}
						if (page+1)*size < n {
							head += fmt.Sprintf(`<link rel="next" href="/feed?page=%d"/>`, page+1)
						}
						s.feed(path, head, entries[page*size:min(n, (page+1)*size)]...)
					}
				}
				publish(8)
				at := "/feed"
				if snapshot {
					at = "/map"
					s.feed("/map", "", `<entry><id>urn:f</id><title>fragments</title><updated>2024-01-01T00:00:00Z</updated><link rel="fragmentfeed" type="application/atom+xml" href="/feed"/></entry>`,
						`<entry><id>urn:s</id><title>snapshots</title><updated>2024-01-01T00:00:00Z</updated><link rel="snapshotfeed" type="application/atom+xml" href="/snapshots"/></entry>`)
					s.feed("/snapshots", declared, `<entry><id>urn:s1</id><title>s</title><updated>2024-01-01T00:00:04Z</updated><link rel="alternate" type="application/x-tm+xml;version=2.1" href="/snapshot"/></entry>`)
					s.mu.Lock()
					s.documents["/snapshot"] = doc(topics(5, "v1")...)
					s.mu.Unlock()
				}
				c := newSubscriber(t)
				_, err := c.Subscribe(context.Background(), s.URL+at, client.SubscribeOptions{Name: "egov"})
				require.NoError(t, err)
				r := c.sync()
				require.Equal(t, snapshot, r.Snapshot)
				c.hasForeign(topics(8, "v1")...)
				for n := 9; n <= 12; n++ {
					publish(n)
					r := c.sync()
					require.False(t, r.CleanStart, r.Reason)
					require.Equal(t, 1, r.Applied)
					c.hasForeign(topics(n, "v1")...)
					r = c.sync()
					require.False(t, r.CleanStart, r.Reason)
					require.Zero(t, r.Entries)
				}
			})
		}
	}
}

// An entry with a future time, corrected by the next one of its topic, hides no change of any topic.
func TestTimeOfTheFutureThatIsPutRight(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	a, b := s.entryOf(1, "a", "A v1"), s.entryOf(2, "b", "B v1")
	s.feed("/feed", declared, b, a)
	c := following(t, s)
	c.sync()
	s.feed("/feed", declared, strings.Replace(s.entryOf(3, "a", "A v2"), "2024-01-01T00:00:03Z", "9998-12-31T00:00:00Z", 1), b)
	c.sync()
	c.hasForeign(topic("a", "A v2"), topic("b", "B v1"))
	right := s.entryOf(4, "a", "A v3")
	s.feed("/feed", declared, right, b)
	c.sync()
	c.hasForeign(topic("a", "A v3"), topic("b", "B v1"))
	s.feed("/feed", declared, s.entryOf(5, "b", "B v2"), right)
	c.sync()
	c.hasForeign(topic("a", "A v3"), topic("b", "B v2"))
	assert.Zero(t, c.sync().Applied)
}
