package scan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type contentCase struct {
	document string
	want     string // see content
}

func checkContent(t *testing.T, cases []contentCase, o Options) {
	t.Helper()
	for _, c := range cases {
		assert.Equal(t, c.want, content(c.document, o), "%q", c.document)
		checkSizes(t, []byte(c.document), o)
	}
}

// The structure of a document: XML 1.0 §2.1, §2.8.
func TestDocuments(t *testing.T) {
	checkContent(t, []contentCase{
		{"<a/>", "<a></a>"},
		{" \n<a\t\n/>\r\n ", "<a></a>"},
		{"<?xml version='1.0'?><a></a >", "<a></a>"},
		{"<?xml version='1.7' standalone='yes'?><a/>", "<a></a>"},
		{"", "error 1:1: the document is empty"},
		{"<a", "error 1:3: the document ends inside a tag"},
		{"  \n", "error 2:1: the document ends before its root element"},
		{"<!-- c -->\n", "error 2:1: the document ends before its root element"},
		{"text", "error 1:1: a document begins with a tag, not 't'"},
		{"<a>x</a", "error 1:8: the document ends inside an end tag"},
		{"<a><b>x", "error 1:8: the document ends inside <b>"},
		{"<a/><b/>", "error 1:5: a second root element"},
		{"<a/>\nx", "error 2:1: nothing but comments and processing instructions can stand behind the root element, not 'x'"},
		{"<a/><!DOCTYPE a>", "error 1:7: outside of the root element, <! begins a comment or, before it, <!DOCTYPE, not 'D'"},
		{"<!DOCTYPE a><!DOCTYPE a><a/>", "error 1:13: a second document type declaration"},
		{"<a/></a>", "error 1:5: an end tag without a start tag"},
		{"&lt;<a/>", "error 1:1: a document begins with a tag, not '&'"},
		{"<![CDATA[]]><a/>", "error 1:3: outside of the root element, <! begins a comment or, before it, <!DOCTYPE, not '['"},
		{" <?xml version='1.0'?><a/>", `error 1:2: <?xml can only stand at the very beginning of a document, as its XML declaration`},
		{"<?xml?><a/>", "error 1:1: <?xml can only stand at the very beginning of a document, as its XML declaration"},
		{"<?xml version='2.0'?><a/>", `error 1:20: XML of version "2.0" is not read, only 1.0`},
		{"<?xml encoding='UTF-8'?><a/>", `error 1:7: "version" is expected, not 'e'`},
		{"<?xml version='1.0'encoding='UTF-8'?><a/>", `error 1:20: "?>" is expected, not 'e'`},
		{"<?xml version='1.0' standalone='yes' encoding='UTF-8'?><a/>", `error 1:38: "?>" is expected, not 'e'`},
		{"<?xml version='1.0' standalone='true'?><a/>", `error 1:38: standalone is yes or no, not "true"`},
		{"<?xml version='1.0' encoding='-x'?><a/>", `error 1:29: "-x" is not the name of an encoding`},
		{"<?xml version='1.0' encoding='klingon'?><a/>", `error 1:29: the encoding klingon is not known; convert the document to UTF-8`},
		{"<?xml version=1.0?><a/>", "error 1:15: a value in quotes is expected, not '1'"},
	}, Options{})
}

