package scan

import (
	"bytes"
	"io"
	"mime"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/ianaindex"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// charsetOf returns the encoding in the charset parameter of a Content-Type; nil if there is none, or one that does not
// extend ASCII, because the first bytes show those (RFC 7303 §3.2).
func charsetOf(contentType string) *namedEncoding {
	if contentType == "" {
		return nil
	}
	_, parameters, err := mime.ParseMediaType(contentType)
	if err != nil {
		return nil
	}
	if label := parameters["charset"]; label != "" {
		return encodingOf(label)
	}
	return nil
}

// namedEncoding is an encoding with its label in the document, or in its Content-Type.
type namedEncoding struct {
	encoding.Encoding
	label string
}

// encodingOf returns the encoding with a label, nil where it is unknown or does not extend ASCII.
func encodingOf(label string) *namedEncoding {
	if isUTF8(label) {
		return &namedEncoding{unicode.UTF8, label}
	}
	enc, err := ianaindex.IANA.Encoding(label)
	if err != nil || enc == nil || enc == encoding.Replacement || isWide(label) {
		return nil
	}
	return &namedEncoding{enc, label}
}

// decoder returns the transformer from the encoding to UTF-8. It is nil for UTF-8 itself, which the scanner checks.
func (e *namedEncoding) decoder() transform.Transformer {
	switch e.Encoding {
	case unicode.UTF8:
		return nil
	case charmap.ISO8859_1:
		return latin1{}
	}
	return strict{e.NewDecoder(), e.label}
}

// legal reports whether bytes are text in the encoding, without the character U+001B, which XML excludes. Unless they
// are the last, they may end inside a character.
func (e *namedEncoding) legal(b []byte, last bool) bool {
	t := e.decoder()
	if t == nil {
		t = encoding.UTF8Validator
	}
	for dst := make([]byte, 4<<10); ; {
		n, used, err := t.Transform(dst, b, last)
		switch b = b[used:]; {
		case bytes.IndexByte(dst[:n], escape) >= 0:
			return false
		case err == transform.ErrShortDst && used > 0:
			continue
		case err == transform.ErrShortSrc:
			return !last
		}
		return err == nil
	}
}

// either reads a document for which two encodings are named. It uses the first, unless the bytes are not legal in that.
// ASCII is the same in both; the bytes from the first other one on decide.
type either struct {
	in            io.Reader // remembers its error
	first, second *namedEncoding
	held          []byte // bytes read, but not returned
	err           error
	chosen        io.Reader
}

// decisive is the number of bytes, from the first one that is not ASCII on, that decide the encoding of a document.
const decisive = 64 << 10

func (e *either) Read(p []byte) (int, error) {
	for e.chosen == nil {
		plain := 0
		for plain < len(e.held) && e.held[plain] < 0x80 && e.held[plain] != escape {
			plain++
		}
		switch {
		case plain > 0:
			n := copy(p, e.held[:plain])
			e.held = e.held[n:]
			return n, nil
		case e.err == nil && len(e.held) < decisive:
			e.fill()
		case len(e.held) == 0:
			return 0, e.err
		default:
			e.choose()
		}
	}
	return e.chosen.Read(p)
}

// escape begins the parts of a text in ISO-2022-JP that are not ASCII.
const escape = 0x1B

func (e *either) fill() {
	b := make([]byte, len(e.held)+blockSize)
	n := copy(b, e.held)
	for empty := 0; e.err == nil && n == len(e.held); empty++ {
		if empty == emptyReads {
			e.err = io.ErrNoProgress
			break
		}
		var read int
		read, e.err = e.in.Read(b[n:])
		n += max(read, 0)
	}
	e.held = b[:n]
}

func (e *either) choose() {
	enc := e.second
	if e.first.legal(e.held, e.err == io.EOF) {
		enc = e.first
	}
	t := enc.decoder()
	if t == nil {
		t = transform.Nop
	}
	e.chosen = newTranscoder(e.in, e.held, t)
}
