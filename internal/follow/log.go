package follow

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/extsort"
)

// Change holds the data of an entry of a fragments feed that other records do not have.
type Change struct {
	State             feeds.State `json:",omitempty"` // "" if not stated
	SDShare           bool        `json:",omitempty"` // see [feeds.Entry]
	TopicII           []string    `json:",omitempty"` // item identifiers of the topic
	Digest            string      `json:",omitempty"` // the state digest that the entry states
	Author            string      `json:",omitempty"`
	Note              string      `json:",omitempty"` // the entry's summary
	Via               []string    `json:",omitempty"` // URLs of entries of other feeds that it comes from
	Covered           bool        `json:",omitempty"` // other entries have all that is new in it
	Commit, Rendering uint64      `json:",omitempty"` // see [feeds.Entry]
	Omits             bool        `json:",omitempty"` // likewise
	RDF               bool        `json:",omitempty"` // it has links to the fragment in RDF
	Document          string      // the URL of the document in which the entry stands

	Fragment []byte `json:"-"` // the fragment, where the document has it, as [feeds.Entry] has it

	Superseded bool `json:"-"` // a later change is of the same topic, and not covered
	Passed     bool `json:"-"` // it is not fetched: that later change, or those that cover it, have all its content
	Late       bool `json:"-"` // it could not be had in its turn: later changes were done before it
}

// ChangeOf returns the record for an entry of a fragments feed.
func ChangeOf(e *feeds.Entry, document string) *Record {
	return &Record{
		ID: e.ID, Title: e.Title, Updated: e.Updated, TopicSI: e.TopicSI, TopicSL: e.TopicSL,
		Change: &Change{State: e.State, SDShare: e.SDShare, TopicII: e.TopicII, Digest: e.Digest, Author: e.Author,
			Note: e.Summary, Via: via(e), Commit: e.Commit, Rendering: e.Rendering, Omits: e.Omits, RDF: InRDF(e),
			Document: document, Fragment: e.Fragment},
	}
}

// InRDF reports whether an entry has links to RDF.
func InRDF(e *feeds.Entry) bool {
	return slices.ContainsFunc(e.Links, func(l feeds.Link) bool {
		return l.Rel == "alternate" && l.Type == feeds.MediaTypeTurtle
	})
}

// via returns the sources of an entry (RFC 4287 §4.2.7.2, The "rel" Attribute).
func via(e *feeds.Entry) (urls []string) {
	for i := range e.Links {
		if e.Links[i].Rel == "via" {
			urls = append(urls, e.Links[i].Href)
		}
	}
	return urls
}

// passed reports whether the record is a change that need not be fetched.
func (r *Record) passed() bool { return r.Change != nil && r.Change.Passed }

// Topic returns the name of the topic of a record, for people.
func (r *Record) Topic() string {
	if names := r.topicNames(); len(names) > 0 {
		return names[0]
	}
	return r.ID
}

// topicNames returns the identifiers of the kind that identifies the topic; none if there is none.
func (r *Record) topicNames() []string {
	all := [][]string{r.TopicSI, r.TopicSL}
	if r.Change != nil {
		all = append(all, r.Change.TopicII)
	}
	for _, names := range all {
		if len(names) > 0 {
			return names
		}
	}
	return nil
}

// Log has changes to apply in the order of time. A source adds the newest first; the log returns the oldest first, each
// once. Changes beyond a limit of memory are in files, so that memory does not grow with the feed.
//
// The changes are sorted twice: first by topic, to find superseded ones, then by time.
type Log struct {
	url             string // of the source
	scratch         *Scratch
	byTopic, byTime *extsort.Sorter

	coalesce   bool   // the last change of each topic is enough
	superseded int    // changes with a later one of the same topic
	newest     string // key of the newest change
}

// NewLog returns an empty log, of the source at a URL.
func NewLog(url string, s *Scratch) *Log {
	return &Log{url: url, scratch: s, byTopic: s.Sorter(), byTime: s.Sorter(), coalesce: true}
}

// logged is a change in a row.
type logged struct {
	Record
	ID      string
	Updated time.Time
	Change  *Change
}

// What becomes of a change.
const (
	isDone byte = iota
	isSuperseded
	isCovered
)

// rowOf returns the value of the row of a change: whether it is covered, the length of its fragment, that, and the rest
// as JSON.
func rowOf(r *Record) ([]byte, error) {
	rest, err := json.Marshal(logged{*r, r.ID, r.Updated, r.Change})
	inline := r.Change.Fragment
	value := append(make([]byte, 0, 1+binary.MaxVarintLen64+len(inline)+len(rest)), isDone)
	if r.Change.Covered {
		value[0] = isCovered
	}
	value = append(binary.AppendUvarint(value, uint64(len(inline))), inline...)
	return append(value, rest...), err
}

