package pg_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/kv/kvtest"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/pgserver"
)

// Whatever is cut, also the answer to a commit: a commit that returns is there once, one that fails
// is not there.
func TestCutConnectionsLoseAndDoubleNothing(t *testing.T) {
	t.Parallel()
	s := pgserver.Start(t, "fsync=off")
	o := s.Store(t)
	cut := pgserver.NewCutter(t, s.URL(), 500, 6500)
	o.URL = cut.URL()
	e := pgserver.Open(t, o)
	cuts := int64(testenv.Rounds(60, 3000))
	acknowledged := countInParallel(t, e, 3, func(acknowledged int64) bool {
		return cut.Cuts.Load() < cuts || acknowledged < cuts/4
	})
	o.URL = s.URL()
	assert.Equal(t, uint64(acknowledged), counted(t, pgserver.Open(t, o)))
}

// The same where the server is killed again and again.
func TestKilledServersLoseAndDoubleNothing(t *testing.T) {
	t.Parallel()
	s := pgserver.Start(t)
	o := s.Store(t)
	e := pgserver.Open(t, o)
	kills, most := 0, testenv.Rounds(4, 100)
	var done atomic.Bool
	var killing sync.WaitGroup
	killing.Go(func() {
		defer done.Store(true)
		for ; kills < most; kills++ {
			before, err := e.Version(t.Context())
			for now := before; err == nil && now.Number < before.Number+10; {
				now, err = e.Version(t.Context())
			}
			s.Kill()
			s.Run()
		}
	})
	acknowledged := countInParallel(t, e, 2, func(acknowledged int64) bool {
		return !done.Load() || acknowledged < int64(most)
	})
	killing.Wait()
	assert.Equal(t, uint64(acknowledged), counted(t, pgserver.Open(t, o)))
}

// countInParallel has writers count while more returns true for the number of commits that have returned without an
// error, and returns that number. Of the others it must be known that nothing was changed.
func countInParallel(t *testing.T, e kv.Engine, writers int, more func(acknowledged int64) bool) int64 {
	var acknowledged atomic.Int64
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for more(acknowledged.Load()) {
				err := kvtest.Update(t.Context(), e, func(r kv.Reader, w kv.Writer) error {
					value, err := r.Get([]byte("n"))
					if err != nil {
						return err
					}
					n := uint64(0)
					if value != nil {
						n = binary.BigEndian.Uint64(value)
					}
					return w.Put([]byte("n"), binary.BigEndian.AppendUint64(nil, n+1))
				})
				if err == nil {
					acknowledged.Add(1)
				} else {
					assert.ErrorIs(t, err, kv.ErrUnavailable)
					assert.NotContains(t, err.Error(), "not known")
				}
			}
		})
	}
	all.Wait()
	return acknowledged.Load()
}

func counted(t *testing.T, e kv.Engine) uint64 {
	t.Helper()
	r, err := e.Snapshot(t.Context())
	require.NoError(t, err)
	defer r.Close()
	value, err := r.Get([]byte("n"))
	require.NoError(t, err)
	return binary.BigEndian.Uint64(value)
}

// A primary is killed, and its synchronous standby is promoted: the engine goes on with that, and has what was
// acknowledged.
func TestAPromotedStandbyHasWhatWasAcknowledged(t *testing.T) {
	t.Parallel()
	primary := pgserver.Start(t, "fsync=off", "synchronous_standby_names=*")
	standby := primary.Standby()
	o := primary.Store(t)
	both := url.Values{"host": {host(t, primary) + "," + host(t, standby)}, "target_session_attrs": {"read-write"}}
	o.URL = "postgres://tmshare@/postgres?" + both.Encode()
	e := pgserver.Open(t, o)
	var promoted atomic.Uint64
	var failing sync.WaitGroup
	failing.Go(func() {
		for now := uint64(0); now < 30; {
			v, err := e.Version(t.Context())
			if now = v.Number; err != nil {
				break
			}
		}
		primary.Kill()
		standby.Promote()
		v, err := e.Version(t.Context())
		for ; err != nil; v, err = e.Version(t.Context()) {
		}
		promoted.Store(v.Number)
	})
	acknowledged := countInParallel(t, e, 3, func(int64) bool {
		at := promoted.Load()
		v, err := e.Version(t.Context())
		return err != nil || at == 0 || v.Number < at+30
	})
	failing.Wait()
	assert.Equal(t, uint64(acknowledged), counted(t, e))
	o.URL = standby.URL()
	assert.Equal(t, uint64(acknowledged), counted(t, pgserver.Open(t, o)))
	t.Log("acknowledged:", acknowledged)
}

