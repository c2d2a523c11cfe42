package store

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/rendered"
	"github.com/tmshare/tmshare/internal/xml/patch"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
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

// patched returns the last entry of a topic, after checking that its patches are what they are
// said to be and lead from the fragment before to its own.
func patched(t *testing.T, db *DB, si fragment.Ref) (last *Entry) {
	t.Helper()
	view(t, db, "m", func(v *View) {
		var err error
		last, err = v.LastOf(si)
		require.NoError(t, err)
		require.NotNil(t, last)
		require.True(t, last.Patches == nil || len(last.Patches) == len(Forms))
		for i, form := range Forms {
			changes, err := v.Patch(last, form)
			if last.PatchOf(form) == nil {
				require.ErrorIs(t, err, ErrNotFound)
				continue
			}
			require.NoError(t, err)
			require.Equal(t, last.Patches[i], rendered.DigestOf(changes))
			require.LessOrEqual(t, 2*int64(len(changes)), last.Digests[i].Length)
			prior, err := v.Entry(last.Prior)
			require.NoError(t, err)
			before, err := v.StoredFragment(prior, form)
			require.NoError(t, err)
			after, err := v.StoredFragment(last, form)
			require.NoError(t, err)
			got, err := patch.Apply([]byte(text(t, before)), changes)
			require.NoError(t, err)
			require.Equal(t, text(t, after), string(got))
		}
	})
	return last
}

// offered is a collection of a large topic and a small one, of which lists are published.
func offered(t *testing.T, db *DB) *Collection {
	t.Helper()
	src := mapOf(t, 3)
	require.NoError(t, src.PutTopic(saying(ref(10), 100, "first")))
	c, err := db.CreateCollection(t.Context(), Collection{Name: "m", SP: sp, Settings: Settings{DocumentSize: 1}}, src, nil)
	require.NoError(t, err)
	materialize(t, db)
	return cutChanges(t, db, "m", c.Head, c.Updated, Cut{})
}

// An entry has patches where little of much has changed, in both forms.
func TestPatches(t *testing.T) {
	db := openDB(t, t.TempDir())
	offered(t, db)
	require.Empty(t, patched(t, db, ref(10)).Patches, "nothing was before")

	say(t, db, saying(ref(10), 100, "second"), named(ref(2), "second"))
	e := patched(t, db, ref(10))
	require.NotNil(t, e.PatchOf(Forms[0]))
	require.NotNil(t, e.PatchOf(Forms[1]))
	view(t, db, "m", func(v *View) {
		prior, err := v.Entry(e.Prior)
		require.NoError(t, err)
		data := &rendered.Fragment{Digests: e.Digests}
		stored, err := v.StoredFragment(e, xtm.V21)
		require.NoError(t, err)
		data.Gzipped, err = stored.Gzipped()
		require.NoError(t, err)
		again, err := v.patches(prior, e, data)
		require.NoError(t, err)
		require.Equal(t, e.Patches, again)
		closing := *prior
		closing.Topic = ref(2)
		none, err := v.patches(&closing, e, data)
		require.NoError(t, err)
		require.Empty(t, none, "from what is no version of the record")
	})
	require.Empty(t, patched(t, db, ref(2)).Patches, "of a small topic")

	say(t, db, saying(ref(10), 5, "third"))
	require.Empty(t, patched(t, db, ref(10)).Patches, "too small by now")
	say(t, db, saying(ref(10), 100, "fourth"))
	require.Empty(t, patched(t, db, ref(10)).Patches, "most of it is new")
	say(t, db, saying(ref(10), 90, "fifth"))
	e = patched(t, db, ref(10))
	require.NotEmpty(t, e.Patches)

	say(t, db, saying(ref(10), 90, strings.Repeat("large ", rendered.MaxSize)))
	require.Empty(t, patched(t, db, ref(10)).Patches, "too large to be stored")
	say(t, db, saying(ref(10), 90, "seventh"))
	require.Empty(t, patched(t, db, ref(10)).Patches, "what was before is not stored")

	// One form may be long enough while the other is not.
	n := 1
	for ; ; n++ {
		say(t, db, saying(ref(10), n, "a"))
		say(t, db, saying(ref(10), n, "b"))
		if e = patched(t, db, ref(10)); e.Patches != nil {
			break
		}
	}
	require.True(t, (e.Patches[0].Length == 0) != (e.Patches[1].Length == 0), "%v", e.Patches)
	require.GreaterOrEqual(t, max(e.Digests[0].Length, e.Digests[1].Length), int64(leastPatched))
	require.Less(t, min(e.Digests[0].Length, e.Digests[1].Length), int64(leastPatched))

	// Deleted and created again it is another resource.
	publish(t, db, "m", &fragment.Change{DeleteTopics: []fragment.Ref{ref(10)}, Entries: []fragment.Entry{{
		TopicSI: ref(10), Topic: ref(10), Deleted: true, Tombstone: fragment.Identity{SubjectIdentifiers: []fragment.Ref{ref(10)}},
	}}})
	require.Empty(t, patched(t, db, ref(10)).Patches)
	say(t, db, saying(ref(10), 100, "again"))
	require.Empty(t, patched(t, db, ref(10)).Patches)
}

