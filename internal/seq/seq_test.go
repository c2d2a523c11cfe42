package seq_test

import (
	"cmp"
	"errors"
	"iter"
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tmshare/tmshare/internal/seq"
	"github.com/tmshare/tmshare/internal/testenv"
)

// sequence yields numbers, and fails before the one with an index.
func sequence(numbers []int, failing int, err error, ended *bool) iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		defer func() { *ended = true }()
		for i, n := range numbers {
			if i == failing {
				yield(0, err)
				return
			}
			if !yield(n, nil) {
				return
			}
		}
	}
}

// Each item of both comes once, in order, together with the equal one of the other, up to the first failure or
// until the consumer stops.
func TestAllItemsComeInPairs(t *testing.T) {
	testenv.Check(t, 300, 20_000, func(t *rapid.T) {
		numbers := func(name string) []int {
			return slices.Sorted(maps.Keys(rapid.MapOfN(rapid.IntRange(0, 30), rapid.Just(true), 0, 12).Draw(t, name)))
		}
		a, b := numbers("a"), numbers("b")
		most := rapid.IntRange(1, 40).Draw(t, "most")
		failA, failB := rapid.IntRange(0, 30).Draw(t, "a fails"), rapid.IntRange(0, 30).Draw(t, "b fails")
		broken := errors.New("broken")
		var endedA, endedB bool
		var got []int
		var failed error
		for p, err := range seq.Pairs(sequence(a, failA, broken, &endedA), sequence(b, failB, broken, &endedB), cmp.Compare[int]) {
			if failed = err; err != nil {
				break
			}
			if p.A != nil {
				require.Equal(t, slices.Contains(b, *p.A), p.B != nil || failB < len(b) && *p.A >= b[failB])
				got = append(got, *p.A)
			} else {
				got = append(got, *p.B)
			}
			if len(got) == most {
				break
			}
		}
		all := slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(a), b...))))
		require.True(t, slices.Equal(all[:len(got)], got), "%v, not the first of %v", got, all)
		if len(got) < min(most, len(all)) {
			require.ErrorIs(t, failed, broken)
		}
		require.True(t, endedA || len(a)+len(b) == 0)
		require.True(t, endedB)
	})
}

// The results come in the order of the items, without those that are left out. They end at the first failure of
// either side, at the end that the function finds, or when the consumer stops.
func TestMapMakesItemsOfItems(t *testing.T) {
	broken := errors.New("broken")
	testenv.Check(t, 300, 20_000, func(t *rapid.T) {
		numbers := rapid.SliceOfN(rapid.IntRange(0, 30), 0, 12).Draw(t, "numbers")
		most := rapid.IntRange(1, 20).Draw(t, "most")
		failing := rapid.IntRange(0, 20).Draw(t, "fails")
		made := map[int]error{}
		for _, fault := range []error{seq.ErrSkip, seq.ErrStop, broken} {
			for _, n := range rapid.SliceOfN(rapid.IntRange(0, 30), 0, 3).Draw(t, fault.Error()) {
				made[n] = fault
			}
		}
		var want []string
		var end error
		for i, n := range append(slices.Clone(numbers), -1) {
			if i == failing && i < len(numbers) {
				end = broken
			} else if n >= 0 {
				end = made[n]
			}
			if end == broken || end == seq.ErrStop || len(want) == most || n < 0 {
				break
			}
			if end == nil {
				want = append(want, strconv.Itoa(n))
			}
		}
		var got []string
		var failed error
		var ended bool
		items := sequence(numbers, failing, broken, &ended)
		for text, err := range seq.Map(items, func(n int) (string, error) { return strconv.Itoa(n), made[n] }) {
			if failed = err; err == nil {
				got = append(got, text)
			}
			if len(got) == most {
				break
			}
		}
		require.Equal(t, want, got)
		require.True(t, ended)
		require.Equal(t, end == broken && len(want) < most, failed != nil)
	})
}

func TestOfHasItsItems(t *testing.T) {
	var got []int
	for n, err := range seq.Of(3, 1, 2) {
		require.NoError(t, err)
		if got = append(got, n); n == 1 {
			break
		}
	}
	require.Equal(t, []int{3, 1}, got)
}

func TestEachEndsWithTheFirstError(t *testing.T) {
	broken := errors.New("broken")
	for _, failing := range []int{-1, 0, 2} {
		var got []int
		err := seq.Each(seq.Of(0, 1, 2), func(n int) error {
			if got = append(got, n); n == failing {
				return broken
			}
			return nil
		})
		if failing < 0 {
			require.NoError(t, err)
			require.Equal(t, []int{0, 1, 2}, got)
		} else {
			require.ErrorIs(t, err, broken)
			require.Equal(t, failing, got[len(got)-1])
		}
	}
	var ended bool
	err := seq.Each(sequence([]int{0, 1}, 1, broken, &ended), func(int) error { return nil })
	require.ErrorIs(t, err, broken)
	require.True(t, ended)
}
