package merge

import (
	"slices"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/tmdm"
)

// State is the records of one source, to read and to change.
type State interface {
	fragment.Source

	// Mentions returns how many references there are to the subject identifier
	// other than as a player: from types, themes and reifiers.
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

// Apply applies a fragment to the state of its source. Applying it again
// changes nothing. Fragments are applied in the order of their entries; applying
// an older one alone would bring back what it says.
func Apply(s State, f *fragment.Fragment) error {
	a := applier{State: s, dropped: map[fragment.Ref]bool{}}
	names, err := a.clearTargets(f)
	if err != nil {
		return err
	}
	for _, si := range names {
		if err := a.clearAssociations(si); err != nil {
			return err
		}
	}
	if !f.Deleted {
		if err := s.PutTopic(f.Topic); err != nil {
			return err
		}
		for _, assoc := range f.Associations {
			if err := s.PutAssociation(assoc); err != nil {
				return err
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

type applier struct {
	State
	dropped map[fragment.Ref]bool // references that may have been the last ones
}

func (a *applier) drop(ref fragment.Ref) { a.dropped[ref] = true }

// clearTargets removes the records of all topics that the fragment describes:
// those that have the entry's TopicSI or an identifier of its topic. It returns
// every subject identifier under which they may play roles.
func (a *applier) clearTargets(f *fragment.Fragment) ([]fragment.Ref, error) {
	names := append([]fragment.Ref{f.TopicSI}, f.Topic.SubjectIdentifiers...)
	clearTarget := func(target *fragment.Topic, err error) error {
		if target == nil || err != nil {
			return err
		}
		names = append(names, target.SubjectIdentifiers...)
		target.Mentions(a.drop)
		return a.DeleteTopic(target)
	}
	for _, si := range slices.Clone(names) {
		if err := clearTarget(a.Topic(si)); err != nil {
			return nil, err
		}
	}
	for _, sl := range f.Topic.SubjectLocators {
		if err := clearTarget(a.TopicBySubjectLocator(sl)); err != nil {
			return nil, err
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// clearAssociations removes the associations in which the subject identifier
// names a player, but for type-instance ones in which it names the class: those
// belong to the instance.
func (a *applier) clearAssociations(si fragment.Ref) error {
	var found []*fragment.Association
	for _, part := range []fragment.Part{fragment.AsInstance, fragment.AsPlayer} {
		for assoc, err := range a.AssociationsOf(si, part) {
			if err != nil {
				return err
			}
			found = append(found, assoc)
		}
	}
	for _, assoc := range found {
		assoc.Mentions(a.drop)
		for _, p := range assoc.Players() {
			a.drop(p)
		}
		if err := a.DeleteAssociation(assoc); err != nil {
			return err
		}
	}
	return nil
}

// resolve makes a provisional topic for a stub that nothing in the source
// resolves, with those of its identifiers that no topic has.
func (a *applier) resolve(stub fragment.Identity) error {
	ref := stub.TopicSI()
	known, err := a.Topic(ref)
	if err != nil || known != nil {
		return err
	}
	t := &fragment.Topic{Provisional: true, Identity: fragment.Identity{SubjectIdentifiers: []tmdm.Locator{ref}}}
	for _, si := range stub.SubjectIdentifiers[1:] {
		if other, err := a.Topic(si); err != nil {
			return err
		} else if other == nil {
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
	a.drop(ref) // unless what was taken of the fragment refers to it, it goes again
	return a.PutTopic(t)
}

// sweep removes the provisional topics to which nothing refers any more.
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
