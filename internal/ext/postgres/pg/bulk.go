package pg

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tmshare/tmshare/internal/kv"
)

// bulk implements [kv.Writer]. It writes each part in a separate transaction.
type bulk struct {
	changes
	engine *Engine
	ctx    context.Context
}

// Bulk implements [kv.Engine].
func (e *Engine) Bulk(ctx context.Context) (kv.Writer, error) {
	if err := e.usable(ctx); err != nil {
		return nil, err
	}
	return &bulk{engine: e, ctx: ctx}, nil
}

// Put implements [kv.Writer].
func (b *bulk) Put(key, value []byte) error { return b.added(b.put(b.ctx, key, value)) }

// Delete implements [kv.Writer].
func (b *bulk) Delete(key []byte) error { return b.added(b.remove(b.ctx, key)) }

// Cancel implements [kv.Writer].
func (b *bulk) Cancel() { b.clear() }

// Narrow implements [kv.Writer].
func (b *bulk) Narrow(kv.Reader, []uint32) error { return nil }

// Leads implements [kv.Writer].
func (b *bulk) Leads() kv.Version { return kv.Version{} }

// Commit implements [kv.Writer].
func (b *bulk) Commit() error {
	if err := b.engine.usable(b.ctx); err != nil {
		return err
	}
	return b.send()
}

func (b *bulk) added(full bool, err error) error {
	if err != nil || !full {
		return err
	}
	return b.send()
}

// send writes the collected rows. It copies them if all are new, else it upserts them.
func (b *bulk) send() error {
	put, gone := b.sorted()
	copied := len(gone.heads) == 0
	for try := b.engine.tries(b.ctx); ; {
		err := b.write(put, copied)
		if copied && hasCode(err, uniqueViolation) {
			copied = false
			continue
		}
		if err == nil {
			b.engine.size.grow(b.size)
			b.clear()
			return nil
		}
		if !try.again(err) {
			return b.engine.explain(b.ctx, err)
		}
	}
}

func (b *bulk) write(put columns, copied bool) error {
	if len(b.values) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(b.ctx, commitTimeout)
	defer cancel()
	conn, err := b.engine.writers.Acquire(ctx)
	if err != nil {
		return err
	}
	defer release(conn)
	if copied {
		_, err = conn.CopyFrom(ctx, pgx.Identifier{"tm_rows"}, []string{"head", "hash", "tail", "value"},
			&copying{columns: put})
		return err
	}
	var batch pgx.Batch
	b.engine.begin(&batch)
	b.queue(&batch)
	batch.Queue("COMMIT")
	return conn.SendBatch(ctx, &batch).Close()
}

// copying implements pgx.CopyFromSource.
type copying struct {
	columns
	n int
}

func (c *copying) Next() bool { c.n++; return c.n <= len(c.heads) }
func (c *copying) Err() error { return nil }
func (c *copying) Values() ([]any, error) {
	i := c.n - 1
	return []any{c.heads[i], c.hashes[i], c.tails[i], c.values[i]}, nil
}

// deleteAtOnce is the number of rows that one transaction deletes.
const deleteAtOnce = 5000

// DeletePrefix implements [kv.Engine].
func (e *Engine) DeletePrefix(ctx context.Context, prefix []byte) error {
	if err := e.usable(ctx); err != nil {
		return err
	}
	b := within(prefix, nil, false)
	for try := e.tries(ctx); ; {
		n, err := e.deleteSome(ctx, b)
		switch {
		case err == nil && n < deleteAtOnce:
			return nil
		case err == nil:
			try = e.tries(ctx)
		case !try.again(err):
			return e.explain(ctx, err)
		}
	}
}

func (e *Engine) deleteSome(ctx context.Context, b bounds) (deleted int64, err error) {
	head, tail := split(b.low)
	if head == nil {
		head = empty
	}
	args, condition := []any{head, tail, deleteAtOnce}, "head >= $1 AND (head > $1 OR tail >= $2)"
	if b.high != nil {
		head, tail := split(b.high)
		args, condition = append(args, head, tail), condition+belowHigh
	}
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	var batch pgx.Batch
	e.begin(&batch)
	batch.Queue("DELETE FROM tm_rows WHERE (head, hash) IN (SELECT head, hash FROM tm_rows WHERE "+
		condition+" LIMIT $3)", args...).Exec(func(tag pgconn.CommandTag) error {
		deleted = tag.RowsAffected()
		return nil
	})
	batch.Queue("COMMIT")
	err = e.writers.SendBatch(ctx, &batch).Close()
	return deleted, err
}
