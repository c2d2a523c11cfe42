package mapdiff

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/testedit"
	"github.com/tmshare/tmshare/internal/testenv"
	maps "github.com/tmshare/tmshare/testdata/xtm"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

func person(id, name, class string) string {
	return `<topic id="` + id + `"><name><value>` + name + `</value></name></topic>
		<association><type><topicRef href="#child-of"/></type>
		<role><type><topicRef href="#child"/></type><topicRef href="#` + id + `"/></role>
		<role><type><topicRef href="#parent"/></type><topicRef href="#` + class + `"/></role></association>`
}

// Topics that have nothing but ids are found again when the ids are others, even
// if other topics have them now.
func TestTopicsAreFoundByWhatIsSaidOfThem(t *testing.T) {
	a := person("i1", "Ann", "i2") + person("i2", "Bob", "i3") + person("i3", "Cid", "i1")
	assert.Empty(t, compare(t, a, person("x", "Ann", "y")+person("y", "Bob", "z")+person("z", "Cid", "x")))
	assert.Empty(t, compare(t, a, person("i3", "Ann", "i1")+person("i1", "Bob", "i2")+person("i2", "Cid", "i3")))

	// Those of which the same is said are told apart by their neighbours.
	a = person("i1", "Ann", "i2") + person("i2", "", "i3") + person("i3", "", "i4") + person("i4", "", "i1")
	assert.Empty(t, compare(t, a, person("x", "Ann", "w")+person("y", "", "x")+person("z", "", "y")+person("w", "", "z")))

	// A cycle of three is no cycle of one and a cycle of two, though each of
	// their topics says the same of itself.
	a = cycle("a1", "a2", "a3")
	assert.NotEmpty(t, compare(t, a, cycle("x")+cycle("y", "z")))
	assert.Empty(t, compare(t, a, cycle("x", "z", "y")))

	// Two cycles, of which the second map tells in another order.
	a = cycle("a1", "a2", "a3") + cycle("b1", "b2", "b3")
	mixed := `<topic id="x1"><name><value/></name></topic><topic id="y1"><name><value/></name></topic>`
	assert.Empty(t, compare(t, a, mixed+cycle("x1", "x2", "x3")+cycle("y1", "y2", "y3")))
	mixed = strings.Replace(mixed, `<topic`, `<topic id="m"/><topic`, 1)
	assert.NotEmpty(t, compare(t, a, mixed+cycle("x1", "x2", "x3")+cycle("y1", "y2", "y3")))
}

// cycle is persons without names, each the child of the next one.
func cycle(ids ...string) string {
	all := ""
	for i, id := range ids {
		all += person(id, "", ids[(i+1)%len(ids)])
	}
	return all
}

// A change somewhere else does not keep topics from being found, so that nothing
// is listed but the change.
func TestUnchangedTopicsAreNotListed(t *testing.T) {
	dot := func(name string) string {
		return `<topic><subjectIdentifier href="http://dot"/><name><value>` + name + `</value></name></topic>`
	}
	reified := func(topics, reifier string) string {
		return topics + `<topic><subjectIdentifier href="http://x"/><name reifier="#` + reifier + `"><value>X</value></name></topic>`
	}
	for _, c := range []struct{ what, a, b string }{
		{"other topics have the ids now", person("i1", "Ann", "i2") + person("i2", "Bob", "i1"), person("i2", "Ann", "i1") + person("i1", "Bob", "i2")},
		{"alike, with other ids", `<topic id="i1"/><topic id="i2"/>`, `<topic id="x1"/><topic id="x2"/>`},
		{"told apart after some rounds",
			person("i1", "Ann", "i2") + person("i2", "", "i3") + person("i3", "", "i4") + person("i4", "", "i5") + person("i5", "", "i5"),
			person("x5", "", "x5") + person("x4", "", "x5") + person("x3", "", "x4") + person("x2", "", "x3") + person("x1", "Ann", "x2")},
		{"by what they reify", reified(`<topic id="r1"/><topic id="i1"/>`, "r1"), reified(`<topic id="i2"/><topic id="r2"/>`, "r2")},
	} {
		assert.Equal(t, []string{"both http://dot old", `- name "old"`, `+ name "new"`}, lines(compare(t, c.a+dot("old"), c.b+dot("new"))), c.what)
	}
}

