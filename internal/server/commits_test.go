package server_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testkit/served"
)

// Each entry states the commit that it belongs to, in every document that shows it, and each snapshot that of its
// state.
func TestEntriesAndSnapshotsStateTheirCommit(t *testing.T) {
	t.Parallel()
	n := start(t, served.DocumentSize(3))
	commits := map[string]uint64{} // commits by the ids of entries
	note := func(before uint64) uint64 {
		head := uint64(0)
		require.NoError(t, n.Store.View(t.Context(), "m", func(v *store.View) error {
			for e, err := range v.Entries(before + 1) {
				require.NoError(t, err)
				commits[v.ID(&e).URN()] = v.Head
			}
			head = v.Head
			return nil
		}))
		return head
	}
	n.Publish("m", served.TopicMap(served.Topic("t0", "first"), served.Topic("t1", "first"), served.Topic("t2", "first"), served.Topic("t3", "first")))
	head := note(0)
	for _, doc := range [][]byte{
		served.TopicMap(served.Topic("t0", "second"), served.Topic("t1", "second"), served.Topic("t2", "first")),
		served.TopicMap(served.Topic("t0", "third"), served.Topic("t1", "second"), served.Topic("t2", "first")),
		served.TopicMap(served.Topic("t0", "fourth"), served.Topic("t1", "fourth"), served.Topic("t2", "fourth"), served.Topic("t4", "fourth"), served.Topic("t5", "fourth")),
	} {
		n.MustPut("m", doc)
		head = note(head)
	}
	seen := map[string]bool{}
	same := func(where string, f *feeds.Feed) {
		require.NotEmpty(t, f.Entries, where)
		assert.EqualValues(t, 1, f.Rendering, where)
		for _, e := range f.Entries {
			require.Equal(t, commits[e.ID], e.Commit, "%s: %s", where, e.Title)
			seen[e.ID] = true
		}
	}
	for at := n.URL("/topicmaps/m/fragments"); at != ""; {
		f := n.Decoded(at)
		same(at, f)
		bundle, _ := f.Link(feeds.RelBundle)
		same(bundle.Href, n.bundle(bundle.Href))
		for i := range f.Entries {
			self, _ := f.Entries[i].Link("self")
			body := string(n.MustGet(self.Href).Bytes)
			assert.Contains(t, body, ` own:rendering="1"`)
			assert.Contains(t, body, ` own:commit="`)
		}
		prev, _ := f.Link("prev-archive")
		at = prev.Href
	}
	assert.Len(t, seen, len(commits))
	for at := n.URL("/topicmaps/m/fragments?since=2000-01-01T00:00:00Z"); at != ""; {
		f := n.Decoded(at)
		same(at, f)
		next, _ := f.Link("next")
		at = next.Href
	}
	require.Equal(t, 201, n.Post("/topicmaps/m/snapshots").StatusCode)
	snapshots := n.Decoded(n.URL("/topicmaps/m/snapshots")).Entries
	require.NotEmpty(t, snapshots)
	assert.Equal(t, head, snapshots[0].Commit)
}
