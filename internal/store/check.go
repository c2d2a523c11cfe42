package store

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/collections"
	"github.com/tmshare/tmshare/internal/store/datafolder"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/sources"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// Finding is something in a data folder that is not as it must be.
type Finding struct {
	Where      string `json:"where"` // a collection, a subscription, or a part of the folder
	What       string `json:"what"`
	Remedy     string `json:"remedy"`
	Repairable bool   `json:"repairable"` // it can be made again of the rest
	Repaired   bool   `json:"repaired"`

	mend func(*txn.Tx) error // nil: no change of rows mends it
	redo func() error        // nil: nothing else is to be done. After the rows are mended
}

// What is to be done about findings.
const (
	restoreRemedy = "restore the data folder from a backup, or make it again: import the map, or subscribe again"
	verifyRemedy  = "\"tmshare-client verify --full %s\" fetches it anew from the source"
	repairRemedy  = "\"check --repair\" makes it again"
	repairedNow   = "nothing: it was made again"
)

// Check looks whether all checksums and invariants of the database hold, and calls report with
// each finding: a log has no gap, indexes agree
// with the records, snapshot files are there and whole. Where repair is set, it makes again
// what can be. It reads one state after the other, so the database may be in use.
// progress is told what is looked at.
func (db *DB) Check(ctx context.Context, repair bool, report func(Finding), progress func(string)) error {
	progress("checksums")
	if err := db.CompareChecksums(ctx); errors.Is(err, ErrDamaged) { // reading on might fail anywhere
		report(Finding{Where: datafolder.Database, What: err.Error(), Remedy: restoreRemedy})
		return nil
	} else if err != nil {
		return err
	}
	var reported []string
	for turn := range 3 { // what is mended may show what else is to be
		c := &checker{db: db, ctx: ctx, progress: progress}
		err := c.all()
		if err == nil && db.readOnly { // else they were removed when it was opened
			err = c.leftovers()
		}
		if err != nil {
			return err
		}
		mended := false
		for _, f := range c.findings {
			if repair && f.Repairable && turn < 2 {
				var err error
				if f.Repaired, err = db.mend(c.ctx, &f); err != nil {
					return err
				}
				mended = true
				if !f.Repaired {
					continue // somebody changed it meanwhile: the next turn shows what is so now
				}
				f.Remedy = repairedNow
			}
			if id := f.Where + "\x00" + f.What; f.Repaired || !slices.Contains(reported, id) {
				reported = append(reported, id)
				report(f)
			}
		}
		if !mended {
			return nil
		}
	}
	return nil
}

// checker collects findings.
type checker struct {
	db       *DB
	ctx      context.Context
	progress func(string)
	findings []Finding
	most     uint32 // of the numbers that are given out
}

func (c *checker) lost(where, what string, args ...any) {
	c.findings = append(c.findings, Finding{Where: where, What: fmt.Sprintf(what, args...), Remedy: restoreRemedy})
}

func (c *checker) repairable(where string, mend func(*txn.Tx) error, redo func() error, what string, args ...any) {
	c.findings = append(c.findings, Finding{
		Where: where, What: fmt.Sprintf(what, args...), Remedy: repairRemedy, Repairable: true, mend: mend, redo: redo,
	})
}

func (c *checker) all() error {
	collections, err := c.db.Collections(c.ctx)
	if err != nil {
		c.lost("collections", "a row cannot be read: %v", err)
		return nil
	}
	for i := range collections {
		c.most = max(c.most, collections[i].Number, collections[i].Generation)
		err := c.db.View(c.ctx, collections[i].Name, func(v *View) error { return c.collection(v) })
		if err != nil && !errors.Is(err, ErrNotFound) { // it was deleted meanwhile
			return err
		}
	}
	return c.db.rows.View(c.ctx, func(t *txn.Tx) error {
		for s, err := range sources.All(t) {
			if err != nil {
				c.lost("subscriptions", "a row cannot be read: %v", err)
				return nil
			}
			c.most = max(c.most, s.Number)
			for _, id := range s.Generations() {
				c.most = max(c.most, id.Generation)
				if _, err := c.records(t, "subscription "+s.Name, fmt.Sprintf(verifyRemedy, s.Name), id); err != nil {
					return err
				}
			}
		}
		return c.numbers(t)
	})
}

