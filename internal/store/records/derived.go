package records

import (
	"bytes"
	"encoding/binary"
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/statedigest"
	"github.com/tmshare/tmshare/internal/store/agree"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// derived collects the rows of a source that follow from its records, in the order of their keys.
// What is much is in a file.
type derived struct {
	id       keys.Source
	topicRow func(key, value []byte) error // takes the records of topics
	sorter   *agree.Rows
	mentions map[fragment.Ref]uint64 // that are not in the sorter yet
	most     int                     // so many of them at a time
	items    *statedigest.Set        // of the state digest
	indexes  []txn.Index
	entries  []txn.Collector // of the indexes
}

// maxMentions bounds the counts of mentions that are held in memory. Types and
// themes are few, but there may be as many reifiers as statements.
const maxMentions = 50_000

func newDerived(id keys.Source, file string, memory int, indexes []txn.Index, check bool) *derived {
	sorter := agree.New(file, memory, joined)
	items := statedigest.NewSet(file+"-items", sorter.Most/4)
	l := &derived{id: id, sorter: sorter, items: items, mentions: map[fragment.Ref]uint64{}, most: maxMentions,
		indexes: indexes}
	for _, index := range indexes {
		l.entries = append(l.entries, index.Collect(id, check, sorter.Add))
	}
	return l
}

func (l *derived) close() error { return errors.Join(l.sorter.Close(), l.items.Close()) }

func (l *derived) row(key, value []byte) error {
	if keys.Table(key) == keys.TableTopic {
		return l.topicRow(key, value)
	}
	return l.sorter.Add(key, value)
}

func (l *derived) mention(ref fragment.Ref) {
	if n, ok := l.mentions[ref]; ok {
		l.mentions[ref] = n + 1
	} else {
		l.mentions[fragment.Ref(strings.Clone(string(ref)))] = 1 // a copy, to free the rest of the buffer
	}
}

func (l *derived) index(t *fragment.Topic) (err error) {
	for _, entries := range l.entries {
		err = errors.Join(err, entries.Topic(t))
	}
	return err
}

func (l *derived) item(e statedigest.Entry) error {
	if err := l.items.Add(e); err != nil || len(l.mentions) < l.most {
		return err
	}
	return l.addMentions()
}

// finish makes the rows that follow from all records together.
func (l *derived) finish() error {
	err := l.addMentions()
	for _, entries := range l.entries {
		err = errors.Join(err, entries.Close())
	}
	if err != nil {
		return err
	}
	return errors.Join(statedigest.Build(l.items.Entries(), func(path, row []byte) error {
		return l.sorter.Add(nodeKey(l.id, path), row)
	}), l.items.Close())
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

// joined makes one value of two that follow under one key: mentions of the same topic are added up. Damaged records may
// claim an identifier of another topic: one has it.
func joined(key, a, b []byte) []byte {
	if keys.Table(key) == keys.TableMentions {
		return binary.BigEndian.AppendUint64(nil, binary.BigEndian.Uint64(a)+binary.BigEndian.Uint64(b))
	}
	return agree.Greater(a, b)
}

// write gives put the rows as they are stored: those of indexes packed.
func (l *derived) write(rows iter.Seq2[row, error], put func(key, value []byte) error) error {
	packers := make([]txn.Packer, len(l.indexes))
	for i, index := range l.indexes {
		packers[i] = index.Pack(l.id, put)
	}
	for r, err := range rows {
		if err == nil && keys.Table(r.Key) == keys.TableIndex {
			err = packers[l.indexOf(r.Key)].Add(r.Key, r.Value)
		} else if err == nil {
			err = put(r.Key, r.Value)
		}
		if err != nil {
			return err
		}
	}
	var err error
	for _, p := range packers {
		err = errors.Join(err, p.Close())
	}
	return err
}

// indexOf returns the number of the index of a row.
func (l *derived) indexOf(key []byte) int {
	name, _, _ := bytes.Cut(keys.Rest(key), []byte{0})
	return slices.IndexFunc(l.indexes, func(index txn.Index) bool { return index.Name == string(name) })
}
