package derived

import (
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
)

// identities are the identifiers of records that have changed theirs since reifiers were settled.
type identities struct {
	single, any []fragment.Ref
	locators    []tmdm.Locator
}

// takeIdentities removes the recorded identifiers, and returns them; nil if they are too many.
func takeIdentities(t *txn.Tx, number uint32) (*identities, error) {
	rows, more, err := dequeue(t, number, kindIdentity, manyIdentities)
	if err != nil {
		return nil, err
	}
	if more {
		for more && err == nil {
			_, more, err = dequeue(t, number, kindIdentity, manyIdentities)
		}
		return nil, err
	}
	all := &identities{}
	for _, row := range rows {
		switch l := tmdm.Locator(row[1:]); row[0] {
		case locator:
			all.locators = append(all.locators, l)
		case identifierAlone:
			all.single = append(all.single, l)
		default:
			all.any = append(all.any, l)
		}
	}
	return all, nil
}

// matter reports whether a reified statement may mention a topic that has other identifiers now. Each of the
// identifiers that a record had or has leads to all topics that it can have joined or parted.
func (ids *identities) matter(t *txn.Tx, view *merge.View, kept *merge.Kept) (bool, error) {
	if len(ids.single)+len(ids.any)+len(ids.locators) == 0 {
		return false, nil
	}
	merged := merge.NewView(t.Context(), view.Parts()...)
	merged.Keep(kept)
	looked := map[fragment.Ref]bool{}
	look := func(si fragment.Ref, single bool) (bool, error) {
		id, err := merged.Identity(si)
		if err != nil {
			return false, err
		}
		if id == nil {
			id = &fragment.Identity{SubjectIdentifiers: []fragment.Ref{si}}
		}
		if looked[id.TopicSI()] || single && len(id.SubjectIdentifiers)+len(id.SubjectLocators) == 1 {
			return false, nil // no record joins it with another
		}
		looked[id.TopicSI()] = true
		for _, si := range id.SubjectIdentifiers {
			if reified, err := inReified(view, si); reified || err != nil {
				return true, err
			}
		}
		return false, nil
	}
	for _, si := range ids.any {
		if matters, err := look(si, false); matters || err != nil {
			return true, err
		}
	}
	for _, si := range ids.single {
		if matters, err := look(si, true); matters || err != nil {
			return true, err
		}
	}
	for _, sl := range ids.locators {
		for _, p := range view.Parts() {
			topic, err := p.Source.TopicBySubjectLocator(sl)
			if err != nil {
				return true, err
			}
			if topic == nil {
				continue
			}
			if matters, err := look(topic.TopicSI(), false); matters || err != nil {
				return true, err
			}
		}
	}
	return false, nil
}

// inReified reports whether a statement that is reified may mention the topic with a subject identifier, or be about
// it.
func inReified(view *merge.View, si fragment.Ref) (bool, error) {
	for _, p := range view.Parts() {
		counted, ok := p.Source.(interface {
			Mentions(fragment.Ref) (int, error)
		})
		if !ok {
			return true, nil
		}
		if n, err := counted.Mentions(si); n > 0 || err != nil {
			return true, err
		}
		if topic, err := p.Source.Topic(si); err != nil || topic != nil && topic.HasReifiers() {
			return true, err
		}
		n := 0
		for _, part := range fragment.Parts {
			for a, err := range p.Source.AssociationsOf(si, part) {
				if n++; err != nil || n > manyAssociations || a.HasReifiers() {
					return true, err
				}
			}
		}
	}
	return false, nil
}
