package main

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/ext"
	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/webpage"
	maps "github.com/tmshare/tmshare/testdata/xtm"
)

// writeCertificate writes a new certificate for 127.0.0.1 and its key, and returns a pool that trusts it.
func writeCertificate(t *testing.T, cert, key string, serial int64) *x509.CertPool {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	require.NoError(t, err)
	keyDER, err := x509.MarshalECPrivateKey(private)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	require.NoError(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}), 0o600))
	parsed, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return pool
}

// freeAddress returns a loopback address without a listener.
func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := testenv.FreeAddress()
	require.NoError(t, err)
	return address
}

// program is a server in a process of its own.
type program struct {
	*exec.Cmd
	t    *testing.T
	addr string
	log  *os.File
}

// launch starts the program with a map, and waits until it answers.
func launch(t *testing.T, document []byte, args ...string) *program {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "lib.xtm")
	require.NoError(t, os.WriteFile(file, document, 0o600))
	p := &program{t: t, addr: freeAddress(t)}
	p.Cmd = exec.Command("tmshare-server", append([]string{"serve", "--listen", p.addr, "--data", dir, "--map", "lib=" + file}, args...)...)
	var err error
	p.log, err = os.Create(filepath.Join(dir, "log"))
	require.NoError(t, err)
	p.Stderr = p.log
	require.NoError(t, p.Start())
	t.Cleanup(func() { _ = p.Process.Kill(); p.log.Close() })
	testenv.Eventually(t, func() bool { return strings.Contains(p.logged(), "msg=serving ") })
	return p
}

// logged returns the log so far.
func (p *program) logged() string {
	b, err := os.ReadFile(p.log.Name())
	require.NoError(p.t, err)
	return string(b)
}

func (p *program) status(path string) int {
	p.t.Helper()
	res, err := http.Get("http://" + p.addr + path)
	require.NoError(p.t, err)
	res.Body.Close()
	return res.StatusCode
}

func (p *program) ended() error {
	done := make(chan error, 1)
	go func() { done <- p.Wait() }()
	select {
	case err := <-done:
		return err
	case <-time.After(20 * time.Second):
		return fmt.Errorf("still running")
	}
}

func TestServesHTTPSOnHTTP1AndHTTP2(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	pool := writeCertificate(t, cert, key, 1)
	p := launch(t, maps.Libraries, "--tls-cert", cert, "--tls-key", key)
	for _, http2 := range []bool{true, false} {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: http2}}
		res, err := client.Get("https://" + p.addr + "/topicmaps")
		require.NoError(t, err)
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		res.Body.Close()
		client.CloseIdleConnections()
		assert.Equal(t, map[bool]int{true: 2, false: 1}[http2], res.ProtoMajor)
		assert.Contains(t, string(body), "https://"+p.addr+"/topicmaps/lib", "links are to the address with TLS")
	}
	_, err := tls.Dial("tcp", p.addr, &tls.Config{RootCAs: pool, MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10})
	assert.ErrorContains(t, err, "protocol version")
}

// Commands that send requests to a server trust an authority named by their flags, and report an untrusted one.
func TestCommandsTrustAnAuthorityOfTheOwner(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writeCertificate(t, cert, key, 1)
	p := launch(t, maps.Libraries, "--tls-cert", cert, "--tls-key", key)
	file := filepath.Join(dir, "lib.xtm")
	require.NoError(t, os.WriteFile(file, maps.Libraries, 0o600))
	for _, args := range [][]string{
		{"collections"}, {"collections", "list"}, {"collections", "show", "lib"}, {"collections", "snapshot", "lib"}, {"collections", "gc"},
		{"import", "lib", file}, {"export", "lib", filepath.Join(dir, "copy.xtm")}, {"log", "lib"}, {"history", "lib"},
		{"derive", "all", "--from", "lib"}, {"collections", "set", "lib", "--title", "L"}, {"collections", "rename", "lib", "libraries"},
		{"collections", "forget", "lib"}, {"collections", "delete", "all", "--yes"},
	} {
		args = append(args, "--server", "https://"+p.addr)
		out, err := exec.Command("tmshare-server", args...).CombinedOutput()
		require.Error(t, err)
		assert.Equal(t, cli.Unreachable, err.(*exec.ExitError).ExitCode(), "%s", out)
		assert.Contains(t, string(out), "name its file: --ca-cert FILE")
		out, err = exec.Command("tmshare-server", append(args, "--ca-cert", cert)...).CombinedOutput()
		require.NoError(t, err, "%q: %s", args, out)
	}
	out, err := exec.Command("tmshare-server", "collections", "--server", "https://"+p.addr, "--ca-cert", key).CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(out), "has no certificate in PEM")
}

