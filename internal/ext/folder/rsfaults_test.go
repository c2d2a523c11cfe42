package folder_test

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/tmshare/tmshare/internal/ext/folder"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/feeds/resourcesync"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/anyhost"
	"github.com/tmshare/tmshare/internal/testkit/faults"
)

// careful is a Source that states all that can be stated.
var careful = rsStyle{LastMod: true, Hashes: true, Lengths: true, Changes: "open", Dump: "copies", ChangeDump: true}

// newMirror is a Source with so many resources and a folder that follows it.
func newMirror(t *testing.T, style rsStyle, resources int) (*rsSource, *mirror) {
	s := newRSSource(t, 1, style)
	for i := range resources {
		s.put(fmt.Sprintf("%s/r/%d.txt", rsHost, i), fmt.Sprintf("content of %d", i))
	}
	s.publish()
	m := &mirror{t: t, dir: filepath.Join(t.TempDir(), "m"), url: s.url()}
	m.Fetcher = anyhost.Serve(t, s).Fetcher()
	return s, m
}

// The cost of a round is proportional to the changes; a baseline by dump takes a few requests.
func TestRequestsOfAMirror(t *testing.T) {
	s, m := newMirror(t, careful, 1000)
	r := m.round()
	require.Equal(t, 1000, r.New)
	require.Equal(t, s.pool, m.records())
	seen := s.Seen()
	require.LessOrEqual(t, len(seen), 12, "%v", seen)
	require.Empty(t, m.reports)

	require.Zero(t, m.round().Changed)
	require.Equal(t, []string{"/", "/.well-known/resourcesync", "/d/capabilities.xml", "/d/changes.xml"}, unique(s.Seen()))
	m.round()
	require.Len(t, s.Seen(), 4, "the page, the Source Description, the Capability List and a Change List that has not changed")

	for i := range 3 {
		s.put(fmt.Sprintf("%s/r/%d.txt", rsHost, i), "new")
	}
	s.change(rsHost+"/r/9.txt", "", resourcesync.Deleted)
	s.publishChanges()
	m.noDumps = true
	r = m.round()
	require.Equal(t, []int{0, 3, 1}, []int{r.New, r.Changed, r.Removed})
	require.Len(t, s.Seen(), 4+3)
	for i := range 30 {
		s.put(fmt.Sprintf("%s/r/%d.txt", rsHost, i), "newer")
	}
	s.publishChanges()
	m.noDumps = false
	require.Equal(t, 30, m.round().Changed+1)
	seen = s.Seen()
	require.LessOrEqual(t, len(seen), 4+4, "the changes are in a package of the Change Dump: %v", seen)
	require.Equal(t, s.pool, m.records())
}

func unique(all []string) []string {
	var one []string
	seen := map[string]bool{}
	for _, s := range all {
		if !seen[s] {
			one = append(one, s)
		}
		seen[s] = true
	}
	return one
}

// A file that is held already by its hash is not fetched, whatever its time.
func TestContentThatIsHeldIsNotFetched(t *testing.T) {
	s, m := newMirror(t, careful, 20)
	m.noDumps = true
	m.round()
	s.prune() // the mark is gone
	for uri := range s.modified {
		s.modified[uri] = s.now() // touched
	}
	s.publish()
	s.Seen()
	r := m.round()
	require.Equal(t, "the Change Lists do not reach back to the last round", r.Reason)
	require.Equal(t, []int{0, 0, 20}, []int{r.New, r.Changed, r.Held})
	for _, path := range s.Seen() {
		require.NotContains(t, path, "/r/")
	}
}

