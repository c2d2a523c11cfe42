package past

import (
	"fmt"

	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// Recorder is a [txn.Keeper]: it remembers what an update changes of the records of a source.
type Recorder struct {
	tx     *txn.Tx
	id     keys.Source
	number func() (uint64, error) // of the commit, asked at the end of the update
	before uint64                 // the number of the commit before

	commit uint64
	again  bool // the commit before had the same number
	part   uint32
	keys   []byte // of the part that is not written yet
	last   []byte // of these
}

type attached struct{ keys.Source }

// Record remembers what the update changes of the records of a source. before is the number of the commit before, number returns that of
// this one at its end. Several commits may have the same number, one after the other: their states count as one, the last.
func Record(t *txn.Tx, id keys.Source, before uint64, number func() (uint64, error)) {
	t.Attached(attached{id}, func() txn.Finisher { return &Recorder{tx: t, id: id, number: number, before: before} })
}

// Begin writes the mark of the commit from which on it is remembered what rows were.
func Begin(id keys.Source, commit uint64, put func(key, value []byte) error) error {
	return put(id.Changed(commit, 0), []byte{})
}

// Finish implements [txn.Finisher].
func (r *Recorder) Finish() (err error) {
	r.commit, err = r.number()
	r.again = r.commit == r.before
	return err
}

// Changes implements [txn.Keeper].
func (r *Recorder) Changes(key, before []byte, put func(key, value []byte) error) error {
	if !r.id.Remembered(key) {
		return nil
	}
	row := r.id.Before(key, r.commit)
	var known []byte
	if r.again { // what the row was before the first of the commits with this number counts
		var err error
		if known, err = r.tx.Reader().Get(row); err != nil {
			return err
		}
	}
	if known == nil {
		value := []byte{}
		if before != nil {
			value = append(append(make([]byte, 0, len(before)+1), present), before...)
		}
		if err := put(row, value); err != nil {
			return err
		}
	}
	relative := keys.Relative(key)
	r.keys = keys.AppendShared(r.keys, r.last, relative)
	if r.last = relative; len(r.keys) < partSize {
		return nil
	}
	return r.end(put)
}

// partSize is about how many bytes of keys a part has at least, the last one aside.
const partSize = 48 << 10

// present begins the value of a row that was there.
const present = 1

// Ends implements [txn.Keeper]. A commit that has changed nothing has an empty part.
func (r *Recorder) Ends(put func(key, value []byte) error) error {
	if len(r.keys) == 0 && (r.part > 0 || r.again) {
		return nil
	}
	return r.end(put)
}

func (r *Recorder) end(put func(key, value []byte) error) error {
	if r.part == 0 && r.again {
		last, err := Last(r.tx.Reader(), r.id)
		if err != nil {
			return err
		}
		if r.part = again; last.Commit == r.commit {
			r.part = max(again, last.Part+1)
		}
	}
	if r.keys == nil {
		r.keys = []byte{} // nil would delete the row
	}
	err := put(r.id.Changed(r.commit, r.part), r.keys)
	r.part++
	r.keys, r.last = nil, nil
	return err
}

func corrupt(key []byte) error {
	return txn.Corrupt("history", key, fmt.Errorf("it cannot be read"))
}

var _ txn.Keeper = (*Recorder)(nil)
