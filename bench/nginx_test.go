package bench_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// nginxConfig serves the files of a folder, and gzipped files unchanged to clients that accept gzip. It is a
// distribution's default, without the log of requests, and without an end to connections.
const nginxConfig = `
daemon off;
pid %[1]s/pid;
error_log %[1]s/error.log;
worker_processes auto;
events { worker_connections 512; }
http {
	access_log off;
	sendfile on;
	tcp_nopush on;
	keepalive_requests 100000000;
	gzip_static on;
	gzip_vary on;
	default_type application/xml;
	client_body_temp_path %[1]s/body;
	proxy_temp_path %[1]s/proxy;
	fastcgi_temp_path %[1]s/fastcgi;
	uwsgi_temp_path %[1]s/uwsgi;
	scgi_temp_path %[1]s/scgi;
	server {
		listen %[2]s;
		root %[1]s/files;
	}
}
`

// startNginx starts nginx on files, by name: those of the names that end in .gz
// are for clients that take gzip. It returns its address and process id.
func startNginx(b *testing.B, files map[string][]byte) (url string, pid int, err error) {
	path, err := exec.LookPath("nginx")
	if err != nil {
		if path, err = exec.LookPath("/usr/sbin/nginx"); err != nil {
			return "", 0, errors.New("nginx is not installed")
		}
	}
	folder, err := os.MkdirTemp("", "bench-nginx") // its workers may run as another user, who cannot see into TempDir
	require.NoError(b, err)
	b.Cleanup(func() { os.RemoveAll(folder) })
	require.NoError(b, os.Chmod(folder, 0o755))
	require.NoError(b, os.Mkdir(filepath.Join(folder, "files"), 0o755))
	for name, content := range files {
		require.NoError(b, os.WriteFile(filepath.Join(folder, "files", name), content, 0o644))
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	address := free.Addr().String()
	require.NoError(b, free.Close())
	config := filepath.Join(folder, "nginx.conf")
	require.NoError(b, os.WriteFile(config, fmt.Appendf(nil, nginxConfig, folder, address), 0o644))
	cmd := exec.Command(path, "-p", folder, "-c", config)
	var complaint strings.Builder
	cmd.Stdout, cmd.Stderr = &complaint, &complaint
	require.NoError(b, cmd.Start())
	b.Cleanup(func() {
		require.NoError(b, cmd.Process.Signal(syscall.SIGTERM))
		require.NoError(b, cmd.Wait(), "%s", complaint.String())
	})
	for range 100 {
		if c, err := net.Dial("tcp", address); err == nil {
			c.Close()
			return "http://" + address, cmd.Process.Pid, nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	b.Fatalf("nginx does not start: %s", complaint.String())
	return "", 0, nil
}

// load is the measurement of wrk.
type load struct{ perSecond, perCPUSecond float64 }

var (
	requestsPerSecond = regexp.MustCompile(`Requests/sec:\s+([0-9.]+)`)
	requestsInAll     = regexp.MustCompile(`(\d+) requests in`)
)

// wrk requests a URL repeatedly for a second, on sixteen persistent connections. pid is the process that serves, with
// its children.
func wrk(b *testing.B, pid int, url string, headers ...string) load {
	args := []string{"-t1", "-c16", "-d1s"}
	for i := 0; i < len(headers); i += 2 {
		args = append(args, "-H", headers[i]+": "+headers[i+1])
	}
	before := processTime(b, pid)
	out, err := exec.Command("wrk", append(args, url)...).CombinedOutput()
	took := processTime(b, pid) - before
	require.NoError(b, err, "%s", out)
	require.NotContains(b, string(out), "Non-2xx")
	require.NotContains(b, string(out), "Socket errors")
	number := func(pattern *regexp.Regexp) float64 {
		m := pattern.FindSubmatch(out)
		require.NotNil(b, m, "%s", out)
		f, err := strconv.ParseFloat(string(m[1]), 64)
		require.NoError(b, err)
		require.Positive(b, f)
		return f
	}
	return load{number(requestsPerSecond), number(requestsInAll) / took.Seconds()}
}

// processTime returns the processor time that a process and its children have used, those that have ended included.
func processTime(b *testing.B, pid int) time.Duration {
	for {
		if d, err := timeNow(b, pid); err == nil {
			return d
		} else if _, gone := os.Stat(fmt.Sprintf("/proc/%d", pid)); gone != nil {
			require.NoError(b, err)
		} // a child has ended meanwhile
	}
}

func timeNow(b *testing.B, pid int) (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(stat), ") ") // the name of the program may be anything
	fields := strings.Fields(rest)
	ticks := 0
	for _, f := range fields[11:15] { // utime, stime, and those of ended children, in hundredths of a second
		n, err := strconv.Atoi(f)
		require.NoError(b, err)
		ticks += n
	}
	d := time.Duration(ticks) * 10 * time.Millisecond
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	for _, child := range strings.Fields(string(children)) {
		n, failed := strconv.Atoi(child)
		require.NoError(b, failed)
		childs, failed := timeNow(b, n)
		d, err = d+childs, errors.Join(err, failed)
	}
	return d, err
}

// fetch returns the status, the headers and the body of an answer.
func fetch(b *testing.B, url string, headers ...string) (int, http.Header, []byte) {
	r, err := http.NewRequest(http.MethodGet, url, nil)
	require.NoError(b, err)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	t := &http.Transport{DisableCompression: true, DisableKeepAlives: true}
	a, err := (&http.Client{Transport: t}).Do(r)
	require.NoError(b, err)
	defer a.Body.Close()
	body, err := io.ReadAll(a.Body)
	require.NoError(b, err)
	return a.StatusCode, a.Header, body
}
