package txn

import (
	"bytes"

	"github.com/tmshare/tmshare/internal/kv"
)

// AtOnce is about the number of rows that a loop over many expects at once, before it reads them.
const AtOnce = 2000

// Distant reports whether each read is a network round trip. Then [Tx.Expect] saves time; otherwise it does nothing,
// and callers need not compute its arguments.
func (t *Tx) Distant() bool {
	_, many := t.base.(kv.ManyReader)
	return many
}

// Expect prefetches the values of keys, and the first rows of prefixes, or of each prefix with one of the following
// bytes. It reads all that is not cached in one query.
func (t *Tx) Expect(keys, prefixes [][]byte, following ...byte) error {
	many, ok := t.base.(kv.ManyReader)
	if !ok {
		return nil
	}
	if err := t.ended(); err != nil {
		return err
	}
	keys = unknown(keys, func(key []byte) bool { _, known := t.reads.value(key); return known })
	prefixes = unknown(prefixes, func(prefix []byte) bool { _, known := t.reads.rowsWith(prefix); return known })
	if len(keys)+len(prefixes) == 0 {
		return nil
	}
	return many.ReadMany(keys, prefixes, FewRows, t.reads.keepValue, func(prefix []byte, rows []kv.Row, more bool) {
		first := beginning{rows, more}
		t.reads.keepRows(prefix, first)
		for _, b := range following {
			longer := append(prefix[:len(prefix):len(prefix)], b)
			t.reads.keepRows(longer, first.under(longer))
		}
		for _, r := range rows {
			t.reads.keepValue(r.Key, r.Value)
		}
	})
}

// under returns the beginning of a longer prefix.
func (b beginning) under(prefix []byte) (shorter beginning) {
	behind := kv.After(prefix)
	passed := behind != nil && len(b.rows) > 0 && bytes.Compare(b.rows[len(b.rows)-1].Key, behind) >= 0
	shorter.more = b.more && !passed
	for _, r := range b.rows {
		if bytes.HasPrefix(r.Key, prefix) {
			shorter.rows = append(shorter.rows, r)
		}
	}
	return shorter
}

// unknown returns those that known does not accept, each once.
func unknown(all [][]byte, known func([]byte) bool) (left [][]byte) {
	seen := make(map[string]bool, len(all))
	for _, key := range all {
		if !seen[string(key)] && !known(key) {
			seen[string(key)] = true
			left = append(left, key)
		}
	}
	return left
}

// Expecting is a [Finisher] that returns the rows, or the first of them, that Finish will read.
type Expecting interface{ Expects() (keys [][]byte) }

// ExpectEnd prefetches the rows for the end of an update: for its finishers, and for the comparison of its changes.
func (t *Tx) ExpectEnd() error {
	if err := t.answered(); err != nil || !t.Distant() {
		return err
	}
	return t.Expect(t.readAtEnd(), nil)
}

// ExpectEndSoon is ExpectEnd for the changes so far, in parallel with the update. Its error is that of ExpectEnd.
func (t *Tx) ExpectEndSoon() {
	if t.asked != nil || !t.Distant() {
		return
	}
	keys, answer := t.readAtEnd(), make(chan error, 1)
	t.asked = answer
	go func() { answer <- t.Expect(keys, nil) }()
}

// answered waits for the answer to a parallel query.
func (t *Tx) answered() error {
	if t.asked == nil {
		return nil
	}
	err := <-t.asked
	t.asked = nil
	return err
}

// readAtEnd returns the keys that an update will read at its end, or the first of them.
func (t *Tx) readAtEnd() (keys [][]byte) {
	for _, f := range t.attached {
		if e, ok := f.(Expecting); ok {
			keys = append(keys, e.Expects()...)
		}
	}
	n := 0
	t.pending.Scan(func(key string, _ []byte) bool {
		keys = append(keys, []byte(key))
		n++
		return n < AtOnce // [Tx.Changes] prefetches the others
	})
	return keys
}
