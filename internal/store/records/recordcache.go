package records

import (
	"errors"
	"iter"
	"sync"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/tmdm"
)

// Cached are the records of a collection that is published to. Fragments
// mention the same few classes and types again and again, and each is rendered in
// every form, so what is read is decoded once. It is safe for concurrent use as
// long as nothing is written.
type Cached struct {
	State

	// Along returns the key of another row that is read with each topic, where each question to the engine takes its time; nil: there is none.
	Along func(fragment.Ref) []byte

	mu     sync.Mutex
	topics map[fragment.Ref]*fragment.Topic // by any subject identifier; nil: there is none
	lists  map[playing]*decodedList
	large  map[string]*fragment.Association // by the keys of their rows: those that stand with one of their players
	roles  int                              // of large
	sizes  map[string]bool                  // likewise: whether they are too large for fragments that are stored
}

// Cache returns the records of a generation of a source, which are decoded once.
func Cache(t *txn.Tx, id keys.Source) *Cached { return &Cached{State: Of(t, id)} }

// Expect implements [fragment.Expecting].
func (s *Cached) Expect(sis []fragment.Ref, sls []tmdm.Locator) error {
	if !s.tx.Distant() || s.Along == nil {
		return s.State.Expect(sis, sls)
	}
	others := make([][]byte, len(sis))
	for i, si := range sis {
		others[i] = s.Along(si)
	}
	return s.ExpectTopics(sis, sls, others...)
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
	return s.associationsOf(player, part, false)
}

// ErrNotStorable says that a fragment is too large to be stored.
var ErrNotStorable = errors.New("fragment too large to store")

// maxStoredAssociation is the length in bytes of the longest record of an association
// in a fragment that is stored. All players of an association have it in their
// fragments: to render one for each of thousands would take quadratic time and space.
const maxStoredAssociation = 4 << 10

// Storable returns a source of fragments to store: at an association that is too large for
// these it ends with [ErrNotStorable], without having read it.
func (s *Cached) Storable() fragment.Source { return storable{s, s} }

// storable is nothing but a source: what else records can give is not checked for large associations.
type storable struct {
	fragment.Source
	of *Cached
}

func (s storable) AssociationsOf(player fragment.Ref, part fragment.Part) iter.Seq2[*fragment.Association, error] {
	return s.of.associationsOf(player, part, true)
}

func (s *Cached) associationsOf(player fragment.Ref, part fragment.Part, storable bool) iter.Seq2[*fragment.Association, error] {
	return func(yield func(*fragment.Association, error) bool) {
		s.mu.Lock()
		known := s.lists[playing{player, part}]
		s.mu.Unlock()
		if known != nil {
			if storable && known.large {
				yield(nil, ErrNotStorable)
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
		for r, err := range s.tx.Scan(s.id.PlayingPrefix(player, part), nil) {
			var a *fragment.Association
			var large bool
			if err == nil {
				large, err = s.isLarge(r, part)
			}
			if err == nil && large && storable {
				err = ErrNotStorable
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
func (s *Cached) isLarge(r row, part fragment.Part) (bool, error) {
	if !elsewhere(r) {
		return len(r.Value) > maxStoredAssociation, nil
	}
	recordKey := s.recordKey(r, part)
	s.mu.Lock()
	large, known := s.sizes[string(recordKey)]
	s.mu.Unlock()
	if known {
		return large, nil
	}
	value, err := s.tx.Get(recordKey)
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sizes == nil || len(s.sizes) >= mostDecoded {
		s.sizes = map[string]bool{}
	}
	s.sizes[string(recordKey)] = len(value) > maxStoredAssociation
	return len(value) > maxStoredAssociation, nil
}

// decoded is State.association for associations that have other players, too, who
// may be asked for.
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

// mostRoles is how many roles the associations have at most that are kept for their
// other players.
const mostRoles = 200_000

func (s *Cached) makeRoom() {
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
	s.lists, s.large, s.sizes = nil, nil, nil
	return s.State.PutAssociation(a)
}

// DeleteAssociation implements [merge.State].
func (s *Cached) DeleteAssociation(a *fragment.Association) error {
	s.lists, s.large, s.sizes = nil, nil, nil
	return s.State.DeleteAssociation(a)
}
