package bench_test

import (
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// BenchmarkHubFragment measures the time to the first and to the last byte of the fragment of a topic with 50,000
// associations, for the first request and for a later one. The reference is the map with that topic, which is streamed.
func BenchmarkHubFragment(b *testing.B) {
	many := 50_000
	if testing.Short() {
		many = 5000
	}
	s := newScheme(b, many)
	took := map[string][]time.Duration{}
	for b.Loop() {
		for range rounds() {
			s.add()
			hub := s.hub()
			for _, t := range []struct{ name, url string }{{"", hub}, {"-again", hub}, {"-of-map", s.url + "/topicmaps/" + collection + "/snapshots/current.xtm21"}} {
				first, last := s.timed(t.url)
				took["first"+t.name] = append(took["first"+t.name], first)
				took["last"+t.name] = append(took["last"+t.name], last)
			}
		}
	}
	b.ReportMetric(0, "ns/op")
	for _, name := range []string{"first", "last", "first-again", "last-again"} {
		least := slices.Min(took[name])
		b.ReportMetric(least.Seconds()*1000, "ms-to-"+name+"-byte")
		ratio(b, least.Seconds(), slices.Min(took["last-of-map"]).Seconds(), name+"-of-streamed-map")
	}
}

// hub returns the address of the newest fragment of the scheme.
func (s *scheme) hub() string {
	recent := s.document(s.url + "/topicmaps/" + collection + "/fragments")
	for _, e := range recent.Entries {
		if e.TopicSI == "http://example.org/scheme" {
			return e.link(s.b, "alternate", "application/x-tm+xml;version=2.1")
		}
	}
	require.Fail(s.b, "the scheme has no entry")
	return ""
}

// timed returns the time until an answer began and until it ended, with the headers of this project's programs.
func (s *scheme) timed(url string) (first, last time.Duration) {
	r, err := http.NewRequestWithContext(s.b.Context(), http.MethodGet, url, nil)
	require.NoError(s.b, err)
	r.Header.Set("Accept-Encoding", "gzip, zstd;q=0.9")
	start := time.Now()
	answer, err := s.http.Do(r)
	require.NoError(s.b, err)
	defer answer.Body.Close()
	require.Equal(s.b, http.StatusOK, answer.StatusCode)
	_, err = io.ReadFull(answer.Body, make([]byte, 1))
	require.NoError(s.b, err)
	first = time.Since(start)
	_, err = io.Copy(io.Discard, answer.Body)
	require.NoError(s.b, err)
	return first, time.Since(start)
}
