package resourcesync

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/testenv"
)

// entry is a file of a package that a test makes by hand.
type entry struct {
	name, content string
	change        func(*zip.FileHeader)
}

const manifestOfA = `<urlset xmlns="` + NamespaceSitemap + `" xmlns:rs="` + NamespaceRS + `"><rs:md capability="resourcedump-manifest" at="2026-03-01T01:00:00Z"/>
	<url><loc>http://example.com/a</loc><rs:md path="/resources/a" hash="md5:0cc175b9c0f1b6a831c399e269772661" length="1"/></url></urlset>`

func zipOf(t testing.TB, entries ...entry) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate}
		if e.change != nil {
			e.change(h)
		}
		file, err := w.CreateHeader(h)
		require.NoError(t, err)
		_, err = io.WriteString(file, e.content)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}

// rawZip holds one file whose directory lies about its length.
func rawZip(t testing.TB, name string, packed []byte, claimed uint64, crc uint32) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	m, err := w.Create(manifestName)
	require.NoError(t, err)
	_, err = io.WriteString(m, manifestOfA)
	require.NoError(t, err)
	file, err := w.CreateRaw(&zip.FileHeader{Name: name, Method: zip.Deflate, CRC32: crc,
		CompressedSize64: uint64(len(packed)), UncompressedSize64: claimed})
	require.NoError(t, err)
	_, err = file.Write(packed)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

func mode(m os.FileMode) func(*zip.FileHeader) { return func(h *zip.FileHeader) { h.SetMode(m) } }

func TestHostilePackagesAreRefused(t *testing.T) {
	manifest, a := entry{name: manifestName, content: manifestOfA}, entry{name: "resources/a", content: "a"}
	good := zipOf(t, manifest, a)
	p, err := openBytes(good, PackageLimits{})
	require.NoError(t, err)
	_, content, err := unpack(p)
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, content)

	named := func(name string) []byte { return zipOf(t, manifest, a, entry{name: name, content: "x"}) }
	for _, c := range []struct {
		reason string
		zip    []byte
	}{
		{"leads out of its folder", named("../etc/passwd")},
		{"leads out of its folder", named("resources/../../etc/passwd")},
		{"leads out of its folder", named("resources/..")},
		{"leads out of its folder", named("resources/../a")},
		{"is an absolute path", named("/etc/passwd")},
		{"is an absolute path", named("//server/share")},
		{"has a backslash", named(`resources\..\..\a`)},
		{"has a backslash", named(`\\server\share`)},
		{"the letter of a drive", named("C:/windows/system.ini")},
		{"the letter of a drive", named("c:a")},
		{"has a control character", named("resources/a\x00.txt")},
		{"has a control character", named("resources/a\nb")},
		{"has no name", named("")},
		{"occurs twice", named("resources/a")},
		{"occurs twice", named("resources//a")},
		{"occurs twice", named("./resources/a")},
		{"occurs twice", named(manifestName)},
		{"occurs twice", zipOf(t, manifest, entry{name: "x/"}, entry{name: "x", content: "x"})},
		{"is not a file but L", zipOf(t, manifest, entry{"resources/a", "/etc/passwd", mode(os.ModeSymlink | 0o777)})},
		{"is not a file but D", zipOf(t, manifest, entry{"resources/a", "", mode(os.ModeDevice)})},
		{"is not a file but p", zipOf(t, manifest, entry{"resources/a", "", mode(os.ModeNamedPipe)})},
		{"is not a file but S", zipOf(t, manifest, entry{"resources/a", "", mode(os.ModeSocket)})},
		{"has no manifest.xml", zipOf(t, a)},
		{"has no manifest.xml", zipOf(t, a, entry{name: manifestName + "/"})},
		{"is no ZIP file", []byte("<html>404</html>")},
		{"is no ZIP file", nil},
		{"is no ZIP file", good[:len(good)-1]},
		{"is no ZIP file", good[:len(good)/2]},
	} {
		_, err := openBytes(c.zip, PackageLimits{})
		var hostile *PackageError
		if assert.ErrorAs(t, err, &hostile, c.reason) {
			assert.ErrorContains(t, err, c.reason)
			assert.Equal(t, "http://example.com/dump.zip", hostile.URI)
		}
	}
}

