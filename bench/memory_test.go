package bench_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/bench/synthetic"
)

// BenchmarkServingMemory measures the memory of tmshare-server while all kinds of readers read a map concurrently, and
// again in a new process when the map has ten times as many changes. The memory must depend neither on the size of the
// map nor on its history.
//
// RssAnon is the memory allocated by the process. VmHWM is all resident memory, including those pages of the database's
// files that the system caches while memory is free.
func BenchmarkServingMemory(b *testing.B) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		fmt.Println("NOT CHECKED: no memory of the server: there is no /proc to read it from")
		b.SkipNow()
	}
	c := synthesize(b, manyTopics())
	program := build(b, "tmshare-server")
	place := newPlace(b)
	importing := runServer(b, program, place, "--map", collection+"="+c.file, "--sp", collection+"="+synthetic.Base, "--max-body", "4000000000")
	importing.do("GET", "", nil, http.StatusOK)
	imported := importing.memory("VmHWM:")
	importing.stop()
	require.NoError(b, os.Remove(c.file))

	batches := changes(b, place, max(5, manyTopics()/10_000))
	var short, long peak
	for b.Loop() {
		publishAll(b, place, batches, 1)
		short = peakOf(b, program, place)
		publishAll(b, place, batches, 9)
		long = peakOf(b, program, place)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(imported/1e6, "import-VmHWM-MB")
	b.ReportMetric(short.anonymous/1e6, "RssAnon-MB")
	b.ReportMetric(short.resident/1e6, "VmHWM-MB")
	b.ReportMetric(long.anonymous/1e6, "long-RssAnon-MB")
	b.ReportMetric(long.resident/1e6, "long-VmHWM-MB")
	ratio(b, long.anonymous, short.anonymous, "RssAnon-of-a-tenth-of-the-changes")
	ratio(b, long.resident, short.resident, "VmHWM-of-a-tenth-of-the-changes")
}

// peak is the most memory that a server has in use, in bytes.
type peak struct{ anonymous, resident float64 }

// batchSize is the number of topics changed at once.
const batchSize = 100

// changes returns documents that describe batchSize topics each.
func changes(b *testing.B, place string, n int) (batches []string) {
	reading := serve(b, place)
	defer reading.stop()
	for i := range n {
		var all strings.Builder
		all.WriteString(`<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1">`)
		for k := range batchSize {
			topic := (i*batchSize + k) * 7919 % manyTopics()
			_, body, found := strings.Cut(reading.describe(fmt.Sprintf("%st/%d", synthetic.Base, topic)), `version="2.1">`)
			require.True(b, found)
			all.WriteString(strings.TrimSuffix(strings.TrimSpace(body), "</topicMap>"))
		}
		batches = append(batches, all.String()+"</topicMap>")
	}
	return batches
}

// publishAll publishes changes of the topics in all batches, each so many times.
func publishAll(b *testing.B, place string, batches []string, times int) {
	writing := serve(b, place)
	defer writing.stop()
	for range times {
		changed := fmt.Sprintf("<value>Changed at %d, topic ", time.Now().UnixNano())
		for _, batch := range batches {
			document := strings.ReplaceAll(batch, "<value>Topic ", changed)
			_, answer := writing.do("POST", "/topics", strings.NewReader(document), http.StatusOK)
			require.Contains(b, string(answer), fmt.Sprintf(`"updated":%d`, batchSize), "%.200s", batch)
		}
	}
}

