// Package consumed has sources for tests of consumers of changes: a collection and a subscription, which change in the
// same way.
package consumed

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/kv/memory"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/storetest"
	"github.com/tmshare/tmshare/merge"
)

// OpenStore opens a store in memory.
func OpenStore(t testing.TB) *store.DB {
	db, err := store.Open(t.Context(), store.Options{Dir: t.TempDir(), Engine: memory.New(),
		Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// Source is a consumed source. Its name is m.
type Source interface {
	// Publish has it changed.
	Publish(t testing.TB, change func(prior fragment.Source) *fragment.Change)
	// State calls f with the present state.
	State(t testing.TB, f func(fragment.Source))
}

// Subscription is a source that is followed.
type Subscription struct{ db *store.DB }

type collection struct{ db *store.DB }

func (c collection) Publish(t testing.TB, change func(fragment.Source) *fragment.Change) {
	_, err := c.db.Publish(t.Context(), "m", func(_ store.Collection, state merge.State) (*fragment.Change, error) {
		return change(state), nil
	})
	require.NoError(t, err)
}

func (c collection) State(t testing.TB, f func(fragment.Source)) {
	require.NoError(t, c.db.View(t.Context(), "m", func(v *store.View) error { f(v.Source()); return nil }))
}

func (s Subscription) Publish(t testing.TB, change func(fragment.Source) *fragment.Change) {
	require.NoError(t, s.db.ApplyEntries(t.Context(), "m", func(a *store.Applying) error {
		storetest.Write(t, a.State, change(a.State))
		return nil
	}))
}

func (s Subscription) State(t testing.TB, f func(fragment.Source)) {
	require.NoError(t, s.db.ReadSources(t.Context(), func(_ []store.Subscription, all []fragment.Source) error {
		f(all[0])
		return nil
	}))
}

// Replace replaces the source by a new generation.
func (s Subscription) Replace(t testing.TB, with fragment.Source) {
	require.NoError(t, s.db.StageSource(t.Context(), "m", fragment.Records(with), store.Mark{}, nil))
	sub, err := s.db.Subscription(t.Context(), "m")
	require.NoError(t, err)
	require.NoError(t, s.db.SwitchSource(t.Context(), "m", sub.Staging.Generation, ""))
}

// NewCollection makes a collection.
func NewCollection(t testing.TB, db *store.DB) Source {
	_, err := db.CreateCollection(t.Context(), store.Collection{Name: "m", SP: storetest.SP}, &merge.Memory{}, nil)
	require.NoError(t, err)
	return collection{db}
}

// NewSubscription makes a subscription.
func NewSubscription(t testing.TB, db *store.DB) Subscription {
	require.NoError(t, db.AddSubscription(t.Context(), store.Subscription{Name: "m",
		FragmentsFeed: "http://m.example.org/fragments", SP: storetest.SP}))
	s := Subscription{db}
	s.Replace(t, &merge.Memory{})
	return s
}

// Edits returns a maker of changes of a small map.
func Edits(t testing.TB, seed uint64) func(prior fragment.Source) *fragment.Change {
	e := storetest.NewEditor(t, seed)
	return func(prior fragment.Source) *fragment.Change {
		change, err := fragment.Diff(t.Context(), prior, e.Version(prior))
		require.NoError(t, err)
		return change
	}
}
