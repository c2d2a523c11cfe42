package resourcesync

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tmshare/tmshare/internal/testenv"
)

func manifestFile(t testing.TB) *os.File {
	file, err := os.Create(filepath.Join(t.TempDir(), "manifest.xml"))
	require.NoError(t, err)
	t.Cleanup(func() { file.Close() })
	return file
}

func dumpManifest() Document {
	return Document{Capability: ResourceDumpManifest, Times: Times{At: hour(1)}}
}

func changeManifest() Document {
	return Document{Capability: ChangeDumpManifest, Times: Times{From: hour(0), Until: hour(20)}}
}

// pack writes a package of resources by their URIs and contents.
func pack(t testing.TB, head Document, content ...string) (packed []byte, manifest []byte) {
	var b bytes.Buffer
	file := manifestFile(t)
	w, err := NewPackageWriter(&b, file, head, PackageOptions{})
	require.NoError(t, err)
	for i := 0; i < len(content); i += 2 {
		require.NoError(t, w.Add(Item{Loc: content[i], LastMod: hour(1)}, strings.NewReader(content[i+1])))
	}
	require.NoError(t, w.Close())
	assert.LessOrEqual(t, int64(b.Len()), w.Bytes())
	manifest, err = os.ReadFile(file.Name())
	require.NoError(t, err)
	return b.Bytes(), manifest
}

func openBytes(b []byte, limits PackageLimits) (*Package, error) {
	return OpenPackage(bytes.NewReader(b), int64(len(b)), "http://example.com/dump.zip", limits)
}

// unpack reads a package, and returns its manifest and the contents by URI.
func unpack(p *Package) (items []Item, content []string, err error) {
	manifest, err := p.Manifest()
	if err != nil {
		return nil, nil, err
	}
	for {
		item, err := manifest.Next()
		if err == io.EOF {
			return items, content, nil
		}
		if err != nil {
			return nil, nil, err
		}
		text := ""
		if item.Change != Deleted {
			if text, err = openString(p, item.Loc, item.Representation); err != nil {
				return nil, nil, err
			}
		}
		items, content = append(items, item), append(content, text)
	}
}

func openString(p *Package, uri string, r Representation) (string, error) {
	file, err := p.Open(uri, r)
	if err != nil {
		return "", err
	}
	defer file.Close()
	b, err := io.ReadAll(file)
	return string(b), err
}

func TestPackage(t *testing.T) {
	a, b := "http://example.com/topics/a.xtm", "http://example.com/topics/b?x=1#y"
	long := strings.Repeat("topic map ", 10_000)
	zipped, manifest := pack(t, dumpManifest(), a, "", b, long)

	z, err := zip.NewReader(bytes.NewReader(zipped), int64(len(zipped)))
	require.NoError(t, err)
	var names []string
	for _, f := range z.File {
		names = append(names, f.Name)
		assert.Equal(t, os.FileMode(0o644), f.Mode())
		assert.Equal(t, 1980, f.Modified.Year())
	}
	assert.Equal(t, []string{"resources/000001-a.xtm", "resources/000002-b", "manifest.xml"}, names)
	inner, err := z.Open("manifest.xml")
	require.NoError(t, err)
	innerBytes, err := io.ReadAll(inner)
	require.NoError(t, err)
	assert.Equal(t, string(manifest), string(innerBytes), "the copy is the same bytes")

	p, err := openBytes(zipped, PackageLimits{})
	require.NoError(t, err)
	items, content, err := unpack(p)
	require.NoError(t, err)
	assert.Equal(t, []string{"", long}, content)
	require.Len(t, items, 2)
	assert.Equal(t, Representation{Hashes: []Hash{{MD5, "d41d8cd98f00b204e9800998ecf8427e"},
		{SHA256, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}}, Empty: true, Path: "/resources/000001-a.xtm"}, items[0].Representation)
	assert.Equal(t, hour(1), items[0].LastMod)
	assert.Equal(t, int64(100_000), items[1].Length)
	assert.Equal(t, b, items[1].Loc)

	again, _ := pack(t, dumpManifest(), a, "", b, long)
	assert.Equal(t, zipped, again, "equal content, equal bytes")
}

