package client

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"strconv"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/extsort"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/store"
)

// entryQueue holds the entries that a round is to handle. A walk adds the newest first; they
// come back the oldest first, each once. What is more than fits into memory goes to files, so
// that memory does not grow with the feed.
//
// The entries are sorted twice: first by their topics, which shows those that are superseded,
// then by their times.
type entryQueue struct {
	byTopic, byTime extsort.Sorter
	chunk           int
	room            func() error // if there is none on the disk of the files

	coalesce   bool   // the last entry for each topic is enough
	superseded int    // entries with a later one for the same topic
	last       string // key of the newest entry
}

// queueLimits bound what an entryQueue has in memory.
type queueLimits struct {
	memory int // bytes that are sorted, about, in each of two sorters
	chunk  int // entries that are read at a time
}

// maxChunk bounds the bytes of the entries that are read at a time.
const maxChunk = 4 << 20

// scratch is where a round keeps what a source of records says.
func (c *Client) scratch(s *store.Subscription) follow.Scratch {
	return follow.Scratch{
		Path: filepath.Join(c.Store.Scratch(), "records-"+strconv.FormatUint(uint64(s.Number), 10)), Memory: c.queues.memory,
		Room: c.Store.CheckFreeSpace, MaxEntries: c.MaxEntries,
	}
}

func (c *Client) newEntryQueue(s *store.Subscription) *entryQueue {
	path := filepath.Join(c.Store.Scratch(), "entries-"+strconv.FormatUint(uint64(s.Number), 10))
	return &entryQueue{
		byTopic: extsort.Sorter{Path: path + "-by-topic", Most: c.queues.memory}, byTime: extsort.Sorter{Path: path + "-by-time", Most: c.queues.memory},
		chunk: c.queues.chunk, room: c.Store.CheckFreeSpace, coalesce: true,
	}
}

// queuedEntry is an entry and the URL of the document in which it was found.
type queuedEntry struct {
	feeds.Entry
	Document string
}

// add adds an entry, which is older than those that were added before, or seems so.
func (q *entryQueue) add(e *queuedEntry) error {
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

// sort makes the queue ready to be read, when all entries are added.
func (q *entryQueue) sort(ctx context.Context) error {
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
	q.last = key(&e)
	return errors.Join(q.put(latest, false), q.byTopic.Close())
}

// put puts an entry into the order of time.
func (q *entryQueue) put(e queued, superseded bool) error {
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

// total returns how many entries there are, once they are sorted.
func (q *entryQueue) total() int { return q.byTime.Count() }

// chunk is some of the entries of a queue, as many as are held in memory.
type chunk struct {
	entries    []feeds.Entry
	documents  []string // in which they were found
	superseded []bool   // by a later entry for the same topic
	before     int      // how many are in the chunks before
}

// chunks iterates over the entries, the oldest first. A chunk is valid until the next one.
func (q *entryQueue) chunks() iter.Seq2[*chunk, error] {
	return func(yield func(*chunk, error) bool) {
		c, size := &chunk{}, 0
		for row, err := range q.byTime.Sorted() {
			var e queuedEntry
			if err == nil {
				err = json.Unmarshal(row.Value, &e)
			}
			if err != nil {
				yield(nil, fmt.Errorf("reading the entries of the feed back: %w", err))
				return
			}
			if size += len(row.Value); len(c.entries) == q.chunk || size > maxChunk && len(c.entries) > 0 {
				if !yield(c, nil) {
					return
				}
				c, size = &chunk{before: c.before + len(c.entries)}, len(row.Value)
			}
			c.entries, c.documents = append(c.entries, e.Entry), append(c.documents, e.Document)
			c.superseded = append(c.superseded, row.Key[len(row.Key)-1] == 1)
		}
		if len(c.entries) > 0 {
			yield(c, nil)
		}
	}
}

// close removes the files.
func (q *entryQueue) close() error { return errors.Join(q.byTopic.Close(), q.byTime.Close()) }
