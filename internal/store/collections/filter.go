package collections

import (
	"fmt"
	"slices"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/tmdm"
)

// Filter says what of its inputs a derived collection has. Topics are named by subject identifiers. An empty list lets
// all pass.
type Filter struct {
	Types            []fragment.Ref `json:"types,omitempty"`            // of topics
	AssociationTypes []fragment.Ref `json:"associationTypes,omitempty"` // besides type-instance, which always passes
	Scope            []fragment.Ref `json:"scope,omitempty"`            // themes, such as languages
}

// Empty reports whether all passes.
func (f *Filter) Empty() bool {
	return f == nil || len(f.Types)+len(f.AssociationTypes)+len(f.Scope) == 0
}

// Equal reports whether two filters are the same.
func (f *Filter) Equal(g *Filter) bool {
	if f.Empty() || g.Empty() {
		return f.Empty() == g.Empty()
	}
	return slices.Equal(f.Types, g.Types) && slices.Equal(f.AssociationTypes, g.AssociationTypes) &&
		slices.Equal(f.Scope, g.Scope)
}

// Normalize puts the identifiers in order, as IRIs are in RDF: those in normal form stay so. Nothing else may be given.
func (f *Filter) Normalize() error {
	for _, refs := range []*[]fragment.Ref{&f.Types, &f.AssociationTypes, &f.Scope} {
		*refs = slices.Clone(*refs)
		for i, ref := range *refs {
			meant, err := tmdm.Named(string(ref))
			if err != nil {
				return fmt.Errorf(
					"the filter has %q, which is no subject identifier: %w. Give an absolute IRI, as \"topic\" shows it", ref, err)
			}
			if iri.Shown(string(ref)) == string(ref) {
				(*refs)[i] = meant[0]
			}
		}
		slices.Sort(*refs)
		*refs = slices.Compact(*refs)
	}
	return nil
}
