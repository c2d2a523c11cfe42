package folder

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/iri"
)

// Round is the result of one round of a folder.
type Round struct {
	URL string `json:"url"`

	New       int `json:"new"`       // files that were written
	Changed   int `json:"changed"`   // files that were written anew
	Removed   int `json:"removed"`   // files that were removed
	Held      int `json:"held"`      // files of records that are there now
	Unwanted  int `json:"unwanted"`  // records that are in no format that is wanted
	Ignored   int `json:"ignored"`   // entries of the feed that stand for no record
	Documents int `json:"documents"` // of the feed that were read

	// Offered are the formats of the records that have no wanted format.
	Offered []string `json:"offered,omitempty"`

	// Reason is the reason why the whole feed was read again; "" if it was not.
	Reason string `json:"reason,omitempty"`

	// Doubt is the unconfirmed loss of records that the round would cause. Nil: none.
	Doubt *follow.Doubt `json:"doubt,omitempty"`

	// Failed are the records that could not be fetched, and Gone those that are at none of the addresses in the feed.
	// The next round retries both. A round that resumes an earlier one may include that one's records.
	Failed []Problem `json:"failed"`
	Gone   []Problem `json:"gone"`
}

// Problem is a record whose last version could not be fetched.
type Problem struct {
	ID      string    `json:"id"`
	Title   string    `json:"title,omitempty"`
	Updated time.Time `json:"updated,omitzero"`
	Reason  string    `json:"reason"`
	Since   time.Time `json:"since"`
	Held    bool      `json:"held"` // in an earlier version
}

// round is a running round; it implements [follow.Sink].
type round struct {
	*Folder
	*Round
	anew    bool // the held records may be of another history
	hosts   *hosts
	changed bool // the state

	mu    sync.Mutex      // of the state, while records are fetched
	ahead map[string]bool // files of records that were fetched and not committed
}

// Harvest runs a round: it reads the changes of the source at the URL and applies them to the files of the folder. All
// rounds of a folder have the same URL; "" stands for that of the last round. If it returns an error, completed work is
// kept, and the next round does the rest. A record that cannot be fetched is not an error.
func (f *Folder) Harvest(ctx context.Context, s follow.Source, ref string) (*Round, error) {
	switch {
	case ref == "" && f.state.URL == "":
		return nil, fmt.Errorf("%s holds nothing yet: say from which URL", f.root.Name())
	case ref == "":
		ref = f.state.URL
	case iri.SameDocument(f.state.URL, ref):
		ref = f.state.URL
	case f.state.URL != "":
		return nil, fmt.Errorf("%s holds the records of %s: take another folder for those of %s", f.root.Name(),
			f.state.URL, ref)
	}
	fetcher, err := f.Fetcher.From(ref)
	if err != nil {
		return nil, err
	}
	f.Fetcher = fetcher
	r := &round{Folder: f, Round: &Round{URL: ref}, hosts: newHosts(f.Parallel),
		ahead: map[string]bool{}}
	r.changed = f.want() && f.state.URL != ""
	f.saved = f.now()
	e := follow.Engine[taken]{
		Source: s, URL: ref, Sink: r, Parallel: f.Parallel * (1 + len(f.Fetcher.Hosts)), Batch: 1, MaxWaiting: math.MaxInt,
		Progress: r.tell,
	}
	e.Judging = follow.Judging{Now: f.now, After: f.ConfirmAfter, Confirm: f.Confirm, MaxLoss: f.MaxLoss}
	before, _ := marshal(f.state.Memory)
	err = e.Run(ctx)
	after, _ := marshal(f.state.Memory)
	if r.Doubt = f.state.Memory.Doubt; err == nil && r.Doubt != nil {
		err = &follow.DoubtError{Doubt: r.Doubt}
	}
	if f.state.URL != "" && string(before) != string(after) {
		r.changed = true
	}
	if r.changed {
		err = errors.Join(err, f.saveAll())
	}
	for temp := range r.ahead {
		err = errors.Join(err, f.root.Remove(temp))
	}
	f.whole = err == nil
	r.sum()
	return r.Round, err
}

// Missing implements [follow.Sink].
func (r *round) Missing(context.Context) (map[string]time.Time, error) {
	versions := map[string]time.Time{}
	for id, held := range r.state.Records {
		if held.Missing != nil {
			versions[id] = held.Missing.Updated
		}
	}
	return versions, nil
}

// Retry implements [follow.Sink]. It returns the records that were not tried for the longest time first.
func (r *round) Retry(_ context.Context, p *follow.Plan, first bool) ([]follow.Record, error) {
	var again []follow.Record
	for id, held := range r.state.Records {
		m := held.Missing
		if now := p.About(id); !first || m == nil || now != nil && now.Planned {
			continue
		}
		again = append(again,
			p.Again(follow.Record{ID: id, Title: held.Title, Updated: m.Updated, Unsure: m.Unsure,
				Representations: m.Representations}))
	}
	slices.SortFunc(again, func(a, b follow.Record) int {
		return r.state.Records[a.ID].Missing.Tried.Compare(r.state.Records[b.ID].Missing.Tried)
	})
	return again, nil
}

// Memory implements [follow.Sink].
func (r *round) Memory() *follow.Memory { return r.state.Memory }

