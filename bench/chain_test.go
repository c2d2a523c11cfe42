package bench_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/bench/synthetic"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/ext"
	"github.com/tmshare/tmshare/internal/publish"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/server/upkeep"
	"github.com/tmshare/tmshare/internal/store"
)

// hops is the number of replicas in the chain of BenchmarkReplicaChain.
const hops = 4

// BenchmarkReplicaChain measures the cost of one changed topic at each hop of a chain of four replicas: requests, and
// transferred bytes in both directions, including headers. The reference is the fragment of the topic, as its origin
// serves it without a coding. The last hop is compared with the first one, too: the distance from the origin must not
// increase the cost. The documents of the feed have the usual size, and are full of earlier entries.
func BenchmarkReplicaChain(b *testing.B) {
	c := synthesize(b, mapSize())
	original, err := os.ReadFile(c.file)
	require.NoError(b, err)
	origin := newHop(b)
	_, err = origin.server.Import(b.Context(), store.Collection{Name: collection, SP: synthetic.Base}, bytes.NewReader(original), c.file)
	require.NoError(b, err)
	chain := []*hop{origin}
	for range hops {
		next := newHop(b)
		_, err := next.Subscribe(b.Context(), chain[len(chain)-1].server.BaseURL+"/topicmaps/"+collection, client.SubscribeOptions{Replicate: true})
		require.NoError(b, err)
		_, err = next.Sync(b.Context(), collection)
		require.NoError(b, err)
		chain = append(chain, next)
	}
	var size, changes float64
	requests, wire := make([]float64, hops), make([]float64, hops)
	for b.Loop() {
		for range 20 * rounds() {
			changes++
			i := int(changes) % mapSize()
			document := origin.ask(b, http.MethodGet, fmt.Sprintf("/topics?si=%st/%d", synthetic.Base, i), "")
			document = strings.Replace(document, fmt.Sprintf(">Topic %d", i), fmt.Sprintf(">Topic %d, change %d", i, int(changes)), 1)
			var p publish.Published
			require.NoError(b, json.Unmarshal([]byte(origin.ask(b, http.MethodPost, "/topics", document)), &p))
			require.Equal(b, 1, p.Updated)
			size += float64(len(origin.ask(b, http.MethodGet, fmt.Sprintf("/topics?si=%st/%d", synthetic.Base, i), "")))
			for at, next := range chain[1:] {
				from := chain[at]
				from.requests.Store(0)
				from.bytes.Store(0)
				r, err := next.Sync(b.Context(), collection)
				require.NoError(b, err)
				require.Equal(b, 1, r.Applied)
				require.True(b, r.Proven)
				requests[at] += float64(from.requests.Load())
				wire[at] += float64(from.bytes.Load())
			}
		}
	}
	b.ReportMetric(0, "ns/op")
	var most, total float64
	for at := range hops {
		most = max(most, requests[at]/changes)
		total += wire[at]
	}
	b.ReportMetric(most, "requests/hop")
	b.ReportMetric(total/hops/changes, "B/hop")
	b.ReportMetric(size/changes, "B/fragment")
	ratio(b, total/hops, size, "bytes-of-fragment")
	ratio(b, wire[hops-1], wire[0], "bytes-of-first-hop")
}

// hop is a node of a chain: its server, and its client of the previous one.
type hop struct {
	*client.Client
	db              *store.DB
	server          *server.Server
	requests, bytes atomic.Int64 // of its readers
}

func newHop(b *testing.B) *hop {
	logger := slog.New(slog.DiscardHandler)
	db, err := store.Open(b.Context(), store.Options{Dir: b.TempDir(), Indexes: ext.Indexes(), Logger: logger})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, db.Close()) })
	h := &hop{db: db}
	socket := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.requests.Add(1)
		h.server.ServeHTTP(w, r)
	}))
	socket.Listener = countingListener{socket.Listener, &h.bytes}
	socket.Start()
	b.Cleanup(socket.Close)
	h.server, err = server.New(server.Config{
		Store: db, BaseURL: socket.URL, OnLoopback: true, Logger: logger, Policy: upkeep.Policy{SnapshotEvery: 1 << 30},
	})
	require.NoError(b, err)
	b.Cleanup(h.server.Close)
	h.Client, err = client.New(client.Config{Store: db, Logger: logger})
	require.NoError(b, err)
	return h
}

// ask sends a request to the collection.
func (h *hop) ask(b *testing.B, method, at, body string) string {
	r, err := http.NewRequest(method, h.server.BaseURL+"/topicmaps/"+collection+at, strings.NewReader(body))
	require.NoError(b, err)
	r.Header.Set("Accept", "application/x-tm+xml;version=2.1, */*;q=0.1")
	answer, err := http.DefaultClient.Do(r)
	require.NoError(b, err)
	defer answer.Body.Close()
	got, err := io.ReadAll(answer.Body)
	require.NoError(b, err)
	require.Equal(b, http.StatusOK, answer.StatusCode, "%s %s: %s", method, at, got)
	return string(got)
}

// countingListener is a listener that counts the bytes of its connections, in both directions.
type countingListener struct {
	net.Listener
	bytes *atomic.Int64
}

func (l countingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return countedConn{conn, l.bytes}, err
}

type countedConn struct {
	net.Conn
	bytes *atomic.Int64
}

func (c countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.bytes.Add(int64(n))
	return n, err
}

func (c countedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.bytes.Add(int64(n))
	return n, err
}
