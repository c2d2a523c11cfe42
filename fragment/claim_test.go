package fragment_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// Claims are stable for ever: a peer keeps them as item identifiers.
func TestClaimsAreFixed(t *testing.T) {
	n := &fragment.Name{Value: "n", Type: tmdm.PSIDefaultNameType}
	v := &fragment.Variant{Value: "v", Datatype: tmdm.XSDString, Scope: []fragment.Ref{b}}
	o := &fragment.Occurrence{Value: "o", Datatype: tmdm.XSDString, Type: x}
	association := &fragment.Association{Type: x, Roles: []fragment.Role{{Type: x, Player: a}}}
	require.Equal(t, tmdm.Locator(sp+"name-zel6jlpqkead5cpo5gwkavaquy"), fragment.NameClaim(sp, a, n))
	require.Equal(t, tmdm.Locator(sp+"variant-smmvntn3sly2yxayzd4ej673ma"), fragment.VariantClaim(sp, a, n, v))
	require.Equal(t, tmdm.Locator(sp+"occurrence-rnuklem4tv6kh7xm4vdzs7wze4"), fragment.OccurrenceClaim(sp, a, o))
	require.Equal(t, tmdm.Locator(sp+"association-2oderaxofgsf7bioannszmyxwu"), fragment.AssociationClaim(sp, association))
}

// A claim identifies a statement by the properties of its equality. Reifiers, item identifiers and the variants of a
// name are not among them.
func TestEqualStatementsHaveTheSameClaim(t *testing.T) {
	n := fragment.Name{Value: "n", Type: c, Scope: []fragment.Ref{d}}
	same := n
	same.Reifier, same.ItemIdentifiers, same.Variants = e, []tmdm.Locator{sp + "#n"}, []fragment.Variant{{Value: "v"}}
	require.Equal(t, fragment.NameClaim(sp, a, &n), fragment.NameClaim(sp, a, &same))
	v := fragment.Variant{Value: "v", Datatype: tmdm.XSDString, Scope: []fragment.Ref{d, x}}
	sameVariant := v
	sameVariant.Reifier, sameVariant.ItemIdentifiers = e, []tmdm.Locator{sp + "#v"}
	require.Equal(t, fragment.VariantClaim(sp, a, &n, &v), fragment.VariantClaim(sp, a, &same, &sameVariant))
	o := fragment.Occurrence{Value: "o", Datatype: tmdm.XSDString, Type: c}
	sameOccurrence := o
	sameOccurrence.Reifier, sameOccurrence.ItemIdentifiers = e, []tmdm.Locator{sp + "#o"}
	require.Equal(t, fragment.OccurrenceClaim(sp, a, &o), fragment.OccurrenceClaim(sp, a, &sameOccurrence))
	testenv.Check(t, 25, 100, func(t *rapid.T) {
		association := genAssociation.Draw(t, "association")
		other := *association
		other.Reifier, other.ItemIdentifiers = genReifier.Draw(t, "reifier"), genIDs.Draw(t, "ids")
		require.Equal(t, fragment.AssociationClaim(sp, association), fragment.AssociationClaim(sp, &other))
	})
}

func TestUnequalStatementsHaveDifferentClaims(t *testing.T) {
	claims := map[tmdm.Locator]string{}
	claim := func(what string, l tmdm.Locator) {
		t.Helper()
		require.True(t, strings.HasPrefix(string(l), sp), what)
		require.NotContains(t, claims, l, what)
		claims[l] = what
	}
	for _, topic := range []fragment.Ref{a, b} {
		for _, value := range []string{"s", "t", ""} {
			for _, typ := range []fragment.Ref{c, d} {
				for _, scope := range [][]fragment.Ref{nil, {c}, {d}, {c, d}} {
					n := &fragment.Name{Value: value, Type: typ, Scope: scope}
					claim("name", fragment.NameClaim(sp, topic, n))
					for _, datatype := range []string{tmdm.XSDString, tmdm.XSDAnyURI} {
						claim("occurrence", fragment.OccurrenceClaim(sp, topic, &fragment.Occurrence{Value: value, Datatype: datatype, Type: typ, Scope: scope}))
						claim("variant", fragment.VariantClaim(sp, topic, n, &fragment.Variant{Value: "v", Datatype: datatype, Scope: append([]fragment.Ref{x}, scope...)}))
						claim("variant", fragment.VariantClaim(sp, topic, n, &fragment.Variant{Value: "w", Datatype: datatype, Scope: append([]fragment.Ref{x}, scope...)}))
						claim("variant", fragment.VariantClaim(sp, topic, n, &fragment.Variant{Value: "w", Datatype: datatype, Scope: append([]fragment.Ref{e, x}, scope...)}))
					}
					claim("association", fragment.AssociationClaim(sp, &fragment.Association{Type: typ, Scope: scope, Roles: []fragment.Role{{Type: fragment.Ref("t:" + value), Player: topic}}}))
				}
			}
		}
	}
	n := &fragment.Name{Value: "s", Type: c}
	require.NotEqual(t, fragment.NameClaim(sp, a, n), fragment.NameClaim("http://other.example.org/", a, n), "each source has claims of its own")
}

