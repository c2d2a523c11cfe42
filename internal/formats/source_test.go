package formats

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/text/encoding/unicode"

	"github.com/tmshare/tmshare/internal/iri"
	_ "github.com/tmshare/tmshare/internal/testenv" // takes -long
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// write writes files into a new folder and returns its path, in which there are
// no symbolic links.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	for name, content := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	}
	return dir
}

func gzipped(t *testing.T, s string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write([]byte(s))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	return b.String()
}

// xtm21 is a document with a topic that has an id, after what stands before it.
func xtm21(id, before string) string {
	return `<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1">` + before + `<topic id="` + id + `"/></topicMap>`
}

func mergeMap(href string) string { return `<mergeMap href="` + href + `"/>` }

func hasTopic(d *Document, iid string) bool {
	_, ok := d.Map.ConstructByItemIdentifier(tmdm.Locator(iid)).(*tmdm.Topic)
	return ok
}

func TestReadVersionsPlainAndGzipped(t *testing.T) {
	docs := map[xtm.Version]string{
		xtm.V10: `<topicMap xmlns="http://www.topicmaps.org/xtm/1.0/"><topic id="a"/></topicMap>`,
		xtm.V20: `<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.0"><topic id="a"/></topicMap>`,
		xtm.V21: xtm21("a", strings.Repeat("<!-- long -->", 20_000)),
	}
	for version, doc := range docs {
		for _, content := range []string{doc, gzipped(t, doc)} {
			dir := write(t, map[string]string{"map.xtm": content}) // whatever the name says
			d, err := Source{Path: filepath.Join(dir, "map.xtm")}.Read(t.Context())
			require.NoError(t, err)
			assert.Equal(t, version, d.Version)
			assert.Equal(t, tmdm.Locator("file://"+dir+"/map.xtm"), d.Base)
			assert.True(t, hasTopic(d, "file://"+dir+"/map.xtm#a"))

			t.Chdir(dir)
			d, err = Source{Path: "-", Stdin: strings.NewReader(content)}.Read(t.Context())
			require.NoError(t, err)
			assert.Equal(t, version, d.Version)
			assert.Equal(t, Stdin, d.Name)
			assert.True(t, hasTopic(d, "file://"+dir+"/#a"), "%v", d.Base)

			d, err = Source{Path: "map.xtm", Base: "http://example.org/x"}.Read(t.Context())
			require.NoError(t, err)
			assert.True(t, hasTopic(d, "http://example.org/x#a"))
		}
	}
}

func TestReadWhatIsNoMap(t *testing.T) {
	map21 := xtm21("a", "")
	dir := write(t, map[string]string{
		"empty": "", "empty.gz": gzipped(t, ""), "binary": "\x89PNG\r\n\x1a\n\x00", "magic": "\x1f\x8b", "text": "no map",
		"twice": gzipped(t, gzipped(t, map21)), "cut": gzipped(t, map21)[:30],
		"folder/map": map21,
	})
	for name, want := range map[string]string{
		"missing": "no such file", "folder": "is a folder", "empty": "the document is empty", "empty.gz": "the document is empty",
		"binary": ":1:1: ", "text": ":1:1: ", "magic": "it is gzipped, and ends early", "cut": "it is gzipped, and ends early",
		"twice": "gzipped twice", "text/below": "not a directory",
	} {
		_, err := Source{Path: filepath.Join(dir, name)}.Read(t.Context())
		assert.ErrorContains(t, err, want)
		assert.ErrorContains(t, err, filepath.Join(dir, name))
	}
	// A document that is complete, but whose checksum is wrong, is not taken.
	good := gzipped(t, map21)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "sum"), []byte(good[:len(good)-8]+"12345678"), 0o600))
	_, err := Source{Path: filepath.Join(dir, "sum")}.Read(t.Context())
	assert.ErrorContains(t, err, "checksum")
}

// What is unpacked is limited, together with what is merged in.
func TestMaxSize(t *testing.T) {
	bomb := gzipped(t, xtm21("a", strings.Repeat("<!-- bomb -->", 100_000)))
	require.Less(t, len(bomb), 20_000)
	inner := xtm21("b", strings.Repeat(" ", 1000))
	outer := xtm21("a", mergeMap("inner")+strings.Repeat(" ", 1000))
	dir := write(t, map[string]string{"bomb": bomb, "inner": inner, "outer": outer})
	var tooLarge *TooLargeError
	for name, max := range map[string]int64{"bomb": 1_000_000, "outer": int64(len(outer) + len(inner) - 1)} {
		_, err := Source{Path: filepath.Join(dir, name), MaxSize: max}.Read(t.Context())
		require.ErrorAs(t, err, &tooLarge, name)
		assert.Equal(t, max, tooLarge.Max)
		assert.ErrorContains(t, err, filepath.Join(dir, name))
	}
	for name, max := range map[string]int64{"bomb": 2_000_000, "outer": int64(len(outer) + len(inner))} {
		_, err := Source{Path: filepath.Join(dir, name), MaxSize: max}.Read(t.Context())
		assert.NoError(t, err, name)
	}
}

