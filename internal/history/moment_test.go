package history_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/history"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/merge"
)

// change publishes a name for each of some topics.
func (c *chronicle) change(topics ...string) {
	c.publishing(func(col store.Collection, prior merge.State) (*fragment.Change, error) {
		change := &fragment.Change{Updated: len(topics)}
		for _, si := range topics {
			ref := fragment.Ref(si)
			t := &fragment.Topic{Identity: fragment.Identity{SubjectIdentifiers: []fragment.Ref{ref}}}
			t.Names = []fragment.Name{{Value: fmt.Sprint("name ", col.Head), Type: "http://a"}}
			t.Canonical()
			change.PutTopics = append(change.PutTopics, t)
			change.Entries = append(change.Entries, fragment.Entry{TopicSI: ref, Topic: ref, Title: t.Title()})
		}
		return change, nil
	})
}

// Times lead to the states of then, for any clock.
func TestTimesLeadToStates(t *testing.T) {
	c := begin(t, t, 1)
	created := c.clock
	c.clock = created.Add(time.Minute)
	c.change("http://a", "http://b", "http://c")
	c.clock = created.Add(-time.Hour) // the clock is set back
	c.change("http://a")
	c.clock = created.Add(time.Hour)
	c.change("http://b", "http://a")
	c.view(func(v *store.View) {
		head := v.Head
		var times []time.Time // of the entries; the first has index 0
		for e, err := range v.Entries(1) {
			require.NoError(t, err)
			times = append(times, e.Updated)
		}
		timeOf := func(seq uint64) time.Time { return times[seq-1] }
		for name, want := range map[string]struct {
			at  time.Time
			seq uint64
		}{
			"at the creation":                        {v.Created, 0},
			"at the first entry":                     {timeOf(1), head - 6},
			"within the first commit":                {timeOf(2), head - 6},
			"between commits":                        {created.Add(time.Second), head - 6},
			"right before a commit":                  {timeOf(head - 5).Add(-time.Microsecond), head - 6},
			"at the first entry of a commit":         {timeOf(head - 5), head - 3},
			"within a commit":                        {timeOf(head - 4), head - 3},
			"at the last entry of a commit":          {timeOf(head - 3), head - 3},
			"less than a microsecond later":          {timeOf(head - 3).Add(time.Nanosecond), head - 3},
			"at an entry while the clock was behind": {timeOf(head - 2), head - 2},
			"now":                                    {c.clock.Add(time.Second), head},
			"in the future":                          {c.clock.Add(1e6 * time.Hour), head},
		} {
			m, err := history.At(v, want.at)
			require.NoError(t, err, name)
			assert.Equal(t, want.seq, m.Seq, name)
			if m.Seq > 0 {
				assert.Equal(t, timeOf(m.Seq), m.Updated, name)
			}
		}
		_, err := history.At(v, v.Created.Add(-time.Microsecond))
		require.ErrorIs(t, err, store.ErrNotFound)
		require.ErrorContains(t, err, "the collection was created at 2026-05-01T12:00:00.000000Z")
		first, err := history.First(v)
		require.NoError(t, err)
		require.Equal(t, history.Moment{Seq: head - 6, Updated: timeOf(head - 6)}, first)
		state, _, err := c.export(v, v.Created)
		require.NoError(t, err)
		require.NotContains(t, state, "<topic ", "nothing had been published")
	})
}

