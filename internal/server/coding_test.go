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

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/served"
	maps "github.com/tmshare/tmshare/testdata/xtm"
)

// packable returns addresses of answers that are available in each coding: feeds, and documents made on request.
func packable(t testing.TB, n *node) []string {
	t.Helper()
	n.Publish("egov", maps.EGov)
	n.MustPut("egov", served.Replace(t, maps.EGov, "<baseNameString>Sort key</baseNameString>", "<baseNameString>Sorting</baseNameString>"))
	d, records := n.Feed("/topicmaps/egov/fragments"), n.Feed("/topicmaps/egov/records")
	all := []string{
		"/topicmaps/egov/records", "/topicmaps/egov/records/complete", records.Link(t, "via"), records.Link(t, "prev-archive"), records.Entries[0].Link(t, "self"),
		"/topicmaps", "/topicmaps/egov", "/topicmaps/egov.atom", "/topicmaps/egov/snapshots", "/topicmaps/egov/fragments",
		"/topicmaps/egov/fragments?since=2000-01-01T00:00:00Z", d.Link(t, "via"), d.Link(t, "prev-archive"), d.Entries[0].Link(t, "self"),
		"/topicmaps/egov/snapshots/current.xtm1", "/topicmaps/egov/snapshots/current.xtm21", served.DataURL(t, d.Entries[0]) + ".xtm1", served.DataURL(t, d.Entries[1]) + ".xtm21",
	}
	for _, form := range records.Entries[0].Typed(t, "alternate") {
		all = append(all, form)
	}
	return all
}

// sameHead checks that HEAD has the header of GET (RFC 9110 §9.3.2). Only lengths that are known after the content is
// made may be missing.
func (n *node) sameHead(get served.Answer) {
	n.T.Helper()
	head := n.Do(http.MethodHead, get.Request.URL.String(), nil, "Accept-Encoding", get.Request.Header.Get("Accept-Encoding"))
	assert.Equal(n.T, get.StatusCode, head.StatusCode)
	assert.Empty(n.T, head.Bytes)
	if head.Header.Get("Content-Length") == "" {
		get.Header.Del("Content-Length")
	}
	assert.LessOrEqual(n.T, get.Header.Get(feeds.CheckedHeader), head.Header.Get(feeds.CheckedHeader))
	for _, h := range []http.Header{get.Header, head.Header} {
		h.Del("Date")
		h.Del("X-Request-Id")
		h.Del(feeds.CheckedHeader)
	}
	assert.Equal(n.T, get.Header, head.Header, "%s", get.Request.URL)
}

// In each coding an answer has the same content, with a strong tag of its own, and is not sent again to clients that
// have it.
func TestAnswersInEveryCoding(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	later := time.Now().Add(time.Hour) // the second of each change is over: all that is dated has its date
	n := start(t, func(c *server.Config) { c.Now = func() time.Time { return later } })
	urls := stored(t, n)
	kept := len(urls) // as gzip, and not as zstd
	urls = append(urls, packable(t, n)...)
	tags := map[string]string{}
	for i, url := range urls {
		plain := n.MustGet(url)
		for _, coding := range []string{"", "gzip", "zstd"} {
			if coding == "zstd" && i < kept {
				continue
			}
			ask := func(method string, headers ...string) served.Answer {
				return n.Do(method, url, nil, append(headers, "Accept-Encoding", coding)...)
			}
			a := ask(http.MethodGet)
			require.Equal(t, http.StatusOK, a.StatusCode, url)
			require.Equal(t, coding, a.Header.Get("Content-Encoding"), url)
			assert.Equal(t, string(plain.Bytes), string(a.Plain(t)), "%s as %s", url, coding)
			assert.Equal(t, "Accept, Accept-Encoding", a.Header.Get("Vary"))
			assert.Equal(t, plain.Header.Get("Content-Type"), a.Header.Get("Content-Type"))
			tag := a.Header.Get("ETag")
			assert.Regexp(t, `^"[^"]+"$`, tag, "a strong tag")
			assert.Empty(t, tags[tag], "two documents, or two codings, with one tag: %s as %s", url, coding)
			tags[tag] = url
			assert.Equal(t, tag, ask(http.MethodGet).Header.Get("ETag"), "as it was made before")
			for _, given := range []string{tag, "W/" + tag, `"x", ` + tag + `,"y"`, "*"} {
				for _, method := range []string{http.MethodGet, http.MethodHead} {
					again := ask(method, "If-None-Match", given)
					assert.Equal(t, http.StatusNotModified, again.StatusCode, "%s %s as %s: %s", method, url, coding, given)
					assert.Empty(t, again.Bytes)
					for _, h := range []string{"ETag", "Cache-Control", "Vary"} {
						assert.Equal(t, a.Header.Get(h), again.Header.Get(h), h)
					}
				}
			}
			assert.Equal(t, http.StatusOK, ask(http.MethodGet, "If-None-Match", `"x"`).StatusCode)
			other := map[string]string{"": "gzip"}[coding]
			assert.Equal(t, http.StatusOK, n.Get(url, "Accept-Encoding", other, "If-None-Match", tag).StatusCode, "known in another coding only")
			failed := ask(http.MethodGet, "If-Match", `"x"`)
			assert.Equal(t, http.StatusPreconditionFailed, failed.StatusCode)
			assert.Equal(t, "no-store", failed.Header.Get("Cache-Control"), "it must not be kept in the place of the answer")
			assert.Empty(t, failed.Header.Get("Content-Encoding"))
			n.sameHead(a)
		}
	}
	tag := n.MustGet("/topicmaps/egov/fragments").Header.Get("ETag")
	n.MustPut("egov", maps.EGov)
	assert.Equal(t, http.StatusOK, n.Get("/topicmaps/egov/fragments", "If-None-Match", tag).StatusCode, "it has changed")
}