// Wrong hashes, wrong lengths and lost resources: the list is looked at again, then the resource
// has failed; no wrong content is taken, and files held before stay.
func TestWrongContentIsNeverTaken(t *testing.T) {
	s, m := newMirror(t, careful, 5)
	m.noDumps = true
	m.round()
	want := m.records()
	uri := rsHost + "/r/1.txt"
	for _, wrong := range []string{"CONTENT OF 1", "short", "much longer than it should be", ""} {
		s.put(uri, "right of 1"+wrong)
		s.publishChanges()
		s.BreakWith(faults.Some(atPath("/r/1.txt"), faults.Always, saying(wrong)))
		s.Seen()
		r := m.round()
		require.Len(t, r.Failed, 1, "%q", wrong)
		require.Contains(t, r.Failed[0].Reason, "not ")
		require.True(t, r.Failed[0].Held)
		require.Equal(t, want, m.records(), "files held before stay")
		count := map[string]int{}
		for _, path := range s.Seen() {
			count[path]++
		}
		require.Equal(t, 2, count["/d/changes.xml"], "looked at again")
		require.Equal(t, 2, count["/r/1.txt"], "and tried once more")
		s.BreakWith(nil)
		require.Empty(t, m.round().Failed)
		want = m.records()
		require.Equal(t, s.pool, want)
	}
}

// The list is out of date when the content is not as stated: the next one has it right.
func TestListThatIsOutOfDate(t *testing.T) {
	s, m := newMirror(t, careful, 5)
	m.noDumps = true
	m.round()
	uri := rsHost + "/r/1.txt"
	s.put(uri, "second")
	s.publishChanges()
	s.put(uri, "third") // not published yet
	var once sync.Once
	s.BreakWith(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if r.URL.Path == "/r/1.txt" {
			s.mu.Lock()
			defer s.mu.Unlock()
			once.Do(s.publishChanges)
		}
		return false
	})
	r := m.round()
	require.Empty(t, r.Failed)
	require.Equal(t, s.pool, m.records())
}

// zipOf makes a hostile package of a manifest and files.
func zipOf(t *testing.T, manifest string, files ...zip.FileHeader) string {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	f, err := w.Create("manifest.xml")
	require.NoError(t, err)
	_, _ = io.WriteString(f, manifest)
	for _, h := range files {
		f, err := w.CreateHeader(&h)
		require.NoError(t, err)
		_, _ = io.WriteString(f, h.Comment)
	}
	require.NoError(t, w.Close())
	return b.String()
}

// Packages that are hostile, wrong or not there are reported, and their resources are fetched
// one by one. Nothing of them is left, and nothing is written elsewhere.
func TestHostilePackages(t *testing.T) {
	entry := func(name, content string) zip.FileHeader {
		return zip.FileHeader{Name: name, Comment: content, Method: zip.Deflate}
	}
	link := entry("resources/link", "/etc/passwd")
	link.SetMode(fs.ModeSymlink | 0o777)
	manifest := func(path string) string {
		return `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:rs="http://www.openarchives.org/rs/terms/"><rs:md capability="resourcedump-manifest" at="2026-01-02T00:00:00Z"/>` +
			`<url><loc>http://example.org/r/0.txt</loc><rs:md path="` + path + `"/></url></urlset>`
	}
	for what, c := range map[string]struct{ content, reason string }{
		"leads out":     {zipOf(t, manifest("/a"), entry("../../evil", "evil")), "leads out"},
		"absolute":      {zipOf(t, manifest("/a"), entry("/tmp/evil", "evil")), "absolute"},
		"twice":         {zipOf(t, manifest("/a"), entry("a", "evil"), entry("./a", "evil")), "twice"},
		"symlink":       {zipOf(t, manifest("/a"), link), "not a file"},
		"bomb":          {zipOf(t, manifest("/a"), entry("a", strings.Repeat("\x00", 8<<20))), "MaxRatio"},
		"no ZIP":        {"this is no ZIP file", "no ZIP file"},
		"path":          {zipOf(t, manifest("/../../evil"), entry("a", "evil")), ""},
		"wrong content": {zipOf(t, manifest("/a"), entry("a", "evil")), ""},
	} {
		for _, copies := range []string{"copies", "plain"} {
			style := careful
			style.Dump, style.Lengths = copies, what == "wrong content" || what == "path"
			style.Hashes = true
			s, m := newMirror(t, style, 20)
			for path := range s.pages {
				if strings.HasSuffix(path, ".zip") {
					s.pages[path] = c.content
				}
			}
			if style.Lengths { // the dump itself is none the wiser
				s.pages["/d/dump.xml"] = rsLength.ReplaceAllString(s.pages["/d/dump.xml"], fmt.Sprintf(`length="%d"`, len(c.content)))
			}
			r := m.round()
			require.Empty(t, r.Failed, what)
			require.Equal(t, s.pool, m.records(), what)
			if c.reason != "" {
				require.NotEmpty(t, m.reports, what)
				require.Contains(t, strings.Join(m.reports, "\n"), c.reason, what)
			}
			within, err := os.ReadDir(filepath.Dir(m.dir))
			require.NoError(t, err)
			require.Len(t, within, 1, what)
		}
	}
	s, m := newMirror(t, careful, 20)
	s.BreakWith(faults.Some(atPath("/d/dump-*"), faults.Always, faults.Answering(http.StatusNotFound)))
	require.Empty(t, m.round().Failed)
	require.Contains(t, m.reports[0], "404")
	require.Equal(t, s.pool, m.records())
}

