package cxtm_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	_ "github.com/tmshare/tmshare/internal/testenv" // takes -long
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/tmdm/cxtm"
)

const base = "http://example.org/maps/one/"

func write(t testing.TB, tm *tmdm.TopicMap, o cxtm.Options) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, cxtm.Write(&out, tm, o))
	return out.String()
}

func TestEmptyMap(t *testing.T) {
	assert.Equal(t, "<topicMap>\n</topicMap>\n", write(t, tmdm.New(), cxtm.Options{Base: base}))
}

func TestLocatorsAreRelative(t *testing.T) {
	for _, c := range []struct{ base, locator, want string }{
		{"http://example.org/maps/one/", "http://example.org/maps/one/x", "x"},
		{"http://example.org/maps/one/", "http://example.org/maps/one/", ""},
		{"http://example.org/maps/one/", "http://example.org/maps/one#x", "#x"},
		{"http://example.org/maps/one.xtm", "http://example.org/maps/one.xtm#x", "#x"},
		{"http://example.org/maps/one.xtm#frag", "http://example.org/maps/one.xtm#x", "#x"},
		{"http://example.org/maps/one.xtm?q=/#f", "http://example.org/maps/one.xtm?q", "?q"},
		{"http://example.org/maps/one.xtm", "http://example.org/maps/two.xtm#x", "two.xtm#x"},
		{"http://example.org/maps/one.xtm", "http://example.org/other/two.xtm", "other/two.xtm"},
		{"http://example.org/maps/one.xtm", "http://example.net/x", "example.net/x"},
		{"http://example.org/maps/one.xtm", "urn:x:y", "urn:x:y"},
		{"http://example.org/maps/one.xtm", "https://example.org/x", "https://example.org/x"},
		{"", "http://example.org/x", "http://example.org/x"},
		// The base is cut off as a string, wherever that leaves off.
		{"http://example.org/maps/one", "http://example.org/maps/one-more/x", "-more/x"},
		{"http://example.org/maps/one/", "http://example.org/maps/one", ""},
		{"http://example.org/maps/one", "http://example.org/maps/one//x", "/x"},
		// Otherwise the shared part up to the last slash is removed: never half a step.
		{"file:///maps/in/one.xtm", "file:///maps/in/photo.jpg", "photo.jpg"},
		{"file:///maps/in/one.xtm", "file:///maps/in/on", "on"},
		{"file:///maps/in/one.xtm", "file:///maps/in/sub/photo.jpg", "sub/photo.jpg"},
		{"file:///maps/in/one.xtm", "file:///maps/photo.jpg", "photo.jpg"},
		{"file:///maps/in/one.xtm", "file:///maps/inn/photo.jpg", "inn/photo.jpg"},
		{"file:///maps/in/one.xtm", "file:///other", "other"},
		{"file:///maps/in/one.xtm", "file:///maps/in/", ""},
		{"file:///maps/in/one.xtm", "file:/maps/in/x", "maps/in/x"},
		{"file:///maps/in/one.xtm", "http://example.org/x", "http://example.org/x"},
		{"http://example.org/maps/one.xtm", "http://example.org", "example.org"},
		{"http://example.org/maps/one.xtm", "http://example.org:80/maps/x", "example.org:80/maps/x"},
		{"http://example.org/maps/one.xtm", "HTTP://example.org/maps/x", "HTTP://example.org/maps/x"},
		{"urn:x:y", "urn:x:y:z", ":z"},
		{"urn:x:y", "urn:x:z", "urn:x:z"},
	} {
		tm := tmdm.New()
		tm.CreateTopicBySubjectIdentifier(tmdm.Locator(c.locator))
		got := write(t, tm, cxtm.Options{Base: tmdm.Locator(c.base)})
		assert.Contains(t, got, "<locator>"+c.want+"</locator>\n", "%s relative to %s", c.locator, c.base)
	}
}