func TestBombsAreRefused(t *testing.T) {
	testenv.SkipUnderRace(t)
	zeros := strings.Repeat("\x00", 4<<20)
	manifest := entry{name: manifestName, content: manifestOfA}
	for _, c := range []struct {
		limit  string
		limits PackageLimits
		zip    []byte
	}{
		{"MaxRatio", PackageLimits{}, zipOf(t, manifest, entry{name: "resources/a", content: zeros})},
		{"MaxResource", PackageLimits{MaxResource: 1 << 20}, zipOf(t, manifest, entry{name: "resources/a", content: zeros})},
		{"MaxUnpacked", PackageLimits{MaxUnpacked: 6 << 20, MaxRatio: 1 << 20},
			zipOf(t, manifest, entry{name: "1", content: zeros}, entry{name: "2", content: zeros})},
		{"MaxEntries", PackageLimits{MaxEntries: 2}, zipOf(t, manifest, entry{name: "1"}, entry{name: "2"})},
		{"MaxDirectory", PackageLimits{MaxDirectory: 1000}, manyEntries(t, 10_000, 10_000)},
		// The count at the end is taken modulo 65,536 by many a reader.
		{"MaxDirectory", PackageLimits{MaxDirectory: 1000}, manyEntries(t, 1<<16+1, 1)},
		{"MaxEntries", PackageLimits{MaxEntries: 10}, manyEntries(t, 1<<16+1, 1)},
		{"MaxRatio", PackageLimits{}, rawZip(t, "resources/a", nil, 1<<29, 0)},
		{"MaxUnpacked", PackageLimits{MaxResource: 1 << 62, MaxRatio: 1 << 62}, rawZip(t, "resources/a", []byte{3, 0}, 1<<61, 0)},
	} {
		_, err := openBytes(c.zip, c.limits)
		var limit *LimitError
		if assert.ErrorAs(t, err, &limit, c.limit) {
			assert.Equal(t, c.limit, limit.Limit)
			assert.ErrorContains(t, err, "http://example.com/dump.zip: ")
			assert.ErrorContains(t, err, "exceeds PackageLimits."+c.limit)
		}
	}
}

// manyEntries makes the bytes of a directory that has n files and states another number.
func manyEntries(t testing.TB, count int, stated uint16) []byte {
	var b bytes.Buffer
	for n := range count {
		name := fmt.Sprintf("%07d", n)
		if n == 0 {
			name = manifestName
		}
		h := make([]byte, 46)
		copy(h, "PK\x01\x02")
		binary.LittleEndian.PutUint16(h[28:], uint16(len(name)))
		b.Write(h)
		b.WriteString(name)
	}
	end := make([]byte, 22)
	copy(end, "PK\x05\x06")
	binary.LittleEndian.PutUint16(end[8:], stated)
	binary.LittleEndian.PutUint16(end[10:], stated)
	binary.LittleEndian.PutUint32(end[12:], uint32(b.Len()))
	b.Write(end)
	require.Less(t, b.Len(), 1<<32)
	return b.Bytes()
}

// A directory may state wrong sizes; the bytes that are unpacked count.
func TestLiesAboutContent(t *testing.T) {
	testenv.SkipUnderRace(t)
	var packed bytes.Buffer
	w := zip.NewWriter(&packed)
	file, err := w.CreateHeader(&zip.FileHeader{Name: "x", Method: zip.Deflate})
	require.NoError(t, err)
	zeros := bytes.Repeat([]byte{0}, 8<<20)
	_, err = file.Write(zeros)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	z, err := zip.NewReader(bytes.NewReader(packed.Bytes()), int64(packed.Len()))
	require.NoError(t, err)
	raw, err := z.File[0].OpenRaw()
	require.NoError(t, err)
	deflated, err := io.ReadAll(raw)
	require.NoError(t, err)

	sum := crc32.ChecksumIEEE(zeros)
	bomb := rawZip(t, "resources/a", deflated, 1, sum) // says that it has one byte
	p, err := openBytes(bomb, PackageLimits{})
	require.NoError(t, err)
	text, err := openString(p, "http://example.com/a", Representation{Path: "/resources/a"})
	var damaged *PackageError
	require.ErrorAs(t, err, &damaged)
	assert.Less(t, len(text), 1<<20)

	bad := rawZip(t, "resources/a", deflated, uint64(len(zeros)), sum+1)
	p, err = openBytes(bad, PackageLimits{MaxRatio: 1 << 20})
	require.NoError(t, err)
	_, err = openString(p, "http://example.com/a", Representation{Path: "/resources/a"})
	require.ErrorAs(t, err, &damaged)
	assert.ErrorIs(t, err, zip.ErrChecksum)

	// One file that the manifest mentions again and again.
	honest := rawZip(t, "resources/a", deflated, uint64(len(zeros)), sum)
	p, err = openBytes(honest, PackageLimits{MaxRatio: 1 << 20, MaxUnpacked: 20 << 20})
	require.NoError(t, err)
	for range 2 {
		_, err = openString(p, "http://example.com/a", Representation{Path: "/resources/a"})
		require.NoError(t, err)
	}
	_, err = openString(p, "http://example.com/a", Representation{Path: "/resources/a"})
	var limit *LimitError
	require.ErrorAs(t, err, &limit)
	assert.Equal(t, "MaxUnpacked", limit.Limit)
}

