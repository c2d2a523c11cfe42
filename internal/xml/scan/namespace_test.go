package scan

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Namespaces in XML 1.0.
func TestNamespaces(t *testing.T) {
	checkContent(t, []contentCase{
		{`<p:a xmlns:p="u"/>`, `<p{u}a p=u></p{u}a>`},
		{`<a xmlns="u" b="1"><b xmlns=""/><c/></a>`, `<{u}a =u b="1"><b =></b><{u}c></{u}c></{u}a>`},
		{`<p:a xmlns:p="u"><p:a xmlns:p="v"/><p:a/></p:a>`, `<p{u}a p=u><p{v}a p=v></p{v}a><p{u}a></p{u}a></p{u}a>`},
		{`<a xml:lang="en" xmlns:xml="http://www.w3.org/XML/1998/namespace"/>`,
			`<a xml=http://www.w3.org/XML/1998/namespace xml{http://www.w3.org/XML/1998/namespace}lang="en"></a>`},
		{`<a xmlns:p=" &#x75; "/>`, `<a p= u ></a>`},
		{`<xmlns/>`, `<xmlns></xmlns>`},
		// §5 Prefix Declared
		{`<p:a/>`, "error 1:2: the prefix of the element p:a is not declared"},
		{`<a p:b=""/>`, "error 1:2: the prefix of the attribute p:b is not declared"},
		{`<a><b xmlns:p="u"/><p:c/></a>`, "error 1:21: the prefix of the element p:c is not declared"},
		// §3 Reserved Prefixes and Namespace Names
		{`<a xmlns:xml="u"/>`, "error 1:2: the prefix xml can only be declared as http://www.w3.org/XML/1998/namespace"},
		{`<a xmlns:p="http://www.w3.org/XML/1998/namespace"/>`, "error 1:2: the prefix p cannot be declared as http://www.w3.org/XML/1998/namespace, which is for xml alone"},
		{`<a xmlns="http://www.w3.org/XML/1998/namespace"/>`, "error 1:2: the default namespace cannot be declared as http://www.w3.org/XML/1998/namespace, which is for xml alone"},
		{`<a xmlns:xmlns="u"/>`, "error 1:2: the prefix xmlns cannot be declared"},
		{`<a xmlns="http://www.w3.org/2000/xmlns/"/>`, "error 1:2: the default namespace cannot be declared as http://www.w3.org/2000/xmlns/, which is for xmlns alone"},
		{`<xmlns:a/>`, "error 1:2: the prefix xmlns cannot be used in the name of an element, <xmlns:a>"},
		// §5 No Prefix Undeclaring
		{`<a xmlns:p=""/>`, "error 1:2: the prefix p is declared without a namespace"},
		// §4 Qualified Names
		{`<a:b:c/>`, "error 1:2: the name a:b:c has two colons"},
		{`<:a/>`, "error 1:2: the name :a has a colon, but not a name on both of its sides"},
		{`<a:/>`, "error 1:2: the name a: has a colon, but not a name on both of its sides"},
		{`<a:1 xmlns:a="u"/>`, "error 1:2: the name a:1 has a colon, but not a name on both of its sides"},
		{`<a b:="1"/>`, "error 1:4: the name b: has a colon, but not a name on both of its sides"},
		{`<a xmlns:="u"/>`, "error 1:4: the name xmlns: has a colon, but not a name on both of its sides"},
		{`<a><?p:q?></a>`, "error 1:6: a name without a colon is expected, not p:q"},
		{`<!DOCTYPE a [<!ENTITY p:q "">]><a/>`, "error 1:23: a name without a colon is expected, not p:q"},
		{`<!DOCTYPE a [<!NOTATION p:q SYSTEM "">]><a/>`, "error 1:25: a name without a colon is expected, not p:q"},
		// §6.3 Uniqueness of Attributes
		{`<a xmlns:p="u" xmlns:q="u" p:b="1" q:b="2"/>`, "error 1:2: two attributes are named b in the namespace u"},
		{`<a xmlns="u" xmlns:p="u" p:b="1" b="2"/>`, `<{u}a =u p=u p{u}b="1" b="2"></{u}a>`},
		{`<a xmlns:p="u" xmlns:p="v"/>`, "error 1:16: the attribute xmlns:p is there twice in <a>"},
	}, Options{})
}

