package server

import (
	"bytes"
	"io"
	"net/http"
	"strconv"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/store"
)

// atomDocument is a feed or an entry.
type atomDocument interface{ Encode(io.Writer) error }

// writeAtom answers with an Atom document. Its ETag is made of its bytes.
func (s *Server) writeAtom(w http.ResponseWriter, r *http.Request, document atomDocument, cache string) error {
	var b bytes.Buffer
	if err := document.Encode(&b); err != nil {
		return err
	}
	return s.writeAtomBytes(w, r, digest(b.Bytes()), cache, func() ([]byte, error) { return b.Bytes(), nil })
}

// writeAtomOf answers with the Atom document that build makes of a state. It is
// made only for those who do not know it, and where it was not made lately: then
// it needs a view.
func (s *Server) writeAtomOf(w http.ResponseWriter, r *http.Request, cache, state string, v *store.View, build func(*store.View) (*feeds.Feed, error)) error {
	return s.writeAtomBytes(w, r, s.stateTag(r, state), cache, func() ([]byte, error) {
		if v == nil {
			return nil, errNeedsView
		}
		document, err := build(v)
		if err != nil {
			return nil, err
		}
		var b bytes.Buffer
		err = document.Encode(&b)
		return b.Bytes(), err
	})
}

func (s *Server) writeAtomBytes(w http.ResponseWriter, r *http.Request, tag, cache string, encode func() ([]byte, error)) error {
	h := w.Header()
	h.Set("Vary", "Accept, Accept-Encoding")
	if err := acceptsAtom(r); err != nil {
		return err
	}
	h.Set("Content-Type", feeds.MediaTypeAtom)
	return s.writeBytes(w, r, tag, cache, encode)
}

// writeBytes answers with a document. It is encoded only for those who do not know it, and
// where it was not lately.
func (s *Server) writeBytes(w http.ResponseWriter, r *http.Request, tag, cache string, encode func() ([]byte, error)) error {
	c, err := negotiateCoding(r, zstd1, gzipped)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Cache-Control", cache)
	setCoding(h, c)
	v := validator{tag, exchangeOf(r).settled}
	if done, err := unchanged(w, r, v, c); done || err != nil {
		return err
	}
	b := s.recent.get(v.etag(c))
	if b == nil {
		if b, err = encode(); err != nil {
			return err
		}
		if b, err = s.packers.packed(b, c); err != nil {
			return err
		}
		s.recent.put(v.etag(c), b)
	}
	h.Set("Content-Length", strconv.Itoa(len(b)))
	_, err = w.Write(b)
	return err
}

func setCoding(h http.Header, c coding) {
	if c != identity {
		h.Set("Content-Encoding", string(c))
	}
}
