package server_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/server"
	maps "github.com/tmshare/tmshare/testdata/xtm"
)

// stored returns the fixed forms of data that is kept as it is: of a fragment,
// of a topic, of a snapshot.
func stored(t testing.TB, n *node) []string {
	t.Helper()
	urls := negotiable(t, n)
	var all []string
	for _, kind := range []string{"fragment", "topic", "snapshot"} {
		all = append(all, urls[kind]+".xtm1", urls[kind]+".xtm21")
	}
	return all
}

func TestGzipAndPlainAnswersHaveTheSameContent(t *testing.T) {
	t.Parallel()
	n := start(t)
	for _, url := range append(stored(t, n), n.url("/topicmaps/small/snapshots/current.xtm1"), n.url("/topicmaps/small/snapshots/current.xtm21")) {
		plain, packed := n.mustGet(url), n.mustGet(url, "Accept-Encoding", "gzip")
		assert.Empty(t, plain.Header.Get("Content-Encoding"))
		assert.Equal(t, "gzip", packed.Header.Get("Content-Encoding"))
		assert.Equal(t, string(plain.body), string(gunzip(t, packed.body)), url)
		assert.Equal(t, plain.Header.Get("Content-Type"), packed.Header.Get("Content-Type"))
		assert.Equal(t, "Accept, Accept-Encoding", plain.Header.Get("Vary"))
		assert.Equal(t, plain.Header.Get("Vary"), packed.Header.Get("Vary"))
	}
}

func TestGzipIsSentToThoseWhoAcceptIt(t *testing.T) {
	t.Parallel()
	n := start(t)
	for _, url := range stored(t, n) {
		for accept, packed := range map[string]bool{
			"":                           false,
			"gzip":                       true,
			"GZIP":                       true,
			"deflate, gzip;q=0.5, br":    true,
			"*":                          true,
			"identity":                   false,
			"br":                         false,
			"gzip;q=0":                   false,
			"gzip; q=0.0":                false,
			"gzip;q=0.000":               false,
			"gzip;q=0, *":                false, // the more specific one decides
			"*, gzip;q=0":                false,
			"*;q=0, gzip":                true,
			"*;q=0, identity":            false,
			"identity, gzip;q=0.5":       false,
			"zstd":                       false, // kept as gzip only
			"identity;q=0.5, gzip;q=1.0": true,
			"xgzip":                      false,
		} {
			a := n.mustGet(url, "Accept-Encoding", accept)
			assert.Equal(t, packed, a.Header.Get("Content-Encoding") == "gzip", "%q", accept)
		}
	}
}

func TestETagsAreStrongAndDifferByFormAndCoding(t *testing.T) {
	t.Parallel()
	n := start(t)
	tags := map[string]string{}
	for _, url := range stored(t, n) {
		if strings.Contains(url, "/topics/") {
			continue // the bytes of the fragment
		}
		for _, coding := range []string{"identity", "gzip"} {
			a := n.mustGet(url, "Accept-Encoding", coding)
			tag := a.Header.Get("ETag")
			assert.Regexp(t, `^"[^"]+"$`, tag)
			assert.Empty(t, tags[tag], "%s has the tag of %s", url, tags[tag])
			tags[tag] = url
			assert.Equal(t, tag, n.mustGet(url, "Accept-Encoding", coding).Header.Get("ETag"), "the same again")
		}
	}
	assert.Len(t, tags, 8)
}

