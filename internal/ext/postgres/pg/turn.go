package pg

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tmshare/tmshare/internal/kv"
)

// turn implements [kv.Turn]: a transaction that locks the rows of keyspaces before the changes are known.
type turn struct {
	engine *Engine
	conn   *pgxpool.Conn
}

// Turn implements [kv.Shared]. The database ends the turn if this process is idle for too long, or has ended.
func (e *Engine) Turn(ctx context.Context, reads, changes []uint32, most time.Duration) (kv.Turn, error) {
	if err := e.usable(ctx); err != nil {
		return nil, err
	}
	conn, err := e.acquire(ctx)
	if err != nil {
		return nil, e.explain(ctx, err)
	}
	var batch pgx.Batch
	e.begin(&batch)
	batch.Queue(fmt.Sprintf("SET LOCAL idle_in_transaction_session_timeout = %d", most.Milliseconds()))
	if len(changes) == 0 {
		batch.Queue(lockAll)
	} else {
		var c conditions
		all := append(slices.Clone(reads), changes...)
		slices.Sort(all)
		for _, space := range slices.Compact(all) {
			c.spaces, c.changes = append(c.spaces, int64(space)), append(c.changes, slices.Contains(changes, space))
		}
		c.missing = c.spaces
		c.lock(&batch)
	}
	waiting, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	if err := conn.SendBatch(waiting, &batch).Close(); err != nil {
		release(conn)
		return nil, e.explain(ctx, err)
	}
	return &turn{e, conn}, nil
}

// Begin implements [kv.Turn].
func (t *turn) Begin(ctx context.Context, since kv.Version) (kv.Writer, error) {
	w := t.engine.transaction(ctx, since)
	w.conn, t.conn = t.conn, nil
	return w, nil
}

// End implements [kv.Turn].
func (t *turn) End() {
	release(t.conn)
	t.conn = nil
}
