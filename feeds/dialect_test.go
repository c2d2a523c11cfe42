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
