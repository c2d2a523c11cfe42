package formats

import (
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/tmdm"
)

// Base returns the normal form of a base locator. It must be absolute and have a path, so that references can be
// resolved.
func Base(s string) (tmdm.Locator, error) {
	if _, err := iri.Resolve(s, "x"); err != nil {
		return "", fmt.Errorf(
			"%q cannot be the base of a document: give an absolute locator with a path, as in http://example.org/map", s)
	}
	normal, err := iri.Normalize(s)
	return tmdm.Locator(normal), err
}

// FileURL returns the locator of a file or folder (RFC 8089) in the normal form
// of internal/iri.
func FileURL(file string) (tmdm.Locator, error) {
	abs, err := filepath.Abs(file)
	if err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	slashed := filepath.ToSlash(abs)
	if !strings.HasPrefix(slashed, "/") { // C:/maps
		slashed = "/" + slashed
	}
	var b strings.Builder
	for i := 0; i < len(slashed); {
		r, n := utf8.DecodeRuneInString(slashed[i:])
		if strings.ContainsRune("%?#", r) || r < 0x20 || r == 0x7F || r == utf8.RuneError && n == 1 {
			fmt.Fprintf(&b, "%%%02X", slashed[i])
		} else {
			b.WriteString(slashed[i : i+n])
		}
		i += n
	}
	return tmdm.Locator("file://" + b.String()), nil
}

// filePath returns the path of a file URL, with slashes.
func filePath(l string) (string, bool) {
	rest, ok := strings.CutPrefix(l, "file://")
	if !ok {
		return "", false
	}
	rest = strings.TrimPrefix(rest, "localhost")
	if !strings.HasPrefix(rest, "/") {
		return "", false // another host
	}
	p, err := url.PathUnescape(rest)
	if err != nil || strings.ContainsRune(p, 0) {
		return "", false
	}
	if filepath.Separator != '/' && len(p) > 2 && p[2] == ':' { // /C:/maps
		p = p[1:]
	}
	return p, true
}

// relativeTo returns the path that leads from the folder of base to l, where
// the two have a scheme and an authority in common.
func relativeTo(base, l string) (string, bool) {
	baseRoot, basePath := splitRoot(base)
	root, p := splitRoot(l)
	if root != baseRoot || root == "" {
		return "", false
	}
	folder := basePath[:strings.LastIndexByte(basePath, '/')+1]
	folder, err := url.PathUnescape(folder)
	if err != nil {
		return "", false
	}
	p, err = url.PathUnescape(p)
	if err != nil || strings.ContainsRune(p, 0) {
		return "", false
	}
	rel, err := filepath.Rel(filepath.FromSlash(path.Clean("/"+folder)), filepath.FromSlash(path.Clean("/"+p)))
	return filepath.ToSlash(rel), err == nil
}

// splitRoot splits a hierarchical locator into scheme and authority, and path.
func splitRoot(l string) (root, p string) {
	scheme := strings.Index(l, "://")
	if scheme < 0 {
		return "", l
	}
	rest := l[scheme+3:]
	slash := strings.IndexByte(rest, '/')
	if slash < 0 {
		return l, "/"
	}
	return l[:scheme+3+slash], rest[slash:]
}
