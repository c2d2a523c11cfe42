package server_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/served"
)

// The log has the client's address, not the one of a trusted proxy; and none that a client has forged.
func TestTheLogHasTheAddressOfTheClient(t *testing.T) {
	t.Parallel()
	n := start(t, func(c *server.Config) { c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")} })
	for i, c := range []struct {
		peer      string
		forwarded []string
		want      string
	}{
		{"127.0.0.1:99", nil, "127.0.0.1:99"},
		{"127.0.0.1:99", []string{"192.0.2.7"}, "192.0.2.7"},
		{"[::1]:99", []string{"2001:db8::7"}, "2001:db8::7"},
		{"10.1.2.3:99", []string{" [2001:db8::7] "}, "2001:db8::7"},
		{"10.1.2.3:99", []string{"192.0.2.7:1234"}, "192.0.2.7"},
		{"10.1.2.3:99", []string{"6.6.6.6, 192.0.2.7"}, "192.0.2.7"},
		{"10.1.2.3:99", []string{"6.6.6.6", "192.0.2.7, 10.9.9.9"}, "192.0.2.7"},
		{"10.1.2.3:99", []string{"10.4.4.4, 127.0.0.1"}, "10.4.4.4"},
		{"[::ffff:10.1.2.3]:99", []string{"::ffff:192.0.2.7"}, "192.0.2.7"},
		{"10.1.2.3:99", []string{"unknown"}, "10.1.2.3:99"},
		{"10.1.2.3:99", []string{"192.0.2.7, _hidden"}, "10.1.2.3:99"},
		{"10.1.2.3:99", []string{"x\" status=200"}, "10.1.2.3:99"},
		{"192.0.2.1:99", []string{"192.0.2.7"}, "192.0.2.1:99"}, // anybody
		{"@", []string{"192.0.2.7"}, "@"},
	} {
		r := httptest.NewRequest(http.MethodGet, fmt.Sprint("/topicmaps?", i), nil)
		r.RemoteAddr = c.peer
		r.Header["X-Forwarded-For"] = c.forwarded
		r.Header.Set("X-Request-Id", fmt.Sprint("request-", i))
		n.ServeHTTP(httptest.NewRecorder(), r)
		line := regexp.MustCompile(fmt.Sprintf(`.*request=request-%d\b`, i)).FindString(n.Logs.String())
		assert.Contains(t, line+" ", "remote="+c.want+" ", "%v", c)
	}
}

// Metrics are available on this machine, and to writers.
func TestMetricsAreNotPublic(t *testing.T) {
	t.Parallel()
	n := start(t, func(c *server.Config) { c.Tokens = []string{served.Token} })
	for _, c := range []struct {
		peer, host string
		headers    []string
		want       int
	}{
		{"127.0.0.1:99", "127.0.0.1:8080", nil, http.StatusOK},
		{"127.0.0.1:99", "localhost", nil, http.StatusOK},
		{"192.0.2.7:99", "127.0.0.1:8080", nil, http.StatusForbidden},
		{"127.0.0.1:99", "maps.example.org", nil, http.StatusForbidden}, // through a proxy without a header
		{"127.0.0.1:99", "127.0.0.1:8080", []string{"X-Forwarded-For", "192.0.2.7"}, http.StatusForbidden},
		{"127.0.0.1:99", "127.0.0.1:8080", []string{"Sec-Fetch-Site", "cross-site"}, http.StatusForbidden},
		{"192.0.2.7:99", "maps.example.org", []string{"Authorization", "Bearer " + served.Token}, http.StatusOK},
		{"192.0.2.7:99", "maps.example.org", []string{"Authorization", "Bearer x"}, http.StatusForbidden},
	} {
		r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		r.RemoteAddr, r.Host = c.peer, c.host
		for i := 0; i < len(c.headers); i += 2 {
			r.Header.Set(c.headers[i], c.headers[i+1])
		}
		w := httptest.NewRecorder()
		n.ServeHTTP(w, r)
		assert.Equal(t, c.want, w.Code, "%v", c)
		if c.want == http.StatusForbidden {
			assert.Contains(t, w.Body.String(), "--metrics-listen")
		}
	}
}

// Behind the proxies of packaging, the log has the client and the id of the proxy, metrics are not public, and requests
// through a proxy do not write without a token.
func TestBehindTheProxiesOfThePackage(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)
	for _, c := range proxies {
		t.Run(c.program, func(t *testing.T) {
			t.Parallel()
			sample := c.sampled(t)
			require.Contains(t, string(doc), "packaging/"+c.sample)
			require.Contains(t, sample, c.shown)
			n := start(t)
			n.Publish("small", served.Small())
			behind(t, n, c.path(t), c.start, strings.ReplaceAll(sample, "127.0.0.1:8080", n.Address))
		})
	}
}

// The description of servers below a path in docs/moving.md is correct: all links of a server lead through the proxy,
// which removes the path, and back.
func TestBehindTheProxiesOfThePackageBelowAPath(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../docs/moving.md")
	require.NoError(t, err)
	for _, c := range proxies {
		t.Run(c.program, func(t *testing.T) {
			t.Parallel()
			front, err := testenv.FreeAddress()
			require.NoError(t, err)
			n := start(t, func(config *server.Config) { config.BaseURL = "http://" + front + "/maps" })
			config := c.sampled(t)
			for i := 0; i < len(c.below); i += 2 {
				require.Contains(t, string(doc), "`"+strings.TrimSpace(c.below[i+1])+"`")
				require.Contains(t, config, c.below[i])
				config = strings.Replace(config, c.below[i], c.below[i+1], 1)
			}
			n.Publish("small", served.Small())
			proxied(t, n, c.path(t), front, c.start, strings.ReplaceAll(config, "127.0.0.1:8080", n.Address))
			feed := n.Feed("http://" + front + "/maps/topicmaps/small/fragments")
			require.NotEmpty(t, feed.Entries)
			for _, e := range feed.Entries {
				n.checkData(e, "fragment")
			}
			page := n.Get("http://" + front + "/maps/topicmaps/small.html")
			require.Equal(t, http.StatusOK, page.StatusCode)
		})
	}
}

// proxy is one that packaging has a configuration for.
type proxy struct {
	program, sample, shown string
	start                  func(dir, config, front string) (text string, args []string)
	below                  []string // replacements in the sample for a server below a path
}

// path returns the path of the program, or skips the test.
func (p *proxy) path(t *testing.T) string {
	path, err := exec.LookPath(p.program)
	if err != nil {
		if path, err = exec.LookPath("/usr/sbin/" + p.program); err != nil {
			t.Skipf("NOT CHECKED: the configuration for %s, which is not installed", p.program)
		}
	}
	return path
}

// sampled returns the configuration.
func (p *proxy) sampled(t *testing.T) string {
	sample, err := os.ReadFile("../../packaging/" + p.sample)
	require.NoError(t, err)
	return string(sample)
}

var proxies = []proxy{
	{"nginx", "nginx/tmshare.conf", "    location / {", func(dir, config, front string) (string, []string) {
		var temp strings.Builder
		for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
			fmt.Fprintf(&temp, "%s_temp_path %s/%s;\n", kind, dir, kind)
		}
		config = regexp.MustCompile(`(?m)^ *ssl_.*\n`).ReplaceAllString(strings.Replace(config, "listen 443 ssl;", "listen "+front+";", 1), "")
		return fmt.Sprintf("daemon off; pid %s/pid; error_log %[1]s/error.log;\nevents {}\nhttp {\naccess_log off;\n%s\n%s}\n", dir, temp.String(), config),
			[]string{"-p", dir, "-c"}
	}, []string{"location / {", "location /maps/ {", "proxy_pass http://127.0.0.1:8080;", "proxy_pass http://127.0.0.1:8080/;"}},
	{"caddy", "caddy/Caddyfile", "reverse_proxy", func(_, config, front string) (string, []string) {
		return "{\n\tadmin off\n}\n" + strings.Replace(config, "\nmaps.example.org {", "\nhttp://"+front+" {", 1), []string{"run", "--adapter", "caddyfile", "--config"}
	}, []string{"handle {", "handle_path /maps/* {"}},
}

