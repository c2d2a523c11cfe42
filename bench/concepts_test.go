package bench_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/ext"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testenv"
)

// concepts writes a SKOS vocabulary of so many concepts, a hundred below each of some.
func concepts(n, version int) []byte {
	var b bytes.Buffer
	b.WriteString(conceptPrefixes)
	for i := range n {
		b.WriteString(concept(i, version))
	}
	return b.Bytes()
}

const conceptPrefixes = "@prefix skos: <http://www.w3.org/2004/02/skos/core#> .\n"

func concept(i, version int) string {
	parent := ""
	if i >= 100 {
		parent = fmt.Sprintf(" ;\n    skos:broader <http://example.org/voc/%d>", i/100)
	}
	return fmt.Sprintf("<http://example.org/voc/%[1]d> a skos:Concept ;\n    skos:prefLabel \"concept %[1]d, version %[2]d\"@en , \"Begriff %[1]d\"@de ;\n    skos:notation \"N%[1]d\" ;\n    skos:definition \"What is meant by the concept %[1]d of this vocabulary, in a sentence of some length.\"@en%[3]s .\n", i, version, parent)
}

// vocabulary is a SKOS vocabulary that a server publishes.
type vocabulary struct {
	b       *testing.B
	url     string
	n       int
	handler http.Handler
	client  *client.Client
	took    []time.Duration
}

func newVocabulary(b *testing.B, n int) *vocabulary {
	logger := slog.New(slog.DiscardHandler)
	open := func() *store.DB {
		db, err := store.Open(b.Context(), store.Options{Dir: b.TempDir(), Indexes: ext.Indexes(), Logger: logger})
		require.NoError(b, err)
		b.Cleanup(func() { require.NoError(b, db.Close()) })
		return db
	}
	v := &vocabulary{b: b, n: n}
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { v.handler.ServeHTTP(w, r) }))
	s, err := server.New(server.Config{Parts: ext.Parts(), Formats: ext.Formats(), Store: open(), BaseURL: h.URL, OnLoopback: true, Logger: logger})
	require.NoError(b, err)
	b.Cleanup(func() { h.Close(); s.Close() })
	v.handler, v.url = s, h.URL
	v.send("PUT", "", "application/json", []byte("{}"))
	v.send("PUT", "", "text/turtle", concepts(n, 0))
	v.client, err = client.New(client.Config{Formats: ext.Formats(), Store: open(), Logger: logger})
	require.NoError(b, err)
	_, err = v.client.Subscribe(b.Context(), h.URL+"/topicmaps/voc", client.SubscribeOptions{})
	require.NoError(b, err)
	_, err = v.client.Sync(b.Context(), "voc")
	require.NoError(b, err)
	return v
}

func (v *vocabulary) send(method, path, mediaType string, body []byte) {
	v.b.Helper()
	req, err := http.NewRequest(method, v.url+"/topicmaps/voc"+path, bytes.NewReader(body))
	require.NoError(v.b, err)
	req.Header.Set("Content-Type", mediaType)
	res, err := http.DefaultClient.Do(req)
	require.NoError(v.b, err)
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	require.NoError(v.b, err)
	require.Less(v.b, res.StatusCode, 300, "%s", answer)
}

// change publishes a changed concept and follows it.
func (v *vocabulary) change(round int) {
	i := v.n - 1 - round%100
	start := testenv.CPUTime()
	v.send("POST", "/topics", "text/turtle", []byte(conceptPrefixes+concept(i, round+1)))
	r, err := v.client.Sync(v.b.Context(), "voc")
	v.took = append(v.took, testenv.CPUTime()-start)
	require.NoError(v.b, err)
	require.Equal(v.b, 1, r.Applied)
	require.True(v.b, r.Proven)
}

// BenchmarkConcept measures the cost of publishing one changed concept of a SKOS vocabulary, sent in Turtle, and of
// following it: with 1,000 concepts and with 50,000, in turn. The cost must depend on the change only.
func BenchmarkConcept(b *testing.B) {
	many := 50_000
	if testing.Short() {
		many = 2000
	}
	large, small := newVocabulary(b, many), newVocabulary(b, 1000)
	round := 0
	for b.Loop() {
		for range 100 * rounds() {
			large.change(round)
			small.change(round)
			round++
		}
	}
	l, s := median(large.took), median(small.took)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(l.Seconds()*1000, "cpu-ms/"+counted(many))
	b.ReportMetric(s.Seconds()*1000, "cpu-ms/1k")
	ratio(b, l.Seconds(), s.Seconds(), "concept-of-1k")
}

// BenchmarkGraphFragments measures the cost of answering with fragments in RDF, which are made of the map as those in
// XTM are. Each is requested once, so that none is cached. The reference is XTM 1.0, the default form.
func BenchmarkGraphFragments(b *testing.B) {
	n := 5000
	if testing.Short() {
		n = 500
	}
	v := newVocabulary(b, n)
	var addresses []string
	document := v.get(b, "/topicmaps/voc/fragments?since=2000-01-01")
	for {
		for _, line := range strings.Split(document, "\n") {
			if address, ok := strings.CutSuffix(line, `.xtm1"/>`); ok && strings.Contains(line, `rel="topicmapdata"`) {
				addresses = append(addresses, address[strings.LastIndex(address, "/topicmaps/"):])
			}
		}
		_, next, more := strings.Cut(document, `rel="next"`)
		if !more {
			break
		}
		_, next, _ = strings.Cut(next, `href="`)
		next, _, _ = strings.Cut(next, `"`)
		document = v.get(b, strings.TrimPrefix(next, v.url))
	}
	require.Greater(b, len(addresses), n)
	took := map[string]time.Duration{}
	endings := []string{".xtm1", ".xtm21", ".ttl", ".nt", ".rdf"}
	for range b.N { // fragments are cached: the first round counts
		if len(took) > 0 {
			continue
		}
		for part := range slices.Chunk(addresses[len(addresses)-n:], 100) {
			for _, ending := range endings {
				start := testenv.CPUTime()
				for _, address := range part {
					v.get(b, address+ending)
				}
				took[ending] += testenv.CPUTime() - start
			}
		}
	}
	b.ReportMetric(0, "ns/op")
	for _, ending := range endings {
		rate(b, float64(n), "fragments"+ending, took[ending])
	}
	for _, ending := range endings[2:] {
		b.ReportMetric(took[".xtm21"].Seconds()/took[ending].Seconds(), "speed-of-XTM-2.1"+ending)
		ratio(b, took[".xtm1"].Seconds(), took[ending].Seconds(), "speed-of-XTM-1.0"+ending)
	}
}

// get returns the answer of the server, without a connection.
func (v *vocabulary) get(b *testing.B, address string) string {
	answer := httptest.NewRecorder()
	v.handler.ServeHTTP(answer, httptest.NewRequest("GET", address, nil))
	require.Equal(b, http.StatusOK, answer.Code, "%s: %s", address, answer.Body)
	return answer.Body.String()
}
