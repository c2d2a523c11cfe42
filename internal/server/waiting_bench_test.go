package server_test

import (
	"bufio"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/testkit/served"
)

// The costs of waiting requests: memory of this process for each, including the client's end of the connection, and the
// 99th percentile of an ordinary GET relative to that without them. A change then answers all of them.
func BenchmarkWaiting(b *testing.B) {
	many := 5000
	if testing.Short() {
		many = 100
	}
	n := start(b, func(c *server.Config) { c.Logger, c.MaxWaiting = slog.New(slog.DiscardHandler), many })
	n.Publish("map", served.Small())
	n.Publish("other", served.Small())
	url := n.URL("/topicmaps/map/fragments")
	tag := n.MustGet(url).Header.Get("ETag")
	request := fmt.Sprintf("HEAD /topicmaps/map/fragments HTTP/1.1\r\nHost: %s\r\nAccept-Encoding: identity\r\nIf-None-Match: %s\r\nPrefer: wait=60\r\n\r\n", n.Address, tag)
	var memory, ratio, woken []float64
	for b.Loop() {
		without := n.percentile("/topicmaps/other/fragments")
		before := inUse()
		var waiting []net.Conn
		for range many {
			c, err := net.Dial("tcp", n.Address)
			require.NoError(b, err)
			_, err = c.Write([]byte(request))
			require.NoError(b, err)
			waiting = append(waiting, c)
		}
		require.Eventually(b, func() bool {
			return strings.Contains(string(n.MustGet("/metrics").Bytes), fmt.Sprintf("\ntmshare_http_requests_waiting %d\n", many))
		}, time.Minute, 10*time.Millisecond)
		memory = append(memory, float64(inUse()-before)/float64(many)/1024)
		ratio = append(ratio, n.percentile("/topicmaps/other/fragments").Seconds()/without.Seconds())
		began := time.Now()
		n.MustPut("map", served.Small("Oslo", fmt.Sprint("Oslo ", time.Now().UnixNano())))
		for _, c := range waiting {
			line, err := bufio.NewReaderSize(c, 64).ReadString('\n')
			require.NoError(b, err)
			require.Contains(b, line, "200 OK")
			c.Close()
		}
		woken = append(woken, time.Since(began).Seconds()*1000)
		request = strings.ReplaceAll(request, tag, n.MustGet(url).Header.Get("ETag"))
		tag = n.MustGet(url).Header.Get("ETag")
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(slices.Max(memory), "KiB/waiting")
	b.ReportMetric(middle(ratio), "×p99-without")
	b.ReportMetric(middle(woken), "ms-until-all-know")
}

func middle(all []float64) float64 {
	slices.Sort(all)
	return all[len(all)/2]
}

// inUse returns the bytes of this process that are not free.
func inUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// percentile returns the 99th percentile of the time of a GET.
func (n *node) percentile(path string) time.Duration {
	var took []time.Duration
	for range 1000 {
		began := time.Now()
		res, err := n.HTTP.Get(n.URL(path))
		require.NoError(n.T, err)
		require.Equal(n.T, http.StatusOK, res.StatusCode)
		_ = res.Body.Close()
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return took[len(took)*99/100]
}
