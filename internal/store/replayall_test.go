package store

import "github.com/tmshare/tmshare/internal/kv"

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
	db.rows.Tap = r
}

func (r *RecordingAll) Commits(changes []row) {
	r.Recording.Commits(changes)
	r.all = append(r.all, r.last)
}

// Rows is how many rows the commits have written.
func (r *RecordingAll) Rows() (n int) {
	for i := range r.all {
		n += len(r.all[i].changes)
	}
	return n
}

// Replay does what the commits have done.
func (r *RecordingAll) Replay(e kv.Engine) error {
	for i := range r.all {
		if err := r.all[i].replay(e); err != nil {
			return err
		}
	}
	return nil
}
