package pg_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/testkit/pgserver"
)

// Nobody waits for the end of a state that was read, but the engine does before it is closed: no connection is left.
func TestCloseWaitsForStatesThatEnd(t *testing.T) {
	t.Parallel()
	s := pgserver.Start(t, "fsync=off")
	o := s.Store(t)
	o.MaxReaders = 3
	for range 20 {
		e := pgserver.Open(t, o)
		for range 10 { // more than there are connections
			var states []kv.Reader
			for range o.MaxReaders {
				r, err := e.Snapshot(t.Context())
				require.NoError(t, err)
				states = append(states, r)
			}
			for _, r := range states {
				r.Close()
				r.Close()
			}
		}
		require.NoError(t, e.Close())
		stats := e.Stats()
		assert.Zero(t, stats.Readers.Used)
		assert.Zero(t, stats.Readers.Open)
	}
}
