package resources

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/past"
	"github.com/tmshare/tmshare/internal/store/rendered"
	"github.com/tmshare/tmshare/internal/xml/patch"
	"github.com/tmshare/tmshare/xtm"
)

// Lists state lengths and digests of the record forms of entries, and, for small changes of a large topic, of the patch
// from the previous record to the next (Z39.99 §14.4, Patch Content). All follow from the log. They are stored as
// notes, so that a list costs one read per entry.

// RecordForm describes the record form of an entry, in each of [store.Forms], for lists.
type RecordForm struct {
	Version int               // of the rendering, see [rendered.Version]
	Digests []rendered.Digest `json:",omitempty"` // none: the record is deleted, or large
	// Patches are the patches from the previous entry's record form; of length 0 if there is none.
	Patches []rendered.Digest `json:",omitempty"`
}

// PatchIn returns the digest of the patch in a form; nil if there is none.
func (f *RecordForm) PatchIn(version xtm.Version) *rendered.Digest {
	if i := slices.Index(store.Forms[:], version); i >= 0 && i < len(f.Patches) && f.Patches[i].Length > 0 {
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

// RecordFormOf returns the description of an entry's record form. It computes it if there is no readable note.
func RecordFormOf(v *store.View, e *store.Entry) (*RecordForm, error) {
	f := &RecordForm{}
	if !e.Lives() {
		return f, nil
	}
	if _, err := v.Tx().GetJSON(key(v, kindForm, e.Seq), f); err == nil && f.Version == rendered.Version || err != nil &&
		!errors.Is(err, kv.ErrDamaged) {
		return f, err
	}
	f = &RecordForm{}
	return f, f.describe(v, e)
}

// describe computes the description of an entry's record form.
func (f *RecordForm) describe(v *store.View, e *store.Entry) error {
	f.Version = rendered.Version
	var before *store.Entry
	for i, version := range store.Forms {
		after, err := small(v, e, version)
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
		changes, err := patchOf(v, before, version, after)
		if err != nil {
			return err
		}
		if len(changes) == 0 || len(changes) > len(after)/patchShare {
			continue
		}
		if f.Patches == nil {
			f.Patches = make([]rendered.Digest, len(store.Forms))
		}
		f.Patches[i] = rendered.DigestOf(changes)
	}
	return nil
}

// small returns the record form of an entry, nil where that is large, or not known.
func small(v *store.View, e *store.Entry, version xtm.Version) ([]byte, error) {
	var b rendered.Small
	err := v.WriteRecord(&b, e, version)
	if errors.Is(err, rendered.ErrLarge) || errors.Is(err, store.ErrGone) {
		return nil, nil
	}
	return b.Bytes(), err
}

// patchOf returns the patch from the record form of the previous entry; nil if there is none, or they are equal.
func patchOf(v *store.View, before *store.Entry, version xtm.Version, after []byte) ([]byte, error) {
	from, err := small(v, before, version)
	if from == nil || err != nil || string(from) == string(after) {
		return nil, err
	}
	changes, err := patch.Make(from, after)
	if err != nil { // patches are a convenience
		return nil, nil
	}
	return changes, nil
}

// Patch returns the patch (see internal/xml/patch) from the previous entry's record form to that of e, in a form. The
// error is [store.ErrNotFound] if there is none.
func Patch(v *store.View, e *store.Entry, version xtm.Version) ([]byte, error) {
	before, err := v.Entry(e.Prior)
	if err != nil {
		return nil, err
	}
	after, err := small(v, e, version)
	if err != nil {
		return nil, err
	}
	changes, err := patchOf(v, before, version, after)
	if err == nil && changes == nil {
		err = fmt.Errorf("%w: patch to entry %d of collection %q", store.ErrNotFound, e.Seq, v.Name)
	}
	return changes, err
}

// notedAtOnce is the number of entries whose notes one commit writes or removes.
const notedAtOnce = 1000

// Note writes notes about the record forms of entries published since the last call, if the collection has change
// lists, and removes those of pruned entries. The cursor moves in the same commit, so a crash loses nothing.
func (f *Folder) Note(ctx context.Context, name string) error {
	for {
		n, err := f.unnoted(ctx, name)
		if err == nil && n != nil {
			err = f.Store.Extend(ctx, name, n.put)
		}
		if err != nil || n == nil {
			return err
		}
	}
}

// noting holds notes to write.
type noting struct {
	site     Site
	from, to past.Cursor
	rows     map[uint64][]byte // by sequence
}

// unnoted computes some of the missing notes; nil if there are none to write or remove.
func (f *Folder) unnoted(ctx context.Context, name string) (n *noting, err error) {
	err = f.Store.View(ctx, name, func(v *store.View) error {
		c, err := ChangesOf(v)
		if c == nil || err != nil {
			return err
		}
		n = &noting{site: Site{Epoch: v.Epoch}, from: c.Noted, to: c.cursor(v), rows: map[uint64][]byte{}}
		for e, err := range v.Entries(n.to.Commit + 1) {
			if !IsOffered(&v.Collection) || len(n.rows) == notedAtOnce {
				break
			}
			if err == nil {
				err = context.Cause(ctx)
			}
			var form *RecordForm
			if err == nil {
				form, err = RecordFormOf(v, &e)
			}
			if err == nil {
				n.rows[e.Seq], err = json.Marshal(form)
			}
			if err != nil {
				return err
			}
			n.to.Commit = e.Seq
		}
		if len(n.rows) == 0 && c.Dropped >= v.Horizon {
			n = nil
		}
		return nil
	})
	return n, err
}

// cursor returns the position after the last entry with notes, or, if that is invalid, the beginning of the open list.
func (c *Changes) cursor(v *store.View) past.Cursor {
	head := past.Cursor{Generation: v.Generation, Position: past.Position{Commit: v.Head}}
	if c.Noted.GoesOn(v.Horizon, head) {
		return c.Noted
	}
	head.Commit = max(v.Horizon, c.Open-1)
	return head
}

// put writes the notes, unless another process did meanwhile, and removes some notes of pruned entries.
func (n *noting) put(v *store.View) error {
	c, err := ChangesOf(v)
	if c == nil || err != nil || c.Noted != n.from || n.site.Check(&v.Collection) != nil {
		return err
	}
	for seq, row := range n.rows {
		if seq > v.Horizon {
			err = errors.Join(err, v.Tx().Put(key(v, kindForm, seq), row))
		}
	}
	if len(n.rows) > 0 {
		c.Noted = n.to
	}
	return errors.Join(err, c.forget(v), c.put(v))
}

// forget removes some notes of pruned entries.
func (c *Changes) forget(v *store.View) error {
	table, n := key(v, kindForm), 0
	for r, err := range v.Tx().Scan(table, key(v, kindForm, c.Dropped)) {
		if err != nil {
			return err
		}
		seq := binary.BigEndian.Uint64(r.Key[len(table):])
		if n++; seq > v.Horizon || n > notedAtOnce {
			break
		}
		if c.Dropped, err = seq, v.Tx().Delete(r.Key); err != nil {
			return err
		}
	}
	if n <= notedAtOnce {
		c.Dropped = v.Horizon
	}
	return nil
}
