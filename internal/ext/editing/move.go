package editing

import (
	"context"
	"maps"
	"math"
	"net/http"
	"slices"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/ext/pages"
	"github.com/tmshare/tmshare/internal/ext/pages/texts"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/merge"
)

// The properties that place a concept below broader concepts, or at the top of schemes. A map may have either of two
// inverse properties, or both (SKOS reference, S8 and S25).
var (
	belowConcepts = []fragment.Ref{texts.SKOS + "broader", texts.SKOS + "narrower"}
	atTheTop      = []fragment.Ref{texts.SKOS + "topConceptOf", texts.SKOS + "hasTopConcept"}
)

// rolesIn returns the roles of a concept, and of the topic above it, in one of these properties.
func rolesIn(property fragment.Ref) (own, above fragment.Ref) {
	if property == belowConcepts[1] || property == atTheTop[1] {
		return fragment.RDFObject, fragment.RDFSubject
	}
	return fragment.RDFSubject, fragment.RDFObject
}

// placing is a statement that places a concept below a concept or at the top of a scheme.
type placing struct {
	*fragment.Association
	above fragment.Ref
}

// placings returns the places of a concept by some properties.
func (a *applying) placings(concept fragment.Ref, properties []fragment.Ref) (all []placing, err error) {
	for found, err := range a.state.AssociationsOfTypes(concept, math.MaxInt, properties...) {
		if err != nil {
			return nil, err
		}
		for i, r := range found.Roles {
			if own, _ := rolesIn(found.Type); len(found.Roles) == 2 && r.Type == own && r.Player == concept {
				all = append(all, placing{found, found.Roles[1-i].Player})
			}
		}
	}
	return all, nil
}

// move places a concept below another one instead of some of the present ones. The parameters are ?under= and ?from=.
type move struct {
	e     *editor
	r     *http.Request
	under string   // the new broader concept as written by the person; "": the page asks for it
	from  []string // the broader concepts to remove

	Field input
	Above []choice    // the present broader concepts: [mostShown] at most; others are kept
	Under *pages.Link // nil: it is not known
}

type choice struct {
	pages.Link
	Chosen bool
}

// moving asks for the new position of a concept, and shows the effect.
func (e *editor) moving(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	choose(q, q.Get("do"))
	m := &move{e: e, r: r, under: fields{values: q}.topics("under"), from: q["from"]}
	return e.confirm(w, r, question{page: "move", title: texts.Move, move: m, decide: m.decide,
		find: func(v *store.View) (*target, error) { return find(r, v, "") }})
}

// mostOfOne is the number of associations of a concept that are read to find the property that the map uses.
const mostOfOne = 1000

// decide returns the change. It removes the statements that place the concept below those that it leaves, in either
// direction, or at the top of a scheme; the concept stays in the scheme.
func (m *move) decide(_ context.Context, c *store.Collection, prior merge.State,
	self fragment.Ref) (*fragment.Change, error) {
	a, err := m.e.begin(m.r, c, prior, self)
	if err != nil {
		return nil, err
	}
	above, err := a.placings(self, belowConcepts)
	if err != nil {
		return nil, err
	}
	tops, err := a.placings(self, atTheTop)
	if err != nil {
		return nil, err
	}
	under, err := m.asks(a, m.e.naming(m.r, c, prior, nil), above)
	if err != nil {
		return nil, err
	}
	d, stated := &draft{}, map[fragment.Ref]bool{}
	add := func(property, other fragment.Ref) {
		own, role := rolesIn(property)
		d.Associations = append(d.Associations, associationRow{Type: string(property), Role: string(own),
			Others: []roleRow{{string(role), string(other)}}})
	}
	for _, p := range above {
		if stated[p.Type] = true; slices.Contains(m.from, string(p.above)) {
			d.Associations = append(d.Associations, associationRow{row: row{Is: associationIs(p.Association), Remove: true}})
		}
	}
	for _, p := range tops {
		d.Associations = append(d.Associations, associationRow{row: row{Is: associationIs(p.Association), Remove: true}})
		add(texts.SKOS+"inScheme", p.above)
	}
	if len(stated) == 0 { // use the property of the new broader concept's other narrower ones
		for found, err := range a.state.AssociationsOfTypes(under, mostOfOne, belowConcepts...) {
			if err != nil {
				return nil, err
			}
			_, role := rolesIn(found.Type)
			if slices.ContainsFunc(found.Roles, func(r fragment.Role) bool { return r.Player == under && r.Type == role }) {
				stated[found.Type] = true
			}
		}
	}
	if len(stated) == 0 {
		stated[belowConcepts[0]] = true
	}
	for _, property := range slices.Sorted(maps.Keys(stated)) {
		add(property, under)
	}
	change, err := a.change(d)
	if err == nil && change == nil {
		err = errWrong
	}
	return change, err
}