// peakOf starts the program, requests all documents that subscribers read, some concurrently, and returns the peak of
// its memory.
func peakOf(b *testing.B, program, place string) (p peak) {
	n := runServer(b, program, place)
	defer n.stop()
	urls := n.addresses()
	at := n.url + "/topicmaps/" + collection
	archive := n.archive(urls.archive)
	const xtm21 = "application/x-tm+xml;version=2.1"
	anyArchive := func() string { return archive[rand.IntN(len(archive))] }
	mix := []func(){ // each is a reader with repeated requests
		func() { n.drain(urls.recent, "gzip") },
		func() { n.drain(anyArchive(), "zstd") },
		func() { n.drain(anyArchive(), "") },
		func() { n.drain(n.document(anyArchive()).Entries[0].link(b, "alternate", xtm21), "gzip") },
		func() {
			n.drain(fmt.Sprintf("%s/topics?si=%s", at, url.QueryEscape(synthetic.Base+"t/"+strconv.Itoa(rand.IntN(manyTopics())))), "")
		},
		func() { n.drain(at+"/fragments?since=2000-01-01T00:00:00Z", "gzip") },
		func() { n.drain(at+"/fragments?since="+time.Now().Add(-time.Minute).UTC().Format(time.RFC3339), "") },
		func() { n.drain(urls.snapshot, "gzip") },
		func() { n.drain(urls.snapshot, "") },
	}
	streams := []func(){ // each once: it reads the whole map
		func() { n.drain(at+"/snapshots/current.xtm21", "") },
		func() { n.drain(at+"/snapshots/current.xtm1", "gzip") },
		func() { n.drain(at+"/snapshots/current.xtm21", "zstd") },
	}
	p.anonymous = n.peakDuring(func() {
		var once, again sync.WaitGroup
		done := make(chan struct{})
		for _, ask := range streams {
			once.Go(ask)
		}
		for _, ask := range mix {
			again.Go(func() {
				for i := 0; ; i++ {
					ask()
					select {
					case <-done:
						if i >= 20 {
							return
						}
					default:
					}
				}
			})
		}
		once.Wait()
		close(done)
		again.Wait()
	})
	p.resident = n.memory("VmHWM:")
	return p
}

// drain fetches a document, and discards it.
func (n *node) drain(at, coding string) {
	r, err := http.NewRequest(http.MethodGet, at, nil)
	require.NoError(n.b, err)
	r.Header.Set("Accept-Encoding", coding)
	a, err := n.http.Do(r)
	require.NoError(n.b, err)
	defer a.Body.Close()
	_, err = io.Copy(io.Discard, a.Body)
	require.NoError(n.b, err)
	require.Equal(n.b, http.StatusOK, a.StatusCode, at)
}

// memory returns a line of the status of the process, in bytes.
func (n *node) memory(line string) float64 {
	bytes, ok := n.mayHave(line)
	require.True(n.b, ok, "no %s in /proc", line)
	return bytes
}

// mayHave is memory of a process that may have ended.
func (n *node) mayHave(line string) (float64, bool) {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.cmd.Process.Pid))
	for lines := bufio.NewScanner(bytes.NewReader(status)); lines.Scan(); {
		if f := strings.Fields(lines.Text()); len(f) == 3 && f[0] == line {
			kb, err := strconv.ParseFloat(f[1], 64)
			return kb * 1024, err == nil
		}
	}
	return 0, false
}

// build builds a program.
func build(b *testing.B, name string) string {
	program := filepath.Join(b.TempDir(), name)
	out, err := exec.Command("go", "build", "-o", program, "github.com/tmshare/tmshare/cmd/"+name).CombinedOutput()
	require.NoError(b, err, "%s", out)
	return program
}

// runServer starts the program on a store. It ends with the benchmark, if
// stop does not end it before.
func runServer(b *testing.B, program, place string, flags ...string) *node {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	address := free.Addr().String()
	require.NoError(b, free.Close())
	args := append(append([]string{"serve"}, at(place)...), "--listen", address, "--snapshot-every", "1000000000")
	n := &node{b: b, cmd: exec.Command(program, append(args, flags...)...), url: "http://" + address, http: &http.Client{Transport: &http.Transport{DisableCompression: true}}}
	require.NoError(b, n.cmd.Start())
	b.Cleanup(n.stop)
	for range 500 {
		if c, err := net.Dial("tcp", address); err == nil {
			require.NoError(b, c.Close())
			return n
		}
		time.Sleep(20 * time.Millisecond)
	}
	b.Fatal("the server does not start")
	return nil
}
