// Package postgres is an extension: stores that several processes share are in a database of PostgreSQL. The engine is
// that of package pg.
package postgres

import (
	"context"
	"errors"
	"log/slog"
	"net/url"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"

	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/ext/postgres/pg"
	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/server"
)

// form is how an address of a database is written.
const form = "postgres://USER@HOST:PORT/NAME"

// Extension returns it: the engine, its metrics, and the command that makes its tables.
func Extension() extension.Extension {
	var opened *pg.Engine // the last
	return extension.Extension{
		Name: "postgres",
		Engines: []kv.Opener{{
			Schemes: []string{"postgres", "postgresql"},
			Form:    "write " + form + "; PGPASSWORD, or the file that PGPASSFILE names, has its password",
			Open: func(ctx context.Context, address string, o kv.OpenOptions) (_ kv.Engine, err error) {
				opened, err = open(ctx, address, o)
				return opened, err
			},
		}},
		Serve: func(s *server.Server) (*server.Part, error) {
			if opened == nil { // the store is in a folder
				return &server.Part{}, nil
			}
			return &server.Part{Metrics: []prometheus.Collector{&metrics{opened, s.Store.Jobs}}}, nil
		},
		Commands: func(a *extension.App) []*cobra.Command {
			if !a.Serves {
				return nil
			}
			return cli.In(cli.Operations, migrate(a))
		},
	}
}

// options checks an address, and returns the options of the engine.
func options(address string, log *slog.Logger) (o pg.Options, err error) {
	u, err := url.Parse(address)
	if err != nil {
		return o, cli.UsageError(errors.New("the address of the database (--store) is no URL: write " + form))
	}
	if _, has := u.User.Password(); has || u.Query().Has("password") {
		return o, cli.UsageError(
			errors.New("leave the password out of the address of the database, as lists of processes show it; put it into " +
				"PGPASSWORD, or into the file that PGPASSFILE names"))
	}
	return pg.Options{URL: address, Schema: u.Query().Get("search_path"), Logger: log}, nil
}

func open(ctx context.Context, address string, o kv.OpenOptions) (*pg.Engine, error) {
	at, err := options(address, o.Logger)
	if err != nil {
		return nil, err
	}
	if o.Make {
		if _, err := pg.Migrate(ctx, at); err != nil {
			return nil, err
		}
	}
	e, err := pg.Open(ctx, at)
	if err == nil && !o.ReadOnly {
		if err = e.Writable(ctx); err != nil {
			e.Close()
		}
	}
	if err != nil {
		return nil, err
	}
	return e, nil
}
