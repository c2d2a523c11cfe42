package merge_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/testedit"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
)

type draft = testedit.Draft

// history is a publisher and the versions that it has published.
type history struct {
	*publisher
	commits  int
	expected []byte // canonical form of the last version
}

func newHistory(t *testing.T) *history { return &history{publisher: &publisher{t: t}} }

// version publishes the next version and returns its entries: "a" for a
// fragment of a, "b of a" for the closing entry of b that describes a, "no b"
// for a tombstone.
func (h *history) version(build func(draft)) (entries []string) {
	h.t.(*testing.T).Helper()
	tm := tmdm.New()
	build(draft{TopicMap: tm})
	require.NoError(h.t, tm.Normalize(h.t.Context()))
	h.expected = h.publish(tm, h.commits)
	for _, l := range h.log {
		if l.commit != h.commits {
			continue
		}
		name := string(l.entry.TopicSI)
		switch {
		case l.entry.Deleted:
			name = "no " + name
		case l.entry.Topic != l.entry.TopicSI:
			name += " of " + string(l.entry.Topic)
		}
		entries = append(entries, name)
	}
	h.commits++
	return entries
}

// from returns the place in the log of the last entry with a TopicSI that a
// commit published.
func (h *history) from(commit int, si tmdm.Locator) int {
	for i, l := range slices.Backward(h.log) {
		if l.commit == commit && l.entry.TopicSI == si {
			return i
		}
	}
	require.Failf(h.t, "no such entry", "commit %d published none for %s", commit, si)
	return 0
}

// subscriber returns one that has read a snapshot of the state as it is now.
func (h *history) subscriber() *subscriber {
	s := &subscriber{mark: len(h.log)}
	require.NoError(h.t, s.state.Load(h.snapshot()))
	return s
}

// follow applies the rest of the log, oldest first.
func (h *history) follow(s *subscriber, coalesce bool) {
	s.round(h.publisher, len(h.log), coalesce, false)
}

// followBut applies the rest of the log but for one entry, and then that one late.
func (h *history) followBut(s *subscriber, late int) {
	for ; s.mark < len(h.log); s.mark++ {
		if s.mark != late {
			require.NoError(h.t, merge.Apply(&s.state, h.log[s.mark].parsed))
		}
	}
	require.NoError(h.t, merge.ApplyLate(&s.state, h.log[late].parsed))
}

// requireInStep checks that a subscriber has the publisher's last version.
func (h *history) requireInStep(s *subscriber, format string, args ...any) {
	h.t.(*testing.T).Helper()
	message := fmt.Sprintf(format, args...)
	require.Equal(h.t, string(h.expected), string(joined(h.t, &s.state)), message)
	require.Equal(h.t, dump(h.t, h.subscriber().source()), dump(h.t, &s.state), "%s: record for record", message)
}

func (s *subscriber) source() fragment.Source { return &s.state }

// topic returns the record of a topic, which must be there.
func (s *subscriber) topic(t testing.TB, si tmdm.Locator) *fragment.Topic {
	topic, err := s.state.Topic(si)
	require.NoError(t, err)
	require.NotNil(t, topic, "topic %s", si)
	return topic
}

// has reports whether a state has a topic with the subject identifier.
func has(t testing.TB, s merge.State, si tmdm.Locator) bool {
	topic, err := s.Topic(si)
	require.NoError(t, err)
	return topic != nil
}

// playing returns the associations in which si plays, those in which it is
// only a class included.
func playing(t testing.TB, s merge.State, si tmdm.Locator) (found []*fragment.Association) {
	for _, part := range fragment.Parts {
		for a, err := range s.AssociationsOf(si, part) {
			require.NoError(t, err)
			found = append(found, a)
		}
	}
	return found
}
