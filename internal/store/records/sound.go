package records

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/maphash"
	"iter"
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
	other.collector = words.Collector{ID: id, Add: other.put, Each: true}
	var ok bool
	var err error
	var done sync.WaitGroup
	done.Go(func() { ok, err = one.all(one.associations) })
	also, failed := other.all(other.topics, other.indexes, other.words, other.counts, other.tree)
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

	collector words.Collector
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

// mention returns an odd number for a reference: however often it is counted too much, the sum is another one.
func (s *sums) mention(ref string) uint64 { return maphash.String(s.seed, ref) | 1 }

func (s *sums) item(e *statedigest.Entry) uint64 {
	var h maphash.Hash
	h.SetSeed(s.seed)
	h.Write(e.Item[:])
	h.WriteString(e.Owner)
	return h.Sum64()
}

func (s *sums) put(key, value []byte) error {
	if keys.Table(key) != keys.TableTopic {
		s.want.rows += s.hash(key, value)
	}
	return nil
}

func (s *sums) mentioned(ref fragment.Ref) { s.want.mentions += s.mention(string(ref)) }

// rows iterates over the rows of a table.
func (s *sums) rows(table byte) iter.Seq2[row, error] {
	return func(yield func(row, error) bool) {
		for r, err := range s.tx.ScanInPlace(s.id.Key(table), nil) {
			if err == nil {
				err = s.tx.Context().Err()
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

func (s *sums) topics() (bool, error) {
	for r, err := range s.rows(keys.TableTopic) {
		if err != nil {
			return false, err
		}
		topic := readTopic(r.Key[keys.SourceSize:], r.Value)
		if topic == nil {
			return false, nil
		}
		if err := topicRowsOf(s.id, topic, r.Value, s.put); err != nil {
			return false, err
		}
		if err := s.collector.Topic(topic); err != nil {
			return false, err
		}
		topic.Mentions(s.mentioned)
		e := topicEntry(topic.TopicSI(), r.Value)
		s.want.items += s.item(&e)
	}
	return true, nil
}

func (s *sums) associations() (bool, error) {
	for r, err := range s.rows(keys.TableAssociation) {
		if err != nil {
			return false, err
		}
		s.have.rows += s.hash(r.Key, r.Value)
		player, _, _, ok := splitPlaying(r.Key[keys.SourceSize:])
		if !ok {
			return false, nil
		}
		if elsewhere(r) {
			continue // it follows from the row with the record
		}
		a, record := decodeAssociation(r)
		if a == nil {
			return false, nil
		}
		if !isFirst(a, player) {
			continue // likewise
		}
		if !bytes.Equal(fragment.MarshalAssociation(a), record) {
			return false, nil
		}
		if err := associationRowsOf(s.id, a, record, s.put); err != nil {
			return false, err
		}
		a.Mentions(s.mentioned)
		e := associationEntry(a, record)
		s.want.items += s.item(&e)
	}
	return true, nil
}

// isFirst reports whether no player of an association comes before one.
func isFirst(a *fragment.Association, player []byte) bool {
	for i := range a.Roles {
		if string(a.Roles[i].Player) < string(player) {
			return false
		}
	}
	return true
}

func (s *sums) indexes() (bool, error) {
	for _, table := range []byte{keys.TableIdentifier, keys.TableLocator, keys.TableReified} {
		for r, err := range s.rows(table) {
			if err != nil {
				return false, err
			}
			s.have.rows += s.hash(r.Key, r.Value)
		}
	}
	return true, nil
}

// words adds up the entries of the index. Rows that are not as they were written are under keys that no entry has.
func (s *sums) words() (bool, error) {
	for r, err := range words.Stored(s.tx, s.id) {
		if err != nil {
			return false, err
		}
		s.have.rows += s.hash(r.Key, r.Value)
	}
	return true, nil
}

func (s *sums) counts() (bool, error) {
	for r, err := range s.rows(keys.TableMentions) {
		if err != nil {
			return false, err
		}
		if len(r.Value) != 8 || binary.BigEndian.Uint64(r.Value) == 0 {
			return false, nil
		}
		s.have.mentions += binary.BigEndian.Uint64(r.Value) * s.mention(string(r.Key[keys.SourceSize:]))
	}
	return true, nil
}

func (s *sums) tree() (bool, error) {
	return statedigest.Sound(func(yield func(statedigest.Row, error) bool) {
		for r, err := range s.rows(keys.TableDigest) {
			var row statedigest.Row
			if err == nil {
				row = statedigest.Row{Path: r.Key[keys.SourceSize:], Row: r.Value}
			}
			if !yield(row, err) || err != nil {
				return
			}
		}
	}, func(e *statedigest.Entry) { s.have.items += s.item(e) })
}
