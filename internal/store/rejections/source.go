package rejections

import (
	"iter"
	"slices"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
)

// Source is a source without its rejected claims. It behaves as if these were never stated: a rejected identifier no
// longer leads to its topic. Topics keep their TopicSIs.
//
// It implements [fragment.Identifier] and [merge.Reified], too, but has no stored forms of the records.
type Source struct {
	from fragment.Source
	all  []Rejection

	rejected map[string]bool       // by the keys of claims
	topics   map[fragment.Ref]bool // whose records may have rejected claims
	players  map[fragment.Ref]bool // the players of the first roles of rejected associations
}

// Without returns a source without its rejected claims.
func Without(from fragment.Source, all []Rejection) *Source {
	s := &Source{from, all, map[string]bool{}, map[fragment.Ref]bool{}, map[fragment.Ref]bool{}}
	for i := range all {
		c := &all[i].Claim
		s.rejected[c.Key()] = true
		if c.Kind == Association {
			s.players[c.Roles[0].Player] = true
			continue
		}
		for _, t := range c.Topics() {
			s.topics[t] = true
		}
	}
	return s
}

// Rejections returns the rejections.
func (s *Source) Rejections() []Rejection { return s.all }

// All returns the source with its rejected claims.
func (s *Source) All() fragment.Source { return s.from }

func (s *Source) rejects(c Claim) bool { return s.rejected[c.Key()] }

func (s *Source) identity(id *fragment.Identity) *fragment.Identity {
	ref := id.TopicSI()
	if !s.topics[ref] {
		return id
	}
	left := fragment.Identity{SubjectIdentifiers: []tmdm.Locator{ref}}
	for _, si := range id.SubjectIdentifiers[1:] {
		if !s.rejects(OfIdentifier(ref, si)) {
			left.SubjectIdentifiers = append(left.SubjectIdentifiers, si)
		}
	}
	for _, sl := range id.SubjectLocators {
		if !s.rejects(OfLocator(ref, sl)) {
			left.SubjectLocators = append(left.SubjectLocators, sl)
		}
	}
	return &left
}

// topic returns the remaining part of a record, which may be shared.
func (s *Source) topic(t *fragment.Topic) *fragment.Topic {
	if t == nil || !s.topics[t.TopicSI()] {
		return t
	}
	ref := t.TopicSI()
	left := &fragment.Topic{Identity: *s.identity(&t.Identity), Provisional: t.Provisional}
	for i := range t.Names {
		n := &t.Names[i]
		if s.rejects(OfName(ref, n)) {
			continue
		}
		name := *n
		name.Variants = nil
		for j := range n.Variants {
			if v := &n.Variants[j]; !s.rejects(OfVariant(ref, n, v)) {
				name.Variants = append(name.Variants, *v)
			}
		}
		left.Names = append(left.Names, name)
	}
	for i := range t.Occurrences {
		if o := &t.Occurrences[i]; !s.rejects(OfOccurrence(ref, o)) {
			left.Occurrences = append(left.Occurrences, *o)
		}
	}
	return left
}

func (s *Source) rejectsAssociation(a *fragment.Association) bool {
	return len(a.Roles) > 0 && s.players[a.Roles[0].Player] && s.rejected[string(fragment.AssociationClaim("", a))]
}

// Topic implements [fragment.Source].
func (s *Source) Topic(si fragment.Ref) (*fragment.Topic, error) {
	t, err := s.from.Topic(si)
	if t = s.topic(t); t == nil || err != nil || !slices.Contains(t.SubjectIdentifiers, si) {
		return nil, err
	}
	return t, nil
}

// Identity implements [fragment.Identifier].
func (s *Source) Identity(si fragment.Ref) (id *fragment.Identity, err error) {
	if from, ok := s.from.(fragment.Identifier); ok {
		id, err = from.Identity(si)
	} else if t, failed := s.from.Topic(si); t != nil {
		id = &t.Identity
	} else {
		err = failed
	}
	if id == nil || err != nil {
		return nil, err
	}
	if id = s.identity(id); !slices.Contains(id.SubjectIdentifiers, si) {
		return nil, nil
	}
	return id, nil
}

// TopicBySubjectLocator implements [fragment.Source].
func (s *Source) TopicBySubjectLocator(sl tmdm.Locator) (*fragment.Topic, error) {
	t, err := s.from.TopicBySubjectLocator(sl)
	if t = s.topic(t); t == nil || err != nil || !slices.Contains(t.SubjectLocators, sl) {
		return nil, err
	}
	return t, nil
}

// Topics implements [fragment.Source].
func (s *Source) Topics() iter.Seq2[*fragment.Topic, error] { return s.topicsOf(s.from.Topics(), nil) }

// topicsOf iterates over the remaining parts of records that accept accepts; nil: all.
func (s *Source) topicsOf(all iter.Seq2[*fragment.Topic, error],
	accept func(*fragment.Topic) bool) iter.Seq2[*fragment.Topic, error] {
	return func(yield func(*fragment.Topic, error) bool) {
		for t, err := range all {
			if err == nil {
				if t = s.topic(t); accept != nil && !accept(t) {
					continue
				}
			}
			if !yield(t, err) || err != nil {
				return
			}
		}
	}
}

// AssociationsOf implements [fragment.Source].
func (s *Source) AssociationsOf(player fragment.Ref, part fragment.Part) iter.Seq2[*fragment.Association, error] {
	return s.associationsOf(s.from.AssociationsOf(player, part))
}

// Associations implements [fragment.Source].
func (s *Source) Associations() iter.Seq2[*fragment.Association, error] {
	return s.associationsOf(s.from.Associations())
}

func (s *Source) associationsOf(all iter.Seq2[*fragment.Association, error]) iter.Seq2[*fragment.Association, error] {
	return func(yield func(*fragment.Association, error) bool) {
		for a, err := range all {
			if err == nil && s.rejectsAssociation(a) {
				continue
			}
			if !yield(a, err) || err != nil {
				return
			}
		}
	}
}

// ReifiedTopics implements [merge.Reified].
func (s *Source) ReifiedTopics() iter.Seq2[*fragment.Topic, error] {
	if r, ok := s.from.(merge.Reified); ok {
		return s.topicsOf(r.ReifiedTopics(), (*fragment.Topic).HasReifiers)
	}
	return s.topicsOf(s.from.Topics(), (*fragment.Topic).HasReifiers)
}

// ReifiedAssociations implements [merge.Reified].
func (s *Source) ReifiedAssociations() iter.Seq2[*fragment.Association, error] {
	if r, ok := s.from.(merge.Reified); ok {
		return s.associationsOf(r.ReifiedAssociations())
	}
	return func(yield func(*fragment.Association, error) bool) {
		for a, err := range s.Associations() {
			if (err != nil || a.HasReifiers()) && (!yield(a, err) || err != nil) {
				return
			}
		}
	}
}
