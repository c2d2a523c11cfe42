package publish

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/fragment/losses"
	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/internal/kv/badger"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/tmdm"
)

// following is a collection that follows a file. The test calls its looks itself: no test here depends on time.
type following struct {
	*follower
	t    *testing.T
	db   *store.DB
	logs *bytes.Buffer
}

// follow makes a collection of a file that names its topic "first".
func follow(t *testing.T) *following {
	p, db, logs := newPublisher(t)
	w := NewWatcher(p, &Reader{MaxSize: 1 << 20, Logger: p.Logger}, losses.Limit{}, time.Millisecond)
	path := filepath.Join(t.TempDir(), "map.xtm")
	return &following{newFollower(t, w, "map", path, "first"), t, db, logs}
}

// newPublisher returns a publisher to a store of its own.
func newPublisher(t *testing.T) (p *Publisher, db *store.DB, logs *bytes.Buffer) {
	db, err := store.Open(t.Context(), store.Options{Dir: t.TempDir(), Logger: slog.New(slog.DiscardHandler), Badger: badger.Small})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	logs = &bytes.Buffer{}
	return &Publisher{
		Store: db, Logger: slog.New(slog.NewTextHandler(logs, nil)), Now: time.Now, Timeout: time.Minute, SnapshotsKept: 1,
		Begin: func(string) func() { return func() {} }, After: func(*store.Collection) {},
	}, db, logs
}

// create makes a collection of a document.
func create(t *testing.T, w *Watcher, name string, document []byte) {
	_, err := w.Publisher.Create(t.Context(), store.Collection{Name: name, SP: "http://127.0.0.1/" + name + "/"}, name, false, func(sp string) (*tmdm.TopicMap, error) {
		tm, _, err := w.Reader.Read(t.Context(), bytes.NewReader(document), formats.Default, name, sp)
		return tm, err
	})
	require.NoError(t, err)
}

