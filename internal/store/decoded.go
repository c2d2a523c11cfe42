package store

import (
	"iter"
	"sync"

	"github.com/tmshare/tmshare/fragment"
)

// decodedRecords are the records of a collection that is published to. Fragments
// mention the same few classes and types again and again, and each is rendered in
// every form, so what is read is decoded once. It is safe for concurrent use as
// long as nothing is written.
type decodedRecords struct {
	records

	mu     sync.Mutex
	topics map[fragment.Ref]*fragment.Topic // by any subject identifier; nil: there is none
	lists  map[playing][]*fragment.Association
}

// playing is a way in which a topic takes part in associations.
type playing struct {
	player fragment.Ref
	part   fragment.Part
}

// mostDecoded is how many topics are kept, and in how many lists of associations
// that have as many at most as fewRows.
const mostDecoded = 10_000

func (s *decodedRecords) Topic(si fragment.Ref) (*fragment.Topic, error) {
	s.mu.Lock()
	t, known := s.topics[si]
	s.mu.Unlock()
	if known {
		return t, nil
	}
	t, err := s.records.Topic(si)
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.makeRoom()
		s.topics[si] = t
	}
	return t, err
}

func (s *decodedRecords) AssociationsOf(player fragment.Ref, part fragment.Part) iter.Seq2[*fragment.Association, error] {
	return func(yield func(*fragment.Association, error) bool) {
		s.mu.Lock()
		list, known := s.lists[playing{player, part}]
		s.mu.Unlock()
		if known {
			for _, a := range list {
				if !yield(a, nil) {
					return
				}
			}
			return
		}
		few := true
		for a, err := range s.records.AssociationsOf(player, part) {
			if !yield(a, err) || err != nil {
				return
			}
			if few = few && len(list) < fewRows; few {
				list = append(list, a)
			}
		}
		if few {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.makeRoom()
			s.lists[playing{player, part}] = list
		}
	}
}

func (s *decodedRecords) makeRoom() {
	full := len(s.topics)+len(s.lists) >= mostDecoded
	if s.topics == nil || full {
		s.topics = map[fragment.Ref]*fragment.Topic{}
	}
	if s.lists == nil || full {
		s.lists = map[playing][]*fragment.Association{}
	}
}

// What changes a topic leaves the associations as they are, and the other way
// round: most changes are of topics alone.

func (s *decodedRecords) PutTopic(t *fragment.Topic) error {
	s.topics = nil
	return s.records.PutTopic(t)
}

func (s *decodedRecords) DeleteTopic(t *fragment.Topic) error {
	s.topics = nil
	return s.records.DeleteTopic(t)
}

func (s *decodedRecords) PutAssociation(a *fragment.Association) error {
	s.lists = nil
	return s.records.PutAssociation(a)
}

func (s *decodedRecords) DeleteAssociation(a *fragment.Association) error {
	s.lists = nil
	return s.records.DeleteAssociation(a)
}
