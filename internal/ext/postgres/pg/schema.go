package pg

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tmshare/tmshare/internal/kv"
)

// layout is the number of the layout of the tables that this program reads and writes.
const layout = 5

// The tables of a store. An index of PostgreSQL has no room for the longest keys. So a row is found
// by the first bytes of its key (head) and a hash of all others (hash), which are the tail.
//
// Each keyspace in which something was committed has a row in tm_spaces, whose id grows by a random number with each
// commit to it, modulo 2^64. A commit also counts itself in one row of tm_versions, of which there are few: the sums of
// their numbers and of their ids are the version of the state. So reading it takes as long with many keyspaces.
//
// By its number there, a commit has a row in tm_commits, with the keyspaces that it has changed. So a process knows
// what others have changed.
var tables = []string{
	`CREATE TABLE IF NOT EXISTS tm_rows (head bytea NOT NULL, hash bytea NOT NULL, tail bytea NOT NULL, value bytea
		NOT NULL, PRIMARY KEY (head, hash))`,
	`CREATE TABLE IF NOT EXISTS tm_commits (part int, number bigint, id bigint NOT NULL, spaces bigint[] NOT NULL,
		at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (part, number))`,
	`CREATE TABLE IF NOT EXISTS tm_spaces (space bigint PRIMARY KEY, id numeric(20) NOT NULL) WITH (fillfactor = 50)`,
	`CREATE TABLE IF NOT EXISTS tm_versions (part int
		PRIMARY KEY, commits bigint NOT NULL, id numeric(20) NOT NULL) WITH (fillfactor = 50)`,
	`CREATE TABLE IF NOT EXISTS tm_state (one int PRIMARY KEY, layout int NOT NULL)`,
	`INSERT INTO tm_state (one, layout) VALUES (1, 5) ON CONFLICT (one) DO NOTHING`,
}

// Migrate makes the tables of a store. It can be called again. It reports whether there was no store. The user of the
// database must be allowed to create a schema in it, or tables in the one that is there.
func Migrate(ctx context.Context, o Options) (made bool, err error) {
	if err := o.complete(); err != nil {
		return false, err
	}
	by, err := o.findPooler(ctx)
	if err != nil {
		return false, o.explain(ctx, err)
	}
	pool, err := o.pool(&origins{}, by, 0, 1)
	if err != nil {
		return false, err
	}
	defer pool.Close()
	for try := newTries(ctx); ; {
		made, err := migrate(ctx, pool, o.Schema)
		if err == nil || !try.again(err) {
			return made, o.explain(ctx, err)
		}
	}
}

func migrate(ctx context.Context, pool beginner, schema string) (made bool, err error) {
	err = pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: pgx.Serializable}, func(tx pgx.Tx) error {
		var there bool
		if _, err := tx.Exec(ctx, "SET LOCAL search_path = "+schema); err != nil { // a pooler does not pass it on
			return err
		}
		err := tx.QueryRow(ctx, "SELECT count(*) > 0 FROM information_schema.schemata WHERE schema_name = $1",
			schema).Scan(&there)
		if err == nil && !there {
			_, err = tx.Exec(ctx, "CREATE SCHEMA IF NOT EXISTS "+pgx.Identifier{schema}.Sanitize())
		}
		if err == nil {
			err = tx.QueryRow(ctx, "SELECT to_regclass('tm_state') IS NOT NULL").Scan(&there)
		}
		if err == nil && there { // tables of another layout may have other columns
			if err := checkLayout(ctx, tx); err != nil && !errors.Is(err, errNoStore) {
				return err
			}
		}
		for _, table := range tables {
			if err == nil {
				var done pgconn.CommandTag
				done, err = tx.Exec(ctx, table)
				made = done.RowsAffected() > 0 // the last puts the row of a new store
			}
		}
		if err != nil {
			return err
		}
		return checkLayout(ctx, tx)
	})
	return made, err
}

type (
	beginner interface {
		BeginTx(context.Context, pgx.TxOptions) (pgx.Tx, error)
	}
	querier interface {
		QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
		Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	}
)

// errNoStore is the error for a database without tables of a store.
var errNoStore = errors.New("there is no store in this database")

// checkLayout returns an error unless the tables are those of this program.
func checkLayout(ctx context.Context, q querier) error {
	var n int
	err := q.QueryRow(ctx, "SELECT layout FROM tm_state WHERE one = 1").Scan(&n)
	var failed *pgconn.PgError
	switch {
	case errors.As(err, &failed) && (failed.Code == undefinedTable || failed.Code == undefinedSchema),
		errors.Is(err, pgx.ErrNoRows):
		return errNoStore
	case err != nil:
		return err
	case n > layout:
		return fmt.Errorf("the tables have layout %d, this program knows layout %d: use the newer program", n, layout)
	case n < layout:
		return kv.Older("the tables of the database have", "layout", n, layout)
	}
	return nil
}
