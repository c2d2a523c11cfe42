package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tmshare/tmshare/internal/testkit/served"
	maps "github.com/tmshare/tmshare/testdata/xtm"
)

// negotiable returns one URL of each kind of data.
func negotiable(t testing.TB, n *node) map[string]string {
	t.Helper()
	n.Publish("small", served.Small())
	n.MustPut("small", served.Small("Oslo", "Christiania"))
	entries, _ := n.History("/topicmaps/small/fragments")
	return map[string]string{
		"fragment":         served.DataURL(t, entries[0]),
		"first fragment":   served.DataURL(t, entries[1]),
		"snapshot":         served.DataURL(t, n.Feed("/topicmaps/small/snapshots").Entries[0]),
		"current snapshot": n.URL("/topicmaps/small/snapshots/current"),
		"topic":            n.Get("/topicmaps/small/topics?si=http://psi.example.org/oslo").Header.Get("Location"),
	}
}

func TestDataIsNegotiatedByAccept(t *testing.T) {
	t.Parallel()
	n := start(t)
	urls := negotiable(t, n)
	for _, c := range []struct {
		accept []string
		want   string // "" = 406
	}{
		{nil, served.XTM1Type},
		{[]string{""}, served.XTM1Type},
		{[]string{"*/*"}, served.XTM1Type},
		{[]string{"application/*"}, served.XTM1Type},
		{[]string{"application/xml"}, served.XTM1Type},
		{[]string{"text/xml"}, served.XTM1Type},
		{[]string{"text/*"}, served.XTM1Type},
		{[]string{"application/xtm1+xml"}, served.XTM1Type},
		{[]string{"text/xtm1+xml"}, served.XTM1Type},
		{[]string{"application/x-tm+xml;version=1.0"}, served.XTM1Type},
		{[]string{"application/x-tm+xml"}, served.XTM21Type},
		{[]string{"application/x-tm+xml;version=2.1"}, served.XTM21Type},
		{[]string{`Application/X-TM+XML ; Version="2.1"`}, served.XTM21Type},
		{[]string{"application/x-tm+xml;version=2.0"}, ""},
		{[]string{"application/x-tm+xml;version=2.0, */*;q=0.1"}, served.XTM1Type},
		{[]string{"text/html"}, ""},
		{[]string{"text/html, application/xhtml+xml, */*;q=0.1"}, served.XTM1Type},
		{[]string{"application/json, application/atom+xml"}, ""},
		{[]string{"application/x-tm+xml;version=2.1, application/xtm1+xml;q=0.5"}, served.XTM21Type},
		{[]string{"application/xtm1+xml;q=0.5, application/x-tm+xml;version=2.1;q=0.4"}, served.XTM1Type},
		{[]string{"application/x-tm+xml;version=2.1, application/xtm1+xml"}, served.XTM1Type}, // equally welcome: the default
		{[]string{"application/xml;q=0.9, application/x-tm+xml;version=2.1"}, served.XTM21Type},
		{[]string{"application/x-tm+xml;version=2.1;q=0.001, */*;q=0"}, served.XTM21Type},
		{[]string{"application/xtm1+xml;q=0, */*"}, served.XTM21Type}, // the more specific range decides
		{[]string{"*/*, application/xtm1+xml;q=0"}, served.XTM21Type},
		{[]string{"application/x-tm+xml;version=2.1;q=0, */*;q=0.1"}, served.XTM1Type},
		{[]string{"application/x-tm+xml;version=2.1;q=0.1, */*;q=0.9"}, served.XTM1Type},
		{[]string{"application/*;q=0, */*"}, ""},
		{[]string{"*/*, application/*;q=0"}, ""},
		{[]string{"application/xml;q=0.2, application/*;q=0, */*;q=0.9"}, served.XTM1Type},
		{[]string{"application/xml;q=0, application/*"}, served.XTM1Type}, // it is not what this is
		{[]string{"application/x-tm+xml;q=0, application/x-tm+xml;version=2.1"}, served.XTM21Type},
		{[]string{"application/x-tm+xml;version=2.1;q=0, application/x-tm+xml, application/xtm1+xml;q=0.1"}, served.XTM1Type},
		{[]string{"*/*;q=0"}, ""},
		{[]string{"application/xtm1+xml;q=0"}, ""},
		{[]string{"application/xtm1+xml;q=0.000, application/x-tm+xml;q=0.0"}, ""},
		{[]string{"text/html", "application/x-tm+xml;version=2.1"}, served.XTM21Type}, // two header lines
		{[]string{"garbage, ;;, application/x-tm+xml;version=2.1, q=1"}, served.XTM21Type},
		{[]string{"text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2"}, served.XTM1Type}, // Java's
	} {
		for kind, url := range urls {
			var headers []string
			for _, a := range c.accept {
				headers = append(headers, "Accept", a)
			}
			a := n.Get(url, headers...)
			if c.want == "" {
				assert.Equal(t, http.StatusNotAcceptable, a.StatusCode, "%s: %q", kind, c.accept)
				assert.Equal(t, "no-store", a.Header.Get("Cache-Control"))
				assert.Contains(t, string(a.Bytes), served.XTM21Type, "says what there is")
				continue
			}
			assert.Equal(t, http.StatusOK, a.StatusCode, "%s: %q: %s", kind, c.accept, a.Bytes)
			assert.Equal(t, c.want, a.Header.Get("Content-Type"), "%s: %q", kind, c.accept)
			assert.Equal(t, c.want == served.XTM1Type, strings.Contains(string(a.Bytes), "http://www.topicmaps.org/xtm/1.0/"), "%s: %q", kind, c.accept)
			assert.Contains(t, a.Header.Get("Vary"), "Accept")
			assert.Contains(t, a.Header.Get("Vary"), "Accept-Encoding")
		}
	}
}

