package fragment

import (
	"bytes"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/tmdm"
)

// MaxLocator is the length in bytes of the longest locator that a record may have, as documents have it.
const MaxLocator = 8 << 10

// CheckLength returns a [*DocumentError] where a locator is longer than [MaxLocator]: feeds have its spaces escaped.
func CheckLength(l tmdm.Locator) error {
	if n := len(iri.Escape(string(l))); n > MaxLocator {
		return documentError("a locator of %d bytes, with spaces as %%20, is too long (%d at most): %.80s…", n, MaxLocator, l)
	}
	return nil
}

// Map shows a topic map as the records of a source. The map must be normalised
// and must not change while it is shown: records share its lists of locators.
type Map struct {
	tm     *tmdm.TopicMap
	sp     string
	others map[*tmdm.Topic]Ref // TopicSIs that are not the first subject identifiers of their topics
	sorted []namedTopic        // by reference

	typeInstance, typ, instance *tmdm.Topic // that records know by the names of the standard, if any
}

// namedTopic is a topic and its TopicSI.
type namedTopic struct {
	ref Ref
	t   *tmdm.Topic
}

// NewMap shows a map that came from a publisher: each topic's TopicSI is the first of its subject identifiers. sp is
// the source locator prefix; item identifiers of statements that do not begin with it are left out, and so are
// associations without roles, which are about no topic.
func NewMap(tm *tmdm.TopicMap, sp string) (*Map, error) {
	for t := range tm.Topics() {
		if len(t.SubjectIdentifiers()) == 0 {
			return nil, fmt.Errorf("%s has no subject identifier", tmdm.Describe(t))
		}
	}
	return newMap(tm, sp, nil)
}

func newMap(tm *tmdm.TopicMap, sp string, others map[*tmdm.Topic]Ref) (*Map, error) {
	m := &Map{tm: tm, sp: sp, others: others}
	for t := range tm.Topics() {
		for _, set := range [][]tmdm.Locator{t.SubjectIdentifiers(), t.SubjectLocators()} {
			for _, l := range set {
				if err := CheckLength(l); err != nil {
					return nil, err
				}
			}
		}
		m.sorted = append(m.sorted, namedTopic{m.ref(t), t})
	}
	slices.SortFunc(m.sorted, func(a, b namedTopic) int { return strings.Compare(string(a.ref), string(b.ref)) })
	m.typeInstance, m.typ, m.instance = m.named(tmdm.PSITypeInstance), m.named(tmdm.PSIType), m.named(tmdm.PSIInstance)
	return m, nil
}

// ref returns the TopicSI of t, or "" for no topic.
func (m *Map) ref(t *tmdm.Topic) Ref {
	if t == nil {
		return ""
	}
	if ref, ok := m.others[t]; ok {
		return ref
	}
	return t.SubjectIdentifiers()[0]
}

// named returns the topic with the TopicSI ref, or nil.
func (m *Map) named(ref Ref) *tmdm.Topic {
	if t := m.tm.TopicBySubjectIdentifier(ref); t != nil && m.ref(t) == ref {
		return t
	}
	return nil
}

// TopicMap returns the map that m shows.
func (m *Map) TopicMap() *tmdm.TopicMap { return m.tm }

// Assigned returns the prefix of the subject identifiers that [NameTopics] assigns.
func (m *Map) Assigned() string { return m.sp + "topic/" }

// Topic implements [Source].
func (m *Map) Topic(si Ref) (*Topic, error) {
	return m.topic(m.tm.TopicBySubjectIdentifier(si)), nil
}

// Identity implements [Identifier].
func (m *Map) Identity(si Ref) (*Identity, error) {
	id, ok := m.identityOf(si)
	if !ok {
		return nil, nil
	}
	return &id, nil
}

func (m *Map) identityOf(si Ref) (Identity, bool) {
	t := m.tm.TopicBySubjectIdentifier(si)
	if t == nil {
		return Identity{}, false
	}
	return m.identity(t), true
}

// TopicBySubjectLocator implements [Source].
func (m *Map) TopicBySubjectLocator(sl tmdm.Locator) (*Topic, error) {
	return m.topic(m.tm.TopicBySubjectLocator(sl)), nil
}

// Topics implements [Source].
func (m *Map) Topics() iter.Seq2[*Topic, error] {
	return func(yield func(*Topic, error) bool) {
		for _, n := range m.sorted {
			if !yield(m.topic(n.t), nil) {
				return
			}
		}
	}
}