func documentOf(topics ...string) string {
	return `<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1">` + strings.Join(topics, "") + `</topicMap>`
}

func bareTopic(id string) string {
	return `<topic id="` + id + `"><subjectIdentifier href="http://a.org/` + id + `"/></topic>`
}

func namedTopic(id string) string {
	return `<topic id="` + id + `"><subjectIdentifier href="http://a.org/` + id + `"/><name><value>` + id + `</value></name></topic>`
}

func association(players ...string) string {
	var b strings.Builder
	b.WriteString(`<association><type><topicRef href="#type"/></type>`)
	for _, p := range players {
		b.WriteString(`<role><type><topicRef href="#role"/></type><topicRef href="#` + p + `"/></role>`)
	}
	return b.String() + `</association>`
}

func TestReadRecordFindsWhatADocumentIsAbout(t *testing.T) {
	instance := `<topic id="x"><subjectIdentifier href="http://a.org/x"/><instanceOf><topicRef href="#c"/></instanceOf></topic>`
	for name, c := range map[string]struct {
		document string
		hints    []tmdm.Locator
		about    tmdm.Locator // "": none
	}{
		"the only topic":                    {document: documentOf(bareTopic("x")), about: "http://a.org/x"},
		"the only one with a name":          {document: documentOf(bareTopic("a"), namedTopic("x"), bareTopic("b")), about: "http://a.org/x"},
		"a hint":                            {document: documentOf(namedTopic("x"), namedTopic("y")), hints: []tmdm.Locator{"http://none", "http://a.org/y"}, about: "http://a.org/y"},
		"in all associations":               {document: documentOf(bareTopic("type"), bareTopic("role"), association("x", "a"), association("b", "x")), about: "http://a.org/x"},
		"the instance, not the class":       {document: documentOf(instance, bareTopic("c")), about: "http://a.org/x"},
		"two with names":                    {document: documentOf(namedTopic("x"), namedTopic("y"))},
		"two bare ones":                     {document: documentOf(bareTopic("x"), bareTopic("y"))},
		"two in the only association":       {document: documentOf(bareTopic("type"), bareTopic("role"), association("x", "a"))},
		"no topic at all":                   {document: documentOf()},
		"no topic is in all associations":   {document: documentOf(bareTopic("type"), bareTopic("role"), association("x", "a"), association("b", "c"))},
		"a name weighs more than playing":   {document: documentOf(bareTopic("type"), bareTopic("role"), association("x", "a"), association("x", "b"), namedTopic("b")), about: "http://a.org/b"},
		"hints of what is not in it do not": {document: documentOf(namedTopic("x")), hints: []tmdm.Locator{"http://none"}, about: "http://a.org/x"},
	} {
		t.Run(name, func(t *testing.T) {
			doc := strings.ReplaceAll(c.document, `</topicMap>`, "")
			for _, id := range []string{"x", "a", "b", "c"} { // players that are not described
				if strings.Contains(doc, `"#`+id+`"`) && !strings.Contains(doc, `id="`+id+`"`) {
					doc += bareTopic(id)
				}
			}
			f, err := fragment.ReadRecord(t.Context(), strings.NewReader(doc+`</topicMap>`), xtm.Options{Base: "http://a.org/", URI: "doc.xtm"}, c.hints...)
			if c.about == "" {
				var ambiguous *fragment.AmbiguousError
				require.ErrorAs(t, err, &ambiguous)
				assert.Equal(t, "doc.xtm", ambiguous.URI)
				assert.Contains(t, err.Error(), "doc.xtm: ")
				return
			}
			require.NoError(t, err)
			assert.Equal(t, c.about, f.Topic.TopicSI())
			assert.Equal(t, c.about, f.TopicSI)
			for _, stub := range f.Stubs {
				assert.NotEqual(t, c.about, stub.TopicSI())
			}
		})
	}
}
