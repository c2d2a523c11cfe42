package xtm_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"

	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testhostile"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

const (
	head10 = `<topicMap xmlns="http://www.topicmaps.org/xtm/1.0/" xmlns:xlink="http://www.w3.org/1999/xlink">`
	head21 = `<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1">`
	foot   = `</topicMap>`
)

func read(doc string, o xtm.Options) (*tmdm.TopicMap, error) {
	if o.Base == "" {
		o.Base = fuzzBase
	}
	return xtm.Read(context.Background(), strings.NewReader(doc), o)
}

// rejected returns the error of a document that must be refused.
func rejected(t *testing.T, doc string, o xtm.Options) *xtm.SyntaxError {
	t.Helper()
	_, err := read(doc, o)
	var syntax *xtm.SyntaxError
	require.ErrorAs(t, err, &syntax, "%.200s", doc)
	return syntax
}

func TestTruncatedDocuments(t *testing.T) {
	dir := testenv.Shared(t, "data")
	var doc bytes.Buffer
	_, err := io.Copy(&doc, openMap(t, filepath.Join(dir, "jill.xtm")))
	require.NoError(t, err)
	whole := doc.String()
	end := strings.LastIndex(whole, ">")
	for n := 0; n < end; n += 7 {
		syntax := rejected(t, whole[:n], xtm.Options{Loader: loadOrEmpty})
		if n > 200 {
			assert.Contains(t, syntax.Reason, "the document ends", "after %d bytes", n)
		}
	}
}

