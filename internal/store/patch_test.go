package store

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/rendered"
	"github.com/tmshare/tmshare/internal/xml/patch"
	"github.com/tmshare/tmshare/tmdm"
)

// saying returns a topic with so many occurrences, the last of which is given.
func saying(si fragment.Ref, occurrences int, last string) *fragment.Topic {
	t := named(si, "hub")
	for i := range occurrences {
		t.Occurrences = append(t.Occurrences, fragment.Occurrence{Value: fmt.Sprintf("What there is to say, number %d", i), Datatype: tmdm.XSDString, Type: ref(1)})
	}
	t.Occurrences = append(t.Occurrences, fragment.Occurrence{Value: last, Datatype: tmdm.XSDString, Type: ref(1)})
	t.Canonical()
	return t
}

func say(t tester, db *DB, topics ...*fragment.Topic) {
	t.Helper()
	c := &fragment.Change{PutTopics: topics, Updated: len(topics)}
	for _, topic := range topics {
		c.Entries = append(c.Entries, fragment.Entry{TopicSI: topic.TopicSI(), Topic: topic.TopicSI()})
	}
	publish(t, db, "m", c)
}

// patched returns the last entry of a topic, and what lists say of its record form, after checking that its patches are what they are
// said to be and lead from the record before to its own.
func patched(t *testing.T, db *DB, si fragment.Ref) (last *Entry, said *RecordForm) {
	t.Helper()
	require.NoError(t, db.NoteRecordForms(t.Context(), "m"))
	view(t, db, "m", func(v *View) {
		var err error
		last, err = v.LastOf(si)
		require.NoError(t, err)
		require.NotNil(t, last)
		said, err = v.RecordForm(last)
		require.NoError(t, err)
		require.True(t, said.Patches == nil || len(said.Patches) == len(Forms))
		for i, form := range Forms {
			if !last.Lives() {
				break
			}
			if len(said.Digests) > 0 {
				require.Equal(t, rendered.DigestOf([]byte(recordOf(t, v, last)[i])), said.Digests[i])
			}
			if said.PatchIn(form) == nil {
				continue
			}
			changes, err := v.Patch(last, form)
			require.NoError(t, err)
			require.Equal(t, said.Patches[i], rendered.DigestOf(changes))
			require.LessOrEqual(t, 2*int64(len(changes)), said.Digests[i].Length)
			prior, err := v.Entry(last.Prior)
			require.NoError(t, err)
			got, err := patch.Apply([]byte(recordOf(t, v, prior)[i]), changes)
			require.NoError(t, err)
			require.Equal(t, recordOf(t, v, last)[i], string(got))
		}
	})
	return last, said
}

func patches(t *testing.T, db *DB, si fragment.Ref) []rendered.Digest {
	t.Helper()
	_, said := patched(t, db, si)
	return said.Patches
}

// offered is a collection of a large topic and a small one, of which lists are published.
func offered(t *testing.T, db *DB) *Collection {
	t.Helper()
	src := mapOf(t, 3)
	require.NoError(t, src.PutTopic(saying(ref(10), 100, "first")))
	c, err := db.CreateCollection(t.Context(), Collection{Name: "m", SP: sp, Settings: Settings{DocumentSize: 1}}, src, nil)
	require.NoError(t, err)
	return cutChanges(t, db, "m", c.Head, c.Updated, Cut{})
}

// An entry has patches where little of much has changed, in both forms.
func TestPatches(t *testing.T) {
	db := openDB(t, t.TempDir())
	offered(t, db)
	require.Empty(t, patches(t, db, ref(10)), "nothing was before")

	say(t, db, saying(ref(10), 100, "second"), named(ref(2), "second"))
	require.Len(t, patches(t, db, ref(10)), 2)
	require.Empty(t, patches(t, db, ref(2)), "of a small topic")

	say(t, db, saying(ref(10), 5, "third"))
	require.Empty(t, patches(t, db, ref(10)), "too small by now")
	say(t, db, saying(ref(10), 100, "fourth"))
	require.Empty(t, patches(t, db, ref(10)), "most of it is new")
	say(t, db, saying(ref(10), 90, "fifth"))
	require.NotEmpty(t, patches(t, db, ref(10)))

	say(t, db, saying(ref(10), 90, strings.Repeat("large ", rendered.MaxSmall)))
	require.Empty(t, patches(t, db, ref(10)), "it is large")
	say(t, db, saying(ref(10), 90, "seventh"))
	require.Empty(t, patches(t, db, ref(10)), "what was before is large")

	// One form may be long enough while the other is not.
	var about *RecordForm
	for n := 1; about == nil || about.Patches == nil; n++ {
		say(t, db, saying(ref(10), n, "a"))
		say(t, db, saying(ref(10), n, "b"))
		_, about = patched(t, db, ref(10))
	}
	require.True(t, (about.Patches[0].Length == 0) != (about.Patches[1].Length == 0), "%v", about.Patches)
	require.GreaterOrEqual(t, max(about.Digests[0].Length, about.Digests[1].Length), int64(leastPatched))
	require.Less(t, min(about.Digests[0].Length, about.Digests[1].Length), int64(leastPatched))

	// Deleted and created again it is another resource.
	publish(t, db, "m", &fragment.Change{DeleteTopics: []fragment.Ref{ref(10)}, Entries: []fragment.Entry{{
		TopicSI: ref(10), Topic: ref(10), Deleted: true, Tombstone: fragment.Identity{SubjectIdentifiers: []fragment.Ref{ref(10)}},
	}}})
	require.Empty(t, patches(t, db, ref(10)))
	say(t, db, saying(ref(10), 100, "again"))
	require.Empty(t, patches(t, db, ref(10)))
}