// The error for a pruned state has the time of the horizon.
func TestPrunedTimesNameTheHorizon(t *testing.T) {
	c := begin(t, t, 1)
	c.change("http://b")
	for range 10 {
		c.clock = c.clock.Add(time.Minute)
		c.change("http://a")
	}
	_, err := c.db.TakeSnapshot(t.Context(), "m", 1)
	require.NoError(t, err)
	c.clock = c.clock.Add(time.Minute)
	c.change("http://a")
	_, err = c.db.Prune(t.Context(), "m", store.Retention{Entries: 1})
	require.NoError(t, err)
	c.view(func(v *store.View) {
		require.Positive(t, v.Horizon)
		horizon := v.HorizonTime.UTC().Format("2006-01-02T15:04:05.000000Z")
		_, err := history.At(v, v.HorizonTime.Add(-time.Microsecond))
		require.ErrorIs(t, err, store.ErrGone)
		require.ErrorContains(t, err, horizon)
		m, err := history.At(v, v.HorizonTime)
		require.NoError(t, err)
		require.Equal(t, v.Horizon, m.Seq)
		_, err = history.Version(v, fragment.Key("http://a"), m)
		require.ErrorIs(t, err, store.ErrGone, "the topic has changed since")
		require.ErrorContains(t, err, horizon)
		_, err = history.Version(v, fragment.Key("http://b"), m)
		require.NoError(t, err, "the topic has not")

		first, err := history.First(v)
		require.NoError(t, err)
		require.Equal(t, m, first, "that at the horizon")

		list, err := history.Changes(t.Context(), v, history.Query{Limit: 1000, Words: true})
		require.NoError(t, err)
		require.Equal(t, horizon, list.Pruned)
		require.Len(t, list.Changes, int(v.Head-v.Horizon))
		require.Empty(t, list.Changes[len(list.Changes)-1].Missing, "what was at the horizon is known")
		list, err = history.Changes(t.Context(), v, history.Query{Limit: 1000, Since: v.Updated})
		require.NoError(t, err)
		require.Empty(t, list.Pruned, "nothing that was asked for is missing")
		require.Len(t, list.Changes, 1)
	})
}

// Each list continues the previous one.
func TestChangesComeInPages(t *testing.T) {
	c := begin(t, t, 1)
	for range 5 {
		c.change("http://a", "http://b")
	}
	c.view(func(v *store.View) {
		for _, topic := range []fragment.Ref{"", "http://a"} {
			all, err := history.Changes(t.Context(), v, history.Query{TopicSI: topic, Limit: 1000})
			require.NoError(t, err)
			require.Zero(t, all.Before)
			var paged []history.Change
			for before := uint64(0); ; {
				page, err := history.Changes(t.Context(), v, history.Query{TopicSI: topic, Limit: 2, Before: before})
				require.NoError(t, err)
				require.LessOrEqual(t, len(page.Changes), 2)
				paged = append(paged, page.Changes...)
				if before = page.Before; before == 0 {
					break
				}
			}
			require.Equal(t, all.Changes, paged)
		}
		_, err := history.Changes(t.Context(), v, history.Query{TopicSI: "http://nobody"})
		require.ErrorIs(t, err, store.ErrNotFound)
	})
}

func TestTimesAreReadAsPeopleWriteThem(t *testing.T) {
	for text, want := range map[string]string{
		"2026-11-23T14:05:06Z":        "2026-11-23T14:05:06Z",
		"2026-11-23T15:05:06+01:00":   "2026-11-23T14:05:06Z",
		"2026-11-23T15:05:06 01:00":   "2026-11-23T14:05:06Z", // a + of a query that was not escaped
		"2026-11-23 14:05":            "2026-11-23T14:05:00Z",
		" 2026-11-23 ":                "2026-11-23T00:00:00Z",
		"2026-11-23T14:05:06.123456Z": "2026-11-23T14:05:06.123456Z",
	} {
		got, err := history.ParseTime(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got.Format(time.RFC3339Nano), text)
	}
	for _, text := range []string{"", "yesterday", "2026-13-01", "2026-02-30", "23.11.2026", "2026-11-23T25:00:00Z", "2026-11-23T14:05:06+1", "1763906706", "2026-11-23T14:05:06Zulu"} {
		_, err := history.ParseTime(text)
		require.Error(t, err, text)
		assert.ErrorContains(t, err, "write a time such as 2026-11-23T14:05:00Z", text)
	}
}

func TestTimesOnACommandLine(t *testing.T) {
	now := time.Date(2026, 11, 27, 8, 30, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"2h": "2026-11-27T06:30:00Z", "90m": "2026-11-27T07:00:00Z", "3d": "2026-11-24T08:30:00Z", "0s": "2026-11-27T08:30:00Z",
		"today": "2026-11-27T00:00:00Z", "yesterday": "2026-11-26T00:00:00Z", "2026-11-01": "2026-11-01T00:00:00Z",
		"2026-11-23T14:05:00Z": "2026-11-23T14:05:00Z",
	} {
		got, err := history.ParseAgo(text, now)
		require.NoError(t, err, text)
		assert.Equal(t, want, got.Format(time.RFC3339), text)
	}
	for _, text := range []string{"", "2", "0", "-2h", "tomorrow", "d", "-1d", "2 h"} {
		_, err := history.ParseAgo(text, now)
		assert.Error(t, err, text)
	}
}
