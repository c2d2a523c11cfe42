package iri

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	_ "github.com/tmshare/tmshare/internal/testenv" // takes -long
)

// The examples of RFC 3986 §5.4.1 and §5.4.2, and the cases beyond them that
// topic maps bring.
func TestResolve(t *testing.T) {
	const base = "http://a/b/c/d;p?q"
	rfc := map[string]string{
		"g:h": "g:h", "g": "http://a/b/c/g", "./g": "http://a/b/c/g", "g/": "http://a/b/c/g/",
		"/g": "http://a/g", "//g": "http://g", "?y": "http://a/b/c/d;p?y", "g?y": "http://a/b/c/g?y",
		"#s": "http://a/b/c/d;p?q#s", "g#s": "http://a/b/c/g#s", "g?y#s": "http://a/b/c/g?y#s",
		";x": "http://a/b/c/;x", "g;x": "http://a/b/c/g;x", "g;x?y#s": "http://a/b/c/g;x?y#s",
		"": "http://a/b/c/d;p?q", ".": "http://a/b/c/", "./": "http://a/b/c/", "..": "http://a/b/",
		"../": "http://a/b/", "../g": "http://a/b/g", "../..": "http://a/", "../../": "http://a/",
		"../../g": "http://a/g", "../../../g": "http://a/g", "../../../../g": "http://a/g",
		"/./g": "http://a/g", "/../g": "http://a/g", "g.": "http://a/b/c/g.", ".g": "http://a/b/c/.g",
		"g..": "http://a/b/c/g..", "..g": "http://a/b/c/..g", "./../g": "http://a/b/g",
		"./g/.": "http://a/b/c/g/", "g/./h": "http://a/b/c/g/h", "g/../h": "http://a/b/c/h",
		"g;x=1/./y": "http://a/b/c/g;x=1/y", "g;x=1/../y": "http://a/b/c/y",
		"g?y/./x": "http://a/b/c/g?y/./x", "g?y/../x": "http://a/b/c/g?y/../x",
		"g#s/./x": "http://a/b/c/g#s/./x", "g#s/../x": "http://a/b/c/g#s/../x",
	}
	for ref, want := range rfc {
		got, err := Resolve(base, ref)
		require.NoError(t, err, ref)
		assert.Equal(t, want, got, "reference %q", ref)
	}
	for _, c := range [][3]string{
		{"http://host", "x", "http://host/x"},
		{"http://host/maps#", "#t1", "http://host/maps#t1"},
		{"http://host/maps#", "topic/t1", "http://host/topic/t1"},
		{"http://host/maps/", "#t1", "http://host/maps/#t1"},
		{"file:/a/b.xtm", "c.xtm", "file:/a/c.xtm"},
		{"urn:x:y", "#z", "urn:x:y#z"},
		{"http://host/", "straße", "http://host/straße"},
	} {
		got, err := Resolve(c[0], c[1])
		require.NoError(t, err, c)
		assert.Equal(t, c[2], got)
	}
}

func TestResolveErrors(t *testing.T) {
	for _, c := range [][2]string{{"", "x"}, {"relative/base", "#x"}, {"urn:x:y", "z"}, {"http://a/", "b\x01"}, {"http://a/", "b\xff"}} {
		_, err := Resolve(c[0], c[1])
		var e *Error
		assert.ErrorAs(t, err, &e, "%q on %q", c[1], c[0])
	}
}

func TestNormalize(t *testing.T) {
	for in, want := range map[string]string{
		"http://example.org/test%20folder/#topic": "http://example.org/test folder/#topic",
		"HTTP://Example.org/%7euser":              "http://Example.org/~user",
		"http://example.org/a%2fb+c":              "http://example.org/a%2Fb+c",
		"http://example.org/%c3%a5":               "http://example.org/%C3%A5",
		"http://example.org/å":                    "http://example.org/å",
		"http://example.org/100%":                 "http://example.org/100%25",
		"http://a/%%341":                          "http://a/%2541",
		"urn:isbn:0":                              "urn:isbn:0",
	} {
		got, err := Normalize(in)
		require.NoError(t, err)
		assert.Equal(t, want, got)
		again, err := Normalize(got)
		require.NoError(t, err)
		assert.Equal(t, got, again, "normalising twice is normalising once")
	}
	_, err := Normalize("no/scheme")
	assert.Error(t, err)
}

func FuzzResolve(f *testing.F) {
	f.Add("http://a/b/c/d;p?q", "../g?y#s")
	f.Add("urn:x", "#%2")
	f.Fuzz(func(t *testing.T, base, ref string) {
		got, err := Resolve(base, ref)
		if err != nil {
			return
		}
		if !IsAbsolute(got) {
			t.Fatalf("Resolve(%q, %q) = %q, not absolute", base, ref, got)
		}
		if again, err := Normalize(got); err != nil || again != got {
			t.Fatalf("Normalize(%q) = %q, %v: not idempotent", got, again, err)
		}
	})
}
