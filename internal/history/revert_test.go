package history_test

import (
	"context"
	"errors"
	"io"
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
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// without publishes the map without a commit.
func (c *chronicle) without(commit uint64) error {
	var tm *tmdm.TopicMap
	err := c.db.View(c.t.Context(), "m", func(v *store.View) error {
		p, err := history.Without(c.t.Context(), v, c.db.Scratch(), commit)
		if err != nil {
			return err
		}
		defer p.Close()
		r, w := io.Pipe()
		go func() { w.CloseWithError(p.Write(w, xtm.V21)) }()
		tm, err = xtm.Read(c.t.Context(), r, xtm.Options{Base: storetest.SP})
		return err
	})
	if err == nil {
		c.publishing(func(col store.Collection, prior merge.State) (*fragment.Change, error) {
			var all losses.Limit
			require.NoError(c.t, all.UnmarshalText([]byte("all")))
			return history.Taken(c.t.Context(), storetest.SP, prior, tm, all)
		})
	}
	return err
}

// Whatever was published: the last commit can be taken back, and what it took back as well. An earlier one can be taken back
// exactly where none of its topics has changed since, and then what it has not changed stays.
func TestCommitsAreTakenBack(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	back, conflicts := 0, 0
	testenv.Check(t, 30, 300, func(rt *rapid.T) {
		c := begin(t, rt, rapid.Uint64().Draw(rt, "seed"))
		for len(c.past) < 5 {
			c.publish(false)
		}
		n := len(c.past)
		require.NoError(rt, c.without(c.past[n-1].last))
		require.Equal(rt, c.past[n-2].state, c.past[len(c.past)-1].state, "the state before the commit")
		require.NoError(rt, c.without(c.past[len(c.past)-1].first))
		require.Equal(rt, c.past[n-1].state, c.past[len(c.past)-1].state, "and again that after it")

		some := c.past[rapid.IntRange(1, len(c.past)-1).Draw(rt, "commit")]
		before := c.past[len(c.past)-1]
		later, changed := map[fragment.Ref]bool{}, map[fragment.Ref]bool{}
		c.view(func(v *store.View) {
			for e, err := range v.Entries(some.first) {
				require.NoError(rt, err)
				if e.Seq <= some.last {
					changed[e.TopicSI] = true
				} else if changed[e.TopicSI] {
					later[e.TopicSI] = true
				}
			}
		})
		err := c.without(some.last)
		var conflict *history.ConflictError
		if errors.As(err, &conflict) {
			conflicts++
			require.Len(rt, conflict.Topics, len(later))
			require.Equal(rt, some.first, conflict.Commit)
			return
		}
		require.NoError(rt, err)
		require.Empty(rt, later)
		back++
		after := c.past[len(c.past)-1]
		for ref, lines := range before.topics {
			if !changed[ref] {
				require.Equal(rt, lines, after.topics[ref], "%s was not in the commit", ref)
			}
		}
	})
	require.Positive(t, back)
	require.Positive(t, conflicts)
}

// Whatever was published: a topic becomes what it was, unless it says why not.
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
				was, err = history.Was(rt.Context(), v, ref, c.moment(v, &then))
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
				is = slices.DeleteFunc(is, func(line string) bool { // a topic keeps what it was assigned
					return strings.HasPrefix(line, "subject identifier "+storetest.SP+"topic/") && !slices.Contains(want, line)
				})
				require.Equal(rt, want, is)
			})
		}
	})
	require.Greater(t, back, 100)
}

// refersToJoined reports whether a topic referred to another by what is not the other's TopicSI any more.
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

// A topic that was not there is deleted; one that is not there now comes back.
func TestTopicsGoAndComeBack(t *testing.T) {
	c := begin(t, t, 1)
	c.change("http://new")
	n := len(c.past)
	back := func(i int) {
		var was *fragment.Fragment
		c.view(func(v *store.View) {
			var err error
			was, err = history.Was(t.Context(), v, "http://new", c.moment(v, &c.past[i]))
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
