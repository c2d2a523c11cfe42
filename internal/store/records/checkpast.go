package records

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/seq"
	"github.com/tmshare/tmshare/internal/statedigest"
	"github.com/tmshare/tmshare/internal/store/agree"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/past"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// changed collects the changes of commits to the rows derived from changed records.
type changed struct {
	id     keys.Source
	rows   *agree.Rows
	commit uint64
	before bool // the state before the commit, else after it
}

// A value has the states before and after: the lengths of both, each plus one, 0 for none, and both.
func (c *changed) row(key, value []byte) error {
	if !c.id.Remembered(key) {
		return nil
	}
	pair := [2][]byte{nil, value}
	if c.before {
		pair = [2][]byte{value, nil}
	}
	return c.rows.Add(c.id.Before(key, c.commit), packed(pair))
}

func (c *changed) mention(fragment.Ref)         {}
func (c *changed) index(*fragment.Topic) error  { return nil }
func (c *changed) item(statedigest.Entry) error { return nil }

func packed(pair [2][]byte) (b []byte) {
	for _, value := range pair {
		if value == nil {
			b = append(b, 0)
			continue
		}
		b = append(binary.AppendUvarint(b, uint64(len(value))+1), value...)
	}
	return b
}

func unpacked(b []byte) (pair [2][]byte) {
	for i := range pair {
		length, n := binary.Uvarint(b)
		if b = b[n:]; length > 0 {
			pair[i], b = b[:length-1], b[length-1:]
		}
	}
	return pair
}

// joinedChange merges the changes of one row by two records, because an identifier may have moved between them.
func joinedChange(_, a, b []byte) []byte {
	one, other := unpacked(a), unpacked(b)
	for i := range one {
		if one[i] == nil || other[i] != nil && bytes.Compare(one[i], other[i]) < 0 {
			one[i] = other[i]
		}
	}
	return packed(one)
}

// ComparePast calls f with each wrong row of the stored past of a source: of the versions before the commits from one
// on, and of the lists of their changes. commits are the required commits; once states that there are no others, and
// that their numbers are distinct. It calls lost with records whose former version is not stored.
func ComparePast(t *txn.Tx, id keys.Source, from uint64, commits []uint64, once bool, file string, memory int,
	lost func(key []byte, commit uint64), f func(agree.Difference) error) error {
	want, listed := agree.New(file, memory, joinedChange), agree.New(file+"-list", memory, nil)
	defer want.Close()
	defer listed.Close()
	list := func(commit uint64, key []byte) error {
		return errors.Join(listed.Add(past.Listed(id, commit, key), []byte{}),
			listed.Add(past.Listed(id, commit, nil), []byte{}))
	}
	for _, commit := range commits {
		if err := list(commit, nil); err != nil {
			return err
		}
	}
	for c, err := range past.Changes(t, id, from) {
		if err == nil && !c.Idle() {
			err = followChange(id, &c, want, lost)
		}
		if err != nil {
			return err
		}
	}
	followed := seq.Map(want.All(), func(r row) (row, error) {
		pair := unpacked(r.Value)
		c := past.Change{Before: pair[0], After: pair[1]}
		c.Key, c.Commit, _ = id.OfBefore(r.Key)
		if c.Idle() {
			return r, seq.ErrSkip
		}
		return c.Row(id), list(c.Commit, c.Key)
	})
	err := agree.Compare(followed, past.Stored(t, id, keys.TableBefore, from), func(d agree.Difference) error {
		if d.Want == nil {
			c, ok, err := past.ChangeIn(t, id, row{Key: d.Key, Value: d.Have})
			switch {
			case err != nil:
				return err
			case ok && c.Idle():
				return list(c.Commit, c.Key)
			case ok && (keys.Table(c.Key) == keys.TableTopic || wasRecord(row{Key: c.Key, Value: c.Before})):
				lost(c.Key, c.Commit)
				return nil
			}
		}
		return f(d)
	})
	if err != nil {
		return err
	}
	return past.CompareLists(t, id, from, once, listed, lost, f)
}

// followChange adds the rows derived from a change of a record, including itself. Only readable values have derived
// rows.
func followChange(id keys.Source, c *past.Change, want *agree.Rows, lost func(key []byte, commit uint64)) (err error) {
	read, unread := false, false
	for i, value := range [2][]byte{c.Before, c.After} {
		if value != nil && err == nil {
			var ok bool
			ok, err = followRow(row{Key: c.Key, Value: value}, &changed{id, want, c.Commit, i == 0})
			read, unread = read || ok, unread || !ok
		}
	}
	if read && unread {
		lost(c.Key, c.Commit)
	}
	return err
}

// followRow adds the rows derived from the record in a row, if that is readable.
func followRow(r row, to *changed) (readable bool, err error) {
	switch keys.Table(r.Key) {
	case keys.TableTopic:
		if topic := readTopic(keys.Rest(r.Key), r.Value); topic != nil {
			return true, topicFollows(to.id, topic, r.Value, to)
		}
	case keys.TableAssociation:
		if !isLeast(r, to.id.Key(keys.TableAssociation)) {
			return false, nil
		}
		if a, record := readAssociation(r); a != nil {
			return true, associationFollows(to.id, a, record, to)
		}
	}
	return false, nil
}
