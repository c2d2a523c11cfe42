package pg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Options say where a store is. Only URL is required.
type Options struct {
	// URL names the database, as postgres://user@host:port/database?option=value with the options
	// of libpq. Without sslmode, TLS is used and the server's certificate verified, but not on a
	// Unix socket. Several hosts with target_session_attrs=read-write are tried in turn.
	URL string

	Password string // where it is in neither the URL nor PGPASSWORD nor a password file of libpq
	Schema   string // of the store; default: tmshare

	// MaxReaders is how many states can be read at the same time; default: 32. MaxWriters is how
	// many commits and loads can be under way; default: 8. Others wait for their turn.
	MaxReaders, MaxWriters int32

	// AnswerTimeout bounds how long a question waits for its answer, and for a connection: a database that stands still
	// closes none. Default: 20 s.
	AnswerTimeout time.Duration

	Logger *slog.Logger // default: slog.Default()
}

// connectTimeout bounds how long a connection waits for a server that does not answer.
const connectTimeout = 10 * time.Second

var schemaName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,62}$`)

func (o *Options) complete() error {
	if !strings.HasPrefix(o.URL, "postgres://") && !strings.HasPrefix(o.URL, "postgresql://") {
		return errors.New("the address of a database begins with postgres://, as in postgres://user@host:5432/database")
	}
	if o.Schema == "" {
		o.Schema = "tmshare"
	}
	if !schemaName.MatchString(o.Schema) {
		return fmt.Errorf(
			"%q cannot be the name of a schema: use up to 63 small letters, digits and underscores, a letter first", o.Schema)
	}
	if o.MaxReaders <= 0 {
		o.MaxReaders = 32
	}
	if o.MaxWriters <= 0 {
		o.MaxWriters = 8
	}
	if o.AnswerTimeout <= 0 {
		o.AnswerTimeout = 20 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return nil
}

// Redacted returns the address of a database without a password.
func Redacted(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "postgres://…"
	}
	q := u.Query()
	if q.Has("password") {
		q.Set("password", "xxxxx")
		u.RawQuery = q.Encode()
	}
	return u.Redacted()
}

// pool returns connections to the database, at most so many, with settings. It makes the first when
// it is needed.
func (o *Options) pool(from *origins, most int32, settings ...string) (*pgxpool.Pool, error) {
	c, err := pgxpool.ParseConfig(o.URL)
	if err != nil {
		return nil, fmt.Errorf(
			"the address of the database cannot be used: %w; it has the form "+
				"postgres://user@host:5432/database?sslmode=verify-full&sslrootcert=FILE", errors.Unwrap(err))
	}
	if o.Password != "" {
		c.ConnConfig.Password = o.Password
	}
	if err := verifyTLS(o.URL, c); err != nil {
		return nil, err
	}
	c.MaxConns = most
	c.ConnConfig.ConnectTimeout = min(connectTimeout, o.AnswerTimeout)
	c.ConnConfig.RuntimeParams["search_path"] = o.Schema
	c.ConnConfig.RuntimeParams["application_name"] = "tmshare"
	c.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		registerByteas(conn.TypeMap())
		return settle(ctx, conn, settings)
	}
	from.watch(c)
	return pgxpool.NewWithConfig(context.Background(), c)
}

// verifyTLS has connections verified for which the address says nothing about it.
func verifyTLS(address string, c *pgxpool.Config) error {
	u, err := url.Parse(address)
	if err != nil {
		return errors.New("the address of the database is no URL")
	}
	if u.Query().Has("sslmode") || os.Getenv("PGSSLMODE") != "" {
		return nil
	}
	q := u.Query()
	q.Set("sslmode", "verify-full")
	u.RawQuery = q.Encode()
	verified, err := pgx.ParseConfig(u.String())
	if err != nil {
		return fmt.Errorf("TLS to the database: %w; correct the options sslrootcert, sslcert and sslkey", errors.Unwrap(err))
	}
	c.ConnConfig.TLSConfig, c.ConnConfig.Fallbacks = verified.TLSConfig, verified.Fallbacks
	return nil
}

// Rows are always found by the index. The planner does not know that before it has statistics, and
// a plan for all values of a parameter is often a bad one for each. To compile a plan takes longer
// than to carry it out.
var byIndex = []string{"SET enable_seqscan = off", "SET enable_bitmapscan = off", "SET enable_hashjoin = off",
	"SET enable_mergejoin = off",
	"SET plan_cache_mode = force_custom_plan", "SET jit = off"}

// A process that stands still in the middle of a commit holds up the others.
const noStandstill = "SET idle_in_transaction_session_timeout = '60s'"

// settle makes settings that help, where the database knows them.
func settle(ctx context.Context, conn *pgx.Conn, settings []string) error {
	for _, set := range settings {
		if _, err := conn.Exec(ctx, set); err != nil && conn.IsClosed() {
			return err
		}
	}
	return nil
}
