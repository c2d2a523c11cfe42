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
	parts
}

// parts writes the keys of rows that a commit has changed.
type parts struct {
	part uint32
	keys []byte // of the part that is not written yet
	last []byte // of these
}

// add takes a key, without its source. full says that the part is to be written.
func (p *parts) add(relative []byte) (full bool) {
	p.keys, p.last = keys.AppendShared(p.keys, p.last, relative), relative
	return len(p.keys) >= partSize
}

// end writes a part.
func (p *parts) end(id keys.Source, commit uint64, put func(key, value []byte) error) error {
	if p.keys == nil {
		p.keys = []byte{} // nil would delete the row
	}
	err := put(id.Changed(commit, p.part), p.keys)
	p.part++
	p.keys, p.last = nil, nil
	return err
}

type attached struct{ keys.Source }

// Record remembers what the update changes of the records of a source. before is the number of the commit before,
// number returns that of this one at its end. Several commits may have the same number, one after the other: their
// states count as one, the last.
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
		if err := put(row, remembering(before)); err != nil {
			return err
		}
	}
	if r.add(keys.Relative(key)) {
		return r.end(put)
	}
	return nil
}

// partSize is about how many bytes of keys a part has at least, the last one aside.
const partSize = 48 << 10

// present begins the value of a row that was there.
const present = 1

// remembering returns the value of a row that remembers what another was, nil where it was not there.
func remembering(before []byte) []byte {
	if before == nil {
		return []byte{}
	}
	return append(append(make([]byte, 0, len(before)+1), present), before...)
}

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
	return r.parts.end(r.id, r.commit, put)
}

func corrupt(key []byte) error {
	return txn.Corrupt("history", key, fmt.Errorf("it cannot be read"))
}

var _ txn.Keeper = (*Recorder)(nil)
