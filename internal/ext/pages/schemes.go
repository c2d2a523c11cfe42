package pages

import (
	"slices"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/ext/pages/texts"
	"github.com/tmshare/tmshare/tmdm"
)

// scheme is a concept scheme, or an ontology, of a map, with its description.
type scheme struct {
	link
	Lead  *value // its description
	Facts []fact
}

// fact holds the values of one property of a scheme.
type fact struct {
	Type   link
	Values []value
	Links  []link
}

// wholes are the types of topics that describe a whole map.
var wholes = []tmdm.Locator{skos + "ConceptScheme", "http://www.w3.org/2002/07/owl#Ontology"}

// facts are the properties about the origin and the licence of a scheme, in the order of a page.
var facts = []fragment.Ref{
	"http://purl.org/dc/terms/license", "http://purl.org/dc/terms/rights", "http://purl.org/dc/elements/1.1/rights",
	"http://purl.org/dc/terms/publisher", "http://purl.org/dc/elements/1.1/publisher",
	"http://purl.org/dc/terms/creator", "http://purl.org/dc/elements/1.1/creator",
	"http://www.w3.org/2002/07/owl#versionInfo", "http://purl.org/dc/terms/issued",
}

// tops are the properties that name the top concepts of a scheme: the scheme is the subject of the first one.
var tops = []fragment.Ref{skos + "hasTopConcept", skos + "topConceptOf"}

// A page shows so many schemes, and looks at so many associations of one: it is in one with each of its concepts.
const (
	mostSchemes      = 5
	mostOfScheme     = 50_000
	mostValuesOfFact = 10
	mostTops         = 49 // one more of each property are no more than [most]
)

// schemes returns the first schemes of a map, in the order of the reader.
func (d *describer) schemes() (all []scheme, err error) {
	refs, err := d.wholes()
	for _, ref := range refs {
		s, failed := d.scheme(ref)
		if failed != nil {
			return nil, failed
		}
		all = append(all, *s)
	}
	slices.SortFunc(all, func(a, b scheme) int { return d.order(a.link, b.link) })
	return all, err
}

// wholes returns the first topics that describe the whole map.
func (d *describer) wholes() (all []fragment.Ref, err error) {
	for _, class := range wholes {
		ref, there, err := d.ref(class)
		if err != nil {
			return nil, err
		}
		if !there {
			continue
		}
		for a, err := range d.v.State().AssociationsOf(ref, fragment.AsType) {
			if err != nil {
				return nil, err
			}
			if len(all) == mostSchemes {
				break
			}
			_, instance, _ := a.TypeInstance()
			all = append(all, instance)
		}
	}
	return all, nil
}

// scheme describes one of them.
func (d *describer) scheme(ref fragment.Ref) (*scheme, error) {
	l, err := d.link(ref)
	if err != nil {
		return nil, err
	}
	t, err := d.v.Source().Topic(ref)
	if err != nil {
		return nil, err
	}
	if t == nil {
		t = &fragment.Topic{}
	}
	s := &scheme{link: l}
	if i := d.lead(t); i >= 0 {
		s.Lead = new(valueOf(t.Occurrences[i].Value, t.Occurrences[i].Scope))
	}
	objects, err := d.objectsOf(ref, slices.Concat(facts, tops))
	if err != nil {
		return nil, err
	}
	found, err := d.links(slices.Concat(objects[tops[0]], objects[tops[1]]))
	if err != nil {
		return nil, err
	}
	if len(found) > 0 {
		slices.SortFunc(found, d.order)
		found = slices.Compact(found)
		if len(found) > mostTops {
			found = append(found[:mostTops], link{Title: "…", URL: l.URL}) // the page of the scheme has them
		}
		s.Facts = append(s.Facts, fact{Type: link{Title: d.in.Say(texts.TopConcepts), URL: l.URL}, Links: found})
	}
	for _, property := range facts {
		f := fact{}
		if f.Links, err = d.links(objects[property]); err != nil {
			return nil, err
		}
		for _, o := range t.Occurrences {
			if o.Type == property && len(f.Values) < mostValuesOfFact {
				f.Values = append(f.Values, valueOf(o.Value, o.Scope))
			}
		}
		if len(f.Values)+len(f.Links) == 0 {
			continue
		}
		if f.Type, err = d.link(property); err != nil {
			return nil, err
		}
		slices.SortFunc(f.Links, d.order)
		s.Facts = append(s.Facts, f)
	}
	return s, nil
}

// objectsOf returns the topics to which some properties lead from a topic, and its top concepts, by their properties.
func (d *describer) objectsOf(self fragment.Ref, properties []fragment.Ref) (all map[fragment.Ref][]fragment.Ref,
	err error) {
	all = map[fragment.Ref][]fragment.Ref{}
	for a, err := range d.v.State().AssociationsOfTypes(self, mostOfScheme, properties...) {
		if err != nil {
			return nil, err
		}
		for _, r := range a.Roles {
			as, enough := fragment.RDFObject, mostValuesOfFact
			if slices.Contains(tops, a.Type) {
				enough = mostTops + 1
			}
			if a.Type == tops[1] {
				as = fragment.RDFSubject
			}
			if r.Type == as && r.Player != self && len(all[a.Type]) < enough {
				all[a.Type] = append(all[a.Type], r.Player)
			}
		}
	}
	return all, nil
}
