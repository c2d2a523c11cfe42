package tmdm

import (
	"slices"
	"strings"

	"github.com/tmshare/tmshare/internal/iri"
)

// Locator is an absolute IRI in the normal form that [ParseLocator] gives. The
// package takes locators as they are and compares them as strings.
type Locator string

// String returns the locator as people know it: the IRI, where it keeps one of RDF apart from its normal form.
func (l Locator) String() string { return iri.Shown(string(l)) }

// ParseLocator returns the locator that an absolute IRI is: its normal form, in
// which locators are compared.
func ParseLocator(s string) (Locator, error) {
	normal, err := iri.Normalize(s)
	return Locator(normal), err
}

// Named returns the locators by which an absolute IRI may identify topics: the unchanged IRI, as RDF compares IRIs, and
// then its normal form.
func Named(s string) ([]Locator, error) {
	normal, err := ParseLocator(s)
	switch asIs := Locator(iri.ToLocator(s)); {
	case err != nil:
		return nil, err
	case asIs != normal && !strings.ContainsAny(s, iri.Refused):
		return []Locator{asIs, normal}, nil
	}
	return []Locator{normal}, nil
}

// Construct is any information item of the model that can have item
// identifiers: the map, a topic, a statement, a variant or a role.
type Construct interface {
	// ItemIdentifiers returns the locators that identify the item itself
	// rather than its subject. The slice must not be changed.
	ItemIdentifiers() []Locator
	TopicMap() *TopicMap
	setItemIdentifiers([]Locator)
}

// Reifiable is a Construct that a topic can reify: any except topics.
type Reifiable interface {
	Construct
	// Reifier returns the topic that reifies the item, or nil.
	Reifier() *Topic
	setReifier(*Topic)
}

// Scoped is a Construct with a scope.
type Scoped interface {
	Construct
	Scope() *Scope
}

// Typed is a Construct with a type.
type Typed interface {
	Construct
	Type() *Topic
}

// details are the rare properties of constructs.
type details struct {
	iids     []Locator
	reifier  *Topic
	variants []*Variant                    // of a name
	roles    map[*AssociationRole]*details // of an association
}

// ItemIdentifiers implements [Construct].
func (d *details) ItemIdentifiers() []Locator {
	if d == nil {
		return nil
	}
	return d.iids
}

// Reifier implements [Reifiable].
func (d *details) Reifier() *Topic {
	if d == nil {
		return nil
	}
	return d.reifier.live()
}

// settle replaces a merged reifier by the topic that it was merged into.
func (d *details) settle() {
	if d != nil && d.reifier != nil {
		d.reifier = d.reifier.live()
	}
}

// statement is the common part of names, variants, occurrences and associations.
type statement struct{ kind *kind }

// ItemIdentifiers implements [Construct].
func (s *statement) ItemIdentifiers() []Locator { return s.kind.own.ItemIdentifiers() }

// Reifier implements [Reifiable].
func (s *statement) Reifier() *Topic { return s.kind.own.Reifier() }

// Scope implements [Scoped].
func (s *statement) Scope() *Scope { return s.kind.scope.live() }

func (s *statement) setItemIdentifiers(l []Locator) {
	if s.kind.own != nil || len(l) > 0 {
		s.details().iids = l
	}
}

func (s *statement) setReifier(t *Topic) {
	if s.kind.own != nil || t != nil {
		s.details().reifier = t
	}
}

func (s *statement) details() *details {
	if s.kind.own == nil {
		k := *s.kind
		k.own = &details{}
		s.kind = &k
	}
	return s.kind.own
}

// setKind gives s the type, the scope and the datatype of a kind that is shared.
func (s *statement) setKind(k *kind) {
	if own := s.kind.own; own != nil {
		mine := *k
		mine.own = own
		k = &mine
	}
	s.kind = k
}

// settle replaces merged topics by the topics that they were merged into.
func (s *statement) settle() {
	old := s.kind
	if typ, scope := old.typ.live(), old.scope.live(); typ != old.typ || scope != old.scope {
		s.setKind(scope.tm.kind(typ, scope, old.datatype))
	}
	s.kind.own.settle()
}

