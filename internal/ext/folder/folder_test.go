package folder_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/tmshare/tmshare/internal/ext/folder"

	"github.com/tmshare/tmshare/internal/ext/atompmh"

	"github.com/stretchr/testify/require"
)

func formats(id string, at int, types ...string) entry {
	e := entry{id: id, at: at}
	for _, kind := range types {
		e.links = append(e.links, fmt.Sprintf("%s /r/%s.%s", kind, id, strings.ToLower(kind[strings.LastIndexAny(kind, "/+")+1:])))
	}
	return e
}

func TestFormatsComeAndGo(t *testing.T) {
	s := newSite(t)
	for _, kind := range []string{"xml", "json", "html"} {
		s.set("/r/a."+kind, kind)
	}
	c := s.copy("application/json", "Application/XML; charset=UTF-8", "application/xml")
	at := 0
	step := func(want map[string]string, types ...string) *Round {
		t.Helper()
		at += 10
		s.chain([]entry{formats("a", at, types...), active("z", 1)})
		r := c.round()
		c.equals(want)
		return r
	}
	s.records("z")
	a := func(content string) map[string]string { return map[string]string{"a": content, "z": "content of z"} }

	step(a("xml"), "application/xml", "text/html")
	step(a("json"), "application/xml", "text/html", "application/JSON")
	require.NotContains(t, fmt.Sprint(c.files()), "T-"+sha("a")[:12]+".xml", "its name has changed with its format")
	require.Equal(t, "json", c.files()["T-"+sha("a")[:12]+".json"])
	require.Equal(t, 1, step(a("xml"), "text/html", "application/xml").Changed)
	r := step(map[string]string{"z": "content of z"}, "text/html")
	require.Equal(t, []int{1, 1}, []int{r.Removed, r.Unwanted}, "in none that is wanted any more: as if it were deleted")
	require.Equal(t, 1, step(a("json"), "application/json").New)
	r = step(map[string]string{"z": "content of z"})
	require.Equal(t, []int{1, 0}, []int{r.Removed, r.Unwanted}, "deleted")
}

func TestMediaTypes(t *testing.T) {
	for _, c := range []struct {
		has, wanted string
		is          bool
	}{
		{"application/atom+xml", "application/atom+xml", true},
		{"Application/Atom+XML; type=entry", "application/atom+xml", true},
		{"application/atom+xml", "application/atom+xml;type=entry", false},
		{"application/atom+xml;Type=ENTRY;charset=utf-8", "application/atom+xml; type=entry", true},
		{"application/atom+xml;type=feed", "application/atom+xml;type=entry", false},
		{"application/x-tm+xml;version=2.1", "application/x-tm+xml;version=1.0", false},
		{"application/atom+xml; ;;=", "application/atom+xml", true},
		{"", "application/atom+xml", false},
		{"", "*/*", true},
		{"application/json; a=b", "*/*", true},
		{"application/rdf+xml", "application/atom+xml", false},
	} {
		require.Equal(t, c.is, Is(c.has, c.wanted), "%q %q", c.has, c.wanted)
	}
	for _, bad := range []string{"", "xml", "application/", "/xml", "a b/c", "text/html;="} {
		require.Error(t, CheckFormat(bad), bad)
	}
	require.NoError(t, CheckFormat("*/*"))
	require.NoError(t, CheckFormat("application/x-tm+xml;version=2.1"))
}

// A record is modified again in the round in which it was fetched.
func TestRecordThatIsFetchedTwiceInARound(t *testing.T) {
	s := newSite(t)
	want := s.records("a", "b")
	s.chain([]entry{active("a", 10), active("b", 20)})
	c := s.copy()
	c.Parallel = 1
	s.BreakWith(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if r.URL.Path == "/r/b" {
			s.set("/r/a", "new a")
			s.chain([]entry{active("a", 30), deletion("b", 30)})
			s.remove("/r/b")
			http.NotFound(w, r)
			return true
		}
		return false
	})
	c.round()
	delete(want, "b")
	want["a"] = "new a"
	c.equals(want)
}

// The same bytes in another format have another name.
func TestSameContentInAnotherFormat(t *testing.T) {
	s := newSite(t)
	s.set("/r/a", "content")
	s.chain([]entry{active("a", 1)})
	c := s.copy()
	c.round()
	s.chain([]entry{{id: "a", at: 2, links: []string{"application/rdf+xml /r/a"}}})
	require.Equal(t, 1, c.round().Changed)
	require.Equal(t, map[string]string{Name("a", "application/rdf+xml", 0): "content"}, c.files())
	c.equals(map[string]string{"a": "content"})
}

