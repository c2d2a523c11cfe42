package fragment

import (
	"bytes"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/tmdm"
)

// MaxLocator is the length in bytes of the longest locator that a record may have.
const MaxLocator = 8 << 10

// Map shows a topic map as the records of a source. The map must be normalised
// and must not change while it is shown.
type Map struct {
	tm     *tmdm.TopicMap
	sp     string
	refs   map[*tmdm.Topic]Ref
	sorted []*tmdm.Topic // by reference
}

// NewMap shows a map that came from a publisher: each topic's TopicSI is the
// first of its subject identifiers. sp is the source locator prefix; item
// identifiers of statements that do not begin with it are left out, and so are
// associations without roles, which are about no topic.
func NewMap(tm *tmdm.TopicMap, sp string) (*Map, error) {
	m := newMap(tm, sp)
	for t := range tm.Topics() {
		sis := t.SubjectIdentifiers()
		if len(sis) == 0 {
			return nil, fmt.Errorf("fragment: %s has no subject identifier", tmdm.Describe(t))
		}
		m.refs[t] = sis[0]
	}
	return m, m.finish()
}

func newMap(tm *tmdm.TopicMap, sp string) *Map {
	return &Map{tm: tm, sp: sp, refs: map[*tmdm.Topic]Ref{}}
}

func (m *Map) finish() error {
	m.sorted = make([]*tmdm.Topic, 0, len(m.refs))
	for t := range m.tm.Topics() {
		for _, set := range [][]tmdm.Locator{t.SubjectIdentifiers(), t.SubjectLocators()} {
			for _, l := range set {
				if len(l) > MaxLocator {
					return documentError("a locator of %d bytes is too long (%d at most): %.80s…", len(l), MaxLocator, l)
				}
			}
		}
		m.sorted = append(m.sorted, t)
	}
	slices.SortFunc(m.sorted, func(a, b *tmdm.Topic) int { return strings.Compare(string(m.refs[a]), string(m.refs[b])) })
	return nil
}

// TopicMap returns the map that m shows.
func (m *Map) TopicMap() *tmdm.TopicMap { return m.tm }

// Topic implements [Source].
func (m *Map) Topic(si Ref) (*Topic, error) {
	return m.topic(m.tm.TopicBySubjectIdentifier(si)), nil
}

// Identity implements [Identifier].
func (m *Map) Identity(si Ref) (*Identity, error) {
	t := m.tm.TopicBySubjectIdentifier(si)
	if t == nil {
		return nil, nil
	}
	id := m.identity(t)
	id.canonical()
	return &id, nil
}

// TopicBySubjectLocator implements [Source].
func (m *Map) TopicBySubjectLocator(sl tmdm.Locator) (*Topic, error) {
	return m.topic(m.tm.TopicBySubjectLocator(sl)), nil
}

// Topics implements [Source].
func (m *Map) Topics() iter.Seq2[*Topic, error] {
	return func(yield func(*Topic, error) bool) {
		for _, t := range m.sorted {
			if !yield(m.topic(t), nil) {
				return
			}
		}
	}
}

// AssociationsOf implements [Source].
func (m *Map) AssociationsOf(player Ref, part Part) iter.Seq2[*Association, error] {
	return func(yield func(*Association, error) bool) {
		t := m.tm.TopicBySubjectIdentifier(player)
		if t == nil || m.refs[t] != player {
			return
		}
		var found []keyedAssociation
		for _, r := range t.RolesPlayed() {
			if a := r.Association(); isFirst(r) && m.part(a, t) == part {
				found = append(found, keyedAssociation{a: m.association(a)})
			}
		}
		if len(found) > 1 {
			for i := range found {
				found[i].key = found[i].a.Key()
			}
			slices.SortFunc(found, compareKeys)
		}
		for _, f := range found {
			if !yield(f.a, nil) {
				return
			}
		}
	}
}

// isFirst reports whether r is the first of the roles that its player plays in
// its association.
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

func compareKeys(a, b keyedAssociation) int { return bytes.Compare(a.key[:], b.key[:]) }

// part is Association.Part without the cost of making the record.
func (m *Map) part(a *tmdm.Association, player *tmdm.Topic) Part {
	class, instance, ok := a.TypeInstance()
	if !ok || m.refs[a.Type()] != tmdm.PSITypeInstance {
		return AsPlayer
	}
	// Records know role types by their TopicSI alone, which may be another one
	// or, where the two are one topic, the same.
	r, s := m.refs[a.Roles()[0].Type()], m.refs[a.Roles()[1].Type()]
	if !(r == tmdm.PSIType && s == tmdm.PSIInstance || r == tmdm.PSIInstance && s == tmdm.PSIType) {
		return AsPlayer
	}
	if player == instance {
		return AsInstance
	}
	if player == class {
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
	record := &Topic{Identity: m.identity(t)}
	for _, n := range t.Names() {
		name := Name{
			Value: n.Value(), Type: m.refs[n.Type()], Scope: m.scope(n), Reifier: m.reifier(n), ItemIdentifiers: m.own(n),
		}
		for _, v := range n.Variants() {
			name.Variants = append(name.Variants, Variant{
				Value: v.Value(), Datatype: v.Datatype(), Scope: m.scope(v), Reifier: m.reifier(v), ItemIdentifiers: m.own(v),
			})
		}
		record.Names = append(record.Names, name)
	}
	for _, o := range t.Occurrences() {
		record.Occurrences = append(record.Occurrences, Occurrence{
			Value: o.Value(), Datatype: o.Datatype(), Type: m.refs[o.Type()], Scope: m.scope(o), Reifier: m.reifier(o), ItemIdentifiers: m.own(o),
		})
	}
	record.Canonical()
	return record
}

func (m *Map) identity(t *tmdm.Topic) Identity {
	ref := m.refs[t]
	id := Identity{SubjectIdentifiers: []tmdm.Locator{ref}, SubjectLocators: slices.Clone(t.SubjectLocators())}
	for _, si := range t.SubjectIdentifiers() {
		if si != ref {
			id.SubjectIdentifiers = append(id.SubjectIdentifiers, si)
		}
	}
	return id
}

func (m *Map) association(a *tmdm.Association) *Association {
	record := &Association{Type: m.refs[a.Type()], Scope: m.scope(a), Reifier: m.reifier(a), ItemIdentifiers: m.own(a)}
	for _, r := range a.Roles() {
		record.Roles = append(record.Roles, Role{
			Type: m.refs[r.Type()], Player: m.refs[r.Player()], Reifier: m.reifier(r), ItemIdentifiers: m.own(r),
		})
	}
	record.Canonical()
	return record
}

func (m *Map) scope(c tmdm.Scoped) []Ref {
	var refs []Ref
	for _, t := range c.Scope().Themes() {
		refs = append(refs, m.refs[t])
	}
	return refs
}

func (m *Map) reifier(c tmdm.Reifiable) Ref {
	if t := c.Reifier(); t != nil {
		return m.refs[t]
	}
	return ""
}

// own returns the item identifiers of c under the source locator prefix.
func (m *Map) own(c tmdm.Construct) []tmdm.Locator {
	var own []tmdm.Locator
	for _, l := range c.ItemIdentifiers() {
		if strings.HasPrefix(string(l), m.sp) {
			own = append(own, l)
		}
	}
	return own
}
