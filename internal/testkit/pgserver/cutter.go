package pgserver

import (
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/testenv"
)

// Cutter passes bytes between programs and a server of PostgreSQL, and now and then cuts a
// connection, at any byte in either direction.
type Cutter struct {
	Cuts atomic.Int64 // so far

	dir, to     string
	least, most int64

	mu     sync.Mutex
	random *rand.Rand
	open   map[net.Conn]bool
}

const socket = ".s.PGSQL.5432"

// NewCutter returns a cutter before the server at an address, until the test ends. It cuts each connection after so
// many bytes, at least and at most.
func NewCutter(t testing.TB, address string, least, most int64) *Cutter {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	dir, err := os.MkdirTemp("", "cut")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	c := &Cutter{dir: dir, to: socketAt(u), least: least, most: most, random: rand.New(rand.NewPCG(testenv.Seed(), 0)),
		open: map[net.Conn]bool{}}
	l, err := net.Listen("unix", filepath.Join(dir, socket))
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go c.pass(client)
		}
	}()
	return c
}

// URL returns the address of the server through the cutter.
func (c *Cutter) URL() string {
	return "postgres://tmshare@/postgres?" + url.Values{"host": {c.dir}}.Encode()
}

// socketAt returns the socket of the server at an address.
func socketAt(u *url.URL) string { return filepath.Join(u.Query().Get("host"), socket) }

// Lead has connections from now on lead to another server. Those that are open stay.
func (c *Cutter) Lead(t testing.TB, address string) {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.to = socketAt(u)
}

// CutAll cuts all connections that are open.
func (c *Cutter) CutAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.open {
		conn.Close()
		c.Cuts.Add(1)
	}
}

// bytes returns the number of bytes after which a connection is cut.
func (c *Cutter) bytes() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.least + c.random.Int64N(c.most-c.least)
}

func (c *Cutter) note(conn net.Conn, open bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if delete(c.open, conn); open {
		c.open[conn] = true
	}
}

func (c *Cutter) pass(client net.Conn) {
	c.note(client, true)
	defer c.note(client, false)
	defer client.Close()
	c.mu.Lock()
	to := c.to
	c.mu.Unlock()
	server, err := net.Dial("unix", to)
	if err != nil {
		return
	}
	defer server.Close()
	done := make(chan bool, 2)
	for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
		go func() {
			_, err := io.CopyN(way[1], way[0], c.bytes())
			done <- err == nil
		}()
	}
	if <-done {
		c.Cuts.Add(1)
	}
}
