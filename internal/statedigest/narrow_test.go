package statedigest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tmshare/tmshare/internal/testenv"
)

// state is a tree of topics with three records each.
func state(t require.TestingT, topics int, content func(topic, record int) string) rows {
	tree := rows{}
	var changes []Change
	for i := range topics {
		for j := range 3 {
			if text := content(i, j); text != "" {
				changes = append(changes, Change{Entry: EntryOf(Topic, owner(i), []byte(text))})
			}
		}
	}
	require.NoError(t, Update(tree, changes))
	return tree
}

func owner(i int) string { return fmt.Sprintf("http://psi.example.org/vocabulary/topic-%06d", i) }

// compared returns the topics that differ, and the bytes of bodies and the documents that it took to find them.
func compared(t require.TestingT, own, other rows, most int) (topics []string, size, documents int, err error) {
	var mu sync.Mutex
	c := Comparison{Local: func(path []byte) (*Node, error) { return Read(own.Get, path) }, Parallel: 4, Most: most}
	c.Remote = func(_ context.Context, text string) (*Document, error) {
		path, ok := ParsePath(text)
		require.True(t, ok)
		n, err := Read(other.Get, path)
		require.NoError(t, err)
		body, err := json.Marshal(n.Document())
		require.NoError(t, err)
		mu.Lock()
		defer mu.Unlock()
		size, documents = size+len(body), documents+1
		d := &Document{}
		return d, json.Unmarshal(body, d)
	}
	topics, err = c.Differences(context.Background())
	return topics, size, documents, err
}

// Negentropy, a protocol that reconciles sets by ranges, moves 14.6 kB to find 10 of 100,000, and 872 kB to find 1,000.
func TestFewBytesFindWhatDiffers(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	const topics = 100_000
	same := func(topic, record int) string { return fmt.Sprint(topic, "-", record) }
	source := state(t, topics, same)
	for _, c := range []struct{ differ, most int }{{0, 400}, {10, 12_000}, {1000, 400_000}} {
		every := topics + 1
		if c.differ > 0 {
			every = topics / c.differ
		}
		copied := state(t, topics, func(topic, record int) string {
			if topic%every == 7 && record == 1 {
				return "other"
			}
			return same(topic, record)
		})
		if c.differ == 0 {
			copied = source
		}
		found, size, documents, err := compared(t, copied, source, topics)
		require.NoError(t, err)
		assert.Len(t, found, c.differ)
		assert.LessOrEqual(t, size, c.most)
		t.Logf("%d of %d topics that differ are found with %d bytes in %d documents", c.differ, topics, size, documents)
	}
}

// For any two states, exactly the topics with different records are found.
func TestExactlyWhatDiffersIsFound(t *testing.T) {
	t.Parallel()
	testenv.Check(t, 100, 3000, func(t *rapid.T) {
		topics := rapid.IntRange(0, 120).Draw(t, "topics")
		draw := func(label string) func(int, int) string {
			kept := rapid.IntRange(0, 3).Draw(t, label)
			return func(topic, record int) string {
				switch (topic*7 + record*kept) % 11 {
				case 1:
					return ""
				case 2:
					return label
				}
				return fmt.Sprint(topic, record)
			}
		}
		a, b := draw("a"), draw("b")
		var want []string
		for i := range topics {
			differs := false
			for j := range 3 {
				differs = differs || a(i, j) != b(i, j)
			}
			if sameSet(i, a, b) {
				differs = false
			}
			if differs {
				want = append(want, owner(i))
			}
		}
		got, _, _, err := compared(t, state(t, topics, a), state(t, topics, b), 1000)
		require.NoError(t, err)
		require.Equal(t, want, got)
		if len(want) > 1 {
			_, _, _, err := compared(t, state(t, topics, a), state(t, topics, b), 1)
			require.ErrorAs(t, err, new(*TooManyError))
		}
	})
}

// sameSet reports whether a topic has the same records in both: which record is which does not matter.
func sameSet(topic int, a, b func(int, int) string) bool {
	inA, inB := map[string]bool{}, map[string]bool{}
	for j := range 3 {
		inA[a(topic, j)], inB[b(topic, j)] = true, true
	}
	delete(inA, "")
	delete(inB, "")
	return fmt.Sprint(inA) == fmt.Sprint(inB)
}

// A source that makes up its tree leads nowhere.
func TestTreesOfAnAttacker(t *testing.T) {
	t.Parallel()
	own := state(t, 100, func(topic, record int) string { return fmt.Sprint(topic, record) })
	for name, remote := range map[string]func(string) *Document{
		"without end": func(path string) *Document {
			return &Document{Children: strings.Repeat(fmt.Sprintf("%08d", len(path)+1), Fanout)}
		},
		"few children": func(string) *Document { return &Document{Children: "x"} },
		"many topics": func(string) *Document {
			d := &Document{}
			for i := range 2000 {
				d.Topics = append(d.Topics, []string{owner(i + 1000), "x"})
			}
			return d
		},
	} {
		c := Comparison{
			Local: func(path []byte) (*Node, error) { return Read(own.Get, path) }, Parallel: 4, Most: 1000,
			Remote: func(_ context.Context, path string) (*Document, error) { return remote(path), nil },
		}
		_, err := c.Differences(t.Context())
		assert.Error(t, err, name)
	}
}
