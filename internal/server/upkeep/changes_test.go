package upkeep

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/store"
	_ "github.com/tmshare/tmshare/internal/testenv"
)

// none is a store that has nothing.
type none struct{ Store }

func (none) Version(context.Context) (store.Version, error)          { return 1, nil }
func (none) Collections(context.Context) ([]store.Collection, error) { return nil, nil }
func (none) Latest(context.Context, string) (*store.Latest, error)   { return nil, store.ErrNotFound }

// Collections that are gone are forgotten, but not that something has changed.
func TestChangesOfCollectionsThatAreGoneAreForgotten(t *testing.T) {
	now := time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)
	var c Changes
	c.init(none{}, func() time.Time { return now })
	change := func(name string) {
		now = now.Add(10 * time.Second)
		c.Begin(name)()
	}
	change("kept")
	kept := now
	for i := range 100 {
		change(fmt.Sprint("gone-", i))
	}
	gone := now
	end := c.Begin("new") // created, and not listed yet
	c.keep([]store.Collection{{Name: "kept"}})
	now = now.Add(time.Minute)
	assert.Len(t, c.last, 1)
	assert.False(t, c.Settled(t.Context(), "kept").Before(kept))
	assert.Equal(t, gone, c.Settled(t.Context(), "gone-99"), "later than it was, or as it was")
	assert.Zero(t, c.Settled(t.Context(), "new"), "a change is under way")
	end()
	now = now.Add(time.Minute)
	assert.Equal(t, now.Add(-time.Minute), c.Settled(t.Context(), "new"))
	assert.Equal(t, now.Add(-time.Minute), c.Settled(t.Context(), ""))
}

// Nothing is kept of collections whose snapshots are taken.
func TestTurnsOfSnapshotsAreForgotten(t *testing.T) {
	var b background
	b.init()
	done, err := b.alone(t.Context(), "m")
	require.NoError(t, err)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = b.alone(gone, "m")
	require.ErrorIs(t, err, context.Canceled)
	second := make(chan func())
	go func() {
		done, _ := b.alone(t.Context(), "m")
		second <- done
	}()
	assert.Len(t, b.taking, 1)
	done()
	(<-second)()
	assert.Empty(t, b.taking)
}
