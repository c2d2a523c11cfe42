package harvest

import (
	"io"
	"slices"
	"strings"
	"time"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/fetch"
)

// Record is what a source says of one of its records.
type Record struct {
	ID      string
	Title   string    // for people; may be ""
	Updated time.Time // last modified time, by the source's clock

	Deleted bool
	// Unsure says that the record is deleted and modified at the same time: it is
	// there if what represents it is.
	Unsure bool

	// Anew says that the record may have another version than the one held, though its
	// time is the same, or is not known.
	Anew bool

	// TopicSI and TopicSL are subject identifiers and subject locators of what the
	// record is about, where the source says so.
	TopicSI, TopicSL []string

	Representations []Representation // in the order of the source
}

// Representation is one of the forms in which a record is to be had.
type Representation struct {
	URL    string `json:"url"`
	Type   string `json:"type,omitempty"` // media type
	Fixity Fixity `json:"fixity,omitzero"`
	Copy   bool   `json:"copy,omitempty"` // it is somebody else's: it may be out of date, or not there

	// Patch, if it is not nil, makes the content of that which the record had before.
	Patch *Patch `json:"-"`

	// Open, if it is not nil, opens the content in a package that is already here, or
	// soon will be.
	Open func() (io.ReadCloser, error) `json:"-"`
}

// Later reports whether what was fetched of r says that it is a later version than that
// which r is. Its entry is on its way then, unless the history turns out another one: the
// producer is restored from a backup. So r is not held yet by what was fetched, and is to
// be fetched again. Producers other than ours do not say.
func (r *Record) Later(a *fetch.Answer) bool {
	at, err := feeds.ParseTime(a.Header.Get("TMShare-Record-Updated"))
	return err == nil && at.After(r.Updated)
}

// News is what a look at a source has brought.
type News struct {
	Unchanged bool // the source is as it was at the mark: there is nothing else to say

	Records []Record // of each the last state, the oldest change first
	Whole   bool     // there are no other records any more
	Anew    bool     // the history is another one: what is held may be other versions of the same time
	Reason  string   // why all of the source was read, "" where it was not or nothing is held yet

	Mark      Mark // where the next look goes on, once all this is done; where nothing has changed as it was
	Documents int  // that were read
	Ignored   int  // entries that stand for no record

	Older  []Record           // other states that were read, the oldest first: they are no news
	stated map[string]*Record // of Older and Records the last ones, once they were asked for
}

// Stated returns in what forms a version of a record is to be had, as far as the look has met
// it: a source may have corrected what it says of it.
func (n *News) Stated(id string, version time.Time) []Representation {
	if n.stated == nil {
		n.stated = map[string]*Record{}
		for _, records := range [][]Record{n.Older, n.Records} {
			for i := range records {
				n.stated[records[i].ID] = &records[i]
			}
		}
	}
	if r := n.stated[id]; r != nil && !r.Deleted && r.Updated.Equal(version) {
		return r.Representations
	}
	return nil
}

// Mark is how far a source has been followed. The zero Mark is its beginning.
type Mark struct {
	Feed     string    `json:"feed,omitempty"`     // the id of the feed
	Updated  time.Time `json:"updated,omitzero"`   // the latest time of all entries
	At       []string  `json:"at,omitempty"`       // the records with an entry at that time, once for each
	Complete bool      `json:"complete,omitempty"` // the feed was a complete one
	ETag     string    `json:"etag,omitempty"`     // of the document to begin with
	Document string    `json:"document,omitempty"` // which that is, where it is not always the same

	// Begun is where a round was to lead to that has not been finished: some of what it
	// brought may be held. Whole says of such a one that it was to compare all that is held.
	Begun *Mark `json:"begun,omitempty"`
	Whole bool  `json:"whole,omitempty"`
}

// Begin returns the mark to keep before what the news say is done. If that is interrupted,
// the next look goes on from m; but it finds out whether the history that it has begun with
// is still that of the source.
func (m Mark) Begin(n *News) Mark {
	begun := n.Mark
	begun.ETag, begun.Begun, begun.Whole = "", nil, n.Whole
	m.ETag, m.Begun = "", &begun
	return m
}

// known returns m, and what is begun.
func (m *Mark) known() []*Mark {
	if m.Begun == nil {
		return []*Mark{m}
	}
	return []*Mark{m, m.Begun}
}

// ofAnother reports whether something is known of another feed than the one with the id.
func (m *Mark) ofAnother(feed string) bool {
	return slices.ContainsFunc(m.known(), func(m *Mark) bool { return m.Feed != "" && m.Feed != feed })
}

// Holder knows which records are held.
type Holder interface {
	// Versions returns the last modified times of those of the records that are held,
	// or were found not to be had in a format that is wanted. For others nothing is in
	// the map.
	Versions(ids []string) (map[string]time.Time, error)
	// Each calls f with the id of every record that is held.
	Each(f func(id string)) error
}

// Comparer is a [Holder] that knows the bytes of what it holds.
type Comparer interface {
	// Compare compares what is held of a record with what the source states.
	Compare(id string, stated Fixity) Match
}

// Todo returns what is to be done so that h holds what the source has: records to
// fetch, and before them those to remove.
func (n *News) Todo(h Holder) ([]Record, error) {
	ids := make([]string, len(n.Records))
	for i := range n.Records {
		ids[i] = n.Records[i].ID
	}
	held, err := h.Versions(ids)
	if err != nil {
		return nil, err
	}
	var removed, modified []Record
	if n.Whole {
		there := make(map[string]bool, len(ids))
		for _, id := range ids {
			there[id] = true
		}
		err := h.Each(func(id string) {
			if !there[id] {
				removed = append(removed, Record{ID: id, Deleted: true, Updated: n.Mark.Updated})
			}
		})
		if err != nil {
			return nil, err
		}
		slices.SortFunc(removed, func(a, b Record) int { return strings.Compare(a.ID, b.ID) })
	}
	for _, r := range n.Records {
		version, isHeld := held[r.ID]
		switch {
		case r.Deleted && isHeld && (n.Whole || !version.After(r.Updated)):
			removed = append(removed, r)
		case r.Deleted:
		case !isHeld || n.Anew || r.Anew || r.Unsure || r.Updated.After(version) || n.Whole && !r.Updated.Equal(version),
			match(h, &r) == Different:
			modified = append(modified, r)
		}
	}
	return append(removed, modified...), nil
}

// match compares what is held of a record with what its best representation is stated to be.
func match(h Holder, r *Record) Match {
	if c, ok := h.(Comparer); ok && len(r.Representations) > 0 {
		return c.Compare(r.ID, r.Representations[0].Fixity)
	}
	return Unknown
}
