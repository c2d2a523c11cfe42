package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tmshare/tmshare/internal/kv"
)

// transaction implements [kv.Writer]. Its changes are in memory until there are many. From then on
// they are in a transaction of the database, which nobody else sees.
type transaction struct {
	changes
	engine *Engine
	ctx    context.Context
	since  kv.Version
	leads  kv.Version
	conn   *pgxpool.Conn // of the transaction that has some of the changes; nil: all are in memory
	failed error         // of that transaction
}

// Begin implements [kv.Engine].
func (e *Engine) Begin(ctx context.Context, since kv.Version) (kv.Writer, error) {
	if err := e.usable(ctx); err != nil {
		return nil, err
	}
	return &transaction{engine: e, ctx: ctx, since: since, leads: since.Next()}, nil
}

// Put implements [kv.Writer].
func (t *transaction) Put(key, value []byte) error { return t.added(t.put(t.ctx, key, value)) }

// Delete implements [kv.Writer].
func (t *transaction) Delete(key []byte) error { return t.added(t.remove(t.ctx, key)) }

func (t *transaction) added(full bool, err error) error {
	if err != nil || !full {
		return err
	}
	return t.spill()
}

const (
	beginWriting = "BEGIN ISOLATION LEVEL SERIALIZABLE"
	// Where the version is another one, there is none to note, which the column does not allow: the transaction fails.
	advance = `WITH present AS (UPDATE tm_state SET version = version + 1, id = $3 WHERE one = 1 AND version = $1 AND id = $2 RETURNING version)
		INSERT INTO tm_commits (version, id) VALUES ((SELECT version FROM present), $3)`
	forget = "DELETE FROM tm_commits WHERE version <= $1"
)

// The identifiers of the last commitsKept commits are kept. They are looked at every forgetEvery.
const (
	commitsKept = 100_000
	forgetEvery = 1000
)

// spill sends the changes to the database, where they wait for the commit.
func (t *transaction) spill() error {
	if t.failed != nil {
		return t.failed
	}
	var batch pgx.Batch
	if t.conn == nil {
		conn, err := t.acquire()
		if err != nil {
			return t.engine.explain(t.ctx, err)
		}
		t.conn = conn
		batch.Queue(beginWriting)
	}
	t.queue(&batch)
	ctx, cancel := context.WithTimeout(t.ctx, commitTimeout)
	defer cancel()
	if err := t.conn.SendBatch(ctx, &batch).Close(); err != nil {
		t.failed = t.conflict(err)
		return t.failed
	}
	t.engine.size.grow(t.size)
	t.clear()
	return nil
}

func (t *transaction) acquire() (*pgxpool.Conn, error) {
	asking, answered := t.engine.bounded(t.ctx)
	defer answered()
	return t.engine.writers.Acquire(asking)
}

// conflict returns the error of a statement in the words of package kv.
func (t *transaction) conflict(err error) error {
	if collided(err) {
		return kv.ErrConflict
	}
	return t.engine.explain(t.ctx, err)
}

// Leads implements [kv.Writer].
func (t *transaction) Leads() kv.Version { return t.leads }

// Cancel implements [kv.Writer].
func (t *transaction) Cancel() {
	release(t.conn)
	t.conn = nil
	t.clear()
}

// Commit implements [kv.Writer]. What is in memory is tried again where the database refuses it
// because of others, as long as the state is still the one that it is based on.
func (t *transaction) Commit() error {
	defer t.Cancel()
	if t.failed != nil {
		return t.failed
	}
	spilled := t.conn != nil
	for try := t.engine.tries(t.ctx); ; {
		if err := t.engine.usable(t.ctx); err != nil {
			return err
		}
		err := t.commit()
		if errors.Is(err, errOutcomeUnknown) {
			var done bool
			if done, err = t.resolve(err); done {
				return nil
			}
		}
		switch {
		case err == nil:
			t.engine.size.grow(t.size)
			return nil
		case errors.Is(err, kv.ErrConflict):
			return err
		case spilled && (collided(err) || away(err)): // the changes are gone with the transaction
			return kv.ErrConflict
		case !try.again(err):
			return t.conflict(err)
		}
	}
}

// errOutcomeUnknown says that a connection was lost while the database was committing.
var errOutcomeUnknown = errors.New("the connection was lost during the commit")

// commit tries once, in one exchange with the database: a process that stands still holds up nobody in between. Nothing is
// changed after an error that is not errOutcomeUnknown.
func (t *transaction) commit() error {
	if err := context.Cause(t.ctx); err != nil {
		return err
	}
	var batch pgx.Batch
	if t.conn == nil {
		conn, err := t.acquire()
		if err != nil {
			return err
		}
		t.conn = conn
		batch.Queue(beginWriting)
	}
	defer func() {
		release(t.conn)
		t.conn = nil
	}()
	batch.Queue(advance, t.since.Number, int64(t.since.ID), int64(t.leads.ID))
	if n := t.since.Number; n%forgetEvery == 0 && n > commitsKept {
		batch.Queue(forget, n-commitsKept)
	}
	t.queue(&batch)
	batch.Queue("COMMIT")
	// From here on nobody gives up early: the commit is done or not, and the caller must know.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), commitTimeout)
	defer cancel()
	switch err := t.conn.SendBatch(ctx, &batch).Close(); {
	case hasCode(err, notNullViolation):
		return kv.ErrConflict
	case err == nil || answered(err) || pgconn.SafeToRetry(err):
		return err
	default:
		return fmt.Errorf("%w: %w", errOutcomeUnknown, err)
	}
}

// commitTimeout bounds how long a commit waits for the answer of the database, and then as long
// again for the answer what became of it.
const commitTimeout = 30 * time.Second

// resolve asks what became of a commit after the connection was lost. done says that it was carried
// out. Else lost is returned where it was not, and cannot be any more.
func (t *transaction) resolve(lost error) (done bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), commitTimeout)
	defer cancel()
	try := t.engine.tries(ctx)
	for try.returns = true; ; try.left = maxTries {
		if done, err = t.outcome(ctx); err == nil {
			t.engine.Logger.Warn("the connection to the database was lost during a commit; the database was asked what became of it", "done", done)
			if done {
				return true, nil
			}
			return false, lost
		}
		if !try.again(err) {
			return false, fmt.Errorf("%w: whether the change was made is not known, as the database does not answer (%s): %w. Look at the collection before you send it again",
				kv.ErrUnavailable, Redacted(t.engine.URL), err)
		}
	}
}

// outcome reports whether the commit was carried out. It waits for the transaction to end where the
// database has not noticed yet that nobody waits for it.
func (t *transaction) outcome(ctx context.Context) (done bool, err error) {
	err = pgx.BeginTxFunc(ctx, t.engine.writers, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT version FROM tm_state WHERE one = 1 FOR UPDATE"); err != nil {
			return err
		}
		return tx.QueryRow(ctx, "SELECT count(*) > 0 FROM tm_commits WHERE version = $1 AND id = $2", t.leads.Number, int64(t.leads.ID)).Scan(&done)
	})
	return done, err
}
