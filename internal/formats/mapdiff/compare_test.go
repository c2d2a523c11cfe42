package mapdiff

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

const base = "http://example.org/map"

// read reads what stands in a topicMap element of XTM 2.1.
func read(t testing.TB, content string) *tmdm.TopicMap {
	t.Helper()
	doc := `<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1">` + content + `</topicMap>`
	if strings.HasPrefix(content, "<topicMap") {
		doc = content
	}
	tm, err := xtm.Read(t.Context(), strings.NewReader(doc), xtm.Options{Base: base})
	require.NoError(t, err)
	return tm
}

func compare(t testing.TB, a, b string) []Difference {
	t.Helper()
	list, err := Compare(read(t, a), read(t, b), base)
	require.NoError(t, err)
	return list
}

// lines writes differences as people read them.
func lines(list []Difference) []string {
	var all []string
	for _, d := range list {
		all = append(all, strings.TrimSpace(strings.Join([]string{string(d.In), d.Topic, d.Title}, " ")))
		for _, s := range d.A {
			all = append(all, "- "+s.Text)
		}
		for _, s := range d.B {
			all = append(all, "+ "+s.Text)
		}
	}
	return all
}

// whole is a map with something of each kind, most of it about one topic.
const whole = `
<topic id="t">
  <subjectIdentifier href="http://example.org/t"/><subjectLocator href="http://example.org/t.html"/>
  <instanceOf><topicRef href="#class"/></instanceOf>
  <name><value>T</value>
    <variant><scope><topicRef href="#sort"/></scope><resourceData>t</resourceData></variant>
  </name>
  <name reifier="#r"><type><topicRef href="#nick"/></type><scope><topicRef href="#en"/></scope><value>Tee</value></name>
  <occurrence><type><topicRef href="#age"/></type><resourceData datatype="http://www.w3.org/2001/XMLSchema#integer">7</resourceData></occurrence>
</topic>
<topic id="u"><subjectIdentifier href="http://example.org/u"/></topic>
<topic id="r"><name><value>R</value></name></topic><topic id="s"/>
<association><type><topicRef href="#knows"/></type>
  <role><type><topicRef href="#who"/></type><topicRef href="#t"/></role>
  <role><type><topicRef href="#whom"/></type><topicRef href="#u"/></role>
</association>`

// Each change of a statement is found, and nothing else.
func TestCompareStatements(t *testing.T) {
	assert.Empty(t, compare(t, whole, whole))
	for _, c := range []struct {
		old, new string
		want     []string
	}{
		{`<subjectIdentifier href="http://example.org/t"/>`, ``, []string{
			"both http://example.org/t.html T", "- subject identifier http://example.org/t"}},
		{`<subjectLocator href="http://example.org/t.html"/>`, `<subjectLocator href="http://example.org/t2"/>`, []string{
			"both http://example.org/t T", "- subject locator http://example.org/t.html", "+ subject locator http://example.org/t2"}},
		{`<instanceOf><topicRef href="#class"/></instanceOf>`, `<instanceOf><topicRef href="#s"/></instanceOf>`, []string{
			"both http://example.org/t T", "- instance of #class", "+ instance of #s", "a #class"}},
		{`<value>T</value>`, `<scope><topicRef href="#en"/></scope><value>T</value>`, []string{
			"both http://example.org/t T",
			`- name "T"`, `- variant "t" in scope #sort of name "T"`,
			`+ name "T" in scope #en`, `+ variant "t" in scope #en, #sort of name "T" in scope #en`}},
		{`<resourceData>t</resourceData>`, `<resourceData>tt</resourceData>`, []string{
			"both http://example.org/t T", `- variant "t" in scope #sort of name "T"`, `+ variant "tt" in scope #sort of name "T"`}},
		{` reifier="#r"`, ` reifier="#s"`, []string{
			"both http://example.org/t T", `- name "Tee" of type #nick in scope #en reified by #r`, `+ name "Tee" of type #nick in scope #en reified by #s`}},
		{`#integer">7<`, `#decimal">7<`, []string{
			"both http://example.org/t T",
			`- occurrence "7" (http://www.w3.org/2001/XMLSchema#integer) of type #age`,
			`+ occurrence "7" (http://www.w3.org/2001/XMLSchema#decimal) of type #age`}},
		{`<role><type><topicRef href="#whom"/></type><topicRef href="#u"/></role>`, `<role reifier="#s"><type><topicRef href="#whom"/></type><topicRef href="#u"/></role>`, []string{
			"both http://example.org/t T",
			"- association of type #knows (#who: http://example.org/t, #whom: http://example.org/u)",
			"+ association of type #knows (#who: http://example.org/t, #whom: http://example.org/u reified by #s)",
			"both http://example.org/u",
			"- association of type #knows (#who: http://example.org/t, #whom: http://example.org/u)",
			"+ association of type #knows (#who: http://example.org/t, #whom: http://example.org/u reified by #s)"}},
		{`<topic id="s"/>`, `<topic id="s"/><topic id="new"><name><value>New</value></name></topic>`, []string{"b #new New", `+ name "New"`}},
	} {
		require.Contains(t, whole, c.old)
		edited := strings.Replace(whole, c.old, c.new, 1)
		assert.Equal(t, c.want, lines(compare(t, whole, edited)))
		assert.Len(t, compare(t, edited, whole), len(compare(t, whole, edited)), "the other way round")
	}
}

