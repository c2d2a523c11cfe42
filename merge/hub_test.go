package merge_test

import (
	"bytes"
	"fmt"
	"io"
	"iter"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// counting is a state that counts the records that are read from it, and the
// iterations that are begun.
type counting struct {
	merge.State
	records, iterations int
}

func (c *counting) Topic(si fragment.Ref) (*fragment.Topic, error) {
	c.records++
	return c.State.Topic(si)
}

func (c *counting) Topics() iter.Seq2[*fragment.Topic, error] { return counted(c, c.State.Topics()) }

func (c *counting) AssociationsOf(player fragment.Ref, part fragment.Part) iter.Seq2[*fragment.Association, error] {
	return counted(c, c.State.AssociationsOf(player, part))
}

func counted[T any](c *counting, seq iter.Seq2[*T, error]) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		c.iterations++
		seq(func(x *T, err error) bool {
			c.records++
			return yield(x, err)
		})
	}
}

const hub tmdm.Locator = "http://class"

func instance(i int) tmdm.Locator { return tmdm.Locator(fmt.Sprintf("http://instance/%d", i)) }

// crowd is a map with a class of n instances. Each has a name and is related to the next one.
func crowd(n int) *tmdm.TopicMap {
	m := draft{TopicMap: tmdm.New()}
	for i := range n {
		t := m.Named(fmt.Sprint("instance ", i), instance(i))
		t.AddType(m.Topic(hub))
		m.Associate(x, t, m.Topic(instance((i+1)%n)))
	}
	return m.TopicMap
}

// crowdState publishes a crowd and returns the state.
func crowdState(t testing.TB, n int) *merge.Memory {
	m, err := fragment.NameTopics(t.Context(), crowd(n), sp, nil)
	require.NoError(t, err)
	var state merge.Memory
	require.NoError(t, state.Load(m))
	return &state
}

// fragmentOf writes the fragment of a topic and reads it as a subscriber does.
func fragmentOf(t testing.TB, src fragment.Source, ref tmdm.Locator) *fragment.Fragment {
	var b bytes.Buffer
	require.NoError(t, fragment.Write(&b, src, ref, fragment.Form{Version: xtm.V21, SP: sp}))
	f, err := fragment.Read(t.Context(), &b, xtm.Options{Base: sp}, ref)
	require.NoError(t, err)
	return f
}

// The cost of an instance does not depend on how many others its class has: the
// records that are read are those of the instance and the topics it mentions.
func TestAnInstanceCostsItsOwnRecords(t *testing.T) {
	const few, many = 20, 20_000
	read := map[string][]int{}
	for _, n := range []int{few, many} {
		state := &counting{State: crowdState(t, n)}
		note := func(what string) {
			read[what] = append(read[what], state.records)
			state.records = 0
		}
		require.NoError(t, fragment.Write(io.Discard, state, instance(7), fragment.Form{Version: xtm.V21, SP: sp}))
		note("write")
		f := fragmentOf(t, state.State, instance(7))
		require.NoError(t, merge.Apply(state, f))
		note("apply")
		f.Topic.Names[0].Value = "renamed"
		require.NoError(t, merge.Apply(state, f))
		note("apply a change")
		f.Associations = nil
		require.NoError(t, merge.Apply(state, f))
		note("apply a loss")
		require.NoError(t, merge.Apply(state, tombstone(instance(7))))
		note("apply a tombstone")
		_, err := fragment.Delete(state, instance(5), 0)
		require.NoError(t, err)
		note("delete")
		// The class is known by its instances alone, and it may be the last.
		class, err := state.State.Topic(hub)
		require.NoError(t, err)
		provisional := *class
		provisional.Provisional = true
		require.NoError(t, state.PutTopic(&provisional))
		require.NoError(t, merge.Apply(state, tombstone(instance(9))))
		note("apply with a provisional class")
		require.True(t, has(t, state.State, hub))
	}
	require.NotEmpty(t, read)
	for what, counts := range read {
		require.Equal(t, counts[0], counts[1], "%s: records read with %d and with %d instances", what, few, many)
		require.Less(t, counts[1], 40, what)
	}
}

// Diff reads every record of both states as often as it has players, except those of instances with their class, and
// has one change for one changed instance.
func TestDiffReadsEachRecordOnce(t *testing.T) {
	const n = 5_000
	state := &counting{State: crowdState(t, n)}
	tm := crowd(n)
	tm.TopicBySubjectIdentifier(instance(7)).AddName("another", nil)
	next, err := fragment.NameTopics(t.Context(), tm, sp, state.State)
	require.NoError(t, err)
	topics := len(slices.Collect(tm.Topics()))
	associations := len(slices.Collect(tm.Associations()))
	change, err := fragment.Diff(t.Context(), state, next)
	require.NoError(t, err)
	require.Len(t, change.Entries, 1)
	require.Len(t, change.PutTopics, 1)
	require.Empty(t, change.PutAssociations)
	require.Equal(t, topics+2*associations-n, state.records, "each topic once, and each association for each of its two players, a class excepted")
	require.Equal(t, 1+topics*2, state.iterations, "as an instance, and as a player")
}
