package store

import (
	"context"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/xtm"
)

// rowCounts counts the rows that a collection has in tables.
func rowCounts(t tester, db *DB, number uint32, tables string) (counts []int) {
	t.Helper()
	require.NoError(t, db.rows.View(t.Context(), func(tx *txn.Tx) error {
		for _, table := range []byte(tables) {
			n := 0
			for _, err := range tx.Scan(keys.Collection(table, number), nil) {
				require.NoError(t, err)
				n++
			}
			counts = append(counts, n)
		}
		return nil
	}))
	return counts
}

// history is what tests know of a log: every entry there ever was.
type history struct {
	log      []Entry
	cut      cut
	horizon  uint64
	snapshot uint64 // the sequence of the newest, where there is one
	taken    bool
}

// read adds the entries that are new.
func (h *history) read(t tester, v *View) {
	t.Helper()
	for e, err := range v.Entries(uint64(len(h.log)) + 1) {
		require.NoError(t, err)
		h.log = append(h.log, e)
	}
	require.Len(t, h.log, int(v.Head))
	h.cut.growTo(v.Head)
}

// prune moves the horizon as retention asks: over the documents at the beginning
// that have nothing to keep.
func (h *history) prune(keep Retention, now time.Time) {
	needless := func(e *Entry) bool {
		many := keep.Entries > 0 && e.Seq+keep.Entries <= uint64(len(h.log))
		old := keep.For > 0 && e.Updated.Before(now.Add(-keep.For))
		return (many || old) && h.taken && e.Seq < h.snapshot // whose last entry stays
	}
	for _, d := range h.cut.documents[:len(h.cut.documents)-1] {
		last := d.first + d.size - 1
		if !needless(&h.log[last-1]) {
			return
		}
		h.horizon = max(h.horizon, last)
	}
}

// last is the last entry of each topic.
func (h *history) last() map[fragment.Ref]*Entry {
	last := map[fragment.Ref]*Entry{}
	for i := range h.log {
		last[h.log[i].TopicSI] = &h.log[i]
	}
	return last
}

// checkRecords goes through the documents of the records, from the open one back: they
// have all that is not pruned, and of what is the last entry of each key.
func (h *history) checkRecords(t tester, v *View, same func(want, got Entry)) {
	t.Helper()
	var want []Entry
	last := h.last()
	for i := range h.log {
		if e := h.log[i]; e.Seq > h.horizon || last[e.TopicSI].Seq == e.Seq {
			want = append(want, e)
		}
	}
	var got []Entry
	for n := v.OpenDocument(); n > 0; {
		entries, before, err := v.RecordEntries(n)
		require.NoError(t, err)
		for i := range entries {
			require.Equal(t, n, v.DocumentOf(entries[i].Seq))
		}
		got = append(entries, got...)
		require.Less(t, before, n)
		if before > 0 {
			if first, _ := v.Document(n); first > v.Horizon {
				require.Equal(t, n-1, before, "what is not pruned does not change")
			} else {
				entries, _, err := v.RecordEntries(before)
				require.NoError(t, err)
				require.NotEmpty(t, entries, "document %d, pruned up to %d", before, v.Horizon)
			}
		}
		n = before
	}
	require.Len(t, got, len(want))
	for i := range want {
		same(want[i], got[i])
	}
}

// check compares all that a collection shows, and the rows that it has.
func (h *history) check(t tester, db *DB, name string) {
	t.Helper()
	view(t, db, name, func(v *View) {
		require.Equal(t, h.horizon, v.Horizon)
		require.Equal(t, uint64(len(h.log)), v.Head)
		if h.horizon > 0 {
			require.Equal(t, h.log[h.horizon-1].Updated, v.HorizonTime)
		}
		same := func(want, got Entry) {
			t.Helper()
			want.Stored, want.Apart, want.Digests = got.Stored, got.Apart, got.Digests // a first fragment is stored when its topic changes
			require.Equal(t, want, got)
		}
		shown := entries(t, v)
		require.Len(t, shown, len(h.log)-int(h.horizon))
		logRows, fragmentRows, keyRows := len(shown), 0, 0
		for i, e := range shown {
			same(h.log[int(h.horizon)+i], e)
			if e.Stored {
				fragmentRows++
				stored(t, v, &e)
			}
		}
		h.checkRecords(t, v, same)
		for i := range h.log {
			e, err := v.Entry(h.log[i].Seq)
			if h.log[i].Seq <= h.horizon {
				require.ErrorIs(t, err, ErrGone, "entry %d", h.log[i].Seq)
			} else {
				require.NoError(t, err)
				same(h.log[i], *e)
			}
		}
		for si, want := range h.last() {
			got := last(t, v, si)
			require.NotNil(t, got, "what has become of %s", si)
			same(*want, *got)
			keyRows++
			if want.Seq <= h.horizon {
				logRows++
				if !want.Lives() {
					_, err := v.StoredFragment(got, xtm.V10)
					require.ErrorIs(t, err, ErrGone, "the fragment of %s", si)
					continue
				}
				if got.Stored {
					fragmentRows++
				}
			}
			if !want.Deleted && want.Topic == "" {
				var forms []string
				if got.Stored {
					forms = stored(t, v, got)
				} else {
					forms = renderedNow(t, v, got)
				}
				f, err := fragment.Read(context.Background(), strings.NewReader(forms[1]), xtm.Options{Base: sp}, si)
				require.NoError(t, err)
				require.Equal(t, want.Title, f.Topic.Title(), "the current fragment of %s", si)
			}
		}
		require.Equal(t, []int{logRows, fragmentRows, keyRows}, rowCounts(t, db, v.Number, "efk"), "nothing of what is pruned stays behind")
		list, err := v.Snapshots()
		require.NoError(t, err)
		if h.horizon > 0 {
			require.GreaterOrEqual(t, list[0].Seq, h.horizon, "never behind the newest snapshot")
		}
	})
}

// edit is a change that gives topics their names; the empty name deletes.
func edit(live map[int]bool, names map[int]string) *fragment.Change {
	c := &fragment.Change{}
	for i := range 30 {
		name, ok := names[i]
		switch {
		case !ok || name == "" && !live[i]:
		case name == "":
			delete(live, i)
			c.DeleteTopics = append(c.DeleteTopics, ref(i))
			c.Entries = append(c.Entries, fragment.Entry{TopicSI: ref(i), Deleted: true, Tombstone: fragment.Identity{SubjectIdentifiers: []fragment.Ref{ref(i)}}})
			c.Deleted++
		default:
			if !live[i] {
				c.Added++
			} else {
				c.Updated++
			}
			live[i] = true
			c.PutTopics = append(c.PutTopics, named(ref(i), name))
			c.Entries = append(c.Entries, fragment.Entry{TopicSI: ref(i), Topic: ref(i), Title: name})
		}
	}
	return c
}
