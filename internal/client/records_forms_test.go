package client_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/client"
)

// A feed with another id is another history: records that it does not list are removed, and those of the same time may
// be other versions.
func TestRecordsOfAnotherHistory(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		id      string
		entries []string
		reason  string
	}{
		"another id":           {"urn:x:new", []string{live("a", 1, "a"), live("b", 2, "b")}, "the feed has a new id: its history is another one"},
		"restored from backup": {"urn:x:feed", []string{live("a", 11, "a"), live("b", 2, "b")}, "the last entries that were handled are not in the feed any more"},
		"restored, all older":  {"urn:x:feed", []string{live("a", 0, "a"), live("b", 2, "b")}, "the last entries that were handled are not in the feed any more"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProducer(t)
			for _, id := range []string{"a", "b", "c"} {
				p.put(id, doc(topic(id, id+" v1")))
			}
			p.feed(live("a", 1, "a"), live("b", 2, "b"), live("c", 9, "c"))
			s := harvesting(t, p)
			s.syncQuiet()
			p.put("a", doc(topic("a", "a v2")))
			p.document("feed", c.id, "", c.entries...)
			r := s.syncQuiet()
			assert.Equal(t, c.reason, r.Reason)
			s.holds(p, topic("a", "a v2"), topic("b", "b v1"))
			assert.Empty(t, s.syncQuiet().Reason)
		})
	}
}

// A feed may become a complete one, and an archived one again (Atom-PMH, Detecting deleted
// metadata records).
func TestRecordsInAFeedThatChangesItsForm(t *testing.T) {
	t.Parallel()
	p := newProducer(t)
	for _, id := range []string{"a", "b", "c"} {
		p.put(id, doc(topic(id, id)))
	}
	p.feed(live("a", 1, "a"), live("b", 2, "b"))
	s := harvesting(t, p)
	s.syncQuiet()
	p.feed(live("b", 2, "b")) // without a deletion entry
	s.syncQuiet()
	s.holds(p, topic("a", "a"), topic("b", "b"))

	p.completeFeed(live("b", 2, "b"), live("c", 3, "c"))
	s.syncQuiet()
	s.holds(p, topic("b", "b"), topic("c", "c"))
	p.completeFeed(live("c", 3, "c"))
	s.syncQuiet()
	s.holds(p, topic("c", "c"))

	p.put("a", doc(topic("a", "a again")))
	p.document("feed", "urn:x:feed", prev("older"), live("a", 4, "a"))
	p.document("older", "urn:x:feed", "", dead("c", 4))
	r := s.syncQuiet()
	assert.Equal(t, "the feed was a complete one, and is an archived one now", r.Reason)
	s.holds(p, topic("a", "a again"))

	p.completeFeed()
	s.syncQuiet()
	s.holds(p)
}

// Entries of one time: a record that is deleted and modified is there if its document is.
func TestRecordsWithEntriesOfOneTime(t *testing.T) {
	t.Parallel()
	p := newProducer(t)
	p.put("a", doc(topic("a", "A")))
	p.put("b", doc(topic("b", "B")))
	p.feed(live("a", 5, "a"))
	s := harvesting(t, p)
	s.syncQuiet()
	p.feed(live("a", 5, "a"), live("b", 5, "b"))
	s.syncQuiet()
	s.holds(p, topic("a", "A"), topic("b", "B"))

	p.feed(live("a", 6, "a"), dead("a", 6), dead("b", 6), live("b", 6, "b"))
	p.put("a", doc(topic("a", "A again")))
	p.fail("b", http.StatusNotFound)
	s.syncQuiet()
	s.holds(p, topic("a", "A again"))
}

