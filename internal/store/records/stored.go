package records

import (
	"bytes"
	"iter"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/seq"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// What is stored is in the form and the order in which fragment.Diff compares: a
// row each, and the rows of associations stand by player, as topics do by TopicSI.

// StoredTopics implements [fragment.Stored].
func (s State) StoredTopics() iter.Seq2[fragment.StoredTopic, error] {
	prefix := s.id.Key(keys.TableTopic)
	return seq.Map(s.tx.ScanInPlace(prefix, nil), func(r row) (fragment.StoredTopic, error) {
		return fragment.StoredTopic{TopicSI: r.Key[len(prefix):], Record: r.Value}, nil
	})
}

// StoredAssociations implements [fragment.Stored].
func (s State) StoredAssociations() fragment.StoredAssociations { return s.storedAssociations() }

func (s State) storedAssociations() *associationWalk {
	w := &associationWalk{State: s, prefix: len(s.id.Key(keys.TableAssociation)), givenRecords: map[string]bool{}}
	w.begin(nil)
	return w
}

// associationWalk reads the rows of all associations once.
type associationWalk struct {
	State
	prefix int // length of the common key prefix
	next   func() (row, error, bool)
	stop   func()

	row          row // that is looked at, if more
	err          error
	more         bool
	given        bool            // the row was given out
	skipped      int             // rows of classes, one after the other
	givenRecords map[string]bool // keys of rows that are there, with large associations

	association fragment.StoredAssociation
}

// begin seeks the first row from a key on.
func (w *associationWalk) begin(from []byte) {
	w.next, w.stop = iter.Pull2(w.tx.ScanInPlace(w.id.Key(keys.TableAssociation), from))
	w.step()
}

func (w *associationWalk) step() { w.row, w.err, w.more = w.next() }

// Close implements [fragment.StoredAssociations].
func (w *associationWalk) Close() { w.stop() }

// Next implements [fragment.StoredAssociations].
func (w *associationWalk) Next(player fragment.Ref) (*fragment.StoredAssociation, error) {
	part, key, err := w.find(player)
	if key == nil || err != nil {
		return nil, err
	}
	w.given = true
	w.association = fragment.StoredAssociation{Part: part, Key: fragment.AssociationKey(key)}
	if !elsewhere(w.row) {
		w.association.Record, err = w.stored(w.row, part)
		// it comes with its least player, if that exists
	} else if recordKey := string(w.recordKey(w.row, part)); !w.givenRecords[recordKey] {
		_, err = w.stored(w.row, part)
		w.givenRecords[recordKey] = true
	}
	return &w.association, err
}

// class returns the record of the next type-instance association of an instance, or nil.
func (w *associationWalk) class(instance fragment.Ref) ([]byte, error) {
	part, key, err := w.find(instance)
	if key == nil || err != nil || part != fragment.AsInstance {
		return nil, err
	}
	w.given = true
	return w.stored(w.row, part)
}

// find advances to the next row of the player. key is nil if there is none.
func (w *associationWalk) find(player fragment.Ref) (part fragment.Part, key []byte, err error) {
	if w.given {
		w.given = false
		w.step()
	}
	for w.more && w.err == nil {
		holder, part, key, ok := splitPlaying(w.row.Key[w.prefix:])
		switch {
		case !ok:
			return 0, nil, txn.Corrupt("association", w.row.Key, fragment.ErrCorrupt)
		case string(holder) > string(player):
			return 0, nil, nil
		case part == fragment.AsType:
			w.skip(holder)
		case string(holder) < string(player):
			w.skipped = 0
			w.step()
		default:
			w.skipped = 0
			return part, key, nil
		}
	}
	return 0, nil, w.err
}

// fewInstances is the number of rows of a class up to which passing over them singly costs less than seeking.
const fewInstances = 100

// skip passes over a row of a class, or over all that are left of it.
func (w *associationWalk) skip(class []byte) {
	if w.skipped++; w.skipped < fewInstances {
		w.step()
		return
	}
	w.skipped = 0
	behind := w.id.PlayingPrefix(fragment.Ref(class), fragment.AsType+1)
	w.stop()
	w.begin(behind)
}

// splitPlaying parses the key of an association row, after the source.
func splitPlaying(key []byte) (player []byte, part fragment.Part, digest []byte, ok bool) {
	end := len(key) - len(fragment.AssociationKey{}) - 2
	if end < 0 || key[end] != 0 {
		return nil, 0, nil, false
	}
	return key[:end], fragment.Part(key[end+1]), key[end+2:], true
}

// elsewhere reports whether an association row only has the place of the record.
func elsewhere(r row) bool { return len(r.Value) > 0 && r.Value[0] == rowElsewhere }

// recordKey returns the key of the row with the record of an association row that has it
// elsewhere.
func (s State) recordKey(r row, part fragment.Part) []byte {
	return s.id.AssociationKey(fragment.Ref(r.Value[1:]), part,
		fragment.AssociationKey(r.Key[len(r.Key)-len(fragment.AssociationKey{}):]))
}

// stored returns the record of a row, which is elsewhere for large associations.
func (s State) stored(r row, part fragment.Part) ([]byte, error) {
	if elsewhere(r) {
		r.Key = s.recordKey(r, part)
		var err error
		if r.Value, err = s.tx.Get(r.Key); err != nil {
			return nil, err
		}
	}
	record, ok := bytes.CutPrefix(r.Value, []byte{rowInline})
	if !ok {
		return nil, txn.Corrupt("association", r.Key, fragment.ErrCorrupt)
	}
	return record, nil
}

// SubjectIdentifiers implements [fragment.Identifying].
func (s State) SubjectIdentifiers(prefix string) iter.Seq2[fragment.SubjectIdentifier, error] {
	return func(yield func(fragment.SubjectIdentifier, error) bool) {
		for _, table := range []byte{keys.TableTopic, keys.TableIdentifier} {
			start := len(s.id.Key(table))
			for r, err := range s.tx.ScanInPlace(s.id.LocatorKey(table, fragment.Ref(prefix)), nil) {
				var si fragment.SubjectIdentifier
				if err == nil {
					si = fragment.SubjectIdentifier{Locator: fragment.Ref(r.Key[start:]), IsTopicSI: table == keys.TableTopic}
				}
				if !yield(si, err) || err != nil {
					return
				}
			}
		}
	}
}
