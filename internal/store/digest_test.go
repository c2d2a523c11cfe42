package store

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/statedigest"
)

// deletion deletes topics.
func deletion(from, to int) *fragment.Change {
	c := &fragment.Change{}
	for i := from; i < to; i++ {
		c.DeleteTopics = append(c.DeleteTopics, ref(i))
		c.Entries = append(c.Entries, fragment.Entry{TopicSI: ref(i), Deleted: true, Tombstone: fragment.Identity{SubjectIdentifiers: []fragment.Ref{ref(i)}}})
	}
	return c
}

// digestOf computes the digest of a state from its records.
func digestOf(t *testing.T, src fragment.Source) string {
	var changes []statedigest.Change
	for topic, err := range src.Topics() {
		require.NoError(t, err)
		e := statedigest.OfTopic(topic)
		changes = append(changes, statedigest.Change{Entry: e})
	}
	for a, err := range src.Associations() {
		require.NoError(t, err)
		e := statedigest.OfAssociation(a)
		changes = append(changes, statedigest.Change{Entry: e})
	}
	tree := treeRows{}
	require.NoError(t, statedigest.Update(tree, changes))
	root, err := statedigest.Read(tree.Get, nil)
	require.NoError(t, err)
	return root.Digest().String()
}

type treeRows map[string][]byte

func (r treeRows) Get(path []byte) ([]byte, error) { return r[string(path)], nil }
func (r treeRows) Put(path, row []byte) error      { r[string(path)] = row; return nil }
func (r treeRows) Delete(path []byte) error        { delete(r, string(path)); return nil }

// The last entry of each commit, and no other, states the digest of the state after it; a snapshot that of its state.
func TestTheLastEntryOfACommitHasTheDigest(t *testing.T) {
	db := openDB(t, t.TempDir())
	n := collection(t, db, "m", 60).Head
	stated := func(from, to uint64) {
		t.Helper()
		view(t, db, "m", func(v *View) {
			require.Equal(t, to, v.Head)
			for e, err := range v.Entries(from) {
				require.NoError(t, err)
				want := ""
				if e.Seq == to {
					want = digestOf(t, v.Source())
				}
				require.Equal(t, want, e.Digest, "entry %d", e.Seq)
			}
		})
	}
	stated(1, n)
	publish(t, db, "m", rename(3, 9, "second"))
	stated(n+1, n+6)
	publish(t, db, "m", deletion(20, 50))
	stated(n+7, n+36)
	s, err := db.TakeSnapshot(t.Context(), "m", 1)
	require.NoError(t, err)
	view(t, db, "m", func(v *View) { require.Equal(t, digestOf(t, v.Source()), s.Digest) })
}