func newFollower(t *testing.T, w *Watcher, name, path, value string) *follower {
	require.NoError(t, os.WriteFile(path, naming(value), 0o600))
	create(t, w, name, naming(value))
	info, err := os.Stat(path)
	require.NoError(t, err)
	return &follower{Watched: Watched{Collection: name, File: path, was: looks{path: info}}, w: w}
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

// published returns the published name of the topic, and the number of published changes.
func (f *following) published() (name string, changes uint64) {
	f.t.Helper()
	require.NoError(f.t, f.db.View(f.t.Context(), f.Collection, func(v *store.View) error {
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
		"in place, with its time and size": func(f *following, _ string, content []byte) error { // as cp -p, or rsync --inplace -t
			info, err := os.Stat(f.File)
			if err != nil {
				return err
			}
			f.save(content)
			return os.Chtimes(f.File, info.ModTime(), info.ModTime())
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
	f.w.set(f.Collection, nil)
	broken := func(lines string) []byte { return bytes.Replace(naming("x"), []byte("</topic>\n"), []byte(lines), 1) }

	f.save(broken("\n\n"))
	f.looks(20)
	lines := f.reported()
	require.Len(t, lines, 1)
	assert.Regexp(t, `level=ERROR .*collection=map file=`+regexp.QuoteMeta(f.File)+` .*map.xtm:4:\d+: .*topic`, lines[0])
	f.assertPublished("first", 0)
	isBroken, follows := f.w.Broken("map")
	assert.True(t, isBroken && follows)

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
	isBroken, follows = f.w.Broken("map")
	assert.True(t, !isBroken && follows)

	f.save(broken("\n\n"))
	f.looks(20)
	assert.Len(t, f.reported(), 1, "broken as before, but it was in order in between")
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
	assert.Contains(t, lines[0], "put the file there")
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
	assert.True(t, sameFile(f.was[f.File], now), "it is not read again")
}

// A file that looks otherwise, and has the same content, is not read as a map: its content decides.
func TestWatchComparesContents(t *testing.T) {
	f := follow(t)
	f.save(naming("the second"))
	f.looks(2)
	f.assertPublished("the second", 1)
	read := 0
	f.w.Publisher.Store = looked{f.w.Publisher.Store, func() { read++ }}
	for _, touch := range []func() error{
		func() error { return os.Chtimes(f.File, time.Time{}, time.Now().Add(time.Hour)) },
		func() error { return os.Link(f.File, f.File+"~") },
		func() error { return os.Remove(f.File + "~") },
		func() error {
			if err := os.WriteFile(f.File+"~", naming("the second"), 0o600); err != nil {
				return err
			}
			return os.Rename(f.File+"~", f.File)
		},
	} {
		require.NoError(t, touch())
		f.looks(3)
		now, err := os.Stat(f.File)
		require.NoError(t, err)
		require.True(t, sameFile(f.was[f.File], now), "it is not looked into again")
	}
	require.Zero(t, read)
	f.save(naming("the third."))
	f.looks(2)
	require.NotZero(t, read)
	f.assertPublished("the third.", 2)
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

// looked is a store that calls then after each look at a collection.
type looked struct {
	Store
	then func()
}

func (s looked) Latest(ctx context.Context, name string) (*store.Latest, error) {
	defer s.then()
	return s.Store.Latest(ctx, name)
}

func TestWatchDoesNotPublishAFileThatChangesWhileItIsRead(t *testing.T) {
	f := follow(t)
	f.save(naming("before"))
	f.looks(1)
	meddler := &meddler{Context: t.Context()}
	f.w.Publisher.Store = looked{f.w.Publisher.Store, func() { // the file is read after that
		meddler.meddle = func() { f.save(naming("in between")) } // well-formed, but it might be half of something
	}}
	f.look(meddler)
	f.w.Publisher.Store = f.w.Publisher.Store.(looked).Store
	f.assertPublished("first", 0)
	f.looks(2)
	f.assertPublished("in between", 1)

	old := f.was
	f.save(naming("replaced between a look and the reading"))
	_, err := f.publish(t.Context(), old)
	assert.ErrorIs(t, err, errNotRested)
	assert.Empty(t, f.reported())
}

func TestWatchTakesUpAChangeDuringPublishing(t *testing.T) {
	f := follow(t)
	f.save(naming("before"))
	f.looks(1)
	now := f.last
	_, err := f.publish(t.Context(), now)
	require.NoError(t, err)
	f.save(naming("while that was published"))
	f.was = now
	f.looks(2)
	f.assertPublished("while that was published", 2)
}

func TestWatchComparesAtTheStart(t *testing.T) {
	f := follow(t)
	f.was = nil
	f.looks(2)
	f.assertPublished("first", 0)
	f.save(naming("changed while the server was down"))
	f.was, f.last = nil, nil
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
	require.NoError(t, f.db.DeleteCollection(t.Context(), f.Collection, ""))
	f.save(naming("published when it is there again"))
	f.looks(20)
	lines := f.reported()
	require.Len(t, lines, 1)
	assert.Contains(t, lines[0], "was deleted at")
	create(t, f.w, "map", naming("empty"))
	f.looks(20)
	f.assertPublished("published when it is there again", 1)
}

func TestFollowLooksUntilItsContextEnds(t *testing.T) {
	f := follow(t)
	other := &following{newFollower(t, f.w, "other", filepath.Join(t.TempDir(), "other.xtm"), "first"), t, f.db, f.logs}
	shown := make(chan string, 10)
	f.w.Publisher.After = func(c *store.Collection) { shown <- c.Name }
	ctx, stop := context.WithCancel(t.Context())
	var jobs sync.WaitGroup
	for _, one := range []*following{f, other} {
		job := f.w.Follow(one.Watched)
		jobs.Go(func() { job(ctx) })
	}
	f.save(naming("seen by itself"))
	other.save(naming("seen as well"))
	assert.ElementsMatch(t, []string{"map", "other"}, []string{<-shown, <-shown})
	stop()
	jobs.Wait() // a job that does not end fails the test by its timeout
	f.assertPublished("seen by itself", 1)
	other.assertPublished("seen as well", 1)
}

// A file on a file system that hangs keeps its turn, but the server can stop the waiting followers.
func TestWatchStopsWhileItWaits(t *testing.T) {
	f := follow(t)
	f.w.turn <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	f.save(naming("waits"))
	f.looks(1)
	f.failures = 1
	cancel()
	f.look(ctx)
	f.assertPublished("first", 0)
	assert.Empty(t, f.reported())
}

// A file that has lost most of its topics, such as an accidentally emptied one, is not published until a person
// confirms it.
func TestWatchHoldsBackAMassDeletion(t *testing.T) {
	f := follow(t)
	var all strings.Builder
	for i := range 30 {
		fmt.Fprintf(&all, `<topic><subjectIdentifier href="http://psi.example.org/%d"/></topic>`, i)
	}
	full := bytes.Replace(naming("full"), []byte("</topicMap>"), []byte(all.String()+"</topicMap>"), 1)
	f.save(full)
	f.looks(2)
	f.assertPublished("full", 31)
	f.w.Reader.Lenient = true
	f.save(bytes.Replace(naming("nearly empty"), []byte("</topicMap>"), []byte("text</topicMap>"), 1))
	f.looks(10)
	f.assertPublished("full", 31)
	assert.Equal(t, 1, strings.Count(f.logs.String(), "text where only elements may stand"), "so with what is tolerated")
	lines := f.reported()
	require.Len(t, lines, 1, "the log says it once")
	assert.Contains(t, lines[0], "would lose 30 of 32 topics, more than half (30 deleted); nothing is changed. Lost would be: http://psi.example.org/0: deleted; ")
	assert.Contains(t, lines[0], `advice="mend it, or publish it all the same: \"tmshare-server import map `+f.File+` --max-delete 30\""`)
	broken, _ := f.w.Broken(f.Collection)
	assert.True(t, broken)
	require.NoError(t, f.w.MaxDelete.UnmarshalText([]byte("all")))
	f.looks(10)
	f.assertPublished("nearly empty", 62)
	assert.Len(t, f.reported(), 1)
}

// The same applies to one that deletes no topic, but most statements.
func TestWatchHoldsBackWhatSaysNothingAnyMore(t *testing.T) {
	f := follow(t)
	concepts := func(saying int) []byte {
		var all strings.Builder
		for i := range 100 {
			fmt.Fprintf(&all, `<topic><subjectIdentifier href="http://psi.example.org/%d"/>`, i)
			if i < saying {
				fmt.Fprintf(&all, `<name><value>Concept %d</value></name>`, i)
			}
			all.WriteString(`</topic>`)
		}
		return bytes.Replace(naming("full"), []byte("</topicMap>"), []byte(all.String()+"</topicMap>"), 1)
	}
	f.save(concepts(100))
	f.looks(2)
	f.assertPublished("full", 101)
	require.NoError(t, f.w.MaxDelete.UnmarshalText([]byte("0")))
	f.save(concepts(3))
	f.looks(10)
	f.assertPublished("full", 101)
	lines := f.reported()
	require.Len(t, lines, 1)
	assert.Contains(t, lines[0], "would lose 97 of 102 topics, more than 0 (97 without names and occurrences); nothing is changed.")
	assert.Contains(t, lines[0], `Lost would be: http://psi.example.org/10 \"Concept 10\": no name and no occurrence is left; `)
	assert.Contains(t, lines[0], `--max-delete 97\"`)
	assert.Contains(t, lines[0], "; … and 87 more")
}

// Repeated warnings of a file are logged once in full, and then in a line.
func TestWatchSaysTheSameWarningsInALine(t *testing.T) {
	f := follow(t)
	f.w.Reader.Lenient = true
	sloppy := func(value string, texts int) []byte {
		return bytes.Replace(naming(value), []byte("<topic>"), []byte(strings.Repeat("text<topic id=\"x\"/>", texts)+"<topic>"), 1)
	}
	warned := func() (lines []string) {
		for line := range strings.Lines(f.logs.String()) {
			if strings.Contains(line, "level=WARN") {
				lines = append(lines, line)
			}
		}
		f.logs.Reset()
		return lines
	}
	f.save(sloppy("sloppy", 1))
	f.looks(2)
	lines := warned()
	require.Len(t, lines, 1)
	assert.Contains(t, lines[0], "there is text where only elements may stand (once)")

	f.save(append([]byte("\n\n"), sloppy("as sloppy as before", 1)...))
	f.looks(2)
	f.assertPublished("as sloppy as before", 3)
	lines = warned()
	require.Len(t, lines, 1)
	assert.Contains(t, lines[0], `msg="warnings: 1, the same as last time" collection=map file=`)

	f.save(sloppy("sloppier than before", 2))
	f.looks(2)
	lines = warned()
	require.Len(t, lines, 1)
	assert.Contains(t, lines[0], "(2 times)")

	f.save(naming("clean"))
	f.looks(2)
	assert.Empty(t, warned())
	f.save(sloppy("sloppy once more", 2))
	f.looks(2)
	lines = warned()
	require.Len(t, lines, 1)
	assert.Contains(t, lines[0], "(2 times)")
}

// The log warns of a file with renumbered ids; it is published nevertheless.
func TestWatchWarnsOfIDsThatWereNumberedAnew(t *testing.T) {
	f := follow(t)
	towns := func(names ...string) []byte {
		var all strings.Builder
		for i, name := range names {
			fmt.Fprintf(&all, `<topic id="id%d"><name><value>%s</value></name></topic>`, i, name)
		}
		return []byte(`<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1">` + all.String() + `</topicMap>`)
	}
	f.save(towns("Oslo", "Bergen", "Voss", "Bodø"))
	f.looks(2)
	assert.NotContains(t, f.logs.String(), "other ids")
	f.save(towns("Asker", "Oslo", "Bergen", "Voss", "Bodø"))
	f.looks(5)
	assert.Equal(t, 1, strings.Count(f.logs.String(), "4 topics have other ids in the document than before."))
	assert.Empty(t, f.reported())
}

// What a mergeMap names is published and followed as well.
func TestWatchFollowsWhatIsMergedIn(t *testing.T) {
	f := follow(t)
	other := filepath.Join(filepath.Dir(f.File), "parts", "other.xtm")
	require.NoError(t, os.Mkdir(filepath.Dir(other), 0o700))
	f.save([]byte(`<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1"><mergeMap href="parts/other.xtm"/></topicMap>`))
	f.looks(6)
	f.assertPublished("first", 0)
	lines := f.reported()
	require.Len(t, lines, 1)
	assert.Contains(t, lines[0], "<mergeMap>: "+other+": no such file")
	require.NoError(t, os.WriteFile(other, naming("merged in"), 0o600))
	f.looks(1)
	f.assertPublished("first", 0)
	f.looks(1)
	f.assertPublished("merged in", 1)
	assert.Len(t, f.reported(), 1, "it is in order again")
	require.NoError(t, os.WriteFile(other, naming("merged in and changed"), 0o600))
	f.looks(2)
	f.assertPublished("merged in and changed", 2)
	f.looks(3)
	f.assertPublished("merged in and changed", 2)
	info, err := os.Stat(other)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(other, naming("merged in and CHANGED"), 0o600))
	require.NoError(t, os.Chtimes(other, info.ModTime(), info.ModTime()))
	f.looks(2)
	f.assertPublished("merged in and CHANGED", 3)
	f.save(naming("alone"))
	f.looks(2)
	f.assertPublished("alone", 4)
	require.NoError(t, os.Remove(other))
	f.looks(3)
	assert.Empty(t, f.reported(), "it is merged in no more")

	f.save([]byte(`<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1"><mergeMap href="../other.xtm"/></topicMap>`))
	f.looks(6)
	assert.Contains(t, strings.Join(f.reported(), ""), "it is not below")
	outside := filepath.Join(filepath.Dir(filepath.Dir(f.File)), "other.xtm")
	require.NoError(t, os.WriteFile(outside, naming("from elsewhere"), 0o600))
	f.Root, f.wait = filepath.Dir(outside), 0
	f.looks(1)
	f.assertPublished("from elsewhere", 5)
}
