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

// ReifiedBy iterates over the records in which a topic reifies something. There are none where the rows for that are not made yet, see [HasRules].
func (s State) ReifiedBy(reifier fragment.Ref) iter.Seq2[fragment.Record, error] {
	return func(yield func(fragment.Record, error) bool) {
		for r, err := range s.tx.Scan(s.id.ReifiedByPrefix(reifier), nil) {
			var found fragment.Record
			if err == nil {
				found, err = s.reified(r.Key)
			}
			if !yield(found, err) || err != nil {
				return
			}
		}
	}
}

// reified reads the record that a row of [State.ReifiedBy] names.
func (s State) reified(key []byte) (found fragment.Record, err error) {
	named, _ := keys.IsReifier(key)
	if len(named) == 0 {
		return found, txn.Corrupt("reifier", key, fragment.ErrCorrupt)
	}
	record := row{Key: append(s.id.Key(named[0]), named[1:]...)}
	if record.Value, err = s.tx.Get(record.Key); err != nil {
		return found, err
	}
	switch {
	case record.Value == nil:
		err = txn.Corrupt("reifier", key, fragment.ErrCorrupt)
	case named[0] == keys.TableTopic:
		found.Topic, err = fragment.UnmarshalTopic(record.Value)
	default:
		found.Association, err = s.association(record, fragment.AsPlayer)
	}
	return found, err
}

// MigrateReified calls put with the rows of the table of what is reified, which format 1
// did not have. To do it again does no harm.
func MigrateReified(t *txn.Tx, put func(key, value []byte) error) error {
	note := func(key []byte, reifiers []fragment.Ref) error {
		return reifiedRows(keys.SourceOf(key), key, reifiers, put)
	}
	for r, err := range t.Scan([]byte{keys.TableTopic}, nil) {
		if err != nil {
			return err
		}
		topic, err := fragment.UnmarshalTopic(r.Value)
		if err == nil {
			err = note(r.Key, Reifiers(topic))
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
		if err := note(least, ReifiersOf(a)); err != nil {
			return err
		}
	}
	return nil
}

// migrateReifiers calls put with the rows which say what topics reify in a source. Before it, there are none: another program may have left some that
// are not true.
func (s State) migrateReifiers(put func(key, value []byte) error) error {
	for t, err := range s.ReifiedTopics() {
		if err == nil {
			err = reifiedRows(s.id, s.id.LocatorKey(keys.TableTopic, t.TopicSI()), Reifiers(t), put)
		}
		if err != nil {
			return err
		}
	}
	for a, err := range s.ReifiedAssociations() {
		if err != nil {
			return err
		}
		first := a.Players()[0]
		if err := reifiedRows(s.id, s.id.AssociationKey(first, a.Part(first), a.Key()), ReifiersOf(a), put); err != nil {
			return err
		}
	}
	return nil
}
