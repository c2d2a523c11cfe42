package fetch_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/fetch"
)

// unlike returns a text that does not pack well.
func unlike(bytes int, seed uint64) string {
	random := rand.New(rand.NewPCG(seed, seed))
	var b strings.Builder
	for b.Len() < bytes {
		fmt.Fprintf(&b, "%x", random.Uint64())
	}
	return b.String()
}

// file answers with content, its ETag and ranges of it.
func file(etag, coding string, content []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", etag)
		if coding != "" {
			w.Header().Set("Content-Encoding", coding)
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
	}
}

// cut breaks an answer off after some bytes.
func cut(answer http.HandlerFunc, after int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { answer(&cutting{w, after}, r) }
}

type cutting struct {
	http.ResponseWriter
	left int
}

func (c *cutting) Write(p []byte) (int, error) {
	if len(p) <= c.left {
		c.left -= len(p)
		return c.ResponseWriter.Write(p)
	}
	_, _ = c.ResponseWriter.Write(p[:c.left])
	_ = http.NewResponseController(c.ResponseWriter).Flush()
	panic(http.ErrAbortHandler)
}

func ignoringRanges(answer http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("Range")
		r.Header.Del("If-Range")
		answer(w, r)
	}
}

// download fetches to the file and returns its content.
func download(t *testing.T, d *fetch.Download, f *fetch.Fetcher, at string, limit int64) (string, error) {
	from, err := f.From(at)
	require.NoError(t, err)
	if err := d.Fetch(context.Background(), from, fetch.Request{URL: at, Max: limit}); err != nil {
		return "", err
	}
	r, err := d.Open(limit)
	if err != nil {
		return "", err
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	return string(b), err
}

// left lists the files in the folder of a download.
func left(t *testing.T, d *fetch.Download) []string {
	files, err := filepath.Glob(filepath.Join(filepath.Dir(d.Path), "*"))
	require.NoError(t, err)
	return files
}

func inFolder(t *testing.T) *fetch.Download {
	return &fetch.Download{Path: filepath.Join(t.TempDir(), "it"), Key: "it"}
}

// A download that cannot be continued is fetched from its beginning.
func TestDownloadThatCannotBeGoneOnWithStartsOver(t *testing.T) {
	t.Parallel()
	first, second := unlike(20_000, 1), unlike(20_000, 2)
	one, two := gzipped(t, first), gzipped(t, second)
	part := func(contentRange, etag, coding string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Range", contentRange)
			w.Header().Set("ETag", etag)
			w.Header().Set("Content-Encoding", coding)
			w.WriteHeader(http.StatusPartialContent)
			_, _ = w.Write(one[5000:])
		}
	}
	rest := fmt.Sprintf("bytes 5000-%d/%d", len(one)-1, len(one))
	for name, c := range map[string]struct {
		then http.HandlerFunc // after 5000 bytes of one; then two is answered
		want string
		n    int // requests
	}{
		"the rest comes":             {file(`"1"`, "gzip", one), first, 2},
		"without an ETag":            {part(rest, "", "gzip"), first, 2},
		"without the length":         {part(fmt.Sprintf("bytes 5000-%d/*", len(one)-1), `"1"`, "gzip"), first, 2},
		"another version":            {file(`"2"`, "gzip", two), second, 2},
		"another coding":             {file(`"3"`, "", []byte(second)), second, 2},
		"a server without ranges":    {ignoringRanges(file(`"1"`, "gzip", one)), first, 2},
		"a part of another version":  {part(rest, `"2"`, "gzip"), second, 3},
		"a part in another coding":   {part(rest, `"1"`, "zstd"), second, 3},
		"another part":               {part(fmt.Sprintf("bytes 5001-%d/%d", len(one)-1, len(one)), `"1"`, "gzip"), second, 3},
		"a part of another length":   {part(fmt.Sprintf("bytes 5000-%d/%d", len(one)-1, len(one)+7), `"1"`, "gzip"), second, 3},
		"no Content-Range":           {part("", `"1"`, "gzip"), second, 3},
		"more than there should be":  {part(fmt.Sprintf("bytes 5000-%d/%d", 5009, 5010), `"1"`, "gzip"), second, 3},
		"not satisfiable":            {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(416) }, second, 3},
		"not modified":               {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(304) }, second, 3},
		"broken off and gone on":     {cut(file(`"1"`, "gzip", one), 100), second, 3},
		"broken off, without ranges": {cut(ignoringRanges(file(`"1"`, "gzip", one)), 100), second, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := 0
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				switch n++; n {
				case 1:
					cut(file(`"1"`, "gzip", one), 5000)(w, r)
				case 2:
					assert.Equal(t, "bytes=5000-", r.Header.Get("Range"))
					assert.Equal(t, `"1"`, r.Header.Get("If-Range"))
					c.then(w, r)
				default:
					file(`"2"`, "gzip", two)(w, r)
				}
			})
			got, err := download(t, inFolder(t), fetcher(), s.URL, 1<<20)
			require.NoError(t, err)
			assert.True(t, got == c.want)
			assert.Equal(t, c.n, n)
		})
	}
}

// The number of tries is unlimited as long as each makes progress.
func TestDownloadGoesOnAsLongAsItGetsFarther(t *testing.T) {
	t.Parallel()
	text := unlike(20_000, 1)
	n := 0
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		n++
		cut(file(`"1"`, "", []byte(text)), 1000)(w, r)
	})
	d := inFolder(t)
	var done, total int64
	d.Progress = func(a, b int64) { done, total = a, b }
	got, err := download(t, d, fetcher(func(f *fetch.Fetcher) { f.Tries = 2 }), s.URL, 1<<20)
	require.NoError(t, err)
	assert.True(t, got == text)
	assert.GreaterOrEqual(t, n, 20)
	assert.EqualValues(t, []int64{int64(len(text)), int64(len(text))}, []int64{done, total})
}

