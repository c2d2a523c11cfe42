package pages

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/ext/pages/texts"
	xl "github.com/tmshare/tmshare/internal/ext/search/words"
	"github.com/tmshare/tmshare/tmdm"
)

// associations is a block of a page: the associations of one type in which the topic plays the same role. Associations
// from a subject to an object, such as all from RDF, are named from the topic's point of view. Those of inverse
// properties form one block, in which each other topic appears once.
type associations struct {
	Type link  // leads to the type. Its title is that of the block
	Role *link // the role of the topic; nil: the title implies it
	// the role of the other players, if it is the same in all associations and each has one; nil: each item names it
	Other *link
	Items []association
	Pager *pager

	key    string // identifies the block
	rank   int    // its position among the blocks with a fixed order
	others map[fragment.Ref]int
}

type association struct {
	Others []role
	Said   []saying // the statements of this association
}

// saying is one statement of an association.
type saying struct {
	By    []string
	Scope []link
	About *link

	scope   []fragment.Ref
	reifier fragment.Ref
}

// list is the name of a block in addresses.
func (g *associations) list() string { return fragment.Key(fragment.Ref(g.key)) }

// direction holds the roles of the subject and of the object in associations of a type.
type direction struct{ subject, object fragment.Ref }

// The roles of the associations that lead from a subject to an object.
var (
	rdfRoles  = [2]tmdm.Locator{fragment.RDFSubject, fragment.RDFObject}
	typeRoles = [2]tmdm.Locator{tmdm.PSISubtype, tmdm.PSISupertype}
)

// Properties that relate properties to each other (OWL 2, sections 9.2.4 and 9.2.8).
const (
	inverseOf = tmdm.Locator("http://www.w3.org/2002/07/owl#inverseOf")
	symmetric = tmdm.Locator("http://www.w3.org/2002/07/owl#SymmetricProperty")
)

// sides finds the inverses and the titles of properties.
type sides struct {
	d          *describer
	directions []direction
	inverse    fragment.Ref // the property that declares inverses in the map; "": no topic of the map does
	symmetric  fragment.Ref // likewise
	known      map[fragment.Ref]*property
}

// property is one with its inverses.
type property struct {
	first   fragment.Ref  // the least of them: blocks are titled from its point of view
	turned  bool          // the subject of the property is the object of the first one
	both    bool          // it is its own inverse
	titles  [2]link       // the titles for a subject and for an object of the first property
	byWords [2]texts.Text // the words that the table has for both
}

// relationsOf are the rows of the table in which an identifier is a property or its inverse.
var relationsOf = sync.OnceValue(func() map[string][]int {
	all := map[string][]int{}
	for i, r := range texts.Relations {
		all[r.Property] = append(all[r.Property], i)
		if r.Inverse != "" && r.Inverse != r.Property {
			all[r.Inverse] = append(all[r.Inverse], i)
		}
	}
	return all
})

// ref returns the reference of the topic with an identifier, or the identifier itself if the map has no such topic.
func (d *describer) ref(l tmdm.Locator) (ref fragment.Ref, there bool, err error) {
	t, err := d.v.Source().Topic(l)
	if t == nil || err != nil {
		return l, false, err
	}
	return t.TopicSI(), true, nil
}

func (d *describer) sides() (*sides, error) {
	if d.properties != nil {
		return d.properties, nil
	}
	s := &sides{d: d, known: map[fragment.Ref]*property{}}
	if err := d.v.State().ExpectNames(append(append(rdfRoles[:], typeRoles[:]...), inverseOf, symmetric)); err != nil {
		return nil, err
	}
	for _, roles := range [][2]tmdm.Locator{rdfRoles, typeRoles} {
		subject, _, err := d.ref(roles[0])
		if err != nil {
			return nil, err
		}
		object, _, err := d.ref(roles[1])
		if err != nil {
			return nil, err
		}
		s.directions = append(s.directions, direction{subject, object})
	}
	for l, to := range map[tmdm.Locator]*fragment.Ref{inverseOf: &s.inverse, symmetric: &s.symmetric} {
		ref, there, err := d.ref(l)
		if err != nil {
			return nil, err
		}
		if there {
			*to = ref
		}
	}
	d.properties = s
	return s, nil
}

