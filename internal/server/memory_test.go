package server_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/ext"
	"github.com/tmshare/tmshare/internal/kv/badger"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/server/upkeep"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testhostile"
)

// measured holds the settings of the measured process. The long form has the store settings of a node.
type measured struct {
	uploadLimit int64 // in bytes, of one upload

	// storeMemory is the maximum memory of the store while it writes, in bytes, for any upload: its memtables, and the
	// tables that it makes and compacts.
	storeMemory int64
	engine      badger.Settings
}

var measuredForms = map[string]measured{
	"short": {8 << 20, 36 << 20, badger.Small},
	"long":  {32 << 20, 120 << 20, badger.Settings{}},
}

// The environment of this program has its folder and its form.
const (
	servingDir  = "TMSHARE_SERVER_TEST_DIR"
	servingForm = "TMSHARE_SERVER_TEST_FORM"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(servingDir); dir != "" {
		if err := serveChild(dir, measuredForms[os.Getenv(servingForm)]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// serveChild serves a folder until its standard input
// ends. It prints its address.
func serveChild(dir string, m measured) error {
	db, err := store.Open(context.Background(), store.Options{Dir: dir, Logger: slog.New(slog.DiscardHandler), MaxPublication: m.uploadLimit, Badger: m.engine})
	if err != nil {
		return err
	}
	defer db.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	c := server.Config{Parts: ext.Parts(), Store: db, BaseURL: "http://" + listener.Addr().String(), OnLoopback: true, Logger: slog.New(slog.DiscardHandler), MaxBody: m.uploadLimit, MaxUploads: 1, Policy: upkeep.Policy{SnapshotEvery: 1 << 30}}
	c.Limits.Memory = m.uploadLimit
	s, err := server.New(c)
	if err != nil {
		return err
	}
	defer s.Close()
	if _, err := s.Import(context.Background(), store.Collection{Name: "m", SP: "http://example.org/"}, strings.NewReader(testhostile.Topics(1)), "m"); err != nil {
		return err
	}
	go func() { _ = http.Serve(listener, s) }()
	fmt.Println(c.BaseURL)
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// The memory of a process during one upload is at most its memory without one and three times the limit of an upload,
// besides that of the store. With a low GOGC the memory in use is almost the live memory.
//
// The documents are near the measured limits: accepted and rejected ones.
func TestMemoryOfOneUpload(t *testing.T) {
	if testenv.Race {
		t.Skip("with the race detector a process takes more memory than without")
	}
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("NOT CHECKED: no memory of the server: there is no /proc to read it from")
	}
	named := func(topics string) string {
		return strings.ReplaceAll(topics, "/>", "><name><value>n</value></name></topic>")
	}
	form := "short"
	if testenv.Long() {
		form = "long"
	}
	m := measuredForms[form]
	n := int(m.uploadLimit >> 20) // the documents are made for a limit of 1 MB
	for _, c := range []struct {
		name      string
		documents []string // one after the other
		statuses  []int
	}{
		{"small topics that change", []string{testhostile.Topics(470 * n), named(testhostile.Topics(470 * n))}, []int{200, 200}},
		{"too many small topics", []string{testhostile.Topics(31_000 * n)}, []int{413}},
		{"names of 1 MB", []string{testhostile.Names((n-2)<<20, 1<<20)}, []int{200}},
		{"a name of many variants, which have too many themes", []string{testhostile.Scope(200, 1000, 1900*n)}, []int{422}},
		{"a name of many variants, which have many themes", []string{testhostile.Scope(199, 5, 6300*n)}, []int{413}},
		{"a hub", []string{testhostile.Hub(310 * n)}, []int{200}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			// A collector that does not get its time lets garbage grow. What takes too much does so twice.
			for again := true; ; again = false {
				child := startChild(t, form)
				most, all := child.anonymous()+m.storeMemory+3*m.uploadLimit, child.anonymous()
				for i, d := range c.documents {
					status, peak := child.put(d)
					assert.Equal(t, c.statuses[i], status)
					t.Logf("%d bytes take %d MB, of %d", len(d), peak>>20, most>>20)
					all = max(all, peak)
				}
				if again && all >= most {
					continue
				}
				assert.Less(t, all, most, "bytes of memory")
				return
			}
		})
	}
}

// child is a process that runs serveChild.
type child struct {
	t   *testing.T
	cmd *exec.Cmd
	url string
}

func startChild(t *testing.T, form string) *child {
	c := &child{t: t, cmd: exec.Command(os.Args[0])}
	c.cmd.Env = append(os.Environ(), servingDir+"="+t.TempDir(), servingForm+"="+form, "GOGC=10")
	var output bytes.Buffer
	c.cmd.Stderr = &output
	in, err := c.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := c.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.cmd.Start())
	t.Cleanup(func() {
		assert.NoError(t, in.Close())
		assert.NoError(t, c.cmd.Wait(), "%s", &output)
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	c.url = strings.TrimSpace(line)
	return c
}

// put publishes a document. It returns the answer's status, and the most anonymous memory that the
// process had meanwhile, in bytes.
func (c *child) put(document string) (status int, peak int64) {
	r, err := http.NewRequest(http.MethodPut, c.url+"/topicmaps/m", strings.NewReader(document))
	require.NoError(c.t, err)
	r.Header.Set("TMShare-Max-Delete", "all")
	done := make(chan error, 1)
	go func() {
		a, err := http.DefaultClient.Do(r)
		if err == nil {
			status = a.StatusCode
			_, err = io.Copy(io.Discard, a.Body)
			err = errors.Join(err, a.Body.Close())
		}
		done <- err
	}()
	samples := time.NewTicker(2 * time.Millisecond)
	defer samples.Stop()
	for {
		select {
		case err := <-done:
			require.NoError(c.t, err)
			return status, peak
		case <-samples.C:
			peak = max(peak, c.anonymous())
		}
	}
}

// anonymous returns the anonymous memory of the process, in bytes.
func (c *child) anonymous() int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.cmd.Process.Pid))
	require.NoError(c.t, err)
	_, rest, _ := strings.Cut(string(status), "RssAnon:")
	fields := strings.Fields(rest)
	require.NotEmpty(c.t, fields)
	kb, err := strconv.ParseInt(fields[0], 10, 64)
	require.NoError(c.t, err)
	return kb << 10
}