func (c *checker) collection(v *View) error {
	where := "collection " + v.Name
	c.progress(where)
	topics, err := c.records(v.tx, where, restoreRemedy, v.SourceKey())
	if err != nil {
		return err
	}
	if topics >= 0 && topics != v.Topics {
		head, listed := v.Head, v.Topics
		c.repairable(where, v.again(func(now *View) error {
			if now.Head != head || now.Topics != listed {
				return errHoldsNoMore
			}
			now.Topics = topics
			return collections.Put(now.tx, &now.Collection)
		}), nil, "it has %d topics, not %d as its row has it", topics, v.Topics)
	}
	for _, check := range []func(string, *View) error{c.log, c.logTree, c.keys, c.beside, c.snapshots} {
		if err := check(where, v); err != nil {
			return err
		}
	}
	return nil
}

// log checks the entries in the order of sequences.
func (c *checker) log(where string, v *View) error {
	expected, last := v.Horizon+1, v.HorizonTime
	entry := func(e *Entry) error {
		if e.Seq > v.Horizon {
			if e.Seq != expected {
				c.lost(where, "the log lacks the entries %d to %d", expected, e.Seq-1)
			}
			if !e.Updated.After(last) && e.Seq > 1 {
				c.lost(where, "entry %d of the log is not later than the one before", e.Seq)
			}
			expected, last = e.Seq+1, e.Updated
		}
		if e.TopicSI == "" { // it cannot be read
			return nil
		}
		return c.entry(where, v, e)
	}
	for r, err := range v.tx.Scan(v.Log().Key(keys.TableFirst), nil) {
		if err == nil {
			err = c.ctx.Err()
		}
		if err != nil {
			return err
		}
		seq := keys.NumberIn(r.Key)
		if v.Beginning == nil || seq > v.Beginning.Entries {
			c.leftover(where, v, r.Key, func(now *View, _ []byte) (bool, error) {
				return now.Beginning != nil && seq <= now.Beginning.Entries, nil
			}, "the first entries from %d on are of no load", seq)
			continue
		}
		for e, err := range collections.InBlock(&v.Collection, r) {
			if err != nil {
				c.lost(where, "the first entries of the log from %d on cannot be read", max(seq, expected))
				break
			}
			if err := entry(&e); err != nil {
				return err
			}
		}
	}
	for r, err := range v.tx.Scan(v.Log().Key(keys.TableLog), nil) {
		if err == nil {
			err = c.ctx.Err()
		}
		if err != nil {
			return err
		}
		var e Entry
		seq := keys.NumberIn(r.Key)
		if seq > v.Head {
			c.leftover(where, v, r.Key, func(now *View, _ []byte) (bool, error) { return seq <= now.Head, nil }, "entry %d is behind the last one", seq)
			continue
		}
		if err := txn.Decode(r, &e); err != nil || e.Seq != seq {
			c.lost(where, "entry %d of the log cannot be read", seq)
			e = Entry{Seq: seq, Updated: last.Add(1)}
		}
		if err := entry(&e); err != nil {
			return err
		}
	}
	switch {
	case expected <= v.Head:
		c.lost(where, "the log lacks the entries %d to %d", expected, v.Head)
	case v.Head > v.Horizon && !last.Equal(v.Updated):
		c.lost(where, "the last entry of the log is of another time than the last change")
	}
	return nil
}

// entry checks what an entry leads to.
func (c *checker) entry(where string, v *View, e *Entry) error {
	if !v.leadsTo(e) {
		c.repairable(where, v.again(func(now *View) error {
			there, err := now.isEntry(e.Seq)
			if err != nil {
				return err
			}
			if now.leadsTo(e) || !there {
				return errHoldsNoMore
			}
			return now.tx.Put(collections.TopicKey(&now.Collection, e.TopicSI), collections.LastRow(e.Seq))
		}), nil, "the topic %s does not lead to its last entry, %d", e.TopicSI, e.Seq)
	}
	if !e.Kept || e.Seq <= v.Horizon {
		return nil
	}
	if _, _, err := v.Shown(e); err != nil {
		c.lost(where, "the fragment of entry %d is not there, or cannot be read: %v", e.Seq, err)
	}
	return nil
}

