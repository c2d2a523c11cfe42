package client_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/testkit/faults"
)

// foreign is a server of another make: a fragments feed without archive,
// snapshots, states or ETags, and XTM 1.0.
type foreign struct {
	URL string

	faults.Front
	mu      sync.Mutex
	entries string
	data    map[string]string // by path; missing: 410
	date    func() time.Time  // of the answers, if not nil
}

func newForeign(t *testing.T) *foreign {
	f := &foreign{data: map[string]string{}}
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	f.URL = s.URL
	return f
}

func (f *foreign) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.Answer(w, r, http.HandlerFunc(f.show))
}

func (f *foreign) show(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.date != nil {
		w.Header().Set("Date", f.date().UTC().Format(http.TimeFormat))
	}
	if r.URL.Path == "/egov/fragments" {
		w.Header().Set("Content-Type", "application/atom+xml")
		fmt.Fprintf(w, `<a:feed xmlns:a="http://www.w3.org/2005/Atom" xmlns:s="http://www.egovpt.org/sdshare" xml:base="%s/egov/">
			<a:id>28C5DBD8-652A-4617-8C4A-C0FFC49B4475</a:id><a:title>fragments</a:title><a:updated>2008-07-17T15:47:17Z</a:updated>
			<s:ServerSrcLocatorPrefix>http://psi.networkedplanet.
			com/</s:ServerSrcLocatorPrefix>%s</a:feed>`, f.URL, f.entries)
		return
	}
	document, ok := f.data[r.URL.Path]
	if !ok {
		w.WriteHeader(http.StatusGone)
		return
	}
	w.Header().Set("Content-Type", "text/xtm1+xml")
	_, _ = w.Write([]byte(document))
}

// put puts an entry before the others: feeds have the newest first.
func (f *foreign) put(id, updated, topicSI, document string) {
	f.entries = f.entry(id, updated, topicSI, document) + f.entries
}

// add adds an entry after the others.
func (f *foreign) add(id, updated, topicSI, document string) {
	f.entries += f.entry(id, updated, topicSI, document)
}

func (f *foreign) entry(id, updated, topicSI, document string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if document != "" {
		f.data["/egov/"+id] = document
	}
	si := ""
	if topicSI != "" {
		si = "<s:TopicSI>" + topicSI + "</s:TopicSI>"
	}
	return fmt.Sprintf(`<a:entry><a:title>%s</a:title><a:id>%s</a:id><a:updated>%s</a:updated>
		<a:link rel="http://www.egovpt.org/sdsharefragment" type="text/xtm1+xml" href="%s"/>
		<a:link rel="topicmapdata" type="text/xtm1+xml" href="%s"/>%s</a:entry>`, id, id, updated, id, id, si)
}

func (f *foreign) seen() string { return strings.Join(f.Seen(), " ") }

const foreignSP = "http://psi.networkedplanet.com/"

// xtm1 returns a fragment in XTM 1.0. A topic without a name is an empty one.
func xtm1(id, name string) string {
	if name != "" {
		name = "<baseName><baseNameString>" + name + "</baseNameString></baseName>"
	}
	return `<topicMap xmlns="http://www.topicmaps.org/xtm/1.0/" xmlns:xlink="http://www.w3.org/1999/xlink"><topic id="t1">
		<subjectIdentity><subjectIndicatorRef xlink:href="` + si(id) + `"/></subjectIdentity>` + name + `</topic></topicMap>`
}

func followingForeign(t *testing.T, f *foreign) *subscriber {
	s := newSubscriber(t, func(c *client.Config) { c.Parallel = 1 })
	_, err := s.Subscribe(context.Background(), f.URL+"/egov/fragments", client.SubscribeOptions{Name: "egov"})
	require.NoError(t, err)
	f.seen()
	return s
}

func (s *subscriber) hasForeign(elements ...string) {
	s.t.Helper()
	s.hasAs("egov", foreignSP, doc(elements...))
}

// Servers that do not state deletions need not publish closing entries: all entries are applied, in order.
func TestEntriesWithoutStateAreAllApplied(t *testing.T) {
	t.Parallel()
	f := newForeign(t)
	f.put("e1", "2008-07-17T15:00:00+01:00", si("a"), xtm1("a", "first"))
	f.put("e2", "2008-07-17T15:00:00Z", si("b"), xtm1("b", "B"))
	f.put("e3", "2008-07-17T15:00:00.5Z", si("a"), xtm1("a", "second"))
	s := followingForeign(t, f)
	r := s.sync()
	assert.Equal(t, 3, r.Applied)
	assert.Equal(t, "/egov/fragments /egov/fragments /egov/e1 /egov/e2 /egov/e3", f.seen())
	s.hasForeign(topic("a", "second"), topic("b", "B"))

	f.put("e4", "2008-07-18", si("b"), xtm1("b", ""))
	assert.Equal(t, 1, s.sync().Applied, "the empty topic deletes")
	s.hasForeign(topic("a", "second"))
	assert.Zero(t, s.sync().Applied)
}

// A fragment that is not kept any more is passed over where the topic has a later
// one.
func TestFragmentThatIsGoneIsPassedOverForALaterOne(t *testing.T) {
	t.Parallel()
	f := newForeign(t)
	f.put("e1", "2008-07-17T15:00:00Z", si("a"), "")
	f.put("e2", "2008-07-17T15:00:01Z", si("b"), xtm1("b", "B"))
	f.put("e3", "2008-07-17T15:00:02Z", si("a"), xtm1("a", "A"))
	s := followingForeign(t, f)
	r := s.sync()
	assert.Equal(t, 3, r.Entries)
	assert.Equal(t, 2, r.Applied)
	s.hasForeign(topic("a", "A"), topic("b", "B"))

	f.put("e4", "2008-07-17T15:00:03Z", si("b"), "")
	_, bad := s.syncPasses(1)
	assert.Contains(t, bad[0].Error, "410 Gone, and the feed has no later entry for its topic")
}

