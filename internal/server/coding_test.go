package server_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/feeds/resourcesync"
	maps "github.com/tmshare/tmshare/testdata/xtm"
)

func unzstd(t testing.TB, data []byte) []byte {
	t.Helper()
	z, err := zstd.NewReader(bytes.NewReader(data), zstd.WithDecoderMaxWindow(1<<20)) // more than readers must be able to take is not sent
	require.NoError(t, err)
	defer z.Close()
	b, err := io.ReadAll(z)
	require.NoError(t, err)
	return b
}

// packable are answers that come in each coding: feeds, and what is made when it
// is asked for.
func packable(t testing.TB, n *node) []string {
	t.Helper()
	n.publish("egov", maps.EGov)
	n.mustPut("egov", replace(t, maps.EGov, "<baseNameString>Sort key</baseNameString>", "<baseNameString>Sorting</baseNameString>"))
	d := n.feed("/topicmaps/egov/fragments")
	return []string{
		"/topicmaps", "/topicmaps/egov", "/topicmaps/egov.atom", "/topicmaps/egov/snapshots", "/topicmaps/egov/fragments",
		"/topicmaps/egov/fragments?since=2000-01-01T00:00:00Z", d.link(t, "via"), d.link(t, "prev-archive"), d.Entries[0].link(t, "self"),
		"/topicmaps/egov/snapshots/current.xtm1", "/topicmaps/egov/snapshots/current.xtm21", dataURL(t, d.Entries[1]) + ".xtm21",
	}
}

func TestAnswersArePackedAsIsAskedFor(t *testing.T) {
	t.Parallel()
	n := start(t)
	for _, url := range packable(t, n) {
		plain := n.mustGet(url)
		require.Empty(t, plain.Header.Get("Content-Encoding"))
		tags := map[string]bool{plain.Header.Get("ETag"): true}
		for coding, unpack := range map[string]func(testing.TB, []byte) []byte{"gzip": gunzip, "zstd": unzstd} {
			for range 2 { // made, and as it was made before
				a := n.mustGet(url, "Accept-Encoding", coding)
				require.Equal(t, coding, a.Header.Get("Content-Encoding"), url)
				assert.Equal(t, string(plain.body), string(unpack(t, a.body)), url)
				assert.Equal(t, "Accept, Accept-Encoding", a.Header.Get("Vary"))
				assert.Equal(t, plain.Header.Get("Content-Type"), a.Header.Get("Content-Type"))
				tag := a.Header.Get("ETag")
				assert.Regexp(t, `^"[^"]+"$`, tag)
				tags[tag] = true
				known := n.get(url, "Accept-Encoding", coding, "If-None-Match", tag)
				assert.Equal(t, http.StatusNotModified, known.StatusCode, url)
				assert.Equal(t, http.StatusOK, n.get(url, "If-None-Match", tag).StatusCode, "known in another coding")
			}
		}
		assert.Len(t, tags, 3, "one for each coding: %s", url)
	}
}

func TestCodingIsTheMostWelcomeOne(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.publish("small", small())
	for accept, want := range map[string]string{
		"":                                   "",
		"gzip":                               "gzip",
		"gzip, deflate":                      "gzip",
		"gzip, deflate, br, zstd":            "zstd", // browsers
		"ZSTD, GZIP":                         "zstd",
		"zstd;q=0.5, gzip":                   "gzip",
		"zstd;q=0.5, gzip;q=0.4":             "zstd",
		"zstd;q=0, gzip;q=0":                 "",
		"*":                                  "gzip", // who does not name zstd may not know it
		"*;q=0.1":                            "gzip",
		"*, gzip;q=0":                        "",
		"br":                                 "",
		"identity":                           "",
		"identity, gzip;q=0.9":               "",
		"identity;q=0.1, gzip;q=0.2":         "gzip",
		"gzip;q=0.001":                       "gzip", // better than what is not spoken of
		"gzip;q=x":                           "",
		"gzip;q=NaN":                         "",
		"identity;q=0":                       "406",
		"identity;q=0, br":                   "406",
		"*;q=0":                              "406",
		"*;q=0, identity;q=0.1":              "",
		"*;q=0, zstd":                        "zstd",
		"identity;q=0, gzip;q=0, zstd;q=0.1": "zstd",
	} {
		for _, url := range []string{"/topicmaps/small", "/topicmaps/small/snapshots/current"} {
			a := n.get(url, "Accept-Encoding", accept)
			if want == "406" {
				assert.Equal(t, http.StatusNotAcceptable, a.StatusCode, "%q", accept)
				assert.Contains(t, string(a.body), "gzip", "says what there is")
				assert.Empty(t, a.Header.Get("Content-Encoding"))
				continue
			}
			assert.Equal(t, http.StatusOK, a.StatusCode, "%q", accept)
			assert.Equal(t, want, a.Header.Get("Content-Encoding"), "%q", accept)
		}
	}
}

