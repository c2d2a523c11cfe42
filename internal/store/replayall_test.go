package store

import "github.com/dgraph-io/badger/v4"

// RecordingAll remembers what every commit has read and written, until it is
// told to begin anew.
type RecordingAll struct {
	Recording
	all []operations
}

// Record lets the recording begin.
func (r *RecordingAll) Record(db *DB) {
	r.all = nil
	r.reset()
	db.tap = r
}

func (r *RecordingAll) commits(changes []change) {
	r.Recording.commits(changes)
	r.all = append(r.all, r.last)
}

// Rows is how many rows the commits have written.
func (r *RecordingAll) Rows() (n int) {
	for i := range r.all {
		n += len(r.all[i].changes)
	}
	return n
}

// Replay does what the commits have done, in a transaction for each.
func (r *RecordingAll) Replay(db *badger.DB) error {
	for i := range r.all {
		one := Recording{last: r.all[i]}
		if err := one.Replay(db); err != nil {
			return err
		}
	}
	return nil
}
