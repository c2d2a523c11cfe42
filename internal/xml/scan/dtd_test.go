package scan

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Entities: XML 1.0 §4.
func TestEntities(t *testing.T) {
	entity := func(declarations, rest string) string { return "<!DOCTYPE a [" + declarations + "]>" + rest }
	checkContent(t, []contentCase{
		{entity(`<!ENTITY e "x">`, `<a b="&e;">&e;</a>`), `<a b="x">"x"</a>`},
		{entity(`<!ENTITY e "first"><!ENTITY e "second">`, `<a>&e;</a>`), `<a>"first"</a>`},
		{entity(`<!ENTITY e "">`, `<a b="&e;">&e;</a>`), `<a b=""></a>`},
		{entity(`<!ENTITY e "<b/>">`, `<a>x&e;y</a>`), `<a>"x"<b></b>"y"</a>`},
		{entity(`<!ENTITY e "y"><!ENTITY f "x&e;z">`, `<a b="&f;">&f;</a>`), `<a b="xyz">"xyz"</a>`},
		{entity(`<!ENTITY e "&#38;#60;">`, `<a b="&e;">&e;</a>`), `<a b="<">"<"</a>`},
		{entity(`<!ENTITY lt "&#38;#60;">`, `<a>&lt;</a>`), `<a>"<"</a>`},
		{entity(`<!ENTITY e "&lt;&#x26;amp;">`, `<a b="&e;">&e;</a>`), `<a b="<&">"<&"</a>`},
		{entity("<!ENTITY e 'x\r\ny\t&#13;&#10;'>", `<a b="&e;">&e;</a>`), `<a b="x y   ">"x\ny\t\r\n"</a>`},
		{entity(`<!ENTITY e "<b c='x&#13;&#10;y'/>">`, `<a>&e;</a>`), `<a><b c="x  y"></b></a>`},
		{entity(`<!ENTITY % p "<!ENTITY e 'x&#13;&#10;y'>">%p;`, `<a>&e;</a>`), `<a>"x\r\ny"</a>`},
		{entity(`<!ENTITY e "'&#34;'">`, `<a b="&e;" c='&e;'/>`), `<a b="'\"'" c="'\"'"></a>`},
		{entity(`<!ENTITY e "<![CDATA[<]]>">`, `<a>x&e;</a>`), `<a>"x<"</a>`},
		{entity(`<!ENTITY e "<![CDATA[&#13;]]>&#13;&#10;">`, "<a>&e;\r\n</a>"), `<a>"\r\r\n\n"</a>`},
		{entity(`<!ENTITY e "<!-- c --><?p?>">`, `<a>x&e;y</a>`), `<a>"xy"</a>`},
		{entity(`<!ENTITY e "<b xmlns:p='u'><p:c/></b>">`, `<a>&e;</a>`), `<a><b p=u><p{u}c></p{u}c></b></a>`},
		{entity(`<!ENTITY x "<!ENTITY y 'z'>">`, `<a>&y;</a>`), "error 1:48: the entity y is not declared"},
		// an entity is well-formed for itself (§4.3.2), but only where it is used
		{entity(`<!ENTITY e "<b>">`, `<a/>`), `<a></a>`},
		{entity(`<!ENTITY e "<b>">`, `<a>&e;</b></a>`), "error 1:36: in the entity e: <b> is not closed where the entity ends"},
		{entity(`<!ENTITY e "</a>">`, `<a>&e;`), "error 1:37: in the entity e: </a> closes an element that begins outside of the entity"},
		{entity(`<!ENTITY e "<b x='">`, `<a>&e;'/></a>`), "error 1:39: in the entity e: a tag does not end where the entity ends"},
		{entity(`<!ENTITY e "&#60;">`, `<a>&e;</a>`), "error 1:38: in the entity e: a tag does not end where the entity ends"},
		{entity(`<!ENTITY e "&#38;">`, `<a>&e;amp;</a>`), "error 1:38: in the entity e: a reference does not end where the entity ends"},
		{entity(`<!ENTITY e "<b">`, `<a>&e;></a>`), "error 1:35: in the entity e: a tag does not end where the entity ends"},
		{entity(`<!ENTITY e "<!--">`, `<a>&e;--></a>`), "error 1:37: in the entity e: a comment does not end where the entity ends"},
		{entity(`<!ENTITY e "]]">`, `<a>&e;></a>`), `<a>"]]>"</a>`},
		{entity(`<!ENTITY e "]]&#62;">`, `<a>&e;</a>`), "error 1:40: in the entity e: ]]> cannot stand in text; it is written ]]&gt;"},
		// §3.1 No < in Attribute Values, No External Entity References
		{entity(`<!ENTITY e "<">`, `<a b="&e;"/>`), "error 1:37: the entity e contains '<', which cannot stand in an attribute value"},
		{entity(`<!ENTITY e "&#60;"><!ENTITY f "&e;">`, `<a b="&f;"/>`), "error 1:58: the entity e contains '<', which cannot stand in an attribute value"},
		{entity(`<!ENTITY e SYSTEM "x">`, `<a b="&e;"/>`), "error 1:44: the external entity e cannot stand in an attribute value"},
		{entity(`<!ENTITY e SYSTEM "x">`, `<a>&e;</a>`), "error 1:41: the entity e is external, and external entities are not read"},
		// §4.1 Parsed Entity, No Recursion, Entity Declared
		{entity(`<!ENTITY e SYSTEM "x" NDATA n>`, `<a>&e;</a>`), "error 1:49: the entity e is not text and cannot be referred to"},
		{entity(`<!ENTITY e "&f;"><!ENTITY f "x&e;">`, `<a>&e;</a>`), "error 1:54: in the entity f: the entity e contains itself"},
		{entity(`<!ENTITY e "&f;"><!ENTITY f "x&e;">`, `<a b="&e;"/>`), "error 1:57: the entity e contains itself"},
		{entity(`<!ENTITY e "<b c='&e;'/>">`, `<a>&e;</a>`), "error 1:45: in the entity e: the entity e contains itself"},
		{entity(`<!ENTITY e "&f;">`, `<a>&e;</a>`), "error 1:36: in the entity e: the entity f is not declared"},
		{entity(`<!ENTITY % e "x">`, `<a>&e;</a>`), "error 1:36: the entity e is not declared"},
		{entity(`<!ENTITY e "x">%e;`, `<a>&f;</a>`), "error 1:37: the entity f is not declared in the document itself, and declarations elsewhere are not read"},
		// §4.2, §4.3
		{entity(`<!ENTITY e "&">`, `<a/>`), "error 1:27: a name is expected here, not '\"'"},
		{entity(`<!ENTITY e "&x">`, `<a/>`), "error 1:28: \";\" is expected, not '\"'"},
		{entity(`<!ENTITY e "%x;">`, `<a/>`), "error 1:26: a parameter entity cannot be referred to inside a declaration of the internal DTD subset; as text, '%' is written &#37;"},
		{entity(`<!ENTITY e "x" NDATA n>`, `<a/>`), "error 1:29: \">\" is expected, not 'N'"},
		{entity(`<!ENTITY % e SYSTEM "x" NDATA n>`, `<a/>`), "error 1:38: \">\" is expected, not 'N'"},
		{entity(`<!ENTITY e PUBLIC "{" "x">`, `<a/>`), "error 1:33: '{' cannot stand in a public identifier"},
		{entity(`<!ENTITY e PUBLIC "x">`, `<a/>`), "error 1:35: white space is expected, not '>'"},
		{entity(`<!ENTITY e"x">`, `<a/>`), "error 1:24: white space is expected, not '\"'"},
		{entity("<!ENTITY e 'x\x02'>", `<a/>`), "error 1:27: the character U+0002 is not allowed in XML"},
		{entity("<!ENTITY e SYSTEM 'x\x02'>", `<a/>`), "error 1:34: the character U+0002 is not allowed in XML"},
	}, Options{})
}

