package resourcesync

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/iri"
)

// Whatever is read satisfies what the model promises, and if it can be written
// too, means the same then.
func FuzzRead(f *testing.F) {
	files, err := filepath.Glob("testdata/*.xml")
	require.NoError(f, err)
	require.NotEmpty(f, files)
	for _, file := range files {
		document, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(document)
	}
	for _, document := range []string{
		"", "<", "<urlset/>", "\uFEFF" + inList(""),
		inList(`<url><loc>%%20 a</loc><rs:md hash="MD5: :x sha1:=" length="0" path=" / " datetime="2016-12-31T23:59:60.9999999999-23:59"/></url>`),
		rootStart + `<url><loc>x:</loc></url><rs:ln href="//" rel="A b:"/><rs:md capability=" X "/></urlset>`,
		`<!DOCTYPE urlset [<!ENTITY a "b">]>` + inList("<url><loc>&a;</loc></url>"),
	} {
		f.Add([]byte(document))
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		limits := Limits{MaxBytes: 1 << 16, MaxDepth: 16, MaxItems: 100, MaxLinks: 10}
		d, items, err := readAll(bytes.NewReader(document), "http://example.com/document.xml", limits)
		if err != nil {
			requireTyped(t, err)
			return
		}
		if len(items) > limits.MaxItems || len(d.Links) > limits.MaxLinks {
			t.Fatalf("accepted %d items, %d links", len(items), len(d.Links))
		}
		for i := range items {
			if !iri.IsAbsolute(items[i].Loc) || len(items[i].Links) > limits.MaxLinks {
				t.Fatalf("accepted %+v", items[i])
			}
			for _, l := range items[i].Links {
				if l.Rel == "" || !iri.IsAbsolute(l.Href) {
					t.Fatalf("accepted the link %+v", l)
				}
			}
		}
		var b bytes.Buffer
		if writeAll(&b, d, items, Options{}) != nil {
			return // Sources may break rules that we keep
		}
		_, again, err := readString(b.String())
		require.NoError(t, err, b.String())
		require.Equal(t, len(items), len(again))
		for i := range items {
			require.Equal(t, items[i].Loc, again[i].Loc)
			require.Equal(t, items[i].Representation, again[i].Representation)
			require.True(t, written(items[i].ChangeTime()).Equal(again[i].ChangeTime()))
		}
	})
}

func requireTyped(t *testing.T, err error) {
	var syntax *SyntaxError
	var invalid *InvalidError
	var limit *LimitError
	var hostile *PackageError
	var mismatch *MismatchError
	if !errors.As(err, &syntax) && !errors.As(err, &invalid) && !errors.As(err, &limit) && !errors.As(err, &hostile) && !errors.As(err, &mismatch) {
		t.Fatalf("untyped error %v", err)
	}
	if limit != nil && limit.Limit == "" {
		t.Fatalf("a limit without a name: %v", err)
	}
}

// Whatever is discovered is a URI.
func FuzzDiscover(f *testing.F) {
	page, err := os.ReadFile("testdata/example-09.html")
	require.NoError(f, err)
	for _, s := range []string{
		string(page), `<http://example.com/a.xml>; rel="resourcesync", <b>;rel=resourcesync;anchor="#"`, `<>;;=",\`,
		"Sitemap: /a\r\nsitemap:%\n", `<base href="x:"><link rel=resourcesync href=a>`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		inHTML, err := DiscoverInHTML(strings.NewReader(s), "http://example.com/page")
		require.NoError(t, err)
		inRobots, err := DiscoverInRobots(strings.NewReader(s), "http://example.com/robots.txt")
		require.NoError(t, err)
		for _, found := range [][]string{inHTML, inRobots, DiscoverInHeader([]string{s}, "http://example.com/page")} {
			seen := map[string]bool{}
			for _, uri := range found {
				if !iri.IsAbsolute(uri) || strings.ContainsAny(uri, " \t\r\n\x00") || seen[uri] {
					t.Fatalf("found %q", found)
				}
				seen[uri] = true
			}
		}
	})
}

// Whatever the package is, nothing more than the limits comes out of it.
func FuzzPackage(f *testing.F) {
	f.Add(zipOf(f, entry{name: manifestName, content: manifestOfA}, entry{name: "resources/a", content: "a"}))
	f.Add(manyEntries(f, 3, 3))
	packed, _ := pack(f, dumpManifest(), "http://example.com/a", strings.Repeat("a", 1000))
	f.Add(packed)
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := openBytes(b, PackageLimits{MaxUnpacked: 1 << 16, MaxResource: 1 << 12, Manifest: Limits{MaxItems: 10}})
		if err != nil {
			requireTyped(t, err)
			return
		}
		manifest, err := p.Manifest()
		for err == nil {
			var item Item
			if item, err = manifest.Next(); err != nil {
				break
			}
			file, err := p.Open(item.Loc, item.Representation)
			if err != nil {
				requireTyped(t, err)
				continue
			}
			if n, err := io.Copy(io.Discard, file); err != nil {
				requireTyped(t, err)
			} else if n > 1<<12 {
				t.Fatalf("unpacked %d bytes", n)
			}
		}
		if err != io.EOF {
			requireTyped(t, err)
		}
	})
}