// pair returns the subject and the object of an association, ok where it leads from one to the other.
func (s *sides) pair(a *fragment.Association) (subject, object fragment.Ref, ok bool) {
	if len(a.Roles) != 2 {
		return "", "", false
	}
	for _, by := range s.directions {
		for i := range a.Roles {
			if one, other := &a.Roles[i], &a.Roles[1-i]; one.Type == by.subject && other.Type == by.object {
				return one.Player, other.Player, true
			}
		}
	}
	return "", "", false
}

// property returns a property with its inverses, their inverses, and so on, and its titles.
func (s *sides) property(ref fragment.Ref) (*property, error) {
	if p := s.known[ref]; p != nil {
		return p, nil
	}
	turned := map[fragment.Ref]bool{ref: false}
	made := &property{}
	for found := []fragment.Ref{ref}; len(found) > 0; found = found[1:] {
		at := found[0]
		inverses, err := s.inverses(made, at, turned[at])
		if err != nil {
			return nil, err
		}
		for _, inverse := range inverses {
			if was, ok := turned[inverse]; ok {
				made.both = made.both || was == turned[at]
			} else if len(turned) < most {
				turned[inverse] = !turned[at]
				found = append(found, inverse)
			}
		}
	}
	all := make([]fragment.Ref, 0, len(turned))
	for ref := range turned {
		all = append(all, ref)
	}
	slices.Sort(all)
	if err := s.title(made, all, turned); err != nil {
		return nil, err
	}
	for _, ref := range all { // seen from the first one
		p := *made
		p.first, p.turned = all[0], turned[ref] != turned[all[0]]
		if turned[all[0]] {
			p.titles[0], p.titles[1] = made.titles[1], made.titles[0]
			p.byWords[0], p.byWords[1] = made.byWords[1], made.byWords[0]
		}
		s.known[ref] = &p
	}
	return s.known[ref], nil
}

// inverses returns the properties that the table or the map calls inverses of one. It notes the words of the table.
func (s *sides) inverses(p *property, ref fragment.Ref, turned bool) (all []fragment.Ref, err error) {
	ids := []tmdm.Locator{ref}
	if t, err := s.d.v.Source().Topic(ref); err != nil {
		return nil, err
	} else if t != nil {
		ids = t.SubjectIdentifiers
	}
	for _, id := range ids {
		for _, i := range relationsOf()[string(id)] {
			r := &texts.Relations[i]
			words, other := [2]texts.Text{r.Title, cmp.Or(r.Of, r.Title)}, r.Inverse
			if string(id) != r.Property {
				other = r.Property
			}
			if (string(id) != r.Property) != turned {
				words[0], words[1] = words[1], words[0]
			}
			if p.byWords[0] == "" {
				p.byWords = words
			}
			if other == "" {
				continue
			}
			inverse, _, err := s.d.ref(tmdm.Locator(other))
			if err != nil {
				return nil, err
			}
			all = append(all, inverse)
		}
	}
	stated, err := s.stated(p, ref)
	return append(all, stated...), err
}

// stated returns the properties that the map calls inverses of one, and notes that it is its own. It looks at
// [mostSorted] associations of the property.
func (s *sides) stated(p *property, ref fragment.Ref) (all []fragment.Ref, err error) {
	look := func(part fragment.Part, with func(*fragment.Association)) {
		n := 0
		for a, failed := range s.d.v.State().AssociationsOf(ref, part) {
			if err = cmp.Or(err, failed); err != nil || n == mostSorted {
				return
			}
			n++
			with(a)
		}
	}
	if s.inverse != "" {
		look(fragment.AsPlayer, func(a *fragment.Association) {
			if subject, object, ok := s.pair(a); ok && a.Type == s.inverse {
				if subject == ref {
					subject = object
				}
				all = append(all, subject)
			}
		})
	}
	if s.symmetric != "" {
		look(fragment.AsInstance, func(a *fragment.Association) {
			class, _, _ := a.TypeInstance()
			p.both = p.both || class == s.symmetric
		})
	}
	return all, err
}