func TestDataThatIsKnownIsNotSentAgain(t *testing.T) {
	t.Parallel()
	n := start(t)
	for _, url := range stored(t, n) {
		for _, coding := range []string{"identity", "gzip"} {
			a := n.mustGet(url, "Accept-Encoding", coding)
			tag := a.Header.Get("ETag")
			for _, given := range []string{tag, "W/" + tag, `"a", ` + tag + `,"b"`, "*"} {
				for _, method := range []string{http.MethodGet, http.MethodHead} {
					again := n.do(method, url, nil, "Accept-Encoding", coding, "If-None-Match", given)
					assert.Equal(t, http.StatusNotModified, again.StatusCode, "%s %s %s", coding, url, given)
					assert.Empty(t, again.body)
					for _, h := range []string{"ETag", "Cache-Control", "Vary"} {
						assert.Equal(t, a.Header.Get(h), again.Header.Get(h), h)
					}
				}
			}
			other := map[string]string{"gzip": "identity", "identity": "gzip"}[coding]
			assert.Equal(t, http.StatusOK, n.get(url, "Accept-Encoding", other, "If-None-Match", tag).StatusCode, "known in the other coding only")
			assert.Equal(t, http.StatusOK, n.get(url, "Accept-Encoding", coding, "If-None-Match", `"x"`).StatusCode)
		}
	}
}

// A failed precondition must not be kept in the place of the data.
func TestFailedPreconditionIsNotCached(t *testing.T) {
	t.Parallel()
	n := start(t)
	for _, url := range stored(t, n) {
		a := n.get(url, "Accept-Encoding", "gzip", "If-Match", `"x"`)
		assert.Equal(t, http.StatusPreconditionFailed, a.StatusCode)
		require.NoError(t, a.err)
		assert.Equal(t, "no-store", a.Header.Get("Cache-Control"))
		assert.Empty(t, a.Header.Get("Content-Encoding"))
	}
}

func TestRangesOfThePackedSnapshotAreServed(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.publish("egov", maps.EGov)
	for _, url := range n.feed("/topicmaps/egov/snapshots").Entries[0].typed(t, "topicmapdata") {
		whole := n.mustGet(url, "Accept-Encoding", "gzip")
		require.Greater(t, len(whole.body), 1000)
		tag := whole.Header.Get("ETag")
		size := len(whole.body)
		for ranges, want := range map[string][]byte{
			"bytes=0-99":            whole.body[:100],
			"bytes=500-":            whole.body[500:],
			"bytes=-10":             whole.body[size-10:],
			"bytes=0-" + "99999999": whole.body,
		} {
			a := n.get(url, "Accept-Encoding", "gzip", "Range", ranges, "If-Range", tag)
			require.Equal(t, http.StatusPartialContent, a.StatusCode, ranges)
			assert.True(t, bytes.Equal(want, a.body), ranges)
			assert.Equal(t, "gzip", a.Header.Get("Content-Encoding"))
			assert.Equal(t, tag, a.Header.Get("ETag"))
			assert.Regexp(t, fmt.Sprintf(`^bytes \d+-\d+/%d$`, size), a.Header.Get("Content-Range"))
			assert.Equal(t, strconv.Itoa(len(want)), a.Header.Get("Content-Length"))
		}
		a := n.get(url, "Accept-Encoding", "gzip", "Range", fmt.Sprintf("bytes=%d-", size))
		assert.Equal(t, http.StatusRequestedRangeNotSatisfiable, a.StatusCode)
		assert.Equal(t, fmt.Sprintf("bytes */%d", size), a.Header.Get("Content-Range"))
		assert.NotContains(t, a.Header.Get("Cache-Control"), "immutable")
		assert.Empty(t, a.Header.Get("Content-Encoding"))

		// A range of one coding is not continued with the other.
		plain := n.mustGet(url)
		a = n.get(url, "Accept-Encoding", "gzip", "Range", "bytes=10-", "If-Range", plain.Header.Get("ETag"))
		assert.Equal(t, http.StatusOK, a.StatusCode)
		assert.True(t, bytes.Equal(whole.body, a.body))
		// Nor are there ranges of what is unpacked on the way.
		a = n.get(url, "Range", "bytes=10-19")
		assert.Equal(t, http.StatusOK, a.StatusCode)
		assert.Equal(t, string(plain.body), string(a.body))
	}
}

