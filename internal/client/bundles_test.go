package client_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/faults"
	"github.com/tmshare/tmshare/internal/testkit/node"
)

func isBundle(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), feeds.MediaTypeBundle)
}

// counted counts the requests for bundles.
func counted(o *origin, also faults.Fault) *atomic.Int64 {
	n := new(atomic.Int64)
	o.BreakWith(func(w http.ResponseWriter, r *http.Request, real http.Handler) bool {
		if isBundle(r) {
			n.Add(1)
			return also != nil && also(w, r, real)
		}
		return false
	})
	return n
}

// Many changes need no request each. Entries before the mark are not read.
func TestManyChangesComeWithTheirDocuments(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(60, "v1")...), node.DocumentSize(20))
	s := inStep(t, o)
	bundles := counted(o, nil)
	o.Put(doc(topics(60, "v2")...))
	o.Put(doc(append(topics(50, "v3"), topics(60, "v2")[50:]...)...))
	o.Seen()
	s.sync()
	seen := o.Seen()
	assert.Zero(t, fragments(seen), "%q", seen)
	assert.LessOrEqual(t, len(seen), 1+110/20+2+2, "%q", seen)
	assert.InDelta(t, 110/20+1, bundles.Load(), 1, "one may be fetched ahead")
	s.has(o, doc(append(topics(50, "v3"), topics(60, "v2")[50:]...)...))
}

// Fragments whose media type has the version are read too, like those with the version only in the root element.
func TestFragmentsInDocumentsOfEitherType(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(59, "v1")...), node.DocumentSize(20))
	s := inStep(t, o)
	bundles := counted(o, func(w http.ResponseWriter, r *http.Request, real http.Handler) bool {
		replaced(`<content type="application/x-tm+xml">`, `<content type="application/x-tm+xml;version=2.1">`)(w, r, real)
		return true
	})
	o.Put(doc(topics(59, "v2")...))
	o.Seen()
	s.sync()
	assert.Zero(t, fragments(o.Seen()))
	assert.Positive(t, bundles.Load())
	s.has(o, doc(topics(59, "v2")...))
}

func TestFewChangesAreFetchedByThemselves(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(19, "v1")...), node.DocumentSize(20))
	s := inStep(t, o)
	bundles := counted(o, nil)
	o.Put(doc(append(topics(3, "v2"), topics(19, "v1")[3:]...)...))
	o.Seen()
	s.sync()
	assert.Equal(t, 3, fragments(o.Seen()))
	assert.Zero(t, bundles.Load())
}

// No fault of bundles loses an entry or puts it in quarantine, because the fragments are also available one by one.
func TestBundlesThatAreNoGood(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	var first bytes.Buffer // a cached body
	for name, with := range map[string]faults.Answer{
		"broken":          answering(http.StatusInternalServerError),
		"no such thing":   answering(http.StatusNotFound),
		"not acceptable":  answering(http.StatusNotAcceptable),
		"cut off":         edited(func(s string) string { return s[:len(s)*3/4] }),
		"not well-formed": replaced("<topicMap", "<topicMap <"),
		"no XTM":          replaced("<topicMap", "<map"),
		"other prefixes":  replaced(`<topicMap xmlns="http://www.topicmaps.org/xtm/"`, `<topicMap xmlns:x="http://www.topicmaps.org/xtm/"`),
		"of other topics": replaced("/t", "/u"),
		"without any":     edited(withoutContents),
		"with one": edited(func(s string) string {
			head, rest, _ := strings.Cut(s, "</entry>")
			return head + "</entry>" + withoutContents(rest)
		}),
		"too long": edited(func(s string) string {
			return strings.Replace(s, "<topicMap", strings.Repeat(" ", 40<<20)+"<topicMap", 1)
		}),
		"another feed": replaced("<id>urn:uuid:", "<id>urn:uuid:0"),
		"of a cache": func(w http.ResponseWriter, r *http.Request, real http.Handler) {
			if first.Len() == 0 {
				answer := httptest.NewRecorder()
				r.Header.Del("Accept-Encoding")
				real.ServeHTTP(answer, r)
				first.Write(answer.Body.Bytes())
			}
			_, _ = w.Write(first.Bytes())
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := publishing(t, doc(topics(30, "v1")...), node.DocumentSize(20))
			s := inStep(t, o)
			bundles := counted(o, func(w http.ResponseWriter, r *http.Request, real http.Handler) bool {
				with(w, r, real)
				return true
			})
			for n := range 2 {
				version := doc(topics(30, fmt.Sprint("v", n+2))...)
				o.Put(version)
				r := s.sync()
				require.True(t, r.Proven)
				s.has(o, version)
			}
			require.Positive(t, bundles.Load())
		})
	}
}

// edited returns an answer with the edited body of the server.
func edited(edit func(string) string) faults.Answer {
	return func(w http.ResponseWriter, r *http.Request, real http.Handler) {
		answer := httptest.NewRecorder()
		r.Header.Del("Accept-Encoding")
		real.ServeHTTP(answer, r)
		w.Header().Set("Content-Type", answer.Header().Get("Content-Type"))
		w.WriteHeader(answer.Code)
		_, _ = w.Write([]byte(edit(answer.Body.String())))
	}
}

func replaced(old, by string) faults.Answer {
	return edited(func(s string) string { return strings.ReplaceAll(s, old, by) })
}

func withoutContents(s string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(s, "<content")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		_, s, _ = strings.Cut(rest, "</content>")
	}
}

// A fragment that no bundle can have right is in quarantine by itself.
func TestFragmentThatIsBadEverywhere(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(30, "v1")...), node.DocumentSize(20))
	s := inStep(t, o)
	spoilt := replaced(">Topic 7 v2</value>", ">Topic 7 v2</walue>")
	o.BreakWith(func(w http.ResponseWriter, r *http.Request, real http.Handler) bool {
		if !isFragment(r) && !isBundle(r) {
			return false
		}
		spoilt(w, r, real)
		return true
	})
	o.Put(doc(topics(30, "v2")...))
	_, bad := s.syncPasses(1)
	assert.Contains(t, bad[0].Error, "walue")
	o.BreakWith(nil)
	s.sync()
	s.has(o, doc(topics(30, "v2")...))
}
