package records

import (
	"bytes"
	"errors"
	"fmt"
	"iter"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/seq"
	"github.com/tmshare/tmshare/internal/statedigest"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/tmdm"
)

// State reads and writes the records of one generation of one source. It
// implements merge.State; over a read-only tx, writes fail.
type State struct {
	tx    *txn.Tx
	id    keys.Source
	along func(fragment.Ref) []byte // see Along; may be nil
}

type row = kv.Row

// In returns the records of a generation of a source.
func In(t *txn.Tx, id keys.Source) State { return State{tx: t, id: id} }

// InlinePlayers is the largest number of players of an association that is
// stored with each of them. Those of larger ones are stored once, with the
// least player, and the other rows name that player.
const InlinePlayers = 4

// The first byte of an association row.
const (
	rowInline    = 0 // the record follows
	rowElsewhere = 1 // the player with which the record is stored follows
)

// Tx returns the transaction of the records.
func (s State) Tx() *txn.Tx { return s.tx }

// ID returns the generation of the records.
func (s State) ID() keys.Source { return s.id }

// Topic implements [fragment.Source].
func (s State) Topic(si fragment.Ref) (*fragment.Topic, error) {
	t, err := s.topicAt(si)
	if t != nil || err != nil {
		return t, err
	}
	return s.topicVia(keys.TableIdentifier, si)
}

// TopicBySubjectLocator implements [fragment.Source].
func (s State) TopicBySubjectLocator(sl tmdm.Locator) (*fragment.Topic, error) {
	return s.topicVia(keys.TableLocator, sl)
}

func (s State) topicVia(table byte, l tmdm.Locator) (*fragment.Topic, error) {
	ref, err := s.tx.Get(s.id.LocatorKey(table, l))
	if ref == nil || err != nil {
		return nil, err
	}
	return s.topicAt(fragment.Ref(ref))
}

func (s State) topicAt(ref fragment.Ref) (*fragment.Topic, error) {
	b, err := s.tx.Get(s.id.LocatorKey(keys.TableTopic, ref))
	if b == nil || err != nil {
		return nil, err
	}
	t, err := fragment.UnmarshalTopic(b)
	if err != nil {
		return nil, fmt.Errorf("topic %s: %w", ref, err)
	}
	return t, nil
}

// Topics implements [fragment.Source].
func (s State) Topics() iter.Seq2[*fragment.Topic, error] { return s.topics(fragment.UnmarshalTopic) }

func (s State) topics(decode func(record []byte) (*fragment.Topic, error)) iter.Seq2[*fragment.Topic, error] {
	return seq.Map(s.tx.ScanInPlace(s.id.Key(keys.TableTopic), nil),
		func(r row) (*fragment.Topic, error) { return decode(r.Value) })
}

// AssociationsOf implements [fragment.Source].
func (s State) AssociationsOf(player fragment.Ref, part fragment.Part) iter.Seq2[*fragment.Association, error] {
	return s.AssociationsAfter(player, part, nil)
}

// PlayedBy implements [fragment.Players], and [merge.Directory]: it looks for rows once.
func (s State) PlayedBy(player fragment.Ref) iter.Seq2[*fragment.Association, error] {
	first := s.id.PlayingPrefix(player, fragment.AsInstance)
	at := len(first) - 1
	return seq.Map(s.tx.Scan(first[:at], nil), func(r row) (*fragment.Association, error) {
		part := fragment.Part(r.Key[at])
		if part == fragment.AsType { // the last ones
			return nil, seq.ErrStop
		}
		return s.association(r, part)
	})
}

// Associations implements [fragment.Source].
func (s State) Associations() iter.Seq2[*fragment.Association, error] {
	return s.associations(fragment.UnmarshalAssociation)
}

// associations decodes those of some types alone, where any are given.
func (s State) associations(decode decoding, types ...fragment.Ref) iter.Seq2[*fragment.Association, error] {
	prefix := s.id.Key(keys.TableAssociation)
	return seq.Map(s.tx.ScanInPlace(prefix, nil), func(r row) (*fragment.Association, error) {
		if !isLeast(r, prefix) { // it comes with its least player
			return nil, seq.ErrSkip
		}
		record, err := s.stored(r, fragment.AsPlayer)
		if err == nil && len(types) > 0 && !isOneOf(types, record) {
			err = seq.ErrSkip
		}
		if err != nil {
			return nil, err
		}
		return decode.decode(r.Key, record)
	})
}

// association reads the record of a row.
func (s State) association(r row, part fragment.Part) (*fragment.Association, error) {
	record, err := s.stored(r, part)
	if err != nil {
		return nil, err
	}
	return unmarshalAssociation(r.Key, record)
}

// decoding decodes the record of an association.
type decoding func(record []byte) (*fragment.Association, error)

// decode decodes the record of the row with a key.
func (d decoding) decode(key, record []byte) (*fragment.Association, error) {
	a, err := d(record)
	if err != nil {
		return nil, txn.Corrupt("association", key, err)
	}
	return a, nil
}

