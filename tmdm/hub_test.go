package tmdm

import (
	"context"
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/testenv"
)

// hub returns a map with a class of n instances that have a name and an
// occurrence each; every tenth has two equal statements of its class.
func hub(n int) (tm *TopicMap, class *Topic) {
	tm = New()
	class, typ := si(tm, "class"), si(tm, "type")
	for i := range n {
		t := si(tm, fmt.Sprint("instance/", i))
		t.AddType(class)
		if i%10 == 0 {
			t.AddType(class)
		}
		t.AddName(fmt.Sprint("Instance ", i), nil)
		t.AddOccurrence(fmt.Sprint(i), XSDInteger, typ, class)
	}
	return tm, class
}

// hubSteps are the steps whose time for each instance must not grow with the number of instances.
var hubSteps = map[string]func(t require.TestingT, tm *TopicMap, class *Topic, n int){
	"Normalize": func(t require.TestingT, tm *TopicMap, class *Topic, n int) {
		require.NoError(t, tm.Normalize(context.Background()))
		require.Len(t, class.RolesPlayed(), n)
	},
	"NormalizeBesideManyNames": func(t require.TestingT, tm *TopicMap, class *Topic, n int) {
		for i := range n {
			class.AddName(fmt.Sprint(i), nil)
			topic := si(tm, fmt.Sprint("instance/", i))
			topic.AddName("second", nil)
		}
		require.NoError(t, tm.Normalize(context.Background()))
	},
	"NormalizeManyRoles": func(t require.TestingT, tm *TopicMap, class *Topic, n int) {
		for range 2 {
			a := tm.CreateAssociation(class)
			a.AddRole(class, class)
			for i := range n {
				a.AddRole(class, si(tm, fmt.Sprint("instance/", i)))
			}
			a.AddRole(class, class)
		}
		require.NoError(t, tm.Normalize(context.Background()))
	},
	"NormalizeSharedReifier": func(t require.TestingT, tm *TopicMap, class *Topic, n int) {
		for range n {
			require.NoError(t, SetReifier(class.AddName("same", nil), class))
		}
		require.NoError(t, tm.Normalize(context.Background()))
		require.Len(t, class.reifiedItems(), 1)
	},
	"Merge": func(t require.TestingT, tm *TopicMap, class *Topic, n int) {
		for i := range n { // a reader finds out late that it is the class
			topic := tm.CreateTopic()
			si(tm, fmt.Sprint("instance/", i)).AddType(topic)
			if i%2 == 0 {
				require.NoError(t, class.Merge(topic))
			} else {
				require.NoError(t, topic.Merge(class))
				class = topic
			}
		}
		require.NoError(t, tm.Normalize(context.Background()))
		require.Len(t, class.RolesPlayed(), n)
	},
	"RemoveTheClass": func(t require.TestingT, tm *TopicMap, class *Topic, _ int) {
		for topic := range tm.Topics() {
			for _, o := range topic.Occurrences() {
				o.Remove() // its scope would keep the class
			}
		}
		require.NoError(t, class.Remove())
	},
	"RemoveAssociations": func(t require.TestingT, tm *TopicMap, class *Topic, n int) {
		var associations []*Association
		for i := range n {
			a := tm.CreateAssociation(class)
			a.AddRole(class, si(tm, fmt.Sprint("instance/", i)))
			associations = append(associations, a)
		}
		for _, a := range associations {
			a.Remove()
		}
	},
	"Lookup": func(t require.TestingT, tm *TopicMap, class *Topic, n int) {
		for i := range n {
			topic := tm.TopicBySubjectIdentifier(Locator(fmt.Sprint(ex, "instance/", i)))
			for c := range topic.Types() {
				require.True(t, c == class)
			}
		}
		for range class.Types() {
			require.Fail(t, "the class is no instance")
		}
	},
}

// Steps that go through all for each of n instances would take a hundred times
// as long as building the map, or more; the others are near to it.
func TestHubsAreNoTrap(t *testing.T) {
	testenv.SkipUnderRace(t)
	const n, limit, attempts = 30_000, 12, 5 // a busy machine may spoil one
	for _, name := range slices.Sorted(maps.Keys(hubSteps)) {
		t.Run(name, func(t *testing.T) {
			best := math.Inf(1)
			for range attempts {
				start := testenv.CPUTime()
				tm, class := hub(n)
				building := testenv.CPUTime() - start
				start = testenv.CPUTime()
				hubSteps[name](t, tm, class, n)
				best = min(best, float64(testenv.CPUTime()-start)/float64(building))
				if best < limit {
					break
				}
			}
			t.Logf("%.2f of the time to build", best)
			assert.Less(t, best, float64(limit))
		})
	}
}

// BenchmarkHub reports, beside the time of each step on a map with a class of
// 100,000 instances, its ratio to the time that building the map takes.
func BenchmarkHub(b *testing.B) {
	const n = 100_000
	for _, name := range slices.Sorted(maps.Keys(hubSteps)) {
		step := hubSteps[name]
		b.Run(name, func(b *testing.B) {
			var building, stepping time.Duration
			for b.Loop() {
				b.StopTimer()
				runtime.GC() // so that no step pays for the map of the one before
				start := time.Now()
				tm, class := hub(n)
				building += time.Since(start)
				b.StartTimer()
				start = time.Now()
				step(b, tm, class, n)
				stepping += time.Since(start)
			}
			b.ReportMetric(stepping.Seconds()/building.Seconds(), "step/building")
		})
	}
}
