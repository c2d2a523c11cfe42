package client_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/client/status"
	"github.com/tmshare/tmshare/internal/store"
)

// Only the content of its document identifies the topic of a record.
func TestRecordsOfAForeignProducer(t *testing.T) {
	t.Parallel()
	p := newProducer(t)
	p.put("one", xtm1("one", "One"))
	p.put("two", `<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.0"><topic id="t1"><subjectIdentifier href="urn:x:two"/><name><value>Two</value></name></topic>
		<topic id="t2"><subjectIdentifier href="`+si("mentioned")+`"/><name><value>m</value></name></topic></topicMap>`)
	p.put("three", doc(`<topic><subjectIdentifier href="`+p.URL+`/three"/><name><value>Three</value></name></topic>`, topic("mentioned", "m")))
	p.put("four", doc(link("near", "hub", "a"), link("near", "hub", "b")))
	p.put("five", doc(topic("mentioned", "m"), topic("other", "o")))
	p.feed(live("one", 1, "one="+typeXTM1), live("two", 2, "two="+typeXTM20), live("three", 3, "three"), live("four", 4, "four="+typeXTM21), live("five", 5, "five"))
	s := harvesting(t, p)
	_, bad := s.syncPasses(1)
	assert.Contains(t, bad[0].Error, "nothing says which of the topics in it this is about")
	assert.Contains(t, bad[0].Error, si("other"))
	assert.Equal(t, "feed feed one two three four five", p.seen())
	s.holds(p, topic("one", "One"),
		`<topic><subjectIdentifier href="urn:x:two"/><name><value>Two</value></name></topic>`,
		`<topic><subjectIdentifier href="`+p.URL+`/three"/><name><value>Three</value></name></topic>`,
		`<topic><subjectIdentifier href="`+si("hub")+`"/></topic>`, link("near", "hub", "a"), link("near", "hub", "b"))

	p.put("one", xtm1("one", "One again"))
	p.put("five", doc(topic("other", "o")))
	p.feed(dead("three", 7), live("one", 6, "one="+typeXTM1), live("one", 1, "one="+typeXTM1), live("two", 2, "two"), live("three", 3, "three"), live("four", 4, "four"), live("five", 5, "five"))
	s.syncQuiet()
	assert.Equal(t, "feed one five", p.seen(), "what is in quarantine is tried again, historical entries are skipped")
	s.holds(p, topic("one", "One again"), topic("other", "o"),
		`<topic><subjectIdentifier href="urn:x:two"/><name><value>Two</value></name></topic>`,
		`<topic><subjectIdentifier href="`+si("hub")+`"/></topic>`, link("near", "hub", "a"), link("near", "hub", "b"))
	assert.Zero(t, s.syncQuiet().Entries)
}

// The best format is used, the next if that is not available. If no usable one is left, the record is deleted
// (Atom-PMH, Processing deleted formats).
func TestRecordsInSeveralFormats(t *testing.T) {
	t.Parallel()
	p := newProducer(t)
	p.put("a.xtm1", xtm1("a", "in XTM 1.0"))
	p.put("a.xtm21", doc(topic("a", "in XTM 2.1")))
	p.put("b", doc(topic("b", "B")))
	all := []string{"a.html=text/html", "a.xtm1=" + typeXTM1, "a.xtm21=" + typeXTM21}
	p.feed(live("a", 1, all...), live("b", 2, "b"))
	s := harvesting(t, p)
	s.syncQuiet()
	assert.Equal(t, "feed feed a.xtm21 b", p.seen())
	s.holds(p, topic("a", "in XTM 2.1"), topic("b", "B"))

	p.feed(live("a", 3, all...), live("b", 2, "b"))
	p.fail("a.xtm21", http.StatusNotFound)
	for _, requests := range []string{"feed a.xtm21 feed a.xtm21 a.xtm1", "feed a.xtm21 a.xtm1"} {
		_, bad := s.syncPasses(1) // XTM 1.0 cannot carry all
		assert.Equal(t, requests, p.seen())
		assert.Contains(t, bad[0].Error, "/a.xtm21: the server answered 404 Not Found; "+p.URL+"/a.xtm1 was taken, which may say less")
		s.holds(p, topic("a", "in XTM 1.0"), topic("b", "B"))
	}
	p.put("a.xtm21", doc(topic("a", "in XTM 2.1 again")))
	s.syncQuiet()
	s.holds(p, topic("a", "in XTM 2.1 again"), topic("b", "B"))
	p.seen()

	p.feed(live("a", 4, all[0]), live("b", 2, "b"))
	s.syncQuiet()
	assert.Equal(t, "feed", p.seen())
	s.holds(p, topic("b", "B"))
	assert.Zero(t, s.syncQuiet().Entries)

	p.feed(live("a", 5, all[:2]...), live("b", 2, "b"))
	s.syncQuiet()
	s.holds(p, topic("a", "in XTM 1.0"), topic("b", "B"))

	// A complete feed lists all records as present.
	p.completeFeed(live("a", 6, all[0]), live("b", 2, "b"))
	s.syncQuiet()
	s.holds(p, topic("b", "B"))
	assert.Zero(t, s.syncQuiet().Entries)
}

