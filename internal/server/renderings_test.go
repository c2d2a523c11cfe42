package server_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/server/problems"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/served"
	"github.com/tmshare/tmshare/internal/testkit/stores"
	maps "github.com/tmshare/tmshare/testdata/xtm"
	"github.com/tmshare/tmshare/xtm"
)

// aSnapshot publishes a map, and returns the address of its snapshot and the path of the file.
func aSnapshot(t *testing.T, n *node, doc []byte) (url, file string) {
	t.Helper()
	n.Publish("egov", doc)
	url, _ = strings.CutSuffix(n.Feed("/topicmaps/egov/snapshots").Entries[0].Typed(t, "topicmapdata")[served.XTM1Type], ".xtm1")
	files, err := filepath.Glob(filepath.Join(n.Store.Dir(), "snapshots", "*", "*"))
	require.NoError(t, err)
	require.Len(t, files, 1, "one form is stored")
	return url, files[0]
}

// Other forms of a snapshot are made of the stored one. Each has the bytes of the map in that form.
func TestFormsOfASnapshotAreMadeOfTheStoredOne(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.Publish("egov", served.Small("Oslo", "Oslo"))
	require.Equal(t, http.StatusOK, n.Put("egov", maps.EGov, "TMShare-Max-Delete", "all").StatusCode)
	require.Equal(t, http.StatusCreated, n.Post("/topicmaps/egov/snapshots").StatusCode) // its order is that of the records; that of a first one is the document's
	url, _ := strings.CutSuffix(n.Feed("/topicmaps/egov/snapshots").Entries[0].Typed(t, "topicmapdata")[served.XTM1Type], ".xtm1")
	for version, ending := range map[xtm.Version]string{xtm.V10: ".xtm1", xtm.V21: ".xtm21"} {
		var now bytes.Buffer
		require.NoError(t, n.Store.View(t.Context(), "egov", func(v *store.View) error { return v.WriteSnapshot(&now, version) }))
		assert.Equal(t, now.String(), string(n.MustGet(url+ending).Bytes), "XTM %s", version)
	}
}

// A form is made once, and the same bytes are served from then on, whole and in ranges. When it was given up, it is
// made again in the same bytes.
func TestAFormOfASnapshotIsMadeOnceAndHasTheSameBytes(t *testing.T) {
	stores.InFolders(t)
	t.Parallel()
	dir := t.TempDir()
	n := startOn(t, store.Options{Dir: dir}, func(c *server.Config) { c.BaseURL = "http://example.org" })
	n.DialAll()
	url, file := aSnapshot(t, n, maps.EGov)
	url = strings.TrimPrefix(url, n.BaseURL)
	get := func() served.Answer { return n.MustGet(url+".xtm1", "Accept-Encoding", "gzip") }
	whole := get()
	require.NoError(t, os.Rename(file, file+".away"), "what is made is not made again")
	assert.Equal(t, whole.Bytes, get().Bytes)
	part := n.Get(url+".xtm1", "Accept-Encoding", "gzip", "Range", "bytes=100-199", "If-Range", whole.Header.Get("ETag"))
	require.Equal(t, http.StatusPartialContent, part.StatusCode)
	assert.Equal(t, whole.Bytes[100:200], part.Bytes)
	require.NoError(t, os.Rename(file+".away", file))
	n.Stop()

	n = startOn(t, store.Options{Dir: dir}, func(c *server.Config) { c.BaseURL = "http://example.org" })
	n.DialAll()
	assert.Equal(t, whole.Bytes, get().Bytes)
}

// Nobody can damage a form that was made: its file has no name. One that is made of a damaged file is not served.
func TestNoDamagedFormOfASnapshotIsServed(t *testing.T) {
	stores.InFolders(t)
	t.Parallel()
	n := start(t)
	url, _ := aSnapshot(t, n, maps.EGov)
	whole := n.MustGet(url + ".xtm1")
	left, err := os.ReadDir(n.Store.Scratch())
	require.NoError(t, err)
	require.Empty(t, left)
	require.NoError(t, os.RemoveAll(n.Store.Scratch()))
	assert.Equal(t, whole.Bytes, n.MustGet(url+".xtm1").Bytes)

	n = start(t)
	url, file := aSnapshot(t, n, maps.EGov)
	bad, err := os.ReadFile(file)
	require.NoError(t, err)
	for at := 20; at < len(bad)-8; at += len(bad) / 40 { // the end is looked at when the file is opened
		bad[at] ^= 4
		require.NoError(t, os.WriteFile(file, bad, 0o600))
		a := n.Get(url + ".xtm1")
		require.Equal(t, http.StatusInternalServerError, a.StatusCode, "byte %d", at)
		assert.NotContains(t, a.Header.Get("Cache-Control"), "immutable")
		bad[at] ^= 4
	}
	assert.NotEmpty(t, n.lines("check --repair"))
	require.NoError(t, os.WriteFile(file, bad, 0o600))
	assert.Equal(t, len(whole.Bytes), len(n.MustGet(url+".xtm1").Bytes))
}

