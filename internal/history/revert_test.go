package history_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/fragment/losses"
	"github.com/tmshare/tmshare/internal/history"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/storetest"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/merge"
)

// undo takes back a commit.
func (c *chronicle) undo(commit uint64, force bool) error {
	first := uint64(0)
	_, err := c.db.Publish(c.t.Context(), "m", func(col store.Collection, prior merge.State) (*fragment.Change, error) {
		first = col.Head + 1
		return history.Undo(c.t.Context(), c.db.ViewOf(col, prior), commit, history.Undone{Force: force, Limit: losses.All()})
	})
	if err == nil {
		c.record(first)
	}
	return err
}

// rows returns the records of a state, by their keys.
func rows(t require.TestingT, src fragment.Source) map[string]string {
	all := map[string]string{}
	for topic, err := range src.Topics() {
		require.NoError(t, err)
		all["topic "+string(topic.TopicSI())] = string(fragment.TopicContent(fragment.MarshalTopic(topic)))
	}
	for a, err := range src.Associations() {
		require.NoError(t, err)
		key := a.Key()
		all["association "+string(key[:])] = string(fragment.AssociationContent(fragment.MarshalAssociation(a)))
	}
	return all
}

// After any publications, the last commit can be undone, and so can this undoing. Of an earlier one, each record that
// has not changed since is restored, and all others stay; if there are any of these, nothing is changed without Force.
func TestCommitsAreTakenBack(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	back, conflicts, forced := 0, 0, 0
	testenv.Check(t, 40, 400, func(rt *rapid.T) {
		c := begin(t, rt, rapid.Uint64().Draw(rt, "seed"))
		for len(c.past) < 5 {
			c.publish(false)
		}
		n := len(c.past)
		require.NoError(rt, c.undo(c.past[n-1].last, false))
		require.Equal(rt, c.past[n-2].state, c.past[len(c.past)-1].state, "the state before the commit")
		require.NoError(rt, c.undo(c.past[len(c.past)-1].first, false))
		require.Equal(rt, c.past[n-1].state, c.past[len(c.past)-1].state, "and again that after it")

		some := c.past[rapid.IntRange(1, len(c.past)-1).Draw(rt, "commit")]
		var was, then, is map[string]string
		c.view(func(v *store.View) {
			before, err := v.PastBefore(some.last)
			require.NoError(rt, err)
			after, err := v.Past(some.first)
			require.NoError(rt, err)
			was, then, is = rows(rt, before), rows(rt, after), rows(rt, v.Source())
		})
		want := maps.Clone(is)
		since := 0
		for key := range union(was, then) {
			switch {
			case was[key] == then[key] || is[key] == was[key]:
			case is[key] != then[key]:
				since++
			case was[key] == "":
				delete(want, key)
			default:
				want[key] = was[key]
			}
		}
		err := c.undo(some.last, false)
		var conflict *history.ConflictError
		if errors.As(err, &conflict) {
			conflicts++
			require.Equal(rt, some.last, conflict.Commit)
			c.view(func(v *store.View) { require.Equal(rt, is, rows(rt, v.Source()), "nothing has changed") })
			err := c.undo(some.last, true)
			require.NoError(rt, err)
			if len(conflict.Kept) > since { // some were kept because others refer to them
				return
			}
			forced++
		} else {
			require.NoError(rt, err)
			require.Zero(rt, since)
			back++
		}
		c.view(func(v *store.View) {
			now := rows(rt, v.Source())
			for key := range union(want, now) {
				if referred := strings.HasPrefix(key, "association ") && (want[key] == "" || now[key] == ""); !referred {
					require.Equal(rt, want[key], now[key], "%q", key)
				}
			}
		})
	})
	require.Positive(t, back)
	require.Positive(t, conflicts)
	require.Positive(t, forced)
}

func union(a, b map[string]string) map[string]bool {
	all := map[string]bool{}
	for _, m := range []map[string]string{a, b} {
		for key := range m {
			all[key] = true
		}
	}
	return all
}

// After any publications, a topic is restored, or the error has the reason.
func TestTopicsBecomeWhatTheyWere(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	back := 0
	testenv.Check(t, 30, 300, func(rt *rapid.T) {
		c := begin(t, rt, rapid.Uint64().Draw(rt, "seed"))
		for len(c.past) < 6 {
			c.publish(false)
		}
		then := c.past[rapid.IntRange(0, len(c.past)-1).Draw(rt, "then")]
		for _, ref := range slices.Sorted(maps.Keys(then.topics)) {
			want := then.topics[ref]
			var was *fragment.Fragment
			var err error
			c.view(func(v *store.View) {
				was, err = history.Was(v, ref, c.moment(v, &then))
			})
			require.NoError(rt, err)
			joined := false
			_, err = c.db.Publish(rt.Context(), "m", func(_ store.Collection, prior merge.State) (*fragment.Change, error) {
				joined = refersToJoined(rt, prior, was)
				return history.Back(context.Background(), storetest.SP, prior, ref, was)
			})
			var moved *history.MovedError
			var inUse *fragment.InUseError
			var refused *fragment.DocumentError
			if errors.As(err, &moved) || errors.As(err, &inUse) || errors.As(err, &refused) {
				continue
			}
			require.NoError(rt, err)
			if joined {
				continue
			}
			back++
			c.view(func(v *store.View) {
				is := describe(rt, v.Source(), ref)
				is = slices.DeleteFunc(is, func(line string) bool { // a topic keeps assigned identifiers
					return strings.HasPrefix(line, "subject identifier "+storetest.SP+"topic/") && !slices.Contains(want, line)
				})
				require.Equal(rt, want, is)
			})
		}
	})
	require.Greater(t, back, testenv.Usual(30, 100))
}

// refersToJoined reports whether a topic referred to another one by a former TopicSI.
func refersToJoined(t require.TestingT, now merge.State, was *fragment.Fragment) (joined bool) {
	look := func(ref fragment.Ref) {
		topic, err := now.Topic(ref)
		require.NoError(t, err)
		joined = joined || topic != nil && topic.TopicSI() != ref
	}
	was.Topic.Mentions(look)
	for _, a := range was.Associations {
		a.Mentions(look)
		for _, player := range a.Players() {
			look(player)
		}
	}
	return joined
}

// A topic that did not exist is deleted; a missing one is restored.
func TestTopicsGoAndComeBack(t *testing.T) {
	c := begin(t, t, 1)
	c.change("http://new")
	n := len(c.past)
	back := func(i int) {
		var was *fragment.Fragment
		c.view(func(v *store.View) {
			var err error
			was, err = history.Was(v, "http://new", c.moment(v, &c.past[i]))
			require.NoError(t, err)
		})
		c.publishing(func(_ store.Collection, prior merge.State) (*fragment.Change, error) {
			return history.Back(t.Context(), storetest.SP, prior, "http://new", was)
		})
	}
	back(n - 2)
	require.Equal(t, c.past[n-2].state, c.past[n].state)
	back(n - 1)
	require.Equal(t, c.past[n-1].state, c.past[n+1].state)
	back(n - 1)
	require.Len(t, c.past, n+2, "nothing has changed")
}