// 403, 404 and 410 state that a record does not exist (Atom-PMH, Resolvability of URIs). If the feed still lists it, it
// is removed, with a message.
func TestRecordsThatAreGone(t *testing.T) {
	t.Parallel()
	for _, status := range []int{403, 404, 410} {
		for _, form := range []struct {
			name string
			feed func(*producer, ...string)
		}{{"archived", (*producer).feed}, {"complete", (*producer).completeFeed}} {
			t.Run(fmt.Sprint(status, " ", form.name), func(t *testing.T) {
				t.Parallel()
				p := newProducer(t)
				p.put("a", doc(topic("a", "A")))
				p.put("b", doc(topic("b", "B")))
				form.feed(p, live("a", 1, "a"), live("b", 2, "b"))
				s := harvesting(t, p)
				s.syncQuiet()
				p.seen()

				form.feed(p, live("a", 3, "a", "a.other"), live("b", 4, "b"))
				p.put("b", doc(topic("b", "B changed")))
				p.fail("a", status)
				p.fail("a.other", status)
				r, bad := s.syncPasses(1)
				assert.Equal(t, "feed a b feed a a.other", p.seen(), "the feed might have said since that it is deleted")
				assert.Equal(t, []int{2, 1}, []int{r.Entries, r.Applied})
				assert.Contains(t, bad[0].Error, fmt.Sprint(status, " ", http.StatusText(status)))
				assert.Contains(t, bad[0].Error, "though the source says that it is there; the topic was removed")
				assert.Equal(t, []string{"urn:x:a", "urn:x:a", p.URL + "/a"}, []string{bad[0].TopicSI, bad[0].Entry, bad[0].Link})
				s.holds(p, topic("b", "B changed"))

				_, bad = s.syncPasses(1)
				assert.Equal(t, 2, bad[0].Tries)
				assert.Equal(t, "feed a a.other", p.seen(), "it is tried once in a round")

				p.put("a.other", doc(topic("a", "A again")))
				r, err := s.Retry(context.Background(), "egov", "urn:x:a")
				require.NoError(t, err)
				assert.Equal(t, []int{1, 1}, []int{r.Applied, r.Quarantined}, "the other link is not what was available")
				s.holds(p, topic("a", "A again"), topic("b", "B changed"))
				p.put("a", doc(topic("a", "A as it should be")))
				s.syncQuiet()
				s.holds(p, topic("a", "A as it should be"), topic("b", "B changed"))
				assert.Equal(t, client.Round{Name: "egov", Mark: r.Mark}, *s.syncQuiet())
			})
		}
	}
}

// What is deleted after the feed was read is no error.
func TestRecordDeletedBetweenFeedAndFetch(t *testing.T) {
	t.Parallel()
	p := newProducer(t)
	p.put("a", doc(topic("a", "A")))
	p.put("b", doc(topic("b", "B")))
	p.feed(live("a", 1, "a"), live("b", 2, "b"))
	s := harvesting(t, p)
	s.syncQuiet()
	p.feed(live("a", 3, "a"), live("b", 2, "b"))
	p.reply("a", reply{http.StatusGone, "", func() { p.feed(dead("a", 4), live("b", 2, "b")) }})
	s.syncQuiet()
	s.holds(p, topic("b", "B"))
}

// Other failures do not remove the record.
func TestFailuresThatDoNotSayThatARecordIsGone(t *testing.T) {
	t.Parallel()
	for status, fails := range map[int]bool{401: false, 500: false, 503: false, 406: false, 429: true} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			p := newProducer(t)
			p.put("a", doc(topic("a", "A")))
			p.put("b", doc(topic("b", "B")))
			p.feed(live("a", 1, "a"), live("b", 2, "b"))
			s := harvesting(t, p)
			s.syncQuiet()

			p.feed(live("a", 3, "a", "a.other"), live("b", 4, "b"))
			p.put("b", doc(topic("b", "B changed")))
			p.fail("a", status)
			if fails {
				_, err := s.syncFails()
				assert.ErrorContains(t, err, fmt.Sprint(status))
				s.holds(p, topic("a", "A"), topic("b", "B"))
			} else {
				for range 2 {
					_, bad := s.syncPasses(1)
					assert.Contains(t, bad[0].Error, fmt.Sprint(status))
					assert.Equal(t, p.URL+"/a", bad[0].Link)
					s.holds(p, topic("a", "A"), topic("b", "B changed"))
				}
			}
			p.put("a", doc(topic("a", "A changed")))
			s.syncQuiet()
			s.holds(p, topic("a", "A changed"), topic("b", "B changed"))
		})
	}
}

