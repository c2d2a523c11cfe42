package fetch_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func gzipped(t *testing.T, text string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	return b.Bytes()
}

func zstandard(t *testing.T, text string) []byte {
	z, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	return z.EncodeAll([]byte(text), nil)
}

// Servers may pack what they send in either way that is asked for. Limits count
// what is unpacked, and what is damaged is fetched again.
func TestContentCodings(t *testing.T) {
	t.Parallel()
	text, long := strings.Repeat("hello ", 100), strings.Repeat("x", 2000)
	for coding, pack := range map[string]func(*testing.T, string) []byte{
		"": func(_ *testing.T, s string) []byte { return []byte(s) }, "identity": func(_ *testing.T, s string) []byte { return []byte(s) },
		"gzip": gzipped, "X-GZIP": gzipped, "zstd": zstandard,
	} {
		damaged := coding == "" || coding == "identity" // which cannot be seen of these
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			assert.Equal(t, "gzip, zstd;q=0.9", r.Header.Get("Accept-Encoding"))
			if coding != "" {
				w.Header().Set("Content-Encoding", coding)
			}
			b := pack(t, text)
			switch {
			case r.URL.Path == "/long":
				b = pack(t, long)
			case !damaged:
				damaged = true
				b = b[:len(b)-5]
			}
			_, _ = w.Write(b)
		})
		got, a, err := get(t, fetcher(), s.URL)
		require.NoError(t, err, coding)
		assert.Equal(t, text, got)
		assert.EqualValues(t, len(text), a.Body.Size())
		assert.True(t, damaged)
		_, _, err = get(t, fetcher(), s.URL+"/long")
		assert.ErrorContains(t, err, "longer than the limit of 1000 bytes", coding)
	}
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Encoding", "br") })
	_, _, err := get(t, fetcher(), s.URL)
	assert.ErrorContains(t, err, `the content coding "br" is not known`)
}
