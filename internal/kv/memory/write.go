package memory

import (
	"bytes"
	"context"
	"maps"
	"slices"

	"github.com/tmshare/tmshare/internal/kv"
)

// writer implements [kv.Writer].
type writer struct {
	engine *Engine
	ctx    context.Context
	bulk   bool
	since  kv.Version // unless bulk
	leads  kv.Version
	narrow []uint32 // the keyspaces of the commit's condition, besides those that it changes; nil: all

	changes []kv.Row // a nil value removes the row
}

// mostChanges is the number of changes of a bulk that are kept until they are visible.
const mostChanges = 1000

// Begin implements [kv.Engine].
func (e *Engine) Begin(ctx context.Context, since kv.Version) (kv.Writer, error) {
	_, err := e.Version(ctx)
	return &writer{engine: e, ctx: ctx, since: since, leads: since.Next()}, err
}

// Bulk implements [kv.Engine].
func (e *Engine) Bulk(ctx context.Context) (kv.Writer, error) {
	_, err := e.Version(ctx)
	return &writer{engine: e, ctx: ctx, bulk: true}, err
}

// Put implements [kv.Writer].
func (w *writer) Put(key, value []byte) error {
	if value == nil {
		value = []byte{}
	}
	return w.add(kv.Row{Key: key, Value: value})
}

// Delete implements [kv.Writer].
func (w *writer) Delete(key []byte) error { return w.add(kv.Row{Key: key}) }

func (w *writer) add(change kv.Row) error {
	if err := context.Cause(w.ctx); err != nil {
		return err
	}
	if err := kv.CheckRow(change.Key, change.Value); err != nil {
		return err
	}
	w.changes = append(w.changes, change)
	if w.bulk && len(w.changes) == mostChanges {
		return w.Commit()
	}
	return nil
}

// Narrow implements [kv.Writer].
func (w *writer) Narrow(_ kv.Reader, spaces []uint32) error {
	w.narrow = append([]uint32{}, spaces...)
	return nil
}

// spaces are the keyspaces in which rows change.
func (w *writer) spaces() map[uint32]bool {
	all := map[uint32]bool{}
	for _, c := range w.changes {
		all[kv.SpaceOf(c.Key)] = true
	}
	return all
}

// advance sets the version of the state after the commit, if its conditions still hold.
func (w *writer) advance(s *state) error {
	changes := w.spaces()
	if w.narrow == nil {
		if !s.version.Same(w.since) {
			return kv.ErrConflict
		}
	} else {
		for _, space := range slices.AppendSeq(w.narrow, maps.Keys(changes)) {
			if s.spaces[space] > w.since.Number {
				return kv.ErrConflict
			}
		}
		if s.version.IsBefore(w.since) {
			return kv.ErrConflict
		}
		w.leads.Number = s.version.Number + 1
	}
	w.engine.recent.Add(kv.Place{Number: w.leads.Number}, kv.Commit{ID: w.leads.ID - s.version.ID, Spaces: changes})
	s.version, s.spaces = w.leads, maps.Clone(s.spaces)
	for space := range changes {
		s.spaces[space] = w.leads.Number
	}
	return nil
}

// Leads implements [kv.Writer].
func (w *writer) Leads() kv.Version { return w.leads }

// Cancel implements [kv.Writer].
func (w *writer) Cancel() { w.changes = nil }

// Commit implements [kv.Writer].
func (w *writer) Commit() error {
	defer w.Cancel()
	return w.engine.change(w.ctx, func(s *state) error {
		if !w.bulk {
			if err := w.advance(s); err != nil {
				return err
			}
		}
		for _, c := range w.changes {
			s.put(string(c.Key), bytes.Clone(c.Value))
		}
		return nil
	})
}

// DeletePrefix implements [kv.Engine].
func (e *Engine) DeletePrefix(ctx context.Context, prefix []byte) error {
	return e.change(ctx, func(s *state) error {
		for r, err := range (&reader{e.present, ctx}).Range(prefix, nil, false) {
			if err != nil {
				return err
			}
			s.put(string(r.Key), nil)
		}
		return nil
	})
}

// change makes the present state another, or leaves it as it is after an error.
func (e *Engine) change(ctx context.Context, f func(*state) error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return kv.ErrClosed
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	next := *e.present
	next.rows = e.present.rows.IsoCopy()
	if err := f(&next); err != nil {
		return err
	}
	e.present = &next
	return nil
}

// put writes a row, or removes it if the value is nil.
func (s *state) put(key string, value []byte) {
	var old []byte
	var there bool
	if value == nil {
		old, there = s.rows.Delete(key)
	} else {
		old, there = s.rows.Set(key, value)
		s.size += int64(len(key) + len(value))
	}
	if there {
		s.size -= int64(len(key) + len(old))
	}
}
