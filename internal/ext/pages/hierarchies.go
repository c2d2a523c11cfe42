package pages

import (
	"cmp"
	"maps"
	"net/http"
	"slices"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/ext/pages/texts"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/words"
	"github.com/tmshare/tmshare/tmdm"
)

// relation is a hierarchical relation: associations of some types that place topics above others.
type relation struct {
	types []pairing
	tops  map[fragment.Ref]fragment.Ref // types of associations that name top concepts, with the roles of these
	skos  bool                          // it is that of concepts
}

// pairing is a type of associations of two topics, one of which is above the other.
type pairing struct {
	typ          fragment.Ref
	above, below map[fragment.Ref]bool // the types of their roles
}

// pair returns the topics of an association, ok if it puts one above the other. What has no name, such as a restriction
// of OWL, is in no hierarchy.
func (r *relation) pair(a *fragment.Association) (above, below fragment.Ref, ok bool) {
	if len(a.Roles) != 2 {
		return "", "", false
	}
	for i := range r.types {
		p, one, other := &r.types[i], a.Roles[0], a.Roles[1]
		if p.below[one.Type] {
			one, other = other, one
		}
		if a.Type == p.typ && p.above[one.Type] && p.below[other.Type] {
			return one.Player, other.Player, !words.IsOpaque(string(one.Player)) && !words.IsOpaque(string(other.Player))
		}
	}
	return "", "", false
}

// top returns the top concept that an association names; "" if it names none.
func (r *relation) top(a *fragment.Association) fragment.Ref {
	if as, ok := r.tops[a.Type]; ok && len(a.Roles) == 2 {
		for i := range a.Roles {
			if a.Roles[i].Type == as {
				return a.Roles[i].Player
			}
		}
	}
	return ""
}

// refs are the types of the associations of a hierarchy.
func (r *relation) refs() (all []fragment.Ref) {
	for i := range r.types {
		all = append(all, r.types[i].typ)
	}
	return slices.AppendSeq(all, slices.Values(slices.Sorted(maps.Keys(r.tops))))
}

// keys are the names of a hierarchy in addresses, the one that links have first.
func (r *relation) keys() (all []string) {
	for _, typ := range r.refs() {
		all = append(all, fragment.Key(typ))
	}
	return all
}

// link leads to the page of a hierarchy.
func (r *relation) link(d *describer) (l link, err error) {
	if l.Title = d.in.Say(texts.Concepts); !r.skos {
		l, err = d.link(r.types[0].typ)
	}
	l.URL = d.URLs.Map(&d.v.Collection) + "/hierarchies/" + r.keys()[0] + Ending
	return l, err
}

// The kinds of hierarchies besides that of types. Ontopia marks the types of associations and roles by its own classes.
// In SKOS, which comes from RDF, the narrower concept is the subject of "broader" (SKOS reference, S25), and a top
// concept is the subject of "topConceptOf" (S8).
const (
	hierarchical  = tmdm.Locator("http://www.techquila.com/psi/hierarchy/#hierarchical-relation-type")
	superordinate = tmdm.Locator("http://www.techquila.com/psi/hierarchy/#superordinate-role-type")
	subordinate   = tmdm.Locator("http://www.techquila.com/psi/hierarchy/#subordinate-role-type")

	skos = texts.SKOS
)

// broaderAndNarrower are the types of associations that put a concept above another, with the types of their roles.
func broaderAndNarrower(subject, object fragment.Ref) []pairing {
	subjects, objects := map[fragment.Ref]bool{subject: true}, map[fragment.Ref]bool{object: true}
	return []pairing{{skos + "broader", objects, subjects}, {skos + "narrower", subjects, objects}}
}