// Tags and attributes: XML 1.0 §3.1.
func TestTags(t *testing.T) {
	checkContent(t, []contentCase{
		{`<a b = "1" c='"2"'/>`, `<a b="1" c="\"2\""></a>`},
		{"<a b='x\ty\r\nz\rw'/>", `<a b="x y z w"></a>`},
		{"<a b='&#9;&#xA;&#13;&#x20;'/>", `<a b="\t\n\r "></a>`},
		{"<a b='>'>></a>", `<a b=">">">"</a>`},
		{"<a><b></a></b>", "error 1:7: <b> is closed by </a>"},
		{"<a></ab>", "error 1:4: <a> is closed by </ab>"},
		{"<ab></a>", "error 1:5: <ab> is closed by </a>"},
		{"<a></A>", "error 1:4: <a> is closed by </A>"},
		{"<a></a b>", "error 1:8: the end tag </a> must end here, not 'b'"},
		{"<a></ a>", "error 1:6: a name is expected here, not ' '"},
		{"<a234567890123456789b><a23456789X123456789b/></a234567890123456789b>", "<a234567890123456789b><a23456789X123456789b></a23456789X123456789b></a234567890123456789b>"},
		{"<a234567890123456789b></a23456789X123456789b>", "error 1:23: <a234567890123456789b> is closed by </a23456789X123456789b>"},
		{"<a b='1' b='2'/>", "error 1:10: the attribute b is there twice in <a>"},
		{"<a b='1'c='2'/>", "error 1:9: white space or the end of the tag <a> is expected, not 'c'"},
		{"<a b/>", "error 1:5: '=' is expected behind the name of the attribute b, not '/'"},
		{"<a b=1/>", "error 1:6: the value of the attribute b must be in quotes, not '1'"},
		{"<a b='<'/>", "error 1:7: '<' cannot stand in an attribute value; it is written &lt;"},
		{"<a b='&'/>", "error 1:7: '&' begins no reference; as text it is written &amp;"},
		{"<a b='\x01'/>", "error 1:7: the character U+0001 is not allowed in XML"},
		{"<a / >", "error 1:5: '>' is expected behind '/' in a tag, not ' '"},
		{"<1a/>", "error 1:2: a name is expected here, not '1'"},
		{"<a!/>", "error 1:3: the name a… must go on or end here, not '!'"},
		{"<é·/>", "<é·></é·>"},
		{"<·/>", "error 1:2: a name is expected here, not '·'"},
		{"<a×/>", "error 1:3: the name a… must go on or end here, not '×'"},
		{"<a\xff/>", "error 1:3: the byte 0xff is not legal in UTF-8 here"},
		{"<?><a/>", "error 1:3: a name is expected here, not '>'"},
		{"<a><?></a>", "error 1:6: a name is expected here, not '>'"},
		{"<a><?p</a>", "error 1:7: white space or ?> is expected behind the target p, not '<'"},
		{"<a><?p?x?></a>", "error 1:8: '>' is expected behind '?', not 'x'"},
		{"<a><?XmL x?></a>", "error 1:4: <?XmL can only stand at the very beginning of a document, as its XML declaration"},
		{"<a><?xml-stylesheet x?></a>", "<a></a>"},
		{"<a><!-- -- --></a>", "error 1:9: -- can only stand in a comment to end it"},
		{"<a><!-- ---></a>", "error 1:9: -- can only stand in a comment to end it"},
		{"<a><!--></a>", "error 1:13: the document ends inside a comment"},
		{"<a><!- x --></a>", "error 1:7: a comment begins with <!--, not ' '"},
		{"<a><!x></a>", "error 1:6: in an element, <! begins a comment or a CDATA section, not 'x'"},
		{"<a><![cdata[]]></a>", "error 1:7: in an element, <! begins a comment or a CDATA section, not 'c'"},
	}, Options{})
}

