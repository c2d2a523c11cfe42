package store

import (
	"errors"
	"fmt"

	"github.com/google/uuid"
)

// EntryOf returns the entry with an identifier. It is ErrGone where the entry is pruned,
// ErrNotFound where there was none.
func (v *View) EntryOf(id uuid.UUID) (*Entry, error) {
	_, seq, ok := v.SequenceOf(id)
	none := fmt.Errorf("%w: entry %s of collection %q", ErrNotFound, id, v.Name)
	if !ok || seq > v.Head {
		return nil, none
	}
	e, err := v.Entry(seq)
	if err == nil && v.ID(e) != id { // of a history that was given up
		return nil, none
	}
	return e, err
}

// WrittenIn reports whether document n of the log has an entry of a run.
func (v *View) WrittenIn(n uint64, run uint32) (bool, error) {
	first, size := v.Document(n)
	for e, err := range v.kept(first) {
		if err != nil || e.Seq >= first+size {
			return false, err
		}
		if e.Run == run {
			return true, nil
		}
	}
	return false, nil
}

// DocumentRun returns the run of the last entry of document n of the log. ok is false
// where the entry is pruned and its run is not known any more.
func (v *View) DocumentRun(n uint64) (run uint32, ok bool, err error) {
	first, size := v.Document(n)
	last := min(first+size-1, v.Head)
	switch last {
	case v.Head:
		return v.Run, true, nil
	case v.Horizon:
		return v.HorizonRun, true, nil
	}
	e, err := v.entry(last)
	if errors.Is(err, ErrNotFound) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	return e.Run, true, nil
}
