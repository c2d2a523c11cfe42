package derive

import (
	"slices"

	"github.com/tmshare/tmshare/fragment"
)

// findMentions puts topics into the queue that mention a published topic one of whose identifiers is another topic's
// now, because their references may be to that. The sources decide.
func (u *updater) findMentions() error {
	wanted := map[fragment.Ref]bool{}
	for ref, t := range u.targets {
		if u.checked[ref] || !u.played[ref] { // identifiers of restated topics are unchanged
			continue
		}
		u.checked[ref] = true
		leaves, err := u.leaves(t)
		if err != nil {
			return err
		}
		if !leaves {
			continue
		}
		for a, err := range u.prior.AssociationsOf(ref, fragment.AsType) {
			if err != nil {
				return err
			}
			u.enqueue(a.Players()...)
		}
		n, err := u.prior.Mentions(ref)
		if err != nil {
			return err
		}
		wanted[ref] = n > u.counts.before[ref]
	}
	for ref, open := range wanted {
		if open {
			return u.readMentions(wanted)
		}
		delete(wanted, ref)
	}
	return nil
}

// findReifiers puts topics into the queue that mention the reifier of a built item, because a topic reifies one
// statement (ISO 13250-2 §5.3.4, Reification), and another one may be out of date.
func (u *updater) findReifiers() error {
	wanted := map[fragment.Ref]bool{}
	for ref, checked := range u.reifiers {
		if checked {
			continue
		}
		u.reifiers[ref] = true
		n, err := u.prior.Mentions(ref)
		if err != nil {
			return err
		}
		if n > u.counts.before[ref] {
			wanted[ref] = true
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	return u.readMentions(wanted)
}

// leaves reports whether something may refer to a published topic by an identifier that is not one of the topic with
// its TopicSI afterwards.
func (u *updater) leaves(t *fragment.Topic) (bool, error) {
	for _, si := range t.SubjectIdentifiers {
		name, err := u.nameOf(si)
		if err != nil {
			return false, err
		}
		if name == t.TopicSI() {
			continue
		}
		id, err := u.view.Identity(si)
		if err != nil {
			return false, err
		}
		if id != nil || si == t.TopicSI() {
			return true, nil
		}
		if referred, err := u.referredInSources(si); referred || err != nil {
			return referred, err
		}
	}
	return false, nil
}

// referredInSources reports whether a source may refer to a subject identifier without a record.
func (u *updater) referredInSources(si fragment.Ref) (bool, error) {
	for _, p := range u.view.Parts() {
		counted, ok := p.Source.(interface {
			Mentions(fragment.Ref) (int, error)
		})
		if !ok {
			return true, nil
		}
		if n, err := counted.Mentions(si); n > 0 || err != nil {
			return true, err
		}
		for _, part := range fragment.Parts {
			for _, err := range p.Source.AssociationsOf(si, part) {
				return true, err
			}
		}
	}
	return false, nil
}

// readMentions reads the published state for mentions of the topics.
func (u *updater) readMentions(wanted map[fragment.Ref]bool) error {
	for t, err := range u.prior.Topics() {
		if err != nil {
			return err
		}
		found := false
		t.Mentions(func(ref fragment.Ref) { found = found || wanted[ref] })
		if found {
			u.enqueue(t.TopicSI())
		}
	}
	for a, err := range u.prior.Associations() {
		if err != nil {
			return err
		}
		found := false
		a.Mentions(func(ref fragment.Ref) { found = found || wanted[ref] })
		if found {
			u.enqueue(a.Players()...)
		}
	}
	return nil
}

// leaveOut finds the subjects that are not published, because no source announces them and nothing published refers to
// them.
func (u *updater) leaveOut() error {
	for _, s := range u.subjects {
		if s.gone { // something may refer to it by now
			s.record.Mentions(u.counts.add)
			s.gone = false
		}
	}
	for found := true; found; {
		found = false
		for _, s := range u.subjects {
			if s.announced || s.gone {
				continue
			}
			referred, err := u.referred(s.name)
			if err != nil {
				return err
			}
			if !referred {
				s.record.Mentions(u.counts.leaveOut)
				s.gone, found = true, true
			}
		}
	}
	return nil
}

// findUnreferred puts published topics into the queue that nothing refers to any more and that have no other reason to
// exist.
func (u *updater) findUnreferred() error {
	refs := map[fragment.Ref]bool{}
	for ref := range u.counts.before {
		refs[ref] = true
	}
	for key, a := range u.removed {
		if u.added[key] == nil && slices.Contains(vocabulary, a.Type) {
			u.enqueue(a.Players()...) // it may belong to an instance from now on
		}
		for i := range a.Roles {
			refs[a.Roles[i].Player] = true
		}
	}
	for ref := range refs {
		if u.targets[ref] != nil || u.looked[ref] {
			continue
		}
		t, err := u.prior.Topic(ref)
		if err != nil {
			return err
		}
		if t == nil || u.filter == nil && len(t.Names)+len(t.Occurrences) > 0 {
			continue
		}
		referred, err := u.referred(ref)
		if err != nil {
			return err
		}
		if !referred {
			u.enqueue(ref)
		}
	}
	return nil
}

// referred reports whether something refers to a TopicSI afterwards.
func (u *updater) referred(ref fragment.Ref) (bool, error) {
	n, err := u.prior.Mentions(ref)
	if err != nil || n+u.counts.change[ref] > 0 || u.counts.plays[ref] > 0 {
		return true, err
	}
	for _, part := range fragment.Parts {
		for a, err := range u.prior.AssociationsOf(ref, part) {
			if err != nil || u.removed[a.Key()] == nil {
				return true, err
			}
		}
	}
	return false, nil
}

// enqueue puts new subject identifiers into the queue.
func (u *updater) enqueue(sis ...fragment.Ref) {
	for _, si := range sis {
		if !u.looked[si] {
			u.queue = append(u.queue, si)
		}
	}
}
