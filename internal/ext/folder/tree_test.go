package folder_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/tmshare/tmshare/internal/ext/folder"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tmshare/tmshare/feeds/resourcesync"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/faults"
)

func TestNamesInAMirror(t *testing.T) {
	long := strings.Repeat("x", 300)
	for uri, want := range map[string]string{
		"http://example.org/a/b.xml":                      "example.org/a/b.xml",
		"HTTP://Example.ORG:8080/a":                       "example.org+8080/a",
		"https://example.org":                             "example.org/index.html",
		"http://example.org/":                             "example.org/index.html",
		"http://example.org/a/":                           "example.org/a/index.html",
		"http://example.org//a":                           "example.org/%2F/a",
		"http://example.org/a/../../../etc":               "example.org/a/%2E%2E/%2E%2E/%2E%2E/etc",
		"http://example.org/a/%2e%2e/%2e%2e/b":            "example.org/a/%2e%2e/%2e%2e/b",
		"http://example.org/a/%2F..%2Fb":                  "example.org/a/%2F..%2Fb",
		"http://example.org/./...":                        "example.org/%2E/%2E%2E%2E",
		"http://example.org/q?a=1&b=../x#f/g":             "example.org/q%3Fa=1&b=..%2Fx%23f%2Fg",
		"http://example.org?q":                            "example.org/%3Fq",
		"http://example.org/a\\..\\b:c*\"<>|\x00":         "",
		"http://example.org/con.txt/NUL":                  "example.org/%63on.txt/%4EUL",
		"http://example.org/-rf/end.":                     "example.org/%2Drf/end%2E",
		"http://.tmshare-harvest.json/a":                  "%2Etmshare-harvest.json/a",
		"http://../a":                                     "%2E%2E/a",
		"http://user@example.org/a":                       "example.org/a",
		"http://example.org/é":                            "example.org/%C3%A9",
		"http://example.org/" + long:                      "example.org/" + strings.Repeat("x", 160) + "~" + sha(long)[:12],
		"http://[::1]/a":                                  "[++1]/a",
		"urn:isbn:1":                                      "",
		"http://example.org/" + strings.Repeat("a/", 600): "",
		"": "",
	} {
		require.Equal(t, want, TreePath(uri, false), "%.100q", uri)
	}
	require.Equal(t, "example.org/a/b~"+sha("http://example.org/a/b.xml")[:12]+".xml", TreePath("http://example.org/a/b.xml", true))
	require.Equal(t, "example.org/.well~"+sha("http://example.org/.well")[:12], TreePath("http://example.org/.well", true))
}

// Whatever a URI contains, its file is in the folder, under a name that other systems take.
func TestNamesInAMirrorAreSafe(t *testing.T) {
	testenv.Check(t, 50, 200, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.SampledFrom([]string{"/", "..", ".", "%2e", "%2F", "\\", "a", "A", "?", "#", "con", ":", "é", "\x00", "//", strings.Repeat("b", 150)}), 0, 12).Draw(t, "parts")
		uri := "http://" + rapid.SampledFrom([]string{"example.org", "..", "a:1", ".x"}).Draw(t, "host") + "/" + strings.Join(parts, "")
		own := rapid.Bool().Draw(t, "own")
		name := TreePath(uri, own)
		if name == "" {
			return
		}
		require.True(t, filepath.IsLocal(name), name)
		for _, segment := range strings.Split(name, "/") {
			require.NotContains(t, []string{"", ".", ".."}, segment)
			require.Regexp(t, `^[A-Za-z0-9._~!$&'()+,;=@\[\]%][A-Za-z0-9._~!$&'()+,;=@\[\]%-]*$`, segment)
			require.LessOrEqual(t, len(segment), 255)
			require.NotRegexp(t, `\.$`, segment)
		}
	})
}

// follow has the mirror follow a Source that has just these resources now.
func (m *mirror) follow(t *testing.T, s *rsSource, uris ...string) {
	t.Helper()
	s.pool = map[string]string{}
	for _, uri := range uris {
		s.put(rsHost+uri, fmt.Sprint("content of ", uri, " at ", s.now().UnixMicro()))
	}
	s.publish()
	r := m.round()
	require.Empty(t, r.Failed)
	require.Equal(t, s.pool, m.records())
}

// Resources whose URIs get in each other's way come and go.
func TestURIsInEachOthersWay(t *testing.T) {
	s, m := newMirror(t, rsStyle{LastMod: true}, 0)
	m.follow(t, s, "/a", "/a/b", "/a/", "/A", "/a/b/c", "/x/y/z", "/X/y/w")
	m.follow(t, s, "/a/b", "/a/b/c")
	m.follow(t, s, "/a/b/c", "/a/b/c/d", "/A/b/e")
	m.follow(t, s, "/a")
	m.follow(t, s, "/a/b/c")
	require.Equal(t, []string{"example.org/a/b/c"}, keys(m.files()), "in the place of the file")
	m.follow(t, s, "/a/b/c", "/a")
	m.follow(t, s, "/a/b", "/a/B", "/a/index.html", "/a/")
	m.follow(t, s)
	require.Empty(t, m.files())
}

func keys(m map[string]string) (all []string) {
	for k := range m {
		all = append(all, k)
	}
	return all
}

