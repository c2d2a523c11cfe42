package records

import (
	"iter"
	"sync"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/seq"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/tmdm"
)

// Cached are the records of a collection during a publication. Because changes mention the same few topics repeatedly,
// it decodes each record once. It is safe for concurrent use while nothing is written.
type Cached struct {
	State

	mu     sync.Mutex
	topics map[fragment.Ref]*fragment.Topic    // by any subject identifier; nil: no such topic
	lists  map[playing][]*fragment.Association // all of one
	large  map[string]*fragment.Association    // by row key: those stored with one of their players
	roles  int                                 // of large
}

// Cache returns records that are decoded once.
func Cache(s State) *Cached { return &Cached{State: s} }

// playing is a topic with the part that it takes in associations.
type playing struct {
	player fragment.Ref
	part   fragment.Part
}

// mostDecoded is the number of topics that are cached, and of lists with at most txn.FewRows associations.
const mostDecoded = 10_000

// Topic implements [fragment.Source].
func (s *Cached) Topic(si fragment.Ref) (*fragment.Topic, error) {
	s.mu.Lock()
	t, known := s.topics[si]
	s.mu.Unlock()
	if known {
		return t, nil
	}
	t, err := s.State.topicAt(si)
	if t == nil && err == nil {
		t, err = s.via(keys.TableIdentifier, si)
	}
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.makeRoom()
		s.topics[si] = t
	}
	return t, err
}

// TopicBySubjectLocator implements [fragment.Source].
func (s *Cached) TopicBySubjectLocator(sl tmdm.Locator) (*fragment.Topic, error) {
	return s.via(keys.TableLocator, sl)
}

// via finds a topic by one of its further identifiers. There may be thousands, and it
// is not decoded again for each.
func (s *Cached) via(table byte, l tmdm.Locator) (*fragment.Topic, error) {
	ref, err := s.tx.Get(s.id.LocatorKey(table, l))
	if ref == nil || err != nil {
		return nil, err
	}
	return s.Topic(fragment.Ref(ref))
}

// AssociationsOf implements [fragment.Source].
func (s *Cached) AssociationsOf(player fragment.Ref, part fragment.Part) iter.Seq2[*fragment.Association, error] {
	return func(yield func(*fragment.Association, error) bool) {
		s.mu.Lock()
		known := s.lists[playing{player, part}]
		s.mu.Unlock()
		if known != nil {
			seq.Of(known...)(yield)
			return
		}
		few, read := true, []*fragment.Association{}
		for r, err := range s.tx.Scan(s.id.PlayingPrefix(player, part), nil) {
			var a *fragment.Association
			if err == nil {
				a, err = s.decoded(r, part)
			}
			if !yield(a, err) || err != nil {
				return
			}
			if few = few && len(read) < txn.FewRows; few {
				read = append(read, a)
			}
		}
		if few {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.makeRoom()
			s.lists[playing{player, part}] = read
		}
	}
}

// decoded is State.association for associations with other players, which may be requested later.
func (s *Cached) decoded(r row, part fragment.Part) (*fragment.Association, error) {
	if !elsewhere(r) {
		return s.association(r, part)
	}
	recordKey := string(s.recordKey(r, part))
	s.mu.Lock()
	a := s.large[recordKey]
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
		s.large[recordKey] = a
	}
	return a, err
}

// mostRoles is the maximum number of roles of the associations that are cached for their other players.
const mostRoles = 200_000

func (s *Cached) makeRoom() {
	full := len(s.topics)+len(s.lists) >= mostDecoded
	if s.topics == nil || full {
		s.topics = map[fragment.Ref]*fragment.Topic{}
	}
	if s.lists == nil || full {
		s.lists = map[playing][]*fragment.Association{}
	}
}

// A change of a topic does not affect cached associations, and vice versa, because most changes are of topics alone.

// PutTopic implements [merge.State].
func (s *Cached) PutTopic(t *fragment.Topic) error {
	s.topics = nil
	return s.State.PutTopic(t)
}

// DeleteTopic implements [merge.State].
func (s *Cached) DeleteTopic(t *fragment.Topic) error {
	s.topics = nil
	return s.State.DeleteTopic(t)
}

// PutAssociation implements [merge.State].
func (s *Cached) PutAssociation(a *fragment.Association) error {
	s.lists, s.large = nil, nil
	return s.State.PutAssociation(a)
}

// DeleteAssociation implements [merge.State].
func (s *Cached) DeleteAssociation(a *fragment.Association) error {
	s.lists, s.large = nil, nil
	return s.State.DeleteAssociation(a)
}
