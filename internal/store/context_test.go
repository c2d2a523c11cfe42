package store

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
)

// Whoever asks learns why nothing is read for them any more, also in the middle of an iteration.
func TestReadingEndsWithItsContext(t *testing.T) {
	db := openUnsynced(t, t.TempDir())
	collection(t, db, "m", 100)
	subscribe(t, db, "s", mapOf(t, 3))
	_, err := db.Latest(t.Context(), "m") // it is remembered
	require.NoError(t, err)
	tired := errors.New("nobody waits any more")
	ended, end := context.WithCancelCause(t.Context())
	end(tired)
	nothing := func() { t.Error("called after the end") }
	for what, read := range map[string]func() error{
		"view":          func() error { return db.View(ended, "m", func(*View) error { nothing(); return nil }) },
		"latest":        func() error { _, err := db.Latest(ended, "m"); return err },
		"collections":   func() error { _, err := db.Collections(ended); return err },
		"subscriptions": func() error { _, err := db.Subscriptions(ended); return err },
		"quarantine":    func() error { _, err := db.Quarantine(ended, "s"); return err },
		"count":         func() error { _, err := db.CountTopics(ended, "s", ""); return err },
		"records":       func() error { return db.HeldRecords(ended, "s", nil, func(Held) error { nothing(); return nil }) },
		"activity":      func() error { return db.Activity(ended, func(Activity) bool { nothing(); return true }) },
		"dump":          func() error { return db.Dump(ended, func(*Dump) error { nothing(); return nil }) },
		"parts":         func() error { return db.ReadParts(ended, "m", func([]Part) error { nothing(); return nil }) },
		"sources": func() error {
			return db.ReadSources(ended, func([]Subscription, []fragment.Source) error { nothing(); return nil })
		},
		"open": func() error { _, err := Open(ended, testOptions(t.TempDir())); return err },
	} {
		require.ErrorIs(t, read(), tired, what)
	}
	ctx, end := context.WithCancelCause(t.Context())
	err = db.View(ctx, "m", func(v *View) error {
		read := 0
		for _, err := range v.Source().Topics() {
			if err != nil {
				return err
			}
			if read++; read == 50 {
				end(tired)
			}
			require.LessOrEqual(t, read, 51)
		}
		return nil
	})
	require.ErrorIs(t, err, tired)
}