// Z39.99 §13.1.1, §14.4: changes of one resource, deletions, patches.
func TestPackageOfChanges(t *testing.T) {
	var b bytes.Buffer
	file := manifestFile(t)
	w, err := NewPackageWriter(&b, file, changeManifest(), PackageOptions{})
	require.NoError(t, err)
	require.NoError(t, w.Add(change("res7.html", Created, hour(2)), strings.NewReader("one")))
	require.NoError(t, w.Add(change("res5.tiff", Deleted, hour(3)), nil))
	second := change("res7.html", Updated, hour(4))
	patch := Link{Rel: RelPatch, Href: "http://example.com/res7-diff", Representation: Representation{Type: "application/json-patch"}}
	require.NoError(t, w.AddLinked(&patch, strings.NewReader("+")))
	assert.Equal(t, "/linked/000002-res7-diff", patch.Path)
	assert.Equal(t, int64(1), patch.Length)
	second.Links = []Link{patch}
	require.NoError(t, w.Add(second, strings.NewReader("two")))
	assert.Equal(t, 3, w.Items())

	// A refused part leaves no trace.
	var invalid *InvalidError
	for rule, add := range map[string]func() error{
		"before the one listed":    func() error { return w.Add(change("x", Updated, hour(3)), strings.NewReader("x")) },
		"deletions have no":        func() error { return w.Add(change("x", Deleted, hour(5)), strings.NewReader("x")) },
		"all else has":             func() error { return w.Add(change("x", Updated, hour(5)), nil) },
		"is neither a registered ": func() error { return w.AddLinked(&Link{Href: "http://example.com/"}, strings.NewReader("x")) },
		"change is missing":        func() error { return w.Add(resource("x"), strings.NewReader("x")) },
	} {
		err := add()
		if assert.ErrorAs(t, err, &invalid, rule) {
			assert.ErrorContains(t, err, rule)
		}
	}
	require.NoError(t, w.Close())
	assert.ErrorContains(t, w.Add(change("x", Updated, hour(6)), strings.NewReader("x")), "closed")
	assert.ErrorContains(t, w.Close(), "closed")

	p, err := openBytes(b.Bytes(), PackageLimits{})
	require.NoError(t, err)
	assert.Len(t, p.files, 4)
	items, content, err := unpack(p)
	require.NoError(t, err)
	assert.Equal(t, []string{"one", "", "two"}, content)
	assert.Empty(t, items[1].Path)
	link, ok := items[2].Link(RelPatch)
	require.True(t, ok)
	text, err := openString(p, link.Href, link.Representation)
	require.NoError(t, err)
	assert.Equal(t, "+", text)
}

// Whatever the URIs are, the names are safe and differ.
func TestPackageNames(t *testing.T) {
	for uri, want := range map[string]string{
		"http://example.com/a/b.xtm":                           "b.xtm",
		"http://example.com/a/b.xtm?c=/d#e/f":                  "b.xtm",
		"http://example.com/":                                  "example.com",
		"http://example.com/a/":                                "a",
		"urn:uuid:123":                                         "123",
		"http://example.com/..":                                "__",
		"http://example.com/.htaccess":                         "_htaccess",
		"http://example.com/a.":                                "a_",
		"http://example.com/%2e%2e%2Fetc":                      "_2e_2e_2Fetc",
		"http://example.com/a:b":                               "b",
		"http://example.com/é x\\y":                            "___x_y",
		"x:?":                                                  "resource",
		"http://a/" + strings.Repeat("x", 100) + ".xtm":        strings.Repeat("x", 76) + ".xtm",
		"http://example.com/" + strings.Repeat("..", 50) + "/": "_" + strings.Repeat(".", 78) + "_",
	} {
		assert.Equal(t, want, fileName(uri), uri)
	}
	testenv.Check(t, 25, 100, func(t *rapid.T) {
		uri := rapid.String().Draw(t, "uri")
		name := "resources/000001-" + fileName(uri)
		if reason := unsafeName(name); reason != "" || strings.Count(name, "/") != 1 || len(name) > 100 {
			t.Fatalf("%q makes %q: %s", uri, name, reason)
		}
	})
}

func TestPackageWriterTellsWhenItIsFull(t *testing.T) {
	testenv.SkipUnderRace(t)
	random := rand.New(rand.NewPCG(1, 2)) // content that packing makes no shorter
	noise := make([]byte, 1000)
	for _, max := range []int64{20_000, 100_000, 1_000_000} {
		var b bytes.Buffer
		w, err := NewPackageWriter(&b, manifestFile(t), dumpManifest(), PackageOptions{MaxBytes: max})
		require.NoError(t, err)
		for n := 0; ; n++ {
			for i := range noise {
				noise[i] = byte(random.Uint32())
			}
			item := resource(fmt.Sprint(n))
			item.Length = int64(len(noise))
			if err = w.Add(item, bytes.NewReader(noise)); err != nil {
				break
			}
		}
		require.ErrorIs(t, err, ErrFull)
		require.NoError(t, w.Close())
		assert.LessOrEqual(t, int64(b.Len()), max)
		assert.Greater(t, int64(b.Len()), max/2)
		p, err := openBytes(b.Bytes(), PackageLimits{})
		require.NoError(t, err)
		_, content, err := unpack(p)
		require.NoError(t, err)
		assert.Equal(t, w.Items(), len(content))
	}
	var b bytes.Buffer
	w, err := NewPackageWriter(&b, manifestFile(t), dumpManifest(), PackageOptions{Manifest: Options{MaxItems: 1}})
	require.NoError(t, err)
	require.NoError(t, w.Add(resource("a"), strings.NewReader("a")))
	assert.ErrorIs(t, w.Add(resource("b"), strings.NewReader("b")), ErrFull, "the manifest is full")
	require.NoError(t, w.Close())
}

