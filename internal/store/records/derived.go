package records

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"iter"
	"strings"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/extsort"
	"github.com/tmshare/tmshare/internal/statedigest"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/words"
)

// derived are the rows of a source that follow from its records, in the order of their keys.
// What is much is in a file.
type derived struct {
	id       keys.Source
	sorter   extsort.Sorter
	mentions map[fragment.Ref]uint64 // that the sorter does not have yet
	most     int                     // so many of them at a time
	items    *statedigest.Set        // of the state digest
	words    words.Collector
}

// maxSortMemory bounds the rows that are sorted in memory, in bytes.
const maxSortMemory = 32 << 20

// maxMentions bounds the counts of mentions that are held in memory. Types and
// themes are few, but there may be as many reifiers as statements.
const maxMentions = 50_000

func newDerived(id keys.Source, file string, memory int) *derived {
	sorter := extsort.Sorter{Path: file, Most: cmp.Or(memory, maxSortMemory)}
	items := statedigest.NewSet(file+"-items", cmp.Or(memory, maxSortMemory)/4)
	l := &derived{id: id, sorter: sorter, items: items, mentions: map[fragment.Ref]uint64{}, most: maxMentions}
	l.words = words.Collector{ID: id, Add: l.sorter.Add}
	return l
}

func (l *derived) close() error { return errors.Join(l.sorter.Close(), l.items.Close()) }

// topic notes what follows from a topic, of which record is the stored form, besides the rows of its own.
func (l *derived) topic(t *fragment.Topic, record []byte) error {
	t.Mentions(l.count)
	return errors.Join(l.boundMentions(), l.items.Add(topicEntry(t.TopicSI(), record)), l.words.Topic(t))
}

// association is topic for an association.
func (l *derived) association(a *fragment.Association, record []byte) error {
	a.Mentions(l.count)
	return errors.Join(l.boundMentions(), l.items.Add(associationEntry(a, record)))
}

// finish makes the rows that follow from all records together.
func (l *derived) finish() error {
	if err := errors.Join(l.addMentions(), l.words.Close()); err != nil {
		return err
	}
	return errors.Join(statedigest.Build(l.items.Entries(), func(path, row []byte) error {
		return l.sorter.Add(nodeKey(l.id, path), row)
	}), l.items.Close())
}

// boundMentions gives the mentions to the sorter if there are many.
func (l *derived) boundMentions() error {
	if len(l.mentions) < l.most {
		return nil
	}
	return l.addMentions()
}

func (l *derived) count(ref fragment.Ref) {
	if n, ok := l.mentions[ref]; ok {
		l.mentions[ref] = n + 1
	} else {
		l.mentions[fragment.Ref(strings.Clone(string(ref)))] = 1 // not with what stood around it
	}
}

// addMentions gives the mentions to the sorter, which may have some of the same
// topics already.
func (l *derived) addMentions() error {
	for ref, n := range l.mentions {
		if err := l.sorter.Add(l.id.LocatorKey(keys.TableMentions, ref), binary.BigEndian.AppendUint64(nil, n)); err != nil {
			return err
		}
	}
	clear(l.mentions)
	return nil
}

// combined iterates over the rows that are sorted, those of words first. Those with one key are one: mentions of the
// same topic are added up.
func (l *derived) combined() iter.Seq2[row, error] {
	return func(yield func(row, error) bool) {
		var held row
		for sorted, err := range l.sorter.Sorted() {
			r := row{Key: sorted.Key, Value: sorted.Value}
			switch {
			case err != nil:
				yield(row{}, err)
				return
			case held.Key == nil:
			case !bytes.Equal(held.Key, r.Key):
				if !yield(held, nil) {
					return
				}
			case keys.Table(held.Key) == keys.TableMentions:
				sum := binary.BigEndian.Uint64(held.Value) + binary.BigEndian.Uint64(r.Value)
				r.Value = binary.BigEndian.AppendUint64(nil, sum)
			case bytes.Compare(held.Value, r.Value) > 0: // damaged records may claim an identifier of another topic: one has it
				r.Value = held.Value
			}
			held = r
		}
		if held.Key != nil {
			yield(held, nil)
		}
	}
}