// A text that begins behind an entity has a place of its own.
func TestPositionsAroundEntities(t *testing.T) {
	want := `2:1 1 <a>
2:4 1 "x y"
2:9 2 <b>
2:9 2 </b>
2:12 1 "text"
2:16 2 <c>
2:16 2 </c>
2:20 1 "y"
2:23 1 </a>
`
	document := "<!DOCTYPE a [<!ENTITY b '<b/>'><!ENTITY y 'y'>]>\n<a>x &y;&b;text<c/>&y;</a>"
	assert.Equal(t, want, checkSizes(t, []byte(document), Options{}))
}

// Parameter entities and declarations that have not been read: XML 1.0 §2.8, §4.1, §5.1.
func TestParameterEntities(t *testing.T) {
	checkContent(t, []contentCase{
		{`<!DOCTYPE a [<!ENTITY % p "<!ENTITY e 'x'>">%p;]><a>&e;</a>`, `<a>"x"</a>`},
		{`<!DOCTYPE a [<!ENTITY % p "&#60;!ENTITY e 'x'>">%p;]><a>&e;</a>`, `<a>"x"</a>`},
		{`<!DOCTYPE a [<!ENTITY % q "<!ENTITY e 'x'>"><!ENTITY % p "&#37;q;">%p;]><a>&e;</a>`, `<a>"x"</a>`},
		{`<!DOCTYPE a [<!ENTITY % p "<!ENTITY e '">%p;x'>]><a/>`, "error 1:42: in the entity p: a declaration does not end where the entity ends"},
		{`<!DOCTYPE a [<!ENTITY % p "<![INCLUDE[]]>">%p;]><a/>`, "error 1:44: in the entity p: a conditional section can only stand in an external DTD subset or entity"},
		{`<!DOCTYPE a [<!ENTITY % p "]>">%p;<a/>`, "error 1:32: in the entity p: ']' ends a DTD that began outside of the entity"},
		{`<!DOCTYPE a [<!ENTITY % p "x">%p;]><a/>`, "error 1:31: in the entity p: a declaration, or the end of the DTD, is expected, not 'x'"},
		{`<!DOCTYPE a [<!ENTITY % p "&#37;p;">%p;]><a/>`, "error 1:37: in the entity p: the entity p contains itself"},
		{`<!DOCTYPE a [<![INCLUDE[]]>]><a/>`, "error 1:14: a conditional section can only stand in an external DTD subset or entity"},
		{`<!DOCTYPE a [%p]><a/>`, `error 1:16: ";" is expected, not ']'`},
		{`<!DOCTYPE a [% p;]><a/>`, "error 1:15: a name is expected here, not ' '"},
		{`<!DOCTYPE a [<!ELEMENT %p; EMPTY>]><a/>`, "error 1:24: a name is expected here, not '%'"},

		// declarations behind a parameter entity that is not read do not count …
		{`<!DOCTYPE a [<!ENTITY e "x"><!ENTITY % p SYSTEM "p">%p;<!ENTITY f "y"><!ATTLIST a b CDATA "z">]><a>&e;&f;</a>`, `<a>"x"</a>`},
		{`<!DOCTYPE a [%p;<!ENTITY f "y">]><a b="-&f;-">&f;</a>`, `<a b="--"></a>`},
		{`<!DOCTYPE a [%p;<!ATTLIST a b CDATA "&f;">]><a/>`, `<a></a>`},
		// … but is checked, and counts where the document stands alone
		{`<!DOCTYPE a [%p;<!ATTLIST a b CDATA "<">]><a/>`, "error 1:38: '<' cannot stand in an attribute value; it is written &lt;"},
		{`<?xml version="1.0" standalone="yes"?><!DOCTYPE a [%p;<!ENTITY f "y">]><a>&f;</a>`, `<a>"y"</a>`},
		{`<?xml version="1.0" standalone="yes"?><!DOCTYPE a [%p;]><a>&f;</a>`, "error 1:60: the entity f is not declared"},
		{`<?xml version="1.0" standalone="yes"?><!DOCTYPE a [<!ENTITY % p "<!ENTITY f 'x'>">%p;]><a>&f;</a>`, "error 1:91: the entity f is not declared"},
		// an external subset is not read either, but comes last
		{`<!DOCTYPE a SYSTEM "x" [<!ENTITY e "x">]><a>&e;&f;</a>`, `<a>"x"</a>`},
		{`<!DOCTYPE a SYSTEM "x"><a>-&f;-</a>`, `<a>"--"</a>`},
		{`<!DOCTYPE a [<!ENTITY e SYSTEM "x">]><a>-&e;-</a>`, `<a>"--"</a>`},
		{`<!DOCTYPE a SYSTEM "x"><a>&f</a>`, "error 1:27: '&' begins no reference; as text it is written &amp;"},
	}, Options{SkipUnread: true})
	assert.Equal(t, `<a></a>`, content(`<!DOCTYPE a [%p;<!ATTLIST a b CDATA "&f;">]><a/>`, Options{}))
	assert.Equal(t, "error 1:1: document type declarations are not accepted", content("<!DOCTYPE a><a/>", Options{NoDTD: true}))
}