func TestMergeMapOpensFilesBelowTheFolder(t *testing.T) {
	dir := write(t, map[string]string{
		"maps/main":      xtm21("a", mergeMap("sub/inner")),
		"maps/sub/inner": gzipped(t, xtm21("b", mergeMap("../x%20%23y"))),
		"maps/x #y":      xtm21("c", ""),
	})
	for _, base := range []string{"", "http://example.org/deep/down/map"} {
		d, err := Source{Path: filepath.Join(dir, "maps/main"), Base: tmdm.Locator(base)}.Read(t.Context())
		require.NoError(t, err)
		at := "file://" + dir + "/maps/"
		if base != "" {
			at = "http://example.org/deep/down/"
		}
		assert.True(t, hasTopic(d, at+"sub/inner#b"))
		assert.True(t, hasTopic(d, at+"x %23y#c"))
	}

	// Standard input stands in the current folder.
	t.Chdir(filepath.Join(dir, "maps"))
	d, err := Source{Path: "-", Stdin: strings.NewReader(xtm21("a", mergeMap("sub/inner")))}.Read(t.Context())
	require.NoError(t, err)
	assert.True(t, hasTopic(d, "file://"+dir+"/maps/sub/inner#b"))
}

func TestMergeMapOpensNothingElse(t *testing.T) {
	dir := write(t, map[string]string{
		"secret":    xtm21("s", ""),
		"maps/main": "", // written below
		"maps/ok":   xtm21("b", ""),
	})
	main := filepath.Join(dir, "maps/main")
	require.NoError(t, os.Symlink("../secret", filepath.Join(dir, "maps/link")))
	require.NoError(t, os.Symlink(dir, filepath.Join(dir, "maps/up")))
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "maps/pipe"), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "maps/folder"), 0o700))
	for href, want := range map[string]string{
		"../secret":                 "is not below " + dir + "/maps",
		"file://" + dir + "/secret": "is not below " + dir + "/maps",
		"/etc/passwd":               "is not below",
		"link":                      "escapes",
		"up/secret":                 "escapes",
		"missing":                   "no such file",
		"pipe":                      "not a regular file",
		"folder":                    "not a regular file",
		"http://127.0.0.1:1/x":      "is not fetched: only files are opened",
		"file://server/x":           "is not fetched: only files are opened",
		"ok?query":                  "no such file",
	} {
		require.NoError(t, os.WriteFile(main, []byte(xtm21("a", mergeMap(href))), 0o600))
		_, err := Source{Path: main}.Read(t.Context())
		assert.ErrorContains(t, err, want, href)
		assert.ErrorContains(t, err, main+":1:", href)
	}

	// A wider folder, or leaving it out, is the user's decision.
	require.NoError(t, os.WriteFile(main, []byte(xtm21("a", mergeMap("../secret"))), 0o600))
	d, err := Source{Path: main, Root: dir}.Read(t.Context())
	require.NoError(t, err)
	assert.True(t, hasTopic(d, "file://"+dir+"/secret#s"))
	require.NoError(t, os.WriteFile(main, []byte(xtm21("a", mergeMap("file://"+dir+"/maps/ok"))), 0o600))
	d, err = Source{Path: main, Base: "http://example.org/x"}.Read(t.Context())
	require.NoError(t, err, "a file URL is meant as it stands, whatever the base")
	assert.True(t, hasTopic(d, "file://"+dir+"/maps/ok#b"))
	require.NoError(t, os.WriteFile(main, []byte(xtm21("a", mergeMap("../secret"))), 0o600))
	var left []tmdm.Locator
	d, err = Source{Path: main, Unmerged: func(l tmdm.Locator) { left = append(left, l) }}.Read(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []tmdm.Locator{tmdm.Locator("file://" + dir + "/secret")}, left)
	assert.False(t, hasTopic(d, "file://"+dir+"/secret#s"))
	_, err = Source{Path: main, Root: filepath.Join(dir, "nowhere")}.Read(t.Context())
	assert.ErrorContains(t, err, "nowhere")
}

func TestProblemsOfAllDocuments(t *testing.T) {
	dir := write(t, map[string]string{
		"main":  xtm21("a", "<topic/>\n<topic><name/></topic>"+mergeMap("inner")),
		"inner": xtm21("b", "<topic/>"),
	})
	var uris []string
	d, err := Source{Path: filepath.Join(dir, "main"), Problem: func(e *xtm.SyntaxError) { uris = append(uris, e.URI) }}.Read(t.Context())
	require.NoError(t, err)
	assert.GreaterOrEqual(t, len(uris), 3)
	assert.Contains(t, uris, filepath.Join(dir, "main"))
	assert.Contains(t, uris, filepath.Join(dir, "inner"))
	assert.True(t, hasTopic(d, "file://"+dir+"/inner#b"), "reading goes on")
}

