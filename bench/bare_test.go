package bench_test

import (
	"bytes"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// childBare is the folder of a child process that serves files as they are.
const childBare = "TMSHARE_BENCH_CHILD_BARE"

// bareTag is the ETag of all that it serves.
const bareTag = `"0123456789abcdef0123456789abcdef-gzip"`

// serveBare starts a process that has files in memory, and answers with those of the names that end in .gz where a
// client takes gzip.
func serveBare(b *testing.B, files map[string][]byte) *node {
	folder := b.TempDir()
	for name, content := range files {
		require.NoError(b, os.WriteFile(filepath.Join(folder, name), content, 0o600))
	}
	return startChild(b, childBare+"="+folder)
}

// serveFiles is the work of the child process.
func serveFiles(folder string) error {
	files := map[string][]byte{}
	all, err := os.ReadDir(folder)
	for _, f := range all {
		if err == nil {
			files["/"+f.Name()], err = os.ReadFile(filepath.Join(folder, f.Name()))
		}
	}
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	return serveUntilTold(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Type", "application/atom+xml")
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
		h.Set("Vary", "Accept-Encoding")
		h.Set("ETag", bareTag)
		content := files[r.URL.Path]
		if packed := files[r.URL.Path+".gz"]; packed != nil && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			h.Set("Content-Encoding", "gzip")
			content = packed
		}
		switch {
		case r.Header.Get("If-None-Match") == bareTag:
			w.WriteHeader(http.StatusNotModified)
		case r.Header.Get("Range") != "":
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
		default:
			h.Set("Content-Length", strconv.Itoa(len(content)))
			_, _ = w.Write(content)
		}
	}), listener)
}