// Many attributes are compared in another way.
func TestManyAttributesAreUnique(t *testing.T) {
	var b strings.Builder
	b.WriteString(`<a xmlns:p="u" xmlns:q="u"`)
	for i := range 100 {
		fmt.Fprintf(&b, ` p:a%d="" a%d=""`, i, i)
	}
	assert.Contains(t, content(b.String()+"/>", Options{}), "<a p=u")
	assert.Contains(t, content(b.String()+` q:a50=""/>`, Options{}), "two attributes are named a50 in the namespace u")
}

func TestUndeclaredPrefixIsNamed(t *testing.T) {
	const document = `<a xlink:href="#x"><xlink:b xmlns:xlink="other"/></a>`
	_, err := NewScanner(strings.NewReader(document), Options{}).Next()
	var syntax *SyntaxError
	require.True(t, errors.As(err, &syntax))
	assert.Equal(t, "xlink", syntax.Prefix)

	var assumed []string
	o := Options{
		Namespaces: map[string]string{"xlink": "http://www.w3.org/1999/xlink"},
		Assumed: func(prefix string, line, column int) {
			assumed = append(assumed, fmt.Sprint(prefix, " ", line, ":", column))
		},
	}
	want := `<a xlink{http://www.w3.org/1999/xlink}href="#x"><xlink{other}b xlink=other></xlink{other}b></a>`
	assert.Equal(t, want, content(document, o))
	assert.Equal(t, []string{"xlink 1:2"}, assumed)
	content(`<a xmlns:xlink="other" xlink:b=""/>`, o)
	assert.Len(t, assumed, 1, "it is declared")

	s := NewScanner(strings.NewReader(`<xlink:a xmlns:xlink="first"><b>`), o)
	_, _, err = drain(s)
	assert.Error(t, err)
	s.Reset(strings.NewReader(`<xlink:a/>`), "second")
	_, err = s.Next()
	require.NoError(t, err)
	assert.Equal(t, "http://www.w3.org/1999/xlink", s.Name().Space, "declarations do not outlive a document that breaks off")
}

// Names and namespaces that never come again are not kept.
func TestTablesAreBounded(t *testing.T) {
	const elements = 30_000
	r, w := io.Pipe()
	go func() {
		fmt.Fprint(w, `<r xmlns:keep="kept">`)
		for i := range elements {
			fmt.Fprintf(w, `<p%d:name%d xmlns:p%d="urn:%d" keep:a="%d"/>`, i, i, i, i, i)
		}
		fmt.Fprint(w, `<keep:last/></r>`)
		w.Close()
	}()
	s, started := NewScanner(r, Options{}), 0
	for {
		kind, err := s.Next()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		if kind != StartElement {
			continue
		}
		switch n := s.Name(); n.Prefix {
		case "":
		case "keep":
			assert.Equal(t, Name{"kept", "last", "keep"}, n)
		default:
			require.Equal(t, Name{fmt.Sprintf("urn:%d", started-1), fmt.Sprintf("name%d", started-1), fmt.Sprintf("p%d", started-1)}, n)
		}
		started++
	}
	assert.Equal(t, elements+2, started)
	assert.LessOrEqual(t, s.names.count, mostNames+10)
	assert.LessOrEqual(t, len(s.names.prefixes), mostNames+10)
	assert.LessOrEqual(t, len(s.spaces), mostSpaces)
}

func TestNCNames(t *testing.T) {
	for _, name := range []string{"a", "_", "a-1.b", "é", "a\u00B7", "東京", "\U00010000", strings.Repeat("x", 100)} {
		assert.True(t, IsNCName(name), "%q", name)
	}
	for _, name := range []string{"", "1", "-a", "a b", "a:b", ":", "\u00B7", "a\u00D7", "a\xff", "\xff", "a\x00", "a\uFFFE"} {
		assert.False(t, IsNCName(name), "%q", name)
	}
}
