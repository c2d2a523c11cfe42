package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/testkit/served"
)

// Feeds state the language of their map, and that of the server's own texts. Closed documents never do, because the
// setting may change. Without a language of the map, none is stated.
func TestFeedsStateTheLanguageOfTheMap(t *testing.T) {
	t.Parallel()
	n := start(t, served.DocumentSize(2))
	n.Publish("small", served.Small())
	n.MustPut("small", served.Small("Oslo", "Christiania", "Bergen", "Bjørgvin", "Norway", "Norge"))
	closed := n.Feed("/topicmaps/small/fragments").Link(t, "prev-archive")
	const since = "/topicmaps/small/fragments?since=2020-01-01T00:00:00Z"
	changing := []string{"/topicmaps", "/topicmaps/small", "/topicmaps/small.atom", "/topicmaps/small/fragments",
		"/topicmaps/small/snapshots", since, "/topicmaps/small/records", "/topicmaps/small/records/complete"}
	before := map[string]served.Answer{}
	closedRecords := n.Feed("/topicmaps/small/records").Link(t, "prev-archive")
	for _, url := range append(changing, closed, closedRecords) {
		before[url] = n.MustGet(url)
		assert.NotContains(t, string(before[url].Bytes), "xml:lang", url)
	}

	for _, language := range []string{"fi", "sv-FI", ""} {
		tag := strings.ToLower(language)
		n.MustSet("small", `{"language": "`+language+`"}`)
		for _, url := range changing {
			a := n.Get(url, "If-None-Match", before[url].Header.Get("ETag"))
			assert.Equal(t, http.StatusOK, a.StatusCode, "%s in %q is another document", url, language)
			before[url] = a
			if language == "" {
				assert.NotContains(t, string(a.Bytes), "xml:lang", url)
			}
		}
		for _, url := range []string{closed, closedRecords} {
			same := n.Get(url, "If-None-Match", before[url].Header.Get("ETag"))
			assert.Equal(t, http.StatusNotModified, same.StatusCode, "what is closed")
			assert.Equal(t, before[url].Bytes, n.MustGet(url).Bytes)
		}
		if language == "" {
			continue
		}
		for _, url := range []string{"/topicmaps/small/fragments", "/topicmaps/small/snapshots", since,
			"/topicmaps/small/records", "/topicmaps/small/records/complete"} {
			f := n.Decoded(url)
			assert.Equal(t, []string{tag, "en", ""}, []string{f.Language, f.TitleLanguage, f.SubtitleLanguage}, url)
		}
		assert.Equal(t, tag, n.Decoded("/topicmaps/small/fragments").Entries[0].Language)
		feed := n.Decoded("/topicmaps/small")
		assert.Equal(t, []string{tag, "", "en"}, []string{feed.Language, feed.TitleLanguage, feed.SubtitleLanguage})
		feed.Entries = append(feed.Entries, n.Decoded("/topicmaps/small/snapshots").Entries...)
		require.Len(t, feed.Entries, 3)
		for _, e := range feed.Entries {
			assert.Equal(t, []string{"en", ""}, []string{e.Language, e.SummaryLanguage}, e.Title)
		}
		maps := n.Decoded("/topicmaps")
		assert.Empty(t, maps.Language)
		assert.Equal(t, []string{tag, "en"}, []string{maps.Entries[0].Language, maps.Entries[0].SummaryLanguage})
	}
}

// What the owner of a map has written is in the language of the map.
func TestSummariesAreInTheLanguageOfTheMap(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.Publish("small", served.Small())
	n.MustSet("small", `{"language": "fi", "title": "Kaupungit", "summary": "Norjan kaupunkeja"}`)
	f := n.Decoded("/topicmaps/small")
	assert.Equal(t, []string{"fi", "", ""}, []string{f.Language, f.TitleLanguage, f.SubtitleLanguage})
	e := n.Decoded("/topicmaps").Entries[0]
	assert.Equal(t, feeds.Entry{Title: "Kaupungit", Summary: "Norjan kaupunkeja", Language: "fi"},
		feeds.Entry{Title: e.Title, Summary: e.Summary, Language: e.Language, SummaryLanguage: e.SummaryLanguage})
}
