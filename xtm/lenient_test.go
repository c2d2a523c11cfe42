package xtm_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/tmdm/cxtm"
	"github.com/tmshare/tmshare/xtm"
)

// readTally reads a document leniently, and returns the faults that were tolerated. Strict reading must refuse it by
// the same rules.
func readTally(t *testing.T, doc string) (*tmdm.TopicMap, *xtm.Tally) {
	t.Helper()
	var tally xtm.Tally
	tm, err := read(doc, xtm.Options{Lenient: true, Tolerated: tally.Add})
	require.NoError(t, err, doc)
	var strict xtm.Tally
	if _, err := read(doc, xtm.Options{Problem: strict.Add}); assert.NoError(t, err) {
		for _, c := range tally.Counts() {
			assert.Equal(t, c.Times, strict.Times(c.Rule), "%s: %s", c.Rule, doc)
		}
	}
	return tm, &tally
}

// Markup in a value without a datatype is read as with the datatype for markup (ISO 13250-3 §4.16).
func TestMarkupWithoutADatatype(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"2.0", "2.1"} {
		doc := func(datatype, value string) string {
			return `<topicMap xmlns="http://www.topicmaps.org/xtm/" version="` + version + `"><topic id="n"/><topic id="a"><name><value>A</value><variant><scope><topicRef href="#n"/></scope><resourceData` + datatype + ">" + value +
				`</resourceData></variant></name><occurrence><type><topicRef href="#n"/></type><resourceData` + datatype + ">" + value + `</resourceData></occurrence></topic></topicMap>`
		}
		for _, value := range []string{
			"some <b>bold &amp; &lt;x></b> text",
			"<p>only</p>",
			"a &amp; b\r\n<i/>",
			`<h:p xmlns:h="http://www.w3.org/1999/xhtml" class='"'>x<h:br/></h:p><h:q xmlns:h="urn:x">&quot;</h:q> behind<!-- not this -->`,
		} {
			typed, err := read(doc(` datatype="`+tmdm.XSDAnyType+`"`, value), xtm.Options{})
			require.NoError(t, err)
			tm, tally := readTally(t, doc("", value))
			assert.Equal(t, 2, tally.Times(xtm.TypedMarkup), value)
			requireEqualMaps(t, typed, tm)
		}
		// A value with a datatype of its own that is not for markup states its meaning, and so does XTM 1.0.
		_, err := read(doc(` datatype="`+tmdm.XSDString+`"`, "<b/>"), xtm.Options{Lenient: true})
		assert.ErrorContains(t, err, "<resourceData> can only hold text, not <b>")
		_, err = read(doc("", "<b/>"), xtm.Options{})
		assert.ErrorContains(t, err, "<resourceData> can only hold text, not <b>, as it has no datatype")
		_, err = read(doc("", "<b/>"+strings.Repeat("x", 100)), xtm.Options{Lenient: true, Limits: xtm.Limits{Token: 90}})
		assert.ErrorIs(t, err, xtm.ErrLimit)
	}
	_, err := read(head10+`<topic id="a"><occurrence><resourceData><b/></resourceData></occurrence></topic>`+foot, xtm.Options{Lenient: true})
	assert.ErrorContains(t, err, "can only hold text")
}

