package server_test

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mmcdole/gofeed"
	"github.com/mmcdole/gofeed/atom"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/testkit/served"
)

// sdshareClient is a typical client of SDShare: it knows the names of one generation and Atom, and no others. It starts
// at the overview. That of 2012 requests changes since a time in whole seconds without a zone; that of the CWA era
// reads the feed.
type sdshareClient struct {
	*node
	rels      string // prefix of link relations
	prefix    string // that the last feed declares
	fragments string // URL of the fragments feed
	recorded  time.Time
	topics    map[string][]byte // resource → its last fragment
}

type sdshareFeed struct {
	Prefix  string         `xml:"http://www.egovpt.org/sdshare ServerSrcLocatorPrefix"`
	Links   []served.Link  `xml:"http://www.w3.org/2005/Atom link"`
	Entries []sdshareEntry `xml:"http://www.w3.org/2005/Atom entry"`
}

type sdshareEntry struct {
	Updated   time.Time     `xml:"http://www.w3.org/2005/Atom updated"`
	Links     []served.Link `xml:"http://www.w3.org/2005/Atom link"`
	Resources []string      `xml:"http://www.sdshare.org/2012/core/ resource"`
	TopicSIs  []string      `xml:"http://www.egovpt.org/sdshare TopicSI"`
}

func (c *sdshareClient) feed(url string) (f sdshareFeed) {
	c.T.Helper()
	require.NoError(c.T, xml.Unmarshal(c.MustGet(url).Bytes, &f))
	return f
}

// the returns the one link with a relation and a type among links.
func (c *sdshareClient) the(links []served.Link, rel, mediaType string) string {
	c.T.Helper()
	var found []string
	for _, l := range links {
		if l.Rel == rel && l.Type == mediaType {
			found = append(found, l.Href)
		}
	}
	require.Len(c.T, found, 1, "links with rel %s and type %s", rel, mediaType)
	return found[0]
}

// subscribe takes the snapshot of the first collection and finds its changes.
func (c *sdshareClient) subscribe(overview string) (snapshot []byte) {
	c.T.Helper()
	collection := c.the(c.feed(overview).Entries[0].Links, c.rels+"collectionfeed", served.AtomType)
	var links []served.Link
	for _, e := range c.feed(collection).Entries {
		links = append(links, e.Links...)
	}
	c.fragments = c.the(links, c.rels+"fragmentsfeed", served.AtomType)
	newest := c.feed(c.the(links, c.rels+"snapshotsfeed", served.AtomType)).Entries[0]
	c.recorded = newest.Updated
	return c.MustGet(c.the(newest.Links, c.rels+"snapshot", served.XTM1Type)).Bytes
}

// poll fetches the fragments changed since the last call.
func (c *sdshareClient) poll() (entries int) {
	c.T.Helper()
	next := c.fragments
	if c.rels == served.SDShare {
		next += "?since=" + url.QueryEscape(c.recorded.UTC().Format("2006-01-02T15:04:05"))
	}
	for next != "" {
		f := c.feed(next)
		c.prefix = f.Prefix
		for _, e := range slices.Backward(oldestLast(f.Entries)) {
			named := e.Resources
			if c.rels != served.SDShare {
				if named = e.TopicSIs; e.Updated.Before(c.recorded) {
					continue
				}
			}
			require.Len(c.T, named, 1)
			c.topics[named[0]] = c.MustGet(c.the(e.Links, c.rels+"fragment", served.XTM1Type)).Bytes
			if e.Updated.After(c.recorded) {
				c.recorded = e.Updated
			}
			entries++
		}
		next = ""
		for _, l := range f.Links {
			if l.Rel == "next" && l.Type == served.AtomType {
				next = l.Href
			}
		}
	}
	return entries
}

// oldestLast puts entries into the order of TMShare.
func oldestLast(entries []sdshareEntry) []sdshareEntry {
	return slices.SortedStableFunc(slices.Values(entries), func(a, b sdshareEntry) int { return b.Updated.Compare(a.Updated) })
}

func TestClientOfSDShareFollows(t *testing.T) {
	t.Parallel()
	for name, rels := range map[string]string{"2012": served.SDShare, "CWA": served.CWA + "/"} {
		t.Run(name, func(t *testing.T) { t.Parallel(); clientOfSDShareFollows(t, rels) })
	}
}

func clientOfSDShareFollows(t *testing.T, rels string) {
	now := served.NewClock()
	n := startAt(t, now, served.DocumentSize(30))
	n.Publish("small", served.Small())
	c := &sdshareClient{node: n, rels: rels, topics: map[string][]byte{}}
	assert.Equal(t, n.Expected("small", served.Small()), served.Canonical(t, c.subscribe(n.URL("/topicmaps")), n.SP("small")))
	now.Advance(time.Hour)
	for _, step := range []string{"A", "B", "C"} {
		n.MustPut("small", served.Small("Oslo", "Oslo "+step, "Bergen", "Bergen "+step, "City", "City "+step, "part", "part "+step))
		c.poll()
		for _, name := range []string{"oslo", "bergen", "city", "role-1"} {
			resource := "http://psi.example.org/" + name
			current := n.MustGet(n.find("small", resource).Header.Get("Location") + ".xtm1")
			assert.Equal(t, string(current.Bytes), string(c.topics[resource]), "%s after %s", name, step)
			assert.Contains(t, string(c.topics[resource]), " "+step+"</baseNameString>")
		}
		now.Advance(time.Hour)
	}
	n.Delete("small", "http://psi.example.org/tromsø")
	assert.Equal(t, n.SP("small"), c.prefix)
	assert.LessOrEqual(t, c.poll(), 5, "what it has not seen, and that of the second when it last looked")
	deleted := string(c.topics["http://psi.example.org/troms%C3%B8"]) + string(c.topics["http://psi.example.org/tromsø"])
	assert.Contains(t, deleted, "<topic ")
	assert.False(t, strings.Contains(deleted, "baseName"), "an empty topic")
}

