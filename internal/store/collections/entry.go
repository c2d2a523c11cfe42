package collections

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/checkpoint"
	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/rendered"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/internal/titles"
	"github.com/tmshare/tmshare/internal/words"
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
	// Tombstone has the identifiers of a deletion besides the TopicSI; nil: none, or not known.
	Tombstone *fragment.Identity `json:",omitempty"`

	// Kept and Late are for replicas. Kept states that the origin's fragment is stored, because the records do not show
	// it. Late states that the origin's fragment is unknown or not stored: the entry shows the present topic.
	Kept bool `json:",omitempty"`
	Late bool `json:",omitempty"`

	// Covered states that a follower need not fetch the fragment: other entries of the commit have its changes.
	Covered bool `json:",omitempty"`

	// Commit is the number of the entry's commit, as the origin of a replica states it. Rendering is the version of the
	// origin's output format of the fragment; 0 is [rendered.First].
	Commit, Rendering uint64 `json:",omitempty"`

	// Omits states that the origin of a replica leaves the instances out of the fragment.
	Omits bool `json:",omitempty"`

	// Digest is the text of the state digest after a commit, in its last entry; "" in others.
	Digest string `json:",omitempty"`

	// the source entries in other logs: URLs, or [Collection.Path] for this node
	Via      []string `json:",omitempty"`
	Author   string   `json:",omitempty"` // who has made the change
	Note     string   `json:",omitempty"` // why
	Prior    uint64   `json:",omitempty"` // sequence of the entry of the key before, 0: there was none
	Modified bool     `json:",omitempty"` // the record lived before; else this is its creation

	// Untitled states that no title is stored: the title is that of the topic in the entry's state.
	Untitled bool `json:"-"`
}

// Describes returns the TopicSI of the topic that the entry's fragment describes.
func (e *Entry) Describes() fragment.Ref {
	if e.Topic != "" {
		return e.Topic
	}
	return e.TopicSI
}

// Lives reports whether the key of the entry's TopicSI identifies a topic after it; otherwise the topic is deleted, or
// has another key.
func (e *Entry) Lives() bool { return !e.Deleted && e.Topic == "" }

// Form returns the output format of an entry's fragment, in a version of XTM.
func (c *Collection) Form(e *Entry, version xtm.Version) fragment.Form {
	return fragment.Form{Version: version, SP: c.SP, OmitInstances: c.LeavesOut(e)}
}

// LeavesOut reports whether the fragment of an entry leaves out the instances of a class.
func (c *Collection) LeavesOut(e *Entry) bool { return e.Omits || c.Omits.holds(e.Seq) }

// RenderedBy returns the version of the output format of the entry's fragment.
func (e *Entry) RenderedBy() uint64 { return cmp.Or(e.Rendering, rendered.First) }

// CanBeWritten reports whether this program supports that version.
func (e *Entry) CanBeWritten() bool { return rendered.Knows(e.RenderedBy()) }

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

// next returns the next entry of the log. Times are those of commits, and strictly increase, whatever the clock shows.
func (c *Collection) next(now time.Time, run uint32, e fragment.Entry) Entry {
	now = now.UTC().Truncate(time.Microsecond)
	if least := c.Updated.Add(time.Microsecond); now.Before(least) {
		now = least
	}
	c.Head++
	c.Updated = now
	c.Run = run
	entry := Entry{Seq: c.Head, Run: c.Run, Updated: now, TopicSI: e.TopicSI, Title: shortTitle(e.Title),
		Deleted: e.Deleted, Via: e.Via, Covered: e.Covered}
	switch {
	case e.Deleted:
		entry.Bury(e.Tombstone)
	case e.Topic != e.TopicSI:
		entry.Topic = e.Topic
	}
	return entry
}

// SetTitle sets the title of an entry without a stored one, shortened as in the log.
func (e *Entry) SetTitle(title string) { e.Title, e.Untitled = shortTitle(title), false }

// Languages returns the preferred languages of the collection's titles.
func (c *Collection) Languages() titles.Languages { return titles.Accepted(c.Language) }

// FirstLanguages returns the languages of the titles of loaded entries, which later settings do not change.
func (c *Collection) FirstLanguages() titles.Languages { return titles.Accepted(c.Beginning.Language) }