// Text, references and characters: XML 1.0 §2.2, §2.4, §4.1.
func TestText(t *testing.T) {
	checkContent(t, []contentCase{
		{"<a>&lt;&gt;&amp;&apos;&quot;</a>", `<a>"<>&'\""</a>`},
		{"<a>&#60;b&#x3e;&#x0000000041;</a>", `<a>"<b>A"</a>`},
		{"<a>\r\n\r\r\n\n</a>", `<a>"\n\n\n\n"</a>`},
		{"<a>&#13;&#10;</a>", `<a>"\r\n"</a>`},
		{"<a><![CDATA[\r\n&lt;]] >]]]]></a>", `<a>"\n&lt;]] >]]"</a>`},
		{"<a>]] ]&gt; ]</a>", `<a>"]] ]> ]"</a>`},
		{"<a>]]]></a>", "error 1:5: ]]> cannot stand in text; it is written ]]&gt;"},
		{"<a>&nbsp;</a>", "error 1:4: the entity nbsp is not declared"},
		{"<a>a & b</a>", "error 1:6: '&' begins no reference; as text it is written &amp;"},
		{"<a>&a b;</a>", "error 1:4: '&' begins no reference; as text it is written &amp;"},
		{"<a>&a:b;</a>", "error 1:4: the name of an entity has no colon, unlike a:b"},
		{"<a>&#;</a>", "error 1:4: a character reference is digits between &# or &#x and ';'"},
		{"<a>&#xg;</a>", "error 1:4: a character reference is digits between &# or &#x and ';'"},
		{"<a>&#X41;</a>", "error 1:4: a character reference is digits between &# or &#x and ';'"},
		{"<a>&#1a;</a>", "error 1:4: a character reference is digits between &# or &#x and ';'"},
		{"<a>&#0;</a>", "error 1:4: a reference to U+0000, which is not allowed in XML"},
		{"<a>&#xD800;</a>", "error 1:4: a reference to U+D800, which is not allowed in XML"},
		{"<a>&#xFFFE;</a>", "error 1:4: a reference to U+FFFE, which is not allowed in XML"},
		{"<a>&#99999999999999999999;</a>", "error 1:4: a reference to U+110000, which is not allowed in XML"},
		{"<a>\x00</a>", "error 1:4: the character U+0000 is not allowed in XML"},
		{"<a>x\x1fy</a>", "error 1:5: the character U+001F is not allowed in XML"},
		{"<a>\x7f\u0080\u0085</a>", `<a>"\x7f\u0080\u0085"</a>`},
		{"<a>\ufffd\U0010ffff</a>", `<a>"�\U0010ffff"</a>`},
		{"<a>\ufffe</a>", "error 1:4: the character U+FFFE is not allowed in XML"},
		{"<a>\xed\xa0\x80</a>", "error 1:4: the byte 0xed is not legal in UTF-8 here"},
		{"<a>\xc0\x80</a>", "error 1:4: the byte 0xc0 is not legal in UTF-8 here"},
		{"<a>\xf4\x90\x80\x80</a>", "error 1:4: the byte 0xf4 is not legal in UTF-8 here"},
		{"<a>\xe6\x97</a>", "error 1:4: the byte 0xe6 is not legal in UTF-8 here"},
		{"<a>\xe6\x97", "error 1:6: the document ends inside <a>"},
	}, Options{})
}

// Long names are not distinguished by their beginning, end and length alone.
func TestSimilarNames(t *testing.T) {
	var document strings.Builder
	document.WriteString("<a>")
	for i := range 500 {
		fmt.Fprintf(&document, "<beginning-%03d-ending/>", i)
	}
	document.WriteString("</a>")
	s := NewScanner(strings.NewReader(document.String()), Options{})
	for i := -2; i < 500; {
		kind, err := s.Next()
		require.NoError(t, err)
		if kind == StartElement {
			if i++; i >= 0 {
				require.Equal(t, fmt.Sprintf("beginning-%03d-ending", i), s.Name().Local)
			}
		} else if s.Depth() == 1 {
			break
		}
	}
}

func TestSizesOfRuns(t *testing.T) {
	// every length around the words that are searched at once, and every place in them
	for n := range 40 {
		run := strings.Repeat("x", n)
		for _, stop := range []struct{ in, out string }{
			{"&amp;", "&"}, {"\t", "\t"}, {"\r\n", "\n"}, {"é", "é"}, {"]", "]"}, {">", ">"}, {"~\x7f", "~\x7f"}, {"😀", "😀"},
		} {
			document := "<a b='" + run + stop.in + run + "'>" + run + stop.in + run + "</a>"
			s := NewScanner(strings.NewReader(document), Options{})
			kind, err := s.Next()
			if !assert.NoError(t, err, document) {
				continue
			}
			assert.Equal(t, StartElement, kind)
			value, _ := s.Attr("", "b")
			assert.Equal(t, run+strings.NewReplacer("\t", " ", "\n", " ").Replace(stop.out)+run, string(value))
			_, err = s.Next()
			assert.NoError(t, err)
			assert.Equal(t, run+stop.out+run, string(s.Text()))
		}
		name := "n" + run
		assert.Equal(t, "<"+name+" "+name+`="">"`+run+`"</`+name+">", strings.Replace(content("<"+name+" "+name+"=''>"+run+"</"+name+">", Options{}), `"">`+"</", `"">""</`, 1))
	}
}