func TestErrorsSayWhereAndWhat(t *testing.T) {
	const xmlns = `xmlns="http://www.topicmaps.org/xtm/1.0/"`
	const page = "this looks like an HTML page, not XTM: give the address or the file of the map itself"
	convertIt := func(format, reason string) string {
		return "this looks like " + format + ", not XTM: convert it to XTM first, with Wandora or Ontopia for example (" + reason + ")"
	}
	nameIt := func(format, reason string) string {
		return "this looks like " + format + ", not XTM: read it as " + format + " (" + reason + ")"
	}
	tag := func(found string) string { return "a document begins with a tag, not '" + found + "'" }
	for _, c := range []struct {
		doc          string
		line, column int // a column of 0 is any
		reason       string
	}{
		{"", 1, 1, "the document is empty"},
		{" \n ", 2, 0, "the document ends before its root element"},
		{"plain text", 1, 1, "a document begins with a tag, not 'p'"},
		{`{"@context": {}}`, 1, 1, nameIt("JSON-LD", tag("{"))},
		{`{"topics": []}`, 1, 1, convertIt("JSON", tag("{"))},
		{" [ {\"id\": 1} ]", 1, 2, convertIt("JSON", tag("["))},
		{"@prefix ex: <http://example.org/> .\nex:a a ex:B .", 1, 1, nameIt("Turtle", tag("@"))},
		{"# written by hand\n\nPREFIX ex: <http://example.org/>", 1, 1, nameIt("Turtle", tag("#"))},
		{"<http://example.org/a> <http://example.org/b> 'c' .", 1, 0, nameIt("Turtle", "the name http: has a colon, but not a name on both of its sides")},
		{"#VERSION \"1.3\"\n[a : b = \"A\"]", 1, 1, convertIt("LTM", tag("#"))},
		{"[a : b = \"A\"]", 1, 1, convertIt("LTM", tag("["))},
		{"%encoding \"utf-8\"\n%version 1.0", 1, 1, convertIt("CTM", tag("%"))},
		{"id,name\r\n1,\"Ann, Bob\"\r\n", 1, 1, convertIt("CSV", tag("i"))},
		{"\ufeffid;name\n1;Ann", 1, 0, convertIt("CSV", tag("i"))},
		{"PK\x03\x04\x14", 1, 1, "this looks like a ZIP archive, not XTM: unpack it first (" + tag("P") + ")"},
		{`<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"/>`, 1, 1, nameIt("RDF/XML", "root element is <RDF>, not a topic map")},
		{"<feed xmlns='http://www.w3.org/2005/Atom'/>", 1, 1, "this looks like an Atom feed, not XTM: give the address or the file of a map, or follow the feed with \"tmshare-client subscribe\" (root element is <feed>, not a topic map)"},
		{"<!doctype html>\n<title>x</title>", 1, 3, page + " (outside of the root element, <! begins a comment or, before it, <!DOCTYPE, not 'd')"},
		{"<html>\n<body/></html>", 1, 1, page + " (root element is <html>, not a topic map)"},
		{"<html>\n<br></html>", 2, 5, page + " (root element is <html>, not a topic map)"},
		{"<topicMap " + xmlns + " a>", 1, 0, "'=' is expected behind the name of the attribute a, not '>'"},
		{"<topicMap/>", 1, 0, "the root element <topicMap> is not in a namespace of XTM; lenient reading takes it as XTM 1.0 where it has none"},
		{head10 + "\n <topic/>" + foot, 2, 2, "<topic> has no id"},
		{head10 + "\n\n  <topic id='t'><baseName>\n </baseName>", 3, 17, "<baseName> has no <baseNameString>"},
		{head10 + "<topic id='a'></topicMap>", 1, 110, "<topic> is closed by </topicMap>"},
		{head10 + "\n<topic id='a'", 2, 0, "the document ends inside a tag"},
		{head10 + "\n<topic id='a'>", 2, 0, "the document ends inside <topic>"},
		{head10 + "\n<!-- ", 2, 0, "the document ends inside a comment"},
		{head10 + "\n&x;" + foot, 2, 0, "the entity x is not declared"},
		{head10 + "\n\x01" + foot, 2, 1, "the character U+0001 is not allowed in XML"},
		{head10 + "\n\xff" + foot, 2, 1, "the byte 0xff is not legal in UTF-8 here"},
		{head10 + foot[:10] + "\n>\n<" + head10, 3, 1, "a second root element"},
		{head10 + foot + foot, 1, 107, "an end tag without a start tag"},
		{head10 + foot + "<a/>", 1, 107, "a second root element"},
		{head10 + foot + "x", 1, 107, "nothing but comments and processing instructions can stand behind the root element, not 'x'"},
		{"<!-- --><?xml version='1.0'?>" + head10 + foot, 1, 9, "<?xml can only stand at the very beginning of a document, as its XML declaration"},
		{head10 + "<!DOCTYPE a>" + foot, 1, 98, "in an element, <! begins a comment or a CDATA section, not 'D'"},
		{"<?xml version='1.0' encoding='nonsense'?>" + head10 + foot, 1, 0, "the encoding nonsense is not known; convert the document to UTF-8"},
		{"<topicMap " + xmlns + " a='1' b='2' a='3'/>", 1, 65, "the attribute a is there twice in <topicMap>"},
		{"<topicMap " + xmlns + " " + xmlns + "/>", 1, 53, "the attribute xmlns is there twice in <topicMap>"},
		{"<topicMap " + xmlns + " xmlns:p='urn:a' xmlns:q='urn:a' p:a='1' q:a='3'/>", 1, 2, "two attributes are named a in the namespace urn:a"},
		{"<topicMap " + xmlns + " p:a='1'/>", 1, 2, "the prefix of the attribute p:a is not declared"},
		{"<topicMap " + xmlns + "><p:a/></topicMap>", 1, 54, "the prefix of the element p:a is not declared"},
		{"<topicMap " + xmlns + "><p:a xmlns:p='urn:p'/><p:a/></topicMap>", 1, 76, "the prefix of the element p:a is not declared"},
		{"<topicMap " + xmlns + " xmlns:p=''/>", 1, 2, "the prefix p is declared without a namespace"},
		{"<topicMap " + xmlns + " xmlns:xml='urn:x'/>", 1, 2, "the prefix xml can only be declared as http://www.w3.org/XML/1998/namespace"},
		{head10 + "<mergeMap xlink:href='x'/>" + foot, 1, 96, "<mergeMap> asks for http://example.org/x to be merged in, which is not done here: merge the documents first, or take the element out"},
		{"<a>" + head10 + foot + "\n" + head10 + foot + "</a>", 2, 1, "there is a second <topicMap> in the document"},
	} {
		syntax := rejected(t, c.doc, xtm.Options{URI: "the.xtm"})
		assert.Equal(t, c.reason, syntax.Reason, c.doc)
		assert.Equal(t, c.line, syntax.Line, "line in %s: %s", c.doc, c.reason)
		if c.column > 0 {
			assert.Equal(t, c.column, syntax.Column, "column in %s: %s", c.doc, c.reason)
		}
		assert.Equal(t, fmt.Sprintf("the.xtm:%d:%d: %s", syntax.Line, syntax.Column, syntax.Reason), syntax.Error())
	}
}

