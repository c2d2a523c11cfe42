package feeds

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Openings come before the first entry, in the order in which they are stated.
func TestOpeningsOfADatabase(t *testing.T) {
	f := fragmentsFeed()
	f.Archive = false
	f.Openings = []string{"3d1a9d2e-7e0f-4a43-8d8f-6f7d8a3b1c20", "0b5cf0f1-52ac-4e0c-9a4f-4a3f5ddc5a11"}
	document := encodeString(t, f)
	first, entries, _ := strings.Cut(document, "<entry>")
	assert.Equal(t, 2, strings.Count(first, "<own:opening>"))
	assert.NotContains(t, entries, "own:opening")
	got, err := Decode(strings.NewReader(document), "http://server.example/topicmaps/egov/fragments", Limits{})
	require.NoError(t, err)
	assert.Equal(t, f.Openings, got.Openings)

	// Those of another namespace are not ours, and none is empty.
	got, err = Decode(strings.NewReader(strings.ReplaceAll(document, "own:opening", "tmshare:opening")), "", Limits{})
	require.NoError(t, err)
	assert.Empty(t, got.Openings)
	_, err = Decode(strings.NewReader(strings.Replace(document, f.Openings[0], " ", 1)), "", Limits{})
	assert.ErrorContains(t, err, "feed/opening: is empty")
	_, err = Decode(strings.NewReader(strings.Replace(document, "<own:opening>", strings.Repeat("<own:opening>x</own:opening>", 1000)+"<own:opening>", 1)), "", Limits{})
	assert.ErrorContains(t, err, "MaxLinks")
}

// A topic is named in normal form, and a resource of RDF as it stands, but for spaces: then it is one of its names alone.
func TestResourcesKeepTheirIRIs(t *testing.T) {
	for names, want := range map[string][]string{
		"<t:TopicSI>http://a/%7Eme</t:TopicSI>":                                          {"http://a/~me"},
		"<s:resource>http://a/%7Eme</s:resource>":                                        {"http://a/%7Eme"},
		"<s:resource>http://a/b%20c</s:resource>":                                        {"http://a/b c"},
		"<s:resource>http://a/%7Eme</s:resource><s:resource>http://a/%7eme</s:resource>": {"http://a/%7Eme", "http://a/%7eme"},
		"<s:resource>http://a/%7Eme</s:resource><t:TopicSI>http://a/%7Eme</t:TopicSI>":   {"http://a/%7Eme"},
		"<t:TopicSI>http://a/b%20c</t:TopicSI><s:resource>http://a/b%20c</s:resource>":   {"http://a/b c"},
		"<t:TopicSI>http://a/d</t:TopicSI><s:resource>relative</s:resource>":             {"http://a/d", "relative"},
	} {
		document := `<feed xmlns="` + NamespaceAtom + `" xmlns:t="` + NamespaceTMShare + `" xmlns:s="http://www.sdshare.org/2012/core/"><id>urn:x:f</id><title>f</title><updated>2012-11-23T10:00:00Z</updated>` +
			`<entry><id>urn:x:e</id><title>e</title><updated>2012-11-23T10:00:00Z</updated><link rel="alternate" href="http://a/e"/>` + names + `</entry></feed>`
		f, err := Decode(strings.NewReader(document), "http://server.example/feed", Limits{})
		require.NoError(t, err)
		require.Len(t, f.Entries, 1, names)
		assert.Equal(t, want, f.Entries[0].TopicSI, names)
	}
}
