package history

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"

	"github.com/google/uuid"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/extsort"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/xtm"
)

// sortMemory is how many bytes of rows are sorted in memory; more are sorted in files.
const sortMemory = 8 << 20

// Past is a state that a collection had. It is valid as long as its view. Its memory does not grow with the map; it
// has about 40 bytes for each topic that must be looked for in a snapshot.
type Past struct {
	Moment
	ctx     context.Context
	v       *store.View
	folder  string // for files
	changed *extsort.Sorter
	kept    *extsort.Sorter // the records from snapshots; nil: none is needed
}

// Open finds out what has changed since a state. scratch is a folder for files. Where the state cannot be had any more the
// error is [store.ErrGone].
func Open(ctx context.Context, v *store.View, scratch string, at Moment) (*Past, error) {
	return open(ctx, v, scratch, at, v.Head)
}

// open is Open for what has changed up to an entry.
func open(ctx context.Context, v *store.View, scratch string, at Moment, to uint64) (*Past, error) {
	p := &Past{Moment: at, ctx: ctx, v: v, folder: scratch}
	p.changed = p.sorter()
	err := p.note(at.Seq+1, to)
	if err == nil {
		err = p.keep()
	}
	if err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// Close forgets what was found out. It must be called.
func (p *Past) Close() {
	for _, s := range []*extsort.Sorter{p.changed, p.kept} {
		if s != nil {
			_ = s.Close() // what is left goes when the store is opened
		}
	}
}

func (p *Past) sorter() *extsort.Sorter {
	return &extsort.Sorter{Path: filepath.Join(p.folder, "past-"+uuid.NewString()), Most: sortMemory}
}

// note adds a row for each of some entries: its TopicSI, its sequence, and the sequence of the entry of the key before,
// 0 where the topic was not there.
func (p *Past) note(from, to uint64) error {
	for e, err := range p.v.Entries(from) {
		if err != nil {
			return err
		}
		if e.Seq > to {
			break
		}
		prior := e.Prior
		if !e.Modified {
			prior = 0
		}
		key := binary.BigEndian.AppendUint64(append([]byte(e.TopicSI), 0), e.Seq)
		if err := p.changed.Add(key, binary.BigEndian.AppendUint64(nil, prior)); err != nil {
			return err
		}
	}
	return nil
}

// change is a topic that has changed since.
type change struct {
	ref         fragment.Ref
	prior       uint64 // sequence of its last entry before; 0: the topic was not there
	first, last uint64 // sequences of its entries since
}

// changes iterates over the topics that have changed, by TopicSI.
func (p *Past) changes() iter.Seq2[change, error] {
	return func(yield func(change, error) bool) {
		var c change
		for r, err := range p.changed.Sorted() {
			if err != nil {
				yield(change{}, err)
				return
			}
			end := len(r.Key) - 9
			ref, seq := r.Key[:end], binary.BigEndian.Uint64(r.Key[end+1:])
			if string(c.ref) == string(ref) {
				c.last = seq
				continue
			}
			if c.ref != "" && !yield(c, nil) {
				return
			}
			c = change{fragment.Ref(ref), binary.BigEndian.Uint64(r.Value), seq, seq}
		}
		if c.ref != "" {
			yield(c, nil)
		}
	}
}

// stored returns the entry that has what the topic was, or nil where it is in no entry.
func (p *Past) stored(c change) (*store.Entry, error) {
	if c.prior <= p.v.Horizon {
		return nil, nil
	}
	e, err := p.v.Entry(c.prior)
	if err != nil || !e.RecordStored() {
		return nil, err
	}
	return e, nil
}

// old is what a topic that has changed was.
type old struct {
	change
	said *fragment.Fragment // nil: it was not there
}

// versions iterates over what the changed topics were, by TopicSI.
func (p *Past) versions() iter.Seq2[old, error] {
	return func(yield func(old, error) bool) {
		var kept *cursor[extsort.Row]
		if p.kept != nil {
			kept = iterate(p.kept.Sorted())
			defer kept.stop()
		}
		for c, err := range p.changes() {
			o := old{change: c}
			if err == nil && c.prior > 0 {
				if o.said, err = p.version(c, kept); err == nil {
					forgetIDs(o.said)
				}
			}
			if !yield(o, err) || err != nil {
				return
			}
		}
	}
}

func (p *Past) version(c change, kept *cursor[extsort.Row]) (*fragment.Fragment, error) {
	e, err := p.stored(c)
	switch {
	case err != nil:
		return nil, err
	case e != nil:
		return Read(p.ctx, p.v, e)
	}
	f, err := fromSnapshot(c.ref, kept)
	if err == nil && f.Topic == nil {
		err = fmt.Errorf("the snapshot of collection %q lacks topic %s", p.v.Name, c.ref)
	}
	return f, err
}

// Write writes the map.
func (p *Past) Write(w io.Writer, version xtm.Version) error {
	if p.Seq == p.v.Head {
		return p.v.WriteSnapshot(w, version)
	}
	return p.write(w, version)
}

func (p *Past) write(w io.Writer, version xtm.Version) error {
	said := p.sorter()
	err := fragment.WriteSnapshot(w, &overlay{p: p, now: fragment.InPassing(p.v.Source()), said: said}, fragment.Form{Version: version, SP: p.v.SP})
	return errors.Join(err, said.Close())
}

// forgetIDs takes the item identifiers from all statements. They are no part of what is said, and change without
// an entry: by now a statement of a topic that has not changed may have one of them.
func forgetIDs(f *fragment.Fragment) {
	for i := range f.Topic.Names {
		n := &f.Topic.Names[i]
		n.ItemIdentifiers = nil
		for j := range n.Variants {
			n.Variants[j].ItemIdentifiers = nil
		}
	}
	for i := range f.Topic.Occurrences {
		f.Topic.Occurrences[i].ItemIdentifiers = nil
	}
	for _, a := range f.Associations {
		a.ItemIdentifiers = nil
		for i := range a.Roles {
			a.Roles[i].ItemIdentifiers = nil
		}
	}
}