// Entitle sets the titles of the entries of a change in the language of the collection: of those that delete topics,
// from the state before, or of all others, from the state after.
func (c *Collection) Entitle(
	entries []fragment.Entry, deleting bool, title func(topicSI fragment.Ref, languages ...string) (string, error),
) (err error) {
	languages := c.Languages()
	for i := range entries {
		e := &entries[i]
		if e.Deleted == deleting && err == nil {
			e.Title, err = title(cmp.Or(e.Topic, e.TopicSI), languages...)
		}
	}
	return err
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

// putLast calls put with the rows of an entry that is the last of its key.
func putLast(c *Collection, e *Entry, put func(key, value []byte) error) error {
	if err := put(TopicKey(c, e.TopicSI), LastRow(e.Seq)); err != nil {
		return err
	}
	value, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return put(c.Log().Numbered(keys.TableLog, e.Seq), value)
}

// TopicKey returns the key of the row with the sequence of the last entry of a TopicSI.
func TopicKey(c *Collection, topicSI fragment.Ref) []byte {
	return hashKey(c, fragment.KeyHash(topicSI))
}

func hashKey(c *Collection, h fragment.Hash) []byte {
	return append(c.Log().Key(keys.TableKey), h[:]...)
}

// LastRow returns the value of such a row.
func LastRow(seq uint64) []byte { return binary.AppendUvarint(nil, seq) }

// InLastRow returns the sequence that such a row states.
func InLastRow(r kv.Row) (seq uint64, err error) {
	seq, n := binary.Uvarint(r.Value)
	if n <= 0 || n != len(r.Value) || seq == 0 {
		return 0, txn.Corrupt("key", r.Key, errors.New("it states no sequence"))
	}
	return seq, nil
}

// LastOf returns the sequence of the last entry of a TopicSI, 0 for none.
func LastOf(t *txn.Tx, c *Collection, topicSI fragment.Ref) (uint64, error) {
	return lastIn(t, TopicKey(c, topicSI))
}

func lastIn(t *txn.Tx, key []byte) (uint64, error) {
	row, err := t.Get(key)
	if row == nil || err != nil {
		return 0, err
	}
	return InLastRow(kv.Row{Key: key, Value: row})
}

// Leaf returns the leaf of an entry.
func (e *Entry) Leaf() []byte {
	return checkpoint.Leaf(e.Updated, string(e.TopicSI), !e.Deleted, e.Covered, e.Digest)
}

// forgetShown removes the stored fragment of an entry.
func forgetShown(t *txn.Tx, c *Collection, seq uint64) error {
	return t.Delete(c.Log().Numbered(keys.TableFragment, seq))
}

// Prune removes the entries after the horizon up to a sequence, except the last ones of their keys, and moves the
// horizon there. It removes the data stored with each of them.
func Prune(t *txn.Tx, c *Collection, to uint64) error {
	var gone []uint64
	next := c.Horizon + 1
	for e, err := range Kept(t, c, next) {
		if err != nil {
			return err
		}
		if e.Seq != next {
			break
		}
		last, err := LastOf(t, c, e.TopicSI)
		if err == nil && last != e.Seq {
			gone = append(gone, e.Seq)
		}
		if err = errors.Join(err, forgetShown(t, c, e.Seq)); err != nil {
			return err
		}
		c.HorizonTime, c.HorizonRun = e.Updated, e.Run
		if next++; next > to {
			break
		}
	}
	if next <= to {
		return noEntry(c, next)
	}
	c.Horizon = to
	return remove(t, c, gone)
}

// remove removes entries, of which the sequences ascend.
func remove(t *txn.Tx, c *Collection, gone []uint64) error {
	first := 0
	for first < len(gone) && c.isFirst(gone[first]) {
		first++
	}
	for _, seq := range gone[first:] {
		if err := errors.Join(t.Delete(c.Log().Numbered(keys.TableLog, seq)), forgetShown(t, c, seq)); err != nil {
			return err
		}
	}
	return removeFirst(t, c, gone[:first])
}

func noEntry(c *Collection, seq uint64) error {
	return fmt.Errorf("%w: entry %d of collection %q", txn.ErrNotFound, seq, c.Name)
}

// maxLabel is the number of characters of labels, because names can be longer than feed readers accept.
const maxLabel = 200

// Named reports whether the title of an entry is a name.
func (e *Entry) Named() bool {
	return strings.TrimSpace(e.Title) != "" && iri.Shown(e.Title) != e.TopicSI.String()
}

// Label returns a text to show for an entry, even if the topic has no name.
func (e *Entry) Label() string {
	if !e.Named() {
		return titles.Closed(titles.Cut(words.Short(string(e.TopicSI)), maxLabel))
	}
	return titles.Closed(titles.Cut(strings.TrimSpace(e.Title), maxLabel))
}
