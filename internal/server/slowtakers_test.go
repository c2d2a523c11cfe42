package server_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/kv/memory"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/served"
)

// fewStates has few states open at a time, as a database has few connections. Others wait.
type fewStates struct {
	kv.Engine
	open chan struct{}
}

func (e *fewStates) Snapshot(ctx context.Context) (kv.Reader, error) {
	select {
	case e.open <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	r, err := e.Engine.Snapshot(ctx)
	if err != nil {
		<-e.open
		return nil, err
	}
	return &oneOfFew{Reader: r, close: sync.OnceFunc(func() { <-e.open })}, nil
}

type oneOfFew struct {
	kv.Reader
	close func()
}

func (r *oneOfFew) Close() {
	r.Reader.Close()
	r.close()
}

// take requests a path, and does not read the answer until the test ends.
func (n *node) take(path string) net.Conn {
	n.T.Helper()
	conn, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(n.T.Context(), "tcp", n.Address)
	require.NoError(n.T, err)
	n.T.Cleanup(func() { conn.Close() })
	require.NoError(n.T, conn.(*net.TCPConn).SetReadBuffer(4<<10))
	_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nAccept-Encoding: identity\r\n\r\n", path, n.Address)
	require.NoError(n.T, err)
	return conn
}

// Clients that read large answers slowly, and those that wait for their turn, do not block a database.
func TestSlowClientsLeaveStatesOfTheStoreToOthers(t *testing.T) {
	t.Parallel()
	e := &fewStates{Engine: memory.New(), open: make(chan struct{}, 32)}
	n := startOn(t, store.Options{Dir: t.TempDir(), Engine: e}, served.DocumentSize(10_000), func(c *server.Config) { c.SlowClientTimeout = time.Minute })
	topics := make([]string, 10_000)
	for i := range topics { // more than the system keeps for a client
		topics[i] = served.Topic(fmt.Sprint("t", i), fmt.Sprint("Topic ", i, strings.Repeat(" long", 100)))
	}
	n.Publish("m", served.TopicMap(topics...))
	for _, path := range []string{"/topicmaps/m/snapshots/current.xtm1", "/topicmaps/m/fragments"} {
		for range 60 {
			n.take(path)
		}
	}
	testenv.Eventually(t, func() bool { return len(e.open) >= 16 }, "nobody takes the large answers")
	n.HTTP.Timeout = 5 * time.Second
	for range 5 {
		assert.Equal(t, http.StatusOK, n.Get("/topicmaps/m/history?si=http://psi.example.org/t1").StatusCode)
	}
	assert.LessOrEqual(t, len(e.open), 17)
}
