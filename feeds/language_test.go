package feeds_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/feeds"
)

// Languages stand once, on the element from which on they hold, and are read as they were written.
func TestLanguagesOfTexts(t *testing.T) {
	alternate := []feeds.Link{{Rel: "alternate", Href: "http://x.example.org/map"}}
	f := &feeds.Feed{ID: "urn:x:feed", Title: "egov: Fragments", Subtitle: "Kunnat", Author: "Server",
		Updated: time.Unix(1, 0).UTC(), Language: "fi", TitleLanguage: "en", Entries: []feeds.Entry{
			{ID: "urn:x:1", Title: "Turku", Summary: "Lisätty", Updated: time.Unix(1, 0).UTC(), Language: "fi", Links: alternate},
			{ID: "urn:x:2", Title: "Åbo", Summary: "added", Updated: time.Unix(1, 0).UTC(), Language: "sv-fi", SummaryLanguage: "en", Links: alternate},
		}}
	var b bytes.Buffer
	require.NoError(t, f.Encode(&b))
	for element, want := range map[string]string{
		"<feed ": ` xml:lang="fi">`, "<title": ` xml:lang="en">egov: Fragments<`, "<subtitle": ">Kunnat<",
		"<entry>": "\n", `<entry xml:lang="sv-fi">`: "\n", "<summary>": "Lisätty<", "<summary ": `xml:lang="en">added<`,
	} {
		_, rest, ok := strings.Cut(b.String(), element)
		if element == "<feed " { // after its namespaces
			rest = rest[strings.Index(rest, ">")-len(want)+1:]
		}
		assert.True(t, ok && strings.HasPrefix(rest, want), "%s in %s", element, b.String())
	}
	assert.Equal(t, 4, strings.Count(b.String(), "xml:lang"))
	again, err := feeds.Decode(&b, "http://x.example.org/", feeds.Limits{})
	require.NoError(t, err)
	assert.Equal(t, f, again)

	var alone bytes.Buffer
	e := f.Entries[0]
	e.Author = "Server"
	require.NoError(t, e.Encode(&alone))
	assert.Contains(t, alone.String(), ` xml:lang="fi">`)

	for _, tag := range []string{"FI", "fin", `fi"`, "fi_FI"} {
		for part, put := range map[string]func(*feeds.Feed){
			"feed": func(f *feeds.Feed) { f.SubtitleLanguage = tag }, `entry 1 ("Turku")`: func(f *feeds.Feed) { f.Entries[0].Language = tag },
		} {
			bad := *f
			bad.Entries = append([]feeds.Entry(nil), f.Entries...)
			put(&bad)
			var invalid *feeds.InvalidError
			require.ErrorAs(t, bad.Encode(new(bytes.Buffer)), &invalid, tag)
			assert.Equal(t, part+"/xml:lang", invalid.Element)
		}
	}
}

// Tags of other servers are read in the form of ours. A value that is no tag leaves the inherited language.
func TestLanguagesOfOtherServers(t *testing.T) {
	for written, want := range map[string]string{"FI": "fi", " pt-BR\n": "pt-br", "deu": "de", "": "sv", "en_US": "sv", strings.Repeat("a", 9000): "sv"} {
		f, err := feeds.Decode(strings.NewReader(`<feed xmlns="`+feeds.NamespaceAtom+`" xml:lang="sv"><id>urn:x:f</id>
			<entry xml:lang="`+written+`"><id>urn:x:e</id><updated>2026-01-01T00:00:00Z</updated></entry></feed>`), "", feeds.Limits{})
		require.NoError(t, err)
		assert.Equal(t, "sv", f.Language)
		assert.Equal(t, want, f.Entries[0].Language, written)
	}
}