// Nobody pays for patches that nobody is told of.
func TestPatchesWithoutLists(t *testing.T) {
	db := openDB(t, t.TempDir())
	src := mapOf(t, 3)
	require.NoError(t, src.PutTopic(saying(ref(10), 100, "first")))
	c := collectionOf(t, db, "m", src)
	say(t, db, saying(ref(10), 100, "second"))
	require.Empty(t, patched(t, db, ref(10)).Patches)
	cutChanges(t, db, "m", c.Head, c.Updated, Cut{})
	say(t, db, saying(ref(10), 100, "third"))
	require.NotEmpty(t, patched(t, db, ref(10)).Patches)
	set(t, db, "m", func(s *Settings) { s.NoResourceSync = true })
	say(t, db, saying(ref(10), 100, "fourth"))
	require.Empty(t, patched(t, db, ref(10)).Patches)
}

// A patch is gone with the fragment that it leads from; what is published after that has none.
func TestPatchesOfPrunedHistory(t *testing.T) {
	db := openDB(t, t.TempDir())
	offered(t, db)
	say(t, db, saying(ref(10), 100, "second"))
	say(t, db, named(ref(2), "second"), named(ref(1), "second"))
	e := patched(t, db, ref(10))
	require.NotEmpty(t, e.Patches)
	takeSnapshot(t, db, "m", 1)
	prune(t, db, "m", Retention{Entries: 3}) // the entry stays, that before does not
	view(t, db, "m", func(v *View) {
		require.Equal(t, e.Seq-1, v.Horizon)
		_, err := v.Patch(e, Forms[0])
		require.ErrorIs(t, err, ErrGone)
	})
	prune(t, db, "m", Retention{Entries: 1})
	view(t, db, "m", func(v *View) { require.GreaterOrEqual(t, v.Horizon, e.Seq) })
	require.Zero(t, materialize(t, db))
	say(t, db, saying(ref(10), 100, "third"))
	require.Empty(t, patched(t, db, ref(10)).Patches, "what was before is pruned")
	say(t, db, saying(ref(10), 100, "fourth"))
	require.NotEmpty(t, patched(t, db, ref(10)).Patches)
}

// A record that is published again as it was needs no patch, and the one after it leads from there.
func TestPatchesOfRestatedRecords(t *testing.T) {
	db := openDB(t, t.TempDir())
	offered(t, db)
	say(t, db, saying(ref(10), 100, "second"))
	set(t, db, "m", func(s *Settings) { s.RecordForms = Forms[1:] })
	require.Positive(t, restate(t, db))
	e := patched(t, db, ref(10))
	require.Empty(t, e.Patches)
	require.NotZero(t, e.Prior)
	say(t, db, saying(ref(10), 100, "third"))
	require.NotEmpty(t, patched(t, db, ref(10)).Patches)
}

// What another version of the program made otherwise is not given out as if it were the same.
func TestPatchesThatAreOthersThanStated(t *testing.T) {
	db := openDB(t, t.TempDir())
	offered(t, db)
	say(t, db, saying(ref(10), 100, "second"))
	e := patched(t, db, ref(10))
	e.Patches[0].SHA256[0]++
	view(t, db, "m", func(v *View) {
		_, err := v.Patch(e, Forms[0])
		require.ErrorIs(t, err, ErrGone)
		_, err = v.Patch(e, Forms[1])
		require.NoError(t, err)
	})
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
