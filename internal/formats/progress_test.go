package formats

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The progress of what is sent begins with a line that is written over, and ends with one that stays.
func TestProgressIsShownNowAndThen(t *testing.T) {
	for size, want := range map[int64]string{
		9 << 20: "\rmap.xtm: 1 of 9 MB sent \r\x1b[Kmap.xtm: 9 MB sent, the server is working on it\n",
		7 << 20: "",
	} {
		var shown bytes.Buffer
		p := &Progress{R: bytes.NewReader(make([]byte, size)), Out: &shown, Name: "map.xtm", Size: size, Verb: "sent", End: "the server is working on it"}
		for err := error(nil); err != io.EOF; {
			_, err = p.Read(make([]byte, 1<<20))
		}
		p.Done()
		if long := shown.String(); strings.Count(long, "sent ") > 1 { // a slow machine shows more of it
			long = long[:strings.Index(long, "sent ")+5] + long[strings.LastIndex(long, "\r"):]
			shown.Reset()
			shown.WriteString(long)
		}
		assert.Equal(t, want, shown.String())
	}
}

func TestProgressPassesOnWhatItReads(t *testing.T) {
	content := []byte("content")
	require.NoError(t, iotest.TestReader(&Progress{R: bytes.NewReader(content), Out: io.Discard}, content))
}

// A document that fails in the middle leaves no line behind.
func TestProgressIsTakenAwayWhereReadingFails(t *testing.T) {
	var shown bytes.Buffer
	p := &Progress{R: io.MultiReader(bytes.NewReader(make([]byte, 1<<20)), iotest.ErrReader(io.ErrUnexpectedEOF)), Out: &shown, Name: "map.xtm", Size: 9 << 20, Verb: "sent", End: "the server is working on it"}
	_, err := io.ReadAll(p)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	p.Done()
	assert.True(t, strings.HasPrefix(shown.String(), "\rmap.xtm: 0 of 9 MB sent "), shown.String())
	assert.True(t, strings.HasSuffix(shown.String(), "\r\x1b[K"), shown.String())
}