func TestValues(t *testing.T) {
	for _, c := range []struct{ value, datatype, want string }{
		{"1 < 2 & 3 > 2", tmdm.XSDString, "1 &lt; 2 &amp; 3 &gt; 2"},
		{"a\r\nb\t\"c\"", tmdm.XSDString, "a&#xD;\nb\t\"c\""},
		{" 007 ", tmdm.XSDInteger, "7"},
		{"+7", tmdm.XSDInteger, "7"},
		{"-07", tmdm.XSDInteger, "-7"},
		{"-0", tmdm.XSDInteger, "0"},
		{"000", tmdm.XSDInteger, "0"},
		{"7.0", tmdm.XSDInteger, "7.0"},
		{"seven", tmdm.XSDInteger, "seven"},
		{"", tmdm.XSDInteger, ""},
		{"+1.50", tmdm.XSDDecimal, "1.5"},
		{"1", tmdm.XSDDecimal, "1.0"},
		{".5", tmdm.XSDDecimal, "0.5"},
		{"5.", tmdm.XSDDecimal, "5.0"},
		{"-0.0", tmdm.XSDDecimal, "0.0"},
		{"-0.10", tmdm.XSDDecimal, "-0.1"},
		{".", tmdm.XSDDecimal, "."},
		{"1e3", tmdm.XSDDecimal, "1e3"},
		{base + "photo.jpg", tmdm.XSDAnyURI, "photo.jpg"},
		{base + "photo.jpg", tmdm.XSDString, base + "photo.jpg"},
	} {
		tm := tmdm.New()
		topic := tm.CreateTopicBySubjectIdentifier("http://example.com/t")
		topic.AddOccurrence(c.value, c.datatype, topic)
		assert.Contains(t, write(t, tm, cxtm.Options{Base: base}), "<value>"+c.want+"</value>\n", "%q as %s", c.value, c.datatype)
	}
}

// Sets compare by their size first: two subject identifiers come after one,
// whatever they are, and none at all comes first.
func TestOrderOfTopics(t *testing.T) {
	tm := tmdm.New()
	add := func(sis, sls, iids string) {
		topic := tm.CreateTopic()
		for _, l := range strings.Fields(sis) {
			require.NoError(t, topic.AddSubjectIdentifier(tmdm.Locator("urn:"+l)))
		}
		for _, l := range strings.Fields(sls) {
			require.NoError(t, topic.AddSubjectLocator(tmdm.Locator("urn:"+l)))
		}
		for _, l := range strings.Fields(iids) {
			require.NoError(t, tmdm.AddItemIdentifier(topic, tmdm.Locator("urn:"+l)))
		}
	}
	add("b a", "", "")
	add("z", "", "1")
	add("y", "l", "")
	add("x", "k m", "")
	add("w", "", "0 2")
	add("", "c d", "")
	add("", "n", "")
	add("", "", "9")
	got := write(t, tm, cxtm.Options{Base: base})
	var order []string
	for _, line := range strings.Split(got, "\n") {
		if l, ok := strings.CutPrefix(line, "<locator>urn:"); ok {
			order = append(order, strings.TrimSuffix(l, "</locator>"))
		}
	}
	assert.Equal(t, "9 n c d w 0 2 x k m y l z 1 a b", strings.Join(order, " "))
}

func TestRolesPlayedAreOrderedByType(t *testing.T) {
	tm := tmdm.New()
	topic := func(l string) *tmdm.Topic { return tm.CreateTopicBySubjectIdentifier(tmdm.Locator("urn:" + l)) }
	first, second := topic("1"), topic("2") // association types
	player := topic("3")
	early, late := topic("4"), topic("5") // role types
	tm.CreateAssociation(first).AddRole(late, player)
	tm.CreateAssociation(second).AddRole(early, player)
	got := write(t, tm, cxtm.Options{Base: base})
	assert.Contains(t, got, "<rolePlayed ref=\"association.2.role.1\"></rolePlayed>\n<rolePlayed ref=\"association.1.role.1\"></rolePlayed>\n")
}