// Mark implements [follow.Sink].
func (r *round) Mark() follow.Mark { return r.state.Mark }

// Begin implements [follow.Sink].
func (r *round) Begin(_ context.Context, n *follow.Delta, mark follow.Mark) error {
	r.Ignored, r.anew = n.Ignored, n.Anew || n.Reason != "" && !r.Mirror
	r.Documents += n.Documents
	if n.Reason != "" {
		r.Reason = n.Reason
	}
	if !n.Unchanged {
		r.changed = true // the mark at least
		r.state.Mark = mark
	}
	if r.state.URL != "" {
		return nil
	}
	r.state.URL = r.URL // bind the folder to this source, even if the round fails
	return r.saveAll()
}

// End implements [follow.Sink].
func (r *round) End(_ context.Context, n *follow.Delta) error {
	r.state.Mark = n.Mark
	return nil
}

// Fetch implements [follow.Sink].
func (r *round) Fetch(ctx context.Context, record *follow.Record, _ bool) (taken, int64, error) {
	r.mu.Lock()
	var before Held
	if held := r.state.Records[record.ID]; held != nil {
		before = *held
	}
	r.mu.Unlock()
	t := r.take(ctx, *record, before)
	if t.temp != "" {
		r.mu.Lock()
		r.ahead[t.temp] = true
		r.mu.Unlock()
	}
	return t, 0, t.err
}

// Commit implements [follow.Sink].
func (r *round) Commit(_ context.Context, some []follow.Result[taken],
	_ func(*follow.Record) bool) ([]*follow.Record, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range some {
		t := &some[i]
		delete(r.ahead, t.Content.temp)
		var disk *diskError
		switch {
		case errors.As(t.Err, &disk):
			return nil, disk
		case t.Deleted:
			r.remove(t.ID)
		default:
			if err := r.settle(t.Content); err != nil {
				return nil, err
			}
		}
	}
	return nil, r.saveNowAndThen()
}

// settle applies the result of fetching a record to the folder.
func (r *round) settle(t taken) error {
	id := t.record.ID
	before := r.state.Records[id]
	r.changed = true
	switch {
	case t.unwanted:
		r.remove(id)
		r.offer(&t.record)
		r.state.Records[id] = &Held{Title: t.record.Title, Updated: t.record.Updated, Unwanted: true}
	case t.err != nil:
		r.missing(t, before)
	case before != nil && before.File != "" && (t.same || before.SHA256 == t.held.SHA256 && r.keepsName(before, &t.held)):
		t.held.File = before.File
		r.state.Records[id] = &t.held
		if t.temp != "" {
			return r.root.Remove(t.temp)
		}
	default:
		if before != nil && before.File != "" {
			r.Changed++
		} else {
			r.New++
		}
		return r.put(id, &t.held, t.temp)
	}
	return nil
}

// missing notes a version of a record that could not be fetched. It removes the file of a record that is gone, and
// keeps other files.
func (r *round) missing(t taken, before *Held) {
	now := r.now()
	m := &Missing{
		Updated: t.record.Updated, Gone: follow.Gone(t.err), Reason: t.err.Error(), Since: now, Tried: now,
		Unsure: t.record.Unsure, Representations: follow.Lasting(t.record.Representations),
	}
	held := &Held{Title: t.record.Title}
	if before != nil {
		if before.Missing != nil && before.Missing.Updated.Equal(m.Updated) {
			m.Since = before.Missing.Since
		}
		if !m.Gone {
			held = before
		}
	}
	if m.Gone {
		r.remove(t.record.ID)
	}
	held.Missing, held.Stale, held.Unwanted = m, false, false
	r.state.Records[t.record.ID] = held
}

func (r *round) remove(id string) {
	r.changed = true
	if r.forget(id) {
		r.Removed++
	}
}

// maxOffered is the maximum number of formats in a Round.
const maxOffered = 20

// offer notes in which formats a record is.
func (r *round) offer(record *follow.Record) {
	for _, one := range record.Representations {
		if at, found := slices.BinarySearch(r.Offered, one.Type); !found && one.Type != "" && len(r.Offered) < maxOffered {
			r.Offered = slices.Insert(r.Offered, at, one.Type)
		}
	}
}

// sum counts the files at the end.
func (r *round) sum() {
	r.Failed, r.Gone = []Problem{}, []Problem{}
	for _, id := range slices.Sorted(maps.Keys(r.state.Records)) {
		held := r.state.Records[id]
		if held.File != "" {
			r.Held++
		}
		if held.Unwanted {
			r.Unwanted++
		}
		if m := held.Missing; m != nil {
			p := Problem{id, held.Title, m.Updated, m.Reason, m.Since, held.File != ""}
			if m.Gone {
				r.Gone = append(r.Gone, p)
			} else {
				r.Failed = append(r.Failed, p)
			}
		}
	}
	byTitle := func(a, b Problem) int { return strings.Compare(a.Title, b.Title) }
	slices.SortStableFunc(r.Failed, byTitle)
	slices.SortStableFunc(r.Gone, byTitle)
}

func (r *round) tell(done, total int) {
	if r.Progress != nil {
		r.Progress(done, total)
	}
}
