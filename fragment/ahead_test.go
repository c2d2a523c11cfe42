package fragment

import (
	"errors"
	"fmt"
	"iter"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/testedit"
	"github.com/tmshare/tmshare/tmdm"
)

// large makes a map of some batches of topics, and edits it at random.
func large(t *testing.T, seed uint64) *Map {
	const sp = "http://example.org/"
	tm := tmdm.New()
	for i := range 6 * batchSize {
		topic := tm.CreateTopicBySubjectIdentifier(tmdm.Locator(fmt.Sprintf("http://psi.example.org/many/%d", i)))
		topic.AddName("n", nil)
	}
	editor := testedit.New(tm, sp, seed)
	for range 2 * batchSize {
		editor.Edit()
	}
	m, err := NameTopics(t.Context(), tm, sp, nil)
	require.NoError(t, err)
	return m
}

// Records that are made ahead, in memory that is used again, are the same as records that are made one by one.
func TestFormsMadeAheadAreThoseOfTheRecords(t *testing.T) {
	for seed := range uint64(5) {
		m := large(t, seed)
		a := newAhead(m)
		associations, rich := 0, 0
		for record, err := range m.Topics() {
			require.NoError(t, err)
			made := a.peek()
			require.NotNil(t, made)
			require.Equal(t, record.TopicSI(), made.ref)
			require.Equal(t, MarshalTopic(record), made.record())
			for _, n := range record.Names {
				rich += len(n.Variants)
			}
			left := made.playing()
			for _, part := range []Part{AsInstance, AsPlayer} {
				for one, err := range m.AssociationsOf(record.TopicSI(), part) {
					require.NoError(t, err)
					require.NotEmpty(t, left)
					require.Equal(t, part, left[0].part)
					require.Equal(t, one.Key(), left[0].key)
					require.Equal(t, MarshalAssociation(one), made.formOf(left[0].form))
					left = left[1:]
					associations++
				}
			}
			require.Empty(t, left)
			a.step()
		}
		require.Nil(t, a.peek())
		require.Nil(t, a.peek())
		a.batches.Stop()
		require.Greater(t, len(m.sorted), 6*batchSize-40)
		require.Greater(t, associations, 30)
		require.Positive(t, rich, "variants")
	}
}

// failing is a source that fails at a topic.
type failing struct {
	*Map
	at  int
	err error
}

func (f failing) Topics() iter.Seq2[*Topic, error] {
	return func(yield func(*Topic, error) bool) {
		n := 0
		for t, err := range f.Map.Topics() {
			if n == f.at {
				yield(nil, f.err)
				return
			}
			if n++; !yield(t, err) {
				return
			}
		}
	}
}

// A comparison that ends early leaves nothing running, wherever it ends.
func TestNothingGoesOnAfterAComparison(t *testing.T) {
	m := large(t, 1)
	before := runtime.NumGoroutine()
	boom := errors.New("boom")
	for _, at := range []int{0, 1, batchSize - 1, batchSize, batchSize + 1, 3 * batchSize, len(m.sorted) - 1} {
		_, err := Diff(t.Context(), failing{m, at, boom}, m)
		require.ErrorIs(t, err, boom)
	}
	change, err := Diff(t.Context(), failing{m, -1, boom}, m)
	require.NoError(t, err)
	require.Equal(t, &Change{}, change)
	for range 500 { // the last is done, but may not be gone
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%d goroutines, there were %d before", runtime.NumGoroutine(), before)
}