// What lists say of record forms is noted of the entries that lists have, and of no others. It is the same where it is not noted.
func TestRecordFormsAreNotedForLists(t *testing.T) {
	db := openDB(t, t.TempDir())
	src := mapOf(t, 3)
	require.NoError(t, src.PutTopic(saying(ref(10), 100, "first")))
	c := collectionOf(t, db, "m", src)
	noted := func() int { return rows(t, db, string(rune(keys.TableRecordForm))) }
	say(t, db, saying(ref(10), 100, "second"))
	require.NotEmpty(t, patches(t, db, ref(10)))
	require.Zero(t, noted(), "there are no lists")
	cutChanges(t, db, "m", c.Head, c.Updated, Cut{})
	for i := range 2*testBatch + 3 {
		say(t, db, saying(ref(10), 100, fmt.Sprint("version ", i)))
	}
	require.NotEmpty(t, patches(t, db, ref(10)))
	require.Equal(t, 2*testBatch+4, noted())
	view(t, db, "m", func(v *View) {
		for e, err := range v.Entries(c.Head + 1) {
			require.NoError(t, err)
			said, err := v.RecordForm(&e)
			require.NoError(t, err)
			again := &RecordForm{}
			require.NoError(t, v.describe(&e, again))
			require.Equal(t, again, said)
		}
	})
	set(t, db, "m", func(s *Settings) { s.NoResourceSync = true })
	say(t, db, saying(ref(10), 100, "last"))
	require.NotEmpty(t, patches(t, db, ref(10)))
	require.Equal(t, 2*testBatch+4, noted(), "there are no lists any more")
	takeSnapshot(t, db, "m", 1)
	prune(t, db, "m", Retention{Entries: 1})
	view(t, db, "m", func(v *View) {
		require.Greater(t, v.Horizon, c.Head+testBatch)
		require.LessOrEqual(t, noted(), int(v.Head-v.Horizon), "they go with their entries")
	})
}

// A patch is gone with the fragment that it leads from; what is published after that has none.
func TestPatchesOfPrunedHistory(t *testing.T) {
	db := openDB(t, t.TempDir())
	offered(t, db)
	say(t, db, saying(ref(10), 100, "second"))
	say(t, db, named(ref(2), "second"), named(ref(1), "second"))
	e, said := patched(t, db, ref(10))
	require.NotEmpty(t, said.Patches)
	takeSnapshot(t, db, "m", 1)
	prune(t, db, "m", Retention{Entries: 3}) // the entry stays, that before does not
	view(t, db, "m", func(v *View) {
		require.Equal(t, e.Seq-1, v.Horizon)
		_, err := v.Patch(e, Forms[0])
		require.ErrorIs(t, err, ErrGone)
	})
	prune(t, db, "m", Retention{Entries: 1})
	view(t, db, "m", func(v *View) { require.GreaterOrEqual(t, v.Horizon, e.Seq) })
	say(t, db, saying(ref(10), 100, "third"))
	require.Empty(t, patches(t, db, ref(10)), "what was before is pruned")
	say(t, db, saying(ref(10), 100, "fourth"))
	require.NotEmpty(t, patches(t, db, ref(10)))
}

// A record that is published again as it was needs no patch, and the one after it leads from there.
func TestPatchesOfRestatedRecords(t *testing.T) {
	db := openDB(t, t.TempDir())
	offered(t, db)
	say(t, db, saying(ref(10), 100, "second"))
	set(t, db, "m", func(s *Settings) { s.RecordForms = Forms[1:] })
	require.Positive(t, restate(t, db))
	e, said := patched(t, db, ref(10))
	require.Empty(t, said.Patches)
	require.NotZero(t, e.Prior)
	say(t, db, saying(ref(10), 100, "third"))
	require.NotEmpty(t, patches(t, db, ref(10)))
}

// BenchmarkPublishWithPatches changes a topic of a thousand occurrences in a collection whose
// changes are listed, and in one whose are not.
//
//	go test ./internal/store -run xxx -bench PublishWithPatches
func BenchmarkPublishWithPatches(b *testing.B) {
	for _, lists := range []bool{false, true} {
		b.Run(fmt.Sprint("lists=", lists), func(b *testing.B) {
			db := openUnsynced(b, b.TempDir())
			src := mapOf(b, 3)
			require.NoError(b, src.PutTopic(saying(ref(10), 1000, "first")))
			c := collectionOf(b, db, "m", src)
			if lists {
				cutChanges(b, db, "m", c.Head, c.Updated, Cut{})
			}
			n := 0
			for b.Loop() {
				n++
				say(b, db, saying(ref(10), 1000, fmt.Sprint("version ", n)))
			}
		})
	}
}
