package server_test

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/server"
)

// towns is a map of n towns, each with a name, a type, an occurrence and an
// association with the next one.
func towns(n int) []byte {
	var b strings.Builder
	b.WriteString(`<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1">`)
	for i := range n {
		b.WriteString(town(i, "Town") + road(i, (i+1)%n))
	}
	b.WriteString(`</topicMap>`)
	return []byte(b.String())
}

func town(i int, name string) string {
	return fmt.Sprintf(`<topic><subjectIdentifier href="%s%d"/><instanceOf>%s</instanceOf><name><value>%s %d</value></name>`+
		`<occurrence><type>%s</type><resourceData>number %d</resourceData></occurrence></topic>`,
		psi, i, psiRef("town"), name, i, psiRef("note"), i)
}

// road is the association of a town with the next one.
func road(i, next int) string {
	role := func(id int) string { return "<role><type>" + psiRef("stop") + "</type>" + psiRef(id) + "</role>" }
	return "<association><type>" + psiRef("road") + "</type>" + role(i) + role(next) + "</association>"
}

func psiRef(id any) string { return fmt.Sprintf(`<subjectIdentifierRef href="%s%v"/>`, psi, id) }

// BenchmarkPostTopic measures posting one changed topic to a map of 100,000
// topics beside one of 1,000, all HTTP and the commit included, in turn. It prints
// the ratio of the medians: the cost is that of the change.
func BenchmarkPostTopic(b *testing.B) {
	n := start(b, func(c *server.Config) { c.SnapshotEvery = 1 << 30 })
	sizes := [2]int{100_000, 1000}
	for _, size := range sizes {
		n.publish(fmt.Sprintf("towns-%d", size), towns(size))
	}
	var times [2][]time.Duration
	round := 0
	for b.Loop() {
		round++
		for i, size := range sizes {
			at := round * 7919 % (size - 2)
			doc := `<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1">` + town(at+1, fmt.Sprint("New ", round)) + road(at, at+1) + road(at+1, at+2) + `</topicMap>`
			began := time.Now()
			a := n.do(http.MethodPost, fmt.Sprintf("/topicmaps/towns-%d/topics", size), bytes.NewReader([]byte(doc)))
			times[i] = append(times[i], time.Since(began))
			require.Equal(b, 1, published(b, a).Updated)
		}
	}
	median := func(d []time.Duration) time.Duration { slices.Sort(d); return d[len(d)/2] }
	large, small := median(times[0]), median(times[1])
	b.ReportMetric(float64(large.Microseconds())/1000, "100k-ms")
	b.ReportMetric(float64(small.Microseconds())/1000, "1k-ms")
	b.ReportMetric(float64(large)/float64(small), "100k/1k")
}