// proxied starts a proxy in front of a server.
func proxied(t *testing.T, n *node, program, front string, start func(dir, config, front string) (string, []string), config string) {
	require.Contains(t, config, n.Address)
	dir, err := os.MkdirTemp("", "proxy") // workers of nginx may run as another user, who cannot see into TempDir
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755))
	text, args := start(dir, config, front)
	file := filepath.Join(dir, "config")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	cmd := exec.Command(program, append(args, file)...)
	cmd.Env = append(os.Environ(), "HOME="+dir)
	var complaint strings.Builder
	cmd.Stdout, cmd.Stderr = &complaint, &complaint
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		assert.NoError(t, <-ended, "%s", complaint.String())
	})
	testenv.Eventually(t, func() bool {
		if len(ended) > 0 {
			t.Fatalf("%s has ended", program)
		}
		c, err := net.Dial("tcp", front)
		if err == nil {
			c.Close()
		}
		return err == nil
	}, program, "does not listen")
}

// behind starts a proxy in front of a server, and sends requests through it.
func behind(t *testing.T, n *node, program string, start func(dir, config, front string) (string, []string), config string) {
	front, err := testenv.FreeAddress()
	require.NoError(t, err)
	proxied(t, n, program, front, start, config)
	// Another address of this machine, to distinguish it from that of the proxy.
	from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	n.HTTP.Transport.(*http.Transport).DialContext = from.DialContext
	a := n.Do(http.MethodGet, "http://"+front+"/topicmaps/small", nil)
	require.Equal(t, http.StatusOK, a.StatusCode, "%s", a.Bytes)
	line := regexp.MustCompile(".*request=" + a.Header.Get("X-Request-Id") + `\b`).FindString(n.Logs.String())
	assert.Contains(t, line, "remote=127.0.0.2 ")
	for _, url := range []string{"/metrics", "//metrics", "/%6detrics", "/metrics?x"} {
		assert.Contains(t, []int{http.StatusNotFound, http.StatusForbidden}, n.Do(http.MethodGet, "http://"+front+url, nil).StatusCode, url)
	}
	assert.Equal(t, http.StatusForbidden, n.Do(http.MethodPut, "http://"+front+"/topicmaps/small", strings.NewReader(string(served.Small()))).StatusCode)
}