// Archive documents may change and move (Atom-PMH, Changing archive documents and URI).
func TestRecordsInArchivesThatChangeAndMove(t *testing.T) {
	t.Parallel()
	p := newProducer(t)
	var elements []string
	for i := range 6 {
		id := fmt.Sprint("t", i)
		elements = append(elements, topic(id, id))
		p.put(id, doc(elements[i]))
	}
	p.document("feed", "urn:x:feed", prev("archive/1"), live("t3", 3, "t3"))
	p.document("archive/1", "urn:x:feed", "", live("t1", 1, "/t1"), live("t2", 2, "/t2"))
	s := harvesting(t, p)
	s.syncQuiet()
	p.seen()
	s.holds(p, elements[1:4]...)

	p.document("feed", "urn:x:feed", prev("moved/3"), live("t5", 5, "t5"))
	p.document("moved/3", "urn:x:feed", prev("2"), live("t4", 4, "/t4"), live("t3", 3, "/t3"))
	p.document("moved/2", "urn:x:feed", prev("1"), live("t2", 2, "/t2"))
	p.document("moved/1", "urn:x:feed", "", live("t1", 1, "/t1"))
	p.fail("archive/1", http.StatusGone)
	s.syncQuiet()
	assert.Equal(t, "feed moved/3 moved/2 feed t4 t5", p.seen())
	s.holds(p, elements[1:]...)
}

// A changed prefix could delete everything: no record is changed.
func TestPrefixOfRecordsThatChangesStopsEverything(t *testing.T) {
	t.Parallel()
	prefix := func(sp string) string { return "<t:ServerSrcLocatorPrefix>" + sp + "</t:ServerSrcLocatorPrefix>" }
	p := newProducer(t)
	p.put("a", doc(topic("a", "A")))
	p.put("b", doc(topic("b", "B")))
	p.document("feed", "urn:x:feed", prefix("http://psi.example.org/map/"), live("a", 1, "a"))
	s := harvesting(t, p)
	s.syncQuiet()
	before := s.known("egov")
	for name, publish := range map[string]func(){
		"in the first document": func() {
			p.document("feed", "urn:x:other", prefix("http://"), live("b", 2, "b"))
		},
		"in another one": func() {
			p.document("feed", "urn:x:feed", prefix("http://psi.example.org/map/")+prev("older"), live("b", 3, "b"))
			p.document("older", "urn:x:feed", prefix("http://"), live("b", 2, "b"))
		},
	} {
		publish()
		for _, round := range []func(context.Context, string) (*client.Round, error){s.Sync, s.Replace} {
			_, err := round(context.Background(), "egov")
			var changed *client.PrefixError
			require.ErrorAs(t, err, &changed, name)
			assert.Equal(t, []string{"http://psi.example.org/map/", "http://"}, []string{changed.Pinned, changed.Found})
			s.hasAs("egov", "http://psi.example.org/map/", doc(topic("a", "A")))
			assert.Equal(t, before.State, s.known("egov").State)
		}
	}
	p.document("feed", "urn:x:feed", prefix("http://psi.example.org/map/"), live("b", 2, "b"), dead("a", 2))
	s.sync()
	s.hasAs("egov", "http://psi.example.org/map/", doc(topic("b", "B")))
}

// A source that states the topics of its records may still have a record of a topic that was merged into another one.
// The record named after the topic is used.
func TestRecordThatHasMergedIntoAnother(t *testing.T) {
	t.Parallel()
	about := func(id string, second int) string {
		return strings.Replace(live(id, second, id), "</entry>", "<t:TopicSI>"+si(id)+"</t:TopicSI></entry>", 1)
	}
	for name, entries := range map[string][]string{
		"it comes first": {about("a", 1), about("c", 2)},
		"it comes later": {about("c", 1), about("a", 2)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProducer(t)
			merged := alias("c", "a", "both")
			p.put("a", doc(merged))
			p.put("c", doc(merged))
			p.feed(entries...)
			s := harvesting(t, p)
			s.syncQuiet()
			s.holds(p, merged)
			p.feed(append(entries, dead("a", 3))...)
			s.syncQuiet()
			s.holds(p, merged)
			p.feed(append(entries, dead("a", 3), dead("c", 4))...)
			s.syncQuiet()
			s.holds(p)
		})
	}
}
