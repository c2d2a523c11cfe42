package pg_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/ext/postgres/pg"
	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/kv/kvtest"
	"github.com/tmshare/tmshare/internal/testkit/pgserver"
)

// What the database refuses is said with what to do about it.
func TestRefusalsSayWhatToDo(t *testing.T) {
	t.Parallel()
	s := pgserver.Start(t, "fsync=off", "max_connections=12", "superuser_reserved_connections=3")
	for name, c := range map[string]struct {
		statements string // STORE is the schema, and the user
		option     string
		expected   string
	}{
		"only read": {statements: "ALTER ROLE STORE SET default_transaction_read_only = on", expected: "target_session_attrs=read-write"},
		"no leader": {statements: "ALTER ROLE STORE SET default_transaction_read_only = on",
			option: "&target_session_attrs=read-write", expected: "All that answer are standbys"},
		"too little time":   {statements: "ALTER ROLE STORE SET statement_timeout = '1ms'", expected: "statement_timeout"},
		"no right to write": {statements: "REVOKE INSERT ON STORE.tm_rows FROM STORE", expected: "INSERT, UPDATE and DELETE"},
		"no schema":         {statements: "REVOKE USAGE ON SCHEMA STORE FROM STORE", expected: "USAGE on its schema"},
		"no such schema":    {statements: "DROP SCHEMA STORE CASCADE", expected: "tmshare-server migrate --store URL"},
		"full disk": {statements: `CREATE FUNCTION STORE.full() RETURNS trigger LANGUAGE plpgsql AS
			$$ BEGIN RAISE 'could not extend file: No space left on device' USING ERRCODE = 'disk_full'; END $$;
			CREATE TRIGGER t BEFORE INSERT ON STORE.tm_rows EXECUTE FUNCTION STORE.full()`, expected: "(no space left on device). Free some space there"},
		"one connection": {option: "&pool_max_conns=1", expected: "2 or more"},
		"no number":      {option: "&pool_max_conns=many", expected: "2 or more"},
	} {
		t.Run(name, func(t *testing.T) {
			o := s.Store(t)
			role(t, s, o.Schema)
			if c.statements != "" {
				s.SQL(t, replaceStore(c.statements, o.Schema))
			}
			o.URL = replaceStore("postgres://STORE@/postgres?host="+s.Dir(), o.Schema) + c.option
			e, err := pg.Open(t.Context(), o)
			if err == nil {
				defer e.Close()
				if err = e.Writable(t.Context()); err == nil {
					err = fill(t, e)
				}
			}
			assert.ErrorContains(t, err, c.expected)
		})
	}
	t.Run("no connection left", func(t *testing.T) {
		o := s.Store(t)
		role(t, s, o.Schema)
		o.URL = replaceStore("postgres://STORE@/postgres?host="+s.Dir(), o.Schema)
		e, err := pg.Open(t.Context(), o)
		require.NoError(t, err)
		defer e.Close()
		require.NoError(t, e.Writable(t.Context()))
		version, err := e.Version(t.Context())
		require.NoError(t, err)
		for range 20 {
			var r kv.Reader
			if r, err = e.Snapshot(t.Context()); err != nil {
				break
			}
			defer r.Close()
		}
		assert.ErrorContains(t, err, "pool_max_conns in the address of each process that uses it (now 40)")
		w, err := e.Begin(t.Context(), version)
		require.NoError(t, err)
		require.NoError(t, w.Put([]byte("key of a row"), []byte("value")))
		assert.NoError(t, w.Commit(), "a connection is kept for changes")
	})
}

// role makes a user of the name of a store, who may do what a server does.
func role(t *testing.T, s *pgserver.Server, store string) {
	t.Helper()
	s.SQL(t, replaceStore("CREATE ROLE STORE LOGIN; GRANT USAGE ON SCHEMA STORE TO STORE; "+
		"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA STORE TO STORE", store))
}

func replaceStore(text, store string) string { return strings.ReplaceAll(text, "STORE", store) }

// fill commits many rows.
func fill(t *testing.T, e kv.Engine) error {
	t.Helper()
	return kvtest.Update(t.Context(), e, func(_ kv.Reader, w kv.Writer) error {
		for i := range 3000 {
			if err := w.Put(fmt.Appendf(nil, "a row of number %d", i), make([]byte, 500)); err != nil {
				return err
			}
		}
		return nil
	})
}