func TestCompareTheMapItself(t *testing.T) {
	doc := func(attributes, roles string) string {
		return `<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1"` + attributes + `><topic id="r"/><topic id="s"/></topicMap>`
	}
	assert.Equal(t, []string{"both", "- the topic map is reified by #r"}, lines(compare(t, doc(` reifier="#r"`, ""), doc("", ""))))
	assert.Equal(t, []string{"both", "+ the topic map is reified by #r"}, lines(compare(t, doc("", ""), doc(` reifier="#r"`, ""))))

	a, b := read(t, `<topic id="t"/>`), read(t, `<topic id="t"/>`)
	typ, _ := a.ConstructByItemIdentifier(base + "#t").(*tmdm.Topic)
	a.CreateAssociation(typ) // without roles, so that no topic has it
	list, err := Compare(a, b, base)
	require.NoError(t, err)
	assert.Equal(t, []string{"both", "- association of type #t ()"}, lines(list))
}

// A type-instance relation whose role is reified says more than "instance of".
func TestCompareReifiedRoleOfTypeInstance(t *testing.T) {
	relation := func(reifier string) string {
		psi := func(name string) string {
			return `<type><subjectIdentifierRef href="http://psi.topicmaps.org/iso13250/model/` + name + `"/></type>`
		}
		return `<topic id="r"/><association>` + psi("type-instance") +
			`<role>` + psi("type") + `<topicRef href="#c"/></role>` +
			`<role` + reifier + `>` + psi("instance") + `<topicRef href="#i"/></role></association>`
	}
	assert.Empty(t, compare(t, relation(""), relation("")))
	assert.NotEmpty(t, compare(t, relation(""), relation(` reifier="#r"`)))
	assert.Empty(t, compare(t, relation(` reifier="#r"`), relation(` reifier="#r"`)))
}

// An association in which a topic plays twice is one difference of that topic.
func TestCompareTopicThatPlaysTwice(t *testing.T) {
	twice := `<association><type><topicRef href="#likes"/></type>
		<role><type><topicRef href="#who"/></type><topicRef href="#t"/></role>
		<role><type><topicRef href="#whom"/></type><topicRef href="#t"/></role></association>`
	rest := `<topic id="t"/><topic id="likes"/><topic id="who"/><topic id="whom"/>`
	assert.Equal(t, []string{"both #t", "- association of type #likes (#who: #t, #whom: #t)"}, lines(compare(t, rest+twice, rest)))
}

// Pages call topics by names and show values as they are: the parts of a statement say which is which, and give
// identifiers in full.
func TestPartsOfStatements(t *testing.T) {
	doc := `<topic id="t"><name><type><topicRef href="#nick"/></type><value>T "1"
end</value></name><occurrence><type><topicRef href="http://example.org/other#age"/></type>
<resourceData datatype="http://www.w3.org/2001/XMLSchema#integer">7</resourceData></occurrence></topic>`
	list := compare(t, ``, doc)
	at := slices.IndexFunc(list, func(d Difference) bool { return d.Topic == "#t" })
	require.GreaterOrEqual(t, at, 0)
	assert.Equal(t, []Statement{
		{Name, `name "T \"1\"\nend" of type #nick`, []Part{
			{Words, "name ", ""}, {Value, "T \"1\"\nend", ""}, {Words, " of type ", ""}, {Topic, "#nick", base + "#nick"}}},
		{Occurrence, `occurrence "7" (http://www.w3.org/2001/XMLSchema#integer) of type http://example.org/other#age`, []Part{
			{Words, "occurrence ", ""}, {Value, "7", ""}, {Words, " (", ""}, {Datatype, "http://www.w3.org/2001/XMLSchema#integer", ""},
			{Words, ") of type ", ""}, {Topic, "http://example.org/other#age", "http://example.org/other#age"}}},
	}, list[at].B)
}
