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

// File is an open file, with its content in a coding.
type File interface {
	io.ReadSeekCloser
	Size() int64 // in bytes
}

// WriteKept serves a document stored in some codings, which open opens. It is opened only if the client does not have
// it. Ranges are of the stored bytes; a document stored compressed only is decompressed for clients that do not accept
// the coding.
func WriteKept(w http.ResponseWriter, r *http.Request, v Validator, open func(Coding) (File, error),
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
	f, err := open(stored)
	if err != nil {
		return err
	}
	RecorderOf(r).later = func() error { return send(w, r, f, v.Modified, c == stored) }
	return nil
}

// send answers with the content of a file, as it is stored or unpacked.
func send(w http.ResponseWriter, r *http.Request, f File, modified time.Time, asStored bool) error {
	defer f.Close()
	if asStored {
		return serveRanges(w, r, modified, f)
	}
	z, err := gzip.NewReader(f)
	if err != nil || r.Method == http.MethodHead {
		return err
	}
	_, err = io.Copy(w, z)
	return err
}

// serveRanges answers with the content of a file, or with ranges of it. Ranges are of bytes, and
// of answers to GET: all other Range headers are ignored (RFC 9110 §14.2, Range).
func serveRanges(w http.ResponseWriter, r *http.Request, modified time.Time, f File) error {
	h := w.Header()
	h.Set("Content-Length", strconv.FormatInt(f.Size(), 10)) // ranges have one of their own
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
	http.ServeContent(ranged, r, "", modified, f)
	if ranged.failed {
		h.Set("Content-Range", fmt.Sprintf("bytes */%d", f.Size()))
		return Problemf(http.StatusRequestedRangeNotSatisfiable, "the range %q is not among the %d bytes that there are",
			given, f.Size())
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
