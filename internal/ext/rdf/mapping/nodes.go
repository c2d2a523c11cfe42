package mapping

import (
	"maps"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/internal/rdf"
)

// node is a blank node with statements in TMShare's vocabulary.
type node struct {
	statements []int // the numbers of the statements about it
	values     map[string][]rdf.Term
	uses       int // number of references to it
}

func nodesOf(all *statements, own []int) map[string]*node {
	nodes := map[string]*node{}
	for _, i := range own {
		if s := all.at(i).Subject; s.Kind == rdf.Blank && nodes[s.Value] == nil {
			nodes[s.Value] = &node{values: map[string][]rdf.Term{}}
		}
	}
	if len(nodes) == 0 {
		return nodes
	}
	for i, q := range all.each() {
		if q.Subject.Kind == rdf.Blank {
			if n := nodes[q.Subject.Value]; n != nil {
				n.statements = append(n.statements, i)
				n.values[q.Predicate.Value] = append(n.values[q.Predicate.Value], q.Object)
			}
		}
		if q.Object.Kind == rdf.Blank {
			if n := nodes[q.Object.Value]; n != nil {
				n.uses++
			}
		}
	}
	for _, n := range nodes {
		for p, values := range n.values {
			slices.SortFunc(values, rdf.Compare)
			n.values[p] = slices.Compact(values)
		}
	}
	return nodes
}

// take returns the value of a property, and whether there is exactly one.
func (n *node) take(property string) (rdf.Term, bool) {
	all := n.values[property]
	delete(n.values, property)
	if len(all) != 1 {
		return rdf.Term{}, false
	}
	return all[0], true
}

// types returns the types of the node without one, and whether it has that one.
func (n *node) types(one string) (others []rdf.Term, ok bool) {
	all := n.values[rdf.Type]
	delete(n.values, rdf.Type)
	others = slices.DeleteFunc(all, func(t rdf.Term) bool { return t == rdf.NewIRI(one) })
	return others, len(others) < len(all)
}

// details reads the properties that all kinds of nodes may have, and reports whether they are valid.
func (n *node) details() (d details, ok bool) {
	d.scope = n.values[termScope]
	delete(n.values, termScope)
	if slices.ContainsFunc(d.scope, func(t rdf.Term) bool { return t.Kind == rdf.Literal }) {
		return d, false
	}
	if len(n.values[termReifier]) > 0 {
		if d.reifier, ok = n.take(termReifier); !ok || d.reifier.Kind == rdf.Literal {
			return d, false
		}
	}
	if len(n.values[termDatatype]) > 0 {
		datatype, ok := n.take(termDatatype)
		if d.datatype = datatype.Value; !ok || datatype.Kind != rdf.IRI {
			return d, false
		}
	}
	for _, item := range n.values[termItemIdentifier] {
		if item.Kind != rdf.IRI {
			return d, false
		}
		d.items = append(d.items, locatorOf(item.Value))
	}
	delete(n.values, termItemIdentifier)
	return d, true
}

// resourceOf reads the only value of a property, which is a resource.
func (n *node) resourceOf(property string) (rdf.Term, bool) {
	t, ok := n.take(property)
	return t, ok && t.Kind != rdf.Literal
}

func (n *node) roleNode() (r *role, ok bool) {
	r = &role{}
	var typed, played, detailed bool
	r.typ, typed = n.resourceOf(termRoleType)
	r.player, played = n.resourceOf(termPlayer)
	r.details, detailed = n.details()
	return r, typed && played && detailed && n.uses == 1 && len(n.values) == 0
}

func (n *node) variantNode() (v *variant, ok bool) {
	v = &variant{}
	v.value, ok = n.take(termValue)
	ok = ok && v.value.Kind == rdf.Literal && v.value.Language == ""
	var detailed bool
	v.details, detailed = n.details()
	return v, ok && detailed && n.uses == 1 && len(n.values) == 0
}

// parts are the nodes that belong to another one.
func parts[P any](nodes map[string]*node, values []rdf.Term,
	read func(*node) (P, bool)) (all []P, spent []int, ok bool) {
	for _, t := range values {
		n := nodes[t.Value]
		if n == nil || t.Kind != rdf.Blank {
			return nil, nil, false
		}
		p, ok := read(n)
		if !ok {
			return nil, nil, false
		}
		all, spent = append(all, p), append(spent, n.statements...)
	}
	return all, spent, true
}

// association reads a node that is an association: a property for each role, or a node for a role with more properties.
func (n *node) association(nodes map[string]*node) (a *association, spent []int, ok bool) {
	a = &association{typ: rdf.NewIRI(termAssociation)}
	others, _ := n.types(termAssociation)
	if len(others) > 0 {
		a.typ = others[0]
	}
	if a.details, ok = n.details(); !ok || len(others) > 1 || a.typ.Kind == rdf.Literal || n.uses > 0 {
		return nil, nil, false
	}
	if a.roles, spent, ok = parts(nodes, n.values[termRole], (*node).roleNode); !ok {
		return nil, nil, false
	}
	delete(n.values, termRole)
	for _, property := range slices.Sorted(maps.Keys(n.values)) {
		if strings.HasPrefix(property, NS) {
			return nil, nil, false
		}
		for _, player := range n.values[property] {
			if player.Kind == rdf.Literal {
				return nil, nil, false
			}
			a.roles = append(a.roles, &role{typ: rdf.NewIRI(property), player: player})
		}
	}
	return a, append(spent, n.statements...), len(a.roles) > 0
}
