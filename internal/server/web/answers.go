package web

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"time"
)

// Answers writes answers: it compresses them, and caches recent ones. It is safe for concurrent use.
type Answers struct {
	recent  *recentBytes // by ETag
	packers packers
	renders chan struct{} // holds one element for each running stream
	wait    time.Duration // for a place among them
}

// NewAnswers keeps at most so many bytes of answers, and writes at most so many streams at a time. A client
// waits for a place among them for the time that is given, and then has to try again.
func NewAnswers(recent, streams int, wait time.Duration) *Answers {
	a := &Answers{recent: newRecentBytes(recent), renders: make(chan struct{}, streams), wait: wait}
	a.packers.init()
	return a
}

// WriteSmall serves a document that is made for each request. Its ETag is a hash of its bytes. It varies by the headers
// in Vary, or else by Accept-Encoding.
func (a *Answers) WriteSmall(w http.ResponseWriter, r *http.Request, mediaType, cache string,
	write func(io.Writer) error) error {
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	if w.Header().Get("Vary") == "" {
		w.Header().Set("Vary", "Accept-Encoding")
	}
	w.Header().Set("Content-Type", mediaType)
	return a.WriteBytes(w, r, Digest(b.Bytes()), cache, func() ([]byte, error) { return b.Bytes(), nil })
}

// WriteBytes serves a document. It is encoded only if the client does not have it, and it is not cached.
func (a *Answers) WriteBytes(w http.ResponseWriter, r *http.Request, tag, cache string,
	encode func() ([]byte, error)) error {
	return a.WriteMade(w, r, Validator{tag, RecorderOf(r).Settled}, cache, encode)
}

// WriteMade is WriteBytes for a document with another time of its last change than that of the collection.
func (a *Answers) WriteMade(w http.ResponseWriter, r *http.Request, v Validator, cache string,
	encode func() ([]byte, error)) error {
	c, err := negotiateCoding(r, zstd1, Gzipped)
	if err != nil {
		return err
	}
	if known := r.Header.Values("If-None-Match"); c == zstd1 && NamesETag(known, v.etag(Gzipped), true) &&
		!NamesETag(known, v.etag(zstd1), true) {
		if packed, _ := negotiateCoding(r, Gzipped); packed == Gzipped { // as a large document was served, from a file
			c = packed
		}
	}
	h := w.Header()
	h.Set("Cache-Control", cache)
	setCoding(h, c)
	if done, err := Unchanged(w, r, v, c); done || err != nil {
		return err
	}
	b, err := a.recent.get(v.etag(c), func() ([]byte, error) { return a.packers.packed(encode, c) })
	if err != nil {
		return err
	}
	h.Set("Content-Length", strconv.Itoa(len(b)))
	RecorderOf(r).later = func() error {
		_, err := w.Write(b)
		return err
	}
	return nil
}

func setCoding(h http.Header, c Coding) {
	h.Del("Content-Encoding")
	if c != Identity {
		h.Set("Content-Encoding", string(c))
	}
}

// WriteRendered streams a document that is made on request. Caches must revalidate, but need not fetch it again.
func (a *Answers) WriteRendered(w http.ResponseWriter, r *http.Request, made Validator,
	render func(io.Writer) error) error {
	c, err := negotiateCoding(r, zstd1, Gzipped)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Cache-Control", "no-cache")
	setCoding(h, c)
	if done, err := Unchanged(w, r, made, c); done || err != nil {
		return err
	}
	if r.Method == http.MethodHead {
		return nil
	}
	return RecorderOf(r).inTurn(&turn{places: a.renders, wait: a.wait, what: "large answers"}, func() error {
		return a.packers.pack(w, c, render)
	})
}