// Ranges are of what is stored. Elsewhere they are passed over, as whoever asks
// for the rest of an answer that is made anew may get the rest of another one.
func TestRangesOfWhatIsNotStoredAreWhole(t *testing.T) {
	t.Parallel()
	n := start(t)
	for _, url := range packable(t, n) {
		for _, coding := range []string{"identity", "gzip", "zstd"} {
			whole := n.mustGet(url, "Accept-Encoding", coding)
			a := n.get(url, "Accept-Encoding", coding, "Range", "bytes=0-9")
			assert.Equal(t, http.StatusOK, a.StatusCode, url)
			assert.True(t, bytes.Equal(whole.body, a.body), "%s %s", coding, url)
			assert.Empty(t, a.Header.Get("Accept-Ranges"))
		}
	}
}

// The error says what there is in place of a range (RFC 9110 §15.5.17, 416).
func TestRangeThatIsNotThereIsSaidSo(t *testing.T) {
	t.Parallel()
	n := start(t)
	for _, url := range stored(t, n) {
		for _, wanted := range []string{"bytes=99999999-", "bytes=x-y", "bytes=5-3"} {
			a := n.get(url, "Accept-Encoding", "gzip", "Range", wanted)
			assert.Equal(t, http.StatusRequestedRangeNotSatisfiable, a.StatusCode)
			assert.Regexp(t, `^bytes \*/\d+$`, a.Header.Get("Content-Range"))
			assert.Equal(t, "application/problem+json", a.Header.Get("Content-Type"))
			assert.Equal(t, "no-store", a.Header.Get("Cache-Control"))
			assert.Contains(t, string(a.body), wanted)
			for _, h := range []string{"ETag", "Content-Encoding", "Last-Modified", "Link"} {
				assert.Empty(t, a.Header.Get(h), h)
			}
		}
	}
}

// Ranges are of bytes, and of answers to GET: in other units, and with other methods, there are
// none (RFC 9110 §14.2, Range).
func TestRangesOfOtherUnitsAndMethodsAreIgnored(t *testing.T) {
	t.Parallel()
	n := start(t)
	all := stored(t, n)
	d := n.visit("small")
	all = append(all, d.capabilities[resourcesync.ResourceList])
	for _, url := range all {
		whole := n.mustGet(url, "Accept-Encoding", "gzip")
		for _, wanted := range []string{"items=0-9", "lines=1-2, 5-6", "bytes", "nothing", "bytes 0-9"} {
			a := n.mustGet(url, "Accept-Encoding", "gzip", "Range", wanted)
			assert.True(t, bytes.Equal(whole.body, a.body), "%s: %s", url, wanted)
		}
		a := n.get(url, "Accept-Encoding", "gzip", "Range", "Bytes=0-9")
		assert.Equal(t, http.StatusPartialContent, a.StatusCode, "the names of units have no case")
		for _, wanted := range []string{"bytes=0-9", "bytes=99999999-"} {
			a := n.do(http.MethodHead, url, nil, "Accept-Encoding", "gzip", "Range", wanted)
			assert.Equal(t, http.StatusOK, a.StatusCode, "%s: %s", url, wanted)
			assert.EqualValues(t, len(whole.body), a.ContentLength)
			assert.Empty(t, a.Header.Get("Content-Range"))
		}
	}
}

func TestDataLinksToWhatItBelongsTo(t *testing.T) {
	t.Parallel()
	n := start(t)
	urls := negotiable(t, n)
	entry := n.feed("/topicmaps/small/fragments").Entries[0]
	key := urls["topic"][strings.LastIndex(urls["topic"], "/"):]
	gate := "<" + n.url("/topicmaps/small/timegate") + key + `>; rel="timegate"`
	times := "<" + n.url("/topicmaps/small/timemap") + key + `>; rel="timemap"; type="application/link-format"`
	memento := strings.Replace(urls["fragment"], "/fragments/", "/mementos/", 1)
	assert.ElementsMatch(t, []string{"<" + urls["topic"] + `>; rel="original"`, gate, times, "<" + n.url("/topicmaps/small") + `>; rel="collection"`},
		n.mustGet(memento).Header.Values("Link"))
	for kind, want := range map[string][]string{
		"fragment": {"<" + urls["topic"] + `>; rel="latest-version"`},
		"topic": {"<" + memento + `>; rel="memento"; datetime="` + at(t, entry.updated()).Format(http.TimeFormat) + `"`, gate, times,
			"<" + n.url("/topicmaps/small/resourcesync/capabilitylist.xml") + `>; rel="resourcesync"`,
			"<" + urls["topic"] + `.xtm1>; rel="alternate"; type="application/xtm1+xml"`,
			"<" + urls["topic"] + `.xtm21>; rel="alternate"; type="application/x-tm+xml;version=2.1"`},
		"snapshot":         nil,
		"current snapshot": nil,
	} {
		want = append(want, "<"+n.url("/topicmaps/small")+`>; rel="collection"`)
		assert.ElementsMatch(t, want, n.mustGet(urls[kind]).Header.Values("Link"), kind)
	}
}