func TestProgress(t *testing.T) {
	document := xtm21("a", strings.Repeat("<!-- "+strings.Repeat("x", 1000)+" -->", 100))
	dir := write(t, map[string]string{"map": document})
	var last int64
	_, err := Source{Path: filepath.Join(dir, "map"), Progress: func(read, size int64) {
		assert.GreaterOrEqual(t, read, last)
		assert.EqualValues(t, len(document), size)
		last = read
	}}.Read(t.Context())
	require.NoError(t, err)
	assert.EqualValues(t, len(document), last)
}

func TestMayMerge(t *testing.T) {
	path := filepath.Join(t.TempDir(), "map.xtm")
	says := func(content string) bool {
		t.Helper()
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		may, err := MayMerge(path)
		require.NoError(t, err)
		return may
	}
	const tag = `<mergeMap xlink:href="other.xtm"/>`
	assert.False(t, says(""))
	assert.False(t, says(strings.Repeat("<topic/>", 20_000)))
	for _, before := range []int{0, 1, 64<<10 - 15, 64<<10 - 20, 64 << 10, 64<<10 + 1, 200_000} {
		assert.True(t, says(strings.Repeat(" ", before)+tag), before)
	}
	for _, order := range []unicode.Endianness{unicode.BigEndian, unicode.LittleEndian} {
		wide, err := unicode.UTF16(order, unicode.UseBOM).NewEncoder().String(strings.Repeat(" ", 32_760) + tag)
		require.NoError(t, err)
		assert.True(t, says(wide))
	}
	_, err := MayMerge(filepath.Join(t.TempDir(), "missing"))
	assert.ErrorContains(t, err, "no such file")
}

// A file URL is in normal form and leads back to its file, whatever its name.
func TestFileURL(t *testing.T) {
	for name, want := range map[string]string{
		"/a/map.xtm":     "file:///a/map.xtm",
		"/a b/50%.xtm":   "file:///a b/50%25.xtm",
		"/a#b?c/ø~.xtm":  "file:///a%23b%3Fc/ø~.xtm",
		"/a/\x01\xff":    "file:///a/%01%FF",
		"/a/../b/./c.gz": "file:///b/c.gz",
		"/%41/x":         "file:///%2541/x",
	} {
		l, err := FileURL(name)
		require.NoError(t, err)
		assert.Equal(t, tmdm.Locator(want), l)
		normal, err := iri.Normalize(string(l))
		require.NoError(t, err)
		assert.Equal(t, want, normal)
		back, ok := filePath(string(l))
		assert.True(t, ok)
		assert.Equal(t, filepath.Clean(name), back)
	}
	here, err := filepath.Abs("x")
	require.NoError(t, err)
	l, err := FileURL("x")
	require.NoError(t, err)
	back, _ := filePath(string(l))
	assert.Equal(t, here, back)
}

func TestFilePathOfNoFile(t *testing.T) {
	for _, l := range []string{"http://example.org/x", "file://server/share", "file:x", "file:///a%00b", "urn:x"} {
		_, ok := filePath(l)
		assert.False(t, ok, l)
	}
	p, ok := filePath("file://localhost/a")
	assert.True(t, ok)
	assert.Equal(t, "/a", p)
}

func TestRelativeTo(t *testing.T) {
	for _, c := range []struct{ base, l, want string }{
		{"file:///a/b/map.xtm", "file:///a/b/c/d.xtm", "c/d.xtm"},
		{"file:///a/b/map.xtm", "file:///a/d.xtm", "../d.xtm"},
		{"file:///a/b/", "file:///a/b/d.xtm", "d.xtm"},
		{"http://example.org/map", "http://example.org/a%23b", "a#b"},
		{"http://example.org", "http://example.org/d", "d"},
		{"http://example.org/x", "http://example.com/d", ""},
		{"http://example.org/x", "https://example.org/d", ""},
		{"http://example.org/x", "urn:x", ""},
		{"http://example.org/x", "http://example.org/%00", ""},
	} {
		rel, ok := relativeTo(c.base, c.l)
		assert.Equal(t, c.want != "", ok, c.l)
		assert.Equal(t, c.want, rel, c.l)
	}
}

func TestBase(t *testing.T) {
	l, err := Base("HTTP://example.org/%7Ea b")
	require.NoError(t, err)
	assert.Equal(t, tmdm.Locator("http://example.org/~a b"), l)
	for _, s := range []string{"", "map.xtm", "/a/map.xtm", "urn:x", "http://a/\x01"} {
		_, err := Base(s)
		assert.Error(t, err, s)
	}
}