// Declarations: XML 1.0 §2.8, §3.2, §3.3, §4.7.
func TestDeclarations(t *testing.T) {
	for _, good := range []string{
		"", " \n", "<!-- c --><?p?>", "<!ELEMENT a EMPTY>", "<!ELEMENT a ANY >", "<!ELEMENT a (#PCDATA)>", "<!ELEMENT a (#PCDATA)*>",
		"<!ELEMENT a ( #PCDATA | b|c )* >", "<!ELEMENT a (b)>", "<!ELEMENT a ( b , c? , (d|e+)* )+ >", "<!ELEMENT a ((((b))))>", "<!ELEMENT p:a (p:b)>",
		"<!ATTLIST a>", "<!ATTLIST a b CDATA #IMPLIED c ID #REQUIRED>", "<!ATTLIST b b (x|1|-)  'x'>", "<!ATTLIST a b NOTATION (n | m) #IMPLIED>",
		"<!ATTLIST b b IDREF #IMPLIED c IDREFS #IMPLIED d ENTITY #IMPLIED e ENTITIES #IMPLIED f NMTOKENS #FIXED 'x'>",
		"<!NOTATION n SYSTEM 'x'>", "<!NOTATION n PUBLIC 'x'>", "<!NOTATION n PUBLIC 'x' 'y' >",
		`<!ENTITY e PUBLIC 'a-zA-Z0-9' "x">`, "<!ENTITY % e SYSTEM 'x'>",
	} {
		assert.Equal(t, "<a></a>", content("<!DOCTYPE a ["+good+"] ><a/>", Options{}), good)
	}
	for _, bad := range []string{
		"x", "<", "<!", "<!X>", "]", "<a/>", "&lt;", "<!element a EMPTY>", "<!ELEMENTa EMPTY>", "<!ELEMENT a>", "<!ELEMENT a EMPTY", "<!ELEMENT a empty>",
		"<!ELEMENT a ()>", "<!ELEMENT a (b>", "<!ELEMENT a (b|c,d)>", "<!ELEMENT a (b,)>", "<!ELEMENT a (b)c>", "<!ELEMENT a b>", "<!ELEMENT a (b ?)>",
		"<!ELEMENT a (#PCDATA|b)>", "<!ELEMENT a (#PCDATA,b)*>", "<!ELEMENT a (b|#PCDATA)*>", "<!ELEMENT a (#PCDATA)+>", "<!ELEMENT a ((b)>", "<!ELEMENT a:b:c ANY>",
		"<!ATTLIST>", "<!ATTLIST a b>", "<!ATTLIST a b CDATA>", "<!ATTLIST a b CDATA #FIXED>", "<!ATTLIST a b CDATA 'x>", "<!ATTLIST a b (x) x>", "<!ATTLIST a b () 'x'>",
		"<!ATTLIST a b (x,y) 'x'>", "<!ATTLIST a b NOTATION #IMPLIED>", "<!ATTLIST a b NOTATION (1) #IMPLIED>", "<!ATTLIST a b CDATA'x'>", "<!ATTLIST a b CDATA 'x'c CDATA 'y'>",
		"<!ATTLIST a b CDATA '&x;'>", "<!ATTLIST a b CDATA '<'>", "<!ATTLIST a b XDATA 'x'>", "<!ATTLIST a b NUMBER 'x'>",
		"<!NOTATION n>", "<!NOTATION n 'x'>", "<!NOTATION n SYSTEM>", "<!NOTATION n PUBLIC '{'>", "<!NOTATION n PUBLIC 'x''y'>",
		"<!ENTITY e>", "<!ENTITY e x>", "<!ENTITY %e 'x'>", "<!ENTITY % e >", "<!ENTITY e SYSTEM 'x'NDATA n>", "<!ENTITY e SYSTEM 'x' NDATA>", "<!ENTITY e SYSTEM>",
		"<!-- -- -->", "<?xml?>", "<? p?>",
	} {
		assert.Contains(t, content("<!DOCTYPE a ["+bad+"]><a/>", Options{}), "error 1:", bad)
	}
	for _, bad := range []string{
		"<!DOCTYPE>", "<!DOCTYPE a", "<!DOCTYPE a []", "<!DOCTYPE a SYSTEM>", "<!DOCTYPE a PUBLIC 'x'>", "<!DOCTYPE a 'x'>", "<!DOCTYPEa>", "<!DOCTYPE a[]x>", "<!doctype a>", "<!DOCTYPE a SYSTEM 'x'[]]>", "<!DOCTYPE a:b:c>",
	} {
		assert.Contains(t, content(bad+"<a/>", Options{}), "error 1:", bad)
	}
}

