package store

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/internal/store/collections"
	"github.com/tmshare/tmshare/internal/store/datafolder"
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
	redo func() error        // runs after the rows are mended; nil: nothing
}

// The remedies for findings.
const (
	restoreRemedy = "restore the data folder from a backup, or make it again: import the map, or subscribe again"
	verifyRemedy  = "\"tmshare-client verify --full %s\" fetches it anew from the source"
	repairRemedy  = "\"check --repair\" makes it again"
	repairedNow   = "nothing: it was made again"
)

// Check checks all checksums and invariants of the database, and calls report with each finding: a log has no gap,
// indexes match the records, snapshot files are complete. With repair, it makes again what can be derived. It reads a
// sequence of states, so the database may be in use. It calls progress with the name of each step.
func (db *DB) Check(ctx context.Context, repair bool, report func(Finding), progress func(string)) error {
	progress("checksums")
	if err := db.CompareChecksums(ctx); errors.Is(err, ErrDamaged) { // reading on might fail anywhere
		report(Finding{Where: datafolder.Database, What: err.Error(), Remedy: restoreRemedy})
		return nil
	} else if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "tmshare-check-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	var reported []string
	for turn := range 3 { // repairs may reveal further findings
		c := &checker{db: db, ctx: ctx, progress: progress, folder: folder}
		err := c.all()
		if err == nil && db.readOnly { // otherwise they were removed at opening
			err = c.leftovers()
		}
		if err != nil && !errors.Is(err, ErrDamaged) {
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
					continue // it was changed meanwhile: the next turn checks again
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
	folder   string // for files, while it is checked
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

// unread reports the rows that a list lacks, as its error names them. It returns other errors.
func (c *checker) unread(where string, err error) error {
	if !errors.Is(err, ErrDamaged) {
		return err
	}
	for row := range strings.SplitSeq(err.Error(), "\n") {
		c.lost(where, "a row cannot be read: %s", row)
	}
	return nil
}

func (c *checker) all() error {
	collections, err := c.db.Collections(c.ctx)
	if err = c.unread("collections", err); err != nil {
		return err
	}
	for i := range collections {
		c.most = max(c.most, collections[i].Number, collections[i].Generation)
		err := c.db.View(c.ctx, collections[i].Name, func(v *View) error { return c.collection(v) })
		if errors.Is(err, ErrDamaged) {
			c.lost("collection "+collections[i].Name, "%v", err)
		} else if err != nil && !errors.Is(err, ErrNotFound) { // it was deleted meanwhile
			return err
		}
	}
	return c.db.rows.View(c.ctx, func(t *txn.Tx) error {
		all, err := sources.All(t)
		if err = c.unread("subscriptions", err); err != nil {
			return err
		}
		for _, s := range all {
			c.most = max(c.most, s.Number)
			for _, id := range s.Generations() {
				c.most = max(c.most, id.Generation)
				where, remedy := "subscription "+s.Name, fmt.Sprintf(verifyRemedy, s.Name)
				lost, err := c.compare(t, c.records(where, remedy, id, "", new(int)))
				if err != nil {
					return err
				}
				_, err = c.compare(t, c.described(where, remedy, id))
				if err == nil && !lost && !s.Replica && s.State != nil && id == s.Source(s.State) {
					_, err = c.compare(t, c.pastOf(where, remedy, &s))
				}
				if err != nil {
					return err
				}
			}
		}
		for i := range collections {
			if err := c.inputs(t, &collections[i]); err != nil {
				return err
			}
		}
		return errors.Join(c.names(t), c.numbers(t))
	})
}

func (c *checker) collection(v *View) error {
	where := "collection " + v.Name
	c.progress(where)
	topics := 0
	stated := ""
	if last, err := v.Entry(v.Head); err == nil && v.Replica == nil {
		stated = last.Digest
	}
	lost, err := c.compare(v.tx, c.records(where, restoreRemedy, v.SourceKey(), stated, &topics))
	if err != nil {
		return err
	}
	if !lost && topics != v.Topics {
		head, listed := v.Head, v.Topics
		c.repairable(where, v.again(func(now *View) error {
			if now.Head != head || now.Topics != listed {
				return errHoldsNoMore
			}
			now.Topics = topics
			return collections.Put(now.tx, &now.Collection)
		}), nil, "it has %d topics, not %d as its row has it", topics, v.Topics)
	}
	broken, err := c.compare(v.tx, c.log(v))
	if err == nil && !lost && !broken {
		_, err = c.compare(v.tx, c.past(v))
	}
	if err != nil {
		return err
	}
	c.leaves(where, v)
	return c.snapshots(where, v)
}

// snapshots checks that the files of snapshots are complete. It drops a snapshot without; a new one replaces it.
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

// stillListed reports whether a snapshot is listed now. The files of one superseded since the check began are gone.
func (c *checker) stillListed(name string, s *Snapshot) bool {
	l, err := c.db.Latest(c.ctx, name)
	return err == nil && slices.ContainsFunc(l.Snapshots, func(now Snapshot) bool { return now.ID == s.ID })
}

// snapshotFault returns the damage of a snapshot's files; nil if there is none.
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
