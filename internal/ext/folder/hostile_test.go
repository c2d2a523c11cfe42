package folder_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/tmshare/tmshare/internal/ext/folder"

	"github.com/tmshare/tmshare/internal/ext/atompmh"
	"github.com/tmshare/tmshare/internal/follow/followtest"
	"github.com/tmshare/tmshare/internal/testenv"

	"github.com/stretchr/testify/require"
)

// Whatever titles, ids and types contain, files stay in the folder, under names that are none elsewhere. People know
// them by their titles.
func TestNamesOfFiles(t *testing.T) {
	good := regexp.MustCompile(`^[\pL\pN][\pL\pN\pM_-]*(\.[a-z]+){1,2}$`)
	seen := map[string]string{}
	texts := []string{
		"../../etc/passwd", "..", ".", "/", "", "a/../..", `..\..\windows`, "con", "NUL", "a\x00b", "x\ny", "-rf", "~", "$(id)", ".tmshare-harvest.json", "é/ü", "urn:", "urn:x:?",
		"http://example.org/records/1", "http://example.org/other/1", "http://example.org/records/1/", strings.Repeat("x", 1<<20), "http://a/" + strings.Repeat("é", 100), "a b", "..a..", "\xff", "\u202e", "日本",
	}
	for _, id := range texts {
		for _, title := range append(texts, "") {
			for _, kind := range []string{"", "application/xml", "../../x", "text/../../y", "a/b+xml", "application/../rdf+xml", strings.Repeat("a", 1000) + "/x", "x/y\x00"} {
				file := NameWith(id, title, kind, 1)
				require.Regexp(t, good, file, "%.60q %.60q %.60q", id, title, kind)
				require.Equal(t, file, filepath.Base(file))
				require.LessOrEqual(t, len(file), 120)
			}
		}
		file := strings.ToUpper(NameWith(id, "the same title", "", 0))
		require.Empty(t, seen[file], "%.60q", id)
		seen[file] = id
	}
	hash := sha("http://example.org/records/1")[:12]
	for title, want := range map[string]string{
		"":                        "1-" + hash,
		"våtmark":                 "våtmark-" + hash,
		"a\u030a":                 "å-" + hash, // composed: file systems differ in their normal form
		"Salt marsh (2.4), coast": "Salt-marsh-2-4-coast-" + hash,
		"?!":                      "1-" + hash,
		"con":                     "con-" + hash,
	} {
		require.Equal(t, want+".rdf", NameWith("http://example.org/records/1", title, "application/RDF+XML;charset=utf-8", 0))
	}
	require.Equal(t, "passwd-"+sha("../../etc/passwd")[:12]+".bin", NameWith("../../etc/passwd", "", "x/../../y", 0))
	require.Equal(t, "a-b-"+sha("urn:a b")[:12]+"-2.xml", NameWith("urn:a b", "", "application/foo+xml", 1))
}

// A file keeps its name whatever its record is called later, and all but the ending where the format is another one.
func TestFilesAreNotRenamed(t *testing.T) {
	f, err := Open(t.TempDir(), Options{})
	require.NoError(t, err)
	defer f.Close()
	file := func(id, title, kind string) string {
		held := &Held{Type: kind, Title: title}
		require.NoError(t, f.Put(id, held, "temp"))
		return held.File
	}
	first := file("a", "Bog", "application/xml")
	require.Equal(t, "Bog-"+sha("a")[:12]+".xml", first)
	require.Equal(t, first, file("a", "Peat bog", "application/xml"))
	require.Equal(t, "Bog-"+sha("a")[:12]+".rdf", file("a", "Raised bog", "application/rdf+xml"))
	require.Equal(t, "Bog-"+sha("b")[:12]+".xml", file("b", "Bog", "application/xml"))
}

func TestHostileFeed(t *testing.T) {
	s := newSite(t)
	dir := t.TempDir()
	outside := filepath.Join(dir, "passwd")
	require.NoError(t, os.WriteFile(outside, []byte("safe"), 0o666))
	long := strings.Repeat("long ", 1600) // as long as an id may be, about
	s.set("/r/x", "evil")
	want := map[string]string{}
	var entries []entry
	for i, id := range []string{"../passwd", "../../etc/passwd", long, ".tmshare-harvest.json", "<&\"'>", "a/" + strings.Repeat("b", 3000)} {
		entries = append(entries, entry{id: id, at: i, links: []string{"../../x;a=\"/../\" /r/x"}})
		want[strings.ReplaceAll(strings.TrimSpace(id), "\n", "")] = "evil"
	}
	s.chain(entries)
	c := s.copy()
	c.dir = filepath.Join(dir, "in", "folder")
	c.round()
	c.equals(want)
	require.Zero(t, c.round().New)
	b, err := os.ReadFile(outside)
	require.NoError(t, err)
	require.Equal(t, "safe", string(b))
	all, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, all, 2)
}