// A commit is not acknowledged before a standby has it, though the database gives up to wait for its synchronous standby
// because somebody cancels the statement.
func TestACommitWaitsForTheStandbyThoughTheDatabaseDoesNot(t *testing.T) {
	t.Parallel()
	primary := pgserver.Start(t, "fsync=off", "synchronous_standby_names=*")
	standby := primary.Standby()
	o := primary.Store(t)
	e := pgserver.Open(t, o)
	before, err := e.Version(t.Context())
	require.NoError(t, err)
	standby.Kill()
	w, err := e.Begin(t.Context(), before)
	require.NoError(t, err)
	require.NoError(t, w.Put([]byte("n"), binary.BigEndian.AppendUint64(nil, 1)))
	ended := make(chan error, 1)
	go func() { ended <- w.Commit() }()
	testenv.Eventually(t, func() bool {
		primary.SQL(t, "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
		v, err := e.Version(t.Context())
		return err == nil && v != before
	}, "the commit is not in the primary")
	select {
	case err := <-ended:
		require.Error(t, err, "what no standby has is acknowledged")
	case <-time.After(time.Second):
	}
	standby.Run()
	require.NoError(t, <-ended)
	primary.Kill()
	standby.Promote()
	o.URL = standby.URL()
	assert.Equal(t, uint64(1), counted(t, pgserver.Open(t, o)))
}

// host returns the folder with the socket of a server.
func host(t *testing.T, s *pgserver.Server) string {
	t.Helper()
	u, err := url.Parse(s.URL())
	require.NoError(t, err)
	return u.Query().Get("host")
}

// What is read over a connection that is cut is whole, or there is an error.
func TestCutConnectionsReadAllOrFail(t *testing.T) {
	t.Parallel()
	s := pgserver.Start(t, "fsync=off")
	o := s.Store(t)
	const rows = 60
	keys := make([][]byte, rows)
	require.NoError(t, kvtest.Update(t.Context(), pgserver.Open(t, o), func(_ kv.Reader, w kv.Writer) error {
		var err error
		for i := range keys {
			keys[i] = fmt.Appendf(nil, "row %03d", i)
			err = errors.Join(err, w.Put(keys[i], bytes.Repeat([]byte{'v'}, 100)))
		}
		return err
	}))
	cut := pgserver.NewCutter(t, s.URL(), 500, 40_000)
	o.URL = cut.URL()
	e := pgserver.Open(t, o)
	count := func(r kv.Reader, reverse bool) (n int, err error) {
		for _, err := range r.Range([]byte("row"), nil, reverse) {
			if err != nil {
				return 0, err
			}
			n++
		}
		return n, nil
	}
	ways := map[string]func(kv.Reader) (int, error){
		"ascending":  func(r kv.Reader) (int, error) { return count(r, false) },
		"descending": func(r kv.Reader) (int, error) { return count(r, true) },
		"values": func(r kv.Reader) (n int, err error) {
			err = r.(kv.ManyReader).ReadMany(keys, nil, 0, func(_, value []byte) { n += len(value) / 100 }, nil)
			return n, err
		},
		"prefixes": func(r kv.Reader) (n int, err error) {
			err = r.(kv.ManyReader).ReadMany(nil, [][]byte{[]byte("row")}, rows, nil,
				func(_ []byte, all []kv.Row, _ bool) { n += len(all) })
			return n, err
		},
	}
	whole, failed := map[string]int{}, 0
	cuts := int64(testenv.Rounds(60, 3000))
	for !t.Failed() && (cut.Cuts.Load() < cuts || len(whole) < len(ways) || failed == 0) {
		for way, read := range ways {
			r, err := e.Snapshot(t.Context())
			if err != nil {
				failed++
				continue
			}
			n, err := read(r)
			r.Close()
			if err != nil {
				failed++
				continue
			}
			whole[way]++
			assert.Equal(t, rows, n, "%s", way)
		}
	}
}