// Files and folders of others are neither taken nor removed, and links lead nowhere.
func TestFilesOfOthersInAMirror(t *testing.T) {
	s, m := newMirror(t, rsStyle{LastMod: true}, 0)
	outside := filepath.Join(filepath.Dir(m.dir), "outside")
	require.NoError(t, os.MkdirAll(outside, 0o777))
	require.NoError(t, os.MkdirAll(filepath.Join(m.dir, "example.org", "d", "sub"), 0o777))
	mine := map[string]string{"example.org/a": "mine", "example.org/d/mine.txt": "mine", "notes.txt": "mine"}
	for name, content := range mine {
		require.NoError(t, os.WriteFile(filepath.Join(m.dir, name), []byte(content), 0o666))
	}
	require.NoError(t, os.Symlink(outside, filepath.Join(m.dir, "example.org", "link")))
	check := func(resources int) {
		t.Helper()
		files := map[string]string{}
		for _, held := range m.state().Records {
			if held.File != "" {
				b, err := os.ReadFile(filepath.Join(m.dir, held.File))
				require.NoError(t, err)
				files[held.File] = string(b)
			}
		}
		require.Len(t, files, resources)
		for name, content := range mine {
			b, err := os.ReadFile(filepath.Join(m.dir, name))
			require.NoError(t, err)
			require.Equal(t, content, string(b), name)
			require.NotContains(t, files, name)
		}
		within, err := os.ReadDir(outside)
		require.NoError(t, err)
		require.Empty(t, within)
	}
	for _, uri := range []string{"/a", "/a/b", "/d", "/d/x", "/link/x", "/link"} {
		s.put(rsHost+uri, "content of "+uri)
	}
	s.publish()
	require.Empty(t, m.round().Failed)
	check(6)
	for _, uri := range []string{"/a", "/a/b", "/d", "/d/x", "/link/x", "/link"} {
		s.change(rsHost+uri, "", resourcesync.Deleted)
	}
	s.publish()
	require.Equal(t, 6, m.round().Removed)
	check(0)
	require.DirExists(t, filepath.Join(m.dir, "example.org", "d", "sub"))
}

// A folder keeps its form.
func TestAMirrorIsNoHarvest(t *testing.T) {
	s, m := newMirror(t, careful, 3)
	m.round()
	_, err := Open(m.dir, Options{})
	require.ErrorContains(t, err, "is a mirror: it goes on as that")
	f, err := Open(m.dir, Options{Mirror: true})
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.Equal(t, s.pool, m.records())
}

// A file that a person has removed is fetched again, and compared with its metadata.
func TestFileOfAMirrorThatWasRemoved(t *testing.T) {
	s, m := newMirror(t, careful, 5)
	m.round()
	require.NoError(t, os.RemoveAll(filepath.Join(m.dir, "example.org")))
	s.BreakWith(faults.Some(atPath("/r/1.txt"), faults.Always, saying("something else")))
	r := m.round()
	require.Len(t, r.Failed, 1)
	require.Contains(t, r.Failed[0].Reason, "its length is 14, not 12")
	require.False(t, r.Failed[0].Held)
	s.BreakWith(nil)
	require.Empty(t, m.round().Failed)
	require.Equal(t, s.pool, m.records())
}

func TestFixityInTheState(t *testing.T) {
	for text, want := range map[string]string{
		`{"length":0,"hash":"md5:00 sha-256:Zm9v","encoding":"gzip"}`: `{"length":0,"hash":"md5:00 sha-256:Zm9v","encoding":"gzip"}`,
		`{"length":7}`: `{"length":7}`,
		`{}`:           `{}`,
	} {
		var f follow.Fixity
		require.NoError(t, json.Unmarshal([]byte(text), &f))
		b, err := json.Marshal(f)
		require.NoError(t, err)
		require.Equal(t, want, string(b))
		require.Equal(t, text == `{}`, f.IsZero())
	}
	fixity := func(length int64, hashes ...string) follow.Fixity {
		f := follow.FixityOf(hashes...)
		f.Length = length
		return f
	}
	require.Equal(t, follow.Unknown, follow.Compare(fixity(1), fixity(1)))
	require.Equal(t, follow.Different, follow.Compare(fixity(1, "md5:00"), fixity(2, "md5:00")))
	require.Equal(t, follow.Same, follow.Compare(fixity(0, "sha-256:ff", "md5:00"), fixity(2, "md5:00")))
	require.Equal(t, follow.Different, follow.Compare(fixity(0, "md5:00"), fixity(0, "md5:01")))
	require.Equal(t, follow.Unknown, follow.Compare(fixity(0, "md5:00"), fixity(0, "sha-256:00")))
	require.Equal(t, follow.Unknown, follow.Compare(fixity(0, "md5:0000"), fixity(0, "md5:AAA")), "one of them is in base 64")
}

// A round was killed when a folder had already taken the place of a file: the rest of the round is done.
func TestFolderInThePlaceOfAFile(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "example.org", "a"), 0o777))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "example.org", "a", "b"), []byte("b"), 0o666))
	temp := follow.OwnPrefix + "-0-1" + follow.TempSuffix
	require.NoError(t, os.WriteFile(filepath.Join(dir, temp), []byte("c"), 0o666))
	state := fmt.Sprintf(`{"version": 1, "url": "http://example.org/", "mirror": true, "unfinished": {"example.org/a": "", "example.org/a/b": "%s.gone", "example.org/a/c": "%[1]s", "example.org/a/b/x": ""},
		"records": {"b": {"file": "example.org/a/b"}, "c": {"file": "example.org/a/c"}}}`, temp)
	require.NoError(t, os.WriteFile(filepath.Join(dir, StateFile), []byte(state), 0o666))
	f, err := Open(dir, Options{Mirror: true})
	require.NoError(t, err)
	defer f.Close()
	require.Nil(t, f.State().Records["b"].Missing)
	require.Nil(t, f.State().Records["c"].Missing)
	m := &mirror{t: t, dir: dir}
	require.Equal(t, map[string]string{"example.org/a/b": "b", "example.org/a/c": "c"}, m.files())
}
