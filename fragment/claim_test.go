package fragment_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/tmdm"
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

// A claim says which statement, by what makes statements equal. Reifiers, item
// identifiers and the variants of a name are not part of that.
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