// title sets the titles of properties that mean the same: from the table of texts, or from their names.
func (s *sides) title(p *property, all []fragment.Ref, turned map[fragment.Ref]bool) error {
	for _, ref := range all {
		if _, there, err := s.d.ref(ref); err != nil || !there && len(all) > 1 { // the table alone names it
			if err != nil {
				return err
			}
			continue
		}
		l, err := s.d.link(ref)
		if err != nil {
			return err
		}
		side := 0
		if turned[ref] && !p.both {
			side = 1
		}
		if p.titles[side].URL == "" {
			p.titles[side] = l
		}
	}
	for side := range p.titles {
		if p.titles[side].URL == "" {
			p.titles[side] = p.titles[1-side]
			if !p.both {
				p.titles[side].Lang = ""
				p.titles[side].Title = s.d.in.Say(texts.IsOf, p.titles[side].Title)
			}
		}
		if words := p.byWords[side]; words != "" {
			p.titles[side].Title, p.titles[side].Lang = s.d.in.Say(words), ""
		}
	}
	return nil
}

// blocks adds the associations of a topic.
func (d *describer) blocks(described *topic, self fragment.Ref) error {
	s, err := d.sides()
	if err != nil {
		return err
	}
	groups := map[string]*associations{}
	for a, err := range d.window(described, fragment.AsPlayer, self) {
		if err != nil {
			return err
		}
		if what, by := replaced(a); what == self {
			l, err := d.link(by)
			if err != nil {
				return err
			}
			described.Deprecated, described.Instead = true, append(described.Instead, l)
		}
		subject, object, ok := s.pair(a)
		if ok && d.labelled[object] && slices.Contains(xl.LabelProperties, a.Type) {
			continue
		}
		if ok {
			err = s.put(groups, a, self, subject, object)
		} else {
			err = d.put(groups, described, a, self)
		}
		if err != nil {
			return err
		}
	}
	hidden := func(g *associations) bool { return !d.shows(g.list()) }
	shown := slices.DeleteFunc(slices.Collect(maps.Values(groups)), hidden)
	slices.SortFunc(shown, func(a, b *associations) int {
		role := func(g *associations) link {
			if g.Role == nil {
				return link{}
			}
			return *g.Role
		}
		return cmp.Or(cmp.Compare(a.rank, b.rank), d.order(a.Type, b.Type), d.order(role(a), role(b)),
			cmp.Compare(a.key, b.key))
	})
	if d.shows(kindsList) {
		shown, described.Pages[kindsList] = pageOf(d, kindsList, d.in.Say(texts.MoreKinds), most, shown)
	}
	for _, group := range shown {
		if err := d.shown(described, group); err != nil {
			return err
		}
	}
	return nil
}

// shown adds a page of a block.
func (d *describer) shown(described *topic, group *associations) (err error) {
	if group.Role != nil {
		group.Other = group.otherRole()
	}
	slices.SortStableFunc(group.Items, func(a, b association) int {
		return cmp.Or(slices.CompareFunc(a.Others, b.Others, func(a, b role) int { return d.order(a.Player, b.Player) }),
			slices.CompareFunc(a.Said, b.Said, func(a, b saying) int { return slices.Compare(a.scope, b.scope) }))
	})
	group.Items, group.Pager = pageOf(d, group.list(), group.Type.Title, most, group.Items)
	var players []*role
	for i := range group.Items {
		for j := range group.Items[i].Others {
			r := &group.Items[i].Others[j]
			if r.Node, err = d.node(r.ref); err != nil {
				return err
			}
			players = append(players, r)
		}
	}
	described.Associations = append(described.Associations, *group)
	return d.mark(len(players), func(i int) (fragment.Ref, *link) { return players[i].ref, &players[i].Player })
}

