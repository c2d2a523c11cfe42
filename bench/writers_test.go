package bench_test

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// BenchmarkWriters measures the changes of one topic per second by twelve writers, each in a collection of its own, and
// by one writer, in turn. Commits of different collections are decided, and written, concurrently.
func BenchmarkWriters(b *testing.B) {
	const posts, many = 50, 12
	n := serve(b, newPlace(b))
	var writers []*writer
	for i := range many {
		writers = append(writers, n.writer(fmt.Sprint("c", i), 100))
	}
	perChange := func(some []*writer) time.Duration {
		start := time.Now()
		var all sync.WaitGroup
		for _, w := range some {
			all.Go(func() {
				for range posts {
					w.post()
				}
			})
		}
		all.Wait()
		return time.Since(start) / time.Duration(len(some)*posts)
	}
	perChange(writers) // the first commits of a process are not like the others
	var one, twelve []time.Duration
	for b.Loop() {
		for range 10 {
			one = append(one, perChange(writers[:1]))
			twelve = append(twelve, perChange(writers))
		}
	}
	b.ReportMetric(0, "ns/op")
	alone, beside := 1/median(one).Seconds(), 1/median(twelve).Seconds()
	b.ReportMetric(alone, "changes/s/one-writer")
	b.ReportMetric(beside, "changes/s/twelve-writers")
	ratio(b, beside, alone, "changes/s-of-one-writer")
}

// BenchmarkPostsBesideAPut measures the time of publishing a change of one topic while new versions of a map of 10,000
// topics, all of them changed, are published in another collection, and without that.
func BenchmarkPostsBesideAPut(b *testing.B) {
	const posts, topics = 300, 10_000
	n := serve(b, newPlace(b))
	large, small := n.writer("large", topics), n.writer("small", 100)
	p99 := func() time.Duration {
		var took []time.Duration
		for range posts {
			start := time.Now()
			small.post()
			took = append(took, time.Since(start))
		}
		slices.Sort(took)
		return took[len(took)*99/100]
	}
	p99()
	var alone, beside []time.Duration
	for b.Loop() {
		alone = append(alone, p99())
		end, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			for puts := 0; ; puts++ {
				select {
				case <-end:
					require.Positive(b, puts, "no version was published beside the changes")
					return
				default:
					large.put()
				}
			}
		}()
		beside = append(beside, p99())
		close(end)
		<-ended
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(alone).Seconds()*1000, "ms/p99/alone")
	b.ReportMetric(median(beside).Seconds()*1000, "ms/p99/beside")
	ratio(b, median(beside).Seconds(), median(alone).Seconds(), "p99-of-posts-alone")
}

// writer publishes changes in a collection.
type writer struct {
	*node
	name    string
	topics  int
	version int
}

// writer returns a writer to a new collection of so many topics.
func (n *node) writer(name string, topics int) *writer {
	w := &writer{node: n, name: name, topics: topics}
	w.do("PUT", w.url+"/topicmaps/"+name, bytes.NewBufferString("{}"), http.StatusCreated, "Content-Type", "application/json")
	w.put()
	return w
}

func (w *writer) topic(i int) string {
	return fmt.Sprintf(`<topic><subjectIdentifier href="http://example.org/%s/%d"/><name><value>Topic %d, version %d</value></name></topic>`, w.name, i, i, w.version)
}

// put publishes a version in which each topic is another one.
func (w *writer) put() {
	w.version++
	document := bytes.NewBufferString(mapBegins)
	for i := range w.topics {
		document.WriteString(w.topic(i))
	}
	document.WriteString("</topicMap>\n")
	w.do("PUT", w.url+"/topicmaps/"+w.name, document, http.StatusOK, "Content-Type", "application/x-tm+xml;version=2.1")
}

// post publishes another version of one topic.
func (w *writer) post() {
	w.version++
	w.do("POST", w.url+"/topicmaps/"+w.name+"/topics", bytes.NewBufferString(mapBegins+w.topic(w.version%w.topics)+"</topicMap>\n"), http.StatusOK, "Content-Type", "application/x-tm+xml;version=2.1")
}
