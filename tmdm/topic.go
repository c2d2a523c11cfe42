package tmdm

import (
	"iter"
	"slices"
)

// Topic is a topic item (ISO 13250-2 §5.3).
type Topic struct {
	itemIdentity
	tm          *TopicMap
	sis, sls    []Locator // in the order in which they were added
	names       []*TopicName
	occurrences []*Occurrence
	roles       []*AssociationRole
	reified     []Reifiable // more than one only while duplicates wait for Normalize
	mergedInto  *Topic      // set once the topic has been merged into another
	serial      uint32
	removed     bool
}

// live returns the topic that t has become: t, or what it was merged into.
// References to a merged topic stay as they are and are followed on access.
func (t *Topic) live() *Topic {
	if t == nil || t.mergedInto == nil {
		return t
	}
	return t.follow()
}

func (t *Topic) follow() *Topic {
	end := t.mergedInto
	for end.mergedInto != nil {
		end = end.mergedInto
	}
	for t.mergedInto != end { // shorten the chain for the next one
		t, t.mergedInto = t.mergedInto, end
	}
	return end
}

func (t *Topic) gone() bool { return t.mergedInto != nil || t.removed }

func (t *Topic) identity() *itemIdentity { return &t.live().itemIdentity }

// TopicMap returns the map that t belongs to.
func (t *Topic) TopicMap() *TopicMap { return t.tm }

// ItemIdentifiers returns the item identifiers in the order in which they were
// added. The slice must not be changed.
func (t *Topic) ItemIdentifiers() []Locator { return t.live().iids }

// SubjectIdentifiers returns the subject identifiers in the order in which they
// were added. The slice must not be changed.
func (t *Topic) SubjectIdentifiers() []Locator { return t.live().sis }

// SubjectLocators returns the subject locators in the order in which they were
// added. The slice must not be changed.
func (t *Topic) SubjectLocators() []Locator { return t.live().sls }

// Names returns the topic names in order of creation. The slice must not be changed.
func (t *Topic) Names() []*TopicName { return t.live().names }

// Occurrences returns the occurrences in order of creation. The slice must not be changed.
func (t *Topic) Occurrences() []*Occurrence { return t.live().occurrences }

// RolesPlayed returns the roles that t plays, in order of creation; those of
// merged topics follow one another. The slice must not be changed.
func (t *Topic) RolesPlayed() []*AssociationRole { return t.live().roles }

// Reified returns the item that t stands for, or nil.
func (t *Topic) Reified() Reifiable {
	if t = t.live(); len(t.reified) > 0 {
		return t.reified[0]
	}
	return nil
}

// AddSubjectIdentifier adds loc to the subject identifiers. Where another topic
// has it, as a subject identifier or an item identifier, it returns an
// [*IdentityError] (ISO 13250-2 §5.3.5: such topics are equal).
func (t *Topic) AddSubjectIdentifier(loc Locator) error {
	t = t.live()
	if other := t.tm.bySI[loc]; other != nil {
		if other == t {
			return nil
		}
		return &IdentityError{t, other, loc}
	}
	if other, ok := t.tm.byII[loc].(*Topic); ok && other != t {
		return &IdentityError{t, other, loc}
	}
	t.sis = append(t.sis, loc)
	t.tm.bySI[loc] = t
	return nil
}

// AddSubjectLocator adds loc to the subject locators. Where another topic has
// it, it returns an [*IdentityError].
func (t *Topic) AddSubjectLocator(loc Locator) error {
	t = t.live()
	if other := t.tm.bySL[loc]; other != nil {
		if other == t {
			return nil
		}
		return &IdentityError{t, other, loc}
	}
	t.sls = append(t.sls, loc)
	t.tm.bySL[loc] = t
	return nil
}

// RemoveSubjectIdentifier takes loc from the subject identifiers, if it is there.
func (t *Topic) RemoveSubjectIdentifier(loc Locator) {
	t = t.live()
	if slices.Contains(t.sis, loc) {
		t.sis = without(t.sis, loc)
		delete(t.tm.bySI, loc)
	}
}

