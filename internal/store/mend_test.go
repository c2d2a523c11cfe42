package store

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/sources"
)

// What cannot be read of a subscription is removed with all that follows from it, in one commit that the log names the
// topics of.
func TestMendSource(t *testing.T) {
	db := openDB(t, t.TempDir())
	subscribe(t, db, "s", reifiedState(t))
	m, err := db.MendSource(t.Context(), "s")
	require.NoError(t, err)
	require.Zero(t, m)

	require.NoError(t, db.ApplyEntries(t.Context(), "s", func(a *Applying) error {
		a.Proof = &Proof{Equal: true}
		return a.Quarantine(Quarantined{TopicSI: string(ref(7)), Entry: "urn:e"})
	}))
	before := subscription(t, db, "s")
	id := before.Source(before.State)
	raw(t, db, func(w kv.Writer) error { return w.Put(id.LocatorKey(keys.TableTopic, ref(3)), []byte{255}) })
	raw(t, db, func(w kv.Writer) error { return w.Put(id.LocatorKey(keys.TableQuarantine, ref(7)), []byte("{")) })
	found := checked(t, db, false)
	require.Len(t, found, 1)
	require.Equal(t, `"tmshare-client verify --full s" fetches it anew from the source`, found[0].Remedy)
	require.False(t, found[0].Repairable)

	m, err = db.MendSource(t.Context(), "s")
	require.NoError(t, err)
	require.Equal(t, 1, m.Records)
	require.Positive(t, m.Rows)
	require.Empty(t, checked(t, db, false))
	left, err := db.Quarantine(t.Context(), "s")
	require.NoError(t, err)
	require.Empty(t, left)
	after := subscription(t, db, "s")
	require.Nil(t, after.State.Proof, "it is not proven any more")
	require.Greater(t, after.State.Revision, before.State.Revision, "a round of another process begins anew")
	require.NoError(t, db.Activity(t.Context(), func(a Activity) bool {
		require.Equal(t, ActivityMended, a.Kind)
		require.Contains(t, a.Entries, sources.ActivityEntry{TopicSI: string(ref(3))})
		return false
	}))
	m, err = db.MendSource(t.Context(), "s")
	require.NoError(t, err)
	require.Zero(t, m)
}