// Defaults and normalisation: XML 1.0 §3.3.2, §3.3.3.
func TestAttributesByTheDTD(t *testing.T) {
	const declarations = `<!DOCTYPE a [
		<!ENTITY e " y ">
		<!ATTLIST a t NMTOKENS #IMPLIED c CDATA #IMPLIED d CDATA " &e;	&#10;z " f CDATA #FIXED "f">
		<!ATTLIST a t CDATA #IMPLIED g (x|y) " x " xmlns CDATA #FIXED "u" xmlns:p NMTOKEN " v " p:h CDATA "h">
		<!ATTLIST b f CDATA "never">]>`
	const added = ` d="  y  \nz " f="f" g="x" p{v}h="h"></{u}a>`
	checkContent(t, []contentCase{
		{declarations + `<a/>`, `<{u}a =u p=v` + added},
		{declarations + "<a t='\t x  &#32; y&e;' c='\t x  '/>", `<{u}a =u p=v t="x y y" c="  x  "` + added},
		{declarations + `<a t=" &#9; x"/>`, `<{u}a =u p=v t="\t x"` + added},
		{declarations + `<a g="y" f="" d="" xmlns="" xmlns:p="  w  " q:h="" xmlns:q="v"/>`, `<a = p=w q=v g="y" f="" d="" q{v}h="" p{w}h="h"></a>`},
		{declarations + `<a q:h="" xmlns:q="v"/>`, `error 5:34: two attributes are named h in the namespace v`},
	}, Options{})
}

