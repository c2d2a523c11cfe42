package scan

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/testenv"
)

// trace returns all events of a document, a line each, with their positions and
// the error at the end.
func trace(r io.Reader, o Options) string {
	var out strings.Builder
	for s := NewScanner(r, o); ; {
		kind, err := s.Next()
		if err == io.EOF {
			return out.String()
		}
		if err != nil {
			again, sticky := s.Next()
			if again != 0 || sticky != err {
				return "an error that is not final"
			}
			fmt.Fprintf(&out, "error %v\n", err)
			return out.String()
		}
		line, column := s.Position()
		fmt.Fprintf(&out, "%d:%d %d ", line, column, s.Depth())
		switch kind {
		case StartElement:
			out.WriteString("<" + clark(s.Name()))
			for d := range s.Declarations {
				fmt.Fprintf(&out, " %s=%s", d.Prefix, d.Space)
			}
			for _, a := range s.Attrs() {
				fmt.Fprintf(&out, " %s=%q", clark(a.Name), a.Value)
			}
			out.WriteString(">\n")
		case EndElement:
			out.WriteString("</" + clark(s.Name()) + ">\n")
		case Text:
			fmt.Fprintf(&out, "%q\n", s.Text())
		case Comment:
			fmt.Fprintf(&out, "comment %q\n", s.Text())
		case ProcInst:
			fmt.Fprintf(&out, "instruction %s %q\n", s.Target(), s.Text())
		}
	}
}

func clark(n Name) string {
	if n.Space == "" {
		return n.Local
	}
	return fmt.Sprintf("%s{%s}%s", n.Prefix, n.Space, n.Local)
}

// content is the summary of a document: the events without positions, in one line, or the reason for its
// rejection.
func content(document string, o Options) string {
	events := trace(strings.NewReader(document), o)
	var out strings.Builder
	for line := range strings.Lines(events) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "error ") {
			return line
		}
		out.WriteString(strings.SplitN(line, " ", 3)[2])
	}
	return out.String()
}

// rich makes use of everything that the scanner knows.
const rich = "<?xml version='1.0' encoding=\"UTF-8\" standalone='no' ?>\r\n" +
	`<!-- before - the DTD -->
<!DOCTYPE r:root PUBLIC "-//X//Y" 'http://example.org/none.dtd' [
  <!ENTITY plain "Grüße &#38;#38; more">
  <!ENTITY nested "[&plain;|<e a='&plain;'>in &lt; an entity</e>]">
  <!ENTITY % decl "<!ENTITY late 'late'><?in dtd?><!ATTLIST d z CDATA 'zz'>">
  %decl;
  <!ENTITY pic SYSTEM "pic.gif" NDATA gif>
  <!NOTATION gif PUBLIC "gif viewer">
  <!ELEMENT r:root (#PCDATA | e | d)*>
  <!ELEMENT e ((a, b?)+ | (c | d)*)>
  <!ATTLIST d n NMTOKENS #IMPLIED  f CDATA #FIXED "&late; x"
            q (yes|no) 'no' xmlns:q CDATA "http://example.org/q">
]>
<?target some data ?>
<r:root xmlns:r="http://example.org/r" xmlns='http://example.org/default' r:a = "1	2
3&#10;&quot;'" b='x&plain;y' >
  text &amp; &#x1F600; &nested; tail<!-- - -->joined<![CDATA[<&]]]]><![CDATA[>]]>.
  <d n="  a   b " q:x="1"/><e/><dé·e xmlns="">日本語 ` + "\r\n and \r" + ` ]] > ]></dé·e
  ><?pi?><?pi x??></r:root>
<!-- after --> <?end?>
`

var sizes = []int{32, 57, 4096, 262144}

// checkSizes makes sure that the size of the buffer, and how the bytes come in,
// make no difference.
func checkSizes(t testing.TB, document []byte, o Options) string {
	t.Helper()
	want := trace(bytes.NewReader(document), o)
	for _, size := range sizes {
		o.BufferSize = size
		if got := trace(bytes.NewReader(document), o); got != want {
			assert.Equal(t, want, got, "with a buffer of %d bytes: %q", size, document)
		}
	}
	o.BufferSize = 32
	if got := trace(iotest.OneByteReader(bytes.NewReader(document)), o); got != want {
		assert.Equal(t, want, got, "byte by byte: %q", document)
	}
	if got := trace(iotest.DataErrReader(bytes.NewReader(document)), o); got != want {
		assert.Equal(t, want, got, "with io.EOF beside the last bytes: %q", document)
	}
	return want
}

