package pg_test

import (
	"context"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/ext/postgres/pg"
	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/kv/kvtest"
	"github.com/tmshare/tmshare/internal/testkit/pgserver"
)

// A database that stands still closes no connection. Nobody waits longer for its answers than they may, and all goes on
// when it does.
func TestADatabaseThatStandsStill(t *testing.T) {
	t.Parallel()
	s := pgserver.Start(t, "fsync=off")
	o := s.Store(t)
	o.AnswerTimeout = 1500 * time.Millisecond
	e := pgserver.Open(t, o)
	write := func() error {
		return kvtest.Update(t.Context(), e, func(_ kv.Reader, w kv.Writer) error { return w.Put([]byte("a"), []byte("1")) })
	}
	require.NoError(t, write())
	r, err := e.Snapshot(t.Context())
	require.NoError(t, err)
	defer r.Close()

	other, err := pgx.Connect(t.Context(), s.URL())
	require.NoError(t, err)
	defer other.Close(context.Background())
	lock := func(tables string) pgx.Tx {
		tx, err := other.Begin(t.Context())
		require.NoError(t, err)
		_, err = tx.Exec(t.Context(), strings.ReplaceAll("LOCK TABLE "+tables+" IN ACCESS EXCLUSIVE MODE", "tm_", o.Schema+".tm_"))
		require.NoError(t, err)
		return tx
	}
	inTime := func(what string, ask func() error) {
		t.Helper()
		begun := time.Now()
		err := ask()
		assert.ErrorIs(t, err, kv.ErrUnavailable, what)
		assert.ErrorContains(t, err, "stands still", what)
		assert.Less(t, time.Since(begun), 20*time.Second, what)
	}
	thaw := s.Freeze(t)
	inTime("a row", func() error { _, err := r.Get([]byte("a")); return err })
	thaw()
	r.Close()
	still := lock("tm_state, tm_spaces, tm_versions")
	inTime("the version", func() error { _, err := e.Version(t.Context()); return err })
	inTime("a state", func() error { _, err := e.Snapshot(t.Context()); return err })
	inTime("an update", write)
	inTime("to open it", func() error { _, err := pg.Open(t.Context(), o); return err })
	require.NoError(t, still.Rollback(t.Context()))
	require.NoError(t, write())
}

// mute returns the folder with the socket of a server that says nothing.
func mute(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), ".s.PGSQL.5432"))
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return filepath.Dir(l.Addr().String())
}

// Servers that stand still may come first in an address: a question has time for those that come behind.
func TestServersThatStandStillBeforeTheOneThatAnswers(t *testing.T) {
	t.Parallel()
	s := pgserver.Start(t, "fsync=off")
	o := s.Store(t)
	o.AnswerTimeout = 8 * time.Second
	hosts := strings.Join([]string{mute(t), mute(t), s.Dir()}, ",")
	o.URL = "postgres://tmshare@/postgres?target_session_attrs=read-write&host=" + hosts
	_, err := pgserver.Open(t, o).Version(t.Context())
	require.NoError(t, err)
}

// An address says how long a server may stand still.
func TestAnAddressSaysHowLongAConnectionMayTake(t *testing.T) {
	t.Parallel()
	ended := make(chan string)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, option := range []string{"", "&connect_timeout=1"} {
		o := pg.Options{URL: "postgres://tmshare@/postgres?host=" + mute(t) + option, AnswerTimeout: time.Hour}
		go func() {
			_, err := pg.Open(ctx, o)
			if ctx.Err() == nil {
				assert.ErrorIs(t, err, kv.ErrUnavailable)
				ended <- option
			}
		}()
	}
	assert.Equal(t, "&connect_timeout=1", <-ended)
}

// A user that may only read gets an error when a store is opened for writing, with what to do.
func TestAUserWhoMayOnlyRead(t *testing.T) {
	t.Parallel()
	s := pgserver.Shared(t)
	o := s.Store(t)
	e := pgserver.Open(t, o)
	require.NoError(t, e.Writable(t.Context()))
	admin, err := pgx.Connect(t.Context(), s.URL())
	require.NoError(t, err)
	defer admin.Close(context.Background())
	_, err = admin.Exec(t.Context(), strings.NewReplacer("ROLE", "reads_"+o.Schema, "STORE", o.Schema).Replace("CREATE USER ROLE; GRANT USAGE ON SCHEMA STORE TO ROLE; GRANT SELECT ON ALL TABLES IN SCHEMA STORE TO ROLE"))
	require.NoError(t, err)
	o.URL = "postgres://reads_" + o.Schema + "@/postgres?host=" + s.Dir()
	reading := pgserver.Open(t, o)
	_, err = reading.Version(t.Context())
	require.NoError(t, err)
	err = reading.Writable(t.Context())
	require.ErrorContains(t, err, "does not allow this user")
	require.ErrorContains(t, err, "Grant the user")
}
