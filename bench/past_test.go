package bench_test

import (
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/bench/synthetic"
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/history"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/xtm"
)

// commitsBack is the number of commits after the state that BenchmarkExportAt writes.
const commitsBack = 1000

// BenchmarkExportAt measures the export of a state 1,000 commits ago, each of one topic, relative to the export of the
// present one.
func BenchmarkExportAt(b *testing.B) {
	n := mapSize()
	c := synthesize(b, n)
	db, err := openStore(b.Context(), importInto(b, c), slog.New(slog.DiscardHandler))
	require.NoError(b, err)
	defer db.Close()
	var then time.Time
	require.NoError(b, db.View(b.Context(), collection, func(v *store.View) error { then = v.Updated; return nil }))
	for i := range commitsBack {
		rename(b, db, fmt.Sprintf("%st/%d", synthetic.Base, i*7919%n), i)
	}
	require.NoError(b, db.View(b.Context(), collection, func(v *store.View) error {
		for _, version := range versions {
			b.Run("XTM"+string(version), func(b *testing.B) { compareExports(b, v, then, version) })
		}
		return nil
	}))
}

func compareExports(b *testing.B, v *store.View, then time.Time, version xtm.Version) {
	var now, past tally
	present := best(max(rounds(), 2), func() {
		now = 0
		require.NoError(b, v.WriteSnapshot(&now, version))
	})
	d := bestOf(b, func() {
		past = 0
		at, err := history.At(v, then)
		require.NoError(b, err)
		require.Equal(b, v.Head-commitsBack, at.Seq)
		state, err := v.Past(at.Seq)
		require.NoError(b, err)
		require.NoError(b, fragment.WriteSnapshot(&past, state, fragment.Form{Version: version, SP: v.SP}))
	})
	require.Greater(b, float64(now), float64(past), "the names were shorter")
	rate(b, float64(past)/1e6, "MB", d)
	ratio(b, d.Seconds(), present.Seconds(), "time-of-export-now")
}

// rename gives a topic other names. It returns the time of the entry.
func rename(b *testing.B, db *store.DB, si string, round int) time.Time {
	c, err := db.Publish(b.Context(), collection, func(_ store.Collection, state merge.State) (*fragment.Change, error) {
		was, err := state.Topic(fragment.Ref(si))
		if err != nil {
			return nil, err
		}
		t := *was
		t.Names = slices.Clone(was.Names)
		for i := range t.Names {
			t.Names[i].Value += fmt.Sprint(" in round ", round)
		}
		t.Canonical()
		entry := fragment.Entry{TopicSI: t.TopicSI(), Topic: t.TopicSI(), Title: t.Title()}
		return &fragment.Change{PutTopics: []*fragment.Topic{&t}, Entries: []fragment.Entry{entry}, Updated: 1}, nil
	})
	require.NoError(b, err)
	return c.Updated
}
