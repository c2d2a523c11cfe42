package collections

import (
	"encoding/json"
	"hash/crc32"
	"slices"
	"strings"
	"time"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/checkpoint"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/rendered"
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
	Stored  bool `json:",omitempty"` // the fragment's bytes are kept; else it is rendered when asked for
	Late    bool `json:",omitempty"` // they were not kept when the entry was published, but later
	Apart   bool `json:",omitempty"` // the bytes of the record form are kept, and are others than those of the fragment

	// Rendering is the version of package rendered that has stored the bytes; 0 where none are.
	Rendering int    `json:",omitempty"`
	Checksum  uint32 `json:",omitempty"` // of the row with the bytes, see [Checksum]

	// Digest is the text of the state digest after the commit whose last entry it is; "" in others.
	Digest string `json:",omitempty"`

	Via      []string          `json:",omitempty"` // entries of other logs that it comes from: URLs, or of this node [Collection.Path]
	Author   string            `json:",omitempty"` // who has made the change
	Note     string            `json:",omitempty"` // why
	Prior    uint64            `json:",omitempty"` // sequence of the entry of the key before, 0: there was none
	Modified bool              `json:",omitempty"` // the record lived before; else this is its creation
	Digests  []rendered.Digest `json:",omitempty"` // of the record form in each of Forms, where it is stored and there are change lists
	Patches  []rendered.Digest `json:",omitempty"` // of the patch from the record form of Prior, in each of Forms; of no length where there is none
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

// RecordStored reports whether the bytes of the record form are kept; else it is rendered when
// asked for.
func (e *Entry) RecordStored() bool { return e.Stored || e.Apart }

// RecordKept reports whether the record form of an entry and its digests are there.
func (e *Entry) RecordKept() bool { return e.RecordStored() && len(e.Digests) == len(rendered.Forms) }

// PatchOf returns the digest of the patch in a form that leads to the record form of e, or nil
// where there is none.
func (e *Entry) PatchOf(version xtm.Version) *rendered.Digest {
	if i := slices.Index(rendered.Forms[:], version); i >= 0 && i < len(e.Patches) && e.Patches[i].Length > 0 {
		return &e.Patches[i]
	}
	return nil
}

// Form says how the collection's records are written.
func (c *Collection) Form(version xtm.Version) fragment.Form {
	return fragment.Form{Version: version, SP: c.SP, OmitInstances: c.OmitInstances}
}

// Renderer renders the collection's entries. Nobody asks for digests before there are change lists.
func (c *Collection) Renderer() rendered.Renderer {
	return rendered.Renderer{Form: c.Form(""), Digests: c.Changes != nil}
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
	entry := Entry{Seq: c.Head, Run: c.Run, Updated: now, TopicSI: e.TopicSI, Title: shortTitle(e.Title), Deleted: e.Deleted, Via: e.Via}
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

// KeyRow is the last entry of a topic key.
type KeyRow struct {
	Seq     uint64
	TopicSI fragment.Ref
}

// putLast calls put with the rows of an entry that is the last of its key. data is its fragment,
// or nil.
func putLast(c *Collection, e *Entry, data *rendered.Fragment, put func(key, value []byte) error) error {
	value, err := json.Marshal(KeyRow{e.Seq, e.TopicSI})
	if err != nil {
		return err
	}
	if err := put(TopicKey(c, fragment.Key(e.TopicSI)), value); err != nil {
		return err
	}
	return PutEntry(c, e, data, put)
}

// PutEntry is putLast for an entry that is in the log already.
func PutEntry(c *Collection, e *Entry, data *rendered.Fragment, put func(key, value []byte) error) error {
	var packed []byte
	if data != nil {
		packed = data.Pack()
		e.Checksum = Checksum(packed)
		e.Stored, e.Apart, e.Rendering, e.Digests = data.Gzipped != nil, data.Record != nil, rendered.Version, data.Digests
	}
	value, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if err := put(c.Log().Numbered(keys.TableLog, e.Seq), value); err != nil || data == nil {
		return err
	}
	return put(c.Log().Numbered(keys.TableFragment, e.Seq), packed)
}

// Checksum returns the CRC-32C of a row.
func Checksum(row []byte) uint32 { return crc32.Checksum(row, castagnoli) }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func TopicKey(c *Collection, key string) []byte {
	return append(c.Log().Key(keys.TableKey), key...)
}

// Leaf returns the leaf of an entry.
func (e *Entry) Leaf() []byte {
	return checkpoint.Leaf(e.Updated, string(e.TopicSI), !e.Deleted, e.Digest)
}

// Forget removes the rows of an entry that is pruned. Of the last one of a key it
// removes the fragment at most.
func Forget(t *txn.Tx, c *Collection, e *Entry) error {
	var k KeyRow
	key := TopicKey(c, fragment.Key(e.TopicSI))
	if _, err := t.GetJSON(key, &k); err != nil {
		return err
	}
	switch {
	case k.Seq != e.Seq:
		return deleteEntry(t, c, e.Seq)
	case e.Lives():
		return nil
	}
	return t.Delete(c.Log().Numbered(keys.TableFragment, e.Seq))
}

func deleteEntry(t *txn.Tx, c *Collection, seq uint64) error {
	if err := t.Delete(c.Log().Numbered(keys.TableLog, seq)); err != nil {
		return err
	}
	return t.Delete(c.Log().Numbered(keys.TableFragment, seq))
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