// renderer serves files that are made on request, as the test determines.
type renderer struct {
	t      *testing.T
	files  *web.Renderings
	render func(name string, w io.Writer) error
}

func rendering(t *testing.T, files *web.Renderings, render func(name string, w io.Writer) error) *renderer {
	return &renderer{t, files, render}
}

// ask returns the status of an answer, and the file that was opened for it, if any.
func (r *renderer) ask(ctx context.Context, name string) (status int, f web.File) {
	router := web.NewRouter(&web.Front{
		Logger: slog.New(slog.DiscardHandler), Metrics: web.NewMetrics(), SlowClientTimeout: time.Minute, Explain: problems.Explain,
	}, "/")
	router.Handle("/{name}", func(_ http.ResponseWriter, asked *http.Request) error {
		opened, err := r.files.Open(asked, web.Var(asked, "name"), func(w io.Writer) error {
			return errors.Join(r.render(web.Var(asked, "name"), w), asked.Context().Err())
		})
		f = opened
		return err
	}, http.MethodGet)
	answer := httptest.NewRecorder()
	router.ServeHTTP(answer, httptest.NewRequestWithContext(ctx, http.MethodGet, "/"+name, nil))
	return answer.Code, f
}

// open returns the file with a name.
func (r *renderer) open(name string) web.File {
	r.t.Helper()
	status, f := r.ask(r.t.Context(), name)
	require.Equal(r.t, http.StatusOK, status)
	return f
}

// Each form is made one at a time. Requests that wait too long get a time to retry, and the file is made even if no
// request waits for it.
func TestFormsAreMadeOneAtATime(t *testing.T) {
	t.Parallel()
	files := web.NewRenderings(t.TempDir(), 1<<20, time.Hour, 10*time.Millisecond, "rendering")
	begun, goOn := make(chan bool), make(chan bool)
	made := 0
	r := rendering(t, files, func(name string, w io.Writer) error {
		if name != "slow" {
			t.Error("two at a time")
		}
		begun <- true
		<-goOn
		made++
		_, err := io.WriteString(w, name)
		return err
	})
	impatient, leave := context.WithCancel(t.Context())
	var asking sync.WaitGroup
	asking.Go(func() {
		if _, f := r.ask(impatient, "slow"); assert.NotNil(t, f) {
			f.Close()
		}
	})
	<-begun
	leave()
	status, f := r.ask(t.Context(), "other")
	assert.Equal(t, http.StatusServiceUnavailable, status)
	assert.Nil(t, f)
	close(goOn)
	asking.Wait()
	assert.Equal(t, "slow", unpackedFile(t, r.open("slow")))
	assert.Equal(t, 1, made)
	files.Close()
}

// What is made when the files are closed ends with an error.
func TestMakingOfFormsEndsWithTheFiles(t *testing.T) {
	t.Parallel()
	files := web.NewRenderings(t.TempDir(), 1<<20, time.Hour, time.Minute, "rendering")
	r := rendering(t, files, func(_ string, w io.Writer) error {
		files.Close()
		_, err := io.WriteString(w, "more")
		return err
	})
	status, f := r.ask(t.Context(), "a")
	assert.Equal(t, http.StatusInternalServerError, status)
	assert.Nil(t, f)
}

// Files are removed by size and by time, unless they are being read, and a failed one leaves no file.
func TestFormsAreGivenUp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	files := web.NewRenderings(dir, 100, time.Hour, time.Minute, "rendering")
	made, fails := map[string]int{}, map[string]bool{}
	render := func(name string, w io.Writer) error {
		made[name]++
		_, err := io.WriteString(w, name+" "+strings.Repeat("long ", 20_000)) // packed it has more than a third of what is kept
		if fails[name] {
			err = errors.New("fails")
		}
		return err
	}
	r := rendering(t, files, render)
	first := r.open("a")
	r.open("b").Close()
	r.open("c").Close()
	r.open("c").Close()
	again := r.open("a")
	assert.Equal(t, map[string]int{"a": 2, "b": 1, "c": 1}, made)
	for _, f := range []web.File{first, again} {
		assert.Contains(t, unpackedFile(t, f), "a long ", "whoever has it open reads on")
	}
	fails["d"] = true
	status, f := r.ask(t.Context(), "d")
	assert.Equal(t, http.StatusInternalServerError, status)
	assert.Nil(t, f)
	fails["d"] = false
	assert.Contains(t, unpackedFile(t, r.open("d")), "d long ")
	files.Close()
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, left)

	brief := rendering(t, web.NewRenderings(dir, 1<<20, time.Nanosecond, time.Minute, "rendering"), render)
	defer brief.files.Close()
	testenv.Eventually(t, func() bool {
		was := made["e"]
		brief.open("e").Close()
		return was > 0 && made["e"] > was
	}, "a file that nobody uses is kept")
}

func unpackedFile(t *testing.T, f web.File) string {
	t.Helper()
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	b, err := io.ReadAll(z)
	require.NoError(t, err)
	return string(b)
}
