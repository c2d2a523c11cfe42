package records

import (
	"encoding/binary"
	"errors"
	"hash/maphash"
	"sync"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/statedigest"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/internal/store/words"
)

// Sound reports whether the rows of a source are as they must be: [Expect] would find nothing. It adds up hashes of the rows that follow from the
// records, and of those that are there, in whatever order they come: nothing is sorted, nothing kept. The hashes are
// keyed at random and have 64 bits, so that damage does not go unnoticed. It reads on two goroutines, so t must be a view.
func Sound(t *txn.Tx, id keys.Source) (bool, error) {
	seed := maphash.MakeSeed()
	one, other := &sums{tx: t, id: id, seed: seed}, &sums{tx: t, id: id, seed: seed}
	other.entries = words.Collector{ID: id, Add: other.row, Each: true}
	var ok bool
	var err error
	var done sync.WaitGroup
	done.Go(func() { ok, err = one.all(one.associations) })
	also, failed := other.all(other.topics, other.others, other.tree)
	done.Wait()
	one.want.add(other.want)
	one.have.add(other.have)
	return ok && also && one.want == one.have, errors.Join(err, failed)
}

// all reports whether all looks find only what can be read.
func (s *sums) all(looks ...func() (bool, error)) (bool, error) {
	for _, look := range looks {
		if ok, err := look(); !ok || err != nil {
			return false, err
		}
	}
	return true, nil
}

// sum is a sum of hashes of rows, of mentions and of items.
type sum struct{ rows, mentions, items uint64 }

func (s *sum) add(other sum) {
	s.rows += other.rows
	s.mentions += other.mentions
	s.items += other.items
}

type sums struct {
	tx   *txn.Tx
	id   keys.Source
	seed maphash.Seed

	want, have sum

	entries words.Collector
}

// hash returns a number for two byte strings.
func (s *sums) hash(a, b []byte) uint64 {
	var h maphash.Hash
	h.SetSeed(s.seed)
	var length [8]byte
	binary.LittleEndian.PutUint64(length[:], uint64(len(a)))
	h.Write(length[:])
	h.Write(a)
	h.Write(b)
	return h.Sum64()
}

// reference returns an odd number for a reference: however often it is counted too much, the sum is another one.
func (s *sums) reference(ref string) uint64 { return maphash.String(s.seed, ref) | 1 }

func (s *sums) row(key, value []byte) error {
	if keys.Table(key) != keys.TableTopic {
		s.want.rows += s.hash(key, value)
	}
	return nil
}

func (s *sums) mention(ref fragment.Ref) { s.want.mentions += s.reference(string(ref)) }

func (s *sums) words(t *fragment.Topic) error { return s.entries.Topic(t) }

func (s *sums) item(e statedigest.Entry) error {
	s.want.items += s.hash(e.Item[:], []byte(e.Owner))
	return nil
}

func (s *sums) topics() (ok bool, err error) {
	ok = true
	err = eachTopic(s.tx, s.id, func([]byte) { ok = false }, func(topic *fragment.Topic, record []byte) error {
		if !ok {
			return errEnough
		}
		return topicFollows(s.id, topic, record, s)
	})
	return ok, ignoring(err)
}

// ignoring returns an error that is not [errEnough].
func ignoring(err error) error {
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// associations looks at all rows, and derives them from those with the least players.
func (s *sums) associations() (bool, error) {
	prefix := s.id.Key(keys.TableAssociation)
	for r, err := range rowsOf(s.tx, s.id, keys.TableAssociation) {
		if err != nil {
			return false, err
		}
		s.have.rows += s.hash(r.Key, r.Value)
		if !isLeast(r, prefix) {
			continue
		}
		a, record := readAssociation(r)
		if a == nil {
			return false, nil
		}
		if err := associationFollows(s.id, a, record, s); err != nil {
			return false, err
		}
	}
	return true, nil
}

// others adds up the rows of the other tables, and of the index of words its entries. Rows of that which are not as they were written are under
// keys that no entry has.
func (s *sums) others() (bool, error) {
	for r, err := range stored(s.tx, s.id, "Wilnr") {
		if err != nil {
			return false, err
		}
		if keys.Table(r.Key) != keys.TableMentions {
			s.have.rows += s.hash(r.Key, r.Value)
			continue
		}
		if len(r.Value) != 8 || binary.BigEndian.Uint64(r.Value) == 0 {
			return false, nil
		}
		s.have.mentions += binary.BigEndian.Uint64(r.Value) * s.reference(string(keys.Rest(r.Key)))
	}
	return true, nil
}

// tree makes the tree of the state digest again of its items.
func (s *sums) tree() (bool, error) {
	return statedigest.Again(func(yield func([]byte, error) bool) {
		for r, err := range rowsOf(s.tx, s.id, keys.TableDigest) {
			if err == nil {
				s.have.rows += s.hash(r.Key, r.Value)
			}
			if !yield(r.Value, err) || err != nil {
				return
			}
		}
	}, func(e *statedigest.Entry) { s.have.items += s.hash(e.Item[:], []byte(e.Owner)) }, func(path, row []byte) error {
		s.want.rows += s.hash(nodeKey(s.id, path), row)
		return nil
	})
}
