package server_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/kv/badger"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/served"
)

// wheel is a map with a hub that has a long note and so many associations.
func wheel(name string, spokes int) []byte {
	parts := []string{served.Topic("note", "note"), served.Topic("hub", name, served.Note("note", strings.Repeat("long ", 60_000))), served.Topic("part-of", "part of"), served.Topic("role-1", "part"), served.Topic("role-2", "whole")}
	for i := range spokes {
		id := fmt.Sprint("s", i)
		parts = append(parts, served.Topic(id, id), served.Association("part-of", "hub", id))
	}
	return served.TopicMap(parts...)
}

// publishWheel publishes a map with a hub, which is offered in RDF, too.
func (n *node) publishWheel(spokes int) {
	n.T.Helper()
	require.Equal(n.T, http.StatusCreated, n.Do(http.MethodPut, "/topicmaps/hub", strings.NewReader(`{"rdf": true}`), "Content-Type", "application/json").StatusCode)
	n.MustPut("hub", wheel("Hub", spokes))
}

// hubPaths returns the paths of all forms of the newest fragment of the hub, and of its record.
func (n *node) hubPaths() (paths []string) {
	n.T.Helper()
	fragment := ""
	require.NoError(n.T, n.Store.View(n.T.Context(), "hub", func(v *store.View) error {
		e, err := v.LastOf("http://psi.example.org/hub")
		fragment = n.URLs.Fragment(&v.Collection, e)
		return err
	}))
	record := n.find("hub", "http://psi.example.org/hub").Header.Get("Location")
	for _, url := range []string{fragment, record} {
		for _, ending := range []string{".xtm1", ".xtm21", ".ttl", ".nt"} {
			paths = append(paths, strings.TrimPrefix(url+ending, n.BaseURL))
		}
	}
	return paths
}

// Clients that read a large fragment or record slowly hold no state of the store open, and loads do not wait for them.
func TestSlowReadersOfLargeFragmentsHoldNoStateOpen(t *testing.T) {
	testenv.OnlyWithAll(t, "a topic of 50,000 associations is read slowly")
	testenv.SkipUnderRace(t)
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "engine"), 0o700))
	folder, err := badger.Lock(filepath.Join(dir, "engine"), false)
	require.NoError(t, err)
	engine, err := folder.Open(badger.Options{Settings: badger.Small})
	require.NoError(t, err)
	few := &fewStates{Engine: engine, open: make(chan struct{}, 32)}
	n := startOn(t, store.Options{Dir: dir, Engine: few}, served.DocumentSize(10_000), func(c *server.Config) {
		c.SlowClientTimeout = 10 * time.Minute
	})
	n.publishWheel(50_000)
	loads := engine.Adopted()
	for _, path := range n.hubPaths() {
		begun, err := bufio.NewReaderSize(n.take(path), 16).ReadString('\n')
		require.NoError(t, err)
		require.Contains(t, begun, "200", path)
	}
	testenv.Eventually(t, func() bool { return len(few.open) == 0 }, "no state is open while slow clients take what was made")
	n.Publish("another", wheel("Hub", 2000))
	assert.Equal(t, loads+1, engine.Adopted(), "the load found a moment in which nobody reads")
}

// A large fragment is made once and stored. It is served whole, in ranges of the packed bytes, and unpacked for other
// clients.
func TestALargeFragmentIsMadeOnce(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	n := startOn(t, store.Options{Dir: t.TempDir()}, served.DocumentSize(10_000))
	n.publishWheel(2000)
	for _, path := range n.hubPaths() {
		packed := n.MustGet(path, "Accept-Encoding", "gzip, zstd;q=0.9")
		require.Equal(t, "gzip", packed.Header.Get("Content-Encoding"), path)
		z, err := gzip.NewReader(bytes.NewReader(packed.Bytes))
		require.NoError(t, err)
		plain, err := io.ReadAll(z)
		require.NoError(t, err)
		require.Greater(t, len(plain), 256<<10, path)
		assert.Equal(t, string(plain), string(n.MustGet(path, "Accept-Encoding", "identity").Bytes), path)
		again := n.MustGet(path, "Accept-Encoding", "zstd, gzip")
		assert.Equal(t, packed.Bytes, again.Bytes, path)
		assert.Equal(t, packed.Header.Get("ETag"), again.Header.Get("ETag"), path)
		part := n.Get(path, "Accept-Encoding", "gzip", "Range", "bytes=100-199", "If-Range", packed.Header.Get("ETag"))
		require.Equal(t, http.StatusPartialContent, part.StatusCode, path)
		assert.Equal(t, packed.Bytes[100:200], part.Bytes, path)
		head := n.Do(http.MethodHead, n.URL(path), nil, "Accept-Encoding", "gzip")
		assert.Equal(t, fmt.Sprint(len(packed.Bytes)), head.Header.Get("Content-Length"), path)
		for _, takes := range []string{"gzip", "zstd, gzip"} {
			assert.Equal(t, http.StatusNotModified, n.Get(path, "Accept-Encoding", takes, "If-None-Match", packed.Header.Get("ETag")).StatusCode, path)
		}
	}
}

// A full disk has no space for large fragments. Requests for them get an error, and stored documents are served.
func TestAFullDiskHasNoSpaceForLargeFragments(t *testing.T) {
	t.Parallel()
	n, w := watch(t, served.DocumentSize(10_000))
	n.publishWheel(2000)
	paths, full := n.hubPaths(), fmt.Errorf("/var/lib/secret: %w", syscall.ENOSPC)
	w.mayWrite = full
	for _, path := range paths {
		what, _, _ := strings.Cut(strings.TrimPrefix(path, "/topicmaps/hub/"), "/")
		what = map[string]string{"fragments": "fragment", "topics": "record"}[what]
		a := n.Get(path)
		assert.Equal(t, http.StatusInsufficientStorage, a.StatusCode, path)
		for _, text := range []string{"no space to make this large " + what, "can be read", "Free some space on the disk"} {
			assert.Contains(t, string(a.Bytes), text, path)
		}
		assert.NotContains(t, string(a.Bytes), "secret", path)
		assert.NotContains(t, a.Header.Get("Cache-Control"), "immutable", path)
		w.mayWrite = nil
		n.MustGet(path)
		w.mayWrite = full
	}
	n.MustGet(n.find("hub", "http://psi.example.org/s1").Header.Get("Location"))
}
