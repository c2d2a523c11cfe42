package web

import (
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// A place that is free is taken at once: nobody is sent away because no time is left to wait.
func TestAFreePlaceIsTakenAtOnce(t *testing.T) {
	places := make(chan struct{}, 1)
	r := httptest.NewRequest("GET", "/", nil)
	for range 1000 {
		require.NoError(t, InTurn(r, places, 0, "requests", func() error { return nil }))
	}
	places <- struct{}{}
	require.Error(t, InTurn(r, places, 0, "requests", func() error { return nil }))
}