// A package whose download was cut off is gone on with in the next round.
func TestPackageIsGoneOnWith(t *testing.T) {
	testenv.SkipUnderRace(t)
	s, m := newMirror(t, rsStyle{LastMod: true, Hashes: true, Lengths: true, Dump: "plain", DumpOnly: true}, 2000)
	var ranges []string
	cut := true
	s.BreakWith(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if !strings.HasSuffix(r.URL.Path, ".zip") {
			return false
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		ranges = append(ranges, r.Header.Get("Range"))
		if cut {
			page := s.pages[r.URL.Path]
			w.Header().Set("ETag", etagOf(page))
			w.Header().Set("Content-Length", fmt.Sprint(len(page)))
			if r.Header.Get("Range") == "" {
				_, _ = io.WriteString(w, page[:len(page)/2])
			} else {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			return true
		}
		return false
	})
	_, err := m.try()
	require.Error(t, err)
	left, err := filepath.Glob(filepath.Join(m.dir, follow.PackagePrefix+"*"))
	require.NoError(t, err)
	require.NotEmpty(t, left)
	cut, ranges = false, nil
	require.Equal(t, 2000, m.round().New)
	require.Regexp(t, `^bytes=[1-9][0-9]+-$`, ranges[0])
	require.Equal(t, s.pool, m.records(), "and nothing else is left")
}

// Mirrors by their priority; one that is down, or has something else, is passed over.
func TestMirrorsOfResources(t *testing.T) {
	var asked []string
	down := map[string]bool{"m1.example.org": true}
	body := func(r *http.Request) string { return "content of " + r.URL.Path }
	var list strings.Builder
	for i := range 20 {
		f := resourcesync.NewFixity()
		_, _ = io.WriteString(f, fmt.Sprintf("content of /r/%d", i))
		var r resourcesync.Representation
		f.Describe(&r)
		fmt.Fprintf(&list, `<url><loc>http://example.org/r/%d</loc><rs:md hash="%s"/><rs:ln rel="duplicate" pri="2" href="http://m2.example.org/r/%[1]d"/><rs:ln rel="duplicate" pri="1" href="http://m1.example.org/r/%[1]d"/>`+
			`<rs:ln rel="duplicate" href="http://other.example.org/r/%[1]d"/><rs:ln rel="duplicate" pri="3" href="gsiftp://m3.example.org/r/%[1]d"/></url>`, i, r.Hashes[1])
	}
	var mu sync.Mutex
	e := anyhost.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.URL.Path == "/list.xml" {
			_, _ = io.WriteString(w, `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:rs="http://www.openarchives.org/rs/terms/"><rs:md capability="resourcelist" at="2026-01-01T00:00:00Z"/>`+list.String()+`</urlset>`)
			return
		}
		asked = append(asked, r.Host)
		if down[r.Host] {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, body(r))
	}))
	run := func(hosts ...string) map[string]int {
		m := &mirror{t: t, dir: filepath.Join(t.TempDir(), "m"), url: "http://example.org/list.xml"}
		m.Fetcher, m.Parallel = e.Fetcher(), 1
		m.Fetcher.Hosts, m.Fetcher.Tries = hosts, 1
		asked = nil
		r := m.round()
		require.Empty(t, r.Failed)
		require.Len(t, m.records(), 20)
		count := map[string]int{}
		for _, host := range asked {
			count[host]++
		}
		return count
	}
	require.Equal(t, map[string]int{"example.org": 20}, run(), "no other host without --host")
	require.Equal(t, map[string]int{"m2.example.org": 20}, run("m2.example.org"))
	count := run("m1.example.org", "m2.example.org")
	require.Equal(t, 20, count["m2.example.org"])
	require.LessOrEqual(t, count["m1.example.org"], MaxConsecutiveFailures+2, "one that is down is asked no more, but by who waits for it already")
	down = nil
	require.Equal(t, map[string]int{"m1.example.org": 20}, run("m1.example.org", "m2.example.org"))
	body = func(r *http.Request) string {
		if r.Host == "m1.example.org" {
			return "an old version"
		}
		return "content of " + r.URL.Path
	}
	require.Equal(t, map[string]int{"m1.example.org": 20, "example.org": 20}, run("m1.example.org"), "one that has something else")
}

