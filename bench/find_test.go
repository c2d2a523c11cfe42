package bench_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/bench/synthetic"
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/ext/pages"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/testkit/stores"
)

// searches are kinds of queries. %d is a number of a topic.
var searches = []struct{ name, query string }{
	{"letter", "t"},             // every topic has a word that begins so
	{"word", "topic"},           // every topic has it
	{"two-words", "thema nr"},   // likewise
	{"rare-word", "%d"},         // few have it, and some more a word that begins so
	{"name", "Topic %d"},        // one of them is rare
	{"beginnings", "nr them 1"}, // none is
	{"nothing", "topic nowhere%d"},
	{"identifier", synthetic.Base + "t/%d"},
}

// BenchmarkFind measures the duration of searches, each from the request to the last byte of the JSON, for other topics
// each time so that no answer is cached, and the size of the index of words relative to the records with the names. The
// server is in a process of its own. The reference is the page of a topic.
func BenchmarkFind(b *testing.B) {
	stores.InFolders(b)
	size := manyTopics()
	c := synthesize(b, size)
	folder := importInto(b, c)
	entries, recordBytes := indexOf(b, folder)
	n := serve(b, folder)
	rounds := 100
	if testing.Short() {
		rounds = 5
	}
	random := rand.New(rand.NewPCG(1, 2))
	took := map[string][]time.Duration{}
	var all, reference []time.Duration
	for b.Loop() {
		for range rounds {
			for _, s := range searches {
				query, other := s.query, random.IntN(size)
				if slices.Contains([]byte(query), '%') {
					query = fmt.Sprintf(query, other)
				}
				// The limit differs too, for those queries that are the same each time.
				d := n.timed(b, fmt.Sprintf("/search?q=%s&limit=%d", url.QueryEscape(query), 20+random.IntN(80)), s.name == "nothing")
				took[s.name] = append(took[s.name], d)
				all = append(all, d)
			}
			key := fragment.Key(fragment.Ref(fmt.Sprintf("%st/%d", synthetic.Base, random.IntN(size))))
			begun := time.Now()
			n.do("GET", "/topics/"+key+pages.Ending, nil, http.StatusOK)
			reference = append(reference, time.Since(begun))
		}
	}
	b.ReportMetric(0, "ns/op")
	for _, s := range searches {
		b.ReportMetric(ms(quantile(took[s.name], 50)), "ms/median-of-"+s.name)
	}
	b.ReportMetric(ms(quantile(all, 50)), "ms/median")
	b.ReportMetric(ms(quantile(all, 99)), "ms/p99")
	ratio(b, quantile(all, 50).Seconds(), quantile(reference, 50).Seconds(), "median-of-a-page")
	ratio(b, quantile(all, 99).Seconds(), quantile(reference, 99).Seconds(), "p99-of-a-page")
	ratio(b, entries, recordBytes, "bytes-of-records")
}

// timed measures a search, and checks that it finds something, or nothing.
func (n *node) timed(b *testing.B, path string, nothing bool) time.Duration {
	begun := time.Now()
	_, answer := n.do("GET", path, nil, http.StatusOK)
	d := time.Since(begun)
	var found pages.Search
	require.NoError(b, json.Unmarshal(answer, &found))
	require.Equal(b, nothing, len(found.Results) == 0, path)
	return d
}

func quantile(all []time.Duration, percent int) time.Duration {
	slices.Sort(all)
	return all[len(all)*percent/100]
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// indexOf returns the size in bytes of the index of words in a data folder, and of the records of its topics, which
// have the names.
func indexOf(b *testing.B, folder string) (index, records float64) {
	engine := openEngine(b, folder)
	defer func() { require.NoError(b, engine.Close()) }()
	reader, err := engine.Snapshot(b.Context())
	require.NoError(b, err)
	defer reader.Close()
	sizes := map[byte]*float64{keys.TableIndex: &index, keys.TableTopic: &records}
	for r, err := range reader.Range(nil, nil, false) {
		require.NoError(b, err)
		if size := sizes[keys.Table(r.Key)]; size != nil {
			*size += float64(len(r.Key) + len(r.Value))
		}
	}
	return index, records
}