// They end when none makes progress.
func TestDownloadThatGetsNoFartherEnds(t *testing.T) {
	t.Parallel()
	n := 0
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		n++
		cut(file(`"1"`, "", []byte(unlike(20_000, 1))), 1000*(1-min(n-1, 1)))(w, r)
	})
	_, err := download(t, inFolder(t), fetcher(func(f *fetch.Fetcher) { f.Tries = 2 }), s.URL, 1<<20)
	var failed *fetch.Error
	require.ErrorAs(t, err, &failed)
	assert.True(t, failed.Transient())
	assert.Equal(t, 4, n, "two tries that got farther together, and two that did not")
}

// Another process continues a download with the same key.
func TestDownloadIsTakenUpByItsKey(t *testing.T) {
	t.Parallel()
	text := []byte(unlike(20_000, 1))
	for key, asked := range map[string]string{"it": "bytes=5000-", "another": ""} {
		var ranges []string
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			ranges = append(ranges, r.Header.Get("Range")+r.Header.Get("If-None-Match"))
			if len(ranges) == 1 {
				w = &cutting{w, 5000}
			}
			file(`"1"`, "", text)(w, r)
		})
		d := inFolder(t)
		once := fetcher(func(f *fetch.Fetcher) { f.Tries = 1 })
		from, err := once.From(s.URL)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		d.Progress = func(done, _ int64) {
			if done == 5000 {
				cancel()
			}
		}
		require.Error(t, d.Fetch(ctx, from, fetch.Request{URL: s.URL, Max: 1 << 20}))
		require.Len(t, left(t, d), 2)
		d = &fetch.Download{Path: d.Path, Key: key}
		got, err := download(t, d, once, s.URL, 1<<20)
		require.NoError(t, err)
		assert.True(t, got == string(text))
		assert.Equal(t, s.URL, d.URL())
		assert.Equal(t, []string{"", asked}, ranges)

		d = &fetch.Download{Path: d.Path, Key: key} // complete, and known to be
		got, err = download(t, d, once, s.URL, 1<<20)
		require.NoError(t, err)
		assert.True(t, got == string(text))
		assert.Equal(t, []string{"", asked, `"1"`}, ranges)
		require.NoError(t, d.Remove())
		assert.Empty(t, left(t, d))
	}
}

// A weak ETag does not guarantee equal bytes.
func TestWeakETagIsNotGoneOnFrom(t *testing.T) {
	t.Parallel()
	text := unlike(20_000, 1)
	for _, etag := range []string{`W/"1"`, ""} {
		var ranges []string
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			ranges = append(ranges, r.Header.Get("Range"))
			if len(ranges) == 1 {
				w = &cutting{w, 5000}
			}
			file(etag, "gzip", gzipped(t, text))(w, r)
		})
		got, err := download(t, inFolder(t), fetcher(), s.URL, 1<<20)
		require.NoError(t, err)
		assert.True(t, got == text)
		assert.Equal(t, []string{"", ""}, ranges)
	}
}

func TestDownloadsOfAllCodingsAreRead(t *testing.T) {
	t.Parallel()
	text := unlike(20_000, 1)
	for coding, content := range map[string][]byte{
		"": []byte(text), "identity": []byte(text), "gzip": gzipped(t, text), "X-GZIP": gzipped(t, text), "zstd": zstandard(t, text),
	} {
		s := serve(t, file(`"1"`, coding, content))
		got, err := download(t, inFolder(t), fetcher(), s.URL, 1<<20)
		require.NoError(t, err)
		assert.True(t, got == text)
	}
	d := inFolder(t)
	_, err := download(t, d, fetcher(), serve(t, file(`"1"`, "br", []byte("?"))).URL, 1<<20)
	assert.ErrorContains(t, err, `the content coding "br" is not known`)
	assert.Empty(t, left(t, d))
}

// The received and the unpacked size of a download are limited.
func TestDownloadsAreBounded(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("x", 2000)
	n := 0
	d := inFolder(t)
	plain := serve(t, func(w http.ResponseWriter, r *http.Request) {
		n++
		file(`"1"`, "", []byte(text))(w, r)
	})
	_, err := download(t, d, fetcher(), plain.URL, 1000)
	assert.ErrorContains(t, err, "longer than the limit of 1000 bytes")
	assert.Equal(t, 1, n)
	assert.Empty(t, left(t, d))
	_, err = download(t, d, fetcher(), serve(t, file(`"1"`, "gzip", gzipped(t, text))).URL, 1000)
	assert.ErrorContains(t, err, "longer than the limit of 1000 bytes")
}

// A nearly full disk ends a download in time.
func TestDownloadAsksForRoom(t *testing.T) {
	t.Parallel()
	s := serve(t, file(`"1"`, "", make([]byte, 17<<20)))
	full := errors.New("full")
	d := inFolder(t)
	asked := 0
	d.CheckSpace = func() error { asked++; return full }
	_, err := download(t, d, fetcher(func(f *fetch.Fetcher) { f.Tries = 1 }), s.URL, 1<<30)
	assert.ErrorIs(t, err, full)
	assert.Equal(t, 1, asked)
	info, err := os.Stat(d.Path)
	require.NoError(t, err)
	assert.LessOrEqual(t, info.Size(), int64(16<<20))
}

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

// Servers may use either accepted content coding. Limits apply to unpacked bytes, and a damaged body is fetched again.
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