func TestCodingIsTheMostWelcomeOne(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.Publish("small", served.Small())
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
			a := n.Get(url, "Accept-Encoding", accept)
			if want == "406" {
				assert.Equal(t, http.StatusNotAcceptable, a.StatusCode, "%q", accept)
				assert.Contains(t, string(a.Bytes), "gzip", "says what there is")
				assert.Empty(t, a.Header.Get("Content-Encoding"))
				continue
			}
			assert.Equal(t, http.StatusOK, a.StatusCode, "%q", accept)
			assert.Equal(t, want, a.Header.Get("Content-Encoding"), "%q", accept)
		}
	}
}

// Ranges apply to stored files only. Elsewhere they are ignored, because the rest of a newly made answer may be that of
// another one.
func TestRangesOfWhatIsNotStoredAreWhole(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	n := start(t)
	for _, url := range packable(t, n) {
		for _, coding := range []string{"identity", "gzip", "zstd"} {
			whole := n.MustGet(url, "Accept-Encoding", coding)
			a := n.Get(url, "Accept-Encoding", coding, "Range", "bytes=0-9")
			assert.Equal(t, http.StatusOK, a.StatusCode, url)
			assert.True(t, bytes.Equal(whole.Bytes, a.Bytes), "%s %s", coding, url)
			assert.Empty(t, a.Header.Get("Accept-Ranges"))
		}
	}
}

// The error states the available range (RFC 9110 §15.5.17, 416).
func TestRangeThatIsNotThereIsSaidSo(t *testing.T) {
	t.Parallel()
	n := start(t)
	for _, url := range stored(t, n) {
		for _, wanted := range []string{"bytes=99999999-", "bytes=x-y", "bytes=5-3"} {
			a := n.Get(url, "Accept-Encoding", "gzip", "Range", wanted)
			assert.Equal(t, http.StatusRequestedRangeNotSatisfiable, a.StatusCode)
			assert.Regexp(t, `^bytes \*/\d+$`, a.Header.Get("Content-Range"))
			assert.Equal(t, "application/problem+json", a.Header.Get("Content-Type"))
			assert.Equal(t, "no-store", a.Header.Get("Cache-Control"))
			assert.Contains(t, string(a.Bytes), wanted)
			for _, h := range []string{"ETag", "Content-Encoding", "Last-Modified", "Link"} {
				assert.Empty(t, a.Header.Get(h), h)
			}
		}
	}
}

