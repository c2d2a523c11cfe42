package collections

import (
	"fmt"
	"slices"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/titles"
	"github.com/tmshare/tmshare/tmdm"
)

// Filter selects the content of inputs for a derived collection. Topics are named by subject identifiers. An empty list
// selects all.
type Filter struct {
	Types            []fragment.Ref `json:"types,omitempty"`            // of topics
	Within           []fragment.Ref `json:"within,omitempty"`           // concepts and schemes: topics are below one
	AssociationTypes []fragment.Ref `json:"associationTypes,omitempty"` // besides type-instance, which always passes
	Scope            []fragment.Ref `json:"scope,omitempty"`            // themes, such as languages
	Languages        []string       `json:"languages,omitempty"`        // besides Scope: tags, in lower case
	// ScopedNames keeps back names in the unconstrained scope.
	ScopedNames bool `json:"scopedNames,omitempty"`
}

// FilterList is one of the lists of a filter.
type FilterList struct {
	Flag, Means string
	Refs        *[]fragment.Ref
}

// Lists returns the lists of a filter, in order.
func (f *Filter) Lists() []FilterList {
	return []FilterList{{"type", "type", &f.Types}, {"within", "concept or scheme", &f.Within},
		{"association-type", "association type", &f.AssociationTypes}, {"scope", "theme", &f.Scope}}
}

// Empty reports whether all passes.
func (f *Filter) Empty() bool {
	some := func(l FilterList) bool { return len(*l.Refs) > 0 }
	return f == nil || !f.ScopedNames && len(f.Languages) == 0 && !slices.ContainsFunc(f.Lists(), some)
}

// Equal reports whether two filters are the same.
func (f *Filter) Equal(g *Filter) bool {
	if f.Empty() || g.Empty() {
		return f.Empty() == g.Empty()
	}
	return f.ScopedNames == g.ScopedNames && slices.Equal(f.Languages, g.Languages) &&
		slices.EqualFunc(f.Lists(), g.Lists(), func(a, b FilterList) bool { return slices.Equal(*a.Refs, *b.Refs) })
}

// Themes are the identifiers of a language of the filter, which a map may have for its topic.
func Themes(language string) (all []fragment.Ref) {
	for _, si := range titles.Identifiers(language) {
		all = append(all, fragment.Ref(si))
	}
	return all
}

// Normalize sorts the identifiers, and validates them as IRIs of RDF; those in normal form are unchanged.
func (f *Filter) Normalize() error {
	for i, tag := range f.Languages {
		known, err := titles.ParseLanguage(tag)
		if err != nil {
			return err
		}
		f.Languages[i] = known
	}
	slices.Sort(f.Languages)
	f.Languages = slices.Compact(f.Languages)
	for _, l := range f.Lists() {
		*l.Refs = slices.Clone(*l.Refs)
		for i, ref := range *l.Refs {
			meant, err := tmdm.Named(string(ref))
			if err != nil {
				return fmt.Errorf(
					"the filter has %q, which is no subject identifier: %w. Give an absolute IRI, as \"topic\" shows it", ref, err)
			}
			if iri.Shown(string(ref)) == string(ref) {
				(*l.Refs)[i] = meant[0]
			}
		}
		slices.Sort(*l.Refs)
		*l.Refs = slices.Compact(*l.Refs)
	}
	return nil
}
