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
// identifiers of statements that do not begin with it are left out.
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
					return fmt.Errorf("fragment: a locator of %d bytes is too long (%d at most): %.80s…", len(l), MaxLocator, l)
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
		type keyed struct {
			key AssociationKey
			a   *Association
		}
		var found []keyed
		seen := map[*tmdm.Association]bool{}
		for _, r := range t.RolesPlayed() {
			if a := r.Association(); !seen[a] && m.part(a, t) == part {
				seen[a] = true
				record := m.association(a)
				found = append(found, keyed{record.Key(), record})
			}
		}
		slices.SortFunc(found, func(a, b keyed) int { return bytes.Compare(a.key[:], b.key[:]) })
		for _, f := range found {
			if !yield(f.a, nil) {
				return
			}
		}
	}
}

// part is Association.Part without the cost of making the record.
func (m *Map) part(a *tmdm.Association, player *tmdm.Topic) Part {
	class, instance, ok := a.TypeInstance()
	if !ok || m.refs[a.Type()] != tmdm.PSITypeInstance {
		return AsPlayer
	}
	for _, r := range a.Roles() {
		if ref := m.refs[r.Type()]; ref != tmdm.PSIType && ref != tmdm.PSIInstance {
			return AsPlayer
		}
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
			if !yield(m.association(a), nil) {
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
