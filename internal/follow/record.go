package follow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"time"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/internal/seq"
)

// Record is a source's statement about one of its records.
type Record struct {
	ID      string    `json:"-"`
	Title   string    `json:",omitempty"` // for people; may be ""
	Updated time.Time `json:"-"`          // last modified time, by the source's clock

	Deleted bool `json:"-"`
	// Unsure states that the record has a deletion and a change at the same time, or in unknown order: it exists if its
	// representation equals the source's statement.
	Unsure bool `json:"-"`

	// Placed states that the source gives no time of the change, or only the day. Updated is then the time of the
	// previous change in the list, if that is later than the beginning of the day.
	Placed bool `json:"-"`
	// Before is a time before which the record was changed: the end of the day that is stated, or of the
	// list. It is zero where Updated is exact, or the list is open.
	Before time.Time `json:",omitzero"`

	// Fresh states that the entry is not among those remembered of earlier readings, so that it is new.
	Fresh bool `json:"-"`

	// Anew states that the record may have another version than the held one, though its time is equal or unknown.
	Anew bool `json:"-"`

	// TopicSI and TopicSL are subject identifiers and subject locators of the record's subject, if the source states
	// them.
	TopicSI []string `json:",omitempty"`
	TopicSL []string `json:",omitempty"`

	Representations []Representation `json:",omitempty"` // in the order of the source

	// Packed are the indexes of the representations whose content is in a package. Alone states that the manifest of
	// the package is the only list of the record, so there are no other representations.
	Packed []int  `json:",omitempty"`
	Alone  bool   `json:",omitempty"`
	Pack   uint32 `json:"-"` // the number of the package; 0: none

	// Change holds further data if the record is a change in a [Log]; else nil. Its fragment is fetched even for a
	// deletion.
	Change *Change `json:"-"`
}

// Representation is one of the forms in which a record is available.
type Representation struct {
	URL    string `json:"url"`
	Type   string `json:"type,omitempty"` // media type
	Fixity Fixity `json:"fixity,omitzero"`
	Copy   bool   `json:"copy,omitempty"` // it is somebody else's: it may be out of date, or not there

	// Patch, if it is not nil, makes the content of the record's former content.
	Patch *Patch `json:"patch,omitempty"`

	// Open, if it is not nil, opens the content in a package that is already here, or
	// soon will be.
	Open func() (io.ReadCloser, error) `json:"-"`
}

// Later reports whether the answer for r has a later version than r. That version's entry will follow, unless the
// producer is restored from a backup. So the fetched content does not count as r, which must be fetched again.
// Producers other than TMShare do not state versions. If r is unsure, and has changed since, it is out of date, which
// is an error.
func (r *Record) Later(a *fetch.Answer) (later bool, err error) {
	at, unsaid := feeds.ParseTime(a.Header.Get("TMShare-Record-Updated"))
	if later = unsaid == nil && at.After(r.Updated); later && r.Unsure {
		err = fmt.Errorf("%s: %w", a.URL, errChangedSince)
	}
	return later, err
}

// Lasting returns the representations that may be kept for later rounds: those outside of packages, and without
// patches, because their base version may be gone.
func Lasting(all []Representation) []Representation {
	var lasting []Representation
	for _, r := range all {
		if r.Patch = nil; r.Open == nil {
			lasting = append(lasting, r)
		}
	}
	return lasting
}

// Source reads the changes of its records since a mark. h determines how far back it must read.
type Source interface {
	Delta(ctx context.Context, ref string, look Look, h Inventory) (*Delta, error)
}

// Look holds the parameters of one look at a source.
type Look struct {
	Mark
	Memory *Memory // nil: no earlier readings
	Asked  bool    // bypass caches
	Whole  bool    // the source is read to its end
	// IfChanged skips this if the first document is unchanged.
	IfChanged bool
}

// Fetcher returns f, set to bypass caches if the look requires it.
func (l *Look) Fetcher(f *fetch.Fetcher) *fetch.Fetcher {
	switch {
	case !l.Asked:
		return f
	case l.Memory != nil && l.Memory.Proves:
		return f.Asking()
	}
	return f.Uncached()
}

// Doubted returns the doubt of the source, nil for none.
func (l *Look) Doubted() *Doubt {
	if l.Memory == nil {
		return nil
	}
	return l.Memory.Doubt
}

