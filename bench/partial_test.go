package bench_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/bench/synthetic"
)

// changesPerUpdate is how many topics a round of BenchmarkPartialUpdate has to bring.
const changesPerUpdate = 10

// BenchmarkPartialUpdate measures what cron would run: a process of tmshare-client
// that fetches and applies the fragments of ten changed topics, from its start to
// its exit, on a copy of 1,000 topics and on one of -topics, or with -million of a
// million, in turn. The cost is that of the change, so the ratio of the medians must
// be near 1. It reports the most anonymous memory that these processes ever have in
// use, too.
func BenchmarkPartialUpdate(b *testing.B) {
	program := build(b, "tmshare-client")
	n := mapSize()
	if *million {
		n = 1_000_000
	}
	large, small := newUpdated(b, program, n), newUpdated(b, program, 1000)
	for b.Loop() {
		for range 5 * rounds() {
			large.update()
			small.update()
		}
	}
	b.ReportMetric(0, "ns/op")
	l, s := large.median(), small.median()
	b.ReportMetric(float64(l.Microseconds())/1000, "ms/large")
	b.ReportMetric(float64(s.Microseconds())/1000, "ms/1k-topics")
	b.ReportMetric(float64(n), "topics")
	ratio(b, l.Seconds(), s.Seconds(), "time-of-1k-topics")
	if large.peak > 0 { // there is a /proc to read it from
		b.ReportMetric(large.peak/1e6, "peak-MB/large")
		b.ReportMetric(small.peak/1e6, "peak-MB/1k-topics")
	}
}

// updated is a server in a process of its own, and a copy that a program keeps in
// step with it.
type updated struct {
	*node
	program, folder string
	fragments       []string // of single topics; their names change
	round           int
	took            []time.Duration
	peak            float64 // bytes
}

func newUpdated(b *testing.B, program string, topics int) *updated {
	c := synthesize(b, topics)
	folder := importInto(b, c)
	require.NoError(b, os.Remove(c.file))
	u := &updated{node: serve(b, folder), program: program, folder: filepath.Join(b.TempDir(), "copy")}
	u.client("subscribe", u.url+"/topicmaps/"+collection)
	u.client("sync")
	for k := range 100 {
		i := k * 7919 % topics
		name := fmt.Sprintf(">Topic %d<", i)
		si := fmt.Sprintf("%st/%d", synthetic.Base, i)
		_, fragment := u.do("GET", "/topics?si="+url.QueryEscape(si), nil, http.StatusOK, "Accept", "application/x-tm+xml;version=2.1")
		require.Contains(b, string(fragment), name)
		u.fragments = append(u.fragments, strings.ReplaceAll(string(fragment), name, fmt.Sprintf(">Topic %d, round %%d<", i)))
	}
	return u
}

// client runs the program and returns how long it takes, and what it says.
func (u *updated) client(args ...string) (took time.Duration, said string) {
	u.b.Helper()
	cmd := exec.Command(u.program, append(args, "--data", u.folder)...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	begin := time.Now()
	require.NoError(u.b, cmd.Start())
	ended := make(chan error, 1)
	go func() {
		err := cmd.Wait()
		took = time.Since(begin)
		ended <- err
	}()
	samples := time.NewTicker(2 * time.Millisecond)
	defer samples.Stop()
	for {
		select {
		case err := <-ended:
			require.NoError(u.b, err, "%s", out.String())
			return took, out.String()
		case <-samples.C:
			if args[0] == "sync" && len(u.fragments) > 0 { // not the clean start
				u.peak = max(u.peak, anonymous(cmd.Process.Pid))
			}
		}
	}
}

// update publishes changes and measures the round that brings them.
func (u *updated) update() {
	u.round++
	for i := range changesPerUpdate {
		document := fmt.Sprintf(u.fragments[(u.round*changesPerUpdate+i)%len(u.fragments)], u.round)
		u.do("POST", "/topics", strings.NewReader(document), http.StatusOK)
	}
	took, said := u.client("sync", "--json")
	require.Contains(u.b, said, fmt.Sprintf(`"applied": %d`, changesPerUpdate))
	u.took = append(u.took, took)
}

func (u *updated) median() time.Duration {
	slices.Sort(u.took)
	return u.took[len(u.took)/2]
}
