package xtm_test

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/tmdm/cxtm"
	"github.com/tmshare/tmshare/xtm"
)

// problemsOf reads a document whose problems are collected. It returns the line, column and reason of each.
func problemsOf(t *testing.T, doc string, o xtm.Options) (*tmdm.TopicMap, []string) {
	t.Helper()
	var problems []string
	o.Problem = func(e *xtm.SyntaxError) {
		problems = append(problems, fmt.Sprintf("%d:%d %s", e.Line, e.Column, e.Reason))
	}
	tm, err := read(doc, o)
	require.NoError(t, err)
	return tm, problems
}

// requireSameMap requires that the rest of a document equals another document.
func requireSameMap(t *testing.T, want string, got *tmdm.TopicMap) {
	t.Helper()
	tm, err := read(want, xtm.Options{})
	require.NoError(t, err)
	o := cxtm.Options{Base: fuzzBase}
	require.Equal(t, canonical(t, tm, o), canonical(t, got, o))
}

func TestAllProblemsOfXTM10(t *testing.T) {
	doc := head10 + `
<topic/>
<topic id="ok"><baseName><baseNameString>good</baseNameString></baseName></topic>
lost
<topic id="a"><member/>
  <occurrence><resourceData>x</resourceData><resourceData>y</resourceData></occurrence>
</topic>
<nonsense/>
<topic id="b"><instanceOf><topicRef xlink:href="http://&#x7F;"/></instanceOf></topic>
<topic id="c"><instanceOf><topicRef xlink:href="http://&#x7F;"/></instanceOf></topic>
<association><member><roleSpec/><topicRef/></member></association>
<association id="fine"><member><topicRef xlink:href="#ok"/></member></association>
<mergeMap xlink:href="x"/>
<topic id="fine2" xml:base="http://&#x7F;"/>
<topic id="ok2"/>
` + foot
	tm, problems := problemsOf(t, doc, xtm.Options{})
	assert.Equal(t, []string{
		"2:1 <topic> has no id",
		`3:82 <topicMap> cannot hold text: "lost"`,
		"5:15 <topic> cannot hold <member>",
		"6:3 <occurrence> has more than one <resourceRef> or <resourceData>",
		"8:1 <topicMap> cannot hold <nonsense>",
		"9:27 \"http://\\x7f\" is not a usable reference: has the control character 0x7f",
		"10:27 \"http://\\x7f\" is not a usable reference: has the control character 0x7f",
		"11:22 <roleSpec> names no topic",
		"11:33 <topicRef> has no xlink:href",
		"13:1 <mergeMap> asks for http://example.org/x to be merged in, which is not done here: merge the documents first, or take the element out",
		"14:1 \"http://\\x7f\" is not a usable reference: has the control character 0x7f",
	}, problems)
	requireSameMap(t, head10+`<topic id="ok"><baseName><baseNameString>good</baseNameString></baseName></topic>
<association id="fine"><member><topicRef xlink:href="#ok"/></member></association><topic id="ok2"/>`+foot, tm)
}

func TestAllProblemsOfXTM21(t *testing.T) {
	doc := `<topicMap xmlns="http://www.topicmaps.org/xtm/" reifier="http://&#x7F;">
<reifier><topicRef href="#ok"/><topicRef href="#ok"/></reifier>
<itemIdentity/>
<topic/>
<topic id="1"/>
<topic id="ok"><name><itemIdentity href="#n"/><value>good</value></name></topic>
<topic id="a"><name reifier="#r"><reifier/><type/><scope/><value><b/></value></name></topic>
<association><type><subjectIdentifierRef/></type></association>
<association><type><topicRef href="#a"/></type><role><topicRef href="#p"/></role></association>
<association><type><topicRef href="#ok"/></type>
  <role><type><topicRef href="#ok"/></type><topicRef href="#ok"/></role>
  <role><type><topicRef href="#ok"/></type><topicRef href="#n"/></role>
</association>
<topic id="n"/>
` + foot
	tm, problems := problemsOf(t, doc, xtm.Options{})
	assert.Equal(t, []string{
		"1:1 <topicMap> has no version",
		"1:1 \"http://\\x7f\" is not a usable reference: has the control character 0x7f",
		"2:1 <topicMap> has more than one reifier",
		"2:1 <reifier> names more than one topic",
		"3:1 <itemIdentity> has no href",
		"4:1 <topic> has neither an id nor <itemIdentity>, <subjectIdentifier> or <subjectLocator>",
		`5:1 the id "1" of <topic> is not an XML name`,
		"7:34 <name> has more than one reifier",
		"7:34 <reifier> names no topic",
		"7:44 <type> names no topic",
		"7:51 <scope> names no topic",
		"7:66 <value> can only hold text, not <b>",
		"8:20 <subjectIdentifierRef> has no href",
		"8:1 <association> has no <role>",
		"9:48 <role> has no <type>",
		`10:1 http://example.org/map.xtm#n identifies name "good" of topic http://example.org/map.xtm#ok, so it cannot identify a topic`,
		`14:1 http://example.org/map.xtm#n identifies name "good" of topic http://example.org/map.xtm#ok, so it cannot identify a topic`,
	}, problems)
	requireSameMap(t, head21+`<topic id="ok"><name><itemIdentity href="#n"/><value>good</value></name></topic>`+foot, tm)
}

