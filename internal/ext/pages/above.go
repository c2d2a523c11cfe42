package pages

import (
	"cmp"
	"maps"
	"slices"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/ext/pages/texts"
	"github.com/tmshare/tmshare/tmdm"
)

// The limits of a path: its topics, the associations read of each topic on it, and the associations read of each topic
// in a list.
const (
	longestPath  = 20
	mostOfOne    = 1000
	mostOfListed = 100
)

// is reports whether a topic has one of the types.
func (t *topic) is(types ...fragment.Ref) bool {
	return slices.ContainsFunc(t.Types, func(t typed) bool { return slices.Contains(types, t.ref) })
}

// isConcept reports whether a topic is a concept of SKOS.
func (t *topic) isConcept() bool { return t.is(skos + "Concept") }

// stands finds the position of a concept or class in its hierarchy. path has the topics above it, from the top. tree
// has the path, the siblings of the topic, and the topics below it. Of several broader topics, the path takes the first
// in the reader's order. tree is nil if the topic has no topics above or below it.
func (d *describer) stands(described *topic, self fragment.Ref) (path []link, tree []*typeNode, err error) {
	if !described.isConcept() && !described.is(classes...) {
		return nil, nil, nil
	}
	above, siblings, err := d.beyond(&stated, self, mostOfOne)
	if err != nil {
		return nil, nil, err
	}
	own := &typeNode{Here: true, Instances: -1, ref: self}
	if own.link, err = d.link(self); err != nil {
		return nil, nil, err
	}
	if own.Below, err = d.beside(siblings, self, own.link, nil); err != nil {
		return nil, nil, err
	}
	tree = []*typeNode{own}
	seen := map[fragment.Ref]bool{self: true}
	for len(path) < longestPath {
		above = slices.DeleteFunc(above, func(ref fragment.Ref) bool { return seen[ref] })
		if len(above) == 0 {
			break
		}
		first := &typeNode{Instances: -1}
		for i, ref := range above {
			l, err := d.link(ref)
			if err != nil {
				return nil, nil, err
			}
			if i == 0 || d.order(l, first.link) < 0 {
				first.link, first.ref = l, ref
			}
		}
		seen[first.ref] = true
		if above, siblings, err = d.beyond(&stated, first.ref, mostOfOne); err != nil {
			return nil, nil, err
		}
		if first.Below = tree; tree[0] == own {
			if first.Below, err = d.beside(siblings, first.ref, first.link, own); err != nil {
				return nil, nil, err
			}
		}
		if err := d.mark(1, func(int) (fragment.Ref, *link) { return first.ref, &first.link }); err != nil {
			return nil, nil, err
		}
		path, tree = append(path, first.link), []*typeNode{first}
	}
	slices.Reverse(path)
	if len(path)+len(own.Below) == 0 {
		tree = nil
	}
	return path, tree, nil
}

// beside returns the topics below self: the first [most] in the reader's order, and own among them. If there are more,
// a last node links to the page of self, which lists all.
func (d *describer) beside(refs []fragment.Ref, self fragment.Ref, to link, own *typeNode) (all []*typeNode,
	err error) {
	refs = slices.DeleteFunc(refs, func(ref fragment.Ref) bool { return ref == self })
	if all, err = d.lines(refs, nil); err != nil {
		return nil, err
	}
	here := -1
	if own != nil {
		here = slices.IndexFunc(all, func(n *typeNode) bool { return n.ref == own.ref })
		if here < 0 { // own was not among the topics that were read
			here, all = len(all), append(all, own)
		}
		all[here] = own
	}
	most := cmp.Or(d.size, most)
	more := len(all) - most
	if all = all[:min(len(all), most)]; here >= most {
		all, more = append(all, own), more-1
	}
	err = d.mark(len(all), func(i int) (fragment.Ref, *link) { return all[i].ref, &all[i].link })
	if more > 0 {
		all = append(all, &typeNode{link: link{Title: d.in.Say(texts.AndMore, d.in.Count(more)), URL: to.URL}, Instances: -1})
	}
	return all, err
}

// stated is the relation of the standard identifiers that put concepts and classes above others. It does not depend on
// the map.
var stated = relation{types: append(broaderAndNarrower(fragment.RDFSubject, fragment.RDFObject),
	pairing{tmdm.PSISupertypeSubtype, map[fragment.Ref]bool{tmdm.PSISupertype: true},
		map[fragment.Ref]bool{tmdm.PSISubtype: true}}), skos: true}

// beyond returns the topics that a relation puts above self and below it, by the first n associations of self.
func (d *describer) beyond(by *relation, self fragment.Ref, n int) (above, below []fragment.Ref, err error) {
	seen := map[[2]fragment.Ref]bool{}
	for a, err := range d.v.State().AssociationsOfTypes(self, n, by.refs()...) {
		if err != nil {
			return nil, nil, err
		}
		one, other, ok := by.pair(a)
		if pair := [2]fragment.Ref{one, other}; !ok || seen[pair] {
			continue
		} else if seen[pair] = true; other == self {
			above = append(above, one)
		} else {
			below = append(below, other)
		}
	}
	return above, below, nil
}

// replacing maps the properties that join a replaced topic and its replacement to the role of the replaced topic.
var replacing = map[fragment.Ref]fragment.Ref{"http://purl.org/dc/terms/isReplacedBy": fragment.RDFSubject,
	"http://purl.org/dc/terms/replaces": fragment.RDFObject}

// isDeprecated reports whether a topic is deprecated (OWL 2, owl:deprecated).
func isDeprecated(t *fragment.Topic) bool {
	return slices.ContainsFunc(t.Occurrences, func(o fragment.Occurrence) bool {
		return o.Type == "http://www.w3.org/2002/07/owl#deprecated" && (o.Value == "true" || o.Value == "1")
	})
}

// expectMarked announces reads of topics, and of the topics that replace them.
func (d *describer) expectMarked(refs ...fragment.Ref) error {
	return d.v.State().Expect(slices.AppendSeq(refs, maps.Keys(replacing)), nil)
}

// replace reports whether any topic of the map replaces another one.
func (d *describer) replace() (bool, error) {
	if d.replaces == nil {
		used := 0
		for property := range replacing {
			n, err := d.v.State().Mentions(property)
			if used += n; err != nil {
				return false, err
			}
		}
		d.replaces = new(used > 0)
	}
	return *d.replaces, nil
}

// mark marks those of n links whose topics are replaced by others. nth returns the topic and the link with an index.
func (d *describer) mark(n int, nth func(i int) (fragment.Ref, *link)) error {
	if some, err := d.replace(); !some || err != nil {
		return err
	}
	refs := make([]fragment.Ref, n)
	for i := range refs {
		refs[i], _ = nth(i)
	}
	if err := d.expectMarked(refs...); err != nil {
		return err
	}
	properties := slices.Collect(maps.Keys(replacing))
	for i, ref := range refs {
		_, l := nth(i)
		for a, err := range d.v.State().AssociationsOfTypes(ref, mostOfListed, properties...) {
			if err != nil {
				return err
			}
			what, _ := replaced(a)
			l.Deprecated = l.Deprecated || what == ref
		}
	}
	return nil
}

// replaced returns the replaced topic of an association, and its replacement; "" for other associations.
func replaced(a *fragment.Association) (what, by fragment.Ref) {
	as, ok := replacing[a.Type]
	for i := range a.Roles {
		if ok && len(a.Roles) == 2 && a.Roles[i].Type == as {
			what, by = a.Roles[i].Player, a.Roles[1-i].Player
		}
	}
	return what, by
}
