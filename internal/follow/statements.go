package follow

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"time"

	"github.com/tmshare/tmshare/internal/extsort"
)

// Statements are the statements of a look at a source. They may be too many for the memory.
type Statements struct {
	url     string // of the source
	scratch *Scratch
	rows    *extsort.Sorter // by record
	Rules   Rules
}

// NewStatements returns no statements, of the source at a URL.
func NewStatements(url string, s *Scratch) *Statements {
	return &Statements{url: url, scratch: s, rows: s.Sorter()}
}

// Add adds a statement. It fails if there are too many.
func (s *Statements) Add(one *Statement) error {
	if err := s.scratch.Admit(s.url, s.rows.Count()); err != nil {
		return err
	}
	return s.rows.Add(one.byID(), one.value())
}

// Count returns the number of statements.
func (s *Statements) Count() int { return s.rows.Count() }

// Admit fails where a look at the source at a URL may have no more than so many statements.
func (s *Scratch) Admit(url string, n int) error {
	if most := cmp.Or(s.MaxEntries, defaultMaxEntries); n >= most {
		return fmt.Errorf(
			"%s: the source has more than %d entries that are new: either its server makes them up, or a higher "+
				"--max-entries takes them", url, most)
	}
	if n%10_000 == 9_999 && s.CheckSpace != nil {
		return s.CheckSpace()
	}
	return nil
}

// Close removes the files. s may be nil.
func (s *Statements) Close() error {
	if s == nil {
		return nil
	}
	return s.rows.Close()
}

// Rules are the rules for combining the statements about a record.
type Rules struct {
	// Unsure: a record that is changed and deleted at one time exists if its representation does. Otherwise the later
	// place counts.
	Unsure bool
	// Since has the statements handled at the time of the mark, which are no news. nil: all are news.
	Since *Seen
}

// state combines the statements of a source about a record.
type state struct {
	Statement            // the last new one, if any
	older     *Statement // the last one that is not new
	news      bool
	held      bool
	fresh     *Statement // one that is not remembered of earlier readings
	// a new change follows a deletion with a later time: a clock was set back, or the list is out of order
	disputed bool
	changes  int // number of changes
	again    int // number of these at the time of the mark
	last     int // number of changes at the time of the last one
}

// add adds the next statement about the record.
func (s *state) add(one Statement, by *Rules) {
	switch one.Kind {
	case kindHeld:
		s.held = true
		return
	case KindOlder:
		s.older = &one
		return
	case KindChanged:
		s.changes++
		switch {
		case !s.news || one.Updated.After(s.Updated):
			s.last = 1
		case one.Updated.Equal(s.Updated):
			s.last++
		}
		if by.Since != nil && one.Updated.Equal(by.Since.at) {
			s.again++
		}
	}
	if one.Fresh {
		s.fresh = &one
	}
	switch {
	case !s.news || one.Updated.After(s.Updated):
		s.Statement, s.news = one, true
	case one.Updated.Before(s.Updated):
	case by.Unsure:
		unsure := s.Unsure || s.Deleted != one.Deleted
		if s.Deleted || !one.Deleted {
			s.Statement = one
		}
		s.Unsure, s.Deleted = unsure, s.Deleted && !unsure
	default:
		s.Statement = one
	}
}

// end combines all statements.
func (s *state) end(by *Rules) {
	s.disputed = s.news && !s.Deleted && s.older != nil && s.older.Deleted && s.older.Updated.After(s.Updated)
	if s.fresh != nil && !s.Fresh { // the time of the last one was wrong, or that of the fresh one is
		s.Anew, s.Unsure = true, s.Unsure || s.fresh.Deleted
	}
	if by.Since == nil || s.Kind != KindChanged {
		return
	}
	// Two changes at one time are distinguished only by their number.
	s.Anew = s.Updated.After(by.Since.at) && s.last > 1 || s.Updated.Equal(by.Since.at) && by.Since.isNew(s.ID, s.again)
	s.skipped = s.changes-by.Since.times[s.ID] > 1
}

// states iterates over the records with statements, in the order of their ids.
func (s *Statements) states(ctx context.Context) iter.Seq2[*state, error] {
	return func(yield func(*state, error) bool) {
		if s == nil {
			return
		}
		var one *state
		pass := func() bool {
			if one == nil {
				return true
			}
			one.end(&s.Rules)
			return yield(one, nil)
		}
		for row, err := range s.rows.Sorted() {
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				yield(nil, fmt.Errorf("%s: reading what the source says of its records: %w", s.url, err))
				return
			}
			next := ReadByID(row)
			if one == nil || one.ID != next.ID {
				if !pass() {
					return
				}
				one = &state{}
				one.ID = next.ID
			}
			one.add(next, &s.Rules)
		}
		pass()
	}
}

// MaxAt is the maximum number of records with a statement at its time that a mark names.
const MaxAt = 1000

// Instant is which records have a statement at a time: of many some, and a digest of all.
type Instant struct {
	At    time.Time
	IDs   []string // once for each statement
	count int
	sum   [sha256.Size]byte // of the digests of the ids: it does not depend on their order
}

// Add adds a record.
func (i *Instant) Add(id string) {
	if i.count++; len(i.IDs) < MaxAt {
		i.IDs = append(i.IDs, id)
	}
	carry := 0
	for n, b := range sha256.Sum256([]byte(id)) {
		carry += int(i.sum[n]) + int(b)
		i.sum[n] = byte(carry)
		carry >>= 8
	}
}

// Latest adds a record with a statement at a time, if that is the latest one.
func (i *Instant) Latest(id string, at time.Time) {
	if at.After(i.At) {
		*i = Instant{At: at}
	}
	if at.Equal(i.At) {
		i.Add(id)
	}
}

// Digest returns the digest of all ids, "" where each is named.
func (i *Instant) Digest() string {
	if i.count == len(i.IDs) {
		return ""
	}
	return fmt.Sprintf("%d-%s", i.count, hex.EncodeToString(i.sum[:]))
}

// Move moves a mark to the instant.
func (i *Instant) Move(m *Mark) { m.Updated, m.At, m.AllAt = i.At, i.IDs, i.Digest() }

// Seen has the statements handled at the time of a mark.
type Seen struct {
	at    time.Time
	times map[string]int // by id, their number
	all   bool           // all that is there now
}

// SeenAt compares the statements handled at a mark with the source's present ones of that time.
func SeenAt(m *Mark, now *Instant) *Seen {
	s := &Seen{at: m.Updated, times: map[string]int{}, all: m.AllAt != "" && m.AllAt == now.Digest()}
	for _, id := range m.At {
		s.times[id]++
	}
	return s
}

// isNew reports whether a record has more statements at the time of the mark than were handled.
func (s *Seen) isNew(id string, n int) bool { return !s.all && n > s.times[id] }
