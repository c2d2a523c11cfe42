package records

import (
	"bytes"
	"errors"
	"iter"
	"slices"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/seq"
	"github.com/tmshare/tmshare/internal/store/agree"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// derivedTables are the tables whose rows are derived from the topics of a source and from the rows of associations
// with their first players, sorted by letter. Indexes precede them.
const derivedTables = "ailnpr"

// Expected are the derived rows that a source must have besides its records.
type Expected struct {
	Topics int // number of topics
	rows   *derived
}

// Expect derives rows from the records of a source. Many rows go to a file; memory is as in [Loader]. It calls damaged
// with the keys of unreadable records of topics, and derives nothing from these, nor from an association without a
// readable row; see [Difference.Lost].
func Expect(t *txn.Tx, id keys.Source, file string, memory int, damaged func(key []byte)) (*Expected, error) {
	e := &Expected{rows: newDerived(id, file, memory, t.Indexes, true)}
	e.rows.topicRow = func(_, _ []byte) error { e.Topics++; return nil }
	if err := errors.Join(e.topics(t, damaged), e.associations(t), e.rows.finish()); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// Close removes the rows.
func (e *Expected) Close() error { return e.rows.close() }

func (e *Expected) topics(t *txn.Tx, damaged func(key []byte)) error {
	for r, err := range rowsOf(t, e.rows.id, keys.TableTopic) {
		if err == nil {
			if topic := readTopic(r.Key[keys.SourceSize:], r.Value); topic == nil {
				damaged(bytes.Clone(r.Key))
			} else {
				err = topicFollows(e.rows.id, topic, r.Value, e.rows)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// rowsOf iterates over the rows of a table. Each is valid until the next one.
func rowsOf(t *txn.Tx, id keys.Source, table byte) iter.Seq2[row, error] {
	return seq.Map(t.ScanInPlace(id.Key(table), nil), func(r row) (row, error) { return r, t.Context().Err() })
}

// readTopic returns the topic of a row, nil if the row is damaged. The decoded topic must encode to the same bytes,
// because otherwise its derived rows could not be removed again.
func readTopic(topicSI, record []byte) *fragment.Topic {
	topic, err := fragment.UnmarshalTopic(record)
	if err != nil || string(topic.TopicSI()) != string(topicSI) || !bytes.Equal(fragment.MarshalTopic(topic), record) {
		return nil
	}
	if topic.Provisional && len(topic.Names)+len(topic.Occurrences) > 0 { // a provisional topic has no statements
		return nil
	}
	return topic
}

func (e *Expected) associations(t *txn.Tx) error {
	for r, err := range rowsOf(t, e.rows.id, keys.TableAssociation) {
		if err != nil {
			return err
		}
		a, record := readAssociation(r)
		if a == nil {
			continue
		}
		copied, err := e.isCopy(t, r, a)
		if err == nil && !copied {
			err = associationFollows(e.rows.id, a, record, e.rows)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readAssociation returns the association of a row and its record, nil where the record is elsewhere, or the row is not
// as it was written.
func readAssociation(r row) (*fragment.Association, []byte) {
	record, inline := bytes.CutPrefix(r.Value, []byte{rowInline})
	if !inline {
		return nil, nil
	}
	a, err := fragment.UnmarshalAssociation(record)
	if err != nil || !isWhole(r, a, record) {
		return nil, nil
	}
	return a, record
}

// isWhole reports whether the decoded association of a row encodes to the same bytes, and belongs to its key.
func isWhole(r row, a *fragment.Association, record []byte) bool {
	player, part, digest, ok := splitPlaying(r.Key[keys.SourceSize:])
	if !ok || !bytes.Equal(fragment.MarshalAssociation(a), record) || a.Part(fragment.Ref(player)) != part {
		return false
	}
	key := a.Key()
	return bytes.Equal(key[:], digest) && slices.ContainsFunc(a.Roles, func(r fragment.Role) bool {
		return string(r.Player) == string(player)
	})
}

// isCopy reports whether the row of an association is derived from that of an earlier player: of the first one, unless
// that is damaged.
func (e *Expected) isCopy(t *txn.Tx, r row, a *fragment.Association) (bool, error) {
	for _, p := range a.Players() {
		at := e.rows.id.AssociationKey(p, a.Part(p), a.Key())
		if bytes.Equal(at, r.Key) {
			return false, nil
		}
		value, err := t.Get(at)
		if err != nil {
			return false, err
		}
		if bytes.Equal(value, r.Value) {
			return true, nil
		}
		if other, _ := readAssociation(row{Key: at, Value: value}); other != nil {
			return true, nil
		}
	}
	return false, nil
}

// Difference is a row that is not as expected. It is lost where it was the record of an association, and cannot be
// read.
type Difference struct{ agree.Difference }

// Differences calls f with each row that is not as expected.
func (e *Expected) Differences(t *txn.Tx, f func(d Difference) error) error {
	return e.rows.sorter.Compare(stored(t, e.rows.id), func(d agree.Difference) error {
		d.Lost = d.Want == nil && wasRecord(row{Key: d.Key, Value: d.Have})
		return f(Difference{d})
	})
}

// wasRecord reports whether a row to which no other leads has a record that cannot be read.
func wasRecord(r row) bool {
	if keys.Table(r.Key) != keys.TableAssociation || elsewhere(r) {
		return false
	}
	a, _ := readAssociation(r)
	return a == nil
}

// Mend writes the rows as expected, in an update. It returns the wrong ones. If an entry of an index is wrong, it makes
// all indexes again.
func (e *Expected) Mend(t *txn.Tx) (all []Difference, err error) {
	err = e.Differences(t, func(d Difference) error {
		all = append(all, Difference{d.Kept()})
		return nil
	})
	for i := range all {
		if err != nil {
			return nil, err
		}
		if keys.Table(all[i].Key) != keys.TableIndex {
			err = all[i].Mend(t)
		}
	}
	if err == nil && len(all) > 0 && keys.Table(all[0].Key) == keys.TableIndex {
		err = e.RewriteIndexes(t)
	}
	return all, err
}

// RewriteIndexes makes the indexes again, in an update.
func (e *Expected) RewriteIndexes(t *txn.Tx) error {
	for _, index := range e.rows.indexes {
		rows := t.Scan(e.rows.id.Index(index.Name), nil)
		if err := seq.Each(rows, func(r row) error { return t.Delete(r.Key) }); err != nil {
			return err
		}
	}
	return e.rows.write(seq.Map(e.rows.sorter.All(), func(r row) (row, error) {
		if keys.Table(r.Key) != keys.TableIndex { // which precede others
			return r, seq.ErrStop
		}
		return r, nil
	}), t.Put)
}

// MendDerived writes the rows derived from the records of a source as expected, in an update, and reports whether it
// changed any. If a record is unreadable, the update must not be committed.
func MendDerived(t *txn.Tx, id keys.Source, file string, memory int) (mended bool, err error) {
	lost := false
	e, err := Expect(t, id, file, memory, func([]byte) { lost = true })
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	if lost {
		return false, nil
	}
	all, err := e.Mend(t)
	lost = slices.ContainsFunc(all, func(d Difference) bool { return d.Lost })
	return len(all) > 0 && !lost, err
}

// Whole reports whether all records of a source can be read, and all rows that follow from them are as they must be.
func Whole(t *txn.Tx, id keys.Source, file string, memory int) (bool, error) {
	whole := true
	e, err := Expect(t, id, file, memory, func([]byte) { whole = false })
	if err == nil {
		err = errors.Join(e.Differences(t, func(Difference) error { whole = false; return nil }), e.Close())
	}
	return whole, err
}

// Topic returns the TopicSI of the topic of the row, "" if there is none: a damaged row may name an unknown topic.
func (d *Difference) Topic() string {
	rest := d.Key[keys.SourceSize:]
	table := keys.Table(d.Key)
	if record, ok := keys.IsReifier(d.Key); ok && len(record) > 0 {
		table, rest = record[0], record[1:]
	} else if table == keys.TableReified && len(rest) > 0 {
		table, rest = rest[0], rest[1:]
	}
	switch table {
	case keys.TableTopic, keys.TableMentions:
		return string(rest)
	case keys.TableAssociation:
		player, _, _, _ := splitPlaying(rest)
		return string(player)
	case keys.TableIdentifier, keys.TableLocator:
		if d.Want != nil {
			return string(d.Want)
		}
		return string(d.Have)
	}
	return ""
}

// stored iterates over the rows of a source that follow from its records, as they are stored. Each is valid until the
// next one.
func stored(t *txn.Tx, id keys.Source) iter.Seq2[row, error] {
	return func(yield func(row, error) bool) {
		var all []iter.Seq2[row, error]
		for _, index := range t.Indexes {
			all = append(all, index.Stored(t, id))
		}
		for _, table := range []byte(derivedTables) {
			all = append(all, rowsOf(t, id, table))
		}
		for _, rows := range all {
			for r, err := range rows {
				if !yield(r, err) || err != nil {
					return
				}
			}
		}
	}
}