// split divides the value of a row.
func split(value []byte) (fate byte, inline, rest []byte) {
	length, n := binary.Uvarint(value[1:])
	n++
	return value[0], value[n : n+int(length)], value[n+int(length):]
}

// recordOf returns the change of a row.
func recordOf(value []byte) (Record, error) {
	var one logged
	fate, inline, rest := split(value)
	if err := json.Unmarshal(rest, &one); err != nil {
		return Record{}, err
	}
	r := one.Record
	if r.ID, r.Updated, r.Change = one.ID, one.Updated, one.Change; len(inline) > 0 {
		r.Change.Fragment = inline
	}
	r.Change.Superseded, r.Change.Passed = fate == isSuperseded, fate == isCovered
	return r, nil
}

// Add adds a change, which must not be later than those added before. It fails if there are too many.
func (l *Log) Add(r *Record) error {
	// Servers that publish closing entries show it by stating the state of every entry.
	l.coalesce = l.coalesce && r.Change.State != "" && len(r.TopicSI) == 1
	place := l.byTopic.Count()
	if err := l.scratch.Admit(l.url, place); err != nil {
		return err
	}
	value, err := rowOf(r)
	if err != nil {
		return err
	}
	// XML has no character 0.
	key := append(r.topicKey(), 0)
	key = extsort.AppendTime(key, r.Updated)
	key = append(append(key, r.ID...), 0)
	return l.byTopic.Add(binary.BigEndian.AppendUint64(key, uint64(place)), value)
}

// topicKey returns the identity of the topic of a change; nothing if the change names none.
func (r *Record) topicKey() []byte {
	names := r.topicNames()
	switch {
	case len(names) == 0:
		return nil
	case len(r.TopicSI) > 0:
		return append([]byte{'1'}, names[0]...)
	case len(r.TopicSL) > 0:
		return append([]byte{'2'}, names[0]...)
	}
	return append([]byte{'3'}, names[0]...)
}

// queued is a change by its topic.
type queued struct {
	topic []byte
	order []byte // by time, then by place: of one time that is the later one which came first
	value []byte
}

// Sort makes the log ready to be read, when all changes are added.
func (l *Log) Sort(ctx context.Context) error {
	var latest, newest queued // of the topic, and of all
	var before []byte
	for row, err := range l.byTopic.Sorted() {
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
		q := queued{topic, binary.BigEndian.AppendUint64(bytes.Clone(rest[:extsort.TimeSize]), ^place), row.Value}
		if bytes.Compare(q.order, newest.order) > 0 {
			newest = q
		}
		switch {
		case q.value[0] == isCovered: // it supersedes no other
			err = l.put(q, isCovered)
		case len(topic) == 0 || !bytes.Equal(topic, latest.topic):
			err = l.put(latest, isDone)
			latest = q
		case bytes.Compare(q.order, latest.order) > 0:
			err = l.put(latest, isSuperseded)
			latest = q
		default:
			err = l.put(q, isSuperseded)
		}
		if err != nil {
			return err
		}
	}
	if newest.value == nil {
		return ctx.Err()
	}
	one, err := recordOf(newest.value)
	if err != nil {
		return err
	}
	l.newest = Key(one.ID, one.Updated)
	return errors.Join(l.put(latest, isDone), l.byTopic.Close())
}

// put puts a change into the order of time.
func (l *Log) put(q queued, fate byte) error {
	if q.value == nil {
		return nil
	}
	if fate == isSuperseded {
		l.superseded++
	}
	if !l.coalesce && fate == isCovered {
		fate = isDone
	}
	if l.coalesce && fate != isDone { // its fragment is of no use
		_, _, rest := split(q.value)
		q.value = append([]byte{fate, 0}, rest...)
	}
	q.value[0] = fate
	return l.byTime.Add(q.order, q.value)
}

// Passes reports whether some changes are passed over, because a later one of the same topic is
// enough. It is known once they are sorted.
func (l *Log) Passes() bool { return l.coalesce && l.superseded > 0 }

// Newest returns the key of the newest change.
func (l *Log) Newest() string { return l.newest }

// Total returns the number of changes, after sorting.
func (l *Log) Total() int { return l.byTime.Count() }

// chunks iterates over the changes, the oldest first, some at a time.
func (l *Log) chunks() iter.Seq2[[]Record, error] {
	return l.scratch.chunks(l.byTime, func(row extsort.Row) (Record, error) {
		r, err := recordOf(row.Value)
		if err == nil {
			r.Change.Passed = r.Change.Passed || r.Change.Superseded && l.coalesce
		}
		return r, err
	})
}

// Close removes the files. l may be nil.
func (l *Log) Close() error {
	if l == nil {
		return nil
	}
	return errors.Join(l.byTopic.Close(), l.byTime.Close())
}

// Key identifies an entry by id and time, because some servers repeat ids.
func Key(id string, updated time.Time) string { return id + "\x00" + feeds.FormatTime(updated) }