// Content is held to the manifest, and errors name the resource.
func TestPackageMismatches(t *testing.T) {
	manifest := entry{name: manifestName, content: manifestOfA}
	for property, content := range map[string]string{"length": "aa", MD5: "b"} {
		p, err := openBytes(zipOf(t, manifest, entry{name: "resources/a", content: content}), PackageLimits{})
		require.NoError(t, err)
		_, _, err = unpack(p)
		var mismatch *MismatchError
		require.ErrorAs(t, err, &mismatch)
		assert.Equal(t, property, mismatch.Property)
		assert.Equal(t, "http://example.com/a", mismatch.URI)
	}
	p, err := openBytes(zipOf(t, manifest, entry{"resources/a", "a", func(h *zip.FileHeader) { h.Flags |= 1 }}, entry{name: "b", content: "b"},
		entry{"c", "c", func(h *zip.FileHeader) { h.Method = zip.Store }}, entry{name: "folder/"}), PackageLimits{})
	require.NoError(t, err)
	p.files["c"].Method = 99
	for path, reason := range map[string]string{
		"":                  "the manifest has no path for http://example.com/a",
		"/resources/b":      `"resources/b" is not in the package`,
		"/folder":           `"folder" is not in the package`,
		"/folder/":          `"folder" is not in the package`,
		"/../resources/a":   `"/../resources/a" leads out of its folder`,
		"/resources/../b":   "leads out of its folder",
		"//etc/passwd":      "is an absolute path",
		`\resources\a`:      "has a backslash",
		"C:/resources/a":    "the letter of a drive",
		"/":                 "has no name",
		"/resources/a":      `"resources/a" is encrypted`,
		"/c":                `"c" cannot be unpacked: zip: unsupported compression algorithm`,
		"/" + manifestName:  "", // odd, and harmless
		"/./" + "b":         "",
		"b":                 "",
		"/b" + "\x00" + ".": "has a control character",
	} {
		_, err := openString(p, "http://example.com/a", Representation{Path: path})
		var hostile *PackageError
		if reason == "" {
			assert.NoError(t, err, path)
		} else if assert.ErrorAs(t, err, &hostile, path) {
			assert.ErrorContains(t, err, reason, path)
		}
	}
}

// Sources pack in ways that the specification does not describe.
func TestPackagesOfOtherSources(t *testing.T) {
	inFolder := func(folder string) []entry {
		return []entry{{name: folder}, {name: folder + manifestName, content: manifestOfA}, {name: folder + "resources/a", content: "a"}}
	}
	for name, entries := range map[string][]entry{
		"all in a folder":            inFolder("dump/"),
		"deeper":                     inFolder("out/dump/"),
		"only the manifest":          {{name: "dump/" + manifestName, content: manifestOfA}, {name: "resources/a", content: "a"}},
		"no slash in the path":       {{name: manifestName, content: strings.Replace(manifestOfA, "/resources", "resources", 1)}, {name: "resources/a", content: "a"}},
		"files that nobody mentions": {{name: "resources/.DS_Store", content: "x"}, {name: "resources/a", content: "a"}, {name: manifestName, content: manifestOfA}},
		"a resource of that name":    {{name: "resources/" + manifestName, content: "x"}, {name: manifestName, content: manifestOfA}, {name: "resources/a", content: "a"}},
		"names with a dot":           {{name: "./" + manifestName, content: manifestOfA}, {name: "./resources/a", content: "a"}},
		"not packed": {{manifestName, manifestOfA, func(h *zip.FileHeader) { h.Method = zip.Store }},
			{"resources/a", "a", func(h *zip.FileHeader) { h.Method = zip.Store }}},
	} {
		p, err := openBytes(zipOf(t, entries...), PackageLimits{})
		require.NoError(t, err, name)
		items, content, err := unpack(p)
		require.NoError(t, err, name)
		assert.Equal(t, []string{"a"}, content, name)
		assert.Equal(t, "http://example.com/a", items[0].Loc, name)
	}
	for _, document := range []string{
		strings.Replace(manifestOfA, "resourcedump-manifest", "resourcelist", 1),
		strings.Replace(manifestOfA, "<rs:md capability", "<rs:md x", 1),
	} {
		p, err := openBytes(zipOf(t, entry{name: manifestName, content: document}), PackageLimits{})
		require.NoError(t, err)
		_, err = p.Manifest()
		assert.ErrorContains(t, err, `"manifest.xml" is no manifest`)
	}
	p, err := openBytes(zipOf(t, entry{name: manifestName, content: "<html/>"}), PackageLimits{})
	require.NoError(t, err)
	_, err = p.Manifest()
	var syntax *SyntaxError
	assert.ErrorAs(t, err, &syntax)
}

type brokenAt struct{ err error }

func (b brokenAt) ReadAt([]byte, int64) (int, error) { return 0, b.err }

func TestPackageReadErrors(t *testing.T) {
	lost := errors.New("connection reset")
	_, err := OpenPackage(brokenAt{lost}, 1000, "http://example.com/dump.zip", PackageLimits{})
	assert.ErrorIs(t, err, lost)
	assert.ErrorContains(t, err, "reading http://example.com/dump.zip")
}
