package tmdm

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tmshare/tmshare/internal/testenv"
)

// The table of identifiers behaves as two maps would, whatever is added and
// removed, and lists that were made of it stay as they are.
func TestIdentifiersAreMaps(t *testing.T) {
	testenv.Check(t, 50, 300, func(t *rapid.T) {
		var x identifiers
		known := map[role]map[Locator]*Topic{asSubject: {}, asItem: {}}
		lists := map[Locator][]Locator{}
		topic := &Topic{}
		locators := rapid.SampledFrom([]int{5, 300}).Draw(t, "locators")
		for range rapid.IntRange(1, 1000).Draw(t, "steps") {
			loc := Locator(fmt.Sprint("http://example.org/", rapid.IntRange(0, locators).Draw(t, "locator")))
			as := rapid.SampledFrom([]role{asSubject, asItem}).Draw(t, "as")
			if rapid.Bool().Draw(t, "remove") {
				x.remove(loc, as)
				delete(known[as], loc)
				continue
			}
			owner := topic
			for _, m := range known {
				if m[loc] != nil {
					owner = m[loc]
				}
			}
			list, other := x.add(loc, owner, as)
			require.Nil(t, other)
			require.Equal(t, known[as][loc] == nil, list != nil)
			if list != nil {
				lists[loc] = list
			}
			_, other = x.add(loc, &Topic{}, asSubject|asItem)
			require.Same(t, owner, other)
			known[as][loc] = owner
			topic = &Topic{}
		}
		for as, m := range known {
			for i := range locators + 1 {
				loc := Locator(fmt.Sprint("http://example.org/", i))
				require.Same(t, m[loc], x.topic(loc, as), "%s as %d", loc, as)
			}
			require.Equal(t, len(m), count(x, as))
		}
		for loc, list := range lists {
			require.Equal(t, []Locator{loc}, list)
		}
	})
}

// Adding and removing without end takes no more room than what is there at once.
func TestIdentifiersAreReused(t *testing.T) {
	var x identifiers
	for i := range 100_000 {
		loc := Locator(fmt.Sprint("http://example.org/", i))
		x.add(loc, &Topic{}, asItem)
		x.remove(loc, asItem)
	}
	require.LessOrEqual(t, len(x.slots), 64)
	require.LessOrEqual(t, len(x.chunks), 2)
}
