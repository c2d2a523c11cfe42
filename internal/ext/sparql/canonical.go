package sparql

import (
	"math/big"
	"strings"

	"github.com/tmshare/tmshare/internal/rdf"
)

// numbers are the datatypes whose values stores keep as one kind of number.
var numbers = func() map[string]bool {
	all := map[string]bool{}
	for _, name := range strings.Fields("integer decimal double float long int short byte nonNegativeInteger " +
		"positiveInteger nonPositiveInteger negativeInteger unsignedLong unsignedInt unsignedShort unsignedByte") {
		all[rdf.XSD+name] = true
	}
	return all
}()

// canonical returns a term such that two terms that a store may take for one are the same: numbers and booleans by
// value, languages without case.
func canonical(t rdf.Term) rdf.Term {
	t.Language = strings.ToLower(t.Language)
	switch {
	case t.Kind != rdf.Literal:
	case numbers[t.Datatype]:
		if n, ok := new(big.Rat).SetString(strings.TrimSpace(t.Value)); ok && len(t.Value) < 400 {
			t.Value, t.Datatype = n.RatString(), "number"
		}
	case t.Datatype == rdf.XSD+"boolean":
		switch t.Value {
		case "true", "1":
			t.Value, t.Datatype = "1", "number"
		case "false", "0":
			t.Value, t.Datatype = "0", "number"
		}
	}
	return t
}

func canonicalOf(q rdf.Quad) rdf.Quad {
	return rdf.Quad{Subject: q.Subject, Predicate: q.Predicate, Object: canonical(q.Object)}
}
