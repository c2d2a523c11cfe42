package store

import (
	"bytes"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/store/rendered"
	"github.com/tmshare/tmshare/internal/store/storetest"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// shown returns the fragment of an entry, in each form.
func shown(t tester, v *View, e *Entry) (forms []string) {
	t.Helper()
	for _, version := range Forms {
		var b bytes.Buffer
		require.NoError(t, v.WriteFragment(&b, e, version), "entry %d", e.Seq)
		forms = append(forms, b.String())
	}
	return forms
}

// last returns the last entry of a topic, or nil.
func last(t tester, v *View, si fragment.Ref) *Entry {
	t.Helper()
	e, err := v.Last(fragment.Key(si))
	require.NoError(t, err)
	entry, err := v.LastOf(si)
	require.NoError(t, err)
	require.Equal(t, e, entry)
	if e != nil {
		require.NoError(t, v.SetTitle(e))
	}
	return e
}

// The fragment of an entry is served as it stood after the commit, in both
// forms, for ever.
func TestFragmentsAreKeptAsTheyWere(t *testing.T) {
	db := openDB(t, t.TempDir())
	collection(t, db, "m", 3)
	var e *Entry
	var was []string
	publish(t, db, "m", rename(1, 2, "second"))
	view(t, db, "m", func(v *View) {
		e = last(t, v, ref(1))
		was = shown(t, v, e)
		for i, version := range Forms {
			f, err := fragment.Read(t.Context(), strings.NewReader(was[i]), xtm.Options{Base: sp}, e.TopicSI)
			require.NoError(t, err)
			require.Equal(t, "second", f.Topic.Title(), "XTM %s", version)
		}
	})
	publish(t, db, "m", rename(0, 3, "third"))
	publish(t, db, "m", &fragment.Change{DeleteTopics: []fragment.Ref{ref(1)}, Entries: []fragment.Entry{
		{TopicSI: ref(1), Deleted: true, Tombstone: fragment.Identity{SubjectIdentifiers: []fragment.Ref{ref(1), "http://also"}}},
	}, Deleted: 1})
	db = reopen(t, db)
	view(t, db, "m", func(v *View) {
		again, err := v.Entry(e.Seq)
		require.NoError(t, err)
		require.Equal(t, e, again)
		require.Equal(t, was, shown(t, v, again))
		tombstone := last(t, v, ref(1))
		require.True(t, tombstone.Deleted)
		for _, form := range shown(t, v, tombstone) {
			f, err := fragment.Read(t.Context(), strings.NewReader(form), xtm.Options{Base: sp}, ref(1))
			require.NoError(t, err)
			require.True(t, f.Deleted)
			require.ElementsMatch(t, []tmdm.Locator{ref(1), "http://also"}, f.Topic.SubjectIdentifiers)
		}
	})
}

// The fragments of first entries are rendered on request, with the first state of their topics.
func TestFirstFragmentsShowWhatTopicsWere(t *testing.T) {
	db := openDB(t, t.TempDir())
	c := collection(t, db, "m", 4)
	first := map[uint64][]string{}
	view(t, db, "m", func(v *View) {
		for _, e := range entries(t, v) {
			first[e.Seq] = shown(t, v, &e)
		}
	})
	publish(t, db, "m", rename(1, 2, "second"))
	tombstone := fragment.Identity{SubjectIdentifiers: []fragment.Ref{ref(2)}}
	publish(t, db, "m", &fragment.Change{ // topic 2 goes; 3 loses its TopicSI to a new one
		DeleteTopics: []fragment.Ref{ref(2), ref(3)},
		PutTopics: []*fragment.Topic{{
			Identity: fragment.Identity{SubjectIdentifiers: []fragment.Ref{"http://owner", ref(3)}},
			Names:    []fragment.Name{{Value: "owner", Type: tmdm.PSIDefaultNameType}},
		}},
		Entries: []fragment.Entry{
			{TopicSI: ref(2), Deleted: true, Tombstone: tombstone},
			{TopicSI: ref(3), Topic: "http://owner", Title: "owner"},
			{TopicSI: "http://owner", Topic: "http://owner", Title: "owner"},
		},
		Added: 1, Updated: 1, Deleted: 1,
	})
	publish(t, db, "m", rename(1, 2, "third"))
	db = reopen(t, db)
	view(t, db, "m", func(v *View) {
		for _, e := range entries(t, v) {
			if e.Seq <= c.Head {
				require.Equal(t, first[e.Seq], shown(t, v, &e), "the first fragment of %s", e.TopicSI)
			}
		}
		require.Equal(t, 4, v.Topics)
		closing := last(t, v, ref(3))
		require.Equal(t, []fragment.Ref{ref(3), "http://owner"}, []fragment.Ref{closing.TopicSI, closing.Describes()})
		f, err := fragment.Read(t.Context(), strings.NewReader(shown(t, v, closing)[1]), xtm.Options{Base: sp}, closing.TopicSI)
		require.NoError(t, err)
		require.Equal(t, []tmdm.Locator{"http://owner", ref(3)}, f.Topic.SubjectIdentifiers)
	})
}

// Over random histories, a subscriber that reads the log from its beginning gets the published records. The bytes of a
// fragment never change: after any publication, setting or restart, until history is pruned.
func TestTheLogAloneRebuildsTheMap(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	for seed := range uint64(testenv.Rounds(8, 200)) {
		random := rand.New(rand.NewPCG(seed, 31))
		db := openDB(t, t.TempDir())
		editor := storetest.NewEditor(t, 100+seed)
		collectionOf(t, db, "m", editor.Version(nil))
		bytesOf := map[uint64][]string{}
		check := func() {
			view(t, db, "m", func(v *View) {
				for _, e := range entries(t, v) {
					if was := bytesOf[e.Seq]; was != nil {
						require.Equal(t, was, shown(t, v, &e), "seed %d, entry %d: %q", seed, e.Seq, editor.Edits)
					} else {
						bytesOf[e.Seq] = shown(t, v, &e)
					}
				}
			})
		}
		rebuild := func() {
			view(t, db, "m", func(v *View) {
				var rebuilt, snapshot merge.Memory
				for _, e := range entries(t, v) {
					f, err := fragment.Read(t.Context(), strings.NewReader(bytesOf[e.Seq][1]), xtm.Options{Base: sp}, e.TopicSI)
					require.NoError(t, err)
					f.Deleted = e.Deleted
					require.NoError(t, merge.Apply(&rebuilt, f))
				}
				var b bytes.Buffer
				require.NoError(t, v.WriteSnapshot(&b, xtm.V21))
				m, err := fragment.ReadSnapshot(t.Context(), &b, xtm.Options{Base: sp})
				require.NoError(t, err)
				require.NoError(t, snapshot.Load(m))
				require.Equal(t, storetest.Dump(t, &snapshot), storetest.Dump(t, &rebuilt), "seed %d: %q", 100+seed, editor.Edits)
				require.Equal(t, storetest.Dump(t, &snapshot), storetest.Dump(t, v.Source()))
			})
		}
		check()
		for turn := range 6 {
			var next *fragment.Map
			view(t, db, "m", func(v *View) { next = editor.Version(v.Source()) })
			publishMap(t, db, "m", next)
			check()
			switch random.IntN(4) {
			case 0:
				setOmitInstances(t, db, "m", turn%2 == 0)
			case 1:
				offer(t, db, [][]xtm.Version{onlyOld, onlyNew, Forms[:]}[random.IntN(3)])
				restate(t, db)
			case 2:
				db = reopen(t, db)
			}
			check()
		}
		rebuild()
		takeSnapshot(t, db, "m", 1)
		prune(t, db, "m", Retention{Entries: uint64(1 + random.IntN(30))})
		check()
		require.NoError(t, db.Close())
	}
}

// words makes a text of n bytes that does not compress to almost none.
func words(n int) string {
	rng := rand.New(rand.NewPCG(1, 1))
	b := make([]byte, n)
	for i := range b {
		b[i] = 'a' + byte(rng.IntN(26))
	}
	return string(b)
}

// The fragment of a large topic has the state after its commit, for any later changes.
func TestLargeFragmentsStay(t *testing.T) {
	db := openDB(t, t.TempDir())
	collection(t, db, "m", 2)
	large := words(rendered.MaxSmall)
	publish(t, db, "m", rename(0, 1, large))
	var entry *Entry
	var was []string
	view(t, db, "m", func(v *View) {
		entry = last(t, v, ref(0))
		was = shown(t, v, entry)
		for _, form := range was {
			require.Contains(t, form, large)
		}
	})
	publish(t, db, "m", rename(0, 1, "small again"))
	view(t, db, "m", func(v *View) { require.Equal(t, was, shown(t, v, entry)) })
	publish(t, db, "m", &fragment.Change{DeleteTopics: []fragment.Ref{ref(0)}, Deleted: 1, Entries: []fragment.Entry{
		{TopicSI: ref(0), Deleted: true, Tombstone: fragment.Identity{SubjectIdentifiers: []fragment.Ref{ref(0)}}},
	}})
	view(t, db, "m", func(v *View) { require.Equal(t, was, shown(t, v, entry)) })
}

// The large fragment of a closing entry is that of the topic with the TopicSI after its commit, for any later changes
// of the two.
func TestALargeFragmentOfAClosingEntryStays(t *testing.T) {
	db := openDB(t, t.TempDir())
	collection(t, db, "m", 3)
	owner := func(i int, name string, more ...fragment.Ref) *fragment.Topic {
		topic := named(ref(i), name)
		topic.SubjectIdentifiers = append(topic.SubjectIdentifiers, more...)
		return topic
	}
	entry := func(i, owner int) fragment.Entry { return fragment.Entry{TopicSI: ref(i), Topic: ref(owner)} }
	large := words(rendered.MaxSmall)
	publish(t, db, "m", &fragment.Change{DeleteTopics: []fragment.Ref{ref(0)}, PutTopics: []*fragment.Topic{owner(1, large, ref(0))}, Entries: []fragment.Entry{
		entry(0, 1), entry(1, 1),
	}})
	var closing *Entry
	view(t, db, "m", func(v *View) { closing = last(t, v, ref(0)) })
	require.Equal(t, ref(1), closing.Describes())
	read := func() fragment.Ref {
		var f *fragment.Fragment
		view(t, db, "m", func(v *View) {
			var err error
			f, err = fragment.Read(t.Context(), strings.NewReader(shown(t, v, closing)[1]), xtm.Options{Base: sp}, ref(0))
			require.NoError(t, err)
		})
		return f.Topic.TopicSI()
	}
	require.Equal(t, ref(1), read())
	publish(t, db, "m", &fragment.Change{PutTopics: []*fragment.Topic{owner(1, large), owner(2, "small", ref(0))}, Entries: []fragment.Entry{entry(1, 1), entry(2, 2)}})
	require.Equal(t, ref(1), read(), "the identifier has moved since")
	publish(t, db, "m", &fragment.Change{PutTopics: []*fragment.Topic{owner(2, "small")}, DeleteTopics: []fragment.Ref{ref(1)}, Entries: []fragment.Entry{
		{TopicSI: ref(1), Deleted: true, Tombstone: fragment.Identity{SubjectIdentifiers: []fragment.Ref{ref(1)}}}, entry(2, 2),
	}})
	require.Equal(t, ref(1), read(), "its topic was deleted since")
	publish(t, db, "m", &fragment.Change{PutTopics: []*fragment.Topic{owner(0, "again")}, Added: 1, Entries: []fragment.Entry{entry(0, 0)}})
	require.Equal(t, ref(1), read(), "another topic has the identifier")
}

// A topic's key leads to its last entry, through deletion and re-creation.
func TestAKeyLeadsToTheLastEntry(t *testing.T) {
	db := openDB(t, t.TempDir())
	collection(t, db, "m", 3)
	collection(t, db, "other", 5)
	check := func(seq uint64, deleted bool) {
		t.Helper()
		view(t, db, "m", func(v *View) {
			e := last(t, v, ref(1))
			require.Equal(t, seq, e.Seq)
			require.Equal(t, deleted, e.Deleted)
			require.Equal(t, ref(1), e.TopicSI)
			require.Nil(t, last(t, v, ref(4)), "it is a topic of another collection")
			require.Nil(t, last(t, v, "http://nobody"))
		})
	}
	view(t, db, "m", func(v *View) {
		for _, e := range entries(t, v) {
			require.Equal(t, &e, last(t, v, e.TopicSI))
		}
	})
	first := publish(t, db, "m", rename(1, 2, "second")).Head
	check(first, false)
	publish(t, db, "m", rename(2, 3, "second"))
	check(first, false)
	deleted := publish(t, db, "m", &fragment.Change{DeleteTopics: []fragment.Ref{ref(1)}, Deleted: 1, Entries: []fragment.Entry{
		{TopicSI: ref(1), Deleted: true, Tombstone: fragment.Identity{SubjectIdentifiers: []fragment.Ref{ref(1)}}},
	}}).Head
	check(deleted, true)
	again := rename(1, 2, "again")
	again.Added, again.Updated = 1, 0
	c := publish(t, db, "m", again)
	require.Equal(t, 4, c.Topics)
	db = reopen(t, db)
	check(c.Head, false)
}

// reifying returns a state in which some statements of every kind are reified.
func reifiedState(t testing.TB) *merge.Memory {
	t.Helper()
	m := mapOf(t, 12)
	role := func(i int, reifier fragment.Ref) fragment.Role {
		return fragment.Role{Type: ref(0), Player: ref(i), Reifier: reifier}
	}
	large := &fragment.Association{Type: ref(1)}
	for i := range records.InlinePlayers + 2 {
		large.Roles = append(large.Roles, role(i, ""))
	}
	large.Roles[3].Reifier = ref(11)
	for _, a := range []*fragment.Association{
		large,
		{Type: ref(2), Roles: []fragment.Role{role(4, ""), role(5, "")}, Reifier: ref(10)},
		{Type: ref(2), Roles: []fragment.Role{role(4, ""), role(6, "")}},
	} {
		require.NoError(t, m.PutAssociation(a))
	}
	for i, change := range []func(*fragment.Topic){
		func(t *fragment.Topic) { t.Names[0].Reifier = ref(9) },
		func(t *fragment.Topic) {
			t.Names[0].Variants = []fragment.Variant{{Value: "v", Datatype: "http://d", Scope: []fragment.Ref{ref(0)}, Reifier: ref(8)}}
		},
		func(t *fragment.Topic) {
			t.Occurrences = []fragment.Occurrence{{Value: "o", Datatype: "http://d", Type: ref(0), Reifier: ref(7)}}
		},
	} {
		topic := named(ref(i), "reified")
		change(topic)
		require.NoError(t, m.PutTopic(topic))
	}
	return m
}

func listed[T any](t testing.TB, seq iter.Seq2[T, error]) (list []T) {
	t.Helper()
	for x, err := range seq {
		require.NoError(t, err)
		list = append(list, x)
	}
	return list
}

func requireReified(t testing.TB, db *DB, want merge.Reified) {
	t.Helper()
	require.NoError(t, db.ReadParts(t.Context(), func(parts []Part) error {
		got, ok := parts[0].Source.(merge.Reified)
		require.True(t, ok)
		require.Equal(t, listed(t, want.ReifiedTopics()), listed(t, got.ReifiedTopics()))
		require.Equal(t, listed(t, want.ReifiedAssociations()), listed(t, got.ReifiedAssociations()))
		by := map[fragment.Ref]int{}
		for _, topic := range listed(t, want.ReifiedTopics()) {
			for _, reifier := range records.Reifiers(topic) {
				by[reifier]++
				require.Contains(t, listed(t, got.(records.Reading).ReifiedBy(reifier)), fragment.Record{Topic: topic})
			}
		}
		for _, a := range listed(t, want.ReifiedAssociations()) {
			for _, reifier := range records.ReifiersOf(a) {
				by[reifier]++
				require.Contains(t, listed(t, got.(records.Reading).ReifiedBy(reifier)), fragment.Record{Association: a})
			}
		}
		for reifier, n := range by {
			require.Len(t, listed(t, got.(records.Reading).ReifiedBy(reifier)), n)
		}
		return nil
	}))
}

// The store knows whether its records refer to topics by TopicSIs alone, as a state in memory does.
func TestPlainSources(t *testing.T) {
	db := openDB(t, t.TempDir())
	for i, refer := range []func(m *merge.Memory, to fragment.Ref){
		func(*merge.Memory, fragment.Ref) {},
		func(m *merge.Memory, to fragment.Ref) {
			require.NoError(t, m.PutAssociation(&fragment.Association{Type: ref(1), Roles: []fragment.Role{{Type: ref(2), Player: to}}}))
		},
		func(m *merge.Memory, to fragment.Ref) {
			require.NoError(t, m.PutAssociation(&fragment.Association{Type: to, Roles: []fragment.Role{{Type: ref(2), Player: ref(3)}}}))
		},
		func(m *merge.Memory, to fragment.Ref) {
			other := named(ref(4), "reified")
			other.Names[0].Reifier = to
			require.NoError(t, m.PutTopic(other))
		},
	} {
		want := mapOf(t, 6)
		two := named(ref(5), "two")
		two.SubjectIdentifiers = append(two.SubjectIdentifiers, "http://example.org/alias", "http://example.org/unused")
		require.NoError(t, want.PutTopic(two))
		refer(want, "http://example.org/alias")
		name := fmt.Sprint("s", i)
		subscribe(t, db, name, want)
		expected, err := want.IsPlain()
		require.NoError(t, err)
		require.Equal(t, i == 0, expected)
		require.NoError(t, db.ReadParts(t.Context(), func(parts []Part) error {
			at := slices.IndexFunc(parts, func(p Part) bool { return p.Name == name })
			plain, err := parts[at].Source.(merge.Plain).IsPlain()
			require.Equal(t, expected, plain)
			return err
		}))
	}
}

// The store finds the records in which something is reified, as a state in memory
// does: after a load, and after changes.
func TestReifiedRecords(t *testing.T) {
	db := openDB(t, t.TempDir())
	want := reifiedState(t)
	require.Len(t, listed(t, want.ReifiedTopics()), 3)
	require.Len(t, listed(t, want.ReifiedAssociations()), 2)
	subscribe(t, db, "s", want)
	requireReified(t, db, want)

	rows := func() (n int) {
		require.NoError(t, db.rows.View(t.Context(), func(tx *txn.Tx) error {
			for _, r := range listed(t, inTables(tx, string(rune(keys.TableReified)))) {
				if _, reifier := keys.IsReifier(r.Key); !reifier {
					n++
				}
			}
			return nil
		}))
		return n
	}
	require.Equal(t, 5, rows())

	change := func(s merge.State) {
		topic := named(ref(1), "not reified any more")
		require.NoError(t, s.PutTopic(topic))
		require.NoError(t, s.DeleteTopic(named(ref(0), "")))
		for _, a := range listed(t, s.AssociationsOf(ref(4), fragment.AsPlayer)) {
			require.NoError(t, s.DeleteAssociation(a))
		}
	}
	change(want)
	require.NoError(t, db.ApplyEntries(t.Context(), "s", func(a *Applying) error { change(a); return nil }))
	requireReified(t, db, want)
	require.Equal(t, 1, rows())
}
