package store

import (
	"bytes"
	"errors"
	"iter"
	"os"
	"path/filepath"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// derivedTables are the tables of which each row follows from the topics of a source and the
// rows of associations with their first players, in the order of their letters.
var derivedTables = []byte{tableAssociation, tableIdentifier, tableLocator, tableMentions, tableReified}

// fewDifferences is how many rows of a source are told one by one.
const fewDifferences = 20

// records checks that the indexes of a source agree with its records: all rows that follow from
// the records are there, and no others. It returns the number of topics, -1 where a record
// cannot be read. Memory does not grow with the number of records.
func (c *checker) records(t *txn.Tx, where string, id sourceID) (topics int, err error) {
	folder, err := os.MkdirTemp("", "tmshare-check-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(folder)
	l := c.db.newLoading(id)
	l.sorter.Path = filepath.Join(folder, "rows")
	defer l.sorter.Close()
	unreadable := len(c.findings)
	if topics, err = c.expect(t, where, l); err != nil {
		return 0, err
	}
	if len(c.findings) > unreadable {
		return -1, nil // what follows from the others would be no help
	}
	count, first := 0, len(c.findings)
	mended := errHoldsNoMore // until something was mended
	withFirst := func(*txn.Tx) error { return mended }
	err = differences(t, l, func(key, want, have []byte) {
		if count++; count > fewDifferences {
			return
		}
		what := "is missing"
		switch {
		case want == nil:
			what = "belongs to no record"
		case have != nil:
			what = "says something else than the records"
		}
		c.repairable(where, withFirst, nil, "a row of the table %q (%.80q) %s", key[0], key[9:], what)
	})
	if err != nil || count == 0 {
		return topics, err
	}
	if count > fewDifferences {
		c.repairable(where, withFirst, nil, "%d rows of indexes differ from the records", count)
	}
	c.findings[first].mend = func(t *txn.Tx) error { // all at once, compared with what is there then
		l := c.db.newLoading(id)
		defer l.sorter.Close()
		again := &checker{db: c.db, ctx: c.ctx, progress: c.progress}
		if _, err := again.expect(t, where, l); err != nil {
			return err
		}
		if len(again.findings) > 0 { // what is to be there is not known any more
			return mended
		}
		differ := false
		mended = errHoldsNoMore
		var failed error
		err := differences(t, l, func(key, want, _ []byte) {
			differ = true
			if want == nil {
				failed = errors.Join(failed, t.Delete(bytes.Clone(key)))
			} else {
				failed = errors.Join(failed, t.Put(bytes.Clone(key), bytes.Clone(want)))
			}
		})
		if err := errors.Join(err, failed); err != nil {
			return err
		}
		if differ {
			mended = nil
		}
		return mended
	}
	return topics, nil
}

// expect gives l the rows that follow from the records. It returns the number of topics.
func (c *checker) expect(t *txn.Tx, where string, l *loading) (topics int, err error) {
	put := func(key, value []byte) error {
		if key[0] == tableTopic {
			return nil
		}
		if value == nil {
			value = []byte{}
		}
		return l.sorter.Add(key, value)
	}
	mention := func(mentions func(func(fragment.Ref))) error {
		mentions(l.mention)
		if len(l.mentions) < l.most {
			return nil
		}
		return l.addMentions()
	}
	prefix := l.id.key(tableTopic)
	for r, err := range t.Glance(prefix, nil) {
		if err == nil {
			err = c.ctx.Err()
		}
		if err != nil {
			return 0, err
		}
		topic, err := fragment.UnmarshalTopic(r.Value)
		if err != nil || string(topic.TopicSI()) != string(r.Key[len(prefix):]) {
			c.lost(where, "the record of the topic %.80q cannot be read", r.Key[len(prefix):])
			continue
		}
		topics++
		if err := errors.Join(topicRows(l.id, topic, put), mention(topic.Mentions)); err != nil {
			return 0, err
		}
	}
	prefix = l.id.key(tableAssociation)
	for r, err := range t.Glance(prefix, nil) {
		if err == nil {
			err = c.ctx.Err()
		}
		if err != nil {
			return 0, err
		}
		record, inline := bytes.CutPrefix(r.Value, []byte{rowInline})
		player, _, _, ok := splitPlaying(r.Key[len(prefix):])
		if !inline || !ok {
			continue // the record is elsewhere
		}
		a, err := unmarshalAssociation(r.Key, record)
		if err != nil {
			c.lost(where, "the record of an association of %.80q cannot be read", player)
			continue
		}
		first := a.Players()[0]
		if string(player) != string(first) { // it follows from the row of the first player, if that is there
			there, err := t.Get(l.id.associationKey(first, a.Part(first), a.Key()))
			if err != nil {
				return 0, err
			}
			if there != nil {
				continue
			}
		}
		if err := errors.Join(associationRows(l.id, a, put), mention(a.Mentions)); err != nil {
			return 0, err
		}
	}
	return topics, l.addMentions()
}

// differences calls f with each row that is not as l has it: want is nil where there should be
// none, have where there is none.
func differences(t *txn.Tx, l *loading, f func(key, want, have []byte)) error {
	want, stopWant := iter.Pull2(l.combined())
	defer stopWant()
	have, stopHave := iter.Pull2(derived(t, l.id))
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

// derived iterates over the rows of a source that follow from its records.
func derived(t *txn.Tx, id sourceID) iter.Seq2[row, error] {
	return func(yield func(row, error) bool) {
		for _, table := range derivedTables {
			for r, err := range t.Scan(id.key(table), nil) {
				if !yield(r, err) || err != nil {
					return
				}
			}
		}
	}
}