// asks returns the new broader concept. If it is ambiguous or impossible, the error is [errWrong], and the page asks
// for another one.
func (m *move) asks(a *applying, name func(fragment.Ref) (pages.Link, error), above []placing) (fragment.Ref, error) {
	m.Above, m.Under = nil, nil
	for _, p := range above {
		l, err := name(p.above)
		if err != nil {
			return "", err
		}
		l.Whole = string(p.above)
		one := choice{l, m.under == "" || slices.Contains(m.from, l.Whole)}
		if len(m.Above) < mostShown && !slices.Contains(m.Above, one) {
			m.Above = append(m.Above, one)
		}
	}
	m.Field = input{ID: "under", Label: pages.Say(m.r, texts.Broader), Value: m.under, List: "known"}
	if m.under == "" {
		return "", errWrong
	}
	under, w, err := a.concept(m.under)
	if err != nil {
		return "", err
	}
	if w.Kind == "" {
		l, err := name(under)
		if err != nil {
			return "", err
		}
		m.Field.Value, m.Field.Is = titled(string(under), func(string) string { return l.Title })
		below, err := a.isBelow(under, a.self)
		switch {
		case err != nil:
			return "", err
		case under == a.self:
			w = wrong{Kind: "itself"}
		case below:
			w = wrong{Kind: "below", Text: l.Title}
		default:
			m.Under = &l
			return under, nil
		}
	}
	for _, ref := range w.Choices {
		l, err := name(ref)
		if err != nil {
			return "", err
		}
		l.Whole = string(ref)
		w.Meant = append(w.Meant, l)
	}
	m.Field.Wrong = &w
	return "", errWrong
}

// concept returns the reference to the concept that a person has named. No other topic is meant.
func (a *applying) concept(text string) (under fragment.Ref, w wrong, err error) {
	under, w, err = a.ref(text)
	if err != nil {
		return "", w, err
	}
	var concepts []fragment.Ref
	for _, ref := range append(w.Choices, under) {
		if ref == "" {
			continue // no topic was found
		}
		for typing, err := range a.state.AssociationsOf(ref, fragment.AsInstance) {
			if err != nil {
				return "", w, err
			}
			if class, _, _ := typing.TypeInstance(); class == texts.SKOS+"Concept" {
				concepts = append(concepts, ref)
			}
		}
	}
	switch {
	case w.Kind == "which" && len(concepts) == 1:
		return concepts[0], wrong{}, nil
	case len(concepts) == 0 || w.Kind != "" && w.Kind != "which":
		w = wrong{Kind: "concept", Text: text}
	}
	w.Choices = concepts
	return under, w, nil
}

// isBelow reports whether one concept is below another.
func (a *applying) isBelow(one, other fragment.Ref) (bool, error) {
	seen := map[fragment.Ref]bool{}
	for todo := []fragment.Ref{one}; len(todo) > 0; {
		ref := todo[len(todo)-1]
		if todo = todo[:len(todo)-1]; seen[ref] {
			continue
		}
		seen[ref] = true
		above, err := a.placings(ref, belowConcepts)
		if err != nil {
			return false, err
		}
		for _, p := range above {
			todo = append(todo, p.above)
		}
	}
	return seen[other] && one != other, nil
}
