package pg_test

import (
	"encoding/binary"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/kv/kvtest"
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

// The version is the sum of few rows, however many keyspaces there are, and counts each commit, also of many at a time.
func TestTheVersionIsTheSumOfFewRows(t *testing.T) {
	t.Parallel()
	s := pgserver.Shared(t)
	o := s.Store(t)
	e := pgserver.Open(t, o)
	before, err := e.Version(t.Context())
	require.NoError(t, err)
	const writers, each = 8, 25
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			for space := uint32(i); space < writers*each; space += writers {
				assert.NoError(t, kvtest.Update(t.Context(), e, func(r kv.Reader, w kv.Writer) error {
					return errors.Join(w.Put(binary.BigEndian.AppendUint32(nil, space), []byte("1")), w.Narrow(r, []uint32{space}))
				}))
			}
		})
	}
	all.Wait()
	after, err := e.Version(t.Context())
	require.NoError(t, err)
	assert.EqualValues(t, writers*each, after.Number-before.Number)
	assert.NotEqual(t, before.ID, after.ID)
	assert.Equal(t, "64\n", s.SQL(t, "SELECT count(*) FROM "+o.Schema+".tm_versions"))
}
