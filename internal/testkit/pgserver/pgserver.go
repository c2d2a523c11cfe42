// Package pgserver starts servers of PostgreSQL for tests, each with a folder of its own. It never uses a running one.
package pgserver

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/ext/postgres/pg"
)

// stores counts the stores that were made.
var stores atomic.Int64

// Store makes the tables of a new store of the server.
func (s *Server) Store(t testing.TB) pg.Options {
	t.Helper()
	o := pg.Options{URL: s.URL(), Schema: fmt.Sprint("store", stores.Add(1)), Logger: slog.New(slog.DiscardHandler)}
	_, err := pg.Migrate(t.Context(), o)
	require.NoError(t, err)
	return o
}

// Copy makes a new store with the present content of another one of the server.
func (s *Server) Copy(t testing.TB, from pg.Options) pg.Options {
	t.Helper()
	to := s.Store(t)
	s.SQL(t, fmt.Sprintf(`BEGIN ISOLATION LEVEL REPEATABLE READ; INSERT INTO %[2]s.tm_rows SELECT * FROM %[1]s.tm_rows;
		INSERT INTO %[2]s.tm_spaces SELECT * FROM %[1]s.tm_spaces;
		INSERT INTO %[2]s.tm_versions SELECT * FROM %[1]s.tm_versions; COMMIT`, from.Schema, to.Schema))
	return to
}

// Drop removes a store.
func (s *Server) Drop(t testing.TB, o pg.Options) {
	t.Helper()
	s.SQL(t, "DROP SCHEMA "+o.Schema+" CASCADE")
}

// At returns the place of a store on a server that has it from another one.
func (s *Server) At(o pg.Options) pg.Options {
	o.URL = s.URL()
	return o
}

// Address returns the address of a store, as programs take it.
func Address(o pg.Options) string { return o.URL + "&search_path=" + o.Schema }

// Dial opens the store at an address, in a process that a test has started.
func Dial(address string) (*pg.Engine, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	return pg.Open(context.Background(), pg.Options{URL: address, Schema: u.Query().Get("search_path")})
}

// Open opens a store. It is closed when the test ends.
func Open(t testing.TB, o pg.Options) *pg.Engine {
	t.Helper()
	e, err := pg.Open(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e
}