// Names of one generation do not conflict with those of another: each entry has one alternate link of a type, and all
// dialects have the same targets.
func TestDialectsLeadToTheSame(t *testing.T) {
	t.Parallel()
	n := start(t, served.DocumentSize(3))
	n.Publish("small", served.Small())
	w := n.walk("/topicmaps")
	pairs := map[string][]string{
		"topicmapfeed": {"collectionfeed"}, "fragmentfeed": {"fragmentsfeed"}, "snapshotfeed": {"snapshotsfeed"},
		"topicmapdata": {"fragment", "snapshot"},
	}
	seen := map[string]int{}
	for _, d := range w.feeds {
		for _, e := range append([]served.Document{*d}, d.Entries...) {
			for ours, theirs := range pairs {
				for _, namespace := range []string{served.SDShare, served.CWA + "/"} {
					var links map[string]string
					for _, name := range theirs {
						if l := e.Typed(t, namespace+name); len(l) > 0 {
							links = l
							seen[namespace+name]++
						}
					}
					if have := e.Typed(t, ours); len(have) > 0 {
						assert.Equal(t, have, links, "%s of %s", ours, e.Titles[0])
					} else {
						assert.Empty(t, links)
					}
				}
			}
		}
	}
	for _, names := range pairs {
		for _, name := range names {
			assert.Positive(t, seen[served.SDShare+name], name)
			assert.Equal(t, seen[served.SDShare+name], seen[served.CWA+"/"+name], name)
		}
	}
}

// A feed reader that others have written shows our feeds, and walks them.
func TestFeedReaderOfOthersReadsEveryFeed(t *testing.T) {
	t.Parallel()
	n := start(t, served.DocumentSize(4))
	n.Publish("small", served.Small())
	n.MustPut("small", served.Small("Oslo", "Christiania", "Bergen", ""))
	all, documents := n.History("/topicmaps/small/fragments")
	reader := gofeed.NewParser()

	seen := 0
	for _, ours := range documents {
		f, err := reader.ParseURL(ours.Link(t, "self"))
		require.NoError(t, err)
		assert.Equal(t, "atom", f.FeedType)
		assert.Equal(t, ours.Titles[0], f.Title)
		require.NotNil(t, f.UpdatedParsed)
		assert.True(t, served.At(t, ours.Updated()).Equal(*f.UpdatedParsed))
		require.Len(t, f.Authors, 1)
		assert.Equal(t, "TMShare Server", f.Authors[0].Name)
		for i, item := range f.Items {
			e := all[seen+i]
			assert.Equal(t, e.ID(), item.GUID)
			assert.Equal(t, e.Titles[0], item.Title)
			require.NotNil(t, item.UpdatedParsed)
			assert.True(t, served.At(t, e.Updated()).Equal(*item.UpdatedParsed))
			assert.Contains(t, e.Typed(t, "alternate"), served.XTM1Type)
			opens := cmp.Or(e.Typed(t, "alternate")["text/html"], e.Typed(t, "alternate")[served.XTM1Type])
			assert.Equal(t, opens, item.Link, "what a reader opens: the page, in the recent document")
			assert.Equal(t, e.TopicSI[0], item.Extensions["tmshare"]["TopicSI"][0].Value)
			assert.Equal(t, e.TopicSI[0], item.Extensions["sdshare"]["resource"][0].Value)
		}
		seen += len(f.Items)
	}
	assert.Equal(t, len(all), seen)

	for url, entries := range map[string]int{"/topicmaps": 1, "/topicmaps/small": 2, "/topicmaps/small/snapshots": 1, "/topicmaps/small/fragments?since=2001-01-01": 4} {
		f, err := reader.ParseURL(n.URL(url))
		require.NoError(t, err, url)
		assert.Len(t, f.Items, entries, url)
		for _, item := range f.Items {
			assert.NotEmpty(t, item.Title)
			assert.NotEmpty(t, item.Link)
		}
	}

	// By the links that its model of Atom has, back to the first entry.
	walked := 0
	for at := n.URL("/topicmaps/small/fragments"); at != ""; {
		f, err := (&atom.Parser{}).Parse(bytesOf(n, at))
		require.NoError(t, err)
		walked += len(f.Entries)
		at = ""
		for _, l := range f.Links {
			if l.Rel == "prev-archive" {
				at = l.Href
			}
		}
	}
	assert.Equal(t, len(all), walked)
}

func bytesOf(n *node, url string) *bytes.Reader { return bytes.NewReader(n.MustGet(url).Bytes) }