// beyond reads a document that must be rejected because it goes beyond a limit.
func beyond(t *testing.T, doc string, o xtm.Options) *xtm.SyntaxError {
	t.Helper()
	err := rejected(t, doc, o)
	assert.ErrorIs(t, err, xtm.ErrLimit)
	return err
}

func TestLimits(t *testing.T) {
	deep := head10 + `<topic id="t"><baseName><baseNameString/>` + strings.Repeat(`<variant><parameters><topicRef xlink:href="#s"/></parameters>`, 100_000)
	assert.Equal(t, "elements are nested more than 200 deep", beyond(t, deep, xtm.Options{}).Reason)
	assert.Equal(t, "elements are nested more than 9 deep", beyond(t, deep, xtm.Options{Limits: xtm.Limits{Depth: 9}}).Reason)
	foreign := head10 + strings.Repeat(`<x xmlns="urn:x">`, 100_000)
	assert.Equal(t, "elements are nested more than 200 deep", beyond(t, foreign, xtm.Options{}).Reason)

	for _, long := range []string{
		head10 + `<topic id="t"><baseName><baseNameString>` + strings.Repeat("x", 200_000),
		head10 + `<topic id="` + strings.Repeat("x", 200_000),
		head10 + `<!-- ` + strings.Repeat("x", 200_000),
		`<a x="` + strings.Repeat("x", 200_000),
	} {
		assert.Equal(t, "a tag or text is longer than 50000 bytes", beyond(t, long, xtm.Options{Limits: xtm.Limits{Token: 50_000}}).Reason)
	}
	name := head10 + `<` + strings.Repeat("x", 5000) + `/>`
	assert.Equal(t, "a name is longer than 4096 bytes", beyond(t, name, xtm.Options{}).Reason)
	assert.Equal(t, "a name is longer than 99 bytes", beyond(t, name, xtm.Options{Limits: xtm.Limits{Name: 99}}).Reason)
	pieces := `<topic id="t"><baseName><baseNameString>` + strings.Repeat(strings.Repeat("x", 40)+"<!-- -->", 3) + `</baseNameString></baseName></topic>`
	assert.Equal(t, "a tag or text is longer than 100 bytes", beyond(t, head10+pieces+foot, xtm.Options{Limits: xtm.Limits{Token: 100}}).Reason)
	many := head10 + strings.Repeat(`<topic id="t"/>`, 100_000) + foot
	assert.Equal(t, "the document is longer than 1000000 bytes", beyond(t, many, xtm.Options{Limits: xtm.Limits{Bytes: 1_000_000}}).Reason)
	_, err := read(many, xtm.Options{Limits: xtm.Limits{Bytes: 2_000_000, Token: 100}})
	assert.NoError(t, err, "the limit of a token is not one of the document")
}

