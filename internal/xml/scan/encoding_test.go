package scan

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/text/encoding/ianaindex"
	"golang.org/x/text/encoding/unicode"
)

// encoded returns a document in the encoding that it declares.
func encoded(t testing.TB, label, body string) []byte {
	enc, err := ianaindex.IANA.Encoding(label)
	require.NoError(t, err, label)
	out, err := enc.NewEncoder().String("<?xml version='1.0' encoding='" + label + "'?>" + body)
	require.NoError(t, err, label)
	return []byte(out)
}

func TestEncodings(t *testing.T) {
	for label, text := range map[string]string{
		"UTF-8":        "héllo 日本語 😀",
		"utf-8":        "ÿ",
		"ISO-8859-1":   "\u0080héllo ÿ §",
		"latin1":       "é",
		"L1":           "é",
		"ISO-8859-5":   "Привет",
		"ISO-8859-15":  "€ Œ",
		"US-ASCII":     "plain",
		"windows-1252": "“quoted” €",
		"KOI8-R":       "Привет",
		"macintosh":    "“quoted” é",
		"Shift_JIS":    "日本語 ｱ",
		"EUC-JP":       "日本語 ｱ",
		"ISO-2022-JP":  "日本語 abc 日本",
		"GBK":          "中文",
		"GB18030":      "中文 😀",
		"Big5":         "中文",
		"EUC-KR":       "한국어",
	} {
		body := "\r\n<a b='" + text + "'><!-- " + text + " -->" + strings.Repeat(text+" ", 30) + "&amp;\n<" + "b/></a>"
		want := trace(strings.NewReader("<?xml version='1.0' encoding='UTF-8'?>"+body), Options{Misc: true})
		require.NotContains(t, want, "error", label)
		document := encoded(t, label, body)
		assert.Equal(t, want, checkSizes(t, document, Options{Misc: true}), label)
	}
}

func TestUnicode(t *testing.T) {
	want := trace(strings.NewReader(rich), Options{Misc: true})
	assert.Equal(t, want, checkSizes(t, []byte("\uFEFF"+rich), Options{Misc: true}), "UTF-8 with a byte order mark")

	in16 := strings.Replace(rich, "UTF-8", "UTF-16", 1)
	for _, endian := range []unicode.Endianness{unicode.BigEndian, unicode.LittleEndian} {
		for _, mark := range []unicode.BOMPolicy{unicode.UseBOM, unicode.IgnoreBOM} {
			document, err := unicode.UTF16(endian, mark).NewEncoder().Bytes([]byte(in16))
			require.NoError(t, err)
			assert.Equal(t, want, checkSizes(t, document, Options{Misc: true}), "%v %v", endian, mark)
		}
	}
	// nothing needs to be declared (XML 1.0 §4.3.3)
	document, err := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().Bytes([]byte("<é>😀</é>"))
	require.NoError(t, err)
	assert.Equal(t, `<é>"😀"</é>`, content(string(document), Options{}))
}