// Faults that only the whole document shows are collected as well.
func TestProblemsAtTheEnd(t *testing.T) {
	tm, problems := problemsOf(t, head21+`
<topic id="t"><name reifier="#r"><itemIdentity href="#i"/><value>one</value></name></topic>
<topic id="u"><name reifier="#r"><itemIdentity href="#i"/><value>two</value></name></topic>
<topic id="v"><name reifier="#r"><itemIdentity href="#j"/><value>three</value></name></topic>
`+foot, xtm.Options{})
	const is = "http://example.org/map.xtm#"
	assert.ElementsMatch(t, []string{
		`3:1 topic ` + is + `r reifies both name "one" of topic ` + is + `t and name "two" of topic ` + is + `u`,
		`4:1 topic ` + is + `r reifies both name "one" of topic ` + is + `t and name "three" of topic ` + is + `v`,
		`3:1 the item identifier ` + is + `i of name "two" of topic ` + is + `u identifies name "one" of topic ` + is + `t already`,
	}, problems)
	requireSameMap(t, head21+`<topic id="t"><name reifier="#r"><itemIdentity href="#i"/><value>one</value></name></topic>
<topic id="u"><name><value>two</value></name></topic>
<topic id="v"><name><itemIdentity href="#j"/><value>three</value></name></topic>`+foot, tm)
}

// Faults in documents that are merged in are collected, with the names of these documents.
func TestProblemsOfMergedDocuments(t *testing.T) {
	var names []string
	o := xtm.Options{URI: "main.xtm", Problem: func(e *xtm.SyntaxError) { names = append(names, fmt.Sprintf("%s:%d", e.URI, e.Line)) }}
	o.Loader = func(l tmdm.Locator) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(head10 + "\n<topic/>\n<topic id='u'/>" + foot)), nil
	}
	tm, err := read(head10+"<mergeMap xlink:href='sub.xtm'/>\n<topic/><topic id='t'/>"+foot, o)
	require.NoError(t, err)
	assert.Equal(t, []string{"http://example.org/sub.xtm:2", "main.xtm:2"}, names)
	requireSameMap(t, head21+`<topic id="t"/><topic><itemIdentity href="sub.xtm#u"/></topic>`+foot, tm)
}

// XML that is not well-formed ends reading: no problem after it can be found.
func TestIllFormedXMLIsAnErrorAmongProblems(t *testing.T) {
	for _, c := range []struct{ doc, reason string }{
		{"", "the document is empty"},
		{"<rss/>", "root element is <rss>, not a topic map"},
		{head10 + "<topic/><topic id='t'>" + foot, "<topic> is closed by </topicMap>"},
		{head10 + "<topic/>&x;" + foot, "the entity x is not declared"},
		{head10 + "<topic/><p:x/>" + foot, "the prefix of the element p:x is not declared"},
		{head10 + "<topic/>", "the document ends inside <topicMap>"},
		{head10 + "<topic/>" + strings.Repeat("<x xmlns='urn:x'>", 300), "elements are nested more than 200 deep"},
		{head10 + "<topic/>" + foot + "<x/>", "a second root element"},
	} {
		var problems []*xtm.SyntaxError
		_, err := read(c.doc, xtm.Options{Problem: func(e *xtm.SyntaxError) { problems = append(problems, e) }})
		var syntax *xtm.SyntaxError
		require.ErrorAs(t, err, &syntax, c.doc)
		assert.Equal(t, c.reason, syntax.Reason, c.doc)
		want := strings.Count(c.doc, "<topic/>")
		require.Len(t, problems, want, c.doc)
		for _, p := range problems {
			assert.Equal(t, "<topic> has no id", p.Reason)
		}
	}
}