// No host gets more requests at a time than it should.
func TestMirrorIsPolite(t *testing.T) {
	s, m := newMirror(t, careful, 40)
	m.noDumps, m.Parallel = true, 3
	m.Fetcher.Hosts = []string{"other.example.org"}
	var mu sync.Mutex
	now, most := 0, 0
	s.BreakWith(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		mu.Lock()
		now++
		most = max(most, now)
		mu.Unlock()
		time.Sleep(2 * time.Millisecond)
		mu.Lock()
		now--
		mu.Unlock()
		return false
	})
	m.round()
	require.Equal(t, 3, most)
	s.put(rsHost+"/r/1.txt", "new")
	s.publishChanges()
	s.BreakWith(faults.Some(atPath("/r/1.txt"), faults.Always, func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	_, err := m.try()
	require.ErrorContains(t, err, "the server asks to come back in 1h0m0s")
}

// Hashes may be of the bytes as they are coded: then the coded bytes are kept.
func TestHashesOfCodedContent(t *testing.T) {
	packed := gzipped(t, "content")
	f := resourcesync.NewFixity()
	_, _ = io.WriteString(f, packed)
	var r resourcesync.Representation
	f.Describe(&r)
	list := `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:rs="http://www.openarchives.org/rs/terms/"><rs:md capability="resourcelist" at="2026-01-01T00:00:00Z"/>` +
		fmt.Sprintf(`<url><loc>http://example.com/a.gz</loc><rs:md hash="%s" length="%d"/></url></urlset>`, r.Hashes[0], len(packed))
	e := anyhost.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/list.xml" {
			_, _ = io.WriteString(w, list)
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = io.WriteString(w, packed)
	}))
	m := &mirror{t: t, dir: filepath.Join(t.TempDir(), "m"), url: "http://example.com/list.xml"}
	m.Fetcher = e.Fetcher()
	require.Empty(t, m.round().Failed)
	require.Equal(t, map[string]string{"example.com/a.gz": packed}, m.files())
}

func gzipped(t *testing.T, content string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := io.WriteString(w, content)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.String()
}

// A list of all resources that is older than the mark undoes nothing. The changes of the Change Lists are applied;
// the rest comes with the next list.
func TestListThatIsOlderThanTheMark(t *testing.T) {
	s, m := newMirror(t, careful, 3)
	m.noDumps = true
	m.round()
	s.put(rsHost+"/r/new.txt", "new")
	s.publishChanges()
	m.round()
	s.put(rsHost+"/r/lost.txt", "changed between the lists")
	s.forget()
	s.put(rsHost+"/r/later.txt", "later")
	s.publishChanges()
	want := m.records()
	want[rsHost+"/r/later.txt"] = "later"
	r := m.round()
	require.Equal(t, []int{1, 0, 0}, []int{r.New, r.Changed, r.Removed})
	require.Equal(t, want, m.records())
	require.Contains(t, m.reports[0], "the list of all resources (2026-01-01T00:00:00.000005Z) is older than that round")
	s.publishLists()
	require.Equal(t, "the Change Lists do not reach back to the last round", m.round().Reason)
	require.Equal(t, s.pool, m.records())
}

