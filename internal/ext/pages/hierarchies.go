package pages

import (
	"net/http"
	"slices"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/tmdm"
)

// relation is a kind of associations of two topics, one of which is above the other.
type relation struct {
	typ          fragment.Ref
	above, below map[fragment.Ref]bool // the types of their roles
}

// pair returns the topics of an association, ok if it is of the kind.
func (r *relation) pair(a *fragment.Association) (above, below fragment.Ref, ok bool) {
	if a.Type != r.typ || len(a.Roles) != 2 {
		return "", "", false
	}
	one, other := a.Roles[0], a.Roles[1]
	if r.below[one.Type] {
		one, other = other, one
	}
	return one.Player, other.Player, r.above[one.Type] && r.below[other.Type]
}

// The kinds of hierarchies that maps have besides that of types. Ontopia marks the types of associations and roles by
// classes of their own. In SKOS, which comes from RDF, the narrower concept is the subject of "broader".
const (
	hierarchical  = tmdm.Locator("http://www.techquila.com/psi/hierarchy/#hierarchical-relation-type")
	superordinate = tmdm.Locator("http://www.techquila.com/psi/hierarchy/#superordinate-role-type")
	subordinate   = tmdm.Locator("http://www.techquila.com/psi/hierarchy/#subordinate-role-type")

	broader    = tmdm.Locator("http://www.w3.org/2004/02/skos/core#broader")
	narrower   = tmdm.Locator("http://www.w3.org/2004/02/skos/core#narrower")
	rdfSubject = tmdm.Locator("http://www.w3.org/1999/02/22-rdf-syntax-ns#subject")
	rdfObject  = tmdm.Locator("http://www.w3.org/1999/02/22-rdf-syntax-ns#object")
)

// relations returns the kinds of hierarchies that a map has, in no order. Of each class it looks at [most] instances.
func relations(v *store.View) (all []relation, err error) {
	if err := v.State().ExpectNames([]fragment.Ref{hierarchical, superordinate, subordinate, broader, narrower, rdfSubject,
		rdfObject, tmdm.PSISupertypeSubtype}); err != nil {
		return nil, err
	}
	ref := func(l tmdm.Locator) fragment.Ref {
		t, failed := v.Source().Topic(l)
		if failed != nil {
			err = failed
		}
		if t == nil {
			return ""
		}
		return t.TopicSI()
	}
	instances := func(class tmdm.Locator) map[fragment.Ref]bool {
		found := map[fragment.Ref]bool{}
		topic := ref(class)
		if topic == "" || err != nil {
			return found
		}
		for a, failed := range v.State().AssociationsOf(topic, fragment.AsType) {
			if failed != nil {
				err = failed
			}
			if failed != nil || len(found) == most {
				break
			}
			_, instance, _ := a.TypeInstance()
			found[instance] = true
		}
		return found
	}
	above, below, types := instances(superordinate), instances(subordinate), ref(tmdm.PSISupertypeSubtype)
	for typ := range instances(hierarchical) {
		if typ != types { // which have a page of their own
			all = append(all, relation{typ, above, below})
		}
	}
	one := func(l tmdm.Locator) map[fragment.Ref]bool { return map[fragment.Ref]bool{ref(l): true} }
	for typ, roles := range map[tmdm.Locator][2]tmdm.Locator{broader: {rdfObject, rdfSubject},
		narrower: {rdfSubject, rdfObject}} {
		if typ := ref(typ); typ != "" && err == nil {
			all = append(all, relation{typ, one(roles[0]), one(roles[1])})
		}
	}
	return all, err
}

// hierarchies returns links to the pages of the hierarchies of a map. To show one takes time in the size of the map:
// those of large ones have none.
func (p *Pages) hierarchies(d *describer) (all []link, err error) {
	v := d.v
	if v.Topics > showTypesUpTo {
		return nil, nil
	}
	found, err := relations(v)
	for _, r := range found {
		l, failed := d.link(r.typ)
		if failed != nil {
			return nil, failed
		}
		l.URL = p.URLs.Map(&v.Collection) + "/hierarchies/" + fragment.Key(r.typ) + Ending
		all = append(all, l)
	}
	slices.SortFunc(all, d.order)
	return all, err
}

// Hierarchy answers with the page of the topics that a kind of associations puts in a hierarchy, as a tree.
func (p *Pages) Hierarchy(w http.ResponseWriter, r *http.Request, v *store.View) error {
	all, err := relations(v)
	if err != nil {
		return err
	}
	key, c := web.Var(r, "key"), &v.Collection
	for i := range all {
		if fragment.Key(all[i].typ) == key && v.Topics <= showTypesUpTo {
			return p.write(w, r, c, "hierarchy", func() (*page, error) {
				d := p.describer(v, r)
				tree, err := d.treeOf(&all[i])
				if err != nil {
					return nil, err
				}
				about, err := d.link(all[i].typ)
				return &page{Title: about.Title, Path: p.Trail(c), Of: struct {
					*typeTree
					About link
				}{tree, about}}, err
			})
		}
	}
	return web.Problemf(http.StatusNotFound, "%s shows no such hierarchy: the page of the map lists those that it has",
		v.Name)
}

// treeOf returns the tree of a hierarchy.
func (d *describer) treeOf(r *relation) (*typeTree, error) {
	v := d.v
	h := newHierarchy(v, *r)
	found := map[fragment.Ref]bool{}
	for a, err := range v.State().Associations() {
		if err != nil {
			return nil, err
		}
		above, below, ok := r.pair(a)
		if !ok {
			continue
		}
		h.put(above, below)
		for _, ref := range []fragment.Ref{above, below} {
			if !found[ref] {
				found[ref] = true
				h.order = append(h.order, ref)
			}
		}
	}
	return d.treeFrom(h)
}
