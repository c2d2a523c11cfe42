package pg

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tmshare/tmshare/internal/kv"
)

// Engine implements [kv.Engine]. Others, in this process and in others, may be open on the same store.
type Engine struct {
	Options
	readers, writers *pgxpool.Pool // separate, because readers may wait for a commit, which must not wait for them
	closed           atomic.Bool
	retries          atomic.Int64
	isStandby        atomic.Bool // when a state was read last
	pooler           pooler
	size             sizes
	origins          origins
	recent           recent
}

// Open opens the store that [Migrate] has created.
func Open(ctx context.Context, o Options) (*Engine, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	e := &Engine{Options: o}
	err := e.try(ctx, func(ctx context.Context) (err error) {
		e.pooler, err = o.findPooler(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	if e.readers, err = o.pool(&e.origins, e.pooler, 0, o.MaxReaders, byIndex...); err != nil {
		return nil, err
	}
	if e.writers, err = o.pool(&e.origins, e.pooler, 1, o.MaxWriters, writing...); err != nil {
		e.readers.Close()
		return nil, err
	}
	err = e.try(ctx, func(ctx context.Context) error {
		if e.pooler != none {
			if err := e.checkSchema(ctx); err != nil {
				return err
			}
		}
		return checkLayout(ctx, e.readers)
	})
	if err != nil {
		e.Close()
		return nil, err
	}
	return e, nil
}

// try sends one query, with retries after conflicts and short outages.
func (e *Engine) try(ctx context.Context, ask func(context.Context) error) error {
	for try := e.tries(ctx); ; {
		asking, answered := e.bounded(ctx)
		err := ask(asking)
		answered()
		if err == nil || !try.again(err) {
			return e.explain(ctx, err)
		}
	}
}

// Writable implements [kv.Shared]. It checks that the user may write all tables, and changes nothing.
func (e *Engine) Writable(ctx context.Context) error {
	return e.try(ctx, func(ctx context.Context) error {
		var batch pgx.Batch
		for _, statement := range []string{
			"UPDATE tm_spaces SET id = id WHERE false", "INSERT INTO tm_spaces SELECT * FROM tm_spaces WHERE false",
			"UPDATE tm_versions SET id = id WHERE false", "INSERT INTO tm_versions SELECT * FROM tm_versions WHERE false",
			"DELETE FROM tm_commits WHERE false", "INSERT INTO tm_commits SELECT * FROM tm_commits WHERE false",
			"INSERT INTO tm_rows SELECT * FROM tm_rows WHERE false", "UPDATE tm_rows SET value = value WHERE false",
			"DELETE FROM tm_rows WHERE false",
		} {
			batch.Queue(statement)
		}
		return e.writers.SendBatch(ctx, &batch).Close()
	})
}

func (e *Engine) usable(ctx context.Context) error {
	if e.closed.Load() {
		return kv.ErrClosed
	}
	return context.Cause(ctx)
}

// Version implements [kv.Engine], with one query.
func (e *Engine) Version(ctx context.Context) (v kv.Version, err error) {
	if err := e.usable(ctx); err != nil {
		return kv.Version{}, err
	}
	err = e.try(ctx, func(ctx context.Context) error {
		var counts string
		if err := scanVersion(e.readers.QueryRow(ctx, askVersion), &v, &counts); err != nil {
			return err
		}
		return e.readRecent(ctx, e.readers, v, counts)
	})
	if err != nil {
		return kv.Version{}, err
	}
	return v, nil
}

// VersionAt implements [kv.Dated], in one round trip. A separate statement reads the time before the version, so that
// the time on a standby is not later than the version.
func (e *Engine) VersionAt(ctx context.Context) (v kv.Version, at time.Time, err error) {
	if err := e.usable(ctx); err != nil {
		return kv.Version{}, at, err
	}
	err = e.try(ctx, func(ctx context.Context) error {
		var micros int64
		var counts string
		var batch pgx.Batch
		batch.Queue(askTime).QueryRow(func(row pgx.Row) error { return row.Scan(&micros) })
		batch.Queue(askVersion).QueryRow(func(row pgx.Row) error { return scanVersion(row, &v, &counts) })
		if err := e.readers.SendBatch(ctx, &batch).Close(); err != nil {
			return err
		}
		at = timeOf(micros)
		return e.readRecent(ctx, e.readers, v, counts)
	})
	if err != nil {
		return kv.Version{}, time.Time{}, err
	}
	return v, at, nil
}

// askVersion is the query of the version with the era in the rows.
var askVersion = "SELECT " + versionColumns + ", " + countsColumn + ", " + eraColumn + " FROM tm_versions"

const versionColumns = "1 + coalesce(sum(commits), 0)::bigint, mod(coalesce(sum(id), 0), 18446744073709551616)::text"

var eraColumn = fmt.Sprintf(`coalesce((SELECT value FROM tm_rows WHERE head = '\x%x' AND hash = ''), '')`, kv.EraKey)

func scanVersion(row pgx.Row, v *kv.Version, counts *string) error {
	var id string
	var era []byte
	err := row.Scan(&v.Number, &id, counts, &era)
	if err == nil {
		v.ID, err = strconv.ParseUint(id, 10, 64)
	}
	v.Era = kv.EraOf(era)
	return err
}

// askTime is the query of a time, in microseconds, whose state is the present one: on a standby, that of the last
// transaction replayed from its primary; 0 if it has replayed none since it started.
const askTime = "SELECT coalesce(extract(epoch FROM CASE WHEN pg_is_in_recovery() THEN " +
	"pg_last_xact_replay_timestamp() ELSE now() END) * 1000000, 0)::bigint"

func timeOf(micros int64) time.Time {
	if micros == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micros).UTC()
}

// History implements [kv.Dated]. The result depends on the server, its timeline after a failover, and the tables of a
// restored database. It uses a new connection, because open ones may lead to the former server.
func (e *Engine) History(ctx context.Context) (history string, err error) {
	if err := e.usable(ctx); err != nil {
		return "", err
	}
	err = e.try(ctx, func(ctx context.Context) error {
		conn, err := pgx.ConnectConfig(ctx, e.readers.Config().ConnConfig)
		if err != nil {
			return err
		}
		defer conn.Close(context.WithoutCancel(ctx))
		return conn.QueryRow(ctx, `SELECT CASE WHEN pg_is_in_recovery() THEN ''
			ELSE concat_ws('/', s.system_identifier, substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8),
			d.oid, 'tm_state'::regclass::oid) END FROM pg_control_system() AS s, pg_database AS d
				WHERE d.datname = current_database()`).Scan(&history)
	})
	return history, err
}

// Stats are the statistics of an engine's use of its database.
type Stats struct {
	Retries          int64 // transactions that were tried again, since the engine was opened
	Readers, Writers Pool
}

// Pool counts the connections of one kind.
type Pool struct {
	Used, Open, Most int32
	Waited           int64 // number of waits for a connection since the engine was opened
}

// Stats returns how the engine uses its database.
func (e *Engine) Stats() Stats {
	pool := func(p *pgxpool.Pool) Pool {
		s := p.Stat()
		return Pool{s.AcquiredConns(), s.TotalConns(), s.MaxConns(), s.EmptyAcquireCount()}
	}
	return Stats{e.retries.Load(), pool(e.readers), pool(e.writers)}
}

// Close implements [kv.Engine].
func (e *Engine) Close() error {
	if !e.closed.Swap(true) {
		e.readers.Close()
		e.writers.Close()
	}
	return nil
}
