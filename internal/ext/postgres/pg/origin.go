package pg

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tmshare/tmshare/internal/kv"
)

// origin identifies the database of a connection. The zero value is an unknown one.
type origin struct {
	database string // identifier of the system, and of the database in it
	timeline uint32 // grows whenever a standby takes over; 0 on a standby
}

const askOrigin = `SELECT concat_ws('/', s.system_identifier, d.oid), CASE WHEN pg_is_in_recovery() THEN '0'
	ELSE substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END
	FROM pg_control_system() AS s, pg_database AS d WHERE d.datname = current_database()`

// originOf queries the origin of a new connection.
func originOf(ctx context.Context, conn *pgconn.PgConn) (o origin, err error) {
	results, err := conn.Exec(ctx, askOrigin).ReadAll()
	var failed *pgconn.PgError
	if errors.As(err, &failed) && !away(err) { // a database of another kind
		return origin{}, nil
	}
	if err != nil || len(results) != 1 || len(results[0].Rows) != 1 {
		return origin{}, err
	}
	row := results[0].Rows[0]
	timeline, err := strconv.ParseUint(string(row[1]), 16, 32)
	return origin{string(row[0]), uint32(timeline)}, err
}

// origins ensures that the connections of an engine lead to one database, and on it to the latest primary, because the
// servers behind one address may differ. It never switches to another database, because nothing tells which one is
// right.
type origins struct {
	mu    sync.Mutex
	now   origin
	other time.Time                 // when another database was seen last
	open  map[*pgconn.PgConn]origin // connections that were admitted
}

// settled is the time without connections to another database before this one is used again.
const settled = 5 * time.Second

// admit returns an error if a connection must not be used. A connection to a new primary closes all connections to the
// former one, which may hang without answering running queries.
func (s *origins) admit(conn *pgconn.PgConn, o origin) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case o.database == "":
	case s.now.database == "":
		s.now = o
	case o.database != s.now.database:
		s.other = time.Now()
		return fmt.Errorf("%w: it leads to %s, and led to %s before", kv.ErrOtherDatabase, o.database, s.now.database)
	case o.timeline == 0: // a standby, which is only read
	case o.timeline < s.now.timeline:
		return fmt.Errorf("%w: it leads to a server on timeline %d, and another one has taken over on timeline %d",
			kv.ErrOtherDatabase, o.timeline, s.now.timeline)
	default:
		s.now.timeline = o.timeline
	}
	if s.open == nil {
		s.open = map[*pgconn.PgConn]origin{}
	}
	maps.DeleteFunc(s.open, func(conn *pgconn.PgConn, o origin) bool {
		select {
		case <-conn.CleanupDone():
			return true
		default:
		}
		if o.timeline != 0 && o.timeline < s.now.timeline {
			go conn.Conn().Close()
			return true
		}
		return false
	})
	s.open[conn] = o
	return nil
}

// usable reports whether a connection that was admitted still leads where the others do. Its error is that of all
// connections.
func (s *origins) usable(o origin) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.other.IsZero() && time.Since(s.other) < settled {
		return true, fmt.Errorf("%w: some connections lead to %s, others do not", kv.ErrOtherDatabase, s.now.database)
	}
	return o.timeline == 0 || o.timeline >= s.now.timeline, nil
}

const originKey = "tmshare.origin"

// watch has the connections of a pool admitted.
func (s *origins) watch(c *pgxpool.Config) {
	before := c.ConnConfig.ValidateConnect
	c.ConnConfig.ValidateConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		if before != nil {
			if err := before(ctx, conn); err != nil {
				return err
			}
		}
		o, err := originOf(ctx, conn)
		if err != nil {
			return err
		}
		conn.CustomData()[originKey] = o
		return s.admit(conn, o)
	}
	c.PrepareConn = func(_ context.Context, conn *pgx.Conn) (bool, error) {
		o, _ := conn.PgConn().CustomData()[originKey].(origin)
		return s.usable(o)
	}
}
