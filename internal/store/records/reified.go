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
		prefix := s.id.ReifiedIn(table)
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

// ReifiedBy iterates over the records in which a topic reifies something.
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
	if found, err = s.At(s.id.Record(named)); err == nil && found == (fragment.Record{}) {
		err = txn.Corrupt("reifier", key, fragment.ErrCorrupt)
	}
	return found, err
}

// At returns the record to which a row of the topics or the associations leads; none where there is no such row.
func (s State) At(key []byte) (found fragment.Record, err error) {
	value, err := s.tx.Get(key)
	switch {
	case value == nil || err != nil:
	case keys.Table(key) == keys.TableTopic:
		if found.Topic, err = fragment.UnmarshalTopic(value); err != nil {
			err = txn.Corrupt("topic", key, err)
		}
	default:
		_, part, _, ok := splitPlaying(key[keys.SourceSize:])
		if !ok {
			return found, txn.Corrupt("association", key, fragment.ErrCorrupt)
		}
		found.Association, err = s.association(row{Key: key, Value: value}, part)
	}
	return found, err
}

// Playing returns the player and the part in the key of a row of the associations. ok is false for other keys.
func Playing(key []byte) (player fragment.Ref, part fragment.Part, ok bool) {
	if len(key) < keys.SourceSize || keys.Table(key) != keys.TableAssociation {
		return "", 0, false
	}
	of, part, _, ok := splitPlaying(key[keys.SourceSize:])
	return fragment.Ref(of), part, ok
}

// TopicOf returns the TopicSI in the key of a row of the topics. ok is false for other keys.
func TopicOf(key []byte) (ref fragment.Ref, ok bool) {
	if len(key) < keys.SourceSize || keys.Table(key) != keys.TableTopic {
		return "", false
	}
	return fragment.Ref(key[keys.SourceSize:]), true
}

// RowOf returns the key of the row of an association with one of its players.
func (s State) RowOf(a *fragment.Association, player fragment.Ref) []byte {
	return s.id.AssociationKey(player, a.Part(player), a.Key())
}
