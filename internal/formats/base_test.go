package formats

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/iri"
	_ "github.com/tmshare/tmshare/internal/testenv" // takes -long
	"github.com/tmshare/tmshare/tmdm"
)

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