// The first round applies the list of all resources and all known later changes.
func TestChangeListsThatBeginTooLate(t *testing.T) {
	s, m := newMirror(t, careful, 3)
	m.noDumps = true
	s.put(rsHost+"/r/0.txt", "changed between the lists")
	s.forget()
	s.put(rsHost+"/r/later.txt", "later")
	s.publishChanges()
	r := m.round()
	require.Len(t, r.Failed, 1, "it differs from the old list")
	require.Len(t, m.records(), 3)
	require.Contains(t, m.reports[0], "stays unknown until the Source publishes a newer list")
	audit := m.audit()
	audit.Missing, audit.Different, audit.Superfluous = nil, nil, nil
	require.False(t, audit.Equal(), "nobody knows")
	require.Equal(t, m.reports[0], audit.Gap)
	s.publishLists()
	require.Empty(t, m.round().Failed)
	require.Equal(t, s.pool, m.records())
}

// Another Capability List is another history, whatever its times.
func TestAnotherCapabilityList(t *testing.T) {
	s, m := newMirror(t, careful, 3)
	m.noDumps = true
	m.round()
	other := newRSSource(t, 2, careful)
	other.home = "/e"
	other.put(rsHost+"/r/0.txt", "other content")
	other.publish()
	s.mu.Lock()
	s.pages, s.pool = other.pages, other.pool
	s.mu.Unlock()
	r := m.round()
	require.Equal(t, "the Source has another Capability List, or another history", r.Reason)
	require.Equal(t, []int{0, 1, 2}, []int{r.New, r.Changed, r.Removed})
	require.Equal(t, s.pool, m.records())
}

// A closed list is followed by the next one, which begins where it ends.
func TestClosedListsFollowEachOther(t *testing.T) {
	style := careful
	style.Changes = "closed"
	s, m := newMirror(t, style, 3)
	m.noDumps = true
	m.round()
	for i := range 3 {
		s.put(rsHost+"/r/0.txt", fmt.Sprint("version ", i))
		s.publishChanges()
		r := m.round()
		require.Empty(t, r.Reason)
		require.Equal(t, 1, r.Changed)
		require.Zero(t, m.round().Changed)
	}
	require.Equal(t, s.pool, m.records())
}

// A Source that was restored from a backup has another history than the one that was followed.
func TestSourceThatWasRestored(t *testing.T) {
	s, m := newMirror(t, careful, 3)
	m.noDumps = true
	m.round()
	uri := rsHost + "/r/0.txt"
	before, log, modified := s.pool[uri], s.log, s.modified[uri]
	s.put(uri, "lost")
	s.publish()
	m.round()
	s.pool[uri], s.log, s.modified[uri], s.packed, s.dumpedAt = before, log, modified, 0, nil
	s.publish()
	require.Equal(t, "the last changes that were handled are not in the Change Lists any more", m.round().Reason)
	require.Equal(t, s.pool, m.records())
}

