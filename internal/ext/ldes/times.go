package ldes

import (
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/tmshare/tmshare/internal/store"
)

// Readers identify members of a stream by time in whole milliseconds, but entries of the log are microseconds apart. So
// a member whose millisecond is taken gets the next free one. The time of entry s is
//
//	s + lead(s), and lead(s) is the greatest time(e) - e of all entries e up to s, in milliseconds
//
// which strictly increases, and equals the entry's own time if entries come slowly. The lead of the first load is that
// of its first entry, even after that is pruned.

// lead is the distance of members' times from their sequence numbers.
type lead int64

// add adds an entry.
func (l *lead) add(seq uint64, at time.Time) { *l = max(*l, lead(at.UnixMilli()-int64(seq))) }

// time returns the time of the member of an entry that was added.
func (l lead) time(seq uint64) string {
	return time.UnixMilli(int64(l) + int64(seq)).UTC().Format(timeFormat)
}

// timeline has the leads at the documents of a log, as far as it was read. It is read once, and then as it grows.
type timeline struct {
	horizon, seq uint64    // up to which entry it was read
	last         uuid.UUID // the id of that entry; the zero UUID if none
	lead         lead
	before       []lead // of all entries before each document
	has          []bool // it has any entry
}

// timelines are those of all collections. They are safe for concurrent use.
type timelines struct {
	mu    sync.Mutex
	known map[uuid.UUID]*timeline // by epoch
}

// timeline returns the timeline of a collection up to its head. The returned timeline is not changed any more.
func (all *timelines) timeline(v *store.View) (timeline, error) {
	all.mu.Lock()
	defer all.mu.Unlock()
	t := all.known[v.Epoch]
	if t != nil && t.last != uuid.Nil {
		if _, err := v.EntryOf(t.last); err != nil { // it was restored, or pruned up to here
			t = nil
		}
	}
	if t == nil || t.horizon != v.Horizon {
		t = begin(v)
	}
	for e, err := range v.Kept(t.seq + 1) {
		if err != nil {
			return timeline{}, err
		}
		t.reach(v.DocumentOf(e.Seq))
		t.has[len(t.has)-1] = true
		t.lead.add(e.Seq, e.Updated)
		t.seq, t.last = e.Seq, v.ID(&e)
	}
	t.reach(v.OpenDocument())
	if all.known == nil {
		all.known = map[uuid.UUID]*timeline{}
	}
	all.known[v.Epoch] = t
	now := *t
	now.has = slices.Clone(t.has) // the last one may change
	return now, nil
}

// begin returns a timeline that starts from the stored data about the first entries.
func begin(v *store.View) *timeline {
	t := &timeline{horizon: v.Horizon}
	if b := v.Beginning; b != nil {
		t.lead.add(1, b.From)
		if v.Horizon == 0 {
			t.reach(v.DocumentOf(b.Entries))
			for i := range t.has {
				t.has[i] = true
			}
			t.seq, t.last = b.Entries, v.IDOf(b.Run, b.Entries)
		}
	}
	return t
}

// reach adds documents up to one.
func (t *timeline) reach(n uint64) {
	for uint64(len(t.before)) < n {
		t.before, t.has = append(t.before, t.lead), append(t.has, false)
	}
}

// from returns the time from which on the members of a document are.
func (t *timeline) from(v *store.View, n uint64) string {
	first, _ := v.Document(n)
	return t.before[n-1].time(first)
}
