package server

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store"
)

// following is a collection that follows a file, whose looks the test makes
// itself: no test here depends on time.
type following struct {
	*follower
	t    *testing.T
	logs bytes.Buffer
}

// follow makes a collection of a file that names its topic "first".
func follow(t *testing.T) *following {
	f := &following{t: t}
	db, err := store.Open(store.Options{Dir: t.TempDir(), Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	s, err := New(Config{Store: db, BaseURL: "http://127.0.0.1", Logger: slog.New(slog.NewTextHandler(&f.logs, nil))})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	path := filepath.Join(t.TempDir(), "map.xtm")
	f.follower = newFollower(t, s, "map", path, "first")
	return f
}

func newFollower(t *testing.T, s *Server, name, path, value string) *follower {
	require.NoError(t, os.WriteFile(path, naming(value), 0o600))
	_, err := s.Import(t.Context(), store.Collection{Name: name, SP: DefaultPrefix(s.BaseURL, name)}, bytes.NewReader(naming(value)), path)
	require.NoError(t, err)
	info, err := os.Stat(path)
	require.NoError(t, err)
	return &follower{Watched: Watched{name, path, info}, s: s, one: make(chan struct{}, 1)}
}

// naming returns a map with a topic of the name. Names in a test are of different
// lengths, since file systems may give two writes in quick succession the same
// time.
func naming(value string) []byte {
	return fmt.Appendf(nil, `<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1">
<topic><subjectIdentifier href="http://psi.example.org/a"/><name><value>%s</value></name></topic>
</topicMap>`, value)
}

func (f *following) save(content []byte) {
	f.t.Helper()
	require.NoError(f.t, os.WriteFile(f.File, content, 0o600))
}

func (f *following) looks(n int) {
	for range n {
		f.look(f.t.Context())
	}
}

// published returns the name of the topic as it is published, and how many
// changes have been published.
func (f *following) published() (name string, changes uint64) {
	f.t.Helper()
	require.NoError(f.t, f.s.Store.View(f.Collection, func(v *store.View) error {
		topic, err := v.Source().Topic(fragment.Ref("http://psi.example.org/a"))
		require.NoError(f.t, err)
		name, changes = topic.Names[0].Value, v.Head-2 // it and the type of names
		return nil
	}))
	return name, changes
}

func (f *following) assertPublished(name string, changes uint64) {
	f.t.Helper()
	gotName, gotChanges := f.published()
	assert.Equal(f.t, name, gotName)
	assert.Equal(f.t, changes, gotChanges)
}

// reported returns the lines of the log about failures and their end since the
// last call.
func (f *following) reported() []string {
	var lines []string
	for line := range strings.Lines(f.logs.String()) {
		if strings.Contains(line, "file not published") || strings.Contains(line, "in order again") {
			lines = append(lines, line)
		}
	}
	f.logs.Reset()
	return lines
}

func TestWatchPublishesAFileThatHasRested(t *testing.T) {
	f := follow(t)
	f.looks(3)
	f.assertPublished("first", 0)
	f.save(naming("the second"))
	f.looks(1)
	f.assertPublished("first", 0)
	f.looks(1)
	f.assertPublished("the second", 1)
	f.looks(3)
	f.assertPublished("the second", 1)
	assert.Empty(t, f.reported())
}

func TestWatchSeesEveryWayToSave(t *testing.T) {
	ways := map[string]func(f *following, dir string, content []byte) error{
		"another file renamed": func(f *following, dir string, content []byte) error {
			next := filepath.Join(dir, "next")
			if err := os.WriteFile(next, content, 0o600); err != nil {
				return err
			}
			return os.Rename(next, f.File)
		},
		"the old one renamed, a new one written": func(f *following, _ string, content []byte) error {
			if err := os.Rename(f.File, f.File+"~"); err != nil {
				return err
			}
			f.looks(1)
			return os.WriteFile(f.File, content, 0o600)
		},
		"removed and written": func(f *following, _ string, content []byte) error {
			if err := os.Remove(f.File); err != nil {
				return err
			}
			return os.WriteFile(f.File, content, 0o600)
		},
		"with its times kept": func(f *following, dir string, content []byte) error {
			info, err := os.Stat(f.File)
			if err != nil {
				return err
			}
			next := filepath.Join(dir, "next")
			if err := os.WriteFile(next, content, 0o600); err != nil {
				return err
			}
			if err := os.Chtimes(next, info.ModTime(), info.ModTime()); err != nil {
				return err
			}
			return os.Rename(next, f.File)
		},
		"in the same moment": func(f *following, _ string, content []byte) error {
			info, err := os.Stat(f.File)
			if err != nil {
				return err
			}
			f.save(append(content, ' '))
			return os.Chtimes(f.File, info.ModTime(), info.ModTime())
		},
		"gzipped": func(f *following, _ string, content []byte) error {
			var b bytes.Buffer
			z := gzip.NewWriter(&b)
			if _, err := z.Write(content); err != nil {
				return err
			}
			if err := z.Close(); err != nil {
				return err
			}
			return os.WriteFile(f.File, b.Bytes(), 0o600)
		},
	}
	for name, save := range ways {
		t.Run(name, func(t *testing.T) {
			f := follow(t)
			f.looks(2)
			require.NoError(t, save(f, filepath.Dir(f.File), naming("other"))) // as long as "first"
			f.looks(2)
			f.assertPublished("other", 1)
			assert.Empty(t, f.reported())
		})
	}
}

// A volume of a Kubernetes config map: the file is a link into ..data, which is
// a link to a folder, and that link is replaced.
func TestWatchSeesALinkOnTheWayReplaced(t *testing.T) {
	f := follow(t)
	dir := filepath.Dir(f.File)
	version := func(name string) {
		folder := "..version_" + name
		require.NoError(t, os.Mkdir(filepath.Join(dir, folder), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, folder, "map.xtm"), naming(name), 0o600))
		require.NoError(t, os.Symlink(folder, filepath.Join(dir, "..data_tmp")))
		require.NoError(t, os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
	}
	require.NoError(t, os.Remove(f.File))
	version("linked")
	require.NoError(t, os.Symlink(filepath.Join("..data", "map.xtm"), f.File))
	f.looks(2)
	f.assertPublished("linked", 1)
	version("linkedanew")
	f.looks(2)
	f.assertPublished("linkedanew", 2)
}

func TestWatchWaitsForTheWriter(t *testing.T) {
	f := follow(t)
	content := naming("written slowly")
	for n := range content {
		f.save(content[:n])
		f.looks(1)
	}
	f.assertPublished("first", 0)
	f.save(content)
	f.looks(2)
	f.assertPublished("written slowly", 1)
	assert.Empty(t, f.reported())
}

func TestWatchTriesAgainBeforeItReports(t *testing.T) {
	f := follow(t)
	content := naming("with a long break in the middle")
	f.save(content[:100])
	f.looks(2)
	assert.Equal(t, 1, f.failures)
	f.save(content)
	f.looks(2)
	f.assertPublished("with a long break in the middle", 1)
	assert.Empty(t, f.reported())
}

func TestWatchReportsABrokenFileOnce(t *testing.T) {
	f := follow(t)
	f.s.watched.set(f.Collection, false)
	broken := func(lines string) []byte { return bytes.Replace(naming("x"), []byte("</topic>\n"), []byte(lines), 1) }

	f.save(broken("\n\n"))
	f.looks(20)
	lines := f.reported()
	require.Len(t, lines, 1)
	assert.Regexp(t, `level=ERROR .*collection=map file=`+regexp.QuoteMeta(f.File)+` .*map.xtm:4:\d+: .*topic`, lines[0])
	f.assertPublished("first", 0)
	assert.Contains(t, metricsOf(f.s), `tmshare_collection_file_broken{collection="map"} 1`)

	f.save(append(broken("\n\n"), ' ')) // saved again, and the same is wrong with it
	f.looks(20)
	assert.Empty(t, f.reported())

	f.save(broken("<nothing/>\n\n\n"))
	f.looks(20)
	lines = f.reported()
	require.Len(t, lines, 1)
	assert.Contains(t, lines[0], "map.xtm:2:")

	f.save(naming("mended"))
	f.looks(2)
	f.assertPublished("mended", 1)
	lines = f.reported()
	require.Len(t, lines, 1)
	assert.Contains(t, lines[0], "file is in order again")
	assert.Contains(t, metricsOf(f.s), `tmshare_collection_file_broken{collection="map"} 0`)

	f.save(broken("\n\n"))
	f.looks(20)
	assert.Len(t, f.reported(), 1, "broken as before, but it was in order in between")
}

func metricsOf(s *Server) string {
	w := httptest.NewRecorder()
	s.MetricsHandler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}

func TestWatchTriesABrokenFileLessAndLessOften(t *testing.T) {
	f := follow(t)
	f.save([]byte("<"))
	f.looks(100)
	assert.Equal(t, 6, f.failures) // after 2, 5, 10, 19, 36 and 69 looks
	f.failures = 1000
	f.wait = 0
	f.looks(1)
	assert.Equal(t, maxLooks, f.wait)
	f.save(naming("mended"))
	f.looks(2)
	f.assertPublished("mended", 1)
}

func TestWatchReportsAMissingFileOnce(t *testing.T) {
	f := follow(t)
	away := f.File + ".away"
	require.NoError(t, os.Rename(f.File, away))
	f.looks(1)
	assert.Empty(t, f.reported())
	f.looks(20)
	lines := f.reported()
	require.Len(t, lines, 1)
	assert.Contains(t, lines[0], "no such file")
	f.assertPublished("first", 0)

	require.NoError(t, os.Rename(away, f.File))
	f.looks(2)
	lines = f.reported()
	require.Len(t, lines, 1)
	assert.Contains(t, lines[0], "in order again")
	f.assertPublished("first", 0)

	require.NoError(t, os.Remove(f.File))
	f.looks(3)
	assert.Len(t, f.reported(), 1)
	f.save([]byte("<"))
	f.looks(2)
	assert.Equal(t, 1, f.failures, "the broken file is another matter")
	require.NoError(t, os.Rename(f.File, away))
	f.looks(20)
	require.NoError(t, os.Rename(away, f.File))
	f.looks(2)
	assert.Equal(t, 1, f.failures)
	f.save(naming("another one"))
	f.looks(2)
	f.assertPublished("another one", 1)
}

func TestWatchPublishesNothingForTheSameContent(t *testing.T) {
	f := follow(t)
	f.save(append(naming("first"), "<!-- saved again -->"...))
	f.looks(2)
	f.assertPublished("first", 0)
	now, err := os.Stat(f.File)
	require.NoError(t, err)
	assert.True(t, sameFile(f.Published, now), "it is not read again")
}

// meddler is a context that changes a file while it is being read.
type meddler struct {
	context.Context
	meddle func()
}

func (m *meddler) Err() error {
	if m.meddle != nil {
		m.meddle()
		m.meddle = nil
	}
	return m.Context.Err()
}

func TestWatchDoesNotPublishAFileThatChangesWhileItIsRead(t *testing.T) {
	f := follow(t)
	f.save(naming("before"))
	f.looks(1)
	f.look(&meddler{t.Context(), func() { f.save(naming("in between")) }}) // well-formed, but it might be half of something
	f.assertPublished("first", 0)
	f.looks(2)
	f.assertPublished("in between", 1)

	old := f.Published
	f.save(naming("replaced between a look and the reading"))
	assert.ErrorIs(t, f.publish(t.Context(), old), errNotRested)
	assert.Empty(t, f.reported())
}

func TestWatchTakesUpAChangeDuringPublishing(t *testing.T) {
	f := follow(t)
	f.save(naming("before"))
	f.looks(1)
	now, err := os.Stat(f.File)
	require.NoError(t, err)
	require.NoError(t, f.publish(t.Context(), now))
	f.save(naming("while that was published"))
	f.Published = now
	f.looks(2)
	f.assertPublished("while that was published", 2)
}

func TestWatchComparesAtTheStart(t *testing.T) {
	f := follow(t)
	f.Published = nil
	f.looks(2)
	f.assertPublished("first", 0)
	f.save(naming("changed while the server was down"))
	f.Published, f.last = nil, nil
	f.looks(2)
	f.assertPublished("changed while the server was down", 1)
}

func TestWatchReadsRegularFilesOnly(t *testing.T) {
	f := follow(t)
	require.NoError(t, os.Remove(f.File))
	require.NoError(t, syscall.Mkfifo(f.File, 0o600)) // opening it would wait for a writer
	f.looks(20)
	lines := f.reported()
	require.Len(t, lines, 1)
	assert.Contains(t, lines[0], "is no regular file")
}

func TestWatchSurvivesTheCollection(t *testing.T) {
	f := follow(t)
	require.NoError(t, f.s.Store.DeleteCollection(f.Collection))
	f.save(naming("published when it is there again"))
	f.looks(20)
	lines := f.reported()
	require.Len(t, lines, 1)
	assert.Contains(t, lines[0], "not found")
	_, err := f.s.Import(t.Context(), store.Collection{Name: "map", SP: "http://127.0.0.1/"}, bytes.NewReader(naming("empty")), "")
	require.NoError(t, err)
	f.looks(20)
	f.assertPublished("published when it is there again", 1)
}

func TestWatchStopsWithTheServer(t *testing.T) {
	f := follow(t)
	f.s.WatchEvery = 5 * time.Millisecond
	other := &following{follower: newFollower(t, f.s, "other", filepath.Join(t.TempDir(), "other.xtm"), "first"), t: t}
	f.s.Watch([]Watched{f.Watched, other.Watched})
	f.save(naming("seen by itself"))
	other.save(naming("seen as well"))
	require.Eventually(t, func() bool {
		_, one := f.published()
		_, two := other.published()
		return one == 1 && two == 1
	}, 10*time.Second, 5*time.Millisecond)
	f.s.Close()
	f.save(naming("nobody looks any more"))
	time.Sleep(50 * time.Millisecond)
	f.assertPublished("seen by itself", 1)
	other.assertPublished("seen as well", 1)
}

// A file on a file system that hangs keeps its turn, but not the server from
// stopping the followers that wait for it.
func TestWatchStopsWhileItWaits(t *testing.T) {
	f := follow(t)
	f.one <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	f.save(naming("waits"))
	f.looks(1)
	f.failures = 1
	time.AfterFunc(20*time.Millisecond, cancel)
	f.look(ctx)
	f.assertPublished("first", 0)
	assert.Empty(t, f.reported())
}
