package txn

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// began reports whether an update's turn has begun.
func began(ts *turns, t *turn) bool {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	select {
	case <-t.allowed:
		return true
	default:
		return false
	}
}

// Updates of other names run concurrently, those of one name and those of all do not; an update never overtakes one
// that it would exclude.
func TestTurns(t *testing.T) {
	t.Parallel()
	var ts turns
	take := func(name string) (func(), error) { return ts.take(t.Context(), name) }
	a, err := take("a")
	require.NoError(t, err)
	b, err := take("b")
	require.NoError(t, err)
	come := make(chan func(), 10)
	wait := func(name string) *turn {
		ts.mu.Lock()
		before := len(ts.waiting)
		ts.mu.Unlock()
		go func() {
			done, err := ts.take(context.Background(), name)
			if err == nil {
				come <- done
			}
		}()
		for {
			ts.mu.Lock()
			if len(ts.waiting) > before {
				defer ts.mu.Unlock()
				return ts.waiting[before]
			}
			ts.mu.Unlock()
		}
	}
	again := wait("a")
	alone := wait("")
	c := wait("c")
	require.False(t, began(&ts, again) || began(&ts, alone) || began(&ts, c), "c waits for what came before it")
	a()
	require.True(t, began(&ts, again))
	require.False(t, began(&ts, alone))
	b()
	(<-come)() // again
	require.True(t, began(&ts, alone))
	require.False(t, began(&ts, c))
	(<-come)() // alone
	require.True(t, began(&ts, c))
	(<-come)()
	require.Empty(t, ts.running)
	require.Empty(t, ts.waiting)

	done, err := take("")
	require.NoError(t, err)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = ts.take(ended, "a")
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, ts.waiting)
	done()
}