func TestAssociationsWithFewerRolesComeFirst(t *testing.T) {
	tm := tmdm.New()
	topic := func(l string) *tmdm.Topic { return tm.CreateTopicBySubjectIdentifier(tmdm.Locator("urn:" + l)) }
	two := tm.CreateAssociation(topic("0"))
	two.AddRole(topic("0"), topic("1"))
	two.AddRole(topic("0"), topic("2"))
	tm.CreateAssociation(topic("0")).AddRole(topic("0"), topic("3"))
	assert.Contains(t, write(t, tm, cxtm.Options{}), `<association number="1">
<type topicref="1"></type>
<role number="1">
<player topicref="4"></player>
`)
}

func TestWholeMap(t *testing.T) {
	tm := tmdm.New()
	topic := func(l string) *tmdm.Topic { return tm.CreateTopicBySubjectIdentifier(tmdm.Locator(base + l)) }
	a, r := topic("a"), topic("r")
	require.NoError(t, tmdm.AddItemIdentifier(tm, base+"#map"))
	require.NoError(t, tmdm.SetReifier(tm, r))
	require.NoError(t, tmdm.AddItemIdentifier(a, base+"#a"))
	n := a.AddName("A", topic("type"), topic("s2"), topic("s1"))
	require.NoError(t, tmdm.AddItemIdentifier(n, base+"#n"))
	v := n.AddVariant("Ä", tmdm.XSDString, topic("s3"))
	require.NoError(t, tmdm.AddItemIdentifier(v, base+"#v"))
	require.NoError(t, tmdm.SetReifier(v, topic("rv")))
	assoc := tm.CreateAssociation(topic("assoc"), topic("s1"))
	assoc.AddRole(topic("role"), a)
	require.NoError(t, tmdm.SetReifier(assoc.Roles()[0], topic("rr")))

	// 1 a, 2 assoc, 3 r, 4 role, 5 rr, 6 rv, 7 s1, 8 s2, 9 s3, 10 type
	want := `<topicMap reifier="3">
<itemIdentifiers>
<locator>#map</locator>
</itemIdentifiers>
<topic number="1">
<subjectIdentifiers>
<locator>a</locator>
</subjectIdentifiers>
<itemIdentifiers>
<locator>#a</locator>
</itemIdentifiers>
<name number="1">
<value>A</value>
<type topicref="10"></type>
<scope>
<scopingTopic topicref="7"></scopingTopic>
<scopingTopic topicref="8"></scopingTopic>
</scope>
<variant number="1" reifier="6">
<value>Ä</value>
<datatype>http://www.w3.org/2001/XMLSchema#string</datatype>
<scope>
<scopingTopic topicref="7"></scopingTopic>
<scopingTopic topicref="8"></scopingTopic>
<scopingTopic topicref="9"></scopingTopic>
</scope>
<itemIdentifiers>
<locator>#v</locator>
</itemIdentifiers>
</variant>
<itemIdentifiers>
<locator>#n</locator>
</itemIdentifiers>
</name>
<rolePlayed ref="association.1.role.1"></rolePlayed>
</topic>
`
	got := write(t, tm, cxtm.Options{Base: base})
	assert.Equal(t, want, got[:len(want)])
	assert.Contains(t, got, `<association number="1">
<type topicref="2"></type>
<role number="1" reifier="5">
<player topicref="1"></player>
<type topicref="4"></type>
</role>
<scope>
<scopingTopic topicref="7"></scopingTopic>
</scope>
</association>
</topicMap>
`)
	omitted := write(t, tm, cxtm.Options{Base: base, OmitItemIdentifiers: true})
	assert.True(t, strings.HasPrefix(omitted, "<topicMap>\n<topic number=\"1\">\n"))
	assert.NotContains(t, omitted, "itemIdentifiers")
	assert.Contains(t, omitted, `<variant number="1" reifier="6">`)
}

