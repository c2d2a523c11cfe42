package pg

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tmshare/tmshare/internal/kv"
)

// reader implements [kv.Reader]. It has a connection, which it reads with in one transaction.
type reader struct {
	engine  *Engine
	ctx     context.Context
	version kv.Version
	at      time.Time

	mu   sync.Mutex // the connection answers one question at a time
	conn *pgxpool.Conn
}

const beginReading = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY; "

var askState = "SELECT " + versionColumns +
	", (extract(epoch FROM now()) * 1000000)::bigint, pg_is_in_recovery()::int, encode(" + eraColumn +
	", 'hex'), " + countsColumn + " FROM tm_versions"

// Snapshot implements [kv.Engine].
func (e *Engine) Snapshot(ctx context.Context) (kv.Reader, error) {
	if err := e.usable(ctx); err != nil {
		return nil, err
	}
	r := &reader{engine: e, ctx: ctx}
	if err := e.try(ctx, r.begin); err != nil {
		return nil, err
	}
	return r, nil
}

// begin begins the transaction. On a standby it reads the time before the state, because replay continues meanwhile.
func (r *reader) begin(ctx context.Context) (err error) {
	before := r.engine.isStandby.Load()
	for {
		standby, err := r.beginAt(ctx, before)
		if err != nil || standby == before || before {
			r.engine.isStandby.Store(standby)
			return err
		}
		r.Close()
		before = true
	}
}

// beginAt is begin with a time from before it, or with that of its beginning, which is no time of the state of a
// standby.
func (r *reader) beginAt(ctx context.Context, before bool) (isStandby bool, err error) {
	if r.conn, err = r.engine.readers.Acquire(ctx); err != nil {
		return false, err
	}
	var taken, now, standby int64
	if before {
		err = r.conn.QueryRow(ctx, askTime).Scan(&taken)
	}
	var results []*pgconn.Result
	if err == nil {
		results, err = r.conn.Conn().PgConn().Exec(ctx, beginReading+r.engine.pooler.local(byIndex...)+askState).ReadAll()
	}
	var state *pgconn.Result
	if err == nil {
		if state = results[len(results)-1]; len(state.Rows) != 1 {
			err = errNoStore
		}
	}
	if err == nil {
		var era []byte
		if _, err = fmt.Sscan(string(bytes.Join(state.Rows[0][:4], []byte(" "))), &r.version.Number, &r.version.ID, &now,
			&standby); err == nil {
			era, err = hex.DecodeString(string(state.Rows[0][4]))
		}
		r.version.Era = kv.EraOf(era)
	}
	if err == nil {
		err = r.engine.readRecent(ctx, r.conn.Conn(), r.version, string(state.Rows[0][5]))
	}
	if err != nil {
		r.Close()
		return false, err
	}
	if r.at = timeOf(now); standby == 1 {
		r.at = timeOf(taken)
	}
	return standby == 1, nil
}

// At implements [kv.DatedReader].
func (r *reader) At() time.Time { return r.at }

// Version implements [kv.Reader].
func (r *reader) Version() kv.Version { return r.version }

// rollbackTimeout is the time limit for the end of a read transaction.
const rollbackTimeout = 5 * time.Second

// Close implements [kv.Reader]. It does not wait for the end of the transaction; only [Engine.Close] does, because the
// pool waits for its connections.
func (r *reader) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.conn != nil {
		go release(r.conn)
	}
	r.conn = nil
}

// release ends the transaction of a connection, and gives it back. One that cannot end it is closed.
func release(conn *pgxpool.Conn) {
	if conn == nil {
		return
	}
	defer conn.Release()
	if c := conn.Conn().PgConn(); !c.IsClosed() && c.TxStatus() != 'I' {
		ctx, cancel := context.WithTimeout(context.Background(), rollbackTimeout)
		defer cancel()
		c.Exec(ctx, "ROLLBACK").Close()
	}
}

var errReaderClosed = errors.New("the state is read after its end")

// ask calls f with exclusive use of the connection, and with a context for its query.
func (r *reader) ask(f func(context.Context, *pgx.Conn) error) error {
	if err := context.Cause(r.ctx); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.conn == nil {
		return errReaderClosed
	}
	asking, answered := r.engine.bounded(r.ctx)
	defer answered()
	return r.engine.explain(r.ctx, f(asking, r.conn.Conn()))
}

// Get implements [kv.Reader].
func (r *reader) Get(key []byte) (value []byte, err error) {
	head, tail := split(key)
	err = r.ask(func(ctx context.Context, conn *pgx.Conn) error {
		err := conn.QueryRow(ctx, "SELECT value FROM tm_rows WHERE head = $1 AND hash = $2", head, hashOf(tail)).Scan(&value)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err == nil && value == nil {
			value = empty
		}
		return err
	})
	return value, err
}

// Range implements [kv.Reader]. It reads rows in pages.
func (r *reader) Range(prefix, from []byte, reverse bool) iter.Seq2[kv.Row, error] {
	return func(yield func(kv.Row, error) bool) {
		b := within(prefix, from, reverse)
		for limit := firstPage; ; {
			page, err := r.page(b, reverse, limit)
			if err != nil {
				yield(kv.Row{}, err)
				return
			}
			for _, row := range page {
				if err := context.Cause(r.ctx); err != nil {
					yield(kv.Row{}, err)
					return
				}
				if !yield(row, nil) {
					return
				}
			}
			if len(page) < limit {
				return
			}
			if last := page[len(page)-1].Key; reverse {
				b.high = last
			} else {
				b.low = next(last)
			}
			limit = pageAfter(page)
		}
	}
}

// A page has firstPage rows at first: many ranges are short. Those that follow have about pageBytes
// bytes, and at most maxPage rows.
const (
	firstPage = 32
	maxPage   = 2000
	pageBytes = 512 << 10
)

// pageAfter returns the number of rows to read after a page.
func pageAfter(page []kv.Row) int {
	size := 1
	for _, row := range page {
		size += len(row.Key) + len(row.Value)
	}
	return max(1, min(4*len(page), maxPage, pageBytes*len(page)/size))
}

// The statements of a page: without an upper bound and with one, in each direction.
const (
	fromLow   = "SELECT head, tail, value FROM tm_rows WHERE head >= $1 AND (head > $1 OR tail >= $2)"
	belowHigh = " AND head <= $4 AND (head < $4 OR tail < $5)"
	ascending = " ORDER BY head, tail LIMIT $3"
	reversed  = " ORDER BY head DESC, tail DESC LIMIT $3"
)

var pages = map[bool]map[bool]string{ // by presence of an upper bound, and direction
	false: {false: fromLow + ascending, true: fromLow + reversed},
	true:  {false: fromLow + belowHigh + ascending, true: fromLow + belowHigh + reversed},
}

// page returns the first rows of a range, or the last ones in the reverse order.
func (r *reader) page(b bounds, reverse bool, limit int) (page []kv.Row, err error) {
	head, tail := split(b.low)
	if head == nil {
		head = empty
	}
	args := []any{head, tail, limit}
	if b.high != nil {
		head, tail := split(b.high)
		args = append(args, head, tail)
	}
	err = r.ask(func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, pages[b.high != nil][reverse], args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var head, tail, value []byte
			if err := rows.Scan(&head, &tail, &value); err != nil {
				return err
			}
			page = append(page, kv.Row{Key: append(head, tail...), Value: value})
		}
		return rows.Err()
	})
	return page, err
}