// The elements that a Decoder returns are those without problems.
func TestDecoderPassesOverProblems(t *testing.T) {
	doc := head10 + `<topic id="a"/><topic/><association/><association><member/></association><topic id=""/><topic id="b"/>` + foot
	problems := 0
	d := xtm.NewDecoder(strings.NewReader(doc), xtm.Options{Base: fuzzBase, Problem: func(*xtm.SyntaxError) { problems++ }})
	var got []string
	for {
		e, err := d.Next()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		switch e := e.(type) {
		case *xtm.Topic:
			got = append(got, string(e.ItemIdentifiers[0]))
		case *xtm.Association:
			got = append(got, "association")
		}
	}
	assert.Equal(t, []string{fuzzBase + "#a", "association", fuzzBase + "#b"}, got)
	assert.Equal(t, 3, problems)
}

// A map whose own identity is wrong has none.
func TestProblemsOfTheMapItself(t *testing.T) {
	xlink := `xmlns:xlink="http://www.w3.org/1999/xlink"`
	for _, attr := range []string{`id=""`, `xml:base="&#x7F;:"`} {
		tm, problems := problemsOf(t, `<topicMap xmlns="http://www.topicmaps.org/xtm/1.0/" `+xlink+` `+attr+`><topic id="t"/></topicMap>`, xtm.Options{})
		assert.Len(t, problems, 1, attr)
		requireSameMap(t, head21+`<topic id="t"/>`+foot, tm)
	}
}

// Two unequal statements with one item identifier: an error, or the second goes
// without.
const clashing = `<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1">
<topic id="t">
  <name><itemIdentity href="#n1"/><value>one</value></name>
  <name><itemIdentity href="#n1"/><value>other</value></name>
</topic>
</topicMap>`

func TestDropClashesKeepsTheFirstAndReportsTheSecond(t *testing.T) {
	o := xtm.Options{Base: "http://example.org/map"}
	_, err := xtm.Read(t.Context(), strings.NewReader(clashing), o)
	var syntax *xtm.SyntaxError
	require.ErrorAs(t, err, &syntax)

	var dropped []*xtm.SyntaxError
	o.DropClashes, o.Tolerated = true, func(e *xtm.SyntaxError) { dropped = append(dropped, e) }
	tm, err := xtm.Read(t.Context(), strings.NewReader(clashing), o)
	require.NoError(t, err)
	require.Len(t, dropped, 1)
	assert.Equal(t, 2, dropped[0].Line, "where the topic begins")
	for topic := range tm.Topics() {
		names := topic.Names()
		if len(names) == 2 {
			assert.Len(t, names[0].ItemIdentifiers(), 1)
			assert.Empty(t, names[1].ItemIdentifiers())
		}
	}
}

// The earlier use of an encoder, and its end, must not show after a reset.
func TestResetEncoder(t *testing.T) {
	reifier := xtm.SubjectIdentifier("urn:reifier")
	topic := &xtm.Topic{
		SubjectIdentifiers: []tmdm.Locator{"urn:x"},
		ItemIdentifiers:    []tmdm.Locator{sp + "#x"}, // taken only once in each document
		Names:              []xtm.Name{{Value: "n", Type: xtm.SubjectIdentifier("urn:type"), Reifier: reifier}},
	}
	write := func(e *xtm.Encoder, out *bytes.Buffer) (string, xtm.Losses) {
		require.NoError(t, e.Topic(topic))
		require.NoError(t, e.Close())
		return out.String(), e.Losses()
	}
	for _, v := range []xtm.Version{xtm.V10, xtm.V20, xtm.V21} {
		if v == xtm.V20 { // it knows topics by their ids alone
			reifier = xtm.ItemIdentifier(sp + "#reifier")
			topic.Names[0].Type, topic.Names[0].Reifier = xtm.ItemIdentifier(sp+"#type"), reifier
		}
		var fresh bytes.Buffer
		want, losses := write(xtm.NewEncoder(&fresh, v, sp), &fresh)
		ends := map[string]func(*xtm.Encoder){
			"closed":  func(e *xtm.Encoder) { _, _ = e.Topic(topic), e.Close() },
			"left":    func(e *xtm.Encoder) { _ = e.Topic(topic) },
			"in need": func(e *xtm.Encoder) { _ = e.Topic(&xtm.Topic{}) },
			"amid an element": func(e *xtm.Encoder) {
				_ = e.Topic(&xtm.Topic{SubjectIdentifiers: topic.SubjectIdentifiers, Names: []xtm.Name{{Value: "\x00", Reifier: reifier}}})
			},
		}
		for name, end := range ends {
			e := xtm.NewEncoder(io.Discard, xtm.V10, "http://elsewhere.example.org/")
			e.NameTypes = xtm.OntopiaNameTypes
			end(e)
			var out bytes.Buffer
			e.Reset(&out, v, sp)
			got, gotLosses := write(e, &out)
			assert.Equal(t, want, got, "XTM %s after one that was %s", v, name)
			assert.Equal(t, losses, gotLosses)
		}
	}
}