// Entries of one time are applied in the order of the feed, ascending or descending.
func TestEntriesOfOneTimeAreInTheOrderOfTheFeed(t *testing.T) {
	t.Parallel()
	t.Run("newest first", func(t *testing.T) {
		t.Parallel()
		f := newForeign(t)
		f.put("e0", "2008-07-16", si("x"), xtm1("x", "X"))
		f.put("e1", "2008-07-17", si("a"), xtm1("a", "first"))
		f.put("e2", "2008-07-17", si("a"), xtm1("a", "second"))
		s := followingForeign(t, f)
		s.sync()
		s.hasForeign(topic("a", "second"), topic("x", "X"))
	})
	t.Run("oldest first", func(t *testing.T) {
		t.Parallel()
		f := newForeign(t)
		f.add("e0", "2008-07-16", si("x"), xtm1("x", "X"))
		f.add("e1", "2008-07-17", si("a"), xtm1("a", "first"))
		f.add("e2", "2008-07-17", si("a"), xtm1("a", "second"))
		s := followingForeign(t, f)
		s.sync()
		s.hasForeign(topic("a", "second"), topic("x", "X"))
	})
}

// In feeds with times of whole days, entries of the mark's time may be added later. Their ids distinguish them.
func TestEntriesOfTheMarksTimeAreNotMissed(t *testing.T) {
	t.Parallel()
	f := newForeign(t)
	f.put("e1", "2008-07-17", si("a"), xtm1("a", "A"))
	f.put("e2", "2008-07-17", si("b"), xtm1("b", "B"))
	s := followingForeign(t, f)
	s.sync()
	f.put("e3", "2008-07-17", si("c"), xtm1("c", "C"))
	f.seen()
	assert.Equal(t, 1, s.sync().Applied)
	assert.Equal(t, "/egov/fragments /egov/e3", f.seen())
	s.hasForeign(topic("a", "A"), topic("b", "B"), topic("c", "C"))
	assert.Len(t, s.known("egov").State.Mark.Handled, 3)
	assert.Zero(t, s.sync().Applied)
}

// An invalid entry is reported, and delays no other.
func TestEntryThatMakesNoSenseIsInQuarantine(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		bad  func(*foreign)
		says string
	}{
		"no TopicSI": {func(f *foreign) { f.put("e2", "2008-07-18", "", xtm1("b", "B")) }, `the entry e2 ("e2") names no topic (TopicSI)`},
		"no data": {func(f *foreign) {
			f.put("e2", "2008-07-18", si("b"), xtm1("b", "B"))
			f.entries = strings.ReplaceAll(f.entries, `"text/xtm1+xml" href="e2"`, `"image/png" href="e2"`)
		}, `the entry e2 ("e2") has no link to data in XTM or RDF`},
		"data elsewhere": {func(f *foreign) {
			f.put("e2", "2008-07-18", si("b"), xtm1("b", "B"))
			f.entries = strings.ReplaceAll(f.entries, `href="e2"`, `href="http://other.example.org/e2"`)
		}, "the link leads away from"},
		"data in a file": {func(f *foreign) {
			f.put("e2", "2008-07-18", si("b"), xtm1("b", "B"))
			f.entries = strings.ReplaceAll(f.entries, `href="e2"`, `href="file:///etc/passwd"`)
		}, "links to file: are not followed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newForeign(t)
			f.put("e1", "2008-07-17", si("a"), xtm1("a", "A"))
			s := followingForeign(t, f)
			s.sync()
			c.bad(f)
			f.put("e3", "2008-07-19", si("c"), xtm1("c", "C"))
			_, bad := s.syncPasses(1)
			assert.Contains(t, bad[0].Error, c.says)
			s.hasForeign(topic("a", "A"), topic("c", "C"))
		})
	}
}

// Two servers may number the topics of their documents alike, and one does so in each of its fragments: this merges no
// topics.
func TestIdsOfTopicsInDocumentsJoinNothing(t *testing.T) {
	t.Parallel()
	f := newForeign(t)
	for i := range 5 {
		id := fmt.Sprint("t", i)
		f.put(id, fmt.Sprintf("2008-07-17T15:00:0%dZ", i), si(id), xtm1(id, fmt.Sprintf("Topic %d v1", i)))
	}
	s := followingForeign(t, f)
	s.sync()
	s.hasForeign(topics(5, "v1")...)
}

// What widely used software writes against the rules of XTM is read as it is
// meant, with a warning in each round that meets it.
func TestForeignXTMIsReadLeniently(t *testing.T) {
	t.Parallel()
	f := newForeign(t)
	typed := strings.Replace(xtm1("a", "A"), "<baseName>", `<baseName><instanceOf><topicRef xlink:href="#nick"/></instanceOf>`, 1)
	f.put("e1", "2008-07-17T15:00:00Z", si("a"), typed)
	s := followingForeign(t, f)
	_, bad := s.syncPasses(1)
	assert.Contains(t, bad[0].Error, "lenient")
	s.configure(func(c *client.Config) { c.Lenient = true })
	s.sync()
	assert.Regexp(t, "egov: warning: in the source's documents, <baseName> holds <instanceOf>, .*; it is read as the type of the name; first in "+f.URL+"/egov/e1, line 2", s.reported())
}
