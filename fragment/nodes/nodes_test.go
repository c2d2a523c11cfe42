package nodes

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	_ "github.com/tmshare/tmshare/internal/testenv" // takes -long
)

// graph is a source of statements. Blank nodes begin with "_:"; other names are local parts.
type graph map[fragment.Ref]*Statements

const base = "http://example.org/"

func expand(name string) fragment.Ref {
	for prefix, namespace := range map[string]string{"rdf": rdf, "owl": owl, "xsd": xsd, "xl": skosXL,
		"_": base + ".well-known/genid/", "": base,
	} {
		if local, ok := strings.CutPrefix(name, prefix+":"); ok {
			return fragment.Ref(namespace + local)
		}
	}
	return ""
}

// read reads statements, one a line. A term that is no prefixed name is a text.
func read(t *testing.T, text string) graph {
	g := graph{}
	about := func(ref fragment.Ref) *Statements {
		if g[ref] == nil {
			g[ref] = &Statements{}
			if local, ok := strings.CutPrefix(string(ref), base); ok && !strings.HasPrefix(local, ".") {
				g[ref].Title = local
			}
		}
		return g[ref]
	}
	for line := range strings.Lines(text) {
		parts := strings.SplitN(strings.TrimSpace(line), " ", 3)
		if len(parts) < 3 {
			require.Empty(t, parts[0])
			continue
		}
		s, p, o := about(expand(parts[0])), expand(parts[1]), expand(parts[2])
		about(p)
		switch {
		case p == rdf+"type":
			about(o)
			s.Types = append(s.Types, o)
		case o != "":
			about(o)
			s.add(p, Value{Ref: o})
		default:
			s.add(p, Value{Text: parts[2]})
		}
	}
	for _, s := range g {
		slices.SortStableFunc(s.Rows, func(a, b Row) int {
			return strings.Compare(string(a.Property), string(b.Property))
		})
	}
	return g
}

func (g graph) Statements(ref fragment.Ref) (*Statements, error) {
	if ref == base+"broken" || strings.HasSuffix(string(ref), "/broken") {
		return nil, errors.New("broken")
	}
	return g[ref], nil
}

func TestNodesSayWhatTheyAre(t *testing.T) {
	list := func(name string, members ...string) string {
		text := ""
		for i, m := range members {
			rest := fmt.Sprintf("_:%s%d", name, i+1)
			if i == len(members)-1 {
				rest = "rdf:nil"
			}
			text += fmt.Sprintf("_:%[1]s%[2]d rdf:first %[3]s\n_:%[1]s%[2]d rdf:rest %[4]s\n_:%[1]s%[2]d rdf:type rdf:List\n",
				name, i, m, rest)
		}
		return text
	}
	restriction := func(name, kind, class string) string {
		return fmt.Sprintf("_:%[1]s rdf:type owl:Restriction\n_:%[1]s owl:onProperty :has-part\n_:%[1]s owl:%[2]s %[3]s\n",
			name, kind, class)
	}
	for name, c := range map[string]struct{ graph, want string }{
		"list":          {list("n", ":A", "two words", ":C"), "A, two words, C"},
		"list of lists": {list("n", "_:m0", ":C") + list("m", ":A", ":B"), "(A, B), C"},
		"label":         {"_:n0 rdf:type xl:Label\n_:n0 xl:literalForm big dog", "big dog"},
		"value":         {"_:n0 rdf:value 5\n_:n0 :unit :metre", "5 [unit: metre]"},
		"some":          {restriction("n0", "someValuesFrom", ":Wheel"), "has-part some Wheel"},
		"only":          {restriction("n0", "allValuesFrom", ":Wheel"), "has-part only Wheel"},
		"value of":      {restriction("n0", "hasValue", ":it"), "has-part value it"},
		"self":          {restriction("n0", "hasSelf", "true"), "has-part Self"},
		"min":           {restriction("n0", "minCardinality", "1"), "has-part min 1"},
		"max of a class": {restriction("n0", "maxQualifiedCardinality", "4") + "_:n0 owl:onClass :Wheel",
			"has-part max 4 Wheel"},
		"exactly": {restriction("n0", "qualifiedCardinality", "4") + "_:n0 owl:onDataRange xsd:integer",
			"has-part exactly 4 xsd:integer"},
		"inverse": {"_:n0 owl:onProperty _:p\n_:p owl:inverseOf :has-part\n_:n0 owl:someValuesFrom :Car",
			"(inverse has-part) some Car"},
		"or":  {"_:n0 owl:unionOf _:m0\n" + list("m", ":A", ":B"), "A or B"},
		"not": {"_:n0 owl:complementOf :A", "not A"},
		"not or": {"_:n0 owl:complementOf _:u\n_:u owl:unionOf _:m0\n" + list("m", ":A", ":B"),
			"not (A or B)"},
		"and": {"_:n0 rdf:type owl:Class\n_:n0 owl:intersectionOf _:m0\n" + list("m", ":A", "_:r") +
			restriction("r", "someValuesFrom", ":Wheel"),
			"A and (has-part some Wheel)"},
		"one of": {"_:n0 owl:oneOf _:m0\n" + list("m", ":a", ":b"), "{a, b}"},
		"datatype": {"_:n0 owl:onDatatype xsd:integer\n_:n0 owl:withRestrictions _:m0\n" + list("m", "_:f", "_:g") +
			"_:f xsd:minInclusive 5\n_:g xsd:maxExclusive 10",
			"xsd:integer[>= 5, < 10]"},
		"statements": {"_:n0 rdf:type :Period\n_:n0 :start 2020\n_:n0 :end 2021\n_:n0 :in _:p\n_:p :name Oslo",
			"Period [end: 2021; in: [name: Oslo]; start: 2020]"},
		"several values":    {"_:n0 :a 1\n_:n0 :a 2", "[a: 1, 2]"},
		"nothing":           {"_:n0 rdf:type :Thing\n", "Thing"},
		"a node of its own": {"_:n0 :a _:n0", "[a: …]"},
		"a list in a circle": {"_:n0 rdf:first :A\n_:n0 rdf:rest _:n1\n_:n1 rdf:first :B\n_:n1 rdf:rest _:n0",
			"A, B, …"},
		"a list without end":  {"_:n0 rdf:first :A\n_:n0 rdf:rest _:gone", "A, …"},
		"an empty union":      {"_:n0 owl:unionOf rdf:nil", "empty list"},
		"a node that is gone": {"_:n0 :a _:gone\n", "[a: something without a name]"},
		"two properties": {"_:n0 owl:onProperty :a\n_:n0 owl:onProperty :b\n_:n0 owl:someValuesFrom :C",
			"[on property: a, b; some values from: C]"},
		"lines": {"_:n0 rdf:value a\tb", "a b"},
	} {
		r := NewReader(read(t, c.graph))
		title, err := r.Title(expand("_:n0"))
		require.NoError(t, err, name)
		assert.Equal(t, c.want, title, name)
	}
}

