package locks

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	_ "github.com/tmshare/tmshare/internal/testenv"
)

func TestLocks(t *testing.T) {
	var l Locks
	never := func() { t.Error("it had to wait") }
	unlock, err := l.Lock(t.Context(), "a", never)
	require.NoError(t, err)
	other, err := l.Lock(t.Context(), "b", never) // has nothing to do with a
	require.NoError(t, err)
	other()

	waiting, got := make(chan struct{}), make(chan func())
	go func() {
		second, err := l.Lock(context.Background(), "a", func() { close(waiting) })
		assert.NoError(t, err)
		got <- second
	}()
	<-waiting
	ctx, end := context.WithCancel(t.Context())
	_, err = l.Lock(ctx, "a", end)
	assert.ErrorIs(t, err, context.Canceled, "who gives up waiting gets nothing")
	select {
	case <-got:
		t.Fatal("two have it")
	default:
	}
	unlock()
	unlock() // once more is harmless
	select {
	case second := <-got:
		second()
	case <-time.After(10 * time.Second):
		t.Fatal("it was not handed on")
	}
	assert.Empty(t, l.held, "nothing is kept of what is free")
}

func TestLocksLetOneIn(t *testing.T) {
	var l Locks
	var wg sync.WaitGroup
	n := 0 // the race detector looks at it, too
	for range 50 {
		wg.Go(func() {
			unlock, err := l.Lock(context.Background(), "a", func() {})
			assert.NoError(t, err)
			n++
			unlock()
		})
	}
	wg.Wait()
	assert.Equal(t, 50, n)
}
