package fragment

import (
	"strings"

	"github.com/tmshare/tmshare/tmdm"
)

// recorder makes records of the items of a map. If a caller keeps a record, it uses a recorder once; else it reuses
// one, which allocates no memory, because the next record overwrites the last.
type recorder struct {
	m        *Map
	refs     []Ref // scopes are pieces of it
	capacity int   // for so many references at a time; 0: for just those of one scope
	met      *met  // nil, or where topics are noted that records refer to
}

// met caches some topics by TopicSI, because references of a record are looked up repeatedly.
type met [64]namedTopic

// at returns the place of a reference, which is not empty. Others may share it.
func (m *met) at(ref Ref) *namedTopic {
	n := len(ref)
	return &m[(uint(ref[n-1])*31+uint(ref[n/2])*7+uint(ref[max(n-2, 0)])+uint(n))%uint(len(m))]
}

// ref returns the TopicSI of t, or "" for no topic.
func (r *recorder) ref(t *tmdm.Topic) Ref {
	ref := r.m.ref(t)
	if r.met != nil && ref != "" {
		*r.met.at(ref) = namedTopic{ref, t}
	}
	return ref
}

// topic makes the record of a topic in the memory of record. Its scopes are valid
// until the recorder makes the next record.
func (r *recorder) topic(t *tmdm.Topic, record *Topic) *Topic {
	r.refs = r.refs[:0]
	record.Identity = r.m.identity(t)
	names := t.Names()
	record.Names = resize(record.Names, len(names))
	for i, n := range names {
		r.name(&record.Names[i], n)
	}
	occurrences := t.Occurrences()
	record.Occurrences = resize(record.Occurrences, len(occurrences))
	for i, o := range occurrences {
		record.Occurrences[i] = Occurrence{
			Value: o.Value(), Datatype: o.Datatype(), Type: r.ref(o.Type()),
			Scope: r.scope(o), Reifier: r.reifier(o), ItemIdentifiers: r.own(o),
		}
	}
	record.Canonical()
	return record
}

func (r *recorder) name(name *Name, n *tmdm.TopicName) {
	variants := n.Variants()
	*name = Name{
		Value: n.Value(), Type: r.ref(n.Type()), Scope: r.scope(n), Reifier: r.reifier(n), ItemIdentifiers: r.own(n),
		Variants: resize(name.Variants, len(variants)),
	}
	for i, v := range variants {
		name.Variants[i] = Variant{
			Value: v.Value(), Datatype: v.Datatype(), Scope: r.scope(v), Reifier: r.reifier(v), ItemIdentifiers: r.own(v),
		}
	}
}

// association does the same for an association.
func (r *recorder) association(a *tmdm.Association, record *Association) *Association {
	r.refs = r.refs[:0]
	return r.addAssociation(a, record)
}

// addAssociation is association for a record in addition to the previous ones.
func (r *recorder) addAssociation(a *tmdm.Association, record *Association) *Association {
	roles := a.Roles()
	*record = Association{
		Type: r.ref(a.Type()), Scope: r.scope(a), Reifier: r.reifier(a), ItemIdentifiers: r.own(a),
		Roles: resize(record.Roles, len(roles)),
	}
	for i, role := range roles {
		record.Roles[i] = Role{Type: r.ref(role.Type()), Player: r.ref(role.Player()), Reifier: r.reifier(role),
			ItemIdentifiers: r.own(role)}
	}
	record.Canonical()
	return record
}

// resize returns a list of n items, in the memory of list if it is large enough.
func resize[T any](list []T, n int) []T {
	if n <= cap(list) {
		return list[:n]
	}
	return make([]T, n)
}

func (r *recorder) scope(c tmdm.Scoped) []Ref {
	themes := c.Scope().Themes()
	if len(themes) == 0 {
		return nil
	}
	start := len(r.refs)
	if start+len(themes) > cap(r.refs) {
		start, r.refs = 0, make([]Ref, 0, max(r.capacity, len(themes)))
	}
	for _, t := range themes {
		r.refs = append(r.refs, r.ref(t))
	}
	return r.refs[start:len(r.refs):len(r.refs)]
}

func (r *recorder) reifier(c tmdm.Reifiable) Ref { return r.ref(c.Reifier()) }

// own returns the item identifiers of c under the source locator prefix.
func (r *recorder) own(c tmdm.Construct) []tmdm.Locator {
	var own []tmdm.Locator
	for _, l := range c.ItemIdentifiers() {
		if strings.HasPrefix(string(l), r.m.sp) {
			own = append(own, l)
		}
	}
	return own
}
