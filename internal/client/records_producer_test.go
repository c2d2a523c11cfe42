package client_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/testkit/faults"
)

// producer is another producer: feeds of records written by hand, and documents without TMShare.
type producer struct {
	t   *testing.T
	URL string

	faults.Front
	mu      sync.Mutex
	answers map[string]reply // by path; missing: 404
}

type reply struct {
	status int
	body   string
	after  func() // called before it is sent
}

func newProducer(t *testing.T) *producer {
	p := &producer{t: t, answers: map[string]reply{}}
	s := httptest.NewServer(p)
	t.Cleanup(s.Close)
	p.URL = s.URL
	return p
}

func (p *producer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.Answer(w, r, http.HandlerFunc(p.show))
}

func (p *producer) show(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	a, ok := p.answers[strings.TrimPrefix(r.URL.Path, "/")]
	p.mu.Unlock()
	switch {
	case !ok:
		w.WriteHeader(http.StatusNotFound)
	case a.status != http.StatusOK:
		w.WriteHeader(a.status)
	default:
		w.Header().Set("Content-Type", "application/xml")
		_, _ = w.Write([]byte(a.body))
	}
	if a.after != nil {
		a.after()
	}
}

func (p *producer) put(path, body string) { p.reply(path, reply{http.StatusOK, body, nil}) }

func (p *producer) fail(path string, status int) { p.reply(path, reply{status, "", nil}) }

func (p *producer) reply(path string, a reply) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answers[path] = a
}

func (p *producer) seen() string {
	return strings.TrimPrefix(strings.ReplaceAll(strings.Join(p.Seen(), " "), " /", " "), "/")
}

// feed publishes an archived feed of one document.
func (p *producer) feed(entries ...string) { p.document("feed", "urn:x:feed", "", entries...) }

// completeFeed publishes a complete feed.
func (p *producer) completeFeed(entries ...string) {
	p.document("feed", "urn:x:feed", `<fh:complete xmlns:fh="http://purl.org/syndication/history/1.0"/>`, entries...)
}

// document publishes a document of a feed.
func (p *producer) document(path, id, head string, entries ...string) {
	p.put(path, fmt.Sprintf(`<feed xmlns="http://www.w3.org/2005/Atom" xmlns:t="http://www.egovpt.org/sdshare"><id>%s</id><title>of records</title><updated>2030-01-01T00:00:00Z</updated>
		%s %s</feed>`, id, head, strings.Join(entries, "\n")))
}

func prev(path string) string { return `<link rel="prev-archive" href="` + path + `"/>` }

// live returns an active entry of the record urn:x:ID at a second of the minute, with a link
// to each PATH or PATH=TYPE.
func live(id string, second int, links ...string) string {
	var b strings.Builder
	for _, link := range links {
		path, mediaType, _ := strings.Cut(link, "=")
		if mediaType != "" {
			mediaType = ` type="` + mediaType + `"`
		}
		fmt.Fprintf(&b, `<link href="%s"%s/>`, path, mediaType)
	}
	return fmt.Sprintf(`<entry><id>urn:x:%s</id><title>%s</title><updated>2012-11-23T10:00:%02dZ</updated>%s</entry>`, id, id, second, b.String())
}

// dead returns a deletion entry.
func dead(id string, second int) string {
	return strings.Replace(live(id, second), "</entry>", "<content/></entry>", 1)
}

const (
	typeXTM1  = "application/xtm1+xml"
	typeXTM20 = "application/x-tm+xml;version=2.0"
	typeXTM21 = "application/x-tm+xml;version=2.1"
)

// harvesting returns a subscriber whose egov follows the feed.
func harvesting(t *testing.T, p *producer) *subscriber {
	s := newSubscriber(t, func(c *client.Config) { c.Parallel, c.Tries = 1, 1 })
	_, err := s.Subscribe(context.Background(), p.URL+"/feed", client.SubscribeOptions{Name: "egov", Protocol: "atom-pmh"})
	require.NoError(t, err)
	p.seen()
	return s
}

// holds asserts that the source is equal to a document of these elements.
func (s *subscriber) holds(p *producer, elements ...string) {
	s.t.Helper()
	s.hasAs("egov", p.URL+"/feed#", doc(elements...))
}

func (s *subscriber) syncQuiet() *client.Round {
	s.t.Helper()
	r, _ := s.syncPasses(0)
	return r
}