func TestChangedTopicsArePaired(t *testing.T) {
	topic := func(id, si, name string) string {
		if si != "" {
			si = `<subjectIdentifier href="` + si + `"/>`
		}
		return `<topic id="` + id + `">` + si + `<name><value>` + name + `</value></name></topic>`
	}
	for _, c := range []struct {
		what, a, b string
		want       []string
	}{
		{"by id", topic("i1", "", "Ann"), topic("i1", "", "Anna"), []string{"both #i1 Ann", `- name "Ann"`, `+ name "Anna"`}},
		{"by subject identifier rather than id",
			topic("i1", "http://a", "Ann") + topic("i2", "http://b", "Bob"), topic("i2", "http://a", "Anna") + topic("i1", "http://b", "Bob"),
			[]string{"both http://a Ann", `- name "Ann"`, `+ name "Anna"`}},
		{"by an id that is a subject identifier now",
			topic("i1", "", "Ann"), `<topic><subjectIdentifier href="` + base + `#i1"/><name><value>Anna</value></name></topic>`,
			[]string{"both #i1 Ann", `- name "Ann"`, `+ subject identifier http://example.org/map#i1`, `+ name "Anna"`}},
		{"by a subject identifier that was an id",
			`<topic><subjectIdentifier href="` + base + `#i1"/><name><value>Ann</value></name></topic>`, topic("i1", "", "Anna"),
			[]string{"both #i1 Ann", `- subject identifier http://example.org/map#i1`, `- name "Ann"`, `+ name "Anna"`}},
		{"by subject locator",
			`<topic><subjectLocator href="http://l"/><name><value>Ann</value></name></topic>`,
			`<topic><subjectLocator href="http://l"/><name><value>Anna</value></name></topic>`,
			[]string{"both http://l Ann", `- name "Ann"`, `+ name "Anna"`}},
		{"by name", topic("i1", "", "Ann"), topic("x", "http://a", "Ann"), []string{"both http://a Ann", "+ subject identifier http://a"}},
		{"without a title, by the end of an identifier",
			`<topic id="i1"/><topic id="i2"/>`, `<topic><subjectIdentifier href="http://s/topic/i2"/></topic><topic><subjectIdentifier href="http://s/topic/i1"/></topic>`,
			[]string{"both http://s/topic/i1", "+ subject identifier http://s/topic/i1", "both http://s/topic/i2", "+ subject identifier http://s/topic/i2"}},
		{"not by the end of an identifier that two have",
			`<topic id="i1"/>`, `<topic><subjectIdentifier href="http://a/i1"/></topic><topic><subjectIdentifier href="http://b/i1"/></topic>`,
			[]string{"a #i1", "b http://a/i1", "+ subject identifier http://a/i1", "b http://b/i1", "+ subject identifier http://b/i1"}},
		{"not by name, where subject identifiers differ", topic("i1", "http://a", "Ann"), topic("x", "http://b", "Ann"), []string{
			"a http://a Ann", "- subject identifier http://a", `- name "Ann"`, "b http://b Ann", "+ subject identifier http://b", `+ name "Ann"`}},
		{"not by a name that two have", topic("i1", "", "Ann") + topic("i2", "http://a", "Ann"), topic("x", "http://x", "Ann"), []string{
			"a #i1 Ann", `- name "Ann"`, "a http://a Ann", "- subject identifier http://a", `- name "Ann"`,
			"b http://x Ann", "+ subject identifier http://x", `+ name "Ann"`}},
		{"one of two that are one now",
			topic("i1", "http://a", "Ann") + topic("i2", "http://b", "Bob"),
			`<topic id="i1"><subjectIdentifier href="http://a"/><subjectIdentifier href="http://b"/><name><value>Ann</value></name><name><value>Bob</value></name></topic>`,
			[]string{"both http://a Ann", "+ subject identifier http://b", `+ name "Bob"`, "a http://b Bob", "- subject identifier http://b", `- name "Bob"`}},
	} {
		assert.Equal(t, c.want, lines(compare(t, c.a, c.b)), c.what)
	}
}

// Random edits: maps have no differences exactly when their canonical forms
// without item identifiers are the same.
func TestCompareAgreesWithCanonicalForm(t *testing.T) {
	load := func() *tmdm.TopicMap {
		tm, err := xtm.Read(t.Context(), bytes.NewReader(maps.EGov), xtm.Options{Base: base})
		require.NoError(t, err)
		return tm
	}
	equal, different := 0, 0
	for seed := range uint64(60) {
		a, b := load(), load()
		editor := testedit.New(b, base, seed)
		var edits []string
		for range seed % 4 {
			edits = append(edits, editor.Edit())
		}
		list, err := Compare(a, b, base)
		require.NoError(t, err)
		inA, err := canonical(a, base)
		require.NoError(t, err)
		inB, err := canonical(b, base)
		require.NoError(t, err)
		if bytes.Equal(inA, inB) {
			equal++
		} else {
			different++
		}
		assert.Equal(t, bytes.Equal(inA, inB), len(list) == 0, "seed %d: %s\n%s", seed, strings.Join(edits, "; "), strings.Join(lines(list), "\n"))
		assert.LessOrEqual(t, len(list), 60, "seed %d: %s", seed, edits)
	}
	assert.GreaterOrEqual(t, equal, 15)
	assert.GreaterOrEqual(t, different, 30)
}

// Real maps, with new ids for all topics, and with one name changed as well.
func TestRealMapsWithOtherIDs(t *testing.T) {
	for _, name := range []string{"GCL-2-1.xtm", "TapsasConcerts.xtm", "mondial.xtm.gz"} {
		data := testenv.SharedFile(t, "data/"+name)
		load := func(doc string) *tmdm.TopicMap {
			tm, err := xtm.Read(t.Context(), strings.NewReader(doc), xtm.Options{Base: base, Lenient: true})
			require.NoError(t, err)
			return tm
		}
		a, b := load(string(data)), load(string(data))
		topics := 0
		for topic := range b.Topics() {
			for _, l := range topic.ItemIdentifiers() {
				tmdm.RemoveItemIdentifier(topic, l)
			}
			topics++
			require.NoError(t, tmdm.AddItemIdentifier(topic, tmdm.Locator(fmt.Sprintf("%s#new%d", base, topics))))
		}
		list, err := Compare(a, b, base)
		require.NoError(t, err)
		assert.Empty(t, list, name)

		var edited *tmdm.Topic
		for topic := range b.Topics() {
			if len(topic.Names()) == 1 && len(topic.RolesPlayed()) < 10 {
				edited = topic
				break
			}
		}
		n := edited.Names()[0]
		typ := n.Type()
		n.Remove()
		edited.AddName("edited", typ)
		list, err = Compare(a, b, base)
		require.NoError(t, err)
		assert.NotEmpty(t, list, name)
		assert.LessOrEqual(t, len(list), 20, "the topic and its neighbours")
		t.Logf("%s: %d topics, %d differences after an edit", name, topics, len(list))
	}
}
