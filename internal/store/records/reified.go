package records

import (
	"iter"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// reifiedRecords iterates over the rows of one table in which something is
// reified.
func (s State) reifiedRecords(table byte) iter.Seq2[row, error] {
	return func(yield func(row, error) bool) {
		prefix := append(s.id.Key(keys.TableReified), table)
		for r, err := range s.tx.Scan(prefix, nil) {
			var record row
			if err == nil {
				record.Key = append(s.id.Key(table), r.Key[len(prefix):]...)
				record.Value, err = s.tx.Get(record.Key)
			}
			if err == nil && record.Value == nil {
				err = txn.Corrupt("reified", r.Key, fragment.ErrCorrupt)
			}
			if !yield(record, err) || err != nil {
				return
			}
		}
	}
}

// ReifiedTopics implements [merge.Reified].
func (s State) ReifiedTopics() iter.Seq2[*fragment.Topic, error] {
	return func(yield func(*fragment.Topic, error) bool) {
		for r, err := range s.reifiedRecords(keys.TableTopic) {
			var t *fragment.Topic
			if err == nil {
				t, err = fragment.UnmarshalTopic(r.Value)
			}
			if !yield(t, err) || err != nil {
				return
			}
		}
	}
}

// ReifiedAssociations implements [merge.Reified].
func (s State) ReifiedAssociations() iter.Seq2[*fragment.Association, error] {
	return func(yield func(*fragment.Association, error) bool) {
		for r, err := range s.reifiedRecords(keys.TableAssociation) {
			var a *fragment.Association
			if err == nil {
				a, err = s.association(r, fragment.AsPlayer)
			}
			if !yield(a, err) || err != nil {
				return
			}
		}
	}
}

// MigrateReified calls put with the rows of the table of what is reified, which format 1
// did not have. To do it again does no harm.
func MigrateReified(t *txn.Tx, put func(key, value []byte) error) error {
	note := func(key []byte, reified bool) error {
		if !reified {
			return nil
		}
		return put(keys.SourceOf(key).ReifiedKey(key), nil)
	}
	for r, err := range t.Scan([]byte{keys.TableTopic}, nil) {
		if err != nil {
			return err
		}
		topic, err := fragment.UnmarshalTopic(r.Value)
		if err == nil {
			err = note(r.Key, topic.HasReifiers())
		}
		if err != nil {
			return txn.Corrupt("topic", r.Key, err)
		}
	}
	for r, err := range t.Scan([]byte{keys.TableAssociation}, nil) {
		if err != nil {
			return err
		}
		if len(r.Value) > 0 && r.Value[0] == rowElsewhere {
			continue
		}
		a, err := Of(t, keys.SourceOf(r.Key)).association(r, fragment.AsPlayer)
		if err != nil {
			return err
		}
		least := keys.SourceOf(r.Key).AssociationKey(a.Players()[0], a.Part(a.Players()[0]), a.Key())
		if err := note(least, a.HasReifiers()); err != nil {
			return err
		}
	}
	return nil
}
