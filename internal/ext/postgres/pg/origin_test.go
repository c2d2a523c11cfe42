package pg_test

import (
	"net/url"
	"sync"
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

const never = 1 << 40 // bytes until a connection is cut

func putN(t *testing.T, e kv.Engine, value string) error {
	return kvtest.Update(t.Context(), e, func(_ kv.Reader, w kv.Writer) error { return w.Put([]byte("a"), []byte(value)) })
}

// A pool may have connections to two databases behind one address. The engine uses the one with which it began, and
// none while it sees both: nothing of the other is read, and nothing written to it, though the same store is there. An
// idle one notices when it asks for the history.
func TestTwoDatabasesBehindOneAddress(t *testing.T) {
	t.Parallel()
	s, other := pgserver.Start(t, "fsync=off"), pgserver.Start(t, "fsync=off")
	o := s.Store(t)
	there := o
	there.URL = other.URL()
	_, err := pg.Migrate(t.Context(), there)
	require.NoError(t, err)
	before := pgserver.Open(t, there)
	require.NoError(t, putN(t, before, "of the other"))
	untouched, err := before.Version(t.Context())
	require.NoError(t, err)

	at := pgserver.NewCutter(t, s.URL(), never, never+1)
	o.URL = at.URL()
	e := pgserver.Open(t, o)
	require.NoError(t, putN(t, e, "1"))
	first, err := e.Version(t.Context())
	require.NoError(t, err)
	at.Lead(t, other.URL())
	_, err = e.History(t.Context())
	require.ErrorIs(t, err, kv.ErrOtherDatabase)
	_, err = e.Version(t.Context())
	require.ErrorIs(t, err, kv.ErrOtherDatabase, "what is open leads to the first still, but who is right?")
	require.ErrorIs(t, err, kv.ErrUnavailable)
	require.ErrorContains(t, err, "start this process again")
	require.ErrorIs(t, putN(t, e, "lost"), kv.ErrOtherDatabase)

	at.Lead(t, s.URL())
	testenv.Eventually(t, func() bool { return putN(t, e, "2") == nil })
	now, err := e.Version(t.Context())
	require.NoError(t, err)
	assert.Equal(t, first.Number+1, now.Number)

	// Under load, while connections lead now here and now there.
	done := make(chan bool)
	var switching sync.WaitGroup
	switching.Go(func() {
		for i := range testenv.Rounds(10, 300) {
			at.Lead(t, []string{s.URL(), other.URL()}[i%2])
			at.CutAll()
			time.Sleep(20 * time.Millisecond)
		}
		at.Lead(t, s.URL())
		close(done)
	})
	acknowledged := countInParallel(t, e, 3, func(int64) bool {
		select {
		case <-done:
			return false
		default:
			return true
		}
	})
	switching.Wait()
	testenv.Eventually(t, func() bool { return putN(t, e, "3") == nil })
	acknowledged += countInParallel(t, e, 1, func(acknowledged int64) bool { return acknowledged == 0 })
	assert.Positive(t, acknowledged)
	o.URL = s.URL()
	assert.Equal(t, uint64(acknowledged), counted(t, pgserver.Open(t, o)))
	left, err := before.Version(t.Context())
	require.NoError(t, err)
	assert.Equal(t, untouched, left)
}

// A synchronous standby takes over, and the old primary is started again as if nothing had happened, under the same
// address: no connection leads to it any more, and what was committed since is never missing.
func TestAnOldPrimaryThatReturns(t *testing.T) {
	t.Parallel()
	primary := pgserver.Start(t, "fsync=off", "synchronous_standby_names=*")
	standby := primary.Standby()
	o := primary.Store(t)
	both := url.Values{"host": {host(t, primary) + "," + host(t, standby)}, "target_session_attrs": {"read-write"}}
	o.URL = "postgres://tmshare@/postgres?" + both.Encode()
	o.MaxReaders = 8
	e := pgserver.Open(t, o)
	require.NoError(t, putN(t, e, "1"))
	primary.Kill()
	standby.Promote()
	testenv.Eventually(t, func() bool { return putN(t, e, "2") == nil })
	promoted, err := e.Version(t.Context())
	require.NoError(t, err)
	history, err := e.History(t.Context())
	require.NoError(t, err)

	primary.Run()
	for range 3 { // with more connections than are open
		var all []kv.Reader
		for range o.MaxReaders {
			r, err := e.Snapshot(t.Context())
			require.NoError(t, err)
			all = append(all, r)
		}
		for _, r := range all {
			assert.GreaterOrEqual(t, r.Version().Number, promoted.Number)
			r.Close()
		}
		require.NoError(t, putN(t, e, time.Now().String()))
	}
	again, err := e.History(t.Context())
	require.NoError(t, err)
	assert.Equal(t, history, again)

	alone := o // leads to the old primary alone from one moment on
	at := pgserver.NewCutter(t, standby.URL(), never, never+1)
	alone.URL = at.URL()
	led := pgserver.Open(t, alone)
	_, err = led.Version(t.Context())
	require.NoError(t, err)
	at.Lead(t, primary.URL())
	at.CutAll()
	testenv.Eventually(t, func() bool { _, err := led.Version(t.Context()); return err != nil })
	_, err = led.Version(t.Context())
	require.ErrorIs(t, err, kv.ErrOtherDatabase)
	require.ErrorContains(t, err, "timeline")
	at.Lead(t, standby.URL())
	testenv.Eventually(t, func() bool { _, err := led.Version(t.Context()); return err == nil })
}

// A primary stands still, with all that it was asked, and its synchronous standby takes over. What was asked of the
// primary ends when the engine first sees that, and does not wait until it would be given up. A commit that the primary
// did not answer is made once.
func TestAPrimaryThatStandsStillHoldsUpNothing(t *testing.T) {
	t.Parallel()
	primary := pgserver.Start(t, "fsync=off", "synchronous_standby_names=*")
	standby := primary.Standby()
	o := primary.Store(t)
	both := url.Values{"host": {host(t, primary) + "," + host(t, standby)}, "target_session_attrs": {"read-write"},
		"connect_timeout": {"1"}}
	o.URL = "postgres://tmshare@/postgres?" + both.Encode()
	o.AnswerTimeout = time.Hour
	e := pgserver.Open(t, o)
	require.NoError(t, putN(t, e, "1"))
	r, err := e.Snapshot(t.Context())
	require.NoError(t, err)
	defer r.Close()
	before, err := e.Version(t.Context())
	require.NoError(t, err)
	w, err := e.Begin(t.Context(), before)
	require.NoError(t, err)
	require.NoError(t, w.Put([]byte("a"), []byte("2")))
	defer primary.Stop(t)()
	ended := make(chan error, 2)
	go func() { _, err := r.Get([]byte("a")); ended <- err }()
	go func() { ended <- w.Commit() }()
	standby.Promote()
	_, err = e.History(t.Context())
	require.NoError(t, err)
	for range 2 {
		select {
		case err := <-ended:
			if err != nil {
				require.ErrorIs(t, err, kv.ErrUnavailable)
			}
		case <-time.After(25 * time.Second): // a commit would be given up after 30
			t.Fatal("what was asked of the primary waits for its answer")
		}
	}
	now, err := e.Version(t.Context())
	require.NoError(t, err)
	require.Equal(t, before.Number+1, now.Number)
}
