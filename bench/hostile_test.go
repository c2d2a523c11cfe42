package bench_test

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/testhostile"
)

var hostileSize = flag.Int("hostile", 1, "BenchmarkHostile sends documents this many times as large")

// What a hostile document may take, by docs/security.md.
const (
	hostileTime = 20 * time.Second
	hostilePeak = 700e6
)

// hostile is the result of a program for a document.
type hostile struct {
	answer string        // the status of the last answer, or of the program
	peak   float64       // the most anonymous memory that it ever had in use (RssAnon), in bytes
	cpu    time.Duration // processor time, but for that of its start
}

// BenchmarkHostile makes the programs read each document of testhostile, each in a process of its own, and reports the
// processor time and the peak of its memory as ratios to the limits of docs/security.md. It prints the table of that
// document.
func BenchmarkHostile(b *testing.B) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		fmt.Println("NOT CHECKED: no memory of the programs: there is no /proc to read it from")
		b.SkipNow()
	}
	server, client := build(b, "tmshare-server"), build(b, "tmshare-client")
	size := func(n int) int {
		if testing.Short() {
			n /= 8
		}
		return n * *hostileSize
	}
	show := func(name, how string, f func(b *testing.B) hostile) (cells string) {
		b.Run(strings.ReplaceAll(name+", "+how, " ", "-"), func(b *testing.B) {
			var h hostile
			for b.Loop() {
				h = f(b)
			}
			b.ReportMetric(0, "ns/op")
			ratio(b, h.cpu.Seconds(), hostileTime.Seconds(), "time-allowed")
			ratio(b, h.peak, hostilePeak, "memory-allowed")
			cells = fmt.Sprintf(" %s: %s | %.3f | %.2f |", how, h.answer, h.cpu.Seconds()/hostileTime.Seconds(), h.peak/hostilePeak)
		})
		return cells
	}
	row := func(name, document, cells string) {
		if cells == "" { // it is not asked for
			return
		}
		fmt.Printf("| %s | %.1f MB |%s\n", name, float64(len(document))/1e6, cells)
	}
	for _, file := range testhostile.Files(size) {
		document := file.Make()
		if file.Ending == ".atom" {
			row(file.Name, document, show(file.Name, "subscribe", func(b *testing.B) hostile { return subscribing(b, client, file.Type, document) }))
			continue
		}
		put := ""
		if !file.Local {
			put = show(file.Name, "PUT", func(b *testing.B) hostile { return publishing(b, server, "PUT", "", file.Type, document) })
		}
		row(file.Name, document, put+show(file.Name, "convert", func(b *testing.B) hostile { return converting(b, client, file.Ending, document) }))
	}
	const xtm = "application/x-tm+xml"
	many := testhostile.Identifiers(size(40_000), "name")
	row("topic with 40,000 identifiers", many, show("topic with 40,000 identifiers", "POST", func(b *testing.B) hostile {
		return publishing(b, server, "POST", "/topics", xtm, many)
	}))
	hub := testhostile.Hub(size(5000))
	row("hub of 5,000 topics, then emptied", hub, show("hub of 5,000 topics, then emptied", "PUT", func(b *testing.B) hostile {
		return publishing(b, server, "PUT", "", xtm, hub, testhostile.Head21+testhostile.Foot)
	}))
	names := testhostile.ThemedNames(size(3000), 199)
	row("topic with 3,000 names of 199 themes", names, show("topic with 3,000 names of 199 themes", "100 searches", func(b *testing.B) hostile {
		n := hostileServer(b, server)
		defer n.stop()
		n.hostile("PUT", "", xtm, names)
		return n.measured(func() (answer string) {
			for range 100 {
				answer = n.hostile("GET", "/search?q=n1", "", "")
			}
			return answer
		})
	}))
}

// hostileServer starts a server with a collection of its own.
func hostileServer(b *testing.B, program string) *node {
	folder := b.TempDir()
	first := filepath.Join(folder, "first.xtm")
	require.NoError(b, os.WriteFile(first, []byte(testhostile.Head21+`<topic id="t"/>`+testhostile.Foot), 0o600))
	return runServer(b, program, filepath.Join(folder, "data"), "--map", collection+"="+first, "--sp", collection+"=http://example.org/")
}

// publishing sends documents to a server of its own, one after the other.
func publishing(b *testing.B, program, method, path, mediaType string, documents ...string) hostile {
	n := hostileServer(b, program)
	defer n.stop()
	return n.measured(func() (answer string) {
		for _, d := range documents {
			answer = n.hostile(method, path, mediaType, d)
		}
		return answer
	})
}

// measured measures the server while f runs. f returns the answer.
func (n *node) measured(f func() string) (h hostile) {
	before := processTime(n.b, n.cmd.Process.Pid)
	h.peak = n.peakDuring(func() { h.answer = f() })
	h.cpu = processTime(n.b, n.cmd.Process.Pid) - before
	return h
}

// hostile sends a request and returns the status of the answer.
func (n *node) hostile(method, path, mediaType, document string) string {
	r, err := http.NewRequest(method, n.url+"/topicmaps/"+collection+path, strings.NewReader(document))
	require.NoError(n.b, err)
	r.Header.Set("TMShare-Max-Delete", "all")
	if mediaType != "" {
		r.Header.Set("Content-Type", mediaType)
	}
	a, err := n.http.Do(r)
	require.NoError(n.b, err)
	_, err = io.Copy(io.Discard, a.Body)
	require.NoError(n.b, err)
	require.NoError(n.b, a.Body.Close())
	return fmt.Sprint(a.StatusCode)
}

// converting has the client convert a file.
func converting(b *testing.B, program, ending, document string) hostile {
	file := filepath.Join(b.TempDir(), "hostile"+ending)
	require.NoError(b, os.WriteFile(file, []byte(document), 0o600))
	return ran(b, exec.Command(program, "convert", file, "-"))
}

// subscribing has the client read a feed.
func subscribing(b *testing.B, program, mediaType, document string) hostile {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", mediaType)
		_, _ = io.WriteString(w, document)
	}))
	defer s.Close()
	return ran(b, exec.Command(program, append(append([]string{"subscribe"}, at(filepath.Join(b.TempDir(), "data"))...), s.URL+"/fragments")...))
}

// ran runs a program, which may reject its input.
func ran(b *testing.B, cmd *exec.Cmd) hostile {
	var output bytes.Buffer
	cmd.Stderr = &output
	peak, err := sampled(b, cmd)
	code := cmd.ProcessState.ExitCode()
	require.True(b, err == nil || code > 0, "%v: %s", err, output.String())
	require.NotContains(b, output.String(), "goroutine ")
	return hostile{fmt.Sprintf("exit %d", code), peak, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
}
