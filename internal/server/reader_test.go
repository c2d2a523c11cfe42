package server_test

import (
	"bytes"
	"testing"

	"github.com/mmcdole/gofeed"
	"github.com/mmcdole/gofeed/atom"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A feed reader that others have written shows our feeds, and walks them.
func TestFeedReaderOfOthersReadsEveryFeed(t *testing.T) {
	t.Parallel()
	n := start(t, documentSize(4))
	n.publish("small", small())
	n.mustPut("small", small("Oslo", "Christiania", "Bergen", ""))
	all, documents := n.history("/topicmaps/small/fragments")
	reader := gofeed.NewParser()

	seen := 0
	for _, ours := range documents {
		f, err := reader.ParseURL(ours.link(t, "self"))
		require.NoError(t, err)
		assert.Equal(t, "atom", f.FeedType)
		assert.Equal(t, ours.Titles[0], f.Title)
		require.NotNil(t, f.UpdatedParsed)
		assert.True(t, at(t, ours.updated()).Equal(*f.UpdatedParsed))
		require.Len(t, f.Authors, 1)
		assert.Equal(t, "TMShare Server", f.Authors[0].Name)
		for i, item := range f.Items {
			e := all[seen+i]
			assert.Equal(t, e.id(), item.GUID)
			assert.Equal(t, e.Titles[0], item.Title)
			require.NotNil(t, item.UpdatedParsed)
			assert.True(t, at(t, e.updated()).Equal(*item.UpdatedParsed))
			assert.Contains(t, e.typed(t, "alternate"), xtm1Type)
			assert.Equal(t, e.typed(t, "alternate")[xtm1Type], item.Link, "what a reader opens")
			assert.Equal(t, e.TopicSI[0], item.Extensions["tmshare"]["TopicSI"][0].Value)
			assert.Equal(t, e.TopicSI[0], item.Extensions["sdshare"]["resource"][0].Value)
		}
		seen += len(f.Items)
	}
	assert.Equal(t, len(all), seen)

	for url, entries := range map[string]int{"/topicmaps": 1, "/topicmaps/small": 2, "/topicmaps/small/snapshots": 1, "/topicmaps/small/fragments?since=2001-01-01": 4} {
		f, err := reader.ParseURL(n.url(url))
		require.NoError(t, err, url)
		assert.Len(t, f.Items, entries, url)
		for _, item := range f.Items {
			assert.NotEmpty(t, item.Title)
			assert.NotEmpty(t, item.Link)
		}
	}

	// By the links that its model of Atom has, back to the first entry.
	walked := 0
	for at := n.url("/topicmaps/small/fragments"); at != ""; {
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

func bytesOf(n *node, url string) *bytes.Reader { return bytes.NewReader(n.mustGet(url).body) }
