package records

import (
	"bytes"
	"errors"
	"fmt"
	"iter"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// derivedTables are the tables of which each row follows from the topics of a source and the
// rows of associations with their first players, in the order of their letters.
var derivedTables = []byte{keys.TableAssociation, keys.TableIdentifier, keys.TableLocator, keys.TableMentions, keys.TableDigest, keys.TableReified}

// Expected are the rows of a source that must be there besides its records, as these are.
type Expected struct {
	Topics int // how many there are
	rows   *derived
}

// Expect finds out which rows follow from the records of a source. What is much goes to a file,
// of which memory is as in [Loader]. unreadable is told of each record that cannot be read.
func Expect(t *txn.Tx, id keys.Source, file string, memory int, unreadable func(what string)) (*Expected, error) {
	e := &Expected{rows: newDerived(id, file, memory)}
	if err := e.expect(t, unreadable); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// Close gives up what is kept.
func (e *Expected) Close() error { return e.rows.close() }

func (e *Expected) expect(t *txn.Tx, unreadable func(what string)) error {
	l := e.rows
	put := func(key, value []byte) error {
		if key[0] == keys.TableTopic {
			return nil
		}
		if value == nil {
			value = []byte{}
		}
		return l.sorter.Add(key, value)
	}
	prefix := l.id.Key(keys.TableTopic)
	for r, err := range t.ScanInPlace(prefix, nil) {
		if err == nil {
			err = t.Context().Err()
		}
		if err != nil {
			return err
		}
		topic, err := fragment.UnmarshalTopic(r.Value)
		if err != nil || string(topic.TopicSI()) != string(r.Key[len(prefix):]) {
			unreadable(fmt.Sprintf("the record of the topic %.80q cannot be read", r.Key[len(prefix):]))
			continue
		}
		e.Topics++
		if err := errors.Join(topicRows(l.id, topic, put), l.topic(topic)); err != nil {
			return err
		}
	}
	prefix = l.id.Key(keys.TableAssociation)
	for r, err := range t.ScanInPlace(prefix, nil) {
		if err == nil {
			err = t.Context().Err()
		}
		if err != nil {
			return err
		}
		record, inline := bytes.CutPrefix(r.Value, []byte{rowInline})
		player, _, _, ok := splitPlaying(r.Key[len(prefix):])
		if !inline || !ok {
			continue // the record is elsewhere
		}
		a, err := unmarshalAssociation(r.Key, record)
		if err != nil {
			unreadable(fmt.Sprintf("the record of an association of %.80q cannot be read", player))
			continue
		}
		first := a.Players()[0]
		if string(player) != string(first) { // it follows from the row of the first player, if that is there
			there, err := t.Get(l.id.AssociationKey(first, a.Part(first), a.Key()))
			if err != nil {
				return err
			}
			if there != nil {
				continue
			}
		}
		if err := errors.Join(associationRows(l.id, a, put), l.association(a)); err != nil {
			return err
		}
	}
	return l.finish()
}

// Differences calls f with each row that is not as expected: want is nil where there should be
// none, have where there is none.
func (e *Expected) Differences(t *txn.Tx, f func(key, want, have []byte)) error {
	want, stopWant := iter.Pull2(e.rows.combined())
	defer stopWant()
	have, stopHave := iter.Pull2(derivedRows(t, e.rows.id))
	defer stopHave()
	w, err, moreWanted := want()
	h, failed, moreThere := have()
	for moreWanted || moreThere {
		if err := errors.Join(err, failed); err != nil {
			return err
		}
		order := bytes.Compare(w.Key, h.Key)
		switch {
		case !moreThere:
			order = -1
		case !moreWanted:
			order = 1
		}
		switch {
		case order < 0:
			f(w.Key, w.Value, nil)
		case order > 0:
			f(h.Key, nil, h.Value)
		case !bytes.Equal(w.Value, h.Value):
			f(w.Key, w.Value, h.Value)
		}
		if order <= 0 {
			w, err, moreWanted = want()
		}
		if order >= 0 {
			h, failed, moreThere = have()
		}
	}
	return errors.Join(err, failed)
}

// derivedRows iterates over the rows of a source that follow from its records.
func derivedRows(t *txn.Tx, id keys.Source) iter.Seq2[row, error] {
	return func(yield func(row, error) bool) {
		for _, table := range derivedTables {
			for r, err := range t.Scan(id.Key(table), nil) {
				if !yield(r, err) || err != nil {
					return
				}
			}
		}
	}
}