// Documents must not take more time or space than they are long.
func TestWhatGrowsIsBounded(t *testing.T) {
	scope := "<scope>" + strings.Repeat(`<topicRef xlink:href="#s"/>`, 201) + "</scope>"
	name := `<topic id="t"><baseName>` + scope + `<baseNameString/></baseName></topic>`
	assert.Equal(t, "a scope of more than 200 topics", beyond(t, head10+name+foot, xtm.Options{}).Reason)
	_, err := read(head10+name+foot, xtm.Options{Limits: xtm.Limits{Themes: 201}})
	assert.NoError(t, err)

	variants := strings.Builder{}
	for i := range 190 {
		fmt.Fprintf(&variants, `<variant><parameters><topicRef xlink:href="#a%d"/><topicRef xlink:href="#b%d"/></parameters>`, i, i)
	}
	nested := variants.String() + "<variantName><resourceData/></variantName>" + strings.Repeat("</variant>", 190)
	assert.Equal(t, "a scope of more than 200 topics",
		beyond(t, head10+`<topic id="t"><baseName><baseNameString/>`+nested+`</baseName></topic>`+foot, xtm.Options{}).Reason)

	attributes, prefixes := strings.Builder{}, strings.Builder{}
	for i := range 300 {
		fmt.Fprintf(&attributes, ` a%d=""`, i)
		fmt.Fprintf(&prefixes, `<p%d:x xmlns:p%d="urn:p" xmlns:q%d="urn:q">`, i, i, i)
	}
	assert.Equal(t, "an element has more than 256 attributes", beyond(t, head10+"<x"+attributes.String()+"/>", xtm.Options{}).Reason)
	assert.Equal(t, "an element has more than 9 attributes",
		beyond(t, head10+"<x"+attributes.String()+"/>", xtm.Options{Limits: xtm.Limits{Attributes: 9}}).Reason)
	assert.Equal(t, "more than 256 prefixes are in scope", beyond(t, head10+prefixes.String(), xtm.Options{}).Reason)

	o := xtm.Options{Base: "http://example.org/0", Limits: xtm.Limits{Themes: 9}}
	o.Loader = func(l tmdm.Locator) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(head10 + `<mergeMap xlink:href="` + string(l) + `x"><topicRef xlink:href="#t"/></mergeMap>` + foot)), nil
	}
	inner := o
	inner.Loader = func(tmdm.Locator) (io.ReadCloser, error) {
		themes := strings.Repeat(`<topicRef xlink:href="#s"/>`, 6)
		return io.NopCloser(strings.NewReader(head10 + `<topic id="t"><baseName><scope>` + themes + `</scope><baseNameString/></baseName></topic>` + foot)), nil
	}
	adds := head10 + `<mergeMap xlink:href="x">` + strings.Repeat(`<topicRef xlink:href="#t"/>`, 5) + `</mergeMap>` + foot
	assert.Equal(t, "a scope of more than 9 topics, with those that a <mergeMap> adds", beyond(t, adds, inner).Reason)
	assert.Equal(t, "<mergeMap> adds more than 9 topics to every scope", beyond(t, head10+`<mergeMap xlink:href="x"/>`+foot, o).Reason)
}

// Entities and document types outside of the document are not fetched, not even
// through the loader that mergeMap has.
func TestNothingIsFetchedForADTD(t *testing.T) {
	o := xtm.Options{Loader: func(l tmdm.Locator) (io.ReadCloser, error) {
		t.Errorf("%s was asked for", l)
		return nil, errDisk
	}}
	const outside = `SYSTEM "http://example.org/outside"`
	map10 := func(text string) string {
		return head10 + `<topic id="t"><baseName><baseNameString>` + text + `</baseNameString></baseName></topic>` + foot
	}
	for _, doc := range []string{
		`<!DOCTYPE topicMap ` + outside + `>` + map10("x"),
		`<!DOCTYPE topicMap PUBLIC "-//x//y" "http://example.org/outside">` + map10("x"),
		`<!DOCTYPE topicMap [<!ENTITY % e ` + outside + `> %e;]>` + map10("x"),
		`<!DOCTYPE topicMap [<!ENTITY e ` + outside + `><!NOTATION n ` + outside + `><!ENTITY u ` + outside + ` NDATA n>]>` + map10("x"),
	} {
		tm, err := read(doc, o)
		require.NoError(t, err, doc)
		assert.Equal(t, "x", nameOf(t, tm, "t"))
	}
	for doc, reason := range map[string]string{
		`<!DOCTYPE topicMap [<!ENTITY e ` + outside + `>]>` + map10("&e;"):                                              "the entity e is external, and external entities are not read",
		`<!DOCTYPE topicMap ` + outside + `>` + map10("&e;"):                                                            "the entity e is not declared in the document itself, and declarations elsewhere are not read",
		`<!DOCTYPE topicMap [<!NOTATION n ` + outside + `><!ENTITY e ` + outside + ` NDATA n>]>` + map10("&e;"):         "the entity e is not text and cannot be referred to",
		`<!DOCTYPE topicMap [<!ENTITY e ` + outside + `><!ENTITY f "&#38;e;">]>` + map10("&f;"):                         "in the entity f: the entity e is external, and external entities are not read",
		`<!DOCTYPE topicMap [<!ENTITY e ` + outside + `><!ATTLIST topic id CDATA "&e;">]>` + head10 + "<topic/>" + foot: "the external entity e cannot stand in an attribute value",
	} {
		assert.Equal(t, reason, rejected(t, doc, o).Reason, doc)
	}
}