func TestCertificateIsReadAgainWhenItsFilesChange(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writeCertificate(t, cert, key, 1)
	var log bytes.Buffer
	c, err := loadCertificates(cert, key, slog.New(slog.NewTextHandler(&log, nil)))
	require.NoError(t, err)
	serial := func() int64 {
		got, err := c.get(nil)
		require.NoError(t, err)
		return got.Leaf.SerialNumber.Int64()
	}
	assert.EqualValues(t, 1, serial())
	writeCertificate(t, cert, key, 2)
	assert.EqualValues(t, 1, serial(), "the files are not looked at for every connection")
	c.every = 0
	assert.EqualValues(t, 2, serial())
	writeCertificate(t, cert, filepath.Join(dir, "other.pem"), 3)
	assert.EqualValues(t, 2, serial(), "the certificate is new, the key is not")
	assert.Contains(t, log.String(), "the old certificate stays in use")
	require.NoError(t, os.Rename(filepath.Join(dir, "other.pem"), key))
	assert.EqualValues(t, 3, serial())
	require.NoError(t, os.Remove(key))
	assert.EqualValues(t, 3, serial())
	assert.NotContains(t, log.String(), "PRIVATE KEY")
}

func TestMetricsHaveAnAddressOfTheirOwn(t *testing.T) {
	t.Parallel()
	metrics := freeAddress(t)
	p := launch(t, maps.Libraries, "--metrics-listen", metrics)
	assert.Equal(t, http.StatusNotFound, p.status("/metrics"))
	res, err := http.Get("http://" + metrics + "/metrics")
	require.NoError(t, err)
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	res.Body.Close()
	assert.Contains(t, string(body), `tmshare_collection_topics{collection="lib"}`)
	assert.Equal(t, http.StatusNotFound, p.status("/status"), "it is not for all who read maps")
	for path, says := range map[string]string{"/status": "<bdi>lib</bdi>", "/node.json": `"name": "lib"`} {
		res, err = http.Get("http://" + metrics + path)
		require.NoError(t, err)
		body, err = io.ReadAll(res.Body)
		require.NoError(t, err)
		res.Body.Close()
		assert.Contains(t, string(body), says)
	}
	res, err = http.Get("http://" + metrics + "/topicmaps")
	require.NoError(t, err)
	res.Body.Close()
	assert.Equal(t, http.StatusNotFound, res.StatusCode)
}

// The server shows the state of the node, with and without subscriptions.
func TestPagesOfTheNode(t *testing.T) {
	t.Parallel()
	for _, interval := range []string{"1h", "0"} {
		p := launch(t, maps.Libraries, "--interval", interval)
		for _, path := range []string{"/node.html", "/topicmaps.html"} {
			res, err := http.Get("http://" + p.addr + path)
			require.NoError(t, err)
			body, err := io.ReadAll(res.Body)
			require.NoError(t, err)
			res.Body.Close()
			page := webpage.Read(t, "http://"+p.addr+path, res.Header, body)
			if path == "/node.html" {
				assert.Contains(t, page.Links, "http://"+p.addr+"/topicmaps/lib.html")
				assert.Contains(t, page.Text, "Written here")
			} else {
				assert.Contains(t, page.Links, "http://"+p.addr+"/node.html")
			}
			for _, to := range page.Links {
				assert.Equal(t, http.StatusOK, p.status(strings.TrimPrefix(to, "http://"+p.addr)), to)
			}
		}
	}
}

func TestReadTokensComeFromAFile(t *testing.T) {
	t.Parallel()
	tokens := filepath.Join(t.TempDir(), "readers")
	require.NoError(t, os.WriteFile(tokens, []byte("# who may read\na-token-of-one-reader\n"), 0o600))
	p := launch(t, maps.Libraries, "--read-token-file", "lib="+tokens)
	assert.Equal(t, http.StatusUnauthorized, p.status("/topicmaps/lib"))
	req, err := http.NewRequest(http.MethodGet, "http://"+p.addr+"/topicmaps/lib", nil)
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer a-token-of-one-reader")
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	res.Body.Close()
	assert.Equal(t, http.StatusOK, res.StatusCode)
	assert.NotContains(t, p.logged(), "a-token")
}

// slowDownload requests the current map and reads its beginning only.
func (p *program) slowDownload() *bufio.Reader {
	p.t.Helper()
	c, err := net.Dial("tcp", p.addr)
	require.NoError(p.t, err)
	p.t.Cleanup(func() { c.Close() })
	require.NoError(p.t, c.(*net.TCPConn).SetReadBuffer(64<<10))
	fmt.Fprintf(c, "GET /topicmaps/lib/snapshots/current.xtm21 HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", p.addr)
	r := bufio.NewReader(c)
	line, err := r.ReadString('\n')
	require.NoError(p.t, err)
	require.Equal(p.t, "HTTP/1.1 200 OK\r\n", line)
	return r
}

// largeTopics is the number of topics of largeMap.
const largeTopics = 2_000

