package records

import (
	"iter"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/seq"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// reifiedIn iterates over the parts of the records of one table with reified items.
func reifiedIn[T any](s State, table byte, part func(fragment.Record) T) iter.Seq2[T, error] {
	all := s.named(s.id.ReifiedIn(table), func(key []byte) []byte { return key[keys.SourceSize:] })
	return seq.Map(all, func(r fragment.Record) (T, error) { return part(r), nil })
}

// ReifiedTopics implements [merge.Reified].
func (s State) ReifiedTopics() iter.Seq2[*fragment.Topic, error] {
	return reifiedIn(s, keys.TableTopic, func(r fragment.Record) *fragment.Topic { return r.Topic })
}

// ReifiedAssociations implements [merge.Reified].
func (s State) ReifiedAssociations() iter.Seq2[*fragment.Association, error] {
	return reifiedIn(s, keys.TableAssociation, func(r fragment.Record) *fragment.Association { return r.Association })
}

// ReifiedBy iterates over the records in which a topic reifies something.
func (s State) ReifiedBy(reifier fragment.Ref) iter.Seq2[fragment.Record, error] {
	return s.named(s.id.ReifiedByPrefix(reifier), func(key []byte) []byte {
		record, _ := keys.IsReifier(key)
		return record
	})
}

// named iterates over the records that rows name, in their keys: name returns the table and the rest of the key of the
// record.
func (s State) named(prefix []byte, name func(key []byte) []byte) iter.Seq2[fragment.Record, error] {
	return seq.Map(s.tx.Scan(prefix, nil), func(r row) (found fragment.Record, err error) {
		if record := name(r.Key); len(record) > 0 {
			found, err = s.RecordAt(s.id.Record(record))
		}
		if err == nil && found == (fragment.Record{}) {
			err = txn.Corrupt("reified", r.Key, fragment.ErrCorrupt)
		}
		return found, err
	})
}

// RecordAt returns the record of a row of the topics or the associations; none if there is no such row.
func (s State) RecordAt(key []byte) (found fragment.Record, err error) {
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
	holder, part, _, ok := splitPlaying(key[keys.SourceSize:])
	return fragment.Ref(holder), part, ok
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
