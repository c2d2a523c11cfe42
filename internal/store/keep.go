package store

import (
	"bytes"
	"context"

	"github.com/tmshare/tmshare/fragment"
)

// The first entries of a collection come without fragments: they are rendered when they
// are asked for, as the map is then. What a topic's fragment says of the topics that it
// mentions may change then without an entry that tells. Whoever promises lengths and
// digests of what is served, as ResourceSync does, has the fragments kept first.

// keepBatch is how many fragments are stored in one commit, keepScan how many entries are
// looked at without writing.
const (
	keepBatch = 200
	keepScan  = 5000
)

// KeepFragments stores the fragments of all records, as the map is now, that are not stored
// yet and are not too large to be, and the digests of those that are stored without. It
// returns how many records it has changed. Nothing is published.
func (db *DB) KeepFragments(ctx context.Context, name string) (records int, err error) {
	for from := []byte(nil); ; {
		if err := ctx.Err(); err != nil {
			return records, err
		}
		var keys [][]byte
		if err := db.View(name, func(v *View) error { keys, from, err = v.notKept(from); return err }); err != nil {
			return records, err
		}
		if len(keys) > 0 {
			n := 0
			err := db.update(func(t *tx) (err error) {
				n, err = db.keep(ctx, t, name, keys)
				return err
			})
			if records += n; err != nil {
				return records, err
			}
		}
		if from == nil {
			return records, nil
		}
	}
}

// kept reports whether the fragment of an entry and its digests are there.
func (e *Entry) kept() bool { return e.Stored && len(e.Digests) == len(Forms) }

// notKept returns rows of records, from the one with a key on, whose last entries are not
// kept. next is the key to go on with, nil where there are no more.
func (v *View) notKept(from []byte) (keys [][]byte, next []byte, err error) {
	looked := 0
	for r, err := range v.tx.scan(collectionKey(tableKey, v.Number), from) {
		if err != nil {
			return nil, nil, err
		}
		if looked++; looked > keepScan || len(keys) == keepBatch {
			return keys, bytes.Clone(r.key), nil
		}
		e, err := v.lastOf(r.value)
		if err != nil {
			return nil, nil, err
		}
		if e.Lives() && !e.kept() {
			keys = append(keys, bytes.Clone(r.key))
		}
	}
	return keys, nil, nil
}

// keep stores the fragments of the records with these rows.
func (db *DB) keep(ctx context.Context, t *tx, name string, keys [][]byte) (records int, err error) {
	c, err := getCollection(t, name)
	if err != nil {
		return 0, err
	}
	v := &View{Collection: *c, db: db, tx: t}
	var entries []*Entry
	var wanted []fragment.Entry
	for _, key := range keys {
		row, err := t.get(key)
		if err != nil || row == nil { // there is another collection of the name by now
			return 0, err
		}
		e, err := v.lastOf(row)
		switch {
		case err != nil:
			return 0, err
		case !e.Lives() || e.kept(): // by now
		case e.Stored:
			if err := v.digest(e); err != nil {
				return 0, err
			}
			records++
		default:
			entries = append(entries, e)
			wanted = append(wanted, fragment.Entry{TopicSI: e.TopicSI, Topic: e.TopicSI})
		}
	}
	data, err := renderAll(ctx, c, v.Source(), wanted)
	if err != nil {
		return 0, err
	}
	for i, f := range data {
		if f == nil { // too large
			continue
		}
		records++
		if err := logRows(c, entries[i], f, t.put); err != nil {
			return 0, err
		}
	}
	return records, nil
}

// digest adds the digests of its fragment to an entry of a version that knew none.
func (v *View) digest(e *Entry) error {
	for _, form := range Forms {
		packed, err := v.StoredFragment(e, form)
		if err != nil {
			return err
		}
		plain, err := unpack(packed)
		if err != nil {
			return err
		}
		e.Digests = append(e.Digests, DigestOf(plain))
	}
	return v.tx.putJSON(sequenceKey(tableLog, v.Number, e.Seq), e)
}