// With item identifiers left out, topics without other identifiers are ordered by the statements about them, in
// whatever order they were created.
func TestAnonymousTopicsHaveAnOrder(t *testing.T) {
	build := func(order []int) *tmdm.TopicMap {
		tm := tmdm.New()
		topics := make([]*tmdm.Topic, len(order))
		for _, i := range order {
			topics[i] = tm.CreateTopic()
			require.NoError(t, tmdm.AddItemIdentifier(topics[i], tmdm.Locator(fmt.Sprintf("urn:%d-%d", order[0], i))))
		}
		known := tm.CreateTopicBySubjectIdentifier("urn:known")
		// A chain whose topics differ by its end only; a ring of equal topics; a reifier, a theme and a type that
		// differ by their use only.
		for i := range 9 {
			a := tm.CreateAssociation(known)
			a.AddRole(known, topics[i])
			a.AddRole(tm.CreateTopicBySubjectIdentifier("urn:next"), topics[i+1])
		}
		topics[9].AddName("the end", nil)
		for i := range 6 {
			a := tm.CreateAssociation(known)
			a.AddRole(known, topics[10+i])
			a.AddRole(tm.CreateTopicBySubjectIdentifier("urn:next"), topics[10+(i+1)%6])
		}
		o := known.AddOccurrence("x", tmdm.XSDString, topics[16], topics[17])
		require.NoError(t, tmdm.SetReifier(o, topics[18]))
		n := known.AddName("y", topics[19])
		v := n.AddVariant("z", tmdm.XSDString, topics[20])
		require.NoError(t, tmdm.SetReifier(v, topics[21]))
		require.NoError(t, tmdm.SetReifier(n, topics[22]))
		require.NoError(t, tmdm.SetReifier(tm, topics[23]))
		tm.Normalize(t.Context())
		return tm
	}
	order := make([]int, 24)
	for i := range order {
		order[i] = i
	}
	o := cxtm.Options{Base: base, OmitItemIdentifiers: true}
	want := write(t, build(order), o)
	random := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		require.Equal(t, want, write(t, build(order), o))
	}
}

// Of topics that are alike not all orders are tried: this test would not end.
func TestManyAlikeTopics(t *testing.T) {
	const many = 5_000
	tm := tmdm.New()
	typ := tm.CreateTopicBySubjectIdentifier("urn:type")
	for range many {
		tm.CreateAssociation(typ).AddRole(typ, tm.CreateTopic())
	}
	assert.Equal(t, many, strings.Count(write(t, tm, cxtm.Options{OmitItemIdentifiers: true}), "<association "))
}

type brokenWriter struct{}

var errBroken = errors.New("broken")

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

func TestErrorOfTheWriterIsReturned(t *testing.T) {
	assert.ErrorIs(t, cxtm.Write(brokenWriter{}, tmdm.New(), cxtm.Options{}), errBroken)
}

func BenchmarkWrite(b *testing.B) {
	tm := tmdm.New()
	typ := tm.CreateTopicBySubjectIdentifier("urn:type")
	var last *tmdm.Topic
	for i := range 100_000 {
		t := tm.CreateTopicBySubjectIdentifier(tmdm.Locator(fmt.Sprintf("http://example.org/t/%d", i*7919%100_000)))
		t.AddName(fmt.Sprintf("name %d", i), nil)
		t.AddName(fmt.Sprintf("other %d", i), nil, typ)
		t.AddOccurrence("value", tmdm.XSDString, typ)
		t.AddOccurrence("http://example.org/v", tmdm.XSDAnyURI, typ)
		t.AddType(typ)
		if last != nil {
			a := tm.CreateAssociation(typ)
			a.AddRole(typ, last)
			a.AddRole(typ, t)
		}
		last = t
	}
	tm.Normalize(b.Context())
	for b.Loop() {
		if err := cxtm.Write(discard{}, tm, cxtm.Options{Base: base}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Seconds())/float64(b.N), "s/100k-topics")
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
