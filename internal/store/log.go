package store

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/rendered"
	"github.com/tmshare/tmshare/xtm"
)

// Forms are the XTM versions in which fragments and snapshots are kept.
var Forms = rendered.Forms

// form says how the collection's records are written.
func (c *Collection) form(version xtm.Version) fragment.Form {
	return fragment.Form{Version: version, SP: c.SP, OmitInstances: c.OmitInstances}
}

// next makes the next entry of the log, in a commit whose first entry has the sequence first.
// Times are those of commits, and strictly increase whatever the clock does.
func (db *DB) next(c *Collection, first uint64, e fragment.Entry) Entry {
	now := db.now().UTC().Truncate(time.Microsecond)
	if least := c.Updated.Add(time.Microsecond); now.Before(least) {
		now = least
	}
	c.Head++
	c.Updated = now
	c.Run = db.run
	entry := Entry{Seq: c.Head, Run: c.Run, Updated: now, TopicSI: e.TopicSI, Title: shortTitle(e.Title), Deleted: e.Deleted}
	if e.Topic != e.TopicSI {
		entry.Topic = e.Topic
	}
	if first < c.Head {
		entry.Commit = first
	}
	return entry
}

// maxTitle is the number of bytes of a title that the log keeps: names can be
// much longer, and a feed has many.
const maxTitle = 1000

func shortTitle(title string) string {
	if len(title) <= maxTitle {
		return title
	}
	return strings.ToValidUTF8(title[:maxTitle], "")
}

// keyRow is the last entry of a topic key.
type keyRow struct {
	Seq     uint64
	TopicSI fragment.Ref
}

// logRows calls put with the rows of an entry that is the last of its key. data is its fragment,
// or nil.
func logRows(c *Collection, e *Entry, data *rendered.Fragment, put func(key, value []byte) error) error {
	value, err := json.Marshal(keyRow{e.Seq, e.TopicSI})
	if err != nil {
		return err
	}
	if err := put(topicKeyKey(c, fragment.Key(e.TopicSI)), value); err != nil {
		return err
	}
	return entryRows(c, e, data, put)
}

// entryRows is logRows for an entry that is in the log already.
func entryRows(c *Collection, e *Entry, data *rendered.Fragment, put func(key, value []byte) error) error {
	if data != nil {
		e.Stored, e.Apart, e.Digests = data.Gzipped != nil, data.Record != nil, data.Digests
	}
	value, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if err := put(keys.Sequence(keys.TableLog, c.Number, e.Seq), value); err != nil || data == nil {
		return err
	}
	return put(keys.Sequence(keys.TableFragment, c.Number, e.Seq), data.Pack())
}

func topicKeyKey(c *Collection, key string) []byte {
	return append(keys.Collection(keys.TableKey, c.Number), key...)
}

// The fragments feed is cut into documents of a fixed number of entries. When
// the number changes, the documents that there are keep their boundaries: a
// segment is a row of documents of the same size.

// Segment is a row of documents of the fragments feed that have the same size.
type Segment struct {
	Document uint64 // the first; documents are numbered from 1
	Seq      uint64 // of its first entry
	Size     int    // entries in each
}

func (c *Collection) segments() []Segment {
	if len(c.Segments) == 0 {
		return []Segment{{1, 1, c.DocumentSize}}
	}
	return c.Segments
}

// OpenDocument returns the number of the document that the next entry may still
// go into, or that the last one has filled.
func (c *Collection) OpenDocument() uint64 { return c.DocumentOf(max(c.Head, 1)) }

// DocumentOf returns the number of the document with the entry seq.
func (c *Collection) DocumentOf(seq uint64) uint64 {
	segments := c.segments()
	i := len(segments) - 1
	for i > 0 && segments[i].Seq > seq {
		i--
	}
	s := segments[i]
	return s.Document + (seq-s.Seq)/uint64(s.Size)
}

// Document returns the sequence of the first entry of document n, and how many
// entries it has when it is full.
func (c *Collection) Document(n uint64) (first, size uint64) {
	segments := c.segments()
	i := len(segments) - 1
	for i > 0 && segments[i].Document > n {
		i--
	}
	s := segments[i]
	return s.Seq + (n-s.Document)*uint64(s.Size), uint64(s.Size)
}

// resizeDocuments makes the documents behind the open one hold size entries.
func (c *Collection) resizeDocuments(size int) {
	segments, open := c.segments(), c.OpenDocument()
	for len(segments) > 1 && segments[len(segments)-1].Document > open {
		segments = segments[:len(segments)-1]
	}
	first, full := c.Document(open)
	if segments[len(segments)-1].Size != size {
		segments = append(segments[:len(segments):len(segments)], Segment{open + 1, first + full, size})
	}
	c.Segments = segments
}