// orderings returns the kinds of hierarchies that a map has, in no order. Of each class it looks at [most] instances.
func (d *describer) orderings() (all []relation, err error) {
	if err := d.v.State().ExpectNames(append([]fragment.Ref{hierarchical, superordinate, subordinate, skos + "broader",
		skos + "narrower", skos + "hasTopConcept", skos + "topConceptOf", fragment.RDFSubject, fragment.RDFObject,
		tmdm.PSISupertypeSubtype}, wholes...)); err != nil {
		return nil, err
	}
	ref := func(l tmdm.Locator) fragment.Ref {
		ref, there, failed := d.ref(l)
		if err = cmp.Or(err, failed); !there {
			return ""
		}
		return ref
	}
	instances := func(class tmdm.Locator) map[fragment.Ref]bool {
		found, failed := d.instances(class, most)
		err = cmp.Or(err, failed)
		return found
	}
	above, below, types := instances(superordinate), instances(subordinate), ref(tmdm.PSISupertypeSubtype)
	marked := instances(hierarchical)
	delete(marked, types) // which have a page of their own
	concepts := relation{tops: map[fragment.Ref]fragment.Ref{}, skos: true}
	subject, object := ref(fragment.RDFSubject), ref(fragment.RDFObject)
	for _, p := range broaderAndNarrower(subject, object) {
		if p.typ = ref(p.typ); p.typ == "" {
			continue
		}
		if concepts.types = append(concepts.types, p); marked[p.typ] {
			concepts.types = append(concepts.types, pairing{p.typ, above, below})
		}
		delete(marked, p.typ)
	}
	for typ, as := range map[tmdm.Locator]fragment.Ref{skos + "hasTopConcept": object, skos + "topConceptOf": subject} {
		if typ := ref(typ); typ != "" {
			concepts.tops[typ] = as
		}
	}
	if len(concepts.types)+len(concepts.tops) > 0 {
		all = append(all, concepts)
	}
	for typ := range marked {
		all = append(all, relation{types: []pairing{{typ, above, below}}})
	}
	return all, err
}

// instances returns some instances of the topic with an identifier.
func (d *describer) instances(class tmdm.Locator, n int) (map[fragment.Ref]bool, error) {
	found := map[fragment.Ref]bool{}
	topic, there, err := d.ref(class)
	if !there || err != nil {
		return found, err
	}
	for a, err := range d.v.State().AssociationsOf(topic, fragment.AsType) {
		if err != nil || len(found) == n {
			return found, err
		}
		_, instance, _ := a.TypeInstance()
		found[instance] = true
	}
	return found, nil
}

// hierarchies returns links to the pages of the hierarchies of a map. Very large maps have none, because the time to
// show one is proportional to the size of the map.
func (p *Pages) hierarchies(d *describer) (all []link, err error) {
	v := d.v
	if v.Topics > hierarchicalUpTo {
		return nil, nil
	}
	found, err := d.orderings()
	for i := range found {
		l, failed := found[i].link(d)
		if failed != nil {
			return nil, failed
		}
		all = append(all, l)
	}
	slices.SortFunc(all, d.order)
	return all, err
}

// Hierarchy answers with the page of the topics that a kind of associations puts in a hierarchy, as a tree.
func (p *Pages) Hierarchy(w http.ResponseWriter, r *http.Request, v *store.View) error {
	d := p.describer(v, r)
	all, err := d.orderings()
	if err != nil {
		return err
	}
	key := web.Var(r, "key")
	for i := range all {
		if slices.Contains(all[i].keys(), key) && v.Topics <= hierarchicalUpTo {
			return p.write(w, r, v, "hierarchy", func() (*page, error) {
				self, err := all[i].link(d)
				tree := &typeTree{}
				if err == nil && !all[i].skos {
					about, failed := d.link(all[i].types[0].typ)
					tree.About, err = &about, failed
				}
				if err != nil {
					return nil, err
				}
				return (&hierarchy{d: d, by: all[i], at: self.URL}).page(r, self.Title, tree)
			})
		}
	}
	return web.Problemf(http.StatusNotFound, "%s shows no such hierarchy: the page of the map lists those that it has",
		v.Name)
}
