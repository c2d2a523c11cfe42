package pg_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/ext/postgres/pg"
	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/kv/kvtest"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/pgserver"
)

// behind makes a store of a server for a user of its name, and returns how it is opened through a pooler.
func behind(t *testing.T, p *pgserver.Pooler, s *pgserver.Server) pg.Options {
	t.Helper()
	o := s.Store(t)
	s.SQL(t, "CREATE ROLE "+o.Schema+" LOGIN SUPERUSER")
	o.URL = p.URL(o.Schema)
	return o
}

// PgBouncer in its transaction mode has a session for a transaction alone, and refuses, or passes over, the settings of
// one. The engine keeps its contract.
func TestContractBehindAPooler(t *testing.T) {
	testenv.SkipUnderRace(t) // the same code runs without a pooler
	t.Parallel()
	for name, settings := range map[string][]string{
		"refuses settings": nil, "passes over settings": {"ignore_startup_parameters=search_path"}, "sessions": {"pool_mode=session"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := pgserver.Start(t, "fsync=off", "max_connections=500")
			p := pgserver.NewPooler(t, s, settings...)
			open := func(t *testing.T) kv.Engine { return pgserver.Open(t, behind(t, p, s)) }
			if name == "refuses settings" {
				kvtest.Run(t, open)
			}
			kvtest.Histories(t, open)
		})
	}
}

// Sessions that use another schema are refused, with the statement that mends it. A store can be made through a pooler.
func TestAPoolerWithSessionsOfAnotherSchema(t *testing.T) {
	t.Parallel()
	s := pgserver.Start(t, "fsync=off")
	p := pgserver.NewPooler(t, s, "server_lifetime=0") // each transaction has a new session
	s.SQL(t, "CREATE ROLE store7 LOGIN SUPERUSER")
	o := pg.Options{URL: p.URL("store7"), Schema: "maps"}
	made, err := pg.Migrate(t.Context(), o)
	require.NoError(t, err)
	assert.True(t, made)
	_, err = pg.Open(t.Context(), o)
	statement := `ALTER ROLE "store7" IN DATABASE "postgres" SET search_path = maps`
	require.ErrorContains(t, err, statement)
	s.SQL(t, statement)
	e := pgserver.Open(t, o)
	w, err := e.Begin(t.Context(), kv.Version{Number: 1})
	require.NoError(t, err)
	require.NoError(t, w.Put([]byte("key of a row"), []byte("value")))
	require.NoError(t, w.Commit())
	assert.Equal(t, "1", fmt.Sprint(s.SQL(t, "SELECT count(*) FROM maps.tm_rows")[:1]))
}
