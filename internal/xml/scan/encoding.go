package scan

import (
	"bytes"
	"strings"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/ianaindex"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// family is what the first bytes tell about an encoding (XML 1.0 appendix F,
// Autodetection of Character Encodings).
type family uint8

const (
	asciiLike family = iota // UTF-8, or what the declaration says
	utf8Mark                // UTF-8, by its byte order mark
	utf16BE
	utf16LE
	unreadable
)

// signatures are tried in this order: the mark of UTF-32 begins like that of UTF-16.
var signatures = []struct {
	bytes string
	family
	mark int // how many of the bytes are a byte order mark
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

// declaredEncoding acts on the encoding declaration (XML 1.0 §4.3.3, Character
// Encoding in Entities), which ends at s.pos. A document in another encoding
// than the one it names is in error.
func (s *Scanner) declaredEncoding(p int, label string) error {
	upper := strings.ToUpper(label)
	contradicts := func(actual string) error {
		return s.errorf(p, "the document says that it is in %s, but it is in %s", excerpt(label), actual)
	}
	switch s.family {
	case utf8Mark:
		if !isUTF8(upper) {
			return contradicts("UTF-8, by its byte order mark")
		}
		return nil
	case utf16BE, utf16LE:
		ok := upper == "UTF-16" || upper == "ISO-10646-UCS-2" || upper == "UTF-16BE" && s.family == utf16BE || upper == "UTF-16LE" && s.family == utf16LE
		if !ok {
			return contradicts("UTF-16, by its first bytes")
		}
		return nil
	}
	switch {
	case isUTF8(upper):
		return nil
	case strings.HasPrefix(upper, "UTF-16"), strings.HasPrefix(upper, "UTF-32"), strings.HasPrefix(upper, "ISO-10646-UCS-"):
		return contradicts("an encoding of single bytes")
	}
	enc, err := ianaindex.IANA.Encoding(label)
	switch {
	case err != nil || enc == nil || enc == encoding.Replacement:
		return s.errorf(p, "the encoding %s is not known; convert the document to UTF-8", excerpt(label))
	case enc == unicode.UTF8:
		return nil
	case enc == charmap.ISO8859_1:
		s.decode(latin1{})
		return nil
	}
	s.decode(strict{enc.NewDecoder(), label})
	return nil
}

func isUTF8(upper string) bool { return upper == "UTF-8" || upper == "UTF8" }

// decode has everything from s.pos on decoded before it comes into the window.
func (s *Scanner) decode(t transform.Transformer) {
	rest := bytes.Clone(s.buf[s.pos:s.end])
	s.end = s.pos
	clear(s.buf[s.end : s.end+len(rest)+pad])
	s.inErr = nil // the meter still has it
	s.in = newTranscoder(&s.meter, rest, t)
}
