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

// next makes the next entry of the log. Times are those of commits, and
// strictly increase whatever the clock does.
func (db *DB) next(c *Collection, e fragment.Entry) Entry {
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
