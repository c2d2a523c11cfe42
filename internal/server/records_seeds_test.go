package server_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/testkit/served"
)

// The examples of Atom-PMH: with the same events at the same times, and the same boundaries of documents, the records
// are equal.

// recordsOfTheSeed are the records of the examples, by their identifiers.
var recordsOfTheSeed = map[string]string{
	"urn:uuid:177d5415-c443-410f-a5b6-44bf8433594f": "alpha",
	"urn:uuid:e7aca47e-76c5-4648-948b-583ffdaafa0d": "beta",
	"urn:uuid:fca64ec1-4984-4d34-8f02-f14a58ec5e78": "gamma",
	"urn:uuid:4cee3cd0-a7a7-42c8-a6ee-74df0bd04cc4": "delta",
	"urn:uuid:0b116a23-9bfc-49b1-97f7-90fb012c60a4": "test1",
	"urn:uuid:24870a63-01ae-4fed-878b-2ec8d498cfd0": "test2",
}

func seedRecords(t *testing.T, name string) *feeds.Feed {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "ext", "folder", "testdata", "atompmh", name+".xml"))
	require.NoError(t, err)
	f, err := feeds.Decode(bytes.NewReader(b), "http://example.org/", feeds.Limits{})
	require.NoError(t, err)
	return f
}

// saying is the content of a document of records, in any order: of each entry its record, kind and time; its links; its
// marks.
type saying struct {
	entries           []string
	links             []string
	archive, complete bool
}

// sayingOf reads a document; record returns that of an entry.
func sayingOf(t *testing.T, f *feeds.Feed, record func(*feeds.Entry) string) saying {
	t.Helper()
	s := saying{archive: f.Archive, complete: f.Complete}
	for i := range f.Entries {
		e := &f.Entries[i]
		kind := ofDeletion
		if !e.IsDeletion() {
			require.True(t, e.IsRecord())
			kind = ofRecord
		}
		s.entries = append(s.entries, fmt.Sprint(record(e), " ", kind, " ", e.Updated.UTC().Format(time.RFC3339)))
	}
	slices.Sort(s.entries)
	for _, rel := range []feeds.Rel{"current", "prev-archive", "next-archive"} {
		if _, ok := f.Link(rel); ok {
			s.links = append(s.links, string(rel))
		}
	}
	return s
}

func (n *node) saying(url string) (saying, *feeds.Feed) {
	n.T.Helper()
	f := n.Decoded(url)
	return sayingOf(n.T.(*testing.T), f, func(e *feeds.Entry) string { return strings.TrimPrefix(e.TopicSI[0], served.PSI) }), f
}

func seedSaying(t *testing.T, name string) saying {
	t.Helper()
	return sayingOf(t, seedRecords(t, name), func(e *feeds.Entry) string {
		require.Contains(t, recordsOfTheSeed, e.ID)
		return recordsOfTheSeed[e.ID]
	})
}

// pool is a collection whose records are created and changed at certain times.
type pool struct {
	*node
	now *served.Clock
}

func newPool(t *testing.T, documentSize int) *pool {
	now := &served.Clock{}
	now.Set(served.At(t, "2011-01-01T00:00:00Z"))
	p := &pool{startAt(t, now), now}
	require.Equal(t, http.StatusCreated, p.PutSettings("m", fmt.Sprintf(`{"documentSize": %d}`, documentSize)).StatusCode)
	return p
}

// collection is a topic whose name has the topic as its type, so that it needs no other.
func collection(record, name string) string {
	return fmt.Sprintf(`<topic id=%q><subjectIdentifier href="%s%s"/><name><type><subjectIdentifierRef href="%s%s"/></type><value>%s</value></name></topic>`,
		record, served.PSI, record, served.PSI, record, name)
}

func mapOfCollections(topics ...string) []byte {
	return []byte(`<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1">` + strings.Join(topics, "") + `</topicMap>`)
}

func (p *pool) at(time string) { p.now.Set(served.At(p.T, time)) }

func (p *pool) publishAt(time, record, name string) {
	p.T.Helper()
	p.at(time)
	served.Published(p.T, p.postTopics("m", mapOfCollections(collection(record, name)), nil))
}

func (p *pool) deleted(time, record string) {
	p.T.Helper()
	p.at(time)
	a := p.Do(http.MethodDelete, "/topicmaps/m/topics?si="+url.QueryEscape(served.PSI+record), nil)
	require.Equal(p.T, 1, served.Published(p.T, a).Deleted)
}

// example1 makes the four records of the first example; gamma's time is another in the
// third.
func (p *pool) example1(gamma string) {
	p.publishAt("2011-12-10T18:30:02Z", "delta", "Delta data collection")
	p.publishAt(gamma, "gamma", "Gamma data collection")
	p.publishAt("2012-10-31T12:35:52Z", "beta", "Beta data collection")
	p.publishAt("2012-11-01T07:00:00Z", "alpha", "Alpha data collection")
}

const recordsURL, completeURL = "/topicmaps/m/records", "/topicmaps/m/records/complete"