// In XTM 2.0 a reifier is named by the id of a topic element. If it is named by another identifier of the topic, the
// meaning is clear.
func TestReifiersByItemIdentity(t *testing.T) {
	t.Parallel()
	const iri = "http://example.org/r"
	doc := func(version, reifier, before, behind string) string {
		return `<topicMap xmlns="http://www.topicmaps.org/xtm/" version="` + version + `">` + before + `<topic id="a"><name reifier="` + reifier + `"><value>A</value></name></topic>` + behind + `</topicMap>`
	}
	topic := `<topic id="r"><itemIdentity href="` + iri + `"/></topic>`
	byID, err := read(doc("2.0", "#r", topic, ""), xtm.Options{})
	require.NoError(t, err)
	for _, spelt := range []string{doc("2.0", iri, topic, ""), doc("2.0", iri, "", topic)} {
		tm, tally := readTally(t, spelt)
		assert.Equal(t, 1, tally.Times(xtm.ReifierIDs))
		requireEqualMaps(t, byID, tm)
	}
	_, tally := readTally(t, doc("2.1", iri, topic, ""))
	assert.Empty(t, tally.Counts(), "XTM 2.1 allows it")

	// The reifier of the map, and of each kind of statement.
	all := fmt.Sprintf(`<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.0" reifier="%[1]s/0"><topic id="t"/><topic id="a"><name reifier="%[1]s/1"><value>A</value><variant reifier="%[1]s/2"><scope><topicRef href="#t"/></scope><resourceData>v</resourceData></variant></name>
		<occurrence reifier="%[1]s/3"><type><topicRef href="#t"/></type><resourceData>o</resourceData></occurrence></topic>
		<association reifier="%[1]s/4"><type><topicRef href="#t"/></type><role reifier="%[1]s/5"><type><topicRef href="#t"/></type><topicRef href="#a"/></role></association>`, iri)
	for i := range 6 {
		all += fmt.Sprintf(`<topic id="r%d"><itemIdentity href="%s/%d"/></topic>`, i, iri, i)
	}
	tm, tally := readTally(t, all+"</topicMap>")
	assert.Equal(t, 6, tally.Times(xtm.ReifierIDs))
	for i := range 6 {
		reifier, _ := tm.ConstructByItemIdentifier(tmdm.Locator(fmt.Sprintf("%s#r%d", fuzzBase, i))).(*tmdm.Topic)
		require.NotNil(t, reifier)
		assert.NotNil(t, reifier.Reified(), i)
	}

	// No topic element has the identifier of the reifier.
	for _, other := range []string{"", `<topic id="r"/>`, `<topic id="r"><itemIdentity href="` + iri + `2"/></topic>`} {
		for _, o := range []xtm.Options{{}, {Lenient: true}} {
			_, err := read(doc("2.0", iri, other, ""), o)
			assert.ErrorContains(t, err, `"`+iri+`" refers to no topic element`, other)
		}
	}
	_, err = read(strings.Replace(doc("2.0", "#r", topic, ""), "<name ", `<instanceOf><topicRef href="`+iri+`"/></instanceOf><name `, 1), xtm.Options{Lenient: true})
	assert.ErrorContains(t, err, "refers to no topic element", "reifiers alone")
}

func requireEqualMaps(t *testing.T, want, got *tmdm.TopicMap) {
	t.Helper()
	require.Equal(t, canonical(t, want, cxtm.Options{Base: fuzzBase}), canonical(t, got, cxtm.Options{Base: fuzzBase}))
}

// A count names some different ones of what broke its rule, and the part of the document that had the first.
func TestCountsNameWhatBreaksARule(t *testing.T) {
	t.Parallel()
	rule := xtm.NewRule("test-losses", xtm.RuleText{
		Broken: "a thing is odd", Read: "it is left out", Advice: "Mend it", Loses: true,
	})
	var tally xtm.Tally
	tally.Add(&xtm.SyntaxError{Rule: xtm.TypedMarkup})
	assert.Empty(t, tally.Losses())
	tally.Add(&xtm.SyntaxError{Rule: rule, Of: "a", In: "the node n"})
	assert.Equal(t, "a thing is odd (once: a; first in the node n); it is left out. Mend it", tally.Losses()[0].Warning())
	for _, name := range strings.Split("a b c d e", " ") {
		tally.Add(&xtm.SyntaxError{Rule: rule, Of: name})
	}
	assert.Contains(t, tally.Losses()[0].Warning(), "(6 times: a, b, c, d, e; first in the node n)")
	tally.Add(&xtm.SyntaxError{Rule: rule, Of: "f"})
	assert.Contains(t, tally.Losses()[0].Warning(), "(7 times: a, b, c, d, e and others; first in the node n)")
	assert.Equal(t, 1, len(tally.Losses()))
}