// largeMap fits neither into the buffers of a connection nor into a transaction of the database. Its names make it
// large, not the number of its topics, which would take more time.
func largeMap() []byte {
	var b strings.Builder
	b.WriteString("<topicMap xmlns='http://www.topicmaps.org/xtm/' version='2.1'>")
	for i := range largeTopics {
		fmt.Fprintf(&b, "<topic id='t%d'><subjectIdentifier href='http://psi.example.org/%d'/><name><value>%04000d</value></name></topic>", i, i, i)
	}
	b.WriteString("</topicMap>")
	return []byte(b.String())
}

func TestSIGTERMFinishesADownload(t *testing.T) {
	t.Parallel()
	p := launch(t, largeMap())
	rest := p.slowDownload()
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	testenv.Eventually(t, func() bool { return strings.Contains(p.logged(), "msg=stopping") })
	time.Sleep(500 * time.Millisecond)
	body, err := io.ReadAll(rest)
	require.NoError(t, err)
	assert.Contains(t, string(body[max(0, len(body)-100):]), "</topicMap>")
	assert.NoError(t, p.ended(), "exit code 0")
}

func TestGraceEndsADownloadThatTakesLonger(t *testing.T) {
	t.Parallel()
	p := launch(t, largeMap(), "--shutdown-grace", "300ms")
	rest := p.slowDownload()
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	assert.NoError(t, p.ended(), "exit code 0")
	body, _ := io.ReadAll(rest)
	assert.NotContains(t, string(body[max(0, len(body)-100):]), "</topicMap>")
	assert.Contains(t, p.logged(), "requests cut off")
}

func TestShutdownDelayTellsLoadBalancersFirst(t *testing.T) {
	t.Parallel()
	p := launch(t, maps.Libraries, "--shutdown-delay", "2s")
	assert.Equal(t, http.StatusOK, p.status("/readyz"))
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	testenv.Eventually(t, func() bool { return p.status("/readyz") == http.StatusServiceUnavailable })
	assert.Equal(t, http.StatusOK, p.status("/topicmaps"), "new requests are still taken")
	assert.NoError(t, p.ended())
}

// A hub that does not answer keeps neither readers nor the end waiting.
func TestHubsAreToldByTheProgram(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 10)
	hub := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- r.FormValue("hub.mode") + " " + r.FormValue("hub.url")
		<-r.Context().Done()
	}))
	defer hub.Close()
	p := launch(t, maps.Libraries, "--hub", hub.URL)
	assert.Equal(t, "publish http://"+p.addr+"/topicmaps/lib/fragments", <-asked)
	assert.Equal(t, http.StatusOK, p.status("/topicmaps/lib/fragments"))
	began := time.Now()
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	assert.NoError(t, p.ended())
	assert.Less(t, time.Since(began), 9*time.Second, "nobody waits for the hub")
}

func TestFlagsThatMakeNoSenseAreUsageErrors(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"--tls-cert", "x.pem"}, {"--tls-key", "x.pem"}, {"--shutdown-grace", "-1s"}, {"--read-token-file", "x"}, {"--max-uploads", "-1"}, {"--hub", "hub.example.org"}, {"--slow-client-timeout", "-1s"}, {"--patience", "-1s"}, {"--slow-request", "-1s"},
	} {
		cmd := exec.Command("tmshare-server", append([]string{"serve", "--listen", "127.0.0.1:0", "--data", t.TempDir()}, args...)...)
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit, "%v: %s", args, out)
		assert.Equal(t, 2, exit.ExitCode(), "%v: %s", args, out)
	}
}

// A 0 on the command line is not taken for the default.
func TestNumbersThatMustBeGreaterThanZero(t *testing.T) {
	t.Parallel()
	flags := serveCommand(&extension.App{Extensions: ext.All()}).Flags()
	checked := 0
	flags.VisitAll(func(f *pflag.Flag) {
		if t := f.Value.Type(); t != "int" && t != "int64" && t != "duration" || slices.Contains(maybeZero, f.Name) {
			return
		}
		checked++
		for _, value := range []string{"0", "-1"} {
			if f.Value.Type() == "duration" {
				value += "s"
			}
			// A value that is taken must not leave a server that runs.
			out, err := exec.Command("timeout", "60", "tmshare-server", "serve", "--data", t.TempDir(), "--listen", freeAddress(t), "--"+f.Name, value).CombinedOutput()
			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit, "--%s %s", f.Name, value)
			assert.Equal(t, 2, exit.ExitCode())
			want := fmt.Sprintf("--%s %s: give more than 0, or leave the flag out for %s", f.Name, value, f.DefValue)
			if strings.HasPrefix(value, "-") {
				want = fmt.Sprintf("--%s %s: it cannot be negative; leave the sign out", f.Name, value)
			}
			assert.Contains(t, string(out), want)
		}
	})
	assert.Greater(t, checked, 10)
}
