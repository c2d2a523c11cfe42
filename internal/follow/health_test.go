package follow

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/fetch"
	_ "github.com/tmshare/tmshare/internal/testenv" // takes -long
)

func TestWhatTellsThatAServerIsOutOfOrder(t *testing.T) {
	var h Health
	fails := func(status int, progress bool) error {
		return h.EndsRound(t.Context(), &fetch.Error{Status: status}, progress)
	}
	for _, status := range []int{0, 401, 503, 408} {
		require.NoError(t, fails(status, false))
	}
	require.NoError(t, fails(407, true), "others were fetched in between")
	for range maxFaults - 2 {
		require.NoError(t, fails(500, false))
	}
	require.ErrorContains(t, fails(502, false), "5 documents in a row could not be fetched")

	h = Health{}
	require.Error(t, fails(429, false))
	require.ErrorContains(t, h.EndsRound(t.Context(), &fetch.Error{Status: 503, RetryAfter: time.Minute}, true), "come back in 1m0s")
	require.EqualError(t, h.EndsRound(t.Context(), errors.New("of the disk"), true), "of the disk")

	down := errors.New("it does not answer")
	h = Health{Alive: func(context.Context) error { return down }}
	require.Error(t, fails(500, true), "the source does not answer either")
	down = nil
	require.NoError(t, fails(500, true))

	ended, end := context.WithCancelCause(t.Context())
	end(errors.New("somebody ended it"))
	require.EqualError(t, h.EndsRound(ended, &fetch.Error{Status: 500}, true), "somebody ended it")
}
