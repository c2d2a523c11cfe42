package feeds

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestFindKnowsEveryDialect(t *testing.T) {
	const cwa, v2012 = "http://www.egovpt.org/sdshare", "http://www.sdshare.org/2012/core/"
	spellings := map[Rel][]string{
		RelTopicMapFeed: {"topicmapfeed", "TopicMapFeed", cwa + "/collectionfeed", cwa + "collectionfeed", v2012 + "collectionfeed", RelSDShareCollectionFeed, RelCWACollectionFeed},
		RelFragmentFeed: {"fragmentfeed", cwa + "/fragmentsfeed", cwa + "fragmentsfeed", v2012 + "fragmentsfeed", RelSDShareFragmentsFeed, RelCWAFragmentsFeed},
		RelSnapshotFeed: {"snapshotfeed", cwa + "/snapshotsfeed", cwa + "snapshotsfeed", v2012 + "snapshotsfeed", RelSDShareSnapshotsFeed, RelCWASnapshotsFeed},
		RelTopicMapData: {
			"topicmapdata", cwa + "/fragment", cwa + "/snapshot", cwa + "fragment", cwa + "snapshot",
			v2012 + "fragment", v2012 + "snapshot", RelSDShareFragment, RelSDShareSnapshot, RelCWAFragment, RelCWASnapshot, "HTTP://WWW.sdshare.org/2012/core/Fragment",
		},
		RelCurrentSnapshot: {"https://github.com/tmshare/tmshare/ns/1/current-snapshot"},
		"self":             {"self", "Self", "http://www.iana.org/assignments/relation/self"},
		"prev-archive":     {"prev-archive", "http://www.iana.org/assignments/relation/prev-archive"},
		"alternate":        {"", "alternate"},
		"via":              {"via"},
		"":                 {"alternate"},
	}
	for rel, names := range spellings {
		for _, spelled := range names {
			links := []Link{{Rel: "unrelated", Href: "http://a/0"}, {Rel: spelled, Href: "http://a/1"}}
			want := links[1:]
			f, e := Feed{Links: links}, Entry{Links: links}
			assert.Equal(t, want, f.Find(rel), "%s as %s", rel, spelled)
			assert.Equal(t, want, e.Find(rel), "%s as %s", rel, spelled)
			l, ok := f.Link(rel)
			assert.True(t, ok)
			assert.Equal(t, want[0], l)
			l, ok = e.Link(rel)
			assert.True(t, ok)
			assert.Equal(t, want[0], l)
		}
	}
	// What is near to a spelling is none.
	for _, other := range []string{"fragment", "fragmentsfeed", v2012 + "topicmapdata", v2012 + "/fragment", "http://www.sdshare.org/2012/corefragment", cwa + "/"} {
		e := Entry{Links: []Link{{Rel: other, Href: "http://a/1"}}}
		for rel := range spellings {
			assert.Empty(t, e.Find(rel), "%s as %s", rel, other)
			_, ok := e.Link(rel)
			assert.False(t, ok)
		}
	}
}

func TestFindReturnsALinkOnce(t *testing.T) {
	e := Entry{Links: []Link{
		{Rel: RelTopicMapData, Type: MediaTypeXTM1, Href: "http://a/1"},
		{Rel: RelSDShareFragment, Type: MediaTypeXTM1, Href: "http://a/1"},
		{Rel: RelTopicMapData, Type: MediaTypeXTM21, Href: "http://a/1"},
		{Rel: RelSDShareFragment, Type: MediaTypeXTM21, Href: "http://a/2"},
	}}
	assert.Equal(t, []Link{e.Links[0], e.Links[2], e.Links[3]}, e.Find(RelTopicMapData))
}
