package derived

import (
	"encoding/binary"

	"github.com/tmshare/tmshare/internal/store/txn"
)

// A queue is rows of one kind, by position. Its ends are stored, because an engine may pass over all removed rows on
// its way to the first existing one.

// kindQueue is → [ends], by the kind of the rows.
const kindQueue = 'e'

type ends struct {
	First uint64 `json:"first,omitempty"` // the place of the next row that is taken
	Next  uint64 `json:"next,omitempty"`  // and of the next that is added
}

func queue(number uint32, kind byte) []byte { return append(key(number, kindQueue), kind) }

func place(number uint32, kind byte, n uint64) []byte {
	return binary.BigEndian.AppendUint64(key(number, kind), n)
}

// enqueue adds a row at the end.
func enqueue(t *txn.Tx, number uint32, kind byte, value []byte) error {
	var q ends
	if _, err := t.GetJSON(queue(number, kind), &q); err != nil {
		return err
	}
	q.Next++
	if err := t.Put(place(number, kind, q.Next-1), value); err != nil {
		return err
	}
	return t.PutJSON(queue(number, kind), q)
}

// dequeue removes up to n rows from the beginning, and returns them. more reports whether others remain.
func dequeue(t *txn.Tx, number uint32, kind byte, n int) (values [][]byte, more bool, err error) {
	var q ends
	if _, err := t.GetJSON(queue(number, kind), &q); err != nil || q.First == q.Next {
		return nil, false, err
	}
	var places [][]byte
	for at := q.First; at < q.Next && len(places) < n; at++ {
		places = append(places, place(number, kind, at))
	}
	if err := t.Expect(places, nil); err != nil {
		return nil, false, err
	}
	for ; q.First < q.Next && len(values) < n; q.First++ {
		at := place(number, kind, q.First)
		value, err := t.Get(at)
		if err != nil {
			return nil, false, err
		}
		if err := t.Delete(at); err != nil {
			return nil, false, err
		}
		values = append(values, value)
	}
	return values, q.First < q.Next, t.PutJSON(queue(number, kind), q)
}