func TestPackageWriterErrors(t *testing.T) {
	var b bytes.Buffer
	_, err := NewPackageWriter(&b, manifestFile(t), resourceList(), PackageOptions{})
	assert.ErrorContains(t, err, `"resourcelist" is not the capability of a manifest`)
	_, err = NewPackageWriter(&b, manifestFile(t), Document{Capability: ChangeDumpManifest}, PackageOptions{})
	assert.ErrorContains(t, err, "from is missing")

	w, err := NewPackageWriter(&b, manifestFile(t), dumpManifest(), PackageOptions{})
	require.NoError(t, err)
	item := resource("a")
	item.Length = 2
	var mismatch *MismatchError
	require.ErrorAs(t, w.Add(item, strings.NewReader("a")), &mismatch)
	assert.Equal(t, &MismatchError{"http://example.com/a", "length", "2", "1"}, mismatch)
	assert.ErrorAs(t, w.Close(), &mismatch, "half a file has been written")

	lost := errors.New("disk gone")
	w, err = NewPackageWriter(&b, manifestFile(t), dumpManifest(), PackageOptions{})
	require.NoError(t, err)
	assert.ErrorIs(t, w.Add(resource("a"), iotest.ErrReader(lost)), lost)
	assert.ErrorIs(t, w.Add(resource("b"), strings.NewReader("b")), lost)

	w, err = NewPackageWriter(&failing{}, manifestFile(t), dumpManifest(), PackageOptions{})
	require.NoError(t, err)
	assert.ErrorContains(t, w.Close(), "disk full")
}

// Packages are ordinary ZIP files.
func TestPackagesOpenElsewhere(t *testing.T) {
	unzip := testenv.Command(t, "unzip")
	content := []string{"http://example.com/empty", ""}
	for n := range 500 {
		content = append(content, fmt.Sprintf("http://example.com/topics/%d.xtm", n), strings.Repeat(fmt.Sprint(n), n))
	}
	zipped, manifest := pack(t, dumpManifest(), content...)
	folder := t.TempDir()
	file := filepath.Join(folder, "dump.zip")
	require.NoError(t, os.WriteFile(file, zipped, 0o600))
	out, err := exec.Command(unzip, "-t", file).CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Contains(t, string(out), "No errors detected")
	assert.Equal(t, 502, strings.Count(string(out), " OK\n"))

	out, err = exec.Command(unzip, "-q", file, "-d", folder).CombinedOutput()
	require.NoError(t, err, string(out))
	d, items, err := readAll(bytes.NewReader(manifest), "http://example.com/dump.zip", Limits{})
	require.NoError(t, err)
	assert.Equal(t, dumpManifest(), d)
	for i, item := range items {
		b, err := os.ReadFile(filepath.Join(folder, item.Path))
		require.NoError(t, err)
		assert.Equal(t, content[2*i+1], string(b))
	}
	require.NoError(t, os.WriteFile(filepath.Join(folder, "manifest-copy.xml"), manifest, 0o600))
	assert.NoError(t, lint(t, "joint-sitemap11", filepath.Join(folder, "manifest.xml")))
}

// A package of more files than the old ZIP format can count.
func TestPackageZip64(t *testing.T) {
	testenv.SkipUnderRace(t)
	var b bytes.Buffer
	w, err := NewPackageWriter(&b, manifestFile(t), changeManifest(), PackageOptions{})
	require.NoError(t, err)
	for n := range MaxItems {
		item := change(fmt.Sprint(n), Updated, hour(1))
		if n < 16_000 {
			link := Link{Rel: RelPatch, Href: item.Loc + "/patch", Representation: Representation{Type: "text/plain"}}
			require.NoError(t, w.AddLinked(&link, strings.NewReader("p")))
			item.Links = []Link{link}
		}
		require.NoError(t, w.Add(item, strings.NewReader("c")))
	}
	require.NoError(t, w.Close())
	assert.LessOrEqual(t, int64(b.Len()), w.Bytes())
	p, err := openBytes(b.Bytes(), PackageLimits{})
	require.NoError(t, err)
	assert.Len(t, p.files, 66_001)
	text, err := openString(p, "x", Representation{Path: "/changes/066000-49999"})
	require.NoError(t, err)
	assert.Equal(t, "c", text)
	file := filepath.Join(t.TempDir(), "dump.zip")
	require.NoError(t, os.WriteFile(file, b.Bytes(), 0o600))
	out, err := exec.Command(testenv.Command(t, "unzip"), "-tqq", file).CombinedOutput()
	require.NoError(t, err, string(out))
}

