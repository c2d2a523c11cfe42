package pg

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// pooler is the kind of pooler between this program and the database. With a pooler such as PgBouncer, each transaction
// may be in another session, so settings and prepared statements do not outlast a transaction.
type pooler int

const (
	none    pooler = iota
	passing        // takes the schema when a session begins
	strict         // does not: PgBouncer refuses it
)

// refusesParameters is part of the message of PgBouncer.
const refusesParameters = "unsupported startup parameter"

// findPooler returns the kind of pooler at an address. A pooler numbers connections itself, instead of by the processes
// of the database.
func (o *Options) findPooler(ctx context.Context) (pooler, error) {
	c, err := o.config()
	if err != nil {
		return none, err
	}
	conn, err := pgx.ConnectConfig(ctx, c.ConnConfig)
	if err != nil && strings.Contains(err.Error(), refusesParameters) {
		return strict, nil
	}
	if err != nil {
		return none, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var process uint32
	err = conn.QueryRow(ctx, "SELECT pg_backend_pid()", pgx.QueryExecModeSimpleProtocol).Scan(&process)
	if answered(err) || err == nil && process == conn.PgConn().PID() { // or a database of another kind
		return none, nil
	}
	return passing, err
}

// throughPooler is the lifetime of a connection through a pooler. Each new one queries its origin, because the pooler
// may have switched to another server.
const throughPooler = 5 * time.Second

// adapt configures connections to work without sessions if the pooler has none.
func (p pooler) adapt(c *pgxpool.Config) {
	if p == none {
		return
	}
	c.MaxConnLifetime = throughPooler
	c.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	if p == strict {
		delete(c.ConnConfig.RuntimeParams, "search_path")
	}
}

// local returns the statement that makes settings in a transaction, "" where a session has them.
func (p pooler) local(settings ...setting) string {
	if p == none {
		return ""
	}
	var set []string
	for _, s := range settings {
		set = append(set, fmt.Sprintf("set_config('%s', '%s', true)", s.name, s.value))
	}
	return "SELECT " + strings.Join(set, ", ") + "; "
}

// errSchema is the error for sessions of a pooler that use another schema.
var errSchema = errors.New("the sessions behind the pooler use another schema")

// checkSchema returns an error unless sessions use the schema of the store.
func (e *Engine) checkSchema(ctx context.Context) error {
	var schema, user, database string
	err := e.readers.QueryRow(ctx, "SELECT coalesce(current_schema(), ''), current_user, current_database()").
		Scan(&schema, &user, &database)
	if err == nil && schema != e.Schema {
		set := fmt.Sprintf("ALTER ROLE %s IN DATABASE %s SET search_path = %s", pgx.Identifier{user}.Sanitize(),
			pgx.Identifier{database}.Sanitize(), e.Schema)
		err = fmt.Errorf("%w, %q. Make its tables with \"tmshare-server migrate\" and the address of the database itself, "+
			"let the database carry out %s, and the pooler RECONNECT", errSchema, schema, set)
	}
	return err
}