// A state that was tampered with leads to no other place.
func TestTamperedState(t *testing.T) {
	s := newSite(t)
	dir := t.TempDir()
	outside := filepath.Join(dir, "outside")
	require.NoError(t, os.WriteFile(outside, []byte("safe"), 0o666))
	c := s.copy()
	c.dir = filepath.Join(dir, "folder")
	require.NoError(t, os.Mkdir(c.dir, 0o777))
	for _, state := range []string{
		`{"version": 1, "unfinished": {"../outside": ""}}`,
		`{"version": 1, "unfinished": {"here": "../outside"}}`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(c.dir, StateFile), []byte(state), 0o666))
		_, err := Open(c.dir, Options{})
		require.Error(t, err)
	}
	require.NoError(t, os.WriteFile(filepath.Join(c.dir, StateFile), []byte(`{"version": 1, "url": "`+feedURL+`", "records": {"a": {"file": "../outside"}}}`), 0o666))
	s.set("/feed", document{complete: true}.String())
	_, _ = c.try()
	b, err := os.ReadFile(outside)
	require.NoError(t, err)
	require.Equal(t, "safe", string(b))
}

// A link in the folder leads nowhere else.
func TestLinksInTheFolder(t *testing.T) {
	s := newSite(t)
	want := s.records("a")
	s.chain([]entry{active("a", 1)})
	c := s.copy()
	c.round()
	outside := filepath.Join(t.TempDir(), "outside")
	require.NoError(t, os.WriteFile(outside, []byte("safe"), 0o666))
	file := filepath.Join(c.dir, Name("a", "application/xml", 0))
	require.NoError(t, os.Remove(file))
	require.NoError(t, os.Symlink(outside, file))
	s.set("/r/a", "new")
	want["a"] = "new"
	s.chain([]entry{active("a", 2)})
	c.round()
	got, err := os.ReadFile(filepath.Join(c.dir, c.state().Records["a"].File))
	require.NoError(t, err)
	require.Equal(t, want["a"], string(got), "under another name")
	b, err := os.ReadFile(outside)
	require.NoError(t, err)
	require.Equal(t, "safe", string(b))
}

func TestRecordThatIsTooLarge(t *testing.T) {
	s := newSite(t)
	want := s.records("a")
	s.set("/r/b", strings.Repeat("b", 2000))
	s.set("/r/c", strings.Repeat("c", 1000))
	want["c"] = strings.Repeat("c", 1000)
	s.chain([]entry{active("a", 1), active("b", 2), active("c", 3)})
	c := s.copy()
	c.MaxSize = 1000
	r := c.round()
	require.Len(t, r.Failed, 1)
	require.Contains(t, r.Failed[0].Reason, "longer than the limit of 1000 bytes")
	c.equals(want)
	c.MaxSize = 2000
	require.Empty(t, c.round().Failed)
}

// Five in a row that are too large say nothing of the server.
func TestManyThatAreTooLarge(t *testing.T) {
	s := newSite(t)
	var entries []entry
	for i := range 8 {
		s.set(fmt.Sprintf("/r/%d", i), "too much")
		entries = append(entries, active(fmt.Sprint(i), i))
	}
	s.chain(entries)
	c := s.copy()
	c.MaxSize = 3
	require.Len(t, c.round().Failed, 8)
}

func TestManyEntries(t *testing.T) {
	testenv.SkipUnderRace(t)
	records, files := 10_000, 300
	if testenv.Long() {
		records, files = 100_000, 3000
	}
	pages := map[string]string{}
	var d document
	for i := range records {
		e := active(fmt.Sprintf("http://example.org/records/%d", i), i)
		if i >= files {
			e.links = []string{"text/plain /nowhere"}
		}
		d.entries = append(d.entries, e)
	}
	pages["/feed"] = d.String() // one document
	dir := t.TempDir()
	options := Options{Fetcher: serving(pages), Formats: []string{"application/xml"}, ConfirmAfter: followtest.ConfirmAfter}
	round := func() *Round {
		r, err := patiently(&options, func() (*Round, error) {
			f, err := Open(dir, options)
			require.NoError(t, err)
			defer f.Close()
			f.LoseAtFailure()
			return f.Harvest(t.Context(), &atompmh.Source{Fetcher: options.Fetcher}, feedURL)
		})
		require.NoError(t, err)
		return r
	}
	r := round()
	require.Equal(t, []int{files, files, records - files}, []int{r.New, r.Held, r.Unwanted})
	r = round()
	require.Equal(t, []int{0, files}, []int{r.New, r.Held})
	pages["/feed"] = document{complete: true}.String()
	r = round()
	require.Equal(t, []int{files, 0, 0}, []int{r.Removed, r.Held, r.Unwanted})
}

// All records of a feed stay if its server states that all of them are gone.
func TestServerThatHasLostItsFeed(t *testing.T) {
	s := newSite(t)
	want := s.records("a")
	s.chain([]entry{active("a", 1)})
	c := s.copy()
	c.round()
	for _, status := range []int{http.StatusNotFound, http.StatusGone, http.StatusForbidden, http.StatusUnauthorized, http.StatusInternalServerError} {
		s.answer("/feed", status)
		_, err := c.try()
		require.ErrorContains(t, err, fmt.Sprint(status))
		c.equals(want)
	}
	s.BreakWith(nil)
	for _, page := range []string{"", "<html/>", "<feed xmlns='http://www.w3.org/2005/Atom'>", strings.Repeat("x", 1000)} {
		s.set("/feed", page)
		_, err := c.try()
		require.Error(t, err)
		c.equals(want)
	}
}
