package sources

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// Mended is the damage in the rows of a source that was repaired.
type Mended struct {
	Rows    int // derived again from the records, or superfluous
	Records int // unreadable ones, which were removed, also from the tree of the state digest
}

// maxMendedTopics is the number of topics that the activity of a repair names.
const maxMendedTopics = 1000

// MendSource checks that all rows of a subscription's source are consistent, and repairs them in one commit, from the
// readable records. It removes an unreadable record with all derived rows. So the state digest is that of the existing
// rows, and a round finds the differences from the source. Memory does not grow with the number of records.
func (st *Store) MendSource(ctx context.Context, name string) (Mended, error) {
	whole := true
	err := st.rows.View(ctx, withNamed(name, func(t *txn.Tx, s *Subscription) (err error) {
		for _, id := range s.Generations() {
			if whole, err = st.whole(t, id); !whole || err != nil {
				return err
			}
		}
		return nil
	}))
	if whole || err != nil {
		return Mended{}, err
	}
	var m Mended
	err = st.rows.Update(ctx, withNamed(name, func(t *txn.Tx, s *Subscription) error {
		m = Mended{}
		var topics []string
		for _, p := range s.progress() {
			concerned, left, err := st.mend(t, s.Source(p), &m)
			if err == nil && s.Replica {
				err = st.server.Counted(t, s, p, left)
			}
			if err != nil {
				return err
			}
			topics = append(topics, concerned...)
			p.Revision++ // a round of another process starts again
			p.Proof = nil
		}
		if m == (Mended{}) {
			return nil
		}
		s.Anew++
		slices.Sort(topics)
		note := Activity{Source: name, Kind: ActivityMended,
			Note: fmt.Sprintf("rows: %d, records that could not be read: %d", m.Rows, m.Records)}
		for _, topic := range slices.Compact(topics) {
			if len(note.Entries) < maxMendedTopics {
				note.Entries = append(note.Entries, ActivityEntry{TopicSI: topic})
			}
		}
		return errors.Join(Put(t, s), st.Note(t, note))
	}))
	return m, err
}

// scratch returns the path of the file for sorting the rows of a generation, and the memory for it.
func (st *Store) scratch(id keys.Source) (file string, memory int) {
	l := st.loader()
	return filepath.Join(l.Scratch, fmt.Sprintf("mend-%d-%d", id.Number, id.Generation)), l.Memory
}

// whole reports whether the rows of a generation agree with each other.
func (st *Store) whole(t *txn.Tx, id keys.Source) (bool, error) {
	file, memory := st.scratch(id)
	ok, err := records.Whole(t, id, file, memory)
	if !ok || err != nil {
		return false, err
	}
	notes, err := unreadableNotes(t, id)
	return len(notes) == 0, err
}

// mend makes the rows of a generation consistent. It returns the affected topics, and the number of topics.
func (st *Store) mend(t *txn.Tx, id keys.Source, m *Mended) (topics []string, left int, err error) {
	var damaged [][]byte
	file, memory := st.scratch(id)
	expected, err := records.Expect(t, id, file, memory, func(key []byte) { damaged = append(damaged, key) })
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, expected.Close()) }()
	m.Records += len(damaged)
	for _, key := range damaged {
		topics = append(topics, string(key[keys.SourceSize:]))
		if err := t.Delete(key); err != nil {
			return nil, 0, err
		}
	}
	differ, err := expected.Mend(t)
	if err != nil {
		return nil, 0, err
	}
	m.Rows += len(differ)
	for i := range differ {
		if differ[i].Lost {
			m.Rows--
			m.Records++
		}
		if topic := differ[i].Topic(); topic != "" {
			topics = append(topics, topic)
		}
	}
	notes, err := unreadableNotes(t, id)
	m.Rows += len(notes)
	for _, key := range notes {
		err = errors.Join(err, t.Delete(key))
	}
	return topics, expected.Topics, err
}

// unreadableNotes returns the keys of unreadable notes about the quarantine, and about held records. Their content is
// found again: the state digest differs without the changes in quarantine, and unknown records are fetched.
func unreadableNotes(t *txn.Tx, id keys.Source) (all [][]byte, err error) {
	for _, table := range []byte{keys.TableQuarantine, keys.TableHeld} {
		for r, err := range t.ScanInPlace(id.Key(table), nil) {
			if err != nil {
				return nil, err
			}
			var note any = &Quarantined{}
			if table == keys.TableHeld {
				note = &Held{}
			}
			if txn.Decode(r, note) != nil {
				all = append(all, bytes.Clone(r.Key))
			}
		}
	}
	return all, nil
}
