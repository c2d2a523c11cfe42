package client_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/testenv"
)

// counting counts the bytes of answers.
type counting struct {
	http.ResponseWriter
	n *int
}

func (c counting) Write(p []byte) (int, error) {
	*c.n += len(p)
	return c.ResponseWriter.Write(p)
}

func (c counting) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// schemeOf returns a document of a scheme with n concepts.
func schemeOf(n int, more ...string) string {
	elements := append([]string{vocabulary, topic("scheme", "the scheme")}, topics(n, "v1")...)
	for i := range n {
		elements = append(elements, link("near", fmt.Sprintf("t%d", i), "scheme"))
	}
	return doc(append(elements, more...)...)
}

// A new concept of a scheme costs a follower only that concept, for any number of concepts of the scheme.
func TestOneConceptMoreCostsNoMoreInALargeScheme(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	large := 2000
	if testenv.Long() {
		large = 50_000
	}
	var sizes, requests [2]int
	for i, n := range []int{100, large} {
		o := publishing(t, schemeOf(n))
		s := inStep(t, o)
		more := []string{topic("new", "a new concept"), link("near", "new", "scheme")}
		o.Put(schemeOf(n, more...))
		o.Seen()
		o.BreakWith(func(w http.ResponseWriter, r *http.Request, real http.Handler) bool {
			real.ServeHTTP(counting{w, &sizes[i]}, r)
			return true
		})
		assert.Equal(t, 1, s.sync().Applied)
		requests[i] = len(o.Seen())
		if !testenv.Long() {
			s.has(o, schemeOf(n, more...))
		}
	}
	t.Logf("100 concepts: %d bytes, %d requests; %d: %d bytes, %d requests", sizes[0], requests[0], large, sizes[1], requests[1])
	require.Positive(t, sizes[0])
	assert.LessOrEqual(t, sizes[1], sizes[0]*12/10)
	assert.LessOrEqual(t, requests[1], requests[0])
}

// The covering entry is unavailable: the covered entry is applied, because it has the same content.
func TestWhatWasPassedOverIsAppliedWhereWhatCoversItIsMissing(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(vocabulary, topic("a", "A"), topic("b", "B")))
	s := inStep(t, o, singly)
	wanted := doc(vocabulary, topic("a", "A"), topic("b", "B"), topic("c", "C"), link("near", "c", "b"))
	o.Put(wanted)
	o.BreakWith(damage(entryOf(o, "c"), always, answering(http.StatusBadGateway)))
	r, _ := s.syncPasses(1)
	assert.Equal(t, 1, r.Applied, "b is applied, as c is missing")
	o.BreakWith(nil)
	s.sync()
	s.has(o, wanted)
}

// A covered entry of a topic in quarantine replaces the older entry.
func TestCoveredEntryTakesTheTopicOutOfQuarantine(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(vocabulary, topic("a", "A"), topic("b", "B")))
	s := inStep(t, o, singly)
	o.Put(doc(vocabulary, topic("a", "A"), topic("b", "B, changed")))
	var lacking string // the path of the fragment that is not there
	isOfB := entryOf(o, "b")
	o.BreakWith(damage(func(r *http.Request) bool {
		if lacking == "" && isOfB(r) {
			lacking = r.URL.Path
		}
		return r.URL.Path == lacking
	}, always, answering(http.StatusNotFound)))
	s.syncPasses(1)
	wanted := doc(vocabulary, topic("a", "A"), topic("b", "B, changed"), topic("c", "C"), link("near", "c", "b"))
	o.Put(wanted)
	s.sync()
	s.has(o, wanted)
}