// AssociationsOf implements [Source].
func (m *Map) AssociationsOf(player Ref, part Part) iter.Seq2[*Association, error] {
	return func(yield func(*Association, error) bool) {
		var few [8]keyedAssociation // most topics have few
		found := few[:0]
		m.partsOf(m.named(player), part, func(a *tmdm.Association) {
			found = append(found, keyedAssociation{a: m.association(a)})
		})
		for _, f := range sortByKeys(found) {
			if !yield(f.a, nil) {
				return
			}
		}
	}
}

// partsOf calls yield with the associations in which t takes part as part; with none if t is nil. It may yield
// associations with many roles several times.
func (m *Map) partsOf(t *tmdm.Topic, part Part, yield func(*tmdm.Association)) {
	if t == nil {
		return
	}
	for _, r := range t.RolesPlayed() {
		if a := r.Association(); m.part(a, t) == part && (len(a.Roles()) > manyRoles || isFirst(r)) {
			yield(a)
		}
	}
}

// isFirst reports whether r is the first of the roles that its player plays in its association.
func isFirst(r *tmdm.AssociationRole) bool {
	player := r.Player()
	for _, other := range r.Association().Roles() {
		if other.Player() == player {
			return other == r
		}
	}
	return false
}

// keyedAssociation is an association and its key, which is not made twice.
type keyedAssociation struct {
	key AssociationKey
	a   *Association
}

// sortByKeys puts associations in the order of their keys, each once.
func sortByKeys(list []keyedAssociation) []keyedAssociation {
	if len(list) < 2 { // a key costs a digest
		return list
	}
	for i := range list {
		list[i].key = list[i].a.Key()
	}
	slices.SortFunc(list, func(a, b keyedAssociation) int { return bytes.Compare(a.key[:], b.key[:]) })
	return slices.CompactFunc(list, func(a, b keyedAssociation) bool { return a.key == b.key })
}

// part returns Association.Part without making the record. Records have the TopicSIs of types, so a type must have the
// standard's.
func (m *Map) part(a *tmdm.Association, player *tmdm.Topic) Part {
	if a.Type() != m.typeInstance || m.typeInstance == nil {
		return AsPlayer
	}
	class, instance, ok := a.TypeInstance()
	if !ok {
		return AsPlayer
	}
	r, s := a.Roles()[0].Type(), a.Roles()[1].Type()
	if !(r == m.typ && s == m.instance || r == m.instance && s == m.typ) {
		return AsPlayer
	}
	switch player {
	case instance:
		return AsInstance
	case class:
		return AsType
	}
	return AsPlayer
}

// Associations implements [Source].
func (m *Map) Associations() iter.Seq2[*Association, error] {
	return func(yield func(*Association, error) bool) {
		for a := range m.tm.Associations() {
			if len(a.Roles()) > 0 && !yield(m.association(a), nil) {
				return
			}
		}
	}
}

func (m *Map) topic(t *tmdm.Topic) *Topic {
	if t == nil {
		return nil
	}
	return (&recorder{m: m}).topic(t, &Topic{})
}

// identity returns the identifiers of t, in order.
func (m *Map) identity(t *tmdm.Topic) Identity {
	sis, sls := t.SubjectIdentifiers(), t.SubjectLocators()
	ref := m.ref(t)
	if sis[0] == ref && slices.IsSorted(sis[1:]) && slices.IsSorted(sls) {
		return Identity{SubjectIdentifiers: slices.Clip(sis), SubjectLocators: slices.Clip(sls)}
	}
	id := Identity{SubjectIdentifiers: []tmdm.Locator{ref}, SubjectLocators: slices.Clone(sls)}
	for _, si := range sis {
		if si != ref {
			id.SubjectIdentifiers = append(id.SubjectIdentifiers, si)
		}
	}
	id.canonical()
	return id
}

func (m *Map) association(a *tmdm.Association) *Association {
	return (&recorder{m: m}).association(a, NewAssociation(len(a.Roles())))
}

// NewAssociation makes an association of so many roles, all empty, and in one piece where it is binary, as most are.
func NewAssociation(roles int) *Association {
	if roles != 2 {
		return &Association{Roles: make([]Role, roles)}
	}
	var binary struct {
		Association
		roles [2]Role
	}
	binary.Roles = binary.roles[:]
	return &binary.Association
}