// A list that is closed while the index of the lists is read goes on in one that the index does
// not name yet: the index is read again.
func TestListThatIsClosedWhileTheIndexIsRead(t *testing.T) {
	for _, changes := range []string{"index", "bareIndex", "closedIndex"} {
		t.Run(changes, func(t *testing.T) {
			style := careful
			style.Changes, style.ChangeDump = changes, false
			s, m := newMirror(t, style, 3)
			m.noDumps = true
			m.round()
			lost, kept := rsHost+"/r/0.txt", rsHost+"/r/1.txt"
			s.put(rsHost+"/r/2.txt", "an old change")
			s.closeChanges()
			m.round()
			s.put(lost, "changed while the index was on its way")
			closed := false
			s.BreakWith(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
				s.mu.Lock()
				defer s.mu.Unlock()
				if strings.HasSuffix(r.URL.Path, "/changes.xml") && !closed {
					closed = true
					s.closeChanges()
					s.put(kept, "changed after that")
					s.publishOpen()
				}
				return false
			})
			m.round()
			require.True(t, closed)
			require.Equal(t, s.pool, m.records())
			m.round()
			require.Equal(t, s.pool, m.records())
		})
	}
}

// Lists that are made anew while they are read may have moved a resource from one to another: it
// is in none of those that were read. They are read again.
func TestListsThatAreMadeAnewWhileTheyAreRead(t *testing.T) {
	style := careful
	style.ListIndex, style.Dump = true, ""
	s, m := newMirror(t, style, 4)
	made := 0
	s.BreakWith(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		if strings.HasSuffix(r.URL.Path, "/list-1.xml") && made < 1 {
			made++
			s.change(rsHost+"/r/0.txt", "", resourcesync.Deleted) // 2.txt goes from the second list to the first
			s.change(rsHost+"/r/1.txt", "", resourcesync.Deleted)
			s.publishLists()
			s.publishChanges()
		}
		return false
	})
	m.round()
	require.Equal(t, 1, made)
	require.Equal(t, s.pool, m.records())
	require.Empty(t, m.reports)

	// It is an error if that happens again and again.
	s.prune()
	s.BreakWith(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		if strings.HasSuffix(r.URL.Path, "/list-1.xml") {
			s.publishLists()
		}
		return false
	})
	m.round()
	require.Contains(t, strings.Join(m.reports, ""), "faster than that can be read")
}

// Once a day the list of all is compared, too: it brings changes that no Change List has. Other rounds do not read
// it.
func TestListIsComparedDaily(t *testing.T) {
	s, m := newMirror(t, careful, 3)
	m.noDumps = true
	m.round()
	s.put(rsHost+"/r/0.txt", "changed")
	s.publishChanges()
	s.Seen()
	require.Equal(t, 1, m.round().Changed)
	require.NotContains(t, s.Seen(), s.home+"/list.xml")
	s.mu.Lock()
	silent := rsHost + "/r/silent.txt"
	s.pool[silent], s.modified[silent] = "silent", s.now()
	s.publishLists()
	s.mu.Unlock()
	held := m.records()
	require.Zero(t, m.round().New)
	require.Equal(t, held, m.records())
	require.NotContains(t, s.Seen(), s.home+"/list.xml")
	m.ahead = 25 * time.Hour
	require.Equal(t, 1, m.round().New)
	require.Equal(t, s.pool, m.records())
	require.Contains(t, s.Seen(), s.home+"/list.xml")
	require.Zero(t, m.round().New)
	require.NotContains(t, s.Seen(), s.home+"/list.xml")
}

// A list of all may be of the time of the last change, as ours are. To compare it fetches nothing again that is held as
// of that time.
func TestListOfTheTimeOfAChangeIsCompared(t *testing.T) {
	for _, later := range []bool{false, true} {
		t.Run(fmt.Sprint("changes since ", later), func(t *testing.T) {
			s, m := newMirror(t, rsStyle{LastMod: true, Changes: "open"}, 3)
			m.round()
			s.put(rsHost+"/r/0.txt", "changed")
			s.clock = s.clock.Add(-time.Microsecond)
			s.publishLists()
			if later {
				s.put(rsHost+"/r/1.txt", "changed later")
			}
			s.publishChanges()
			m.round()
			require.Equal(t, s.pool, m.records())
			m.ahead = 25 * time.Hour
			s.Seen()
			require.Zero(t, m.round().Changed)
			seen := s.Seen()
			require.Contains(t, seen, s.home+"/list.xml")
			require.NotContains(t, strings.Join(seen, " "), "/r/")
		})
	}
}