func TestNodesAreBounded(t *testing.T) {
	deep, wide, long := "", "", ""
	for i := range 1000 {
		deep += fmt.Sprintf("_:d%d :a _:d%d\n", i, i+1)
		wide += fmt.Sprintf("_:w :a _:w%d\n_:w%d :a 1\n", i, i)
		long += fmt.Sprintf("_:l%d rdf:first :m%d\n_:l%d rdf:rest _:l%d\n", i, i, i, i+1)
	}
	r := NewReader(read(t, deep+wide+long))
	title, err := r.Title(expand("_:d0"))
	require.NoError(t, err)
	assert.Equal(t, strings.Repeat("[a: ", deepest)+More+strings.Repeat("]", deepest), title)
	n, err := r.Node(expand("_:w"))
	require.NoError(t, err)
	assert.Equal(t, More, n.Rows[0].Values[mostNodes].Text)
	n, err = r.Node(expand("_:l0"))
	require.NoError(t, err)
	assert.Len(t, n.Parts, mostMembers+1)
	title, err = r.Title(expand("_:l0"))
	require.NoError(t, err)
	assert.Equal(t, maxText, len([]rune(strings.TrimSuffix(title, More))))
}

func TestWhatHasANameIsNoNode(t *testing.T) {
	g := read(t, "_:n :a 1\n:B :a 1")
	g[expand("_:n")].Title = "a name"
	r := NewReader(g)
	for ref, want := range map[string]string{"_:n": "a name", ":B": "B", "xsd:date": "xsd:date",
		"_:gone": "something without a name",
	} {
		n, err := r.Node(expand(ref))
		require.NoError(t, err)
		assert.Nil(t, n, ref)
		title, err := r.Title(expand(ref))
		require.NoError(t, err)
		assert.Equal(t, want, title)
	}
	for _, ref := range []string{"_:broken", ":broken"} {
		_, err := r.Title(expand(ref))
		assert.Error(t, err)
	}
	g = read(t, "_:a :a _:broken\n_:b rdf:first _:broken\n_:c owl:unionOf _:broken\n_:d owl:complementOf _:broken\n"+
		"_:e rdf:first :A\n_:e rdf:rest _:broken\n_:f :a :broken\n_:g owl:onDatatype :A\n_:g owl:withRestrictions _:broken")
	for _, ref := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		_, err := NewReader(g).Title(expand("_:" + ref))
		assert.Error(t, err, ref)
	}
}