// Files of one package may be read at the same time.
func TestPackageConcurrently(t *testing.T) {
	var content []string
	for n := range 50 {
		content = append(content, fmt.Sprintf("http://example.com/%d", n), strings.Repeat(fmt.Sprint(n), 1000))
	}
	zipped, manifest := pack(t, dumpManifest(), content...)
	p, err := openBytes(zipped, PackageLimits{})
	require.NoError(t, err)
	_, items, err := readAll(bytes.NewReader(manifest), "", Limits{})
	require.NoError(t, err)
	var all sync.WaitGroup
	for i, item := range items {
		all.Go(func() {
			text, err := openString(p, item.Loc, item.Representation)
			assert.NoError(t, err)
			assert.Equal(t, content[2*i+1], text)
		})
	}
	all.Wait()
}

func TestFixity(t *testing.T) {
	const text = "The quick brown fox jumps over the lazy dog"
	f := NewFixity()
	_, _ = io.WriteString(f, text[:10])
	_, _ = io.WriteString(f, text[10:])
	var r Representation
	f.Describe(&r)
	assert.Equal(t, Representation{Length: 43, Hashes: []Hash{{MD5, "9e107d9d372bb6826bd81d3542a419d6"},
		{SHA256, "d7a8fbb307d7809469ca9abcb0082e4f8d5651e46d3cdb762d02d0bf37c9e592"}}}, r)

	read := func(r Representation, text string) (string, error) {
		b, err := io.ReadAll(r.Verify("http://example.com/fox", iotest.OneByteReader(strings.NewReader(text))))
		return string(b), err
	}
	for _, good := range []Representation{
		{}, r, {Length: 43},
		{Hashes: []Hash{{"sha-1", "2fd4e1c67a2d28fced849ee1bb76e7391b93eb12"}}},
		{Hashes: []Hash{{"sha-512", "07e547d9586f6a73f73fbac0435ed76951218fb7d0c8d788a309d785436bbb642e93a252a954f23912547d1e8a3b5ed6e1bfd7097821233fa0538f3db854fee6"}}},
		{Hashes: []Hash{parseHash("SHA256:D7A8FBB307D7809469CA9ABCB0082E4F8D5651E46D3CDB762D02D0BF37C9E592")}},
		{Hashes: []Hash{{MD5, "nhB9nTcrtoJr2B01QqQZ1g=="}}, Length: 43}, // base 64
		{Hashes: []Hash{{SHA256, "16j7swfXgJRpypq8sAguT41WUeRtPNt2LQLQvzfJ5ZI"}}},
		{Hashes: []Hash{{"sha-512", "B+VH2VhvanP3P7rAQ17XaVEhj7fQyNeIownXhUNru2Quk6JSqVTyORJUfR6KO17W4b/XCXghIz+gU489uFT+5g=="}}},
		{Hashes: []Hash{{"blake3", "00"}}},
	} {
		got, err := read(good, text)
		assert.NoError(t, err, "%v", good)
		assert.Equal(t, text, got)
	}
	for property, bad := range map[string]Representation{
		"length":  {Length: 44},
		MD5:       {Hashes: []Hash{{MD5, "9e107d9d372bb6826bd81d3542a419d7"}}},
		"sha-1":   {Hashes: []Hash{{"sha-1", "x"}}},
		SHA256:    {Hashes: []Hash{r.Hashes[0], {SHA256, ""}}},
		"sha-512": {Hashes: []Hash{{"sha-512", "00"}}},
	} {
		got, err := read(bad, text)
		var mismatch *MismatchError
		if assert.ErrorAs(t, err, &mismatch, property) {
			assert.Equal(t, property, mismatch.Property)
			assert.Equal(t, "http://example.com/fox", mismatch.URI)
			assert.NotEqual(t, mismatch.Want, mismatch.Got)
		}
		assert.Equal(t, text, got)
	}
	// A length that is too large is reported at once, not at the end of a body that may never end.
	n, err := io.Copy(io.Discard, Representation{Length: 5}.Verify("x", iotest.OneByteReader(strings.NewReader(text))))
	assert.ErrorContains(t, err, "x: its length is 6, not 5")
	assert.Equal(t, int64(6), n)
	_, err = read(Representation{Empty: true}, text)
	assert.ErrorContains(t, err, "its length is 1, not 0")
}
