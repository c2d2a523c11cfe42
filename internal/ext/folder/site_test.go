package folder_test

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/tmshare/tmshare/internal/ext/folder"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/ext/atompmh"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/follow/followtest"
	"github.com/tmshare/tmshare/internal/testkit/anyhost"
	"github.com/tmshare/tmshare/internal/testkit/faults"
)

// site is http://example.org, served by a real server on a loopback socket.
type site struct {
	t testing.TB
	*anyhost.Server

	faults.Front
	mu    sync.Mutex
	pages map[string]string // by path: the bodies
	types map[string]string // by path: Content-Type
}

const feedURL = "http://example.org/feed"

func newSite(t testing.TB) *site {
	s := &site{t: t, pages: map[string]string{}, types: map[string]string{}}
	s.Server = anyhost.Serve(t, s)
	return s
}

// ServeHTTP answers, through the faults.
func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.Answer(w, r, http.HandlerFunc(s.show))
}

// show answers with the page; its ETag is made of its content.
func (s *site) show(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	page, ok := s.pages[r.URL.Path]
	kind := s.types[r.URL.Path]
	s.mu.Unlock()
	if !ok {
		http.NotFound(w, r)
		return
	}
	if kind != "" {
		w.Header().Set("Content-Type", kind)
	}
	w.Header().Set("ETag", etagOf(page))
	http.ServeContent(w, r, "", time.Time{}, strings.NewReader(page))
}

func (s *site) set(path, page string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pages[path] = page
}

func (s *site) remove(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pages, path)
}

// answer makes the site answer requests for a path with a status.
func (s *site) answer(path string, status int) {
	s.BreakWith(faults.Some(atPath(path), faults.Always, faults.Answering(status)))
}

// atPath counts the requests for a path, or for those that begin with the text before an asterisk.
func atPath(path string) func(*http.Request) bool {
	begin, many := strings.CutSuffix(path, "*")
	return func(r *http.Request) bool { return r.URL.Path == path || many && strings.HasPrefix(r.URL.Path, begin) }
}

// saying answers with a text.
func saying(text string) faults.Answer {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { _, _ = io.WriteString(w, text) }
}

// tester is a test, of rapid too.
type tester interface {
	require.TestingT
	Helper()
}

// copyOf is a folder that follows a site.
type copyOf struct {
	t    tester
	dir  string
	site *site
	url  string
	Options
}

func (s *site) copy(formats ...string) *copyOf {
	return &copyOf{t: s.t, dir: filepath.Join(s.t.TempDir(), "copy"), site: s, url: feedURL, Options: Options{Fetcher: s.Fetcher(), Formats: formats}}
}

// try does a round as a new process would.
func (c *copyOf) try() (*Round, error) {
	c.t.Helper()
	c.ConfirmAfter = followtest.ConfirmAfter
	f, err := Open(c.dir, c.Options)
	require.NoError(c.t, err)
	f.LoseAtFailure() // the machine does not fail
	r, err := f.Harvest(context.Background(), &atompmh.Source{Fetcher: c.Fetcher}, c.url)
	require.Empty(c.t, f.State().Unfinished)
	require.NoError(c.t, f.Close())
	return r, err
}

func (c *copyOf) round() *Round {
	c.t.Helper()
	r, err := patiently(&c.Options, c.try)
	require.NoError(c.t, err)
	return r
}

// patiently does rounds until a removal is confirmed: three equal readings confirm it, or a person does. It returns
// the results of all rounds.
func patiently(o *Options, try func() (*Round, error)) (*Round, error) {
	defer func() { o.Confirm = false }()
	var all *Round
	for tries := range 8 {
		o.Confirm = tries >= 3
		r, err := try()
		if all == nil {
			all = r
		} else {
			r.New, r.Changed, r.Removed = r.New+all.New, r.Changed+all.Changed, r.Removed+all.Removed
			r.Reason = cmp.Or(all.Reason, r.Reason)
			all = r
		}
		if !errors.As(err, new(*follow.DoubtError)) {
			return all, err
		}
	}
	return all, errors.New("the doubt does not end")
}

// files returns the files in the folder, by name, and checks that the state has the same.
func (c *copyOf) files() map[string]string {
	c.t.Helper()
	entries, err := os.ReadDir(c.dir)
	require.NoError(c.t, err)
	files := map[string]string{}
	for _, e := range entries {
		if e.Name() == StateFile {
			continue
		}
		b, err := os.ReadFile(filepath.Join(c.dir, e.Name()))
		require.NoError(c.t, err)
		files[e.Name()] = string(b)
	}
	return files
}

func (c *copyOf) state() *State {
	c.t.Helper()
	root, err := os.OpenRoot(c.dir)
	require.NoError(c.t, err)
	defer root.Close()
	s, err := ReadState(root)
	require.NoError(c.t, err)
	return s
}

// records returns the contents of the files by the ids of their records. There is no other file in the folder, and
// the state has the record of each.
func (c *copyOf) records() map[string]string {
	c.t.Helper()
	files := c.files()
	records := map[string]string{}
	for id, held := range c.state().Records {
		if held.File == "" {
			continue
		}
		content, ok := files[held.File]
		require.True(c.t, ok, "%s is not there", held.File)
		require.Equal(c.t, held.SHA256, sha(content), held.File)
		require.EqualValues(c.t, held.Length, len(content))
		records[id] = content
		delete(files, held.File)
	}
	require.Empty(c.t, files, "these are of no record")
	return records
}

// equals requires that the folder holds these records and no others.
func (c *copyOf) equals(want map[string]string) {
	c.t.Helper()
	require.Equal(c.t, want, c.records())
}
