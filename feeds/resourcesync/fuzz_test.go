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

var long = strings.Repeat("a", 5000)

// amplifyingPage returns a page with a base of a length, and links on it.
func amplifyingPage(length, links int) string {
	return `<base href="http://example.com/` + strings.Repeat("b", length) + `/">` + strings.Repeat(`<link rel="resourcesync" href="a">`, links)
}

// A document that is read satisfies the invariants of the model. If it can also be written, the written
// document means the same.
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
		// Parts that are written once and apply often: the names of namespaces, and an xml:base that is not
		// needed.
		strings.Replace(inList(strings.Repeat(`<url><loc>a</loc><n:x/><rs:ln rel="alternate" href="b" n:y="z"/></url>`, 20)), "<urlset", `<urlset xml:base="http://example.com/`+long+`/" xmlns:n="urn:`+long+`"`, 1),
		inList(`<url xmlns="` + NamespaceSitemap + `"><loc>` + long + long + `</loc></url>`),
		`<!DOCTYPE urlset [<!ENTITY a "` + long + `"><!ENTITY b "` + strings.Repeat("&a;", 20) + `"><!ATTLIST url x CDATA "` + long + `">]>` + inList("<url><loc>&b;</loc></url>"),
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
		size := 0
		for _, i := range items {
			size += len(i.Loc)
			for _, l := range i.Links {
				size += len(l.Href)
			}
		}
		// Each may bring in the address of the document. 9: the length of a byte in UTF-8, escaped.
		if most := 9*len(document) + 100*len(items)*(1+limits.MaxLinks); size > most {
			t.Fatalf("%d bytes of URIs are made of %d", size, len(document))
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
		amplifyingPage(5000, 20), amplifyingPage(9<<10, 20), strings.Repeat("Sitemap: a\n", 20),
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
			if len(found) > maxFound {
				t.Fatalf("found %d", len(found))
			}
			for _, uri := range found {
				if len(uri) > maxURI || !iri.IsAbsolute(uri) || strings.ContainsAny(uri, " \t\r\n\x00") || seen[uri] {
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