// A failing server ends the round; no record is lost.
func TestServerOutOfOrderEndsTheRound(t *testing.T) {
	t.Parallel()
	p := newProducer(t)
	var entries []string
	for i := range 8 {
		id := fmt.Sprint("t", i)
		p.fail(id, 500)
		entries = append(entries, live(id, i, id))
	}
	p.feed(entries...)
	s := harvesting(t, p)
	_, err := s.syncFails()
	assert.ErrorContains(t, err, "500 Internal Server Error")
	for i, elements := 0, topics(8, ""); i < 8; i++ {
		p.put(fmt.Sprint("t", i), doc(elements[i]))
	}
	s.sync()
	s.syncQuiet()
	s.holds(p, topics(8, "")...)
}

// Each of two records of one topic would undo the other's statements.
func TestTwoRecordsOfOneTopic(t *testing.T) {
	t.Parallel()
	for name, second := range map[string]string{
		"the same identifier": topic("a", "second"),
		"another shared one":  `<topic><subjectIdentifier href="` + si("other") + `"/><subjectIdentifier href="` + si("alias") + `"/><name><value>second</value></name></topic>`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProducer(t)
			first := alias("a", "alias", "first")
			p.put("one", doc(first))
			p.put("two", doc(second))
			p.feed(live("one", 1, "one"), live("two", 2, "two"))
			s := harvesting(t, p)
			_, bad := s.syncPasses(1)
			assert.Equal(t, "urn:x:two", bad[0].Entry)
			assert.Contains(t, bad[0].Error, "/two: the record urn:x:one describes the topic "+si("a")+" already")
			s.holds(p, first)
			s.syncPasses(1)
			s.holds(p, first)

			p.feed(dead("one", 3), live("two", 2, "two"))
			s.syncQuiet()
			s.holds(p, second)
			p.feed(dead("one", 3), live("two", 2, "two"), dead("two", 4))
			s.syncQuiet()
			s.holds(p)
		})
	}
}

// What a record is about may change, also such that two of them change places.
func TestRecordsThatAreAboutOthersNow(t *testing.T) {
	t.Parallel()
	p := newProducer(t)
	p.put("one", doc(topic("a", "A by one")))
	p.put("two", doc(topic("b", "B by two")))
	p.feed(live("one", 1, "one"), live("two", 2, "two"))
	s := harvesting(t, p)
	s.syncQuiet()

	p.put("one", doc(topic("c", "C by one")))
	p.feed(live("one", 3, "one"), live("two", 2, "two"))
	s.syncQuiet()
	s.holds(p, topic("c", "C by one"), topic("b", "B by two"))

	p.put("one", doc(topic("b", "B by one"))) // a chain
	p.put("two", doc(topic("d", "D by two")))
	p.feed(live("one", 4, "one"), live("two", 5, "two"))
	s.syncQuiet()
	s.holds(p, topic("b", "B by one"), topic("d", "D by two"))

	p.put("one", doc(topic("d", "D by one"))) // a circle
	p.put("two", doc(topic("b", "B by two")))
	p.feed(live("one", 6, "one"), live("two", 7, "two"))
	s.syncQuiet()
	s.holds(p, topic("d", "D by one"), topic("b", "B by two"))

	p.put("one", doc(topic("b", "B by one"))) // but now both are about one
	p.feed(live("one", 8, "one"), live("two", 7, "two"))
	s.syncPasses(1)
	s.holds(p, topic("b", "B by two"))
	p.feed(live("one", 8, "one"), dead("two", 9))
	s.syncQuiet()
	s.holds(p, topic("b", "B by one"))
}

// The status determines the outcome.
func TestStatusOfRecords(t *testing.T) {
	t.Parallel()
	p := newProducer(t)
	p.put("a", doc(topic("a", "A")))
	p.feed(live("a", 1, "a"), live("b", 2, "b"))
	s := harvesting(t, p)
	states := func() (all []status.State) {
		list, err := status.Named(p.t.Context(), s.db, s.Now())
		require.NoError(t, err)
		return append(all, list[0].State)
	}
	assert.Equal(t, []status.State{status.NotLoaded}, states())
	s.syncPasses(1)
	assert.Equal(t, []status.State{status.Incomplete}, states())
	p.fail("feed", http.StatusInternalServerError)
	s.syncFails()
	assert.Equal(t, []status.State{status.RoundFailed}, states())
	p.feed(live("a", 1, "a"), dead("b", 3))
	s.syncQuiet()
	assert.Equal(t, []status.State{status.InStep}, states())
	require.Equal(t, store.Protocol("atom-pmh"), s.known("egov").Protocol)
}
