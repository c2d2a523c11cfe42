package bench_test

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/testenv"
)

// BenchmarkNodes measures how many answers, and changes, one second of processor time is enough for, with one, two and
// three servers on one database. As long as that does not fall, and the database is not the limit, more processors
// serve as much more. The time is that of the servers, and of those with the database. Each server gets the same load
// at a steady pace, which leaves processors idle: all of them share this machine, and a process that waits for a
// processor takes more time of it.
func BenchmarkNodes(b *testing.B) {
	if !testenv.OnPostgreSQL() {
		b.Skip("NOT CHECKED: several servers need a database: -engine postgres")
	}
	place, program := newPlace(b), build(b, "tmshare-server")
	const topics, most, clients, seconds = 200, 3, 4, 8 // clients and seconds are those of each server
	const reads, posts = 40, 8                          // a second, of each client
	var nodes []*node
	var writers []*writer
	for i := range most * clients {
		if i == 0 {
			nodes = append(nodes, runServer(b, program, place))
		}
		writers = append(writers, nodes[0].writer(fmt.Sprint("c", i), topics))
	}
	base := nodes[0].url
	for range most - 1 {
		nodes = append(nodes, runServer(b, program, place, "--base-url", base))
	}
	figures := map[string][]float64{}
	for b.Loop() {
		for _, count := range []int{1, 2, 3} {
			some := nodes[:count]
			each := func(pace, seconds int, do func(at *node, c int)) (servers, all float64) {
				own, database := timeOf(b, some...), databaseTime(b)
				var group sync.WaitGroup
				for c := range clients * count {
					group.Go(func() {
						due := time.NewTicker(time.Second / time.Duration(pace))
						defer due.Stop()
						for range pace * seconds {
							<-due.C
							do(some[c%count], c) // writers of a collection keep to a server
						}
					})
				}
				group.Wait()
				servers = timeOf(b, some...) - own
				done := float64(clients * count * pace * seconds)
				return done / servers, done / (servers + (databaseTime(b) - database).Seconds())
			}
			read := func(at *node, c int) {
				si := fmt.Sprintf("http://example.org/c%d/%d", c, rand.IntN(topics))
				at.drain(fmt.Sprintf("%s/topicmaps/c%d/topics?si=%s", at.url, c, url.QueryEscape(si)), "gzip")
			}
			write := func(at *node, c int) {
				w := *writers[c]
				w.node = at
				w.post()
				writers[c].version = w.version
			}
			measure := func(what string, pace int, do func(at *node, c int)) {
				each(pace, 1, do)
				servers, all := each(pace, seconds, do)
				figures[what] = append(figures[what], servers)
				figures[what+"-with-database"] = append(figures[what+"-with-database"], all)
			}
			measure("reads", reads, read)
			measure("changes", posts, write)
		}
	}
	b.ReportMetric(0, "ns/op")
	for what, f := range figures {
		one, three := every(f, 0), every(f, 2)
		b.ReportMetric(one, what+"/cpu-s-of-one")
		b.ReportMetric(three, what+"/cpu-s-of-three")
		ratio(b, three, one, what+"-of-one-server")
	}
}

// every returns the mean of each third figure, from the one with an index.
func every(figures []float64, from int) (mean float64) {
	n := 0
	for i := from; i < len(figures); i += 3 {
		mean += figures[i]
		n++
	}
	return mean / float64(n)
}

// BenchmarkPartitions measures the processor time of an answer that a server in front passes on, beside one of its own.
func BenchmarkPartitions(b *testing.B) {
	program := build(b, "tmshare-server")
	dir := b.TempDir()
	tokens := filepath.Join(dir, "tokens")
	require.NoError(b, os.WriteFile(tokens, []byte("a-token-of-sixteen-or-more\n"), 0o600))
	file := filepath.Join("..", "testdata", "xtm", "egov.xtm")
	const public = "http://maps.example.org"
	behind := runServer(b, program, filepath.Join(dir, "behind"), "--map", "there="+file, "--base-url", public, "--token-file", tokens)
	front := runServer(b, program, filepath.Join(dir, "front"), "--map", "here="+file, "--base-url", public, "--token-file", tokens,
		"--partition", "behind="+behind.url)
	const reads = 3000
	took := func(name string) float64 {
		before := timeOf(b, front, behind)
		for range reads {
			front.drain(front.url+"/topicmaps/"+name+"/fragments", "gzip")
		}
		return (timeOf(b, front, behind) - before) / reads * 1e6
	}
	var own, passed float64
	for b.Loop() {
		took("here")
		own += took("here")
		took("there")
		passed += took("there")
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(own/float64(b.N), "cpu-µs/own")
	b.ReportMetric(passed/float64(b.N), "cpu-µs/passed-on")
	ratio(b, passed, own, "time-of-its-own")
}

// timeOf returns the processor time of the processes of servers, in seconds.
func timeOf(b *testing.B, some ...*node) (seconds float64) {
	for _, n := range some {
		seconds += processTime(b, n.cmd.Process.Pid).Seconds()
	}
	return seconds
}