// The length that entities may add is bounded, by less than a document could hold itself.
func TestEntitiesAreBounded(t *testing.T) {
	doc := `<!DOCTYPE topicMap [<!ENTITY a "` + strings.Repeat("x", 1000) + `">]>` + head10 + `<topic id="t"><baseName><baseNameString>` +
		strings.Repeat("&a;", 100) + `</baseNameString></baseName></topic>` + foot
	tm, err := read(doc, xtm.Options{})
	require.NoError(t, err)
	assert.Len(t, nameOf(t, tm, "t"), 100_000)
	tight := xtm.Options{Limits: xtm.Limits{Expansion: 50_000}}
	assert.Equal(t, "entities add more than 50000 bytes to the document", beyond(t, doc, tight).Reason)
}

func TestMergeMapIsBounded(t *testing.T) {
	// Each document asks for another one, without end.
	loads := 0
	o := xtm.Options{Base: "http://example.org/0", Limits: xtm.Limits{Documents: 50}}
	o.Loader = func(l tmdm.Locator) (io.ReadCloser, error) {
		loads++
		return io.NopCloser(strings.NewReader(head21 + `<mergeMap href="` + string(l) + `x"/>` + foot)), nil
	}
	syntax := beyond(t, head21+`<mergeMap href="x"/>`+foot, o)
	assert.Equal(t, "<mergeMap> brings in more than 50 documents", syntax.Reason)
	assert.Equal(t, 49, loads)
}

var errDisk = errors.New("disk on fire")

func TestErrorsOfTheReaderAreKept(t *testing.T) {
	for n := range 200 {
		doc := io.MultiReader(strings.NewReader((head10 + `<topic id="t"/>` + foot)[:min(n, len(head10)+26)]), iotest.ErrReader(errDisk))
		_, err := xtm.Read(t.Context(), doc, xtm.Options{Base: fuzzBase})
		if n >= len(head10)+26 {
			break
		}
		require.ErrorIs(t, err, errDisk, "after %d bytes", n)
		var syntax *xtm.SyntaxError
		require.False(t, errors.As(err, &syntax), "after %d bytes", n)
	}
	closed := xtm.Options{Base: fuzzBase, Loader: func(tmdm.Locator) (io.ReadCloser, error) { return nil, errDisk }}
	_, err := read(head21+`<mergeMap href="x"/>`+foot, closed)
	assert.ErrorIs(t, err, errDisk)
}

func TestReadingByteByByte(t *testing.T) {
	doc := head10 + `<topic id="t"><baseName><baseNameString>größe 𝄞</baseNameString></baseName></topic>` + foot
	for _, r := range []io.Reader{
		iotest.OneByteReader(strings.NewReader(doc)),
		iotest.DataErrReader(strings.NewReader(doc)),
		iotest.HalfReader(strings.NewReader(doc)),
	} {
		tm, err := xtm.Read(t.Context(), r, xtm.Options{Base: fuzzBase})
		require.NoError(t, err)
		assert.Equal(t, "größe 𝄞", nameOf(t, tm, "t"))
	}
}

// nameOf returns the first name of the topic with the given id.
func nameOf(t *testing.T, tm *tmdm.TopicMap, id string) string {
	topic, ok := tm.ConstructByItemIdentifier(tmdm.Locator(fuzzBase + "#" + id)).(*tmdm.Topic)
	require.True(t, ok)
	require.NotEmpty(t, topic.Names())
	return topic.Names()[0].Value()
}