func TestLinksToOtherHostsAreNotFollowed(t *testing.T) {
	s := newSite(t)
	s.set("/r/b", "b")
	s.chain([]entry{{id: "a", at: 1, links: []string{"text/plain http://other.example.org/r/b"}}, {id: "file", at: 1, links: []string{"text/plain file:///etc/passwd"}}, active("b", 1)})
	c := s.copy()
	r := c.round()
	require.Len(t, r.Failed, 2)
	require.Contains(t, r.Failed[0].Reason, "allow it with --host other.example.org")
	c.equals(map[string]string{"b": "b"})
	c.Fetcher.Hosts = []string{"other.example.org"}
	require.Len(t, c.round().Failed, 1)
	c.equals(map[string]string{"a": "b", "b": "b"})
}

func TestFilesOfOthersAreLeftAlone(t *testing.T) {
	s := newSite(t)
	want := s.records("a", "b")
	c := s.copy()
	require.NoError(t, os.MkdirAll(filepath.Join(c.dir, "sub"), 0o777))
	taken := Name("a", "application/xml", 0)
	for _, file := range []string{"notes.txt", taken, "sub/x", ".hidden", "a.part"} {
		require.NoError(t, os.WriteFile(filepath.Join(c.dir, file), []byte("mine"), 0o666))
	}
	s.chain([]entry{active("a", 1), active("b", 2)})
	c.round()
	require.Equal(t, want["a"], c.read(Name("a", "application/xml", 1)))
	s.chain([]entry{deletion("a", 3), active("b", 2)})
	c.round()
	s.set("/feed", document{complete: true}.String())
	require.Equal(t, 1, c.round().Removed)
	for _, file := range []string{"notes.txt", taken, "sub/x", ".hidden", "a.part"} {
		require.Equal(t, "mine", c.read(file))
	}
}

func (c *copyOf) read(file string) string {
	c.t.Helper()
	b, err := os.ReadFile(filepath.Join(c.dir, file))
	require.NoError(c.t, err)
	return string(b)
}

// A name that is another record's is not taken, also where its file is not there yet.
func TestNameOfAnotherRecord(t *testing.T) {
	f, err := Open(t.TempDir(), Options{})
	require.NoError(t, err)
	defer f.Close()
	f.Take(Name("a", "text/plain", 0), "another")
	held := &Held{Type: "text/plain", Title: "T"}
	require.NoError(t, f.Put("a", held, "temp"))
	require.Equal(t, Name("a", "text/plain", 1), held.File)
}

// A file that a person removes comes again, whatever the feed has.
func TestRemovedFileComesAgain(t *testing.T) {
	s := newSite(t)
	want := s.records("a", "b")
	s.chain([]entry{active("a", 1), active("b", 2)})
	c := s.copy()
	c.round()
	require.NoError(t, os.Remove(filepath.Join(c.dir, Name("a", "application/xml", 0))))
	require.Equal(t, 1, c.round().New)
	c.equals(want)
}

// Unchanged content is not written again. If it has an ETag, it is not fetched again either.
func TestSameContentIsNotWrittenAgain(t *testing.T) {
	s := newSite(t)
	want := s.records("a")
	s.chain([]entry{active("a", 1)})
	c := s.copy()
	c.round()
	file := filepath.Join(c.dir, Name("a", "application/xml", 0))
	old := time.Now().Add(-time.Hour).Truncate(time.Second)
	require.NoError(t, os.Chtimes(file, old, old))
	s.chain([]entry{active("a", 2)})
	answers := map[string]int{}
	s.BreakWith(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		answers[r.URL.Path+" "+r.Header.Get("If-None-Match")]++
		return false
	})
	r := c.round()
	require.Equal(t, []int{0, 0, 0, 1}, []int{r.New, r.Changed, r.Removed, r.Held})
	require.Equal(t, 1, answers["/r/a "+etagOf(want["a"])])
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.True(t, info.ModTime().Equal(old))
	require.Equal(t, at(2), c.state().Records["a"].Updated)
	c.equals(want)
}

func TestFolderBelongsToOneFeed(t *testing.T) {
	s := newSite(t)
	s.records("a")
	s.chain([]entry{active("a", 1)})
	c := s.copy()
	c.url = ""
	_, err := c.try()
	require.ErrorContains(t, err, "say from which URL")
	c.url = "http://example.org/nothing"
	_, err = c.try()
	require.ErrorContains(t, err, "404")
	c.url = feedURL
	c.round()
	c.url = ""
	require.Equal(t, feedURL, c.round().URL)
	c.url = "http://example.org/other"
	_, err = c.try()
	require.ErrorContains(t, err, "holds the records of http://example.org/feed")
	require.Len(t, c.records(), 1)
}

