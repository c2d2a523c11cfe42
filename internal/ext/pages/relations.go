package pages

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"iter"
	"net/http"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/ext/pages/texts"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/words"
)

// relations adds types, instances and associations.
func (d *describer) relations(of *topic, self fragment.Ref) error {
	for a, err := range d.first(of, fragment.AsInstance, self) {
		if err != nil {
			return err
		}
		class, _, _ := a.TypeInstance()
		l, err := d.link(class)
		if err != nil {
			return err
		}
		of.Types = append(of.Types, typed{l, d.by[associationKey(a)]})
	}
	for a, err := range d.first(of, fragment.AsType, self) {
		if err != nil {
			return err
		}
		_, instance, _ := a.TypeInstance()
		l, err := d.link(instance)
		if err != nil {
			return err
		}
		of.Instances = append(of.Instances, l)
	}
	for a, err := range d.first(of, fragment.AsPlayer, self) {
		if err == nil {
			err = d.association(of, self, a)
		}
		if err != nil {
			return err
		}
	}
	byTitle := d.order
	slices.SortFunc(of.Types, func(a, b typed) int { return byTitle(a.link, b.link) })
	slices.SortFunc(of.Instances, byTitle)
	slices.SortStableFunc(of.Associations, func(a, b associations) int {
		return cmp.Or(byTitle(a.Type, b.Type), byTitle(a.Role, b.Role))
	})
	slices.SortStableFunc(of.Occurrences, func(a, b occurrences) int { return byTitle(a.Type, b.Type) })
	for _, group := range of.Occurrences {
		slices.SortStableFunc(group.Items, func(a, b occurrence) int { return byTitle.text(a.Value.Text, b.Value.Text) })
	}
	for i := range of.Associations {
		group := &of.Associations[i]
		group.Other = group.otherRole()
		slices.SortStableFunc(group.Items, func(a, b association) int {
			return slices.CompareFunc(a.Others, b.Others, func(a, b role) int { return byTitle(a.Player, b.Player) })
		})
	}
	return nil
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

// order compares links, and text compares texts, as who reads the page expects it.
type order func(a, b link) int

func (o order) text(a, b string) int { return o(link{Title: a}, link{Title: b}) }

// orderFor returns the language in whose order lists are for who asks.
func orderFor(r *http.Request, c *store.Collection) string {
	return words.OrderFor(strings.Join(languages(r, c), ","))
}

// orderOf returns the order for who asks: by notations, where concepts have them, and by titles. It is for one page.
func orderOf(r *http.Request, c *store.Collection) order {
	compare := words.Collator(orderFor(r, c))
	return func(a, b link) int {
		switch {
		case a.Notation == b.Notation:
			return cmp.Or(compare(a.Title, b.Title), cmp.Compare(a.URL, b.URL))
		case a.Notation == "" || b.Notation == "":
			return cmp.Compare(b.Notation, a.Notation)
		}
		return compare(a.Notation, b.Notation)
	}
}

// notationOf returns the notation of a concept (SKOS reference, section 6), the first where there are several.
func notationOf(t *fragment.Topic) string {
	for i := range t.Occurrences {
		if t.Occurrences[i].Type == "http://www.w3.org/2004/02/skos/core#notation" {
			return t.Occurrences[i].Value
		}
	}
	return ""
}

// association adds an association to those of its type in which self plays the same role.
func (d *describer) association(of *topic, self fragment.Ref, a *fragment.Association) error {
	own := slices.IndexFunc(a.Roles, func(r fragment.Role) bool { return r.Player == self })
	typ, err := d.link(a.Type)
	if err != nil {
		return err
	}
	as, err := d.link(a.Roles[max(own, 0)].Type)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(of.Associations, func(g associations) bool { return g.Type == typ && g.Role == as })
	if at < 0 {
		at = len(of.Associations)
		of.Associations = append(of.Associations, associations{Type: typ, Role: as})
	}
	shown := association{By: d.by[associationKey(a)]}
	for i, other := range atMost(of, texts.MoreRoles, a.Roles) {
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
		node, err := d.node(other.Player)
		if err != nil {
			return err
		}
		shown.Others = append(shown.Others, role{typ, player, node})
	}
	if shown.Scope, err = d.links(a.Scope); err != nil {
		return err
	}
	if shown.About, err = d.reifier(a.Reifier); err != nil {
		return err
	}
	of.Associations[at].Items = append(of.Associations[at].Items, shown)
	return nil
}

// first iterates over the first [most] associations in which a topic takes part in a way, or over those behind the one
// that the request names. What is left has a page of its own.
func (d *describer) first(of *topic, part fragment.Part, self fragment.Ref) iter.Seq2[*fragment.Association, error] {
	return func(yield func(*fragment.Association, error) bool) {
		var after *fragment.AssociationKey
		if d.after != nil {
			if part != d.part {
				return
			}
			after = d.after
		}
		n, last := 0, fragment.AssociationKey{}
		for a, err := range d.expected(d.associations(self, part, after)) {
			if n == most {
				of.Next = append(of.Next, link{Title: partTitles[part], URL: d.query(parts[part], hex.EncodeToString(last[:]))})
				return
			}
			if err == nil {
				last = a.Key()
			}
			if n++; !yield(a, err) || err != nil {
				return
			}
		}
	}
}

// expected iterates over these associations, a hundred and one of them at a time, or as many as have a thousand roles.
// It expects links to what a page says of them.
func (d *describer) expected(all iter.Seq2[*fragment.Association, error]) iter.Seq2[*fragment.Association, error] {
	enough := func(some []*fragment.Association) bool {
		roles := 0
		for _, a := range some {
			roles += len(a.Roles)
		}
		return len(some) > most || roles > 10*most
	}
	return records.InParts(all, enough, func(some []*fragment.Association) error {
		return d.expect(func(yield func(fragment.Ref)) {
			for _, a := range some {
				a.Mentions(yield)
				for i := range a.Roles[:min(len(a.Roles), most)] {
					yield(a.Roles[i].Player)
				}
			}
		})
	})
}

// associations iterates over those behind the one with a key.
func (d *describer) associations(self fragment.Ref, part fragment.Part,
	after *fragment.AssociationKey) iter.Seq2[*fragment.Association, error] {
	if d.past == nil {
		return d.v.State().AssociationsAfter(self, part, after)
	}
	return func(yield func(*fragment.Association, error) bool) {
		for a, err := range d.past.AssociationsOf(self, part) {
			if err == nil && after != nil {
				if key := a.Key(); bytes.Compare(key[:], after[:]) <= 0 {
					continue
				}
			}
			if !yield(a, err) || err != nil {
				return
			}
		}
	}
}

// partTitles are what pages call the associations in which a topic takes part.
var partTitles = [...]string{
	fragment.AsInstance: texts.MoreTypes, fragment.AsPlayer: texts.MoreAssociations, fragment.AsType: texts.MoreInstances,
}

// parts are the parameters that ask for more of them.
var parts = [...]string{fragment.AsInstance: "types", fragment.AsPlayer: "associations", fragment.AsType: "instances"}

// asked reads from a request behind which association a page begins.
func (d *describer) asked(r *http.Request) error {
	d.at = r.URL.Query().Get("at")
	for part, what := range parts {
		given := r.URL.Query().Get(what)
		if given == "" {
			continue
		}
		var key fragment.AssociationKey
		if n, err := hex.Decode(key[:], []byte(given[:min(len(given), 2*len(key))])); err != nil || n != len(key) {
			return web.Problemf(http.StatusBadRequest, "?%s= names no association: follow the links of the page", what)
		}
		d.part, d.after = fragment.Part(part), &key
	}
	return nil
}