// HEAD says what GET would say (RFC 9110 §9.3.2). Only lengths that are known
// when the content is made may be missing.
func TestHeadHasTheHeadersOfGet(t *testing.T) {
	t.Parallel()
	later := time.Now().Add(time.Hour) // the second of each change is over: all that is dated has its date
	n := start(t, documentSize(4), func(c *server.Config) { c.Now = func() time.Time { return later } })
	urls := []string{"/topicmaps", "/topicmaps/small", "/topicmaps/small.atom", "/topicmaps/small/fragments", "/topicmaps/small/snapshots", "/healthz", "/nothing", "/topicmaps/none", "/topicmaps/small/topics?si=http://psi.example.org/oslo"}
	for _, url := range negotiable(t, n) {
		urls = append(urls, url, url+".xtm21")
	}
	d := n.feed("/topicmaps/small/fragments")
	urls = append(urls, d.link(t, "via"), d.link(t, "prev-archive"), d.Entries[0].link(t, "self"))
	for _, url := range urls {
		for _, coding := range []string{"identity", "gzip"} {
			get := n.get(url, "Accept-Encoding", coding)
			head := n.do(http.MethodHead, url, nil, "Accept-Encoding", coding)
			assert.Equal(t, get.StatusCode, head.StatusCode, url)
			assert.Empty(t, head.body)
			if head.Header.Get("Content-Length") == "" {
				get.Header.Del("Content-Length")
			}
			for _, h := range []http.Header{get.Header, head.Header} {
				h.Del("Date")
				h.Del("X-Request-Id")
			}
			assert.Equal(t, get.Header, head.Header, "%s %s", coding, url)
		}
	}
}

func TestWhatNeverChangesIsCachedForEver(t *testing.T) {
	t.Parallel()
	n := start(t)
	urls := negotiable(t, n)
	for kind, want := range map[string]string{
		"fragment": forEver, "snapshot": forEver, "topic": shortly, "first fragment": "no-cache", "current snapshot": "no-cache",
	} {
		for _, ext := range []string{"", ".xtm1", ".xtm21"} {
			for _, coding := range []string{"identity", "gzip"} {
				a := n.mustGet(urls[kind]+ext, "Accept-Encoding", coding)
				assert.Equal(t, want, a.Header.Get("Cache-Control"), kind)
				assert.NotEmpty(t, a.Header.Get("ETag"), kind)
				if want == forEver || want == shortly {
					assert.Empty(t, a.Header.Get("TMShare-Updated"))
				} else {
					assert.Equal(t, n.feed("/topicmaps/small").updated(), a.Header.Get("TMShare-Updated"), kind)
				}
			}
		}
	}
	was := map[string]string{}
	for _, kind := range []string{"fragment", "snapshot"} {
		was[kind] = string(n.mustGet(urls[kind]).body)
	}
	n.mustPut("small", small("Oslo", "Kristiania"))
	for kind, body := range was {
		assert.Equal(t, body, string(n.mustGet(urls[kind]).body), "%s after a change", kind)
	}
}

func TestHealthSaysOK(t *testing.T) {
	t.Parallel()
	n := start(t)
	a := n.mustGet("/healthz")
	assert.Equal(t, "ok\n", string(a.body))
}

// A client that reads slowly, or goes away, takes nothing from others.
func TestClientsThatStopReadingDoNoHarm(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.publish("egov", maps.EGov)
	for range 20 {
		req, err := http.NewRequest(http.MethodGet, n.url("/topicmaps/egov/snapshots/current"), nil)
		require.NoError(t, err)
		res, err := n.http.Do(req)
		require.NoError(t, err)
		_, err = io.ReadFull(res.Body, make([]byte, 10))
		require.NoError(t, err)
		res.Body.Close()
	}
	n.mustPut("egov", replace(t, maps.EGov, "<baseNameString>Sort key</baseNameString>", "<baseNameString>Sorting</baseNameString>"))
	assert.NotContains(t, n.logs.String(), "level=ERROR")
}
