// Package entries holds the entries of a feed that a round is to handle.
package entries

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/extsort"
)

// Queue holds the entries that a round is to handle. A walk adds the newest first; they
// come back the oldest first, each once. What is more than fits into memory goes to files, so
// that memory does not grow with the feed.
//
// The entries are sorted twice: first by their topics, which shows those that are superseded,
// then by their times.
type Queue struct {
	byTopic, byTime extsort.Sorter
	chunk           int
	room            func() error // if there is none on the disk of the files

	coalesce   bool   // the last entry for each topic is enough
	superseded int    // entries with a later one for the same topic
	last       string // key of the newest entry
}

// Limits bound what a Queue has in memory.
type Limits struct {
	Memory int // bytes that are sorted, about, in each of two sorters
	Chunk  int // entries that are read at a time
}

// maxChunk bounds the bytes of the entries that are read at a time.
const maxChunk = 4 << 20

// New returns an empty queue. Its files begin with path, and need room.
func New(path string, l Limits, room func() error) *Queue {
	return &Queue{
		byTopic: extsort.Sorter{Path: path + "-by-topic", Most: l.Memory}, byTime: extsort.Sorter{Path: path + "-by-time", Most: l.Memory},
		chunk: l.Chunk, room: room, coalesce: true,
	}
}

// Entry is an entry and the URL of the document in which it was found.
type Entry struct {
	feeds.Entry
	Document string
}

// Add adds an entry, which is older than those that were added before, or seems so.
func (q *Queue) Add(e *Entry) error {
	// Servers that publish closing entries show it by stating the state of every entry.
	q.coalesce = q.coalesce && e.State != "" && len(e.TopicSI) == 1
	place := q.byTopic.Count()
	if place%10_000 == 9_999 {
		if err := q.room(); err != nil {
			return err
		}
	}
	value, err := json.Marshal(e)
	if err != nil {
		return err
	}
	// XML has no character 0.
	key := append(namedTopic(&e.Entry), 0)
	key = extsort.AppendTime(key, e.Updated)
	key = append(append(key, e.ID...), 0)
	return q.byTopic.Add(binary.BigEndian.AppendUint64(key, uint64(place)), value)
}

// namedTopic returns what tells the topic of an entry from others, nothing where the entry
// names none.
func namedTopic(e *feeds.Entry) []byte {
	for i, names := range [][]string{e.TopicSI, e.TopicSL, e.TopicII} {
		if len(names) > 0 {
			return append([]byte{byte('1' + i)}, names[0]...)
		}
	}
	return nil
}

// queued is an entry by its topic.
type queued struct {
	topic []byte
	order []byte // by time, then by place: of one time that is the later one which came first
	value []byte
}

// Sort makes the queue ready to be read, when all entries are added.
func (q *Queue) Sort(ctx context.Context) error {
	var latest, newest queued // of the topic, and of all
	var before []byte
	for row, err := range q.byTopic.Sorted() {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		named := row.Key[:len(row.Key)-8] // the topic, the time and the id
		if bytes.Equal(named, before) {
			continue // it was in several documents
		}
		before = named
		topic, rest, _ := bytes.Cut(row.Key, []byte{0})
		place := binary.BigEndian.Uint64(row.Key[len(named):])
		e := queued{topic, binary.BigEndian.AppendUint64(bytes.Clone(rest[:extsort.TimeSize]), ^place), row.Value}
		if bytes.Compare(e.order, newest.order) > 0 {
			newest = e
		}
		switch {
		case len(topic) == 0 || !bytes.Equal(topic, latest.topic):
			err = q.put(latest, false)
			latest = e
		case bytes.Compare(e.order, latest.order) > 0:
			err = q.put(latest, true)
			latest = e
		default:
			err = q.put(e, true)
		}
		if err != nil {
			return err
		}
	}
	if newest.value == nil {
		return ctx.Err()
	}
	var e feeds.Entry
	if err := json.Unmarshal(newest.value, &e); err != nil {
		return err
	}
	q.last = Key(&e)
	return errors.Join(q.put(latest, false), q.byTopic.Close())
}

// put puts an entry into the order of time.
func (q *Queue) put(e queued, superseded bool) error {
	if e.value == nil {
		return nil
	}
	mark := byte(0)
	if superseded {
		mark = 1
		q.superseded++
	}
	return q.byTime.Add(append(e.order, mark), e.value)
}

// Added returns how many were added.
func (q *Queue) Added() int { return q.byTopic.Count() }

// LastSuffices reports whether the last entry for each topic is enough. It is known once they
// are sorted.
func (q *Queue) LastSuffices() bool { return q.coalesce }

// Superseded returns how many entries have a later one for the same topic.
func (q *Queue) Superseded() int { return q.superseded }

// Newest returns the key of the newest entry.
func (q *Queue) Newest() string { return q.last }

// Total returns how many entries there are, once they are sorted.
func (q *Queue) Total() int { return q.byTime.Count() }

// Chunk is some of the entries of a queue, as many as are held in memory.
type Chunk struct {
	Entries    []feeds.Entry
	Documents  []string // in which they were found
	Superseded []bool   // by a later entry for the same topic
	Before     int      // how many are in the chunks before
}

// Chunks iterates over the entries, the oldest first. A chunk is valid until the next one.
func (q *Queue) Chunks() iter.Seq2[*Chunk, error] {
	return func(yield func(*Chunk, error) bool) {
		c, size := &Chunk{}, 0
		for row, err := range q.byTime.Sorted() {
			var e Entry
			if err == nil {
				err = json.Unmarshal(row.Value, &e)
			}
			if err != nil {
				yield(nil, fmt.Errorf("reading the entries of the feed back: %w", err))
				return
			}
			if size += len(row.Value); len(c.Entries) == q.chunk || size > maxChunk && len(c.Entries) > 0 {
				if !yield(c, nil) {
					return
				}
				c, size = &Chunk{Before: c.Before + len(c.Entries)}, len(row.Value)
			}
			c.Entries, c.Documents = append(c.Entries, e.Entry), append(c.Documents, e.Document)
			c.Superseded = append(c.Superseded, row.Key[len(row.Key)-1] == 1)
		}
		if len(c.Entries) > 0 {
			yield(c, nil)
		}
	}
}

// Close removes the files.
func (q *Queue) Close() error { return errors.Join(q.byTopic.Close(), q.byTime.Close()) }

// Key tells entries apart by id and time: other servers repeat ids.
func Key(e *feeds.Entry) string { return e.ID + "\x00" + feeds.FormatTime(e.Updated) }