func TestEncodings(t *testing.T) {
	const text = "größe €"
	doc := func(declaration string) string {
		return declaration + head10 + `<topic id="t"><baseName><baseNameString>` + text + `</baseNameString></baseName></topic>` + foot
	}
	encoded := func(e interface{ String(string) (string, error) }, s string) string {
		out, err := e.String(s)
		require.NoError(t, err)
		return out
	}
	utf16 := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder()
	for name, d := range map[string]string{
		"UTF-8":              doc(""),
		"UTF-8, declared":    doc(`<?xml version="1.0" encoding="utf-8"?>`),
		"UTF-8, marked":      "\ufeff" + doc(`<?xml version="1.0"?>`),
		"UTF-16":             encoded(utf16, doc(`<?xml version="1.0" encoding="utf-16"?>`)),
		"UTF-16, undeclared": encoded(utf16, doc("")),
		"ISO-8859-15":        encoded(charmap.ISO8859_15.NewEncoder(), doc(`<?xml version="1.0" encoding="iso-8859-15"?>`)),
		"windows-1252":       encoded(charmap.Windows1252.NewEncoder(), doc(`<?xml version="1.0" encoding='Windows-1252' standalone="no"?>`)),
	} {
		tm, err := read(d, xtm.Options{})
		require.NoError(t, err, name)
		assert.Equal(t, text, nameOf(t, tm, "t"), name)
	}
}

func TestLenient(t *testing.T) {
	const doc = `<!DOCTYPE topicMap SYSTEM "xtm1.dtd">
<topicMap>lost
  <topic id="t">
    <baseName id="n"><instanceOf><topicRef xlink:href="#type"/></instanceOf><baseNameString>T</baseNameString></baseName>
    <occurrence id="n"><resourceData>o</resourceData></occurrence>
  </topic>
</topicMap>`
	_, err := read(doc, xtm.Options{})
	require.Error(t, err)
	var tally xtm.Tally
	var tolerated []string
	tm, err := read(doc, xtm.Options{Lenient: true, URI: "x", Tolerated: func(e *xtm.SyntaxError) {
		tally.Add(e)
		tolerated = append(tolerated, fmt.Sprint(e.Rule, " ", e.Error()))
	}})
	require.NoError(t, err)
	topic := tm.ConstructByItemIdentifier(fuzzBase + "#t").(*tmdm.Topic)
	assert.Equal(t, tm.ConstructByItemIdentifier(fuzzBase+"#type"), tmdm.Construct(topic.Names()[0].Type()))
	assert.Equal(t, []tmdm.Locator{fuzzBase + "#n"}, topic.Names()[0].ItemIdentifiers())
	assert.Empty(t, topic.Occurrences()[0].ItemIdentifiers())
	base := fuzzBase
	assert.Equal(t, []string{
		"in-namespace x:2:1: <topicMap> has no namespace",
		`no-text-between x:2:11: <topicMap> cannot hold text: "lost"`,
		"untyped-names x:4:22: <baseName> cannot hold <instanceOf> in XTM 1.0; lenient reading takes it as the type of the name, as Ontopia means it",
		"declared-prefix x:4:35: the prefix xlink is not declared",
		fmt.Sprintf(`item-identifiers x:3:3: the item identifier %s#n of occurrence "o" of topic %s#t identifies name "T" of topic %s#t already`, base, base, base),
	}, tolerated)
	for i, c := range tally.Counts() {
		assert.Equal(t, 1, c.Times)
		assert.Equal(t, 1, tally.Times(c.Rule))
		tally.Add(&c.First)
		assert.Regexp(t, `^[^;]+ \(2 times\); it is [^.]+(\.0)?\. \w.+$`, tally.Counts()[i].Warning())
		assert.Regexp(t, `^[^;]+ \(2 times\)\. \w.+$`, tally.Counts()[i].Problem())
	}
	assert.Empty(t, (*xtm.Tally)(nil).Counts())

	var strict []xtm.Rule
	_, err = read(`<topicMap xmlns="http://www.topicmaps.org/xtm/1.0/">`+doc[strings.Index(doc, "lost"):], xtm.Options{Problem: func(e *xtm.SyntaxError) { strict = append(strict, e.Rule) }})
	assert.Equal(t, []xtm.Rule{xtm.NoTextBetween, xtm.UntypedNames}, strict)
	var syntax *xtm.SyntaxError
	require.ErrorAs(t, err, &syntax, "an undeclared entity is not well-formed")
	assert.Equal(t, xtm.DeclaredPrefix, syntax.Rule)
}

