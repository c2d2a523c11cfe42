package past

import (
	"fmt"

	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// Recorder is a [txn.Keeper]: it stores the former versions of a source's records that an update changes.
type Recorder struct {
	tx     *txn.Tx
	id     keys.Source
	number func() (uint64, error) // returns the number of the commit, at the end of the update
	before uint64                 // the number of the commit before

	commit uint64
	again  bool // the commit before had the same number
	parts
}

// parts writes the keys of rows that a commit has changed.
type parts struct {
	part uint32
	keys []byte // of the part that is not written yet
	last []byte // the last of these
}

// add adds a key, without its source. full reports that the part must be written.
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

// Record stores the former versions of a source's records that the update changes. before is the number of the previous
// commit, number returns that of this one at its end. Consecutive commits may have the same number: only the last state
// counts.
func Record(t *txn.Tx, id keys.Source, before uint64, number func() (uint64, error)) {
	t.Attached(attached{id}, func() txn.Finisher { return &Recorder{tx: t, id: id, number: number, before: before} })
}

// Begin writes the mark of the first commit whose former rows are stored.
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
	if r.again { // the version before the first of the commits with this number counts
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

// partSize is the approximate minimum of bytes of keys in a part, except the last one.
const partSize = 48 << 10

// present begins the value of a row that was there.
const present = 1

// remembering returns the stored value for a former row, nil if there was none.
func remembering(before []byte) []byte {
	if before == nil {
		return []byte{}
	}
	return append(append(make([]byte, 0, len(before)+1), present), before...)
}

// Ends implements [txn.Keeper]. A commit without changes has an empty part.
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