func TestLock(t *testing.T) {
	dir := t.TempDir()
	f, err := Open(dir, Options{})
	require.NoError(t, err)
	_, err = Open(dir, Options{})
	require.ErrorIs(t, err, ErrLocked)
	require.ErrorContains(t, err, dir)
	require.NoError(t, f.Close())
	f, err = Open(dir, Options{})
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

func TestStateOfAnotherVersion(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, StateFile), []byte(`{"version": 2}`), 0o666))
	_, err := Open(dir, Options{})
	require.ErrorContains(t, err, "has version 2")
	require.NoError(t, os.WriteFile(filepath.Join(dir, StateFile), []byte(`{"vers`), 0o666))
	_, err = Open(dir, Options{})
	require.ErrorContains(t, err, "cannot be read")
}

// With other formats than before all is looked at anew, even after an interruption.
func TestOtherFormatsAreWanted(t *testing.T) {
	s := newSite(t)
	for _, id := range []string{"a", "b", "c"} {
		s.set("/r/"+id+".xml", "xml of "+id)
		s.set("/r/"+id+".json", "json of "+id)
	}
	s.chain([]entry{formats("c", 30, "application/xml", "application/json")},
		[]entry{formats("b", 20, "application/json", "application/xml")}, []entry{formats("a", 10, "application/xml")})
	c := s.copy()
	c.round()
	c.equals(map[string]string{"a": "xml of a", "b": "json of b", "c": "xml of c"})

	c.Formats = []string{"application/json"}
	s.answer("/1", 500)
	_, err := c.try()
	require.Error(t, err)
	s.BreakWith(nil)
	r := c.round()
	require.Equal(t, []int{1, 1, 1}, []int{r.Changed, r.Removed, r.Unwanted})
	c.equals(map[string]string{"b": "json of b", "c": "json of c"})

	c.Formats = nil // as before
	s.chain([]entry{formats("b", 40, "application/xml"), formats("c", 30, "application/xml", "application/json")}, []entry{formats("a", 10, "application/xml")})
	require.Equal(t, 1, c.round().Removed)
	c.Formats = []string{"application/json", "*/*"}
	require.Equal(t, 2, c.round().New)
	c.equals(map[string]string{"a": "xml of a", "b": "xml of b", "c": "json of c"})
}

func TestInterruptedRoundGoesOn(t *testing.T) {
	s := newSite(t)
	want := s.records("a", "b", "c")
	s.chain([]entry{active("a", 1), active("b", 2), active("c", 3)})
	c := s.copy()
	c.Parallel = 1
	ctx, cancel := context.WithCancel(t.Context())
	s.BreakWith(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if r.URL.Path == "/r/b" {
			cancel()
			<-r.Context().Done()
		}
		return false
	})
	f, err := Open(c.dir, c.Options)
	require.NoError(t, err)
	r, err := f.Harvest(ctx, &atompmh.Source{Fetcher: c.Fetcher}, feedURL)
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, r.Failed)
	require.NoError(t, f.Close())
	held := map[string]string{}
	if r.New > 0 { // else b was asked for before a was stored
		held["a"] = want["a"]
	}
	require.Len(t, held, r.New)
	c.equals(held)

	s.BreakWith(nil)
	s.Seen()
	require.Equal(t, 3-r.New, c.round().New)
	c.equals(want)
	if r.New > 0 {
		require.NotContains(t, s.Seen(), "/r/a")
	}
}

// Something that is no file of ours stands where a record's file was: the record gets
// another name, and nothing of that is touched.
func TestWhatStandsInTheWayIsLeftAlone(t *testing.T) {
	s := newSite(t)
	want := s.records("a", "b")
	s.chain([]entry{active("a", 10), active("b", 20)})
	c := s.copy()
	c.round()
	file := filepath.Join(c.dir, c.state().Records["a"].File)
	require.NoError(t, os.Remove(file))
	require.NoError(t, os.MkdirAll(filepath.Join(file, "of the user"), 0o755))
	c.round()
	now := c.state().Records["a"].File
	require.NotEqual(t, filepath.Base(file), now)
	b, err := os.ReadFile(filepath.Join(c.dir, now))
	require.NoError(t, err)
	require.Equal(t, want["a"], string(b))
	s.chain([]entry{deletion("a", 30), active("b", 20)})
	require.Equal(t, 1, c.round().Removed)
	require.DirExists(t, filepath.Join(file, "of the user"))
}
