package scan

import (
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	_ "github.com/tmshare/tmshare/internal/testenv" // takes -long
)

// The captured bytes are those of the document, however it is read.
func TestCapture(t *testing.T) {
	t.Parallel()
	for name, inner := range map[string]string{
		"nothing":          "",
		"text":             "text &amp; more",
		"elements":         `<c xmlns="urn:c" a='1'><d/>text<!-- comment --><?pi data?></c>`,
		"line ends":        "\r\n<c>\r</c>\n",
		"CDATA":            "<c><![CDATA[</b>]]></c>",
		"an empty element": "<c/>",
		"much":             strings.Repeat("<c>text</c>\n", 20_000),
		"long text":        "<c>" + strings.Repeat("text ", 40_000) + "</c>",
	} {
		document := "<a><b>before</b><b>" + inner + "</b><b>behind</b></a>"
		for _, s := range []*Scanner{
			NewScanner(strings.NewReader(document), Options{}),
			NewScanner(iotest.OneByteReader(strings.NewReader(document)), Options{}),
			NewScanner(strings.NewReader("\ufeff"+document), Options{BufferSize: 64}),
		} {
			var all []string
			for kind, err := s.Next(); err == nil; kind, err = s.Next() {
				switch {
				case s.Depth() != 2:
				case kind == StartElement:
					s.Capture()
				case kind == EndElement:
					all = append(all, string(s.Captured()))
				}
			}
			require.Equal(t, []string{"before", inner, "behind"}, all, name)
		}
	}
}