func TestFixedFormsAreWhatTheyAre(t *testing.T) {
	t.Parallel()
	n := start(t)
	for kind, url := range negotiable(t, n) {
		for ext, want := range map[string]string{".xtm1": served.XTM1Type, ".xtm21": served.XTM21Type} {
			fixed := n.MustGet(url + ext)
			assert.Equal(t, string(fixed.Bytes), string(n.MustGet(url+ext, "Accept", "text/html, application/xml;q=0.1").Bytes))
			for _, accept := range []string{"text/html", want + ";q=0, */*", "application/*;q=0, */*"} {
				a := n.Get(url+ext, "Accept", accept)
				assert.Equal(t, http.StatusNotAcceptable, a.StatusCode, "%s%s: %s", kind, ext, accept)
				assert.Contains(t, string(a.Bytes), want)
			}
			assert.Equal(t, want, fixed.Header.Get("Content-Type"))
			negotiated := n.MustGet(url, "Accept", want)
			assert.Equal(t, string(negotiated.Bytes), string(fixed.Bytes), "%s%s", kind, ext)
		}
		assert.Equal(t, http.StatusNotFound, n.Get(url+".xtm2").StatusCode, kind)
	}
}

func TestFeedsAreForWhomeverAcceptsAtom(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.Publish("egov", maps.EGov)
	d, records := n.Feed("/topicmaps/egov/fragments"), n.Feed("/topicmaps/egov/records")
	urls := []string{
		"/topicmaps/egov/records", "/topicmaps/egov/records/complete", records.Link(t, "prev-archive"), records.Entries[0].Link(t, "self"),
		"/topicmaps", "/topicmaps/egov", "/topicmaps/egov/snapshots", "/topicmaps/egov/fragments", d.Link(t, "via"), d.Link(t, "prev-archive"),
		"/topicmaps/egov.atom", "/topicmaps/egov/snapshots.atom", "/topicmaps/egov/fragments.atom", d.Entries[0].Link(t, "self"),
	}
	for accept, ok := range map[string]bool{
		"":                               true,
		"*/*":                            true,
		"application/atom+xml":           true,
		"application/atom+xml;type=feed": true,
		"APPLICATION/ATOM+XML":           true,
		"application/xml":                true,
		"text/xml":                       true,
		"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8": true, // browsers
		"application/rss+xml, application/atom+xml;q=0.1":                 true,
		"text/html":                           false,
		"application/json":                    false,
		served.XTM1Type:                       false,
		"application/rss+xml":                 false,
		"application/atom+xml;q=0":            false,
		"*/*;q=0":                             false,
		"application/atom+xml;q=0, */*":       false, // the more specific range decides
		"*/*;q=0, application/atom+xml;q=0.5": true,
		"application/*;q=0, */*;q=0.9":        false,
		"application/xml;q=0, application/*":  true, // it is not what this is
	} {
		for _, url := range urls {
			a := n.Get(url, "Accept", accept)
			if ok {
				assert.Equal(t, http.StatusOK, a.StatusCode, "%s: %q", url, accept)
				assert.Equal(t, served.AtomType, a.Header.Get("Content-Type"))
				continue
			}
			assert.Equal(t, http.StatusNotAcceptable, a.StatusCode, "%s: %q", url, accept)
			assert.Equal(t, "no-store", a.Header.Get("Cache-Control"))
			assert.Contains(t, string(a.Bytes), served.AtomType)
		}
	}
}

// The largest header that net/http accepts costs little: with a cost that is quadratic in its length this test would
// not end.
func TestHugeAcceptHeadersCostLittle(t *testing.T) {
	t.Parallel()
	n := start(t)
	urls := negotiable(t, n)
	for name, accept := range map[string]string{
		"commas":      strings.Repeat(",", 900_000),
		"ranges":      strings.Repeat("a/b;q=0.1,", 90_000),
		"parameters":  "application/xtm1+xml" + strings.Repeat(";a=b", 200_000),
		"semicolons":  "application/xtm1+xml" + strings.Repeat(";", 900_000),
		"one word":    strings.Repeat("a", 900_000),
		"quotes":      `a/b;c="` + strings.Repeat(`\"`, 400_000),
		"wildcards":   strings.Repeat("*/*,", 200_000) + "*/*",
		"continued":   "a/b" + strings.Repeat(";a*0*=x", 100_000),
		"white space": strings.Repeat(" ,\t", 300_000) + "*/*",
	} {
		for _, header := range []string{"Accept", "Accept-Encoding", "If-None-Match"} {
			if header != "Accept" && name != "commas" && name != "wildcards" {
				continue
			}
			a := n.Get(urls["snapshot"], header, accept)
			assert.Contains(t, []int{http.StatusOK, http.StatusNotAcceptable, http.StatusNotModified}, a.StatusCode, "%s %s", header, name)
		}
	}
	assert.Equal(t, http.StatusRequestHeaderFieldsTooLarge, n.Get(urls["snapshot"], "Accept", strings.Repeat("a", 2<<20)).StatusCode)
}