// Ranges apply to bytes, and to answers to GET: other units and other methods have none (RFC 9110 §14.2, Range).
func TestRangesOfOtherUnitsAndMethodsAreIgnored(t *testing.T) {
	t.Parallel()
	n := start(t)
	all := stored(t, n)
	all = append(all, n.URL("/topicmaps/small/resourcesync/resourcelist.xml"))
	for _, url := range all {
		whole := n.MustGet(url, "Accept-Encoding", "gzip")
		for _, wanted := range []string{"items=0-9", "lines=1-2, 5-6", "bytes", "nothing", "bytes 0-9"} {
			a := n.MustGet(url, "Accept-Encoding", "gzip", "Range", wanted)
			assert.True(t, bytes.Equal(whole.Bytes, a.Bytes), "%s: %s", url, wanted)
		}
		a := n.Get(url, "Accept-Encoding", "gzip", "Range", "Bytes=0-9")
		assert.Equal(t, http.StatusPartialContent, a.StatusCode, "the names of units have no case")
		for _, wanted := range []string{"bytes=0-9", "bytes=99999999-"} {
			a := n.Do(http.MethodHead, url, nil, "Accept-Encoding", "gzip", "Range", wanted)
			assert.Equal(t, http.StatusOK, a.StatusCode, "%s: %s", url, wanted)
			assert.EqualValues(t, len(whole.Bytes), a.ContentLength)
			assert.Empty(t, a.Header.Get("Content-Range"))
		}
	}
}

func TestDataLinksToWhatItBelongsTo(t *testing.T) {
	t.Parallel()
	n := start(t)
	urls := negotiable(t, n)
	entry := n.Feed("/topicmaps/small/fragments").Entries[0]
	key := urls["topic"][strings.LastIndex(urls["topic"], "/"):]
	gate := "<" + n.URL("/topicmaps/small/timegate") + key + `>; rel="timegate"`
	times := "<" + n.URL("/topicmaps/small/timemap") + key + `>; rel="timemap"; type="application/link-format"`
	memento := strings.Replace(urls["fragment"], "/fragments/", "/mementos/", 1)
	assert.ElementsMatch(t, []string{"<" + urls["topic"] + `>; rel="original"`, gate, times, "<" + n.URL("/topicmaps/small") + `>; rel="collection"`},
		n.MustGet(memento).Header.Values("Link"))
	for kind, want := range map[string][]string{
		"fragment": {"<" + urls["topic"] + `>; rel="latest-version"`},
		"topic": {"<" + memento + `>; rel="memento"; datetime="` + served.At(t, entry.Updated()).Format(http.TimeFormat) + `"`, gate, times,
			"<" + n.URL("/topicmaps/small/resourcesync/capabilitylist.xml") + `>; rel="resourcesync"`,
			"<" + n.URL("/topicmaps/small/ldes") + `>; rel="https://w3id.org/tree#view"`,
			"<" + urls["topic"] + `.xtm1>; rel="alternate"; type="application/xtm1+xml"`,
			"<" + urls["topic"] + `.xtm21>; rel="alternate"; type="application/x-tm+xml;version=2.1"`},
		"snapshot": nil,
		"current snapshot": {"<" + urls["current snapshot"] + `>; rel="original timegate"`,
			"<" + urls["current snapshot"] + "?at=" + entry.Updated() + `>; rel="memento"; datetime="` + served.At(t, entry.Updated()).Format(http.TimeFormat) + `"`},
	} {
		want = append(want, "<"+n.URL("/topicmaps/small")+`>; rel="collection"`)
		assert.ElementsMatch(t, want, n.MustGet(urls[kind]).Header.Values("Link"), kind)
	}
}

// stored returns the fixed forms of data that is kept as it is: of a snapshot.
func stored(t testing.TB, n *node) []string {
	t.Helper()
	snapshot := negotiable(t, n)["snapshot"]
	return []string{snapshot + ".xtm1", snapshot + ".xtm21"}
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
			a := n.MustGet(url, "Accept-Encoding", accept)
			assert.Equal(t, packed, a.Header.Get("Content-Encoding") == "gzip", "%q", accept)
		}
	}
}