// RemoveSubjectLocator takes loc from the subject locators, if it is there.
func (t *Topic) RemoveSubjectLocator(loc Locator) {
	t = t.live()
	if slices.Contains(t.sls, loc) {
		t.sls = without(t.sls, loc)
		delete(t.tm.bySL, loc)
	}
}

// AddName adds a name. A nil typ is the default name type
// (ISO 13250-2 §7.5, The default name type).
func (t *Topic) AddName(value string, typ *Topic, themes ...*Topic) *TopicName {
	t = t.live()
	if typ == nil {
		typ = t.tm.CreateTopicBySubjectIdentifier(PSIDefaultNameType)
	}
	n := &TopicName{topic: t, value: value, typ: typ, scope: t.tm.Scope(themes...)}
	t.names = append(t.names, n)
	return n
}

// AddOccurrence adds an occurrence.
func (t *Topic) AddOccurrence(value, datatype string, typ *Topic, themes ...*Topic) *Occurrence {
	t = t.live()
	o := &Occurrence{topic: t, value: value, datatype: datatype, typ: typ, scope: t.tm.Scope(themes...)}
	t.occurrences = append(t.occurrences, o)
	return o
}

// AddType makes t an instance of class.
func (t *Topic) AddType(class *Topic) *Association {
	psi := t.tm.CreateTopicBySubjectIdentifier
	a := t.tm.CreateAssociation(psi(PSITypeInstance))
	a.AddRole(psi(PSIType), class)
	a.AddRole(psi(PSIInstance), t)
	return a
}

// Types iterates over the classes of which t is said to be an instance in the
// unconstrained scope.
func (t *Topic) Types() iter.Seq[*Topic] {
	return func(yield func(*Topic) bool) {
		for _, r := range t.RolesPlayed() {
			if !r.Type().is(PSIInstance) {
				continue
			}
			if class, _, ok := r.assoc.TypeInstance(); ok && !yield(class) {
				return
			}
		}
	}
}

// Remove removes t and the associations in which it plays a role. A topic that
// is a type, a theme or a reifier stays, and Remove returns an [*InUseError].
// It looks through the whole map.
func (t *Topic) Remove() error {
	t = t.live()
	if user := t.tm.userOf(t); user != nil {
		return &InUseError{t, user}
	}
	gone := make([]*Association, len(t.roles))
	for i, r := range t.roles {
		gone[i] = r.assoc
	}
	t.tm.removeAssociations(gone...)
	for _, n := range t.names {
		n.dropIdentities()
	}
	for _, o := range t.occurrences {
		t.tm.dropIdentity(o)
	}
	for _, l := range t.sis {
		delete(t.tm.bySI, l)
	}
	for _, l := range t.sls {
		delete(t.tm.bySL, l)
	}
	t.tm.dropIdentity(t)
	t.tm.topics = without(t.tm.topics, t)
	*t = Topic{tm: t.tm, serial: t.serial, removed: true}
	return nil
}

// userOf returns a construct that has t as type, theme or reifier, not counting
// the associations in which t plays a role, or nil.
func (tm *TopicMap) userOf(t *Topic) Construct {
	uses := func(c Construct) bool {
		if r, ok := c.(Reifiable); ok && r.Reifier() == t {
			return true
		}
		if y, ok := c.(Typed); ok && y.Type() == t {
			return true
		}
		s, ok := c.(Scoped)
		return ok && slices.Contains(s.Scope().Themes(), t)
	}
	if uses(tm) {
		return tm
	}
	for other := range tm.Topics() {
		if other == t {
			continue
		}
		for _, n := range other.names {
			if uses(n) {
				return n
			}
			for _, v := range n.variants {
				if uses(v) {
					return v
				}
			}
		}
		for _, o := range other.occurrences {
			if uses(o) {
				return o
			}
		}
	}
	for a := range tm.Associations() {
		if slices.ContainsFunc(a.roles, func(r *AssociationRole) bool { return r.Player() == t }) {
			continue
		}
		if uses(a) {
			return a
		}
		for _, r := range a.roles {
			if uses(r) {
				return r
			}
		}
	}
	return nil
}
