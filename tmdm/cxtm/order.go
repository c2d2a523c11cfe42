package cxtm

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/tmdm"
)

// index holds the constructs of a map in the canonical sort order of ISO
// 13250-4. The numbers of topics are found first; all further comparisons are made
// on those.
type index struct {
	tm       *tmdm.TopicMap
	o        Options
	relative relative

	topics       []topic
	numbers      map[*tmdm.Topic]int
	associations []association
	scopes       map[*tmdm.Scope][]int
}

type topic struct {
	*tmdm.Topic
	subjectIdentifiers, subjectLocators, itemIdentifiers []string
	played                                               []rolePlayed
}

type rolePlayed struct {
	typ, association, role int
}

type association struct {
	*tmdm.Association
	typ   int
	roles []role
	scope []int
}

type role struct {
	*tmdm.AssociationRole
	player, typ int
}

func newIndex(tm *tmdm.TopicMap, o Options) *index {
	x := &index{
		tm: tm, o: o, relative: relativeTo(o.Base),
		numbers: map[*tmdm.Topic]int{}, scopes: map[*tmdm.Scope][]int{},
	}
	for t := range tm.Topics() {
		x.topics = append(x.topics, topic{
			Topic:              t,
			subjectIdentifiers: x.relative.locators(t.SubjectIdentifiers()),
			subjectLocators:    x.relative.locators(t.SubjectLocators()),
			itemIdentifiers:    x.itemIdentifiers(t),
		})
	}
	slices.SortStableFunc(x.topics, compareTopics)
	if o.OmitItemIdentifiers {
		x.orderAnonymous()
	}
	for i := range x.topics {
		x.numbers[x.topics[i].Topic] = i + 1
	}
	x.orderAssociations()
	return x
}

// itemIdentifiers returns the item identifiers of c as they are written.
func (x *index) itemIdentifiers(c tmdm.Construct) []string {
	if x.o.OmitItemIdentifiers {
		return nil
	}
	return x.relative.locators(c.ItemIdentifiers())
}

func compareTopics(a, b topic) int {
	return cmp.Or(
		compareSets(a.subjectIdentifiers, b.subjectIdentifiers),
		compareSets(a.subjectLocators, b.subjectLocators),
		compareSets(a.itemIdentifiers, b.itemIdentifiers),
	)
}

// compareSets compares ordered sets, the smaller one first.
func compareSets[T cmp.Ordered](a, b []T) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), slices.Compare(a, b))
}

func (x *index) orderAssociations() {
	for a := range x.tm.Associations() {
		n := association{Association: a, typ: x.numbers[a.Type()], scope: x.themes(a.Scope())}
		for _, r := range a.Roles() {
			n.roles = append(n.roles, role{r, x.numbers[r.Player()], x.numbers[r.Type()]})
		}
		slices.SortStableFunc(n.roles, compareRoles)
		x.associations = append(x.associations, n)
	}
	slices.SortStableFunc(x.associations, func(a, b association) int {
		return cmp.Or(
			cmp.Compare(a.typ, b.typ),
			cmp.Compare(len(a.roles), len(b.roles)),
			slices.CompareFunc(a.roles, b.roles, compareRoles),
			compareSets(a.scope, b.scope),
		)
	})
	for i, a := range x.associations {
		for j, r := range a.roles {
			t := &x.topics[r.player-1]
			t.played = append(t.played, rolePlayed{r.typ, i + 1, j + 1})
		}
	}
	for i := range x.topics {
		slices.SortFunc(x.topics[i].played, func(a, b rolePlayed) int {
			return cmp.Or(cmp.Compare(a.typ, b.typ), cmp.Compare(a.association, b.association), cmp.Compare(a.role, b.role))
		})
	}
}

func compareRoles(a, b role) int {
	return cmp.Or(cmp.Compare(a.player, b.player), cmp.Compare(a.typ, b.typ))
}

// themes returns the numbers of the topics of s, in order.
func (x *index) themes(s *tmdm.Scope) []int {
	themes := s.Themes()
	if len(themes) == 0 {
		return nil
	}
	if numbers, ok := x.scopes[s]; ok {
		return numbers
	}
	numbers := make([]int, len(themes))
	for i, t := range themes {
		numbers[i] = x.numbers[t]
	}
	slices.Sort(numbers)
	x.scopes[s] = numbers
	return numbers
}

type name struct {
	*tmdm.TopicName
	typ   int
	scope []int
}

func (x *index) names(t *tmdm.Topic) []name {
	names := make([]name, len(t.Names()))
	for i, n := range t.Names() {
		names[i] = name{n, x.numbers[n.Type()], x.themes(n.Scope())}
	}
	slices.SortStableFunc(names, func(a, b name) int {
		return cmp.Or(strings.Compare(a.Value(), b.Value()), cmp.Compare(a.typ, b.typ), compareSets(a.scope, b.scope))
	})
	return names
}

type variant struct {
	*tmdm.Variant
	value string
	scope []int
}

func (x *index) variants(n *tmdm.TopicName) []variant {
	variants := make([]variant, len(n.Variants()))
	for i, v := range n.Variants() {
		variants[i] = variant{v, x.relative.value(v.Value(), v.Datatype()), x.themes(v.Scope())}
	}
	slices.SortStableFunc(variants, func(a, b variant) int {
		return cmp.Or(strings.Compare(a.value, b.value), strings.Compare(a.Datatype(), b.Datatype()),
			compareSets(a.scope, b.scope))
	})
	return variants
}

type occurrence struct {
	*tmdm.Occurrence
	value string
	typ   int
	scope []int
}

func (x *index) occurrences(t *tmdm.Topic) []occurrence {
	occurrences := make([]occurrence, len(t.Occurrences()))
	for i, o := range t.Occurrences() {
		occurrences[i] = occurrence{o, x.relative.value(o.Value(), o.Datatype()), x.numbers[o.Type()], x.themes(o.Scope())}
	}
	slices.SortStableFunc(occurrences, func(a, b occurrence) int {
		return cmp.Or(
			strings.Compare(a.value, b.value), strings.Compare(a.Datatype(), b.Datatype()),
			cmp.Compare(a.typ, b.typ), compareSets(a.scope, b.scope),
		)
	})
	return occurrences
}
