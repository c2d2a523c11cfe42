package server_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/store"
)

// Each entry states the commit that it belongs to, in every document that shows it, and each snapshot that of its
// state.
func TestEntriesAndSnapshotsStateTheirCommit(t *testing.T) {
	t.Parallel()
	n := start(t, documentSize(3))
	of := map[string]uint64{} // commits by the ids of entries
	note := func(before uint64) uint64 {
		head := uint64(0)
		require.NoError(t, n.Store.View(t.Context(), "m", func(v *store.View) error {
			for e, err := range v.Entries(before + 1) {
				require.NoError(t, err)
				of[v.ID(&e).URN()] = v.Head
			}
			head = v.Head
			return nil
		}))
		return head
	}
	n.publish("m", topicMap(topic("t0", "first"), topic("t1", "first"), topic("t2", "first"), topic("t3", "first")))
	head := note(0)
	for _, doc := range [][]byte{
		topicMap(topic("t0", "second"), topic("t1", "second"), topic("t2", "first")),
		topicMap(topic("t0", "third"), topic("t1", "second"), topic("t2", "first")),
		topicMap(topic("t0", "fourth"), topic("t1", "fourth"), topic("t2", "fourth"), topic("t4", "fourth"), topic("t5", "fourth")),
	} {
		n.mustPut("m", doc)
		head = note(head)
	}
	seen := map[string]bool{}
	same := func(where string, f *feeds.Feed) {
		require.NotEmpty(t, f.Entries, where)
		assert.EqualValues(t, 1, f.Rendering, where)
		for _, e := range f.Entries {
			require.Equal(t, of[e.ID], e.Commit, "%s: %s", where, e.Title)
			seen[e.ID] = true
		}
	}
	for at := n.url("/topicmaps/m/fragments"); at != ""; {
		f := n.decoded(at)
		same(at, f)
		bundle, _ := f.Link(feeds.RelBundle)
		same(bundle.Href, n.bundle(bundle.Href))
		for i := range f.Entries {
			self, _ := f.Entries[i].Link("self")
			body := string(n.mustGet(self.Href).body)
			assert.Contains(t, body, ` own:rendering="1"`)
			assert.Contains(t, body, ` own:commit="`)
		}
		prev, _ := f.Link("prev-archive")
		at = prev.Href
	}
	assert.Len(t, seen, len(of))
	for at := n.url("/topicmaps/m/fragments?since=2000-01-01T00:00:00Z"); at != ""; {
		f := n.decoded(at)
		same(at, f)
		next, _ := f.Link("next")
		at = next.Href
	}
	require.Equal(t, 201, n.post("/topicmaps/m/snapshots").StatusCode)
	snapshots := n.decoded(n.url("/topicmaps/m/snapshots")).Entries
	require.NotEmpty(t, snapshots)
	assert.Equal(t, head, snapshots[0].Commit)
}