// otherRole returns the role of the others, if it is the same in all associations and each has one other player.
func (g *associations) otherRole() *link {
	for _, a := range g.Items {
		if len(a.Others) != 1 || a.Others[0].Type != g.Items[0].Others[0].Type {
			return nil
		}
	}
	return &g.Items[0].Others[0].Type
}

// put adds an association to the block of the topic's side: that of the subject, of the object, or both.
func (s *sides) put(groups map[string]*associations, a *fragment.Association, self, subject,
	object fragment.Ref) error {
	p, err := s.property(a.Type)
	if err != nil {
		return err
	}
	sentence, err := s.d.saying(a)
	if err != nil {
		return err
	}
	if p.turned {
		subject, object = object, subject
	}
	for side, players := range [2][2]fragment.Ref{{subject, object}, {object, subject}} {
		if players[0] != self || side == 1 && p.both && subject == object {
			continue
		}
		if p.both {
			side = 0
		}
		key := fmt.Sprint(side, " ", p.first)
		group := groups[key]
		if group == nil {
			title := p.titles[side]
			group = &associations{Type: title, key: key, others: map[fragment.Ref]int{}, rank: len(texts.FirstRelations)}
			if at := slices.Index(texts.FirstRelations, p.byWords[side]); at >= 0 {
				group.rank = at
			}
			groups[key] = group
		}
		other := players[1]
		at, known := group.others[other]
		if !known {
			l, err := s.d.link(other)
			if err != nil {
				return err
			}
			at = len(group.Items)
			group.others[other] = at
			group.Items = append(group.Items, association{Others: []role{{Player: l, ref: other}}})
		}
		group.Items[at].add(sentence)
	}
	return nil
}

// add adds a statement to the association. It merges statements of the same scope without a reifier.
func (a *association) add(sentence saying) {
	for i := range a.Said {
		if was := &a.Said[i]; was.reifier == "" && sentence.reifier == "" && slices.Equal(was.scope, sentence.scope) {
			was.By = slices.Compact(slices.Sorted(slices.Values(slices.Concat(was.By, sentence.By))))
			return
		}
	}
	a.Said = append(a.Said, sentence)
}

func (d *describer) saying(a *fragment.Association) (sentence saying, err error) {
	sentence = saying{By: d.by[associationKey(a)], scope: a.Scope, reifier: a.Reifier}
	if sentence.Scope, err = d.links(a.Scope); err == nil {
		sentence.About, err = d.reifier(a.Reifier)
	}
	return sentence, err
}

// put adds an association to those of its type in which self plays the same role.
func (d *describer) put(groups map[string]*associations, described *topic, a *fragment.Association,
	self fragment.Ref) error {
	own := slices.IndexFunc(a.Roles, func(r fragment.Role) bool { return r.Player == self })
	as := a.Roles[max(own, 0)].Type
	key := string(a.Type) + " " + string(as)
	group := groups[key]
	if group == nil {
		typ, err := d.link(a.Type)
		if err != nil {
			return err
		}
		role, err := d.link(as)
		if err != nil {
			return err
		}
		group = &associations{Type: typ, Role: &role, key: key, rank: len(texts.FirstRelations)}
		groups[key] = group
	}
	sentence, err := d.saying(a)
	if err != nil {
		return err
	}
	shown := association{Said: []saying{sentence}}
	for i, other := range atMost(described, texts.MoreRoles, a.Roles) {
		if i == own {
			continue
		}
		typ, err := d.link(other.Type)
		if err != nil {
			return err
		}
		player, err := d.link(other.Player)
		if err != nil {
			return err
		}
		shown.Others = append(shown.Others, role{Type: typ, Player: player, ref: other.Player})
	}
	group.Items = append(group.Items, shown)
	return nil
}
