package merge

import (
	"bytes"
	"iter"
	"slices"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/tmdm"
)

// State is the records of one source, to read and to change.
type State interface {
	fragment.Source

	// Mentions returns the number of references to the subject identifier other than as a player: from types, themes
	// and reifiers.
	Mentions(ref fragment.Ref) (int, error)

	// PutTopic writes a topic record in place of the one with its TopicSI.
	// No other record has one of its identifiers.
	PutTopic(*fragment.Topic) error

	// DeleteTopic removes the record of a topic, if it is there.
	DeleteTopic(*fragment.Topic) error

	// PutAssociation writes an association in place of the one with its key.
	PutAssociation(*fragment.Association) error

	// DeleteAssociation removes an association, if it is there.
	DeleteAssociation(*fragment.Association) error
}

// Directory may be implemented by a State that answers two frequent queries of Apply at a lower cost than reading
// records.
type Directory interface {
	fragment.Players

	// Has reports whether a topic has the subject identifier.
	Has(si fragment.Ref) (bool, error)
}

// Apply applies a fragment to the state of its source. It is idempotent. Callers must apply fragments in the order of
// their entries, because an older one would restore its statements.
//
// It skips records that the algorithm drops and then merges in again unchanged, with the same result.
func Apply(s State, f *fragment.Fragment) error {
	a := applier{State: s, dropped: map[fragment.Ref]bool{}}
	targets, names, err := a.targets(f)
	if err != nil {
		return err
	}
	stated := map[fragment.AssociationKey]*fragment.Association{} // nil: it is there as it is
	if !f.Deleted {
		for _, assoc := range f.Associations {
			stated[assoc.Key()] = assoc
		}
	}
	for _, t := range targets {
		t.Mentions(a.drop)
		if f.Deleted || t.TopicSI() != f.Topic.TopicSI() { // otherwise it is overwritten
			if err := a.DeleteTopic(t); err != nil {
				return err
			}
		}
	}
	for _, si := range names {
		if err := a.clearAssociations(si, stated); err != nil {
			return err
		}
	}
	if !f.Deleted {
		if err := s.PutTopic(f.Topic); err != nil {
			return err
		}
		f.Topic.Mentions(a.keep)
		for _, assoc := range f.Associations {
			if stated[assoc.Key()] != nil { // otherwise it exists unchanged
				if err := s.PutAssociation(assoc); err != nil {
					return err
				}
			}
			assoc.Mentions(a.keep)
			for i := range assoc.Roles {
				a.keep(assoc.Roles[i].Player)
			}
		}
		for _, stub := range f.Stubs {
			if err := a.resolve(stub); err != nil {
				return err
			}
		}
	}
	return a.sweep()
}

// ApplyLate applies a fragment out of order: later entries have been applied, but none with its TopicSI. It requires a
// source that publishes closing entries. It is idempotent.
//
// Identifiers may have moved to another topic since. So a tombstone or a closing entry removes only the topic with the
// entry's TopicSI as its TopicSI, and has no effect if another topic has that identifier. Instances may have left their
// class since, without an entry of the class. So it takes type-instance associations from the fragments of instances
// only.
func ApplyLate(s State, f *fragment.Fragment) error {
	if f.Deleted || f.Topic.TopicSI() != f.TopicSI {
		owner, err := s.Topic(f.TopicSI)
		if err != nil || owner != nil && !owner.Provisional && owner.TopicSI() != f.TopicSI {
			return err
		}
		return Apply(s, &fragment.Fragment{
			TopicSI: f.TopicSI, Deleted: true,
			Topic: &fragment.Topic{Identity: fragment.Identity{SubjectIdentifiers: []fragment.Ref{f.TopicSI}}},
		})
	}
	own := *f
	own.Associations = slices.DeleteFunc(slices.Clone(f.Associations), func(a *fragment.Association) bool {
		return !slices.ContainsFunc(f.Topic.SubjectIdentifiers, func(si fragment.Ref) bool {
			return plays(a, si) && a.Part(si) != fragment.AsType
		})
	})
	return Apply(s, &own)
}

// plays reports whether the subject identifier names a player of a.
func plays(a *fragment.Association, si fragment.Ref) bool {
	return slices.ContainsFunc(a.Roles, func(r fragment.Role) bool { return r.Player == si })
}

type applier struct {
	State
	dropped map[fragment.Ref]bool // references that may have been the last ones
}

func (a *applier) drop(ref fragment.Ref) { a.dropped[ref] = true }

// keep records that there is a reference.
func (a *applier) keep(ref fragment.Ref) { delete(a.dropped, ref) }

