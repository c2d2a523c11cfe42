package history

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"slices"

	"github.com/klauspost/compress/gzip"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/fragment/stream"
	"github.com/tmshare/tmshare/internal/extsort"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// wanted are topics that are looked for in a snapshot, by the beginnings of the hashes of their TopicSIs.
type wanted map[[16]byte]struct{}

func short(ref fragment.Ref) [16]byte {
	sum := sha256.Sum256([]byte(ref))
	return [16]byte(sum[:16])
}

// keep collects from snapshots what no entry has.
func (p *Past) keep() error {
	snapshots, err := p.v.Snapshots()
	if err != nil {
		return err
	}
	in := make([]wanted, len(snapshots))
	for c, err := range p.changes() {
		if err != nil {
			return err
		}
		if c.prior == 0 {
			continue
		}
		e, err := p.stored(c)
		if err != nil {
			return err
		}
		if e != nil {
			continue
		}
		i := slices.IndexFunc(snapshots, func(s store.Snapshot) bool { return c.prior <= s.Seq && s.Seq < c.first })
		if i < 0 {
			return p.unavailable(c)
		}
		if in[i] == nil {
			in[i] = wanted{}
		}
		in[i][short(c.ref)] = struct{}{}
	}
	for i := range snapshots {
		if in[i] == nil {
			continue
		}
		if p.kept == nil {
			p.kept = p.sorter()
		}
		if err := p.collect(&snapshots[i], in[i]); err != nil {
			return err
		}
	}
	return nil
}

// unavailable says why what a topic was cannot be had.
func (p *Past) unavailable(c change) error {
	if c.prior <= p.v.Horizon {
		return prunedVersion(p.v, c.ref)
	}
	e, err := p.v.Entry(c.prior)
	if err != nil {
		return err
	}
	return NotKept(p.v, e)
}

// The kinds of rows of what is kept, behind the TopicSI and a zero byte.
const (
	aTopic        = 1
	anAssociation = 2
)

// collect keeps the records of some topics that stand in a snapshot.
func (p *Past) collect(s *store.Snapshot, topics wanted) error {
	open := func() (io.ReadCloser, error) {
		f, err := p.v.OpenSnapshot(s, xtm.V21)
		if errors.Is(err, store.ErrLost) {
			err = errors.Join(store.ErrGone, err)
		}
		if err != nil {
			return nil, err
		}
		z, err := gzip.NewReader(f)
		if err != nil {
			f.Close()
			return nil, err
		}
		return unpacked{z, f}, nil
	}
	is := func(ref fragment.Ref) bool { _, ok := topics[short(ref)]; return ok }
	key := func(ref fragment.Ref, kind byte) []byte { return append(append([]byte(ref), 0), kind) }
	o := xtm.Options{Base: tmdm.Locator(p.v.SP), DropClashes: true}
	for r, err := range stream.Snapshot(open, o) {
		if err == nil {
			err = p.ctx.Err()
		}
		if err != nil {
			return err
		}
		if t := r.Topic; t != nil {
			if is(t.TopicSI()) {
				err = p.kept.Add(key(t.TopicSI(), aTopic), fragment.MarshalTopic(t))
			}
		} else {
			for _, player := range r.Association.Players() {
				if err == nil && is(player) && r.Association.Part(player) != fragment.AsType {
					err = p.kept.Add(key(player, anAssociation), fragment.MarshalAssociation(r.Association))
				}
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// unpacked is a gzipped file.
type unpacked struct {
	io.Reader
	file io.Closer
}

func (u unpacked) Close() error { return u.file.Close() }

// fromSnapshot returns what a topic was, from the rows that are kept.
func fromSnapshot(ref fragment.Ref, kept *cursor[extsort.Row]) (*fragment.Fragment, error) {
	f := &fragment.Fragment{TopicSI: ref}
	prefix := append([]byte(ref), 0)
	for ; kept.more && bytes.HasPrefix(kept.row.Key, prefix); kept.step() {
		var err error
		if kept.row.Key[len(prefix)] == aTopic {
			f.Topic, err = fragment.UnmarshalTopic(kept.row.Value)
		} else {
			var a *fragment.Association
			a, err = fragment.UnmarshalAssociation(kept.row.Value)
			f.Associations = append(f.Associations, a)
		}
		if err != nil {
			return nil, err
		}
	}
	return f, kept.err
}