func TestBaseMustBeAbsolute(t *testing.T) {
	_, err := xtm.Read(t.Context(), strings.NewReader(head10+foot), xtm.Options{})
	assert.ErrorContains(t, err, "the base of the document")
}

// Statements that are one for ten thousand reasons do not take quadratic time.
func TestManyReifiedRoles(t *testing.T) {
	var doc strings.Builder
	doc.WriteString(head21 + `<association><type><topicRef href="#a"/></type>`)
	for i := range 20_000 {
		fmt.Fprintf(&doc, `<role reifier="#r%d"><type><topicRef href="#t"/></type><topicRef href="#p%d"/></role>`, i, i)
	}
	doc.WriteString(`</association>` + foot)
	_, err := read(doc.String(), xtm.Options{})
	assert.NoError(t, err)
}

// A base, a namespace or a scope that is written once can apply a thousand times: the added length is bounded by the
// length of the document.
func TestAmplificationIsBounded(t *testing.T) {
	for name, hostile := range testhostile.Amplifying {
		short := xtm.Limits{Locator: 200, Growth: 10_000}
		_, err := read(hostile(100, 50), xtm.Options{Limits: short})
		assert.NoError(t, err, name)
		tooLong := rejected(t, hostile(9<<10, 3), xtm.Options{})
		assert.Contains(t, tooLong.Reason, "is too long (8192 at most): ", name)
		assert.Less(t, len(tooLong.Reason), 400, name)
		assert.Contains(t, rejected(t, hostile(250, 3), xtm.Options{Limits: short}).Reason, "is too long (200 at most): ", name)

		// Many times one of a length that is allowed.
		_, err = read(hostile(8000, 100), xtm.Options{})
		assert.NoError(t, err, "%s: small documents may", name)
		o := xtm.Options{Limits: xtm.Limits{Growth: 10_000}}
		syntax := rejected(t, hostile(8000, 100), o)
		assert.Contains(t, syntax.Reason, "add more than 16 times the document and 10000 bytes", name)
		o.Problem = func(*xtm.SyntaxError) {}
		assert.Equal(t, syntax.Reason, rejected(t, hostile(8000, 100), o).Reason, "%s: this is final", name)
	}
	limits := xtm.Limits{Growth: 1000}
	assert.Contains(t, rejected(t, testhostile.Scope(100, 100, 100), xtm.Options{Limits: limits}).Reason, "inherited themes")
	_, err := read(testhostile.Scope(10, 10, 100), xtm.Options{Limits: limits})
	assert.NoError(t, err)

	// A value may be long: it is not multiplied.
	data := "data:text/plain," + strings.Repeat("x", 20_000)
	tm, err := read(head21+`<topic><subjectIdentifier href="x:a"/><occurrence><type><topicRef href="#t"/></type><resourceRef href="`+data+`"/></occurrence></topic>`+foot, xtm.Options{})
	require.NoError(t, err)
	assert.Equal(t, data, tm.TopicBySubjectIdentifier("x:a").Occurrences()[0].Value())
}

func TestRolesAreLimited(t *testing.T) {
	_, err := read(testhostile.Association(9), xtm.Options{Limits: xtm.Limits{Roles: 9}})
	assert.NoError(t, err)
	assert.Equal(t, "<association> has 9 roles (8 at most): make several associations of it",
		rejected(t, testhostile.Association(9), xtm.Options{Limits: xtm.Limits{Roles: 8}}).Reason)
	members := head10 + `<association><member>` + strings.Repeat(`<topicRef xlink:href="#p"/>`, 9) + `</member></association>` + foot
	assert.Equal(t, "<association> has 9 roles (8 at most): make several associations of it", rejected(t, members, xtm.Options{Limits: xtm.Limits{Roles: 8}}).Reason)
}