// AddItemIdentifier adds loc to the item identifiers of c. If loc identifies another item, or c is a topic and loc
// the subject identifier of another, it returns an [*IdentityError].
func AddItemIdentifier(c Construct, loc Locator) error {
	if t, isTopic := c.(*Topic); isTopic {
		if t = t.live(); t == nil {
			return ErrNoTopic
		}
		if other := t.tm.items[loc]; other != nil {
			return &IdentityError{t, other, loc}
		}
		return t.addItemIdentifier(loc)
	}
	tm := c.TopicMap()
	switch other := tm.ConstructByItemIdentifier(loc); other {
	case c:
		return nil
	case nil:
		c.setItemIdentifiers(append(c.ItemIdentifiers(), loc))
		tm.items[loc] = c
		return nil
	default:
		return &IdentityError{c, other, loc}
	}
}

// RemoveItemIdentifier takes those of locs that are there from the item
// identifiers of c.
func RemoveItemIdentifier(c Construct, locs ...Locator) {
	left, gone := withoutAll(c.ItemIdentifiers(), locs)
	if len(gone) > 0 {
		c.setItemIdentifiers(left)
	}
	for _, loc := range gone {
		c.TopicMap().forget(c, loc)
	}
}

// forget takes loc, which identified the item c, out of the look-ups.
func (tm *TopicMap) forget(c Construct, loc Locator) {
	if _, isTopic := c.(*Topic); isTopic {
		tm.ids.remove(loc, asItem)
	} else {
		delete(tm.items, loc)
	}
}

// without returns a new list without x. The old one is unchanged, so callers may iterate over it while removing
// elements.
func without[T comparable](list []T, x T) []T {
	i := slices.Index(list, x)
	if i < 0 {
		return list
	}
	return slices.Concat(list[:i], list[i+1:])
}

// withoutAll is without for several locators, and returns those that were found as well.
func withoutAll(list, locs []Locator) (left, gone []Locator) {
	if len(locs) == 1 {
		if !slices.Contains(list, locs[0]) {
			return list, nil
		}
		return without(list, locs[0]), locs
	}
	drop := make(map[Locator]bool, len(locs))
	for _, l := range locs {
		drop[l] = true
	}
	for _, l := range list {
		if drop[l] {
			gone = append(gone, l)
		} else {
			left = append(left, l)
		}
	}
	return left, gone
}

// SetReifier makes t the reifier of c, in place of any other; nil takes the
// reifier away. A topic reifies one item; where it reifies an equal one, the
// two are duplicates and Normalize will join them, otherwise SetReifier returns
// a [*ReifierError]. Associations are equal by their roles, so they get those
// before the reifier.
func SetReifier(c Reifiable, t *Topic) error {
	t = t.live()
	if t != nil {
		if err := c.TopicMap().usable(t); err != nil {
			return err
		}
	}
	if reified := t.reifiedItems(); len(reified) > 0 && !equalStatements(reified[0], c) {
		return &ReifierError{t, c, reified[0]}
	}
	old := c.Reifier()
	if old == t {
		return nil
	}
	old.setReified(without(old.reifiedItems(), c))
	c.setReifier(t)
	t.setReified(append(t.reifiedItems(), c))
	return nil
}

// moveIdentifiers gives the item identifiers of from, a statement that ceases,
// to to.
func (tm *TopicMap) moveIdentifiers(from, to Construct) {
	moved := from.ItemIdentifiers()
	if len(moved) == 0 {
		return
	}
	for _, loc := range moved {
		tm.items[loc] = to
	}
	to.setItemIdentifiers(append(to.ItemIdentifiers(), moved...))
	from.setItemIdentifiers(nil)
}

// dropIdentity forgets the item identifiers and the reification of c, a
// statement that ceases.
func (tm *TopicMap) dropIdentity(c Reifiable) {
	for _, loc := range c.ItemIdentifiers() {
		tm.forget(c, loc)
	}
	c.setItemIdentifiers(nil)
	if t := c.Reifier(); t != nil {
		t.setReified(without(t.reifiedItems(), c))
		c.setReifier(nil)
	}
}
