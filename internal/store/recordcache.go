package store

import (
	"iter"
	"sync"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/tmdm"
)

// decodedRecords are the records of a collection that is published to. Fragments
// mention the same few classes and types again and again, and each is rendered in
// every form, so what is read is decoded once. It is safe for concurrent use as
// long as nothing is written.
type decodedRecords struct {
	records

	mu     sync.Mutex
	topics map[fragment.Ref]*fragment.Topic // by any subject identifier; nil: there is none
	lists  map[playing]*decodedList
	large  map[string]*fragment.Association // by the keys of their rows: those that stand with one of their players
	roles  int                              // of large
	sizes  map[string]bool                  // likewise: whether they are too large for fragments that are stored
}

// playing is a way in which a topic takes part in associations.
type playing struct {
	player fragment.Ref
	part   fragment.Part
}

// decodedList is all associations of a topic in one part.
type decodedList struct {
	list  []*fragment.Association
	large bool // one of them is
}

// mostDecoded is how many topics are kept, and in how many lists of associations
// that have as many at most as txn.FewRows.
const mostDecoded = 10_000

func (s *decodedRecords) Topic(si fragment.Ref) (*fragment.Topic, error) {
	s.mu.Lock()
	t, known := s.topics[si]
	s.mu.Unlock()
	if known {
		return t, nil
	}
	t, err := s.records.topicAt(si)
	if t == nil && err == nil {
		t, err = s.via(tableIdentifier, si)
	}
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.makeRoom()
		s.topics[si] = t
	}
	return t, err
}

func (s *decodedRecords) TopicBySubjectLocator(sl tmdm.Locator) (*fragment.Topic, error) {
	return s.via(tableLocator, sl)
}

// via finds a topic by one of its further identifiers. There may be thousands, and it
// is not decoded again for each.
func (s *decodedRecords) via(table byte, l tmdm.Locator) (*fragment.Topic, error) {
	ref, err := s.tx.Get(s.id.locatorKey(table, l))
	if ref == nil || err != nil {
		return nil, err
	}
	return s.Topic(fragment.Ref(ref))
}

func (s *decodedRecords) AssociationsOf(player fragment.Ref, part fragment.Part) iter.Seq2[*fragment.Association, error] {
	return s.associationsOf(player, part, false)
}

// storable is a source of fragments to store: at an association that is too large for
// these it ends with errTooLarge, without having read it.
type storable struct{ *decodedRecords }

func (s storable) AssociationsOf(player fragment.Ref, part fragment.Part) iter.Seq2[*fragment.Association, error] {
	return s.associationsOf(player, part, true)
}

func (s *decodedRecords) associationsOf(player fragment.Ref, part fragment.Part, storable bool) iter.Seq2[*fragment.Association, error] {
	return func(yield func(*fragment.Association, error) bool) {
		s.mu.Lock()
		known := s.lists[playing{player, part}]
		s.mu.Unlock()
		if known != nil {
			if storable && known.large {
				yield(nil, errTooLarge)
				return
			}
			for _, a := range known.list {
				if !yield(a, nil) {
					return
				}
			}
			return
		}
		few, read := true, decodedList{}
		for r, err := range s.tx.Scan(s.id.playingPrefix(player, part), nil) {
			var a *fragment.Association
			var large bool
			if err == nil {
				large, err = s.isLarge(r, part)
			}
			if err == nil && large && storable {
				err = errTooLarge
			}
			if err == nil {
				a, err = s.decoded(r, part)
			}
			if !yield(a, err) || err != nil {
				return
			}
			read.large = read.large || large
			if few = few && len(read.list) < txn.FewRows; few {
				read.list = append(read.list, a)
			}
		}
		if few {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.makeRoom()
			s.lists[playing{player, part}] = &read
		}
	}
}

// isLarge reports whether the association of a row is too large for fragments that are
// stored.
func (s *decodedRecords) isLarge(r row, part fragment.Part) (bool, error) {
	if !elsewhere(r) {
		return len(r.Value) > maxStoredAssociation, nil
	}
	home := s.home(r, part)
	s.mu.Lock()
	large, known := s.sizes[string(home)]
	s.mu.Unlock()
	if known {
		return large, nil
	}
	value, err := s.tx.Get(home)
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sizes == nil || len(s.sizes) >= mostDecoded {
		s.sizes = map[string]bool{}
	}
	s.sizes[string(home)] = len(value) > maxStoredAssociation
	return len(value) > maxStoredAssociation, nil
}

// decoded is records.association for associations that have other players, too, who
// may be asked for.
func (s *decodedRecords) decoded(r row, part fragment.Part) (*fragment.Association, error) {
	if !elsewhere(r) {
		return s.association(r, part)
	}
	home := string(s.home(r, part))
	s.mu.Lock()
	a := s.large[home]
	s.mu.Unlock()
	if a != nil {
		return a, nil
	}
	a, err := s.association(r, part)
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.roles += len(a.Roles); s.large == nil || s.roles > mostRoles {
			s.large, s.roles = map[string]*fragment.Association{}, len(a.Roles)
		}
		s.large[home] = a
	}
	return a, err
}

// mostRoles is how many roles the associations have at most that are kept for their
// other players.
const mostRoles = 200_000

func (s *decodedRecords) makeRoom() {
	full := len(s.topics)+len(s.lists) >= mostDecoded
	if s.topics == nil || full {
		s.topics = map[fragment.Ref]*fragment.Topic{}
	}
	if s.lists == nil || full {
		s.lists = map[playing]*decodedList{}
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
	s.lists, s.large, s.sizes = nil, nil, nil
	return s.records.PutAssociation(a)
}

func (s *decodedRecords) DeleteAssociation(a *fragment.Association) error {
	s.lists, s.large, s.sizes = nil, nil, nil
	return s.records.DeleteAssociation(a)
}