// leadsTo reports whether the row of the key of an entry leads to it, or to a later one.
func (v *View) leadsTo(e *Entry) bool {
	last, err := collections.LastOf(v.tx, &v.Collection, e.TopicSI)
	return err == nil && last >= e.Seq
}

// isEntry reports whether there is an entry with a sequence, readable or not.
func (v *View) isEntry(seq uint64) (bool, error) {
	e, err := collections.At(v.tx, &v.Collection, seq)
	if errors.Is(err, ErrDamaged) {
		return true, nil
	}
	return e != nil, err
}

// keys checks that the rows of topic keys lead to entries of the topics.
func (c *checker) keys(where string, v *View) error {
	prefix := v.Log().Key(keys.TableKey)
	for r, err := range v.tx.Scan(prefix, nil) {
		if err != nil {
			return err
		}
		hash := r.Key[len(prefix):]
		leads := func(v *View, value []byte) (bool, error) {
			seq, err := collections.InLastRow(row{Key: r.Key, Value: value})
			if err != nil {
				return false, nil
			}
			e, err := v.entry(seq)
			if err != nil {
				return errors.Is(err, ErrDamaged), nil // that is a finding of its own
			}
			has := fragment.KeyHash(e.TopicSI)
			return bytes.Equal(has[:], hash), nil
		}
		if ok, _ := leads(v, r.Value); !ok {
			c.leftover(where, v, r.Key, leads, "the key %x leads to no entry of its topic", hash)
		}
	}
	return nil
}

// beside checks that the fragments that are kept beside entries are of entries.
func (c *checker) beside(where string, v *View) error {
	for r, err := range v.tx.Scan(v.Log().Key(keys.TableFragment), nil) {
		if err == nil {
			err = c.ctx.Err()
		}
		if err != nil {
			return err
		}
		belongs := func(now *View, _ []byte) (bool, error) { return now.keepsFragment(keys.NumberIn(r.Key)) }
		if ok, err := belongs(v, r.Value); err != nil {
			return err
		} else if !ok {
			c.leftover(where, v, r.Key, belongs, "what is kept beside entry %d is of no entry, or wrong", keys.NumberIn(r.Key))
		}
	}
	return nil
}

// keepsFragment reports whether the fragment of an entry is kept beside it.
func (v *View) keepsFragment(seq uint64) (bool, error) {
	if there, err := v.isEntry(seq); err != nil || !there || seq <= v.Horizon {
		return false, err
	}
	e, err := v.entry(seq)
	return err == nil && e.Kept, nil
}

// snapshots checks that the files of snapshots are there and whole. One whose files are not is
// given up; a new one takes its place.
func (c *checker) snapshots(where string, v *View) error {
	all, err := v.Snapshots()
	if err != nil {
		c.lost(where, "the list of snapshots cannot be read: %v", err)
		return nil
	}
	for i := range all {
		s, name := &all[i], v.Name
		fault := snapshotFault(v, s)
		if fault == nil || !c.stillListed(name, s) {
			continue
		}
		c.repairable(where, v.again(func(now *View) error { return now.unlist(s) }), func() error {
			c.db.removeSnapshot(c.ctx, &v.Collection, s)
			_, err := c.db.TakeSnapshot(c.ctx, name, len(all))
			if errors.Is(err, ErrNotFound) { // it was deleted meanwhile
				err = nil
			}
			return err
		}, "%s", fault)
	}
	return nil
}

// stillListed reports whether a snapshot is listed now. The files of one that was superseded
// since the check began are gone.
func (c *checker) stillListed(name string, s *Snapshot) bool {
	l, err := c.db.Latest(c.ctx, name)
	return err == nil && slices.ContainsFunc(l.Snapshots, func(now Snapshot) bool { return now.ID == s.ID })
}

// snapshotFault says what is wrong with the files of a snapshot, nil if nothing is.
func snapshotFault(v *View, s *Snapshot) error {
	f, err := v.OpenSnapshot(s)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err == nil {
		_, err = io.Copy(io.Discard, z) // which compares the checksum
	}
	if err != nil {
		err = fmt.Errorf("the file of a snapshot cannot be unpacked: snapshot %s: %w", s.ID, err)
	}
	return err
}