func TestEventsOfARichDocument(t *testing.T) {
	want := `2:1 0 comment " before - the DTD "
7:3 0 instruction in "dtd"
15:1 0 instruction target "some data "
16:1 1 <r{http://example.org/r}root r=http://example.org/r =http://example.org/default r{http://example.org/r}a="1 2 3\n\"'" b="xGrüße & morey">
17:31 1 "\n  text & 😀 [Grüße & more|"
18:24 2 <{http://example.org/default}e a="Grüße & more">
18:24 2 "in < an entity"
18:24 2 </{http://example.org/default}e>
18:24 1 "] tail"
18:37 1 comment " - "
18:47 1 "joined<&]]>.\n  "
19:3 2 <{http://example.org/default}d q=http://example.org/q n="a b" q{http://example.org/q}x="1" z="zz" f="late x" q="no">
19:3 2 </{http://example.org/default}d>
19:28 2 <{http://example.org/default}e>
19:28 2 </{http://example.org/default}e>
19:32 2 <dé·e =>
19:49 2 "日本語 \n and \n ]] > ]>"
21:9 2 </dé·e>
22:4 1 instruction pi ""
22:10 1 instruction pi "x?"
22:19 1 </r{http://example.org/r}root>
23:1 0 comment " after "
23:16 0 instruction end ""
`
	assert.Equal(t, want, checkSizes(t, []byte(rich), Options{Misc: true}))
}

// Without Options.Misc, comments and processing instructions leave no trace,
// also not as a gap in a text.
func TestTextIsOneEvent(t *testing.T) {
	assert.Equal(t, `<a>"xy<z>"<b></b>"end"</a>`, content("<a>x<!-- c -->y<![CDATA[<z]]>&gt;<b/><?p?>en<?p?>d</a>", Options{}))
	assert.Equal(t, `<a></a>`, content("<a><!-- c --><![CDATA[]]></a>", Options{}))
}

// Lines are counted in larger or smaller steps, with the same result.
func TestPlaces(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		text := make([]byte, random.IntN(300))
		for i := range text {
			text[i] = "\n\rabcdefghijklmnopqrstuvwxyz"[random.IntN(3+random.IntN(26))]
		}
		want := place{line: 1, column: 1}
		for i := range text {
			want.advance(text[i : i+1])
		}
		got := place{line: 1, column: 1}
		for from := 0; from < len(text); {
			to := min(len(text), from+1+random.IntN(100))
			got.advance(text[from:to])
			from = to
		}
		require.Equal(t, want, got, "%q", text)
	}
	lines := place{line: 1, column: 1}
	lines.advance([]byte("a\nb\r\nc\rd\n\rxyz"))
	assert.Equal(t, place{offset: 13, line: 6, column: 4}, lines)
}

func TestAccessors(t *testing.T) {
	s := NewScanner(strings.NewReader(`<a b="1" xmlns:p="u" xmlns:q="v" p:b="2"/>`), Options{})
	for range s.Declarations {
		t.Error("a declaration before the root element")
	}
	kind, err := s.Next()
	require.NoError(t, err)
	assert.Equal(t, "StartElement", kind.String())
	for space, want := range map[string]string{"": "1", "u": "2"} {
		value, ok := s.Attr(space, "b")
		assert.True(t, ok)
		assert.Equal(t, want, string(value))
	}
	_, ok := s.Attr("v", "b")
	assert.False(t, ok)
	_, ok = s.Attr("", "c")
	assert.False(t, ok)
	for d := range s.Declarations {
		assert.Equal(t, Binding{"p", "u"}, d)
		break
	}
}

func TestBufferSizeMakesNoDifference(t *testing.T) {
	testenv.SkipUnderRace(t)
	cases := 0
	for _, c := range conformanceSuite(t) {
		if cases++; !testenv.Long() && cases%5 != 0 {
			continue
		}
		checkSizes(t, c.document, Options{URI: c.ID, Misc: cases%2 == 0, SkipUnread: cases%3 == 0})
	}
	assert.Greater(t, cases, 2000)
	checkSizes(t, topicMap(300), Options{})
}
