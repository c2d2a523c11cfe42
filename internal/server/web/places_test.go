package web

import (
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// A free place is taken at once: no request is refused without time to wait.
func TestAFreePlaceIsTakenAtOnce(t *testing.T) {
	places := make(chan struct{}, 1)
	r := httptest.NewRequest("GET", "/", nil)
	for range 1000 {
		require.NoError(t, InTurn(r, places, 0, "requests", func() error { return nil }))
	}
	places <- struct{}{}
	require.Error(t, InTurn(r, places, 0, "requests", func() error { return nil }))
}
