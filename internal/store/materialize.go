package store

import (
	"bytes"
	"context"
	"math"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/collections"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/store/rendered"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// The first entries of a collection come without fragments: they are rendered when they
// are asked for, as the map is then. Whoever promises lengths and digests of the records, as
// ResourceSync does, has the fragments kept first.

// keepBatch is how many fragments are stored in one commit, keepScan how many entries are
// looked at without writing.
const (
	keepBatch = 200
	keepScan  = 5000
)

// MaterializeFragments stores the fragments and the record forms of all records, as the map is now, that
// are not stored yet and are not too large to be, and the digests of those that are stored without. It
// returns how many records it has changed. Nothing is published.
func (db *DB) MaterializeFragments(ctx context.Context, name string) (records int, err error) {
	for from := []byte(nil); ; {
		if err := ctx.Err(); err != nil {
			return records, err
		}
		var unkept [][]byte
		if err := db.View(ctx, name, func(v *View) error { unkept, from, err = v.notKept(from); return err }); err != nil {
			return records, err
		}
		if len(unkept) > 0 {
			n := 0
			err := db.rows.Update(ctx, func(t *txn.Tx) (err error) {
				n, err = db.keep(ctx, t, name, unkept)
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

// notKept returns rows of records, from the one with a key on, whose last entries are not
// kept. next is the key to go on with, nil where there are no more.
func (v *View) notKept(from []byte) (unkept [][]byte, next []byte, err error) {
	looked := 0
	for r, err := range v.tx.Scan(v.Log().Key(keys.TableKey), from) {
		if err != nil {
			return nil, nil, err
		}
		if looked++; looked > keepScan || len(unkept) == keepBatch {
			return unkept, bytes.Clone(r.Key), nil
		}
		e, err := v.lastOf(r.Value)
		if err != nil {
			return nil, nil, err
		}
		if e.Lives() && !e.RecordKept() {
			unkept = append(unkept, bytes.Clone(r.Key))
		}
	}
	return unkept, nil, nil
}

// keep stores the fragments of the records with these rows.
func (db *DB) keep(ctx context.Context, t *txn.Tx, name string, unkept [][]byte) (kept int, err error) {
	c, err := collections.Get(t, name)
	if err != nil {
		return 0, err
	}
	v := &View{Collection: *c, db: db, tx: t}
	var entries []*Entry
	var wanted []fragment.Entry
	for _, key := range unkept {
		row, err := t.Get(key)
		if err != nil || row == nil { // there is another collection of the name by now
			return 0, err
		}
		e, err := v.lastOf(row)
		switch {
		case err != nil:
			return 0, err
		case !e.Lives() || e.RecordKept(): // by now
		case e.RecordStored():
			err := v.Describe(e)
			if err == nil {
				err = t.PutJSON(c.Log().Numbered(keys.TableLog, e.Seq), e)
			}
			if err != nil {
				return 0, err
			}
			kept++
		default:
			entries = append(entries, e)
			wanted = append(wanted, fragment.Entry{TopicSI: e.TopicSI, Topic: e.TopicSI})
		}
	}
	unlimited := int64(math.MaxInt64)
	all := c.Renderer()
	all.Digests = true
	data, err := all.All(ctx, records.Cache(t, c.SourceKey()), wanted, &unlimited, true)
	if err != nil {
		return 0, err
	}
	for i, f := range data {
		if f == nil { // too large
			continue
		}
		kept++
		entries[i].Late = true
		if err := collections.PutEntry(c, entries[i], f, t.Put); err != nil {
			return 0, err
		}
	}
	return kept, nil
}

// Describe adds the digests of its record form to an entry that is stored without.
func (v *View) Describe(e *Entry) error {
	if !e.RecordStored() || e.RecordKept() {
		return nil
	}
	for _, form := range Forms {
		stored, err := v.StoredRecord(e, form)
		if err != nil {
			return err
		}
		plain, err := stored.Plain()
		if err != nil {
			return err
		}
		e.Digests = append(e.Digests, rendered.DigestOf(plain))
	}
	return nil
}