// A topic of XTM 1.0 that reifies thousands of statements by their ids is settled in one go.
func TestManyReifiedIDs(t *testing.T) {
	var statements, ids strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&statements, `<baseName id="n%d"><baseNameString>same</baseNameString></baseName>`, i)
		fmt.Fprintf(&ids, `<subjectIndicatorRef xlink:href="#n%d"/>`, i)
	}
	_, err := read(head10+`<topic id="t">`+statements.String()+`</topic><topic id="r"><subjectIdentity>`+ids.String()+`</subjectIdentity></topic>`+foot, xtm.Options{})
	assert.NoError(t, err)
}

// The estimate of the memory of a map is close to its use: a limit on it holds for documents of many small items,
// too.
func TestMemoryIsLimited(t *testing.T) {
	for name, unit := range map[string]string{
		"topics":            `<topic id="a%d"/>`,
		"topics by mention": `<association><type><topicRef href="#t"/></type><role><type><topicRef href="#t"/></type><topicRef href="#p%d"/></role></association>`,
		"types":             `<topic id="a%d"><instanceOf><topicRef href="#t"/></instanceOf></topic>`,
		"reifiers":          `<topic id="a"><name reifier="#r%[1]d"><value>n%[1]d</value></name></topic>`,
		"scopes":            `<topic id="a"><name><scope><topicRef href="#s%[1]d"/></scope><value>n%[1]d</value></name></topic>`,
		"long names":        `<topic id="a"><name><value>n%d` + strings.Repeat("x", 5000) + `</value></name></topic>`,
	} {
		const n = 3000
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, unit, i)
		}
		doc := head21 + b.String() + foot
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		tm, err := read(doc, xtm.Options{})
		require.NoError(t, err)
		runtime.GC()
		runtime.ReadMemStats(&after)
		takes := int64(after.HeapAlloc) - int64(before.HeapAlloc)
		runtime.KeepAlive(tm)
		_, err = read(doc, xtm.Options{Limits: xtm.Limits{Memory: takes * 5 / 2}})
		assert.NoError(t, err, "%s: %d bytes", name, takes)
		syntax := rejected(t, doc, xtm.Options{Limits: xtm.Limits{Memory: takes / 2}})
		assert.ErrorIs(t, syntax, xtm.ErrMemory, name)
		assert.ErrorIs(t, syntax, xtm.ErrLimit, name)
	}
}

// The limit of memory holds for a single element, too, before anything is made of it: each variant
// has the themes of its name.
func TestMemoryOfOneElementIsLimited(t *testing.T) {
	const limit = 2 << 20
	var roles, members strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&roles, `<role><type><topicRef href="#t"/></type><topicRef href="#p%d"/></role>`, i)
		fmt.Fprintf(&members, `<topicRef xlink:href="#p%d"/>`, i)
	}
	for name, doc := range map[string]string{
		"variants":    testhostile.Scope(199, 5, 1000),
		"roles":       head21 + `<association><type><topicRef href="#t"/></type>` + roles.String() + `</association>` + foot,
		"players":     head10 + `<association><member>` + members.String() + `</member></association>` + foot,
		"identifiers": testhostile.Identifiers(20_000, "n"),
		"names":       head21 + `<topic id="t">` + strings.Repeat(`<name><value/></name>`, 50_000) + `</topic>` + foot,
		"text":        head21 + `<topic id="t"><occurrence><resourceData>` + strings.Repeat("x", limit) + `</resourceData></occurrence></topic>` + foot,
		"XML":         head21 + `<topic id="t"><occurrence><resourceData datatype="http://www.w3.org/2001/XMLSchema#anyType">` + strings.Repeat("<x/>", limit/4) + `</resourceData></occurrence></topic>` + foot,
	} {
		d := xtm.NewDecoder(strings.NewReader(doc), xtm.Options{Base: "http://example.org/m", Limits: xtm.Limits{Memory: limit}})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var err error
		for err == nil {
			_, err = d.Next()
		}
		runtime.ReadMemStats(&after)
		assert.ErrorIs(t, err, xtm.ErrMemory, name)
		assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(8*limit), name)
		_, err = read(doc, xtm.Options{Limits: xtm.Limits{Memory: 100 * limit}})
		assert.NotErrorIs(t, err, xtm.ErrMemory, name)
	}
}
