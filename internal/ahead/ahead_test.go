package ahead_test

import (
	"errors"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/ahead"
	"github.com/tmshare/tmshare/internal/testenv"
)

// Things come in their order, then the error, again and again. Few are made of the same memory.
func TestQueue(t *testing.T) {
	enough := errors.New("enough")
	for _, n := range []int{0, 1, 127, 128, 129, 10_000} {
		var spare []*int
		made := 0
		q := ahead.New(func(i *int) { spare = append(spare, i) })
		go q.Run(func() error {
			for i := range n {
				var thing *int
				if last := len(spare) - 1; last >= 0 {
					thing, spare = spare[last], spare[:last]
				} else {
					thing = new(int)
					made++
				}
				*thing = i
				assert.True(t, q.Add(thing, 1))
			}
			return enough
		})
		for i := range n {
			thing, err := q.Next()
			require.NoError(t, err)
			require.Equal(t, i, *thing)
		}
		for range 3 {
			_, err := q.Next()
			require.Equal(t, enough, err)
		}
		q.Stop()
		assert.LessOrEqual(t, made, 4*128)
	}
}

// Heavy things do not pile up.
func TestWeight(t *testing.T) {
	q := ahead.New(func(int) {})
	made := make(chan int, 1000)
	go q.Run(func() error {
		for i := 0; q.Add(i, 1<<20); i++ {
			made <- i
		}
		return ahead.ErrStopped
	})
	_, err := q.Next()
	require.NoError(t, err)
	q.Stop()
	assert.LessOrEqual(t, len(made), 4)
}

func TestEnds(t *testing.T) {
	before := runtime.NumGoroutine()
	q := ahead.New(func(int) {})
	go q.Run(func() error {
		q.Add(1, 0)
		panic("no more")
	})
	_, err := q.Next()
	require.NoError(t, err)
	assert.Panics(t, func() { _, _ = q.Next() })
	q.Stop()

	q = ahead.New(func(int) {})
	go q.Run(func() error { runtime.Goexit(); return nil })
	_, err = q.Next()
	assert.Equal(t, ahead.ErrStopped, err)
	q.Stop()
	assert.True(t, q.Stopped())
	testenv.Eventually(t, func() bool { return runtime.NumGoroutine() <= before })
}
