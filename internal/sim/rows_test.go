package sim

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/ext/postgres/pg"
	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/kv/memory"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/pgserver"
)

// rows are the rows of a node, independent of its processes.
type rows interface {
	// open returns the engine of a new process, and a function to end it. It disables the engine of the process before.
	open() (e kv.Engine, end func())
	// copy returns the rows as they are now.
	copy() rows
	// drop removes the rows.
	drop()
}

// newRows returns a function that makes the rows of new nodes: in memory, or, by the command line, in a database.
func newRows(t *testing.T) func(t testing.TB) rows {
	if !testenv.OnPostgreSQL() {
		return func(testing.TB) rows { return &inMemory{memory.New()} }
	}
	server := pgserver.Shared(t)
	return func(t testing.TB) rows { return &inDatabase{t, server, quiet(server.Store(t))} }
}

type inMemory struct{ *memory.Engine }

func (m *inMemory) open() (kv.Engine, func()) {
	m.Engine = m.Copy() // the process before has the other one
	return m.Engine, func() {}
}

func (m *inMemory) copy() rows { return &inMemory{m.Copy()} }

func (m *inMemory) drop() {}

type inDatabase struct {
	t      testing.TB
	server *pgserver.Server
	at     pg.Options
}

func quiet(o pg.Options) pg.Options {
	o.Logger = slog.New(slog.DiscardHandler)
	return o
}

func (d *inDatabase) open() (kv.Engine, func()) {
	e, err := pg.Open(d.t.Context(), d.at)
	require.NoError(d.t, err)
	return e, func() { require.NoError(d.t, e.Close()) }
}

func (d *inDatabase) copy() rows {
	return &inDatabase{d.t, d.server, quiet(d.server.Copy(d.t, d.at))}
}

func (d *inDatabase) drop() { d.server.Drop(d.t, d.at) }
