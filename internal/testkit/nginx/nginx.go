// Package nginx puts caches of a real nginx before a server: edges, each with a cache of its own, and a front that
// forwards to one of them.
package nginx

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"net"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/testenv"
)

// Edge holds the settings of a cache. All keep answers as long as Cache-Control permits, and write a Date of their own,
// without Age.
type Edge struct {
	HonoursNoCache bool // of requests, as few caches do
	IgnoresQuery   bool // answers for another query of the same path
}

// Cache is the header in which an edge reports its source: HIT for a cached answer, MISS or EXPIRED for one of the
// server, BYPASS after a request with no-cache.
const Cache = "X-Cache"

// Front is the address for clients: it forwards to one edge at a time.
type Front struct {
	URL  string
	edge atomic.Pointer[url.URL]
}

// NewFront starts a front. It is made before the server, which makes its links from the front's address.
func NewFront(t testing.TB) *Front {
	t.Helper()
	f := &Front{}
	s := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(f.edge.Load())
			r.Out.Host = r.In.Host
		},
		ErrorLog: log.New(io.Discard, "", 0),
	})
	t.Cleanup(s.Close)
	f.URL = s.URL
	return f
}

// Use leads to an edge from now on.
func (f *Front) Use(edge string) {
	u, err := url.Parse(edge)
	if err != nil {
		panic(err) // Start has made it
	}
	f.edge.Store(u)
}

// Start starts edges before a server, and returns their addresses. Without nginx the test is skipped.
func Start(t testing.TB, server string, edges ...Edge) (addresses []string) {
	t.Helper()
	path := testenv.Command(t, "nginx")
	dir := t.TempDir()
	var config strings.Builder
	fmt.Fprintf(&config,
		"daemon off; master_process off; pid %s/pid; error_log stderr warn; events { worker_connections 256; }\nhttp "+
			"{\naccess_log off;\n", dir)
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		fmt.Fprintf(&config, "%s_temp_path %s/%s;\n", kind, dir, kind)
	}
	for i, e := range edges {
		address, err := testenv.FreeAddress()
		require.NoError(t, err)
		key := "$request_uri"
		if e.IgnoresQuery {
			key = "$uri"
		}
		bypass := ""
		if e.HonoursNoCache {
			bypass = "proxy_cache_bypass $http_cache_control;"
		}
		fmt.Fprintf(&config, `proxy_cache_path %[1]s/cache%[2]d keys_zone=edge%[2]d:1m use_temp_path=off;
server { listen %[3]s; location / {
	proxy_pass %[4]s; proxy_http_version 1.1; proxy_set_header Host $http_host; proxy_set_header Connection "";
	proxy_cache edge%[2]d; proxy_cache_key "%[5]s"; %[6]s add_header %[7]s $upstream_cache_status always;
} }
`, dir, i, address, server, key, bypass, Cache)
		addresses = append(addresses, "http://"+address)
	}
	config.WriteString("}\n")
	file := filepath.Join(dir, "nginx.conf")
	require.NoError(t, os.WriteFile(file, []byte(config.String()), 0o600))
	var output bytes.Buffer
	cmd := exec.Command(path, "-p", dir, "-e", "stderr", "-c", file)
	cmd.Stderr = &output
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(output.String())
		}
	})
	for _, at := range addresses {
		testenv.Eventually(t, func() bool {
			c, err := net.Dial("tcp", strings.TrimPrefix(at, "http://"))
			if err == nil {
				c.Close()
			}
			return err == nil
		}, "nginx does not listen")
	}
	return addresses
}