// targets returns all topics that the fragment describes: those with the entry's TopicSI or an identifier of its topic,
// and every subject identifier under which they may play roles.
func (a *applier) targets(f *fragment.Fragment) ([]*fragment.Topic, []fragment.Ref, error) {
	names := slices.Concat([]fragment.Ref{f.TopicSI}, f.Topic.SubjectIdentifiers, f.Formerly)
	var targets []*fragment.Topic
	add := func(target *fragment.Topic, err error) error {
		if target == nil || err != nil {
			return err
		}
		if slices.ContainsFunc(targets, func(t *fragment.Topic) bool { return t.TopicSI() == target.TopicSI() }) {
			return nil
		}
		targets = append(targets, target)
		if !target.Provisional { // another source may have stated a stub's other identifiers
			names = append(names, target.SubjectIdentifiers...)
		}
		return nil
	}
	wanted := slices.Clone(names)
	slices.Sort(wanted)
	for _, si := range slices.Compact(wanted) {
		if err := add(a.Topic(si)); err != nil {
			return nil, nil, err
		}
	}
	for _, sl := range f.Topic.SubjectLocators {
		if err := add(a.TopicBySubjectLocator(sl)); err != nil {
			return nil, nil, err
		}
	}
	slices.Sort(names)
	return targets, slices.Compact(names), nil
}

// clearAssociations removes the associations in which the subject identifier names a player, except those that are
// stated again, and type-instance ones in which it names the class, because those belong to the instance.
func (a *applier) clearAssociations(si fragment.Ref, stated map[fragment.AssociationKey]*fragment.Association) error {
	var found []*fragment.Association
	for assoc, err := range a.playing(si) {
		if err != nil {
			return err
		}
		found = append(found, assoc)
	}
	for _, assoc := range found {
		assoc.Mentions(a.drop)
		key := assoc.Key()
		if again, ok := stated[key]; ok { // it is written over, if that changes anything
			if again != nil && bytes.Equal(fragment.MarshalAssociation(assoc), fragment.MarshalAssociation(again)) {
				stated[key] = nil
			}
			continue
		}
		for i := range assoc.Roles {
			a.drop(assoc.Roles[i].Player)
		}
		if err := a.DeleteAssociation(assoc); err != nil {
			return err
		}
	}
	return nil
}

func (a *applier) playing(si fragment.Ref) iter.Seq2[*fragment.Association, error] {
	if d, ok := a.State.(Directory); ok {
		return d.PlayedBy(si)
	}
	return func(yield func(*fragment.Association, error) bool) {
		for _, part := range []fragment.Part{fragment.AsInstance, fragment.AsPlayer} {
			for assoc, err := range a.AssociationsOf(si, part) {
				if !yield(assoc, err) || err != nil {
					return
				}
			}
		}
	}
}

func (a *applier) has(si fragment.Ref) (bool, error) {
	if d, ok := a.State.(Directory); ok {
		return d.Has(si)
	}
	t, err := a.Topic(si)
	return t != nil, err
}

// resolve makes a provisional topic for a stub that no topic of the source resolves, with those of its identifiers that
// no topic has.
func (a *applier) resolve(stub fragment.Identity) error {
	ref := stub.TopicSI()
	known, err := a.has(ref)
	if err != nil || known {
		return err
	}
	t := &fragment.Topic{Provisional: true, Identity: fragment.Identity{SubjectIdentifiers: []tmdm.Locator{ref}}}
	for _, si := range stub.SubjectIdentifiers[1:] {
		if taken, err := a.has(si); err != nil {
			return err
		} else if !taken {
			t.SubjectIdentifiers = append(t.SubjectIdentifiers, si)
		}
	}
	for _, sl := range stub.SubjectLocators {
		if other, err := a.TopicBySubjectLocator(sl); err != nil {
			return err
		} else if other == nil {
			t.SubjectLocators = append(t.SubjectLocators, sl)
		}
	}
	t.Canonical()
	a.drop(ref) // it is removed again unless a statement refers to it
	return a.PutTopic(t)
}

// sweep removes the provisional topics without references to them.
func (a *applier) sweep() error {
	refs := make([]fragment.Ref, 0, len(a.dropped))
	for ref := range a.dropped {
		refs = append(refs, ref)
	}
	slices.Sort(refs)
	for _, ref := range refs {
		t, err := a.Topic(ref)
		if err != nil {
			return err
		}
		if t == nil || !t.Provisional {
			continue
		}
		referred, err := Referred(a.State, t)
		if err != nil {
			return err
		}
		if !referred {
			if err := a.DeleteTopic(t); err != nil {
				return err
			}
		}
	}
	return nil
}

// Referred reports whether anything in the source refers to t.
func Referred(s State, t *fragment.Topic) (bool, error) {
	for _, si := range t.SubjectIdentifiers {
		if n, err := s.Mentions(si); n > 0 || err != nil {
			return n > 0, err
		}
		for _, part := range fragment.Parts {
			for _, err := range s.AssociationsOf(si, part) {
				return err == nil, err
			}
		}
	}
	return false, nil
}
