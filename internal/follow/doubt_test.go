package follow_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/follow"
)

// A doubt states the number of readings, those needed, and the earliest time of confirmation.
func TestDoubtSaysWhenItIsBelieved(t *testing.T) {
	begun := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, c := range map[string]struct {
		openings []string
		needed   []string
	}{
		"a source that proves":         {[]string{"o"}, []string{"1 of 2 readings", "2 of 2 readings"}},
		"a source that proves nothing": {nil, []string{"1 of 3 readings", "2 of 3 readings", "3 of 3 readings"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := &follow.Memory{Feed: "f", Proves: c.openings != nil, Openings: c.openings}
			for i, text := range c.needed {
				j := follow.Judge{Now: begun.Add(time.Duration(i) * time.Minute), After: 10 * time.Minute}
				r := &follow.Reading{Loss: follow.LossFeed, Why: "the feed has a new id", Feed: "g", Head: "h", Checked: begun, Asked: true, Openings: c.openings}
				require.Equal(t, follow.Doubtful, j.Verdict(m, r))
				assert.Contains(t, m.Doubt.String(), "; "+text+", believed at the earliest at 2026-01-02T03:14:05Z")
			}
			j := follow.Judge{Now: begun.Add(10 * time.Minute), After: 10 * time.Minute}
			r := &follow.Reading{Loss: follow.LossFeed, Feed: "g", Head: "h", Checked: begun, Asked: true, Openings: c.openings}
			assert.Equal(t, follow.Believed, j.Verdict(m, r), "at that time")
		})
	}
}

// A doubt that no reading confirms promises none, and advises no confirmation by a person.
func TestDoubtThatNothingConfirms(t *testing.T) {
	m := &follow.Memory{Feed: "f", Proves: true}
	r := &follow.Reading{Loss: follow.LossOlder, Why: "older", Feed: "f", Checked: time.Unix(1, 0), Openings: []string{"o"}} // a cache's
	require.Equal(t, follow.Doubtful, follow.Judge{Now: time.Unix(9, 0)}.Verdict(m, r))
	assert.NotContains(t, m.Doubt.String(), "readings")
	assert.Contains(t, m.Doubt.Advice(func(flag string) string { return flag }), "The next rounds tell")
}

// A copy without data loses none, but an answer with an earlier state is not accepted.
func TestNothingIsHeld(t *testing.T) {
	j := follow.Judge{Now: time.Unix(100, 0), After: time.Hour, Nothing: true}
	r := &follow.Reading{Loss: follow.LossFeed, Feed: "g", Head: "h", Made: time.Unix(50, 0)}
	assert.Equal(t, follow.Believed, j.Verdict(&follow.Memory{Feed: "f"}, r))
	assert.Equal(t, follow.Doubtful, j.Verdict(&follow.Memory{Feed: "f", Made: time.Unix(60, 0)}, r), "it was made before")
}
