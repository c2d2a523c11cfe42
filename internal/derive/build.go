package derive

import (
	"maps"
	"slices"

	"github.com/tmshare/tmshare/fragment"
)

// build builds all subjects that are not built yet. It puts unpublished topics that they refer to into the queue.
func (u *updater) build() error {
	for _, ref := range slices.Sorted(maps.Keys(u.subjects)) {
		s := u.subjects[ref]
		if s.record == nil {
			if err := u.record(s); err != nil {
				return err
			}
		}
		if s.played || s.bare || s.restated {
			continue
		}
		if err := u.associations(s); err != nil {
			return err
		}
	}
	if len(u.queue) > 0 {
		return nil
	}
	return u.findReifiers()
}

// record builds the record of a subject.
func (u *updater) record(s *subject) error {
	r := renamer{u: u}
	s.record = &fragment.Topic{Identity: identity(s)}
	t, err := u.view.Topic(s.ref)
	if err != nil {
		return err
	}
	t, passes, err := u.filter.topic(t)
	if err != nil {
		return err
	}
	s.stated = t != nil && len(t.Names)+len(t.Occurrences) > 0
	s.announced = t != nil && u.filter.announced(t, passes)
	if s.bare {
		if s.bare, err = u.unpublished(s); s.bare || err != nil {
			return err
		}
	}
	if t != nil {
		r.statements(s.record, t)
		s.record.Canonical()
		s.record.Mentions(u.counts.add)
	}
	return r.err
}

// associations builds the associations of a subject.
func (u *updater) associations(s *subject) error {
	r := renamer{u: u}
	s.played = true
	for a, err := range u.view.PlayedBy(s.ref) {
		passes := err == nil
		if passes {
			passes, err = u.filter.association(a)
		}
		if err != nil {
			return err
		}
		if err := u.enqueueNode(s, a); err != nil {
			return err
		}
		if !passes {
			continue
		}
		renamed := r.association(a)
		key := renamed.Key()
		if r.err != nil || u.added[key] != nil {
			continue
		}
		u.added[key] = renamed
		renamed.Mentions(u.counts.add)
		for i := range renamed.Roles {
			u.counts.plays[renamed.Roles[i].Player]++
		}
	}
	return r.err
}

// enqueueNode puts a blank node into the queue, which passes with the topics that refer to it.
func (u *updater) enqueueNode(s *subject, a *fragment.Association) error {
	if !u.filter.choosesTopics() {
		return nil
	}
	one, other, ok := u.filter.has(a)
	if !ok || one != s.ref {
		return nil
	}
	node, err := u.filter.isNode(other)
	if node && err == nil {
		u.enqueue(other)
	}
	return err
}

// unpublished reports whether no published topic has an identifier of s.
func (u *updater) unpublished(s *subject) (bool, error) {
	for _, si := range s.identity.SubjectIdentifiers {
		if t, err := u.prior.Topic(si); t != nil || err != nil {
			return false, err
		}
	}
	for _, sl := range s.identity.SubjectLocators {
		if t, err := u.prior.TopicBySubjectLocator(sl); t != nil || err != nil {
			return false, err
		}
	}
	return true, nil
}

// identity returns the identifiers of s with the TopicSI that it gets.
func identity(s *subject) fragment.Identity {
	id := fragment.Identity{SubjectIdentifiers: []fragment.Ref{s.name}, SubjectLocators: s.identity.SubjectLocators}
	for _, si := range s.identity.SubjectIdentifiers {
		if si != s.name {
			id.SubjectIdentifiers = append(id.SubjectIdentifiers, si)
		}
	}
	slices.Sort(id.SubjectIdentifiers[1:])
	return id
}

// renamer converts statements of a view to those of a published state: their references are the TopicSIs in that, and
// they have no item identifiers, which are the sources'. The first error ends it.
type renamer struct {
	u   *updater
	err error
}

func (r *renamer) ref(ref fragment.Ref) fragment.Ref {
	if ref == "" || r.err != nil {
		return ref
	}
	name, err := r.u.name(ref)
	if err == nil {
		err = r.u.require(ref, name)
	}
	r.err = err
	return name
}

func (r *renamer) reifier(ref fragment.Ref) fragment.Ref {
	name := r.ref(ref)
	if name != "" && !r.u.reifiers[name] {
		r.u.reifiers[name] = false
	}
	return name
}

func (r *renamer) refs(refs []fragment.Ref) []fragment.Ref {
	out := slices.Clone(refs)
	for i := range out {
		out[i] = r.ref(out[i])
	}
	return out
}

func (r *renamer) statements(into, t *fragment.Topic) {
	for i := range t.Names {
		n := &t.Names[i]
		name := fragment.Name{Value: n.Value, Type: r.ref(n.Type), Scope: r.refs(n.Scope), Reifier: r.reifier(n.Reifier)}
		for j := range n.Variants {
			v := &n.Variants[j]
			if slices.Equal(v.Scope, n.Scope) {
				continue // its themes are one topic with those of the name here (ISO 13250-2 §5.5, Variant items)
			}
			name.Variants = append(name.Variants, fragment.Variant{Value: v.Value, Datatype: v.Datatype, Scope: r.refs(v.Scope),
				Reifier: r.reifier(v.Reifier)})
		}
		into.Names = append(into.Names, name)
	}
	for i := range t.Occurrences {
		o := &t.Occurrences[i]
		into.Occurrences = append(into.Occurrences, fragment.Occurrence{
			Value: o.Value, Datatype: o.Datatype, Type: r.ref(o.Type), Scope: r.refs(o.Scope), Reifier: r.reifier(o.Reifier),
		})
	}
}

func (r *renamer) association(a *fragment.Association) *fragment.Association {
	out := &fragment.Association{Type: r.ref(a.Type), Scope: r.refs(a.Scope), Reifier: r.reifier(a.Reifier),
		Roles: make([]fragment.Role, len(a.Roles))}
	for i := range a.Roles {
		role := &a.Roles[i]
		out.Roles[i] = fragment.Role{Type: r.ref(role.Type), Player: r.ref(role.Player), Reifier: r.reifier(role.Reifier)}
	}
	out.Canonical()
	return out
}

// require sees to it that a topic that is referred to is published: by its TopicSI in the view and by the one that it
// gets.
func (u *updater) require(ref, name fragment.Ref) error {
	if u.subjects[ref] != nil {
		return nil
	}
	was, err := u.prior.Topic(name)
	if err != nil || was != nil && was.TopicSI() == name {
		return err
	}
	if u.most > 0 {
		u.most--
		u.queue = append(u.queue, ref)
		return nil
	}
	s, err := u.lookAtView(ref)
	if err != nil {
		return err
	}
	s.bare = true
	return nil
}

// update returns the update, now that all is built.
func (u *updater) update() (*Update, error) {
	var topics []*fragment.Topic
	var later []fragment.Ref
	for _, ref := range slices.Sorted(maps.Keys(u.subjects)) {
		s := u.subjects[ref]
		if !s.gone {
			topics = append(topics, s.record)
		}
		if s.bare && (s.announced || s.stated) {
			later = append(later, ref)
		}
	}
	change, err := fragment.Exchange(u.prior, slices.Collect(maps.Values(u.targets)), topics,
		slices.Collect(maps.Values(u.removed)), slices.Collect(maps.Values(u.added)))
	return &Update{change, later}, err
}
