package client_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tmshare/tmshare/internal/client"
)

const maxRereads = 3

// A feed costs a round no more than its limits allow, and the message names the limit.
func TestHostileFeeds(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 9000)
	for name, c := range map[string]struct {
		change func(*client.Config)
		feed   func(s *site)
		has    []string // besides
		says   string
	}{
		"many entries": {
			change: func(c *client.Config) { c.MaxEntries = 3 },
			feed: func(s *site) {
				s.feed("/feed", declared, s.entryOf(1, "t1", "1"), s.entryOf(2, "t2", "2"), s.entryOf(3, "t3", "3"), s.entryOf(4, "t4", "4"))
			},
			says: "more than 3 entries that are new: either its server makes them up, or a higher --max-entries takes them",
		},
		"many bytes": {
			change: func(c *client.Config) { c.MaxFeed = 3 << 20 },
			feed: func(s *site) {
				for i, path := range []string{"/feed", "/2", "/3", "/4"} {
					s.feed(path, declared+fmt.Sprintf(`<link rel="prev-archive" href="/%d"/>`, i+2)+"<!--"+strings.Repeat("x", 1000_000)+"-->")
				}
			},
			says: "have more than 3 MB",
		},
		"many that are gone": {
			change: func(c *client.Config) { c.MaxQuarantine = 3 },
			feed: func(s *site) {
				var entries []string
				for i := range 4 {
					entries = append(entries, strings.Replace(s.entryOf(4-i, fmt.Sprint("t", 4-i), "T"), "/data/", "/nothing/", 1))
				}
				s.feed("/feed", declared, append(entries, s.entryOf(0, "t0", "T0"))...)
			},
			says: "more than 3 topics of the source cannot be had, the last one: ",
		},
		"one time": {
			feed: func(s *site) {
				var entries []string
				for i := range 600 {
					e := s.entry(1, "<t:TopicSI>"+si("t")+"</t:TopicSI>", "t", "T")
					entries = append(entries, strings.Replace(e, "urn:e1", fmt.Sprintf("urn:%d%s", i, long[:7500]), 1))
				}
				s.feed("/feed", declared, append(entries, s.entryOf(0, "t0", "T0"))...)
			},
			has:  []string{topic("t", "T")},
			says: "too many entries of the feed have one time (2024-01-01T00:00:01.000000Z)",
		},
		"a time that UTC has not": {
			feed: func(s *site) {
				s.feed("/feed", declared, strings.Replace(s.entryOf(1, "t", "T"), "2024-01-01T00:00:01Z", "9999-12-31T23:59:59-01:00", 1))
			},
			says: "is not a date and time",
		},
		"a long id": {
			feed: func(s *site) {
				s.feed("/feed", declared, strings.Replace(s.entryOf(1, "t", "T"), "urn:e1", "urn:"+long, 1))
			},
			says: "exceeds Limits.MaxLocator, which is 8192",
		},
		"a long name of a topic": {
			feed: func(s *site) { s.feed("/feed", declared, s.entryOf(1, long, "T")) },
			says: "exceeds Limits.MaxLocator, which is 8192",
		},
		"a long link": {
			feed: func(s *site) { s.feed("/feed", declared+`<link rel="prev-archive" href="/`+long+`"/>`) },
			says: "exceeds Limits.MaxLocator, which is 8192",
		},
		"many links": {
			feed: func(s *site) {
				s.feed("/feed", declared, strings.Replace(s.entryOf(1, "t", "T"), "</entry>", strings.Repeat(`<link href="/"/>`, 1000)+"</entry>", 1))
			},
			says: "exceeds Limits.MaxLinks, which is 1000",
		},
		"many names of a topic": {
			feed: func(s *site) {
				s.feed("/feed", declared, s.entry(1, strings.Repeat("<t:TopicSI>urn:x</t:TopicSI>", 1001), "t", "T"))
			},
			says: "exceeds Limits.MaxLinks, which is 1000",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.feed("/feed", declared, s.entryOf(0, "t0", "T0"))
			f := following(t, s)
			f.sync()
			c.feed(s)
			if c.change != nil {
				f.configure(c.change)
			}
			f.LimitQueue(1<<20, 1000)
			_, err := f.syncFails()
			assert.ErrorContains(t, err, c.says)
			f.hasForeign(append([]string{topic("t0", "T0")}, c.has...)...)
		})
	}
}

// Entries that identify topics by subject locators only, or not at all, and entries of any year, are valid. Those with
// missing fragments are in quarantine, for which the feed is read again a few times only.
func TestEntriesOfAllKindsWhoseFragmentsAreGone(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	years := []string{"0001-01-01T00:00:00", "2024-01-01T00:00:01", "9999-12-31T23:59:59"}
	names := []string{"<t:TopicSL>" + si("a") + "</t:TopicSL>", "<t:TopicII>" + si("b") + "</t:TopicII>", "", "<t:TopicSI>" + si("c") + "</t:TopicSI>"}
	var entries []string
	for i := range 40 {
		e := s.entry(i, names[i%len(names)], "t", "T")
		entries = append(entries, strings.Replace(e, e[strings.Index(e, "<updated>")+9:strings.Index(e, "Z</updated>")], years[i%len(years)], 1))
	}
	s.feed("/feed", declared, entries...)
	f := following(t, s)
	s.BreakWith(damage(func(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/data/") }, always, answering(http.StatusGone)))
	r, _ := f.syncPasses(3 + 10) // the last of each topic, and those without a topic
	assert.Equal(t, 40, r.Entries)
	assert.Equal(t, 1+1+maxRereads, times(s.Seen(), "/feed"), "to find the snapshots, then for the entries")
}
