package server_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testenv"
)

// A snapshot whose file is missing or damaged is not listed: one is taken anew at the start, or by
// the first request for it, and then leads to the same map.
func TestLostSnapshotsAreTakenAnew(t *testing.T) {
	t.Parallel()
	cutShort := func(path string) error { return os.Truncate(path, 20) }
	for what, lose := range map[string]func(files []string) error{
		"missing":     func(files []string) error { return os.Remove(files[0]) },
		"cut":         func(files []string) error { return cutShort(files[0]) },
		"empty":       func(files []string) error { return os.Truncate(files[0], 0) },
		"both":        func(files []string) error { return os.RemoveAll(filepath.Dir(files[0])) },
		"other forms": func(files []string) error { return cutShort(files[1]) },
	} {
		for _, restarted := range []bool{false, true} {
			dir := t.TempDir()
			n := startOn(t, store.Options{Dir: dir})
			n.publish("small", small())
			first := n.feed("/topicmaps/small/snapshots").Entries[0]
			current := n.current("small")
			files, err := filepath.Glob(filepath.Join(dir, "snapshots", "*", "*.gz"))
			require.NoError(t, err)
			require.Len(t, files, 2)
			slices.Sort(files)
			if restarted {
				n.stop()
				require.NoError(t, lose(files), what)
				n = startOn(t, store.Options{Dir: dir})
				require.NoError(t, n.Start())
				testenv.Eventually(t, func() bool { return len(n.feed("/topicmaps/small/snapshots").Entries) == 1 }, what)
			} else {
				require.NoError(t, lose(files), what)
				lost := filepath.Ext(filepath.Base(files[0][:len(files[0])-3])) // .xtm1
				if what == "other forms" {
					lost = ".xtm21"
				}
				a := n.get("/topicmaps/small/snapshots/" + first.id()[len("urn:uuid:"):] + lost)
				require.Equal(t, http.StatusNotFound, a.StatusCode, what)
				assert.NotContains(t, a.Header.Get("Cache-Control"), "immutable", what)
				assert.Contains(t, string(a.body), "the snapshots feed lists those that are kept", what)
			}
			again := n.feed("/topicmaps/small/snapshots").Entries
			require.Len(t, again, 1, what)
			assert.NotEqual(t, first.id(), again[0].id(), what)
			assert.Equal(t, first.updated(), again[0].updated(), what)
			for _, form := range []string{xtm1Type, xtm21Type} {
				assert.NotEmpty(t, n.mustGet(again[0].typed(t, "topicmapdata")[form]).body, what)
			}
			assert.Equal(t, current, n.current("small"), what)
			assert.Contains(t, n.logs.String(), "the files of a snapshot are missing or damaged", what)
			n.stop()
		}
	}
}

// Where an older snapshot is left, from before the history that is kept, one is taken anew.
func TestALostSnapshotBehindTheHorizonIsTakenAnew(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := startOn(t, store.Options{Dir: dir})
	n.publish("small", small())
	n.mustPut("small", small("Oslo", "Oslo 1"))
	require.Equal(t, http.StatusCreated, n.do("POST", "/topicmaps/small/snapshots", nil).StatusCode)
	before := n.feed("/topicmaps/small/snapshots").Entries
	require.Len(t, before, 2)
	files, err := filepath.Glob(filepath.Join(dir, "snapshots", "*", before[0].id()[len("urn:uuid:"):]+"*"))
	require.NoError(t, err)
	require.Len(t, files, 2)
	require.NoError(t, os.Remove(files[0]))
	require.NoError(t, n.Start())
	testenv.Eventually(t, func() bool { return len(n.feed("/topicmaps/small/snapshots").Entries) == 2 })
	after := n.feed("/topicmaps/small/snapshots").Entries
	assert.Equal(t, before[1].id(), after[1].id())
	assert.NotEqual(t, before[0].id(), after[0].id())
}

// A full disk keeps a server with a lost snapshot from writing, not from starting. Other errors do.
func TestAServerWithALostSnapshotStartsOnAFullDisk(t *testing.T) {
	t.Parallel()
	n, w := watch(t)
	for _, err := range []error{syscall.ENOSPC, syscall.EDQUOT} {
		full := fmt.Errorf("writing: %w", err)
		w.drop.Store(&full)
		require.NoError(t, n.Start())
		assert.NotEmpty(t, n.current("small"))
	}
	assert.Contains(t, n.logs.String(), "stay listed, as the disk is full")
	broken := error(syscall.EIO)
	w.drop.Store(&broken)
	require.ErrorIs(t, n.Start(), syscall.EIO)
}