func TestRangesOfThePackedSnapshotAreServed(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.Publish("egov", maps.EGov)
	for _, url := range n.Feed("/topicmaps/egov/snapshots").Entries[0].Typed(t, "topicmapdata") {
		whole := n.MustGet(url, "Accept-Encoding", "gzip")
		require.Greater(t, len(whole.Bytes), 1000)
		tag := whole.Header.Get("ETag")
		size := len(whole.Bytes)
		for ranges, want := range map[string][]byte{
			"bytes=0-99":            whole.Bytes[:100],
			"bytes=500-":            whole.Bytes[500:],
			"bytes=-10":             whole.Bytes[size-10:],
			"bytes=0-" + "99999999": whole.Bytes,
		} {
			a := n.Get(url, "Accept-Encoding", "gzip", "Range", ranges, "If-Range", tag)
			require.Equal(t, http.StatusPartialContent, a.StatusCode, ranges)
			assert.True(t, bytes.Equal(want, a.Bytes), ranges)
			assert.Equal(t, "gzip", a.Header.Get("Content-Encoding"))
			assert.Equal(t, tag, a.Header.Get("ETag"))
			assert.Regexp(t, fmt.Sprintf(`^bytes \d+-\d+/%d$`, size), a.Header.Get("Content-Range"))
			assert.Equal(t, strconv.Itoa(len(want)), a.Header.Get("Content-Length"))
		}
		a := n.Get(url, "Accept-Encoding", "gzip", "Range", fmt.Sprintf("bytes=%d-", size))
		assert.Equal(t, http.StatusRequestedRangeNotSatisfiable, a.StatusCode)
		assert.Equal(t, fmt.Sprintf("bytes */%d", size), a.Header.Get("Content-Range"))
		assert.NotContains(t, a.Header.Get("Cache-Control"), "immutable")
		assert.Empty(t, a.Header.Get("Content-Encoding"))

		// A range of one coding is not continued with the other.
		plain := n.MustGet(url)
		a = n.Get(url, "Accept-Encoding", "gzip", "Range", "bytes=10-", "If-Range", plain.Header.Get("ETag"))
		assert.Equal(t, http.StatusOK, a.StatusCode)
		assert.True(t, bytes.Equal(whole.Bytes, a.Bytes))
		// Answers that are unpacked for the client have no ranges either.
		a = n.Get(url, "Range", "bytes=10-19")
		assert.Equal(t, http.StatusOK, a.StatusCode)
		assert.Equal(t, string(plain.Bytes), string(a.Bytes))
	}
}

func TestWhatNeverChangesIsCachedForEver(t *testing.T) {
	t.Parallel()
	n := start(t)
	urls := negotiable(t, n)
	for kind, want := range map[string]string{
		"fragment": forEver, "snapshot": forEver, "topic": shortly, "first fragment": forEver, "current snapshot": "no-cache",
	} {
		for _, ext := range []string{"", ".xtm1", ".xtm21"} {
			for _, coding := range []string{"identity", "gzip"} {
				a := n.MustGet(urls[kind]+ext, "Accept-Encoding", coding)
				assert.Equal(t, want, a.Header.Get("Cache-Control"), kind)
				assert.NotEmpty(t, a.Header.Get("ETag"), kind)
				if want == forEver || want == shortly {
					assert.Empty(t, a.Header.Get("TMShare-Updated"))
				} else {
					assert.Equal(t, n.Feed("/topicmaps/small").Updated(), a.Header.Get("TMShare-Updated"), kind)
				}
			}
		}
	}
	was := map[string]string{}
	for _, kind := range []string{"fragment", "first fragment", "snapshot"} {
		was[kind] = string(n.MustGet(urls[kind]).Bytes)
	}
	n.MustPut("small", served.Small("Oslo", "Kristiania"))
	for kind, body := range was {
		assert.Equal(t, body, string(n.MustGet(urls[kind]).Bytes), "%s after a change", kind)
	}
}

// HEAD has the status and header of GET, also for errors.
func TestHeadOfWhatIsNoDocument(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.Publish("small", served.Small())
	for _, url := range []string{"/healthz", "/nothing", "/topicmaps/none", "/topicmaps/small/topics?si=http://psi.example.org/oslo"} {
		n.sameHead(n.Get(url))
	}
}

func TestHealthSaysOK(t *testing.T) {
	t.Parallel()
	n := start(t)
	a := n.MustGet("/healthz")
	assert.Equal(t, "ok\n", string(a.Bytes))
}

// A client that reads slowly, or disconnects, does not affect others.
func TestClientsThatStopReadingDoNoHarm(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.Publish("egov", maps.EGov)
	for range 20 {
		req, err := http.NewRequest(http.MethodGet, n.URL("/topicmaps/egov/snapshots/current"), nil)
		require.NoError(t, err)
		res, err := n.HTTP.Do(req)
		require.NoError(t, err)
		_, err = io.ReadFull(res.Body, make([]byte, 10))
		require.NoError(t, err)
		res.Body.Close()
	}
	n.MustPut("egov", served.Replace(t, maps.EGov, "<baseNameString>Sort key</baseNameString>", "<baseNameString>Sorting</baseNameString>"))
	assert.NotContains(t, n.Logs.String(), "level=ERROR")
}