// Delta is the result of a look at a source. The caller must close it.
type Delta struct {
	Unchanged bool // the source has not changed since the mark; all other fields are empty

	// Reading is the history of the source as the look shows it.
	Reading

	Whole  bool   // there are no other records
	Anew   bool   // another history: held records may be other versions of the same time
	Reason string // why the whole source was read; "" if it was not, or nothing is held yet

	Gap string // why changes since the list of all records are not known; "" if they are

	Placed bool // some changes have no time of their own

	Mark      Mark // where the next look continues, after all this is done; the old mark if nothing has changed
	Documents int  // that were read
	Ignored   int  // entries that represent no record

	Stated  *Statements // nil: no statements
	Scratch *Scratch    // for the plan

	// Log has changes to apply in the order of time, instead of statements. The source was followed to Mark before the
	// first of them; the sink moves that with each commit.
	Log *Log
	// KeepMark states that the mark stays though the changes are applied, because a page is older than the last one
	// read.
	KeepMark bool
	// AsOf is a time by the server's clock: the reading includes all earlier changes. It is zero if not known.
	AsOf time.Time

	// Supply adds the work to the plan, with the packages that have the content. nil: there are none.
	Supply func(context.Context, *Planning) error
	// Open opens the content of a record in its package. It may be nil.
	Open func(*Record)
}

// Close removes the files of the look.
func (n *Delta) Close() error { return errors.Join(n.Stated.Close(), n.Log.Close()) }

// Records iterates over the records with new statements of the source, in the order of their ids, each in its last
// state.
func (n *Delta) Records(ctx context.Context) iter.Seq2[Record, error] {
	return seq.Map(n.Stated.states(ctx), func(one *state) (Record, error) {
		if !one.news {
			return Record{}, seq.ErrSkip
		}
		return one.Record()
	})
}

// Mark is the point up to which a source has been followed. The zero Mark is its beginning.
type Mark struct {
	Feed     string    `json:"feed,omitempty"`     // the id of the feed
	Updated  time.Time `json:"updated,omitzero"`   // the latest time of all entries
	At       []string  `json:"at,omitempty"`       // records with an entry at that time, once for each
	AllAt    string    `json:"allAt,omitempty"`    // the digest of all of them, where there are more
	Complete bool      `json:"complete,omitempty"` // the feed was a complete one
	ETag     string    `json:"etag,omitempty"`     // of the document to begin with
	Document string    `json:"document,omitempty"` // which that is, where it is not always the same

	// Waiting is the number of records of the source that wait for others of it, such as the end of a transaction.
	Waiting int `json:"waiting,omitempty"`
	// Documents is the protocol's data about the documents of the source.
	Documents json.RawMessage `json:"documents,omitempty"`

	// These fields are of a [Log] only. Relied is the key of a later change, or "": if the next reading of the feed has
	// it, it also has the entries that superseded those passed over. Unsettled are the changes at Updated whose topics
	// may have changed again at that time, with the same entry: by id, the digest of the content that was read for
	// them. Digest is the state digest that the source states for the mark, or "".
	Relied    string            `json:"-"`
	Digest    string            `json:"-"`
	Unsettled map[string]string `json:"-"`

	// Begun is the target of an unfinished round: some of its records may be held. Whole states that the round was to
	// compare all held records.
	Begun *Mark `json:"begun,omitempty"`
	Whole bool  `json:"whole,omitempty"`
}

// Begin returns the mark to store before the changes of n are applied. After an interruption, the next look continues
// from m; but it checks that the source still has the history that the round has begun with. The mark of a log moves
// with its changes.
func (m Mark) Begin(n *Delta) Mark {
	switch {
	case n.Unchanged:
		return m
	case n.Log != nil:
		m = n.Mark
		m.ETag = ""
		return m
	}
	begun := n.Mark
	begun.ETag, begun.Documents, begun.Begun, begun.Whole = "", nil, nil, n.Whole
	m.ETag, m.Begun = "", &begun
	return m
}

// Known returns m, and the mark of an unfinished round.
func (m *Mark) Known() []*Mark {
	if m.Begun == nil {
		return []*Mark{m}
	}
	return []*Mark{m, m.Begun}
}

// OfAnother reports whether something is known of another feed than the one with the id.
func (m *Mark) OfAnother(feed string) bool {
	return slices.ContainsFunc(m.Known(), func(m *Mark) bool { return m.Feed != "" && m.Feed != feed })
}

// Patch makes a representation of the record's former one (Z39.99 §14.4, Patch Content).
type Patch struct {
	URL    string
	Fixity Fixity
}

// MaxPatched is the length in bytes up to which a file is patched: that is done in memory.
const MaxPatched = 4 << 20

// dropPatches removes the patches of a record, because their base version may not be held.
func (r *Record) dropPatches() {
	for i := range r.Representations {
		r.Representations[i].Patch = nil
	}
}