// The documents before do not affect the declarations of a DTD for a name.
func TestResetLearnsTheDTD(t *testing.T) {
	s := NewScanner(strings.NewReader("<a/>"), Options{})
	_, _, err := drain(s)
	assert.NoError(t, err)
	s.Reset(strings.NewReader(`<!DOCTYPE a [<!ATTLIST a b CDATA "c">]><a/>`), "")
	_, err = s.Next()
	assert.NoError(t, err)
	assert.Len(t, s.Attrs(), 1)
}

// A scanner that is used again knows nothing of the last document's DTD.
func TestResetForgetsTheDTD(t *testing.T) {
	s := NewScanner(strings.NewReader(`<!DOCTYPE a [<!ATTLIST a b CDATA "c"><!ENTITY e "<a>">]><a>&e;`), Options{})
	_, _, err := drain(s)
	assert.EqualError(t, err, "1:60: in the entity e: <a> is not closed where the entity ends")
	s.Reset(strings.NewReader("<a/>"), "")
	_, err = s.Next()
	assert.NoError(t, err)
	assert.Empty(t, s.Attrs())
	s.Reset(strings.NewReader("<a>&e;</a>"), "second")
	_, _, err = drain(s)
	assert.EqualError(t, err, "second:1:4: the entity e is not declared")
}
