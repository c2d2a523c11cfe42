package store

import (
	"context"
	"iter"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// reifiedKey returns the key of the row which says that something is reified in
// the record with a key: that of a topic, or of an association with the least of
// its players.
func (s sourceID) reifiedKey(record []byte) []byte {
	k := append(s.key(tableReified), record[0])
	return append(k, record[len(s.key(tableReified)):]...)
}

// reifiedRecords iterates over the rows of one table in which something is
// reified.
func (s records) reifiedRecords(table byte) iter.Seq2[row, error] {
	return func(yield func(row, error) bool) {
		prefix := append(s.id.key(tableReified), table)
		for r, err := range s.tx.Scan(prefix, nil) {
			var record row
			if err == nil {
				record.Key = append(s.id.key(table), r.Key[len(prefix):]...)
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
func (s records) ReifiedTopics() iter.Seq2[*fragment.Topic, error] {
	return func(yield func(*fragment.Topic, error) bool) {
		for r, err := range s.reifiedRecords(tableTopic) {
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
func (s records) ReifiedAssociations() iter.Seq2[*fragment.Association, error] {
	return func(yield func(*fragment.Association, error) bool) {
		for r, err := range s.reifiedRecords(tableAssociation) {
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

// migrateReified makes the rows of the table of what is reified, which format 1
// did not have. To do it again does no harm.
func (db *DB) migrateReified(ctx context.Context) error {
	db.log.Info("bringing the data to format 2")
	bulk, err := db.rows.Engine.Bulk(ctx)
	if err != nil {
		return err
	}
	defer bulk.Cancel()
	note := func(key []byte, reified bool) error {
		if !reified {
			return nil
		}
		return bulk.Put(idOf(key).reifiedKey(key), nil)
	}
	err = db.rows.View(ctx, func(t *txn.Tx) error {
		for r, err := range t.Scan([]byte{tableTopic}, nil) {
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
		for r, err := range t.Scan([]byte{tableAssociation}, nil) {
			if err != nil {
				return err
			}
			if len(r.Value) > 0 && r.Value[0] == rowElsewhere {
				continue
			}
			a, err := records{t, idOf(r.Key)}.association(r, fragment.AsPlayer)
			if err != nil {
				return err
			}
			least := idOf(r.Key).associationKey(a.Players()[0], a.Part(a.Players()[0]), a.Key())
			if err := note(least, a.HasReifiers()); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return bulk.Commit()
}
