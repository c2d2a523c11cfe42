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
)

// What requests that wait cost: memory of this process for each, the client's end of the connection included, and the
// 99th percentile of an ordinary GET beside that without them. A change then answers all of them.
func BenchmarkWaiting(b *testing.B) {
	many := 5000
	if testing.Short() {
		many = 100
	}
	n := start(b, func(c *server.Config) { c.Logger, c.MaxWaiting = slog.New(slog.DiscardHandler), many })
	n.publish("map", small())
	n.publish("other", small())
	url := n.url("/topicmaps/map/fragments")
	tag := n.mustGet(url).Header.Get("ETag")
	request := fmt.Sprintf("HEAD /topicmaps/map/fragments HTTP/1.1\r\nHost: %s\r\nAccept-Encoding: identity\r\nIf-None-Match: %s\r\nPrefer: wait=60\r\n\r\n", n.address, tag)
	var memory, ratio, woken []float64
	for b.Loop() {
		without := n.percentile("/topicmaps/other/fragments")
		before := inUse()
		var waiting []net.Conn
		for range many {
			c, err := net.Dial("tcp", n.address)
			require.NoError(b, err)
			_, err = c.Write([]byte(request))
			require.NoError(b, err)
			waiting = append(waiting, c)
		}
		require.Eventually(b, func() bool {
			return strings.Contains(string(n.mustGet("/metrics").body), fmt.Sprintf("\ntmshare_http_requests_waiting %d\n", many))
		}, time.Minute, 10*time.Millisecond)
		memory = append(memory, float64(inUse()-before)/float64(many)/1024)
		ratio = append(ratio, n.percentile("/topicmaps/other/fragments").Seconds()/without.Seconds())
		began := time.Now()
		n.mustPut("map", small("Oslo", fmt.Sprint("Oslo ", time.Now().UnixNano())))
		for _, c := range waiting {
			line, err := bufio.NewReaderSize(c, 64).ReadString('\n')
			require.NoError(b, err)
			require.Contains(b, line, "200 OK")
			c.Close()
		}
		woken = append(woken, time.Since(began).Seconds()*1000)
		request = strings.ReplaceAll(request, tag, n.mustGet(url).Header.Get("ETag"))
		tag = n.mustGet(url).Header.Get("ETag")
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
		res, err := n.http.Get(n.url(path))
		require.NoError(n.t, err)
		require.Equal(n.t, http.StatusOK, res.StatusCode)
		_ = res.Body.Close()
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return took[len(took)*99/100]
}
