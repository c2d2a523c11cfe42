package client_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/client"
)

// sdshareDialect is how servers of a generation of SDShare spell things.
type sdshareDialect struct {
	name, namespace, rels, topic string
	prefix                       bool // feeds declare a ServerSrcLocatorPrefix
}

var sdshareDialects = []sdshareDialect{
	{"CWA", "http://www.egovpt.org/sdshare", "http://www.egovpt.org/sdshare/", "TopicSI", true},
	{"CWA with a slash", "http://www.egovpt.org/sdshare/", "http://www.egovpt.org/sdshare/", "TopicSI", true},
	{"2012", "http://www.sdshare.org/2012/core/", "http://www.sdshare.org/2012/core/", "resource", false},
}

// sdshareServer is a typical server of SDShare. Its times are whole seconds. It lists each topic once, with its last
// change, and keeps no history: a fragment is the present topic, and that of a deleted topic is a map without topics.
type sdshareServer struct {
	sdshareDialect
	URL string

	mu       sync.Mutex
	second   int                      // the time
	dateless bool                     // answers have no Date
	topics   map[string]*sdshareTopic // by the element that names them
	changed  []*sdshareTopic          // the last change last
	snapshot string                   // "": none
	taken    int                      // the time of the snapshot
	sent     int                      // fragments
	broken   int                      // if not 0, it is out of order once it has sent so many
}

type sdshareTopic struct {
	number  int
	named   string // the element that names it in the entry
	element string // "": deleted
	second  int    // of the last change
}

func newSDShareServer(t *testing.T, d sdshareDialect) *sdshareServer {
	s := &sdshareServer{sdshareDialect: d, topics: map[string]*sdshareTopic{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// named returns the element by which an entry names its topic.
func (s *sdshareServer) named(local, locator string) string {
	return fmt.Sprintf(`<s:%s xmlns:s="%s">%s</s:%[1]s>`, local, s.namespace, locator)
}

// set changes a topic that si(id) identifies; without a name it is deleted.
func (s *sdshareServer) set(id, name string) {
	element := ""
	if name != "" {
		element = topic(id, name)
	}
	s.put(s.named(s.topic, si(id)), element)
}

// put changes a topic, "" deletes it.
func (s *sdshareServer) put(named, element string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.topics[named]
	if t == nil {
		t = &sdshareTopic{number: len(s.topics), named: named}
		s.topics[named] = t
	}
	t.element, t.second = element, s.second
	s.changed = append(slices.DeleteFunc(s.changed, func(other *sdshareTopic) bool { return other == t }), t)
}

// take takes a snapshot.
func (s *sdshareServer) take() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.snapshot, s.taken = s.all(), s.second
}

// all returns all that the server has.
func (s *sdshareServer) all() string {
	var all []string
	for _, t := range s.changed {
		all = append(all, t.element)
	}
	return doc(all...)
}

func (s *sdshareServer) tick() { s.wait(1) }

// wait lets some seconds pass.
func (s *sdshareServer) wait(seconds int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.second += seconds
}

// now returns the time.
func (s *sdshareServer) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.date()
}

func (s *sdshareServer) date() time.Time {
	return time.Date(2012, 11, 23, 10, 0, s.second, 0, time.UTC)
}

func (s *sdshareServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken > 0 && s.sent >= s.broken {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	w.Header().Set("Date", s.date().Format(http.TimeFormat))
	if s.dateless {
		w.Header()["Date"] = nil
	}
	link := func(rel, href string) string {
		return fmt.Sprintf(`<link rel="%s%s" type="application/atom+xml" href="%s"/>`, s.rels, rel, href)
	}
	data := func(rel, href string) string {
		return fmt.Sprintf(`<link rel="%s%s" type="application/x-tm+xml; version=2.0" href="%s"/>`, s.rels, rel, href)
	}
	switch path := r.URL.Path; path {
	case "/":
		s.feed(w, entryIn(0, "map", link("collectionfeed", "/map")))
	case "/map":
		s.feed(w, entryIn(0, "fragments", link("fragmentsfeed", "/fragments")), entryIn(0, "snapshots", link("snapshotsfeed", "/snapshots")))
	case "/snapshots":
		if s.snapshot == "" {
			s.feed(w)
			return
		}
		s.feed(w, entryIn(s.taken, "snapshot", data("snapshot", "/snapshot")))
	case "/snapshot":
		fmt.Fprint(w, s.snapshot)
	case "/fragments":
		var entries []string
		for _, t := range slices.Backward(s.changed) {
			id := fmt.Sprintf("%d-%d", t.number, t.second)
			entries = append(entries, entryIn(t.second, id, data("fragment", "/fragment/"+id)+t.named))
		}
		s.feed(w, entries...)
	default:
		for _, t := range s.changed {
			if strings.HasPrefix(path, fmt.Sprintf("/fragment/%d-", t.number)) {
				s.sent++
				fmt.Fprint(w, doc(t.element))
				return
			}
		}
		w.WriteHeader(http.StatusNotFound)
	}
}

func entryIn(n int, id, links string) string {
	return fmt.Sprintf(`<entry><id>urn:x-sdshare:%s</id><title>%[1]s</title><updated>%s</updated>%s</entry>`, id, second(n), links)
}

func (s *sdshareServer) feed(w http.ResponseWriter, entries ...string) {
	w.Header().Set("Content-Type", "application/atom+xml")
	prefix := ""
	if s.prefix {
		prefix = s.named("ServerSrcLocatorPrefix", foreignSP)
	}
	fmt.Fprintf(w, `<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:x-sdshare:feed</id><title>f</title><updated>%s</updated>%s%s</feed>`,
		second(s.second), prefix, strings.Join(entries, ""))
}

// followingSDShare returns a subscriber with the server's state.
func followingSDShare(t *testing.T, s *sdshareServer) *subscriber {
	c := newSubscriber(t)
	_, err := c.Subscribe(context.Background(), s.URL+"/", client.SubscribeOptions{Name: "egov"})
	require.NoError(t, err)
	assert.True(t, c.sync().CleanStart)
	return c
}

// hasAll asserts that c has all that the server has.
func (s *sdshareServer) hasAll(c *subscriber) {
	c.t.Helper()
	s.mu.Lock()
	all := s.all()
	s.mu.Unlock()
	c.hasAs("egov", c.known("egov").SP, all)
}

func eachSDShare(t *testing.T, f func(t *testing.T, s *sdshareServer)) {
	for _, d := range sdshareDialects {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			f(t, newSDShareServer(t, d))
		})
	}
}
