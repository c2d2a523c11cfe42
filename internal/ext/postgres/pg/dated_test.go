package pg_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/ext/postgres/pg"
	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/kv/kvtest"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/pgserver"
)

// stateOf returns what an engine says of its state, as a question and as a reader: a version, and a time at which that
// was the present one.
func stateOf(t *testing.T, e *pg.Engine) (asked, read kv.Version, at, readAt time.Time) {
	t.Helper()
	asked, at, err := e.VersionAt(t.Context())
	require.NoError(t, err)
	r, err := e.Snapshot(t.Context())
	require.NoError(t, err)
	defer r.Close()
	return asked, r.Version(), at, r.(kv.DatedReader).At()
}

// A server that others write to knows the present; a standby that lags knows of when its state is, and says no later
// time.
func TestStatesSayOfWhenTheyAre(t *testing.T) {
	t.Parallel()
	s := pgserver.Start(t, "fsync=off")
	o := s.Store(t)
	e := pgserver.Open(t, o)
	write := func() (kv.Version, time.Time) {
		t.Helper()
		at := time.Now().Truncate(time.Microsecond)
		require.NoError(t, kvtest.Update(t.Context(), e, func(_ kv.Reader, w kv.Writer) error { return w.Put([]byte("a"), []byte(at.String())) }))
		v, err := e.Version(t.Context())
		require.NoError(t, err)
		return v, at
	}
	write()
	before := time.Now().Truncate(time.Microsecond)
	_, _, at, readAt := stateOf(t, e)
	for _, at := range []time.Time{at, readAt} {
		assert.False(t, at.Before(before))
		assert.False(t, at.After(time.Now()))
	}

	standby := s.Standby()
	o.URL = standby.URL()
	lagging := pgserver.Open(t, o)
	last, _ := write()
	testenv.Eventually(t, func() bool { v, err := lagging.Version(t.Context()); return err == nil && v == last })
	standby.Pause(t)
	missing, written := write()
	for range 3 { // also for those who have asked before
		asked, read, at, readAt := stateOf(t, lagging)
		assert.Less(t, asked.Number, missing.Number)
		assert.Less(t, read.Number, missing.Number)
		assert.True(t, at.Before(written), "%s: what was written at %s is missing", at, written)
		assert.True(t, readAt.Before(written), "%s: what was written at %s is missing", readAt, written)
		assert.True(t, readAt.After(before))
	}
	standby.Resume(t)
	testenv.Eventually(t, func() bool {
		asked, read, at, readAt := stateOf(t, lagging)
		return asked == missing && read == missing && !at.Before(written) && !readAt.Before(written)
	})
	standby.Promote()
	_, _, at, readAt = stateOf(t, lagging)
	later := time.Now().Truncate(time.Microsecond)
	assert.True(t, at.After(written) && readAt.After(written))
	_, _, at, readAt = stateOf(t, lagging)
	assert.False(t, at.Before(later), "it is the present one now")
	assert.False(t, readAt.Before(later), "it is the present one now")
}

// The history of a database is the same for all who have it open, and another one after a fail-over and in a copy.
func TestHistoriesOfADatabase(t *testing.T) {
	t.Parallel()
	history := func(e *pg.Engine) string {
		t.Helper()
		h, err := e.History(context.WithoutCancel(t.Context()))
		require.NoError(t, err)
		return h
	}
	s := pgserver.Start(t, "fsync=off")
	o := s.Store(t)
	first := history(pgserver.Open(t, o))
	assert.NotEmpty(t, first)
	assert.Equal(t, first, history(pgserver.Open(t, o)))
	assert.NotEqual(t, first, history(pgserver.Open(t, s.Copy(t, o))))

	standby := s.Standby()
	at := o
	at.URL = standby.URL()
	lagging := pgserver.Open(t, at)
	assert.Empty(t, history(lagging), "it is to be written elsewhere")
	standby.Promote()
	assert.NotEqual(t, first, history(lagging))
	assert.NotEmpty(t, history(lagging))

	other := pgserver.Start(t, "fsync=off")
	assert.NotEqual(t, first, history(pgserver.Open(t, other.Store(t))))
}
