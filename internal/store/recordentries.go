package store

import (
	"context"
	"iter"
	"slices"

	"github.com/google/uuid"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/seq"
	"github.com/tmshare/tmshare/internal/store/collections"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/past"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// The records of a collection are its topics, each under the key of its TopicSI: the metadata records of Atom-PMH, the
// resources of ResourceSync. The same log has their changes. An entry that does not live (see
// [collections.Entry.Lives]) ends a record, until another entry of the key follows.

// OfferRecordsAnew republishes records whose offered versions of XTM have changed. It returns their number. The offer
// may change meanwhile.
func (db *DB) OfferRecordsAnew(ctx context.Context, name string) (records int, err error) {
	var at restating
	for {
		if err := ctx.Err(); err != nil {
			return records, err
		}
		var n int
		var next restating
		err := db.rows.Update(ctx, func(t *txn.Tx) error {
			n, next = 0, at
			c, err := collections.Get(t, name)
			if err != nil || !c.Restating {
				next.next = nil
				return err
			}
			n, err = db.restateSome(t, c, &next)
			return err
		})
		if err != nil {
			return records, err
		}
		records += n
		if at = next; at.next == nil {
			return records, nil
		}
	}
}

// restating is the progress of OfferRecordsAnew, for one offer of one history.
type restating struct {
	epoch uuid.UUID
	offer Offer
	next  []byte // key of the next row; nil: the first, or the end
}

// restateSome publishes some of the records again.
func (db *DB) restateSome(t *txn.Tx, c *Collection, at *restating) (records int, err error) {
	offer := Offer{Forms: c.RecordForms}
	if last := len(c.Offers) - 1; last >= 0 {
		offer = c.Offers[last]
	}
	if c.Epoch != at.epoch || offer.After != at.offer.After || !slices.Equal(offer.Forms, at.offer.Forms) {
		*at = restating{c.Epoch, offer, nil} // earlier rows have another offer now
	}
	var stale []Entry
	if stale, at.next, err = (&View{Collection: *c, db: db, tx: t}).offeredOtherwise(at.next); err != nil {
		return 0, err
	}
	again := make([]fragment.Entry, len(stale))
	for i, e := range stale {
		again[i] = fragment.Entry{TopicSI: e.TopicSI, Topic: e.TopicSI, Title: e.Title}
	}
	past.Record(t, c.SourceKey(), c.Head, func() (uint64, error) { return c.Head, nil })
	if err := db.appender(t, c).Append(again, true); err != nil {
		return 0, err
	}
	c.Restating = at.next != nil
	return len(stale), collections.Put(t, c)
}

// offeredOtherwise returns some of the last entries of records whose offered forms must change, from the row with a key
// on. next is the key to continue with, nil at the end.
func (v *View) offeredOtherwise(from []byte) (stale []Entry, next []byte, err error) {
	want := v.FormsOf(&Entry{Seq: v.Head + 1})
	looked := 0
	for r, err := range v.tx.Scan(v.Log().Key(keys.TableKey), from) {
		if err != nil {
			return nil, nil, err
		}
		if looked == v.db.batch {
			return stale, r.Key, nil
		}
		looked++
		e, err := v.lastOf(r)
		if err != nil {
			return nil, nil, err
		}
		if e.Lives() && !slices.Equal(v.FormsOf(e), want) {
			if err := v.SetTitle(e); err != nil {
				return nil, nil, err
			}
			stale = append(stale, *e)
		}
	}
	return stale, nil, nil
}

// lastOf returns the entry to which the row of a key leads.
func (v *View) lastOf(r row) (*Entry, error) {
	seq, err := collections.InLastRow(r)
	if err != nil {
		return nil, err
	}
	return v.entry(seq)
}

// Records iterates over the last entry of each topic, by key. Callers must set titles, see [View.SetTitle].
func (v *View) Records() iter.Seq2[Entry, error] {
	return seq.Map(v.tx.Scan(v.Log().Key(keys.TableKey), nil), func(r row) (Entry, error) {
		e, err := v.lastOf(r)
		switch {
		case err != nil:
			return Entry{}, err
		case !e.Lives():
			return Entry{}, seq.ErrSkip
		}
		return *e, nil
	})
}

// RecordEntries returns the entries of document n of the log, the oldest first, and the number of the previous
// document, 0 if there is none. Of a pruned document it returns the entries that were the last of a key and still are,
// so that all documents together have the state of every record. The previous document is then the nearest one with
// entries; it may change, unlike that of others.
func (v *View) RecordEntries(n uint64) (entries []Entry, before uint64, err error) {
	first, size := v.Document(n)
	for e, err := range v.titled(v.Kept(first)) {
		if err != nil {
			return nil, 0, err
		}
		if e.Seq >= first+size {
			break
		}
		entries = append(entries, e)
	}
	switch {
	case n == 1:
		return entries, 0, nil
	case first > v.Horizon:
		return entries, n - 1, nil
	}
	last, err := collections.Before(v.tx, &v.Collection, first)
	if err != nil || last == 0 {
		return entries, 0, err
	}
	return entries, v.DocumentOf(last), nil
}
