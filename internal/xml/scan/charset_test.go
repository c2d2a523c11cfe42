package scan

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/unicode"
)

// textOf returns the text of a document that came with a Content-Type.
func textOf(r io.Reader, contentType string) (string, error) {
	s := NewScanner(r, Options{ContentType: contentType})
	var b strings.Builder
	for {
		switch kind, err := s.Next(); {
		case err == io.EOF:
			return b.String(), nil
		case err != nil:
			return "", err
		case kind == Text:
			b.Write(s.Text())
		}
	}
}

// A byte order mark counts before the charset of the Content-Type, and that before the declaration, unless the bytes
// are no text in it (RFC 7303 §3.2).
func TestCharsetOfTheContentType(t *testing.T) {
	latin := func(s string) string { return must(charmap.ISO8859_1.NewEncoder().String(s)) }
	windows := func(s string) string { return must(charmap.Windows1252.NewEncoder().String(s)) }
	jis := func(s string) string { return must(japanese.ISO2022JP.NewEncoder().String(s)) }
	wide := func(s string) string {
		return must(unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM).NewEncoder().String(s))
	}
	declared := func(label, body string) string {
		return `<?xml version="1.0" encoding="` + label + `"?><a>` + body + `</a>`
	}
	long := strings.Repeat("plain text, and more of it. ", 20_000)
	for name, c := range map[string]struct{ contentType, document, want string }{
		"no parameter":                                {"application/xml", declared("ISO-8859-1", latin("é")), "é"},
		"the same":                                    {"application/xml; charset=iso-8859-1", declared("ISO-8859-1", latin("é")), "é"},
		"no declaration":                              {"application/xml; charset=iso-8859-1", "<a>" + latin("é") + "</a>", "é"},
		"no encoding in the declaration":              {`text/xml;charset="ISO-8859-1"`, `<?xml version="1.0"?><a>` + latin("é") + "</a>", "é"},
		"another declaration":                         {"application/atom+xml; charset=UTF-8", declared("ISO-8859-1", "é"), "é"},
		"a transcoded document":                       {"application/xml; charset=windows-1252", declared("UTF-8", windows("“é”")), "“é”"},
		"an unknown declaration":                      {"application/xml; charset=utf-8", declared("x-none", "é"), "é"},
		"a declaration of UTF-16":                     {"application/xml; charset=utf-8", declared("UTF-16", "é"), "é"},
		"UTF-8 that is none":                          {"application/xml; charset=utf-8", declared("ISO-8859-1", latin("né à")), "né à"},
		"ASCII that is none":                          {"text/xml; charset=us-ascii", declared("UTF-8", "é"), "é"},
		"ASCII that is none, undeclared":              {"text/xml; charset=us-ascii", "<a>é</a>", "é"},
		"a character that windows-1252 has not":       {"application/xml; charset=windows-1252", declared("ISO-8859-1", "\x81 "+latin("é")), "\u0081 é"},
		"JIS":                                         {"application/xml; charset=ISO-2022-JP", declared("UTF-8", jis("日本語")), "日本語"},
		"JIS that is declared alone":                  {"application/xml; charset=us-ascii", declared("ISO-2022-JP", jis("日本語")), "日本語"},
		"a byte order mark":                           {"application/xml; charset=iso-8859-1", "\uFEFF" + declared("ISO-8859-1", "é"), "é"},
		"a byte order mark of UTF-16":                 {"application/xml; charset=utf-8", "\xFF\xFE" + wide(declared("UTF-8", "é")), "é"},
		"UTF-16 without a mark":                       {"application/xml; charset=utf-16le", wide(declared("UTF-16", "é")), "é"},
		"UTF-16, declared as UTF-8":                   {"application/xml; charset=utf-8", wide(declared("UTF-16", "é")), "é"},
		"an unknown parameter":                        {"application/xml; charset=x-none", declared("ISO-8859-1", latin("é")), "é"},
		"declared as UTF-16, and is not":              {"application/xml; charset=utf-16", declared("ISO-8859-1", latin("é")), "é"},
		"an empty parameter":                          {"application/xml; charset=", declared("ISO-8859-1", latin("é")), "é"},
		"no media type":                               {";;", declared("ISO-8859-1", latin("é")), "é"},
		"far behind, in the first":                    {"application/xml; charset=utf-8", declared("ISO-8859-1", long+"é"), long + "é"},
		"far behind, in the second":                   {"application/xml; charset=utf-8", declared("ISO-8859-1", long+latin("é")), long + "é"},
		"what only looks like the first at its begin": {"application/xml; charset=utf-8", declared("ISO-8859-1", latin("Ã© é")+long), "Ã© é" + long},
		"a character that the window cuts":            {"application/xml; charset=utf-8", declared("ISO-8859-1", "é"+strings.Repeat("x", decisive-3)+"é"+long), "é" + strings.Repeat("x", decisive-3) + "é" + long},
	} {
		got, err := textOf(strings.NewReader(c.document), c.contentType)
		if assert.NoError(t, err, name) && got != c.want {
			assert.Equal(t, clip(c.want), clip(got), name)
		}
		if len(c.document) < 1000 {
			got, err = textOf(iotest.OneByteReader(strings.NewReader(c.document)), c.contentType)
			assert.NoError(t, err, name)
			assert.Equal(t, c.want, got, name)
		}
	}
	for name, c := range map[string]struct{ contentType, document, want string }{
		"a mark and a declaration, without a parameter": {"application/xml", "\uFEFF" + declared("ISO-8859-1", "é"), "the document says that it is in ISO-8859-1, but it is in UTF-8, by its byte order mark"},
		"text in neither":               {"application/xml; charset=us-ascii", declared("UTF-8", latin("é")), "UTF-8"},
		"neither, undeclared":           {"application/xml; charset=utf-8", "<a>" + latin("é") + "</a>", "UTF-8"},
		"legal at first, and then not":  {"application/xml; charset=utf-8", declared("ISO-8859-1", "é"+long+latin("é")+"x"), "UTF-8"},
		"the end inside of a character": {"application/xml; charset=utf-8", declared("Shift_JIS", "\x82"), "Shift_JIS"},
	} {
		_, err := textOf(strings.NewReader(c.document), c.contentType)
		assert.ErrorContains(t, err, c.want, name)
	}
	failing := io.MultiReader(strings.NewReader(declared("ISO-8859-1", "é")), iotest.ErrReader(io.ErrClosedPipe))
	_, err := textOf(failing, "application/xml; charset=utf-8")
	require.ErrorIs(t, err, io.ErrClosedPipe)
}

func clip(s string) string { return s[:min(len(s), 40)] + "…" + s[max(0, len(s)-40):] }

func must(s string, err error) string {
	if err != nil {
		panic(err)
	}
	return s
}
