package web

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
)

// Kept is content that is stored in a coding, and its size in bytes.
type Kept struct {
	io.ReadSeeker
	io.Closer
	size int64
}

// WriteKept serves a document stored in some codings, which open opens. It is opened only if the client does not have
// it. Ranges are of the stored bytes; a document stored compressed only is decompressed for clients that do not accept
// the coding.
func WriteKept(w http.ResponseWriter, r *http.Request, v Validator, open func(Coding) (Kept, error),
	in ...Coding) error {
	c, stored := Identity, in[0]
	if stored != Identity {
		var err error
		if c, err = negotiateCoding(r, in...); err != nil {
			return err
		}
	}
	if slices.Contains(in, c) {
		stored = c
	}
	setCoding(w.Header(), c)
	if done, err := Unchanged(w, r, v, c); done || err != nil {
		return err
	}
	k, err := open(stored)
	if err != nil {
		return err
	}
	RecorderOf(r).later = func() error { return k.send(w, r, v.Modified, c == stored) }
	return nil
}

// send answers with the content, as it is stored or unpacked.
func (k *Kept) send(w http.ResponseWriter, r *http.Request, modified time.Time, asStored bool) error {
	defer k.Close()
	if asStored {
		return serveRanges(w, r, modified, k.ReadSeeker, k.size)
	}
	z, err := gzip.NewReader(k)
	if err != nil || r.Method == http.MethodHead {
		return err
	}
	_, err = io.Copy(w, z)
	return err
}

// File is an open file.
type File interface {
	io.ReadSeekCloser
	Size() int64 // in bytes
}

// KeptFile is the content of an open file.
func KeptFile(f File) Kept { return Kept{f, f, f.Size()} }

// serveRanges answers with content of so many bytes, or with ranges of it. Ranges are of bytes, and
// of answers to GET: all other Range headers are ignored (RFC 9110 §14.2, Range).
func serveRanges(w http.ResponseWriter, r *http.Request, modified time.Time, content io.ReadSeeker, size int64) error {
	h := w.Header()
	h.Set("Content-Length", strconv.FormatInt(size, 10)) // ranges have one of their own
	given := r.Header.Get("Range")
	if given != "" {
		r = r.Clone(r.Context())
		r.Header.Del("Range")
		if unit, ranges, _ := strings.Cut(given, "="); ranges != "" && strings.EqualFold(unit, "bytes") &&
			r.Method == http.MethodGet {
			r.Header.Set("Range", "bytes="+ranges)
		}
	}
	ranged := &rangeWriter{ResponseWriter: w}
	http.ServeContent(ranged, r, "", modified, content)
	if ranged.failed {
		h.Set("Content-Range", fmt.Sprintf("bytes */%d", size))
		return Problemf(http.StatusRequestedRangeNotSatisfiable, "the range %q is not among the %d bytes that there are",
			given, size)
	}
	return nil
}

// rangeWriter keeps back the answer of http.ServeContent to a range that cannot
// be served, but for its headers.
type rangeWriter struct {
	http.ResponseWriter
	failed bool
}

func (w *rangeWriter) WriteHeader(status int) {
	if w.failed = status == http.StatusRequestedRangeNotSatisfiable; !w.failed {
		w.ResponseWriter.WriteHeader(status)
	}
}

func (w *rangeWriter) Write(p []byte) (int, error) {
	if w.failed {
		return len(p), nil
	}
	return w.ResponseWriter.Write(p)
}

func (w *rangeWriter) ReadFrom(from io.Reader) (int64, error) {
	if w.failed {
		return io.Copy(io.Discard, from)
	}
	return io.Copy(w.ResponseWriter, from)
}
