package tmdm

import "slices"

// Locator is an absolute IRI in the normal form of this project (internal/iri).
type Locator string

// Construct is any information item of the model that can have item
// identifiers: the map, a topic, a statement, a variant or a role.
type Construct interface {
	// ItemIdentifiers returns the locators that identify the item itself
	// rather than its subject. The slice must not be changed.
	ItemIdentifiers() []Locator
	TopicMap() *TopicMap
	identity() *itemIdentity
}

// Reifiable is a Construct that a topic can stand for: all but topics.
type Reifiable interface {
	Construct
	// Reifier returns the topic that reifies the item, or nil.
	Reifier() *Topic
	reification() *reifiable
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

// itemIdentity is the [item identifiers] property, which all items share.
type itemIdentity struct {
	iids []Locator
}

func (i *itemIdentity) ItemIdentifiers() []Locator { return i.iids }
func (i *itemIdentity) identity() *itemIdentity    { return i }

// reifiable is the [reifier] property.
type reifiable struct {
	reifier *Topic
}

func (r *reifiable) Reifier() *Topic         { return r.reifier.live() }
func (r *reifiable) reification() *reifiable { return r }

// AddItemIdentifier adds loc to the item identifiers of c. Where loc identifies
// another item, or c is a topic and loc the subject identifier of another, it
// returns an [*IdentityError].
func AddItemIdentifier(c Construct, loc Locator) error {
	tm := c.TopicMap()
	t, isTopic := c.(*Topic)
	if isTopic {
		t = t.live()
		c = t
	}
	if other, ok := tm.byII[loc]; ok {
		if other == c {
			return nil
		}
		return &IdentityError{c, other, loc}
	}
	if other := tm.bySI[loc]; isTopic && other != nil && other != t {
		return &IdentityError{c, other, loc}
	}
	id := c.identity()
	id.iids = append(id.iids, loc)
	tm.byII[loc] = c
	return nil
}

// RemoveItemIdentifier takes loc from the item identifiers of c, if it is there.
func RemoveItemIdentifier(c Construct, loc Locator) {
	id := c.identity()
	if slices.Contains(id.iids, loc) {
		id.iids = without(id.iids, loc)
		delete(c.TopicMap().byII, loc)
	}
}

// without returns a new list that lacks x. The old one stays as it is, for a
// caller that walks it and removes what it meets.
func without[T comparable](list []T, x T) []T {
	i := slices.Index(list, x)
	if i < 0 {
		return list
	}
	return slices.Concat(list[:i], list[i+1:])
}

// SetReifier makes t the reifier of c, in place of any other; nil takes the
// reifier away. A topic reifies one item; where it reifies an equal one, the
// two are duplicates and Normalize will join them, otherwise SetReifier returns
// a [*ReifierError]. Associations are equal by their roles, so they get those
// before the reifier.
func SetReifier(c Reifiable, t *Topic) error {
	t = t.live()
	if t != nil && len(t.reified) > 0 && !equalStatements(t.reified[0], c) {
		return &ReifierError{t, c, t.reified[0]}
	}
	if old := c.Reifier(); old != nil {
		old.reified = without(old.reified, c)
	}
	c.reification().reifier = t
	if t != nil {
		t.reified = append(t.reified, c)
	}
	return nil
}

// moveIdentifiers gives the item identifiers of from, which ceases, to to.
func (tm *TopicMap) moveIdentifiers(from, to Construct) {
	f, t := from.identity(), to.identity()
	for _, loc := range f.iids {
		tm.byII[loc] = to
	}
	t.iids = append(t.iids, f.iids...)
	f.iids = nil
}

// dropIdentity forgets the item identifiers and the reification of c, which ceases.
func (tm *TopicMap) dropIdentity(c Construct) {
	for _, loc := range c.ItemIdentifiers() {
		delete(tm.byII, loc)
	}
	c.identity().iids = nil
	if r, ok := c.(Reifiable); ok {
		if t := r.Reifier(); t != nil {
			t.reified = without(t.reified, r)
		}
		r.reification().reifier = nil
	}
}
