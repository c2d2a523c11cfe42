package collections

import (
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/checkpoint"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/xtm"
)

// Entry is an entry of the change log: one fragment.
type Entry struct {
	Seq     uint64
	Run     uint32 `json:",omitempty"` // a random number of the process that wrote the entry
	Updated time.Time
	TopicSI fragment.Ref
	Topic   fragment.Ref `json:",omitempty"` // the topic described, where its TopicSI is another
	Title   string
	Deleted bool `json:",omitempty"`
	// Tombstone has the identifiers that a deletion lists besides the TopicSI; nil: there are no others, or none that is known.
	Tombstone *fragment.Identity `json:",omitempty"`

	// Of a replica. Kept says that what the origin says with the entry is kept, as the records do not show it. Late says that it is not known, or not kept, what
	// the origin says with it: the entry shows its topic as it is.
	Kept bool `json:",omitempty"`
	Late bool `json:",omitempty"`

	// Covered says that a follower need not fetch the fragment: other entries of the commit have all that is new in it.
	Covered bool `json:",omitempty"`

	// Digest is the text of the state digest after the commit whose last entry it is; "" in others.
	Digest string `json:",omitempty"`

	Via      []string `json:",omitempty"` // entries of other logs that it comes from: URLs, or of this node [Collection.Path]
	Author   string   `json:",omitempty"` // who has made the change
	Note     string   `json:",omitempty"` // why
	Prior    uint64   `json:",omitempty"` // sequence of the entry of the key before, 0: there was none
	Modified bool     `json:",omitempty"` // the record lived before; else this is its creation
}

// Describes returns the TopicSI of the topic that the entry's fragment describes.
func (e *Entry) Describes() fragment.Ref {
	if e.Topic != "" {
		return e.Topic
	}
	return e.TopicSI
}

// Lives reports whether the key of the entry's TopicSI stands for a topic after it:
// else that is deleted, or goes on under another key.
func (e *Entry) Lives() bool { return !e.Deleted && e.Topic == "" }

// Form says how what an entry says is written, in a version of XTM.
func (c *Collection) Form(e *Entry, version xtm.Version) fragment.Form {
	return fragment.Form{Version: version, SP: c.SP, OmitInstances: c.Omits.holds(e.Seq)}
}

// Deletes returns the identifiers that the fragment of an entry that deletes lists.
func (e *Entry) Deletes() fragment.Identity {
	if e.Tombstone != nil {
		return *e.Tombstone
	}
	return fragment.Identity{SubjectIdentifiers: []fragment.Ref{e.TopicSI}}
}

// Bury notes the identifiers that a deletion lists.
func (e *Entry) Bury(id fragment.Identity) {
	if len(id.SubjectLocators) > 0 || len(id.SubjectIdentifiers) != 1 || id.SubjectIdentifiers[0] != e.TopicSI {
		e.Tombstone = &id
	}
}

// next makes the next entry of the log.
// Times are those of commits, and strictly increase whatever the clock does.
func (c *Collection) next(now time.Time, run uint32, e fragment.Entry) Entry {
	now = now.UTC().Truncate(time.Microsecond)
	if least := c.Updated.Add(time.Microsecond); now.Before(least) {
		now = least
	}
	c.Head++
	c.Updated = now
	c.Run = run
	entry := Entry{Seq: c.Head, Run: c.Run, Updated: now, TopicSI: e.TopicSI, Title: shortTitle(e.Title), Deleted: e.Deleted, Via: e.Via, Covered: e.Covered}
	switch {
	case e.Deleted:
		entry.Bury(e.Tombstone)
	case e.Topic != e.TopicSI:
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

// KeyRow is the last entry of a topic key.
type KeyRow struct {
	Seq     uint64
	TopicSI fragment.Ref
}

// putLast calls put with the rows of an entry that is the last of its key.
func putLast(c *Collection, e *Entry, put func(key, value []byte) error) error {
	value, err := json.Marshal(KeyRow{e.Seq, e.TopicSI})
	if err != nil {
		return err
	}
	if err := put(TopicKey(c, fragment.Key(e.TopicSI)), value); err != nil {
		return err
	}
	if value, err = json.Marshal(e); err != nil {
		return err
	}
	return put(c.Log().Numbered(keys.TableLog, e.Seq), value)
}

func TopicKey(c *Collection, key string) []byte {
	return append(c.Log().Key(keys.TableKey), key...)
}

// Leaf returns the leaf of an entry.
func (e *Entry) Leaf() []byte {
	return checkpoint.Leaf(e.Updated, string(e.TopicSI), !e.Deleted, e.Covered, e.Digest)
}

// Forget removes the rows of an entry that is pruned. Of the last one of a key it
// removes at most what is kept beside it.
func Forget(t *txn.Tx, c *Collection, e *Entry) error {
	var k KeyRow
	key := TopicKey(c, fragment.Key(e.TopicSI))
	if _, err := t.GetJSON(key, &k); err != nil {
		return err
	}
	if k.Seq != e.Seq {
		return deleteEntry(t, c, e.Seq)
	}
	return forgetShown(t, c, e.Seq)
}

func deleteEntry(t *txn.Tx, c *Collection, seq uint64) error {
	return errors.Join(t.Delete(c.Log().Numbered(keys.TableLog, seq)), forgetShown(t, c, seq))
}

// forgetShown removes what is kept beside an entry for those who ask what it shows.
func forgetShown(t *txn.Tx, c *Collection, seq uint64) error {
	return errors.Join(t.Delete(c.Log().Numbered(keys.TableFragment, seq)), t.Delete(c.Log().Numbered(keys.TableRecordForm, seq)))
}

// forgetSuperseded removes the entry that a topic had before the one that is
// about to be published, where it is pruned and was kept for the topic's sake.
func forgetSuperseded(t *txn.Tx, c *Collection, topicSI fragment.Ref) error {
	if c.Horizon == 0 {
		return nil
	}
	var k KeyRow
	ok, err := t.GetJSON(TopicKey(c, fragment.Key(topicSI)), &k)
	if err != nil || !ok || k.Seq > c.Horizon {
		return err
	}
	return deleteEntry(t, c, k.Seq)
}

// maxLabel is the number of characters after which labels are cut off: names can be longer than what readers take of a feed.
const maxLabel = 200

// Label returns something to show for an entry, whatever the topic is called.
func (e *Entry) Label() string {
	t := strings.TrimSpace(e.Title)
	if t == "" {
		t = string(e.TopicSI)
	}
	n := 0
	for i := range t {
		if n++; n > maxLabel {
			return t[:i] + "…"
		}
	}
	return t
}