// "Example 1: feed with archive documents", "Example 2: delete with deletion entries"
func TestArchivedExamplesOfAtomPMH(t *testing.T) {
	t.Parallel()
	p := newPool(t, 1)
	p.example1("2012-02-29T14:00:00Z")
	url := p.URL(recordsURL)
	var chain []string
	for _, name := range []string{"example-1-subscription", "example-1-archive-1", "example-1-archive-2", "example-1-archive-3"} {
		have, f := p.saying(url)
		want := seedSaying(t, name)
		assert.Equal(t, want, have, name)
		assert.Len(t, have.entries, 1)
		example := seedRecords(t, name)
		assert.Equal(t, example.Entries[0].Title, f.Entries[0].Title)
		chain = append(chain, url)
		previous, _ := f.Link("prev-archive")
		url = previous.Href
	}
	assert.Empty(t, url, "there is no fifth")
	_, newest := p.saying(chain[1])
	_, second := p.saying(chain[2])
	_, earliest := p.saying(chain[3])
	for f, want := range map[*feeds.Feed]string{second: chain[1], earliest: chain[2]} {
		next, _ := f.Link("next-archive")
		assert.Equal(t, want, next.Href, "the optional next-archive link resolves to the document before")
	}
	for _, f := range []*feeds.Feed{newest, second, earliest} {
		current, _ := f.Link("current")
		assert.Equal(t, chain[0], current.Href, "the optional current link resolves to the subscription document")
	}

	before, subscription := p.saying(recordsURL)
	p.deleted("2012-11-01T23:00:00Z", "alpha")
	have, f := p.saying(recordsURL)
	assert.Equal(t, seedSaying(t, "example-2-subscription"), have)
	assert.Equal(t, subscription.Entries[0].ID, f.Entries[0].ID)
	previous, _ := f.Link("prev-archive")
	archived, _ := p.saying(previous.Href)
	assert.Equal(t, before.entries, archived.entries, "it was previously the subscription document but is now one of the archive documents")
	assert.True(t, archived.archive)
}

// "Example 3: feed with no archive documents", "Example 4: delete without deletion records"
func TestCompleteExamplesOfAtomPMH(t *testing.T) {
	t.Parallel()
	p := newPool(t, 100)
	p.example1("2012-02-29T14:30:00Z")
	have, _ := p.saying(completeURL)
	assert.Equal(t, seedSaying(t, "example-3-complete"), have)
	assert.Len(t, have.entries, 4)
	p.deleted("2012-11-01T13:00:00Z", "alpha")
	have, _ = p.saying(completeURL)
	assert.Equal(t, seedSaying(t, "example-4-complete"), have)
	assert.Len(t, have.entries, 3)
}

// "Example 5: update"
func TestUpdateExampleOfAtomPMH(t *testing.T) {
	t.Parallel()
	p := newPool(t, 100)
	p.publishAt("2012-10-31T12:35:52Z", "beta", "Beta data collection")
	p.publishAt("2012-11-02T07:30:00Z", "beta", "Beta data collection, changed")
	have, f := p.saying(recordsURL)
	assert.Equal(t, seedSaying(t, "example-5").entries, have.entries, "the historical entry and the new active entry")
	require.Len(t, f.Entries, 2)
	assert.Equal(t, f.Entries[0].ID, f.Entries[1].ID, "both have the same id, because they both correspond to the same record")
	assert.False(t, f.Updated.Before(f.Entries[0].Updated), "which the example has not")
}

// "General examples": entries, updates and deletions, complete feeds.
func TestGeneralExamplesOfAtomPMH(t *testing.T) {
	t.Parallel()
	p := newPool(t, 100)
	p.publishAt("2011-12-10T15:30:02Z", "test2", "Test 2")
	p.publishAt("2011-12-10T18:30:02Z", "test1", "Test 1")
	have, _ := p.saying(recordsURL)
	assert.Equal(t, seedSaying(t, "general-entries").entries, have.entries)

	p.at("2011-12-10T20:00:00Z") // both in one event
	p.MustPut("m", mapOfCollections(collection("test2", "Test 2 (modified)")))
	have, _ = p.saying(recordsURL)
	assert.Equal(t, seedSaying(t, "general-update-and-delete").entries, have.entries)
	assert.False(t, have.complete)

	have, _ = p.saying(completeURL)
	want := seedSaying(t, "general-complete")
	assert.True(t, have.complete && want.complete)
	// "As before, the original entry for the updated metadata record can be omitted."
	assert.Equal(t, slices.DeleteFunc(want.entries, func(e string) bool { return strings.Contains(e, "15:30:02") }), have.entries)
}

// The archived feed of the introduction: all but the oldest document lead to another.
func TestArchivedIntroductionOfAtomPMH(t *testing.T) {
	t.Parallel()
	p := newPool(t, 1)
	for i := range 6 {
		p.publishAt(fmt.Sprintf("2012-10-%02dT14:00:00Z", i+1), fmt.Sprint("record-", i), fmt.Sprint("Record ", i))
	}
	leads := func(f *feeds.Feed) bool { _, ok := f.Link("prev-archive"); return ok }
	url, walked := p.URL(recordsURL), 0
	for _, name := range []string{"general-archived-subscription", "general-archived-L99", "general-archived-L98", "", "", "general-archived-oldest"} {
		f := p.Decoded(url)
		if name != "" {
			assert.Equal(t, leads(seedRecords(t, name)), leads(f), name)
		}
		previous, _ := f.Link("prev-archive")
		url = previous.Href
		walked++
	}
	assert.Empty(t, url)
	assert.Equal(t, 6, walked)
}
