package bench_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"net/http"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/publish"
)

// listedIn is the part of a ResourceSync document that the benchmarks use.
type listedIn struct {
	XMLName xml.Name
	Sitemap []struct {
		Loc string `xml:"loc"`
	} `xml:"sitemap"`
}

// synced waits until the node has made the ResourceSync documents, and returns the time.
func (n *node) synced() time.Duration {
	start := time.Now()
	for {
		a, err := n.http.Get(n.url + "/topicmaps/" + collection + "/resourcesync/capabilitylist.xml")
		require.NoError(n.b, err)
		a.Body.Close()
		if a.StatusCode == http.StatusOK {
			return time.Since(start)
		}
		require.Equal(n.b, http.StatusServiceUnavailable, a.StatusCode)
	}
}

func (n *node) listed(at string) (l listedIn) {
	_, body := n.do("GET", at, nil, http.StatusOK)
	require.NoError(n.b, xml.Unmarshal(body, &l))
	return l
}

// BenchmarkResourceList measures the speed of serving the parts of a large Resource List, relative to nginx with the
// same bytes in files; and the time and memory for making all ResourceSync documents of a collection. -topics or
// -million set the number of resources; parts of more than 50,000 of them are all alike.
func BenchmarkResourceList(b *testing.B) {
	topics := manyTopics()
	n := serve(b, importInto(b, synthesize(b, topics)))
	took := n.synced()
	part := n.url + "/topicmaps/" + collection + "/resourcesync/resourcelist.xml"
	if index := n.listed(part); len(index.Sitemap) > 0 {
		part = index.Sitemap[0].Loc
	}
	_, plain := n.do("GET", part, nil, http.StatusOK)
	_, packed := n.do("GET", part, nil, http.StatusOK, "Accept-Encoding", "gzip")
	reference, nginx, missing := startNginx(b, map[string][]byte{"part": plain, "part.gz": packed})
	if _, err := exec.LookPath("wrk"); missing == nil && err != nil {
		missing = fmt.Errorf("wrk is not installed")
	}
	if missing != nil {
		fmt.Println("NOT CHECKED: no Resource List served beside nginx:", missing)
		b.SkipNow()
	}
	made := n.memory("RssAnon:")
	for _, c := range []struct {
		name    string
		headers []string
	}{
		{"Plain", nil},
		{"Gzip", []string{"Accept-Encoding", "gzip"}},
	} {
		b.Run(c.name, func(b *testing.B) {
			_, _, body := fetch(b, part, c.headers...)
			_, _, refBody := fetch(b, reference+"/part", c.headers...)
			require.True(b, bytes.Equal(refBody, body), "the same bytes")
			var own, ref load
			for b.Loop() {
				for range *seconds {
					own = own.better(wrk(b, n.cmd.Process.Pid, part, c.headers...))
					ref = ref.better(wrk(b, nginx, reference+"/part", c.headers...))
				}
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(own.perSecond*float64(len(body))/1e6, "MB/s")
			b.ReportMetric(float64(topics)/took.Seconds(), "resources/s-made")
			b.ReportMetric(made/1e6, "RssAnon-MB")
			ratio(b, own.perSecond, ref.perSecond, "requests/s-of-nginx")
			ratio(b, own.perCPUSecond, ref.perCPUSecond, "requests/cpu-s-of-nginx")
		})
	}
}

// BenchmarkOpenChanges measures the time of publishing one changed topic and then getting the open change list, on a
// collection of 1,000 topics and on a large one, in turn. The cost must depend on the open changes only, so the ratio
// of the medians must be near 1.
func BenchmarkOpenChanges(b *testing.B) {
	const posts, few = 200, 1000
	large := newEditor(b, counted(manyTopics()), manyTopics(), posts)
	small := newEditor(b, counted(few), few, posts)
	large.synced()
	small.synced()
	for b.Loop() {
		for k := range posts {
			large.postAndGet(k)
			small.postAndGet(k)
		}
	}
	b.ReportMetric(0, "ns/op")
	large.report(b)
	small.report(b)
	ratio(b, large.median().Seconds(), small.median().Seconds(), "time-of-"+counted(few)+"-topics")
}

func (e *editor) postAndGet(k int) {
	e.round++
	document := fmt.Sprintf(e.documents[k], e.round)
	start := time.Now()
	_, answer := e.do("POST", "/topics", bytes.NewReader([]byte(document)), http.StatusOK)
	_, list := e.do("GET", "/resourcesync/changelist-open.xml", nil, http.StatusOK)
	e.took = append(e.took, time.Since(start))
	var p publish.Published
	require.NoError(e.b, json.Unmarshal(answer, &p))
	require.Equal(e.b, 1, p.Updated)
	require.Contains(e.b, string(list), p.LastChange, "the change is in the list")
}
