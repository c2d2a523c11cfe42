package feeds

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Entries state their commit. How fragments are written stands at the feed once, and at the entries that differ.
func TestEntriesStateTheirCommitAndHowTheyAreWritten(t *testing.T) {
	f := fragmentsFeed()
	f.Rendering = 1
	f.Entries[0].Commit, f.Entries[0].Rendering = 18446744073709551615, 2
	f.Entries[1].Commit, f.Entries[1].Rendering, f.Entries[1].Omits = 7, 1, true
	var b bytes.Buffer
	require.NoError(t, f.Encode(&b))
	assert.Equal(t, 1, strings.Count(b.String(), `own:rendering="1"`))
	assert.Contains(t, b.String(), `<entry own:commit="18446744073709551615" own:rendering="2">`)
	assert.Contains(t, b.String(), `<entry own:commit="7" own:omits="instances">`)
	read, err := Decode(&b, "http://server.example/", Limits{})
	require.NoError(t, err)
	assert.Equal(t, uint64(1), read.Rendering)
	for i := range f.Entries {
		assert.Equal(t, f.Entries[i].Commit, read.Entries[i].Commit)
		assert.Equal(t, f.Entries[i].Rendering, read.Entries[i].Rendering)
		assert.Equal(t, f.Entries[i].Omits, read.Entries[i].Omits)
	}
	alone := read.Entries[1]
	alone.Author, b = "A", bytes.Buffer{}
	require.NoError(t, alone.Encode(&b))
	assert.Contains(t, b.String(), ` own:commit="7" own:rendering="1" own:omits="instances">`)
}

func TestNumbersOfCommitsAndRenderingsAreNumbers(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, value := range []string{"", "0", "-1", "1.0", "x", "18446744073709551616", " 1"} {
		for _, where := range []string{"feed own:rendering", "entry own:rendering", "entry own:commit"} {
			element, attribute, _ := strings.Cut(where, " ")
			doc := fmt.Sprintf(`<feed xmlns="%s" xmlns:own="%s"><id>urn:x:f</id><entry><id>urn:x:e</id><updated>%s</updated></entry></feed>`, NamespaceAtom, NamespaceOwn, FormatTime(at))
			doc = strings.Replace(doc, "<"+element, fmt.Sprintf("<%s %s=%q", element, attribute, value), 1)
			_, err := Decode(strings.NewReader(doc), "http://server.example/", Limits{})
			var invalid *InvalidError
			require.ErrorAs(t, err, &invalid, "%s %q", where, value)
			assert.Contains(t, err.Error(), "no whole number above 0")
		}
	}
}
