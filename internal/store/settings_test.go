package store

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSettingsChange(t *testing.T) {
	db := openDB(t, t.TempDir())
	before := collection(t, db, "m", 3)
	other := collection(t, db, "other", 3)
	all := Settings{
		Title: "A map", Summary: "of things", DocumentSize: 7, OmitInstances: true, SnapshotEvery: 5, SnapshotAfter: time.Hour,
		SnapshotsKept: 4, KeepEntries: 1000, KeepFor: 90 * 24 * time.Hour,
	}
	c, err := db.ChangeSettings(t.Context(), "m", func(s *Settings) error {
		require.Equal(t, before.Settings, *s, "it sees what is set")
		*s = all
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, all, c.Settings)
	for range 2 {
		view(t, db, "m", func(v *View) {
			require.Equal(t, *c, v.Collection, "what was returned is what is kept")
			want := *before
			want.Settings, want.Segments = all, v.Segments
			require.Equal(t, want, v.Collection, "nothing else has changed")
			require.Len(t, entries(t, v), int(before.Head))
		})
		view(t, db, "other", func(v *View) { require.Equal(t, *other, v.Collection) })
		db = reopen(t, db)
	}
	c, err = db.ChangeSettings(t.Context(), "m", func(s *Settings) error { *s = Settings{}; return nil })
	require.NoError(t, err)
	require.Equal(t, Settings{DocumentSize: 7}, c.Settings, "documents must have some size: it stays")
}

func TestSettingsThatAreRefusedChangeNothing(t *testing.T) {
	db := openDB(t, t.TempDir())
	c := collection(t, db, "m", 3)
	written, refused := committed(t, db), errors.New("no")
	set := func(change func(*Settings)) func(*Settings) error {
		return func(s *Settings) error { s.Title = "changed"; change(s); return nil }
	}
	for name, change := range map[string]func(*Settings) error{
		"DocumentSize is negative":  set(func(s *Settings) { s.DocumentSize = -1 }),
		"SnapshotEvery is negative": set(func(s *Settings) { s.SnapshotEvery = -1 }),
		"SnapshotAfter is negative": set(func(s *Settings) { s.SnapshotAfter = -time.Second }),
		"SnapshotsKept is negative": set(func(s *Settings) { s.SnapshotsKept = -1 }),
		"KeepFor is negative":       set(func(s *Settings) { s.KeepFor = -1 }),
		"no":                        func(s *Settings) error { s.Title = "changed"; return refused },
	} {
		got, err := db.ChangeSettings(t.Context(), "m", change)
		require.ErrorContains(t, err, name)
		require.Nil(t, got)
	}
	passes := func(got *Collection) error { require.Equal(t, c, got); return nil }
	got, err := db.ChangeSettings(t.Context(), "m", set(func(*Settings) {}), passes, func(*Collection) error { return refused })
	require.ErrorIs(t, err, refused, "the second check")
	require.Nil(t, got)
	_, err = db.ChangeSettings(t.Context(), "x", set(func(*Settings) {}))
	require.ErrorIs(t, err, ErrNotFound)
	require.Equal(t, written, committed(t, db))
	view(t, db, "m", func(v *View) { require.Equal(t, *c, v.Collection) })
	_, err = db.ChangeSettings(t.Context(), "m", set(func(*Settings) {}), passes)
	require.NoError(t, err)
	_, err = db.CreateCollection(t.Context(), Collection{Name: "n", SP: sp, Settings: Settings{KeepFor: -1}}, mapOf(t, 1), nil)
	require.ErrorContains(t, err, "KeepFor is negative")
}