func unmarshalAssociation(key, record []byte) (*fragment.Association, error) {
	return decoding(fragment.UnmarshalAssociation).decode(key, record)
}

// changing adds or removes the rows derived from a record.
type changing struct {
	State
	count *counting
	step  int // 1: add, -1: remove
}

func (s State) changing(step int) changing { return changing{s, s.counting(), step} }

func (c changing) row(key, value []byte) error {
	if c.step < 0 {
		return c.tx.Delete(key)
	}
	return c.tx.Put(key, value)
}

func (c changing) mention(ref fragment.Ref) { c.count.add(ref, c.step) }

func (c changing) index(t *fragment.Topic) (err error) {
	for _, index := range c.tx.Indexes {
		err = errors.Join(err, index.Change(c.tx, c.id, t, c.step))
	}
	return err
}

func (c changing) item(e statedigest.Entry) error {
	c.digest().change(e, c.step)
	c.count.changed = true
	return c.count.bound()
}

// topic adds or removes all rows derived from a topic. record is its stored form.
func (c changing) topic(t *fragment.Topic, record []byte) error {
	c.digest().topics += c.step
	return topicFollows(c.id, t, record, c)
}

// PutTopic implements [merge.State]. It writes the differences from the existing record.
func (s State) PutTopic(t *fragment.Topic) error {
	record := fragment.MarshalTopic(t)
	if same, err := s.topicGoes(t.TopicSI(), record); same || err != nil {
		return err
	}
	return s.changing(1).topic(t, record)
}

// DeleteTopic implements [merge.State].
func (s State) DeleteTopic(t *fragment.Topic) error {
	_, err := s.topicGoes(t.TopicSI(), nil)
	return err
}

// topicGoes removes a topic, unless its record equals the new one.
func (s State) topicGoes(ref fragment.Ref, comes []byte) (same bool, err error) {
	before, err := s.tx.Get(s.id.LocatorKey(keys.TableTopic, ref))
	if same = before != nil && bytes.Equal(before, comes); same || before == nil || err != nil {
		return same, err
	}
	old, err := fragment.UnmarshalTopic(before)
	if err != nil {
		return false, fmt.Errorf("topic %s: %w", ref, err)
	}
	return false, s.changing(-1).topic(old, before)
}

// PutAssociation implements [merge.State]. It writes the differences from the existing record.
func (s State) PutAssociation(a *fragment.Association) error {
	record := fragment.MarshalAssociation(a)
	if same, err := s.associationGoes(a, record); same || err != nil {
		return err
	}
	return associationFollows(s.id, a, record, s.changing(1))
}

// DeleteAssociation implements [merge.State].
func (s State) DeleteAssociation(a *fragment.Association) error {
	_, err := s.associationGoes(a, nil)
	return err
}

// associationGoes is topicGoes for the association with the key of a.
func (s State) associationGoes(a *fragment.Association, comes []byte) (same bool, err error) {
	key, before, err := s.like(a)
	if same = before != nil && bytes.Equal(before, comes); same || before == nil || err != nil {
		return same, err
	}
	old, err := unmarshalAssociation(key, before)
	if err != nil {
		return false, err
	}
	return false, associationFollows(s.id, old, before, s.changing(-1))
}

// like returns the stored record of the association with the key of a, and the key of its row; nil if there is none.
func (s State) like(a *fragment.Association) (key, record []byte, err error) {
	for _, part := range partsOf(a) {
		key := s.likeKey(a, part)
		value, err := s.tx.Get(key)
		if err != nil {
			return nil, nil, err
		}
		if value != nil {
			record, err := s.stored(row{Key: key, Value: value}, part)
			return key, record, err
		}
	}
	return nil, nil, nil
}

// partsOf returns the parts in which the first player of the stored association with the key of a may take part in it.
func partsOf(a *fragment.Association) []fragment.Part {
	switch {
	case len(a.Roles) == 0:
		return nil
	case a.Type == tmdm.PSITypeInstance: // a reifier, which is not part of the key, decides about the part
		return fragment.Parts[:]
	}
	return []fragment.Part{fragment.AsPlayer}
}

// likeKey returns the key of the row of the association with the key of a, if its first player takes that part.
func (s State) likeKey(a *fragment.Association, part fragment.Part) []byte {
	return s.id.AssociationKey(a.Players()[0], part, a.Key())
}

// Stored returns the association with the key of a, nil if there is none.
func (s State) Stored(a *fragment.Association) (*fragment.Association, error) {
	key, record, err := s.like(a)
	if record == nil || err != nil {
		return nil, err
	}
	return unmarshalAssociation(key, record)
}

// HasAssociation reports whether there is an association with the key of a.
func (s State) HasAssociation(a *fragment.Association) (bool, error) {
	_, record, err := s.like(a)
	return record != nil, err
}

// Has implements [merge.Directory].
func (s State) Has(si fragment.Ref) (bool, error) {
	for _, table := range []byte{keys.TableTopic, keys.TableIdentifier} {
		row, err := s.tx.Get(s.id.LocatorKey(table, si))
		if row != nil || err != nil {
			return row != nil, err
		}
	}
	return false, nil
}
