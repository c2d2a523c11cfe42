package pages

import (
	"slices"

	"github.com/tmshare/tmshare/fragment"
)

// The bounds of a path: how many concepts it has, and how many associations of each are looked at.
const (
	longestPath = 20
	mostOfOne   = 1000
)

// isConcept reports whether a topic is a concept of SKOS.
func (of *topic) isConcept() bool {
	return slices.ContainsFunc(of.Types, func(t typed) bool { return t.ref == skos+"Concept" })
}

// above returns the path of broader concepts that leads to a concept, from the top. Of several at a step it takes the
// first in the reader's order.
func (d *describer) above(of *topic, self fragment.Ref) (path []link, err error) {
	if !of.isConcept() {
		return nil, nil
	}
	seen := map[fragment.Ref]bool{self: true}
	for len(path) < longestPath {
		broader, err := d.broader(self)
		if err != nil {
			return nil, err
		}
		broader = slices.DeleteFunc(broader, func(ref fragment.Ref) bool { return seen[ref] })
		if len(broader) == 0 {
			break
		}
		var first link
		for i, ref := range broader {
			l, err := d.link(ref)
			if err != nil {
				return nil, err
			}
			if i == 0 || d.order(l, first) < 0 {
				first, self = l, ref
			}
		}
		seen[self] = true
		path = append(path, first)
	}
	slices.Reverse(path)
	return path, nil
}

// stated is the hierarchy of concepts by its identifiers: it needs no look at the map.
var stated = relation{types: broaderAndNarrower(fragment.RDFSubject, fragment.RDFObject), skos: true}

// broader returns the concepts that are stated to be broader than one.
func (d *describer) broader(self fragment.Ref) (all []fragment.Ref, err error) {
	n := 0
	for a, err := range d.v.State().AssociationsOf(self, fragment.AsPlayer) {
		if n++; err != nil || n > mostOfOne {
			return all, err
		}
		if above, below, ok := stated.pair(a); ok && below == self && !slices.Contains(all, above) {
			all = append(all, above)
		}
	}
	return all, nil
}
