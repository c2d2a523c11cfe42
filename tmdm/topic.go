package tmdm

import (
	"iter"
	"slices"
	"sync/atomic"
)

// Topic is a topic item (ISO 13250-2 §5.3).
type Topic struct {
	// The first fields are those that references need; they share a cache line of 64 bytes.
	mergedInto atomic.Pointer[Topic] // set once the topic was merged into another one; readers shorten chains
	sis        []Locator             // in the order in which they were added, as the other lists
	more       *topicDetails         // nil if it would be empty
	roles      []*AssociationRole

	tm          *TopicMap
	iids        []Locator
	names       []*TopicName
	occurrences []*Occurrence
	serial      uint32
	removed     bool
}

// topicDetails are the rare properties of topics.
type topicDetails struct {
	sls     []Locator
	reified []Reifiable // more than one only while duplicates wait for Normalize
}

// live returns the topic that t was merged into, or t. References to a merged topic are unchanged and followed on
// access.
func (t *Topic) live() *Topic {
	if t == nil {
		return nil
	}
	if next := t.mergedInto.Load(); next != nil {
		return t.follow(next)
	}
	return t
}

func (t *Topic) follow(end *Topic) *Topic {
	for next := end; next != nil; next = end.mergedInto.Load() {
		end = next
	}
	for t != end { // shorten the chain for the next one
		next := t.mergedInto.Load()
		t.mergedInto.Store(end)
		t = next
	}
	return end
}

func (t *Topic) gone() bool { return t.removed || t.mergedInto.Load() != nil }

func (t *Topic) setItemIdentifiers(l []Locator) { t.live().iids = l }

func (t *Topic) details() *topicDetails {
	if t.more == nil {
		t.more = &topicDetails{}
	}
	return t.more
}

// reifiedItems returns the items that t reifies; t may be nil.
func (t *Topic) reifiedItems() []Reifiable {
	if t == nil || t.more == nil {
		return nil
	}
	return t.more.reified
}

func (t *Topic) setReified(list []Reifiable) {
	if t != nil && (t.more != nil || len(list) > 0) {
		t.details().reified = list
	}
}

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
func (t *Topic) SubjectLocators() []Locator {
	if t = t.live(); t.more == nil {
		return nil
	}
	return t.more.sls
}

// Names returns the topic names in order of creation. The slice must not be changed.
func (t *Topic) Names() []*TopicName { return t.live().names }

// Occurrences returns the occurrences in order of creation. The slice must not be changed.
func (t *Topic) Occurrences() []*Occurrence { return t.live().occurrences }

// RolesPlayed returns the roles that t plays, in order of creation; those of
// merged topics follow one another. The slice must not be changed.
func (t *Topic) RolesPlayed() []*AssociationRole { return t.live().roles }

// Reified returns the item that t reifies, or nil.
func (t *Topic) Reified() Reifiable {
	if list := t.live().reifiedItems(); len(list) > 0 {
		return list[0]
	}
	return nil
}

// AddSubjectIdentifier adds loc to the subject identifiers. If another topic has it, as a subject identifier or an
// item identifier, it returns an [*IdentityError] (ISO 13250-2 §5.3.5: such topics are equal).
func (t *Topic) AddSubjectIdentifier(loc Locator) error {
	t = t.live()
	if t.removed {
		return ErrRemoved
	}
	added, other := t.tm.ids.add(loc, t, asSubject)
	if other != nil {
		return &IdentityError{t, other, loc}
	}
	t.sis = appendLocator(t.sis, added)
	return nil
}

// addItemIdentifier adds loc, which identifies no other item than topics.
func (t *Topic) addItemIdentifier(loc Locator) error {
	if t.removed {
		return ErrRemoved
	}
	added, other := t.tm.ids.add(loc, t, asItem)
	if other != nil {
		return &IdentityError{t, other, loc}
	}
	t.iids = appendLocator(t.iids, added)
	return nil
}

// appendLocator appends added, one locator or none, to list; it returns added itself if list is empty.
func appendLocator(list, added []Locator) []Locator {
	if len(list) == 0 {
		return added
	}
	return append(list, added...)
}

// AddSubjectLocator adds loc to the subject locators. If another topic has it, it returns an [*IdentityError].
func (t *Topic) AddSubjectLocator(loc Locator) error {
	t = t.live()
	if t.removed {
		return ErrRemoved
	}
	added, other := t.tm.sls.add(loc, t, asSubject)
	if other != nil {
		return &IdentityError{t, other, loc}
	}
	if len(added) > 0 {
		d := t.details()
		d.sls = appendLocator(d.sls, added)
	}
	return nil
}

// RemoveSubjectIdentifier takes those of locs that are there from the subject
// identifiers.
func (t *Topic) RemoveSubjectIdentifier(locs ...Locator) {
	t = t.live()
	left, gone := withoutAll(t.sis, locs)
	t.sis = left
	for _, loc := range gone {
		t.tm.ids.remove(loc, asSubject)
	}
}

// RemoveSubjectLocator takes those of locs that are there from the subject
// locators.
func (t *Topic) RemoveSubjectLocator(locs ...Locator) {
	t = t.live()
	left, gone := withoutAll(t.SubjectLocators(), locs)
	if len(gone) > 0 {
		t.more.sls = left
	}
	for _, loc := range gone {
		t.tm.sls.remove(loc, asSubject)
	}
}

// AddName adds a name. A nil typ is the default name type
// (ISO 13250-2 §7.5, The default name type).
func (t *Topic) AddName(value string, typ *Topic, themes ...*Topic) *TopicName {
	t = t.tm.mustUse(t)
	scope := t.tm.Scope(themes...)
	if typ == nil {
		typ = t.tm.CreateTopicBySubjectIdentifier(PSIDefaultNameType)
	}
	n := t.tm.slabs.names.take()
	*n = TopicName{statement{kind: t.tm.kind(t.tm.mustUse(typ), scope, "")}, t, value}
	t.names = append(t.names, n)
	return n
}

// AddOccurrence adds an occurrence. An empty datatype is xsd:string.
func (t *Topic) AddOccurrence(value, datatype string, typ *Topic, themes ...*Topic) *Occurrence {
	t = t.tm.mustUse(t)
	o := t.tm.slabs.occurrences.take()
	*o = Occurrence{statement{kind: t.tm.valueKind(t.tm.mustUse(typ), t.tm.Scope(themes...), datatype)}, t, value}
	t.occurrences = append(t.occurrences, o)
	return o
}

// AddType makes t an instance of class.
func (t *Topic) AddType(class *Topic) *Association {
	return t.relate(class, PSITypeInstance, PSIInstance, PSIType)
}

// Types iterates over the classes of t in the unconstrained scope, without their supertypes.
func (t *Topic) Types() iter.Seq[*Topic] { return t.classes() }

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
		t.tm.ids.remove(l, asSubject)
	}
	for _, l := range t.iids {
		t.tm.ids.remove(l, asItem)
	}
	for _, l := range t.SubjectLocators() {
		t.tm.sls.remove(l, asSubject)
	}
	if c := t.Reified(); c != nil {
		c.setReifier(nil)
	}
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
			for _, v := range n.Variants() {
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
