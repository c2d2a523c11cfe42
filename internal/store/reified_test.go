package store

import (
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/merge"
)

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
	require.NoError(t, db.ReadParts(t.Context(), "", func(parts []Part) error {
		got, ok := parts[0].Source.(merge.Reified)
		require.True(t, ok)
		require.Equal(t, listed(t, want.ReifiedTopics()), listed(t, got.ReifiedTopics()))
		require.Equal(t, listed(t, want.ReifiedAssociations()), listed(t, got.ReifiedAssociations()))
		return nil
	}))
}

// The store finds the records in which something is reified, as a state in memory
// does: after a load, after changes, and after data of format 1 were opened.
func TestReifiedRecords(t *testing.T) {
	db := openDB(t, t.TempDir())
	want := reifiedState(t)
	require.Len(t, listed(t, want.ReifiedTopics()), 3)
	require.Len(t, listed(t, want.ReifiedAssociations()), 2)
	subscribe(t, db, "s", want)
	requireReified(t, db, want)

	// format 1 had no such rows
	rows := func() (n int) {
		require.NoError(t, db.rows.View(t.Context(), func(tx *txn.Tx) error {
			n = len(listed(t, tx.Scan([]byte{keys.TableReified}, nil)))
			return nil
		}))
		return n
	}
	require.Equal(t, 5, rows())
	require.NoError(t, db.rows.Engine.DeletePrefix(t.Context(), []byte{keys.TableReified}))
	require.NoError(t, db.rows.Update(t.Context(), func(tx *txn.Tx) error { return tx.Put(keys.Meta("format"), []byte("1")) }))
	require.Zero(t, rows())
	db = reopen(t, db)
	requireReified(t, db, want)

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
