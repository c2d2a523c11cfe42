package resourcesync_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/feeds/resourcesync"
	rs "github.com/tmshare/tmshare/internal/ext/resourcesync"
	"github.com/tmshare/tmshare/internal/ext/resourcesync/resources"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/served"
	"github.com/tmshare/tmshare/internal/testkit/stores"
)

// resourceFiles returns the paths of the files of ResourceSync of a server.
func (n *node) resourceFiles() (paths []string) {
	n.T.Helper()
	require.NoError(n.T, filepath.WalkDir(filepath.Join(n.Store.Dir(), "resourcesync"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			paths = append(paths, path)
		}
		return err
	}))
	return paths
}

// checkResources returns the findings of a check of files of ResourceSync.
func (n *node) checkResources(repair bool) (all []store.Finding) {
	n.T.Helper()
	require.NoError(n.T, resources.Check(n.T.Context(), n.Store.(*store.DB), repair, func(f store.Finding) { all = append(all, f) }, func(string) {}))
	return all
}

// fileURLs returns the URLs at which the files of ResourceSync of a collection are.
func (n *node) fileURLs(name string) (urls []string) {
	n.T.Helper()
	d := &reader{node: n, name: name}
	base := n.URL("/topicmaps/" + name + "/resourcesync/")
	urls = append(urls, base+"resourcelist.xml", base+"resourcedump.xml")
	for _, index := range []string{"resourcelist.xml", "resourcedump.xml", "changelist-index.xml", "changedump.xml"} {
		for _, item := range d.parse(base+index, n.MustGet(base+index).Bytes).items {
			if strings.HasPrefix(item.Loc, base) && !strings.HasSuffix(item.Loc, "-open.xml") {
				urls = append(urls, item.Loc)
			}
			for _, contents := range item.Find(resourcesync.RelContents) {
				urls = append(urls, contents.Href)
			}
		}
	}
	return urls
}

// askForAll asks for all files, and requires that the served files are whole.
func (n *node) askForAll(urls []string) {
	n.T.Helper()
	d := &reader{node: n}
	for _, url := range urls {
		for _, coding := range []string{"identity", "gzip"} {
			a := n.Get(url, "Accept-Encoding", coding)
			require.NoError(n.T, a.Err)
			if a.StatusCode == http.StatusGone {
				continue
			}
			require.Equal(n.T, http.StatusOK, a.StatusCode, "%s: %s", url, a.Bytes)
			if strings.HasSuffix(url, ".zip") {
				_, err := resourcesync.OpenPackage(bytes.NewReader(a.Bytes), int64(len(a.Bytes)), url, resourcesync.PackageLimits{})
				require.NoError(n.T, err, url)
			} else {
				d.parse(url, a.Plain(n.T))
			}
		}
	}
}

// inFiles starts a server in a folder, which has made the files of sets and of change lists.
func inFiles(t *testing.T) *node {
	testenv.SkipUnderRace(t)
	stores.InFolders(t)
	t.Parallel()
	n := startWith(t, rs.Options{ChangesPerList: 3})
	n.Publish("m", served.Cities(9, "a"))
	n.visit("m")
	n.MustPut("m", served.Cities(7, "b"))
	n.visited("m").check()
	return n
}

// Whatever happens to the length of a file of ResourceSync, nothing of it is served: all that belongs together is made
// again, by itself.
func TestDamagedFilesOfResourceSyncAreMadeAgain(t *testing.T) {
	n := inFiles(t)
	files := len(n.resourceFiles())
	require.Greater(t, files, 8)
	require.Empty(t, n.checkResources(false))
	ways := map[string]func(path string, size int64) error{
		"missing": func(path string, _ int64) error { return os.Remove(path) },
		"cut":     func(path string, size int64) error { return os.Truncate(path, size/2) },
		"empty":   func(path string, _ int64) error { return os.Truncate(path, 0) },
		"longer":  func(path string, size int64) error { return os.Truncate(path, size+7) },
	}
	for turn, how := range slices.Sorted(maps.Keys(ways)) {
		for i := range files {
			if (i+turn)%len(ways) > 0 && !testenv.All() { // so that each way has some file, and each file some way
				continue
			}
			spoil := ways[how]
			paths := n.resourceFiles()
			require.Len(t, paths, files)
			path := paths[i]
			if filepath.Base(path) == "set.json" && how == "missing" { // those that are not finished have none
				continue
			}
			info, err := os.Stat(path)
			require.NoError(t, err)
			urls := n.fileURLs("m")
			require.NoError(t, spoil(path, info.Size()))
			n.askForAll(urls)
			if filepath.Base(path) == "set.json" { // is read when the server starts
				for _, f := range n.checkResources(true) {
					require.True(t, f.Repaired)
				}
				n.askForAll(urls)
			}
			n.visit("m").check()
			require.Empty(t, n.checkResources(false), "%s is %s", path, how)
		}
	}
}

// A file that has its length and other bytes is found by a check. It goes with all that belongs to it, and is made
// again.
func TestChangedFilesOfResourceSyncAreFound(t *testing.T) {
	n := inFiles(t)
	for i := range n.resourceFiles() {
		path, urls := n.resourceFiles()[i], n.fileURLs("m")
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		content[len(content)/2] ^= 0x10
		require.NoError(t, os.WriteFile(path, content, 0o600))
		for _, repair := range []bool{false, true} {
			found := n.checkResources(repair)
			require.Len(t, found, 1, path)
			require.Equal(t, "ResourceSync of collection m", found[0].Where)
			require.Contains(t, found[0].What, filepath.Base(path))
			require.True(t, found[0].Repairable)
			require.Equal(t, repair, found[0].Repaired)
		}
		n.askForAll(urls)
		n.visit("m").check()
		require.Empty(t, n.checkResources(false), path)
	}
}

// A change list whose files are damaged, and whose changes are not kept any more, is dropped with those before it:
// readers get an error that makes them start again.
func TestADamagedChangeListThatCannotBeMadeAgainIsDropped(t *testing.T) {
	stores.InFolders(t)
	t.Parallel()
	n := startWith(t, rs.Options{ChangesPerList: 5}, served.DocumentSize(2))
	n.Publish("m", served.Cities(3, "a"))
	n.visit("m")
	n.Settings("m", func(s *store.Settings) { s.KeepEntries = 2 })
	for i := range 10 {
		n.MustPut("m", served.Cities(3, fmt.Sprint("b", i)))
	}
	require.Equal(t, http.StatusCreated, n.Post("/topicmaps/m/snapshots").StatusCode)
	for range 2 {
		n.settle("m")
		require.Equal(t, http.StatusOK, n.Post("/topicmaps/m/gc").StatusCode)
	}
	before := n.visit("m")
	require.Greater(t, len(before.closed), 1)
	last := before.closed[len(before.closed)-1].url
	require.Equal(t, http.StatusOK, n.Get(last).StatusCode, "the new files are kept")
	lists, err := filepath.Glob(filepath.Join(n.Store.Dir(), "resourcesync", "*", "*", "changes-*", "changelist.xml"))
	require.NoError(t, err)
	for _, list := range lists {
		require.NoError(t, os.Truncate(list, 100))
	}
	require.Equal(t, http.StatusGone, n.Get(last).StatusCode)
	n.visit("m").check()
	require.Empty(t, n.checkResources(false))
}