func TestEncodingErrors(t *testing.T) {
	utf16 := func(s string) string {
		out, err := unicode.UTF16(unicode.BigEndian, unicode.UseBOM).NewEncoder().String(s)
		require.NoError(t, err)
		return out
	}
	declare := func(label, rest string) string { return "<?xml version='1.0' encoding='" + label + "'?>" + rest }
	checkContent(t, []contentCase{
		{declare("UTF-16", "<a/>"), "error 1:29: the document says that it is in UTF-16, but it is in an encoding of single bytes"},
		{"\uFEFF" + declare("ISO-8859-1", "<a/>"), "error 1:29: the document says that it is in ISO-8859-1, but it is in UTF-8, by its byte order mark"},
		{utf16(declare("UTF-8", "<a/>")), "error 1:29: the document says that it is in UTF-8, but it is in UTF-16, by its first bytes"},
		{utf16(declare("UTF-16LE", "<a/>")), "error 1:29: the document says that it is in UTF-16LE, but it is in UTF-16, by its first bytes"},
		{"\x00\x00\xFE\xFF\x00\x00\x00<", "error 1:1: documents in UTF-32 or EBCDIC are not read; convert it to UTF-8"},
		{"\x4C\x6F\xA7\x94\x93", "error 1:1: documents in UTF-32 or EBCDIC are not read; convert it to UTF-8"},
		{"\uFEFF", "error 1:4: the document ends before its root element"},
		{"\uFEFF\n", "error 2:1: the document ends before its root element"},
		{utf16("\n"), "error 2:1: the document ends before its root element"},
		// bytes that are not legal
		{declare("US-ASCII", "<a>é</a>"), "error 1:45: bytes that are not legal in US-ASCII"},
		{declare("windows-1253", "<a>\xd2</a>"), "error 1:49: bytes that are not legal in windows-1253"},
		{declare("Shift_JIS", "<a>\x81</a>"), "error 1:46: bytes that are not legal in Shift_JIS"},
		{declare("EUC-JP", "<a>\xff</a>"), "error 1:43: bytes that are not legal in EUC-JP"},
		{declare("EUC-JP", "<a/>\xc6"), "error 1:44: bytes that are not legal in EUC-JP"},
		{utf16("<a>x") + "\xDC\x00" + utf16("</a>")[2:], "error 1:5: the surrogate DC00 is not part of a pair"},
		{utf16("<a>x") + "\xD8\x00" + utf16("</a>")[2:], "error 1:5: the surrogate D800 is not part of a pair"},
		{utf16("<a>x") + "\xD8\x00", "error 1:5: the surrogate D800 is not part of a pair"},
		{utf16("<a/>") + "\x00", "error 1:5: the document ends inside a character"},
		{utf16("<a>\uFFFE</a>"), "error 1:4: the character U+FFFE is not allowed in XML"},
		{utf16("<a>\uFFFD</a>"), `<a>"�"</a>`},
		// no decoder reports that these are control characters
		{declare("ISO-8859-1", "<a>\x00</a>"), "error 1:47: the character U+0000 is not allowed in XML"},
	}, Options{})
}

// Decoding alone: whatever comes in, the decoders end.
func TestDecodersEnd(t *testing.T) {
	garbage := make([]byte, 0, 3*65536)
	for i := range 65536 {
		garbage = append(garbage, byte(i>>8), byte(i), byte(i*31))
	}
	for _, label := range []string{"ISO-8859-1", "ISO-2022-JP", "HZ-GB-2312", "Shift_JIS", "EUC-JP", "GB18030", "Big5", "EUC-KR", "US-ASCII", "IBM866", "UTF-8"} {
		for _, size := range []int{32, 4096} {
			document := append([]byte("<?xml version='1.0' encoding='"+label+"'?><a>"), garbage...)
			_, _, err := drain(NewScanner(iotest.HalfReader(bytes.NewReader(document)), Options{BufferSize: size}))
			assert.Error(t, err, label)
		}
	}
	for _, transformer := range []*utf16{{big: true}, {big: false}} {
		for skip := range 16 {
			d := newTranscoder(bytes.NewReader(garbage[skip*1000:]), garbage[:skip], transformer)
			_, err := io.Copy(io.Discard, onlyReader{d})
			var decoding *decodingError
			assert.True(t, errors.As(err, &decoding), err)
		}
	}
}

// A buffer that is too small for a character is an error, not an endless loop.
func TestTranscoderWithoutRoom(t *testing.T) {
	n, err := newTranscoder(strings.NewReader("\xe9"), nil, latin1{}).Read(make([]byte, 1))
	assert.Zero(t, n)
	assert.ErrorIs(t, err, io.ErrShortBuffer)
}

// onlyReader hides the other methods of a reader.
type onlyReader struct{ io.Reader }

func TestTranscodersAgreeWithShortBuffers(t *testing.T) {
	text := strings.Repeat("plain text, then é, ÿ\u00a0 and more of it ", 50)
	latin, err := ianaindex.IANA.Encoding("ISO-8859-1")
	require.NoError(t, err)
	in, err := latin.NewEncoder().Bytes([]byte(text))
	require.NoError(t, err)
	wide, err := unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM).NewEncoder().Bytes([]byte(text))
	require.NoError(t, err)
	for size := 4; size < 40; size++ {
		for skip := range 20 {
			for _, d := range []*transcoder{
				newTranscoder(iotest.HalfReader(bytes.NewReader(in[skip:])), in[:skip], latin1{}),
				newTranscoder(iotest.HalfReader(bytes.NewReader(wide[skip:])), wide[:skip], &utf16{}),
			} {
				var out []byte
				for p := make([]byte, size); ; {
					n, err := d.Read(p)
					out = append(out, p[:n]...)
					if err == io.EOF {
						break
					}
					require.NoError(t, err)
				}
				require.Equal(t, text, string(out))
			}
		}
	}
}
