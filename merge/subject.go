package merge

import (
	"slices"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/tmdm"
)

// subject is a merged topic: the records that share identifiers, transitively.
type subject struct {
	ref      fragment.Ref // the merged TopicSI
	sis, sls locators
	members  []member // by part and TopicSI; none if the topic is only referred to
}

// member is the record of a topic in one source, or its identifiers.
type member struct {
	part  int
	id    *fragment.Identity
	topic *fragment.Topic // nil if only the identity was requested
}

// locators is a set of locators in the order in which they were found.
type locators struct {
	list  []tmdm.Locator
	from  []int // the part that gave each first, or -1
	index map[tmdm.Locator]bool
}

// fewLocators is the number of locators up to which they are compared pairwise instead of looked up.
const fewLocators = 16

func (s *locators) add(l tmdm.Locator, from int) {
	switch {
	case s.index != nil:
		if s.index[l] {
			return
		}
		s.index[l] = true
	case slices.Contains(s.list, l):
		return
	case len(s.list) == fewLocators:
		s.index = map[tmdm.Locator]bool{l: true}
		for _, l := range s.list {
			s.index[l] = true
		}
	}
	s.list, s.from = append(s.list, l), append(s.from, from)
}

// subject returns the topic that has the subject identifier, with its records
// whole or with their identities at least. Those that are at hand are given.
func (v *View) subject(whole bool, si fragment.Ref, members ...member) (*subject, error) {
	if s := v.last; s != nil && s.ref == si && (!whole || s.whole()) {
		return s, nil
	}
	s := &subject{ref: si}
	for _, m := range members {
		s.add(m)
	}
	if len(members) == 0 {
		s.sis.add(si, -1)
	}
	for i, j := 0, 0; i < len(s.sis.list) || j < len(s.sls.list); {
		var err error
		if i < len(s.sis.list) {
			err = v.meet(s, s.sis.from[i], func(src fragment.Source) (member, error) { return read(src, whole, s.sis.list[i]) })
			i++
		} else {
			err = v.meet(s, s.sls.from[j], func(src fragment.Source) (member, error) {
				return record(src.TopicBySubjectLocator(s.sls.list[j]))
			})
			j++
		}
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(s.members, func(a, b member) int {
		if a.part != b.part {
			return a.part - b.part
		}
		return compareRefs(a.id.TopicSI(), b.id.TopicSI())
	})
	if len(s.members) > 0 {
		s.ref = slices.MinFunc(s.members, func(a, b member) int {
			return compareRefs(a.id.TopicSI(), b.id.TopicSI())
		}).id.TopicSI()
	}
	v.last = s
	return s, nil
}

// meet adds the record that each source, but for the one that gave the
// identifier, has for an identifier of s.
func (v *View) meet(s *subject, from int, look func(fragment.Source) (member, error)) error {
	for i, src := range v.sources {
		if i == from {
			continue // no two records of a source share an identifier
		}
		m, err := look(src)
		if err != nil {
			return err
		}
		if m.id != nil {
			m.part = i
			s.add(m)
		}
	}
	return nil
}

func read(src fragment.Source, whole bool, si fragment.Ref) (member, error) {
	if identifier, ok := src.(fragment.Identifier); ok && !whole {
		id, err := identifier.Identity(si)
		return member{id: id}, err
	}
	return record(src.Topic(si))
}

func record(t *fragment.Topic, err error) (member, error) {
	if t == nil || err != nil {
		return member{}, err
	}
	return member{id: &t.Identity, topic: t}, nil
}

func (s *subject) add(m member) {
	for _, known := range s.members {
		if known.part == m.part && known.id.TopicSI() == m.id.TopicSI() {
			return
		}
	}
	s.members = append(s.members, m)
	for _, si := range m.id.SubjectIdentifiers {
		s.sis.add(si, m.part)
	}
	for _, sl := range m.id.SubjectLocators {
		s.sls.add(sl, m.part)
	}
}

func (s *subject) whole() bool {
	return !slices.ContainsFunc(s.members, func(m member) bool { return m.topic == nil })
}

// identity returns the identifiers of s, which has members.
func (s *subject) identity() fragment.Identity {
	if len(s.members) == 1 {
		return *s.members[0].id
	}
	id := fragment.Identity{SubjectIdentifiers: []tmdm.Locator{s.ref},
		SubjectLocators: slices.Sorted(slices.Values(s.sls.list))}
	for _, si := range s.sis.list {
		if si != s.ref {
			id.SubjectIdentifiers = append(id.SubjectIdentifiers, si)
		}
	}
	slices.Sort(id.SubjectIdentifiers[1:])
	return id
}

var vocabulary = []fragment.Ref{tmdm.PSIInstance, tmdm.PSIType, tmdm.PSITypeInstance}

// compareRefs orders TopicSIs, those of the vocabulary first.
func compareRefs(a, b fragment.Ref) int {
	if x, y := slices.Contains(vocabulary, a), slices.Contains(vocabulary, b); x != y {
		if x {
			return -1
		}
		return 1
	}
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// resolved is the topic that a reference resolves to.
type resolved struct {
	ref   fragment.Ref // the merged TopicSI
	known bool         // the topic has a record, or that does not matter
}

// manyRefs is the number of references that a view caches.
const manyRefs = 1 << 14

func (v *View) resolve(ref fragment.Ref) (resolved, error) {
	if v.plain {
		return resolved{ref, true}, nil
	}
	if r, ok := v.refs[ref]; ok {
		return r, nil
	}
	last := v.last // the caller may query it again
	s, err := v.subject(false, ref)
	v.last = last
	if err != nil {
		return resolved{}, err
	}
	r := resolved{s.ref, len(s.members) > 0}
	if len(v.refs) >= manyRefs {
		clear(v.refs)
	}
	v.refs[ref] = r
	return r, nil
}
