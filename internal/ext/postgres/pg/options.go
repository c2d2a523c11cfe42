package pg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Options are the address and the options of a store. Only URL is required.
type Options struct {
	// URL names the database, as postgres://user@host:port/database?option=value with the options
	// of libpq. Without sslmode, TLS is used and the server's certificate verified, but not on a
	// Unix socket. Several hosts with target_session_attrs=read-write are tried in turn.
	URL string

	Password string // where it is in neither the URL nor PGPASSWORD nor a password file of libpq
	Schema   string // of the store; default: tmshare

	// MaxReaders is the number of states that can be read at the same time, and MaxWriters that of commits and loads.
	// Further ones wait. Default: together pool_max_conns of the URL, or 40; a fifth of them are writers.
	MaxReaders, MaxWriters int32

	// AnswerTimeout is the time limit for an answer and for a connection, because a database that hangs does not close
	// connections. Default: 20 s.
	AnswerTimeout time.Duration

	Logger *slog.Logger // default: slog.Default()
}

// maxConnections is the option of an address that bounds connections, as pgx calls it.
const maxConnections = "pool_max_conns"

// connectTimeout is the time limit for connecting to a server, unless the address has connect_timeout. It is shorter
// for each of several servers, so that a query can try all of them.
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
	most := int32(40)
	if u, err := url.Parse(o.URL); err == nil && u.Query().Has(maxConnections) {
		n, err := strconv.ParseInt(u.Query().Get(maxConnections), 10, 31)
		if err != nil || n < 2 {
			return fmt.Errorf("%s in the address of the database is the number of connections, 2 or more", maxConnections)
		}
		most = int32(n)
	}
	if o.MaxWriters <= 0 {
		o.MaxWriters = max(1, most/5)
	}
	if o.MaxReaders <= 0 {
		o.MaxReaders = max(1, most-o.MaxWriters)
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

// config returns how connections to the database are made.
func (o *Options) config() (*pgxpool.Config, error) {
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
	if c.ConnConfig.ConnectTimeout == 0 {
		c.ConnConfig.ConnectTimeout = min(connectTimeout, o.AnswerTimeout/time.Duration(2+len(c.ConnConfig.Fallbacks)))
	}
	c.ConnConfig.RuntimeParams["search_path"] = o.Schema
	c.ConnConfig.RuntimeParams["application_name"] = "tmshare"
	noteWarnings(c.ConnConfig)
	return c, nil
}

// idle is the time after which an unused connection is closed.
const idle = 30 * time.Second

// pool returns connections to the database, at least and at most so many, with settings. It makes the first when it is
// needed.
func (o *Options) pool(from *origins, by pooler, least, most int32, settings ...setting) (*pgxpool.Pool, error) {
	c, err := o.config()
	if err != nil {
		return nil, err
	}
	by.adapt(c)
	c.MinConns, c.MaxConns, c.MaxConnIdleTime, c.HealthCheckPeriod = least, most, idle, idle/3
	c.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		registerByteas(conn.TypeMap())
		if by != none {
			return nil
		}
		return settle(ctx, conn, settings)
	}
	from.watch(c)
	return pgxpool.NewWithConfig(context.Background(), c)
}

// verifyTLS requires verified connections if the address has no option about it.
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
var byIndex = []setting{{"enable_seqscan", "off"}, {"enable_bitmapscan", "off"}, {"enable_hashjoin", "off"},
	{"enable_mergejoin", "off"}, {"plan_cache_mode", "force_custom_plan"}, {"jit", "off"}}

// A process that stands still in the middle of a commit holds up the others.
var noStandstill = setting{"idle_in_transaction_session_timeout", "60s"}

// writing are the settings of a commit.
var writing = append(slices.Clone(byIndex), noStandstill)

// setting is one of a session, or of a transaction.
type setting struct{ name, value string }

// settle makes settings that help, where the database knows them.
func settle(ctx context.Context, conn *pgx.Conn, settings []setting) error {
	for _, s := range settings {
		if _, err := conn.Exec(ctx, fmt.Sprintf("SET %s = '%s'", s.name, s.value)); err != nil && conn.IsClosed() {
			return err
		}
	}
	return nil
}
