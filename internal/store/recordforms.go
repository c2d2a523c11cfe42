package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/rendered"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/internal/xml/patch"
	"github.com/tmshare/tmshare/xtm"
)

// Lists of ResourceSync state lengths and digests of the record forms of entries, and where a little of a large topic has changed, of the patch
// that leads from the record before to the one after (Z39.99 §14.4, Patch Content). All follow from the log. What was found out is noted, so
// that a list costs no more than reading it.

// RecordForm is what lists say of the record form of an entry, in each of Forms.
type RecordForm struct {
	Version int               // of the rendering, see [rendered.Version]
	Digests []rendered.Digest `json:",omitempty"` // none: the record is deleted, or large
	Patches []rendered.Digest `json:",omitempty"` // from the record form of the entry before; of no length where there is none
}

// PatchIn returns the digest of the patch in a form, nil where there is none.
func (f *RecordForm) PatchIn(version xtm.Version) *rendered.Digest {
	if i := slices.Index(Forms[:], version); i >= 0 && i < len(f.Patches) && f.Patches[i].Length > 0 {
		return &f.Patches[i]
	}
	return nil
}

// leastPatched is the length of a record from which on a patch may pay, and patchShare the
// part of it that the patch has at most.
const (
	leastPatched = 4 << 10
	patchShare   = 2
)

// RecordForm returns what lists say of the record form of an entry.
func (v *View) RecordForm(e *Entry) (*RecordForm, error) {
	f := &RecordForm{}
	if !e.Lives() {
		return f, nil
	}
	_, err := v.tx.GetJSON(v.Log().Numbered(keys.TableRecordForm, e.Seq), f)
	if err == nil && f.Version != rendered.Version {
		f = &RecordForm{}
		err = v.describe(e, f)
	}
	return f, err
}

// describe finds out what lists say of the record form of an entry.
func (v *View) describe(e *Entry, f *RecordForm) error {
	f.Version = rendered.Version
	var before *Entry
	for i, version := range Forms {
		after, err := v.small(e, version)
		if after == nil || err != nil {
			return err
		}
		f.Digests = append(f.Digests, rendered.DigestOf(after))
		if len(after) < leastPatched || !e.Modified || e.Prior <= v.Horizon {
			continue
		}
		if before == nil {
			if before, err = v.Entry(e.Prior); err != nil {
				return err
			}
		}
		changes, err := v.patch(before, version, after)
		if err != nil {
			return err
		}
		if len(changes) == 0 || len(changes) > len(after)/patchShare {
			continue
		}
		if f.Patches == nil {
			f.Patches = make([]rendered.Digest, len(Forms))
		}
		f.Patches[i] = rendered.DigestOf(changes)
	}
	return nil
}

// small returns the record form of an entry, nil where that is large, or not known.
func (v *View) small(e *Entry, version xtm.Version) ([]byte, error) {
	var b rendered.Small
	err := v.WriteRecord(&b, e, version)
	if errors.Is(err, rendered.ErrLarge) || errors.Is(err, ErrGone) {
		return nil, nil
	}
	return b.Bytes(), err
}

// patch returns what makes a record form of the one of the entry before, nil where nothing does, or nothing has changed.
func (v *View) patch(before *Entry, version xtm.Version, after []byte) ([]byte, error) {
	from, err := v.small(before, version)
	if from == nil || err != nil || string(from) == string(after) {
		return nil, err
	}
	changes, err := patch.Make(from, after)
	if err != nil { // patches are a convenience
		return nil, nil
	}
	return changes, nil
}

// Patch returns the patch (see internal/xml/patch) that makes the record form of e, in a form, of
// that of the entry before. It is ErrNotFound where there is none.
func (v *View) Patch(e *Entry, version xtm.Version) ([]byte, error) {
	before, err := v.Entry(e.Prior)
	if err != nil {
		return nil, err
	}
	after, err := v.small(e, version)
	if err != nil {
		return nil, err
	}
	changes, err := v.patch(before, version, after)
	if err == nil && changes == nil {
		err = fmt.Errorf("%w: patch to entry %d of collection %q", ErrNotFound, e.Seq, v.Name)
	}
	return changes, err
}

// noted returns the sequence up to which it is noted what change lists say of record forms.
func (v *View) noted() (uint64, error) {
	for r, err := range v.tx.Descend(v.Log().Key(keys.TableRecordForm), v.Log().Numbered(keys.TableRecordForm, v.Head)) {
		if err != nil {
			return 0, err
		}
		return max(v.Horizon, keys.NumberIn(r.Key)), nil
	}
	return max(v.Horizon, v.Changes.Open-1), nil
}

// NoteRecordForms notes what change lists of a collection, if it has any, say of the record forms of entries that were published since the last
// time.
func (db *DB) NoteRecordForms(ctx context.Context, name string) error {
	for {
		var log keys.Source
		rows := map[uint64][]byte{}
		err := db.View(ctx, name, func(v *View) error {
			log = v.Log()
			if v.Changes == nil || v.NoResourceSync {
				return nil
			}
			noted, err := v.noted()
			if err != nil {
				return err
			}
			for e, err := range v.Entries(noted + 1) {
				if err == nil {
					err = context.Cause(ctx)
				}
				var f *RecordForm
				if err == nil {
					f, err = v.RecordForm(&e)
				}
				if err != nil {
					return err
				}
				if rows[e.Seq], err = json.Marshal(f); err != nil || len(rows) == db.batch {
					return err
				}
			}
			return nil
		})
		if err != nil || len(rows) == 0 {
			return err
		}
		more := len(rows) == db.batch
		_, err = db.update(ctx, name, nil, func(t *txn.Tx, c *Collection) error {
			if more = more && c.Log() == log; c.Log() != log { // it was deleted, and made anew
				return nil
			}
			for seq, row := range rows {
				if seq <= c.Horizon {
					continue
				}
				if err := t.Put(log.Numbered(keys.TableRecordForm, seq), row); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil || !more {
			return err
		}
	}
}
