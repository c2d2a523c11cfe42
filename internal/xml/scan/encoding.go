package scan

import (
	"bytes"
	"cmp"
	"io"
	"strings"

	"golang.org/x/text/transform"
)

// family is a family of encodings, detected from the first bytes (XML 1.0 appendix F, Autodetection of Character
// Encodings).
type family uint8

const (
	asciiLike family = iota // UTF-8, or the declared encoding
	utf8Mark                // UTF-8, by its byte order mark
	utf16BE
	utf16LE
	unreadable
)

// signatures are tried in this order: the mark of UTF-32 begins like that of UTF-16.
var signatures = []struct {
	bytes string
	family
	mark int // length of the byte order mark
}{
	{"\x00\x00\xFE\xFF", unreadable, 0}, // UTF-32
	{"\xFF\xFE\x00\x00", unreadable, 0},
	{"\x00\x00\x00<", unreadable, 0},
	{"<\x00\x00\x00", unreadable, 0},
	{"\x4C\x6F\xA7\x94", unreadable, 0}, // EBCDIC
	{"\xFE\xFF", utf16BE, 2},
	{"\xFF\xFE", utf16LE, 2},
	{"\x00<", utf16BE, 0},
	{"<\x00", utf16LE, 0},
	{"\xEF\xBB\xBF", utf8Mark, 3},
}

// detect looks at the first bytes of the document, and puts a decoder between
// them and the window if it needs one.
func (s *Scanner) detect() error {
	if s.end-s.pos < 4 {
		return errShort // no document is shorter than <a/>
	}
	s.detected = true
	s.charset = charsetOf(s.options.ContentType)
	begin := s.buf[s.pos:s.end]
	for _, sig := range signatures {
		if bytes.HasPrefix(begin, []byte(sig.bytes)) {
			s.family = sig.family
			s.pos += sig.mark
			s.base -= int64(sig.mark) // a mark is not part of the document
			break
		}
	}
	switch s.family {
	case utf16BE, utf16LE:
		s.decode(&utf16{big: s.family == utf16BE})
	case unreadable:
		return s.errorf(s.pos, "documents in UTF-32 or EBCDIC are not read; convert it to UTF-8")
	}
	return nil
}

// encoding acts on the encoding declaration (XML 1.0 §4.3.3, Character Encoding in
// Entities), which ends at s.pos, or on its absence, where label is "". The first bytes
// count before the charset of the Content-Type, and that before the declaration (RFC 7303
// §3.2). Without a charset, a document in another encoding than the one it names is in error.
func (s *Scanner) encoding(p int, label string) error {
	if s.charset == nil {
		if label == "" {
			return nil
		}
		return s.declaredEncoding(p, label)
	}
	if s.family != asciiLike {
		return nil
	}
	declared := encodingOf(cmp.Or(label, "UTF-8"))
	switch {
	case declared == nil || declared.Encoding == s.charset.Encoding:
		if t := s.charset.decoder(); t != nil {
			s.decode(t)
		}
	default:
		s.decodeBy(func(rest []byte) io.Reader {
			return &either{in: &s.meter, first: s.charset, second: declared, held: rest}
		})
	}
	return nil
}

// declaredEncoding applies the declared encoding if only the first bytes are known otherwise.
func (s *Scanner) declaredEncoding(p int, label string) error {
	upper := strings.ToUpper(label)
	contradicts := func(actual string) error {
		return s.errorf(p, "the document says that it is in %s, but it is in %s", excerpt(label), actual)
	}
	switch s.family {
	case utf8Mark:
		if !isUTF8(label) {
			return contradicts("UTF-8, by its byte order mark")
		}
		return nil
	case utf16BE, utf16LE:
		ok := upper == "UTF-16" || upper == "ISO-10646-UCS-2" || upper == "UTF-16BE" && s.family == utf16BE ||
			upper == "UTF-16LE" && s.family == utf16LE
		if !ok {
			return contradicts("UTF-16, by its first bytes")
		}
		return nil
	}
	if isWide(label) {
		return contradicts("an encoding of single bytes")
	}
	enc := encodingOf(label)
	if enc == nil {
		return s.errorf(p, "the encoding %s is not known; convert the document to UTF-8", excerpt(label))
	}
	if t := enc.decoder(); t != nil {
		s.decode(t)
	}
	return nil
}

func isUTF8(label string) bool {
	return strings.EqualFold(label, "UTF-8") || strings.EqualFold(label, "UTF8")
}

// isWide reports whether a label names an encoding with two or four bytes per character.
func isWide(label string) bool {
	upper := strings.ToUpper(label)
	return strings.HasPrefix(upper, "UTF-16") || strings.HasPrefix(upper, "UTF-32") ||
		strings.HasPrefix(upper, "ISO-10646-UCS-")
}

// decode decodes all bytes from s.pos on before they enter the window.
func (s *Scanner) decode(t transform.Transformer) {
	s.decodeBy(func(rest []byte) io.Reader { return newTranscoder(&s.meter, rest, t) })
}

// decodeBy replaces the input from s.pos on by another reader, which gets the rest of the window first.
func (s *Scanner) decodeBy(reader func(rest []byte) io.Reader) {
	rest := bytes.Clone(s.buf[s.pos:s.end])
	s.end = s.pos
	clear(s.buf[s.end : s.end+len(rest)+pad])
	s.inErr = nil // the meter still has it
	s.in = reader(rest)
}
