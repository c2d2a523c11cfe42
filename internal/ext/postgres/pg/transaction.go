package pg

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tmshare/tmshare/internal/kv"
)

// transaction implements [kv.Writer]. Its changes are in memory until there are many. Then they go into a transaction
// of the database, which is invisible to others.
type transaction struct {
	changes
	engine *Engine
	ctx    context.Context
	since  kv.Version
	leads  kv.Version
	conn   *pgxpool.Conn // of the transaction that has some of the changes; nil: all are in memory
	failed error         // of that transaction

	spaces map[uint32]bool // in which rows change
	base   *conditions     // nil: the commit depends on all of the state
}

// conditions are the preconditions of a commit: the state of the rows of keyspaces when it was prepared.
type conditions struct {
	spaces  []int64
	ids     []string
	changes []bool  // rows change in the keyspace
	missing []int64 // keyspaces without a row
}

// locks iterates over the keyspaces to lock, sorted, so that two commits cannot deadlock. Consecutive keyspaces that
// are all to be changed, or all not, come together.
func (c *conditions) locks() iter.Seq2[[]int64, bool] {
	return func(yield func([]int64, bool) bool) {
		for from, to := 0, 0; from < len(c.spaces); from = to {
			for to = from; to < len(c.spaces) && c.changes[to] == c.changes[from]; to++ {
			}
			if !yield(c.spaces[from:to], c.changes[from]) {
				return
			}
		}
	}
}

// lock has all that is there, or is missing, locked.
func (c *conditions) lock(batch *pgx.Batch) {
	if len(c.missing) > 0 {
		batch.Queue(addMissing, c.missing)
	}
	for spaces, changes := range c.locks() {
		if changes {
			batch.Queue(lockWrite, spaces)
		} else {
			batch.Queue(lockRead, spaces)
		}
	}
}

// Begin implements [kv.Engine].
func (e *Engine) Begin(ctx context.Context, since kv.Version) (kv.Writer, error) {
	if err := e.usable(ctx); err != nil {
		return nil, err
	}
	return e.transaction(ctx, since), nil
}

func (e *Engine) transaction(ctx context.Context, since kv.Version) *transaction {
	return &transaction{engine: e, ctx: ctx, since: since, leads: since.Next(), spaces: map[uint32]bool{}}
}

// Narrow implements [kv.Writer].
func (t *transaction) Narrow(base kv.Reader, spaces []uint32) error {
	reading, ok := base.(*reader)
	if !ok {
		return nil // a reader of another kind: the commit depends on all of the state
	}
	all := map[uint32]bool{}
	maps.Copy(all, t.spaces)
	for _, space := range spaces {
		all[space] = t.spaces[space]
	}
	var asked []int64
	for _, space := range slices.Sorted(maps.Keys(all)) {
		asked = append(asked, int64(space))
	}
	return reading.ask(func(ctx context.Context, conn *pgx.Conn) error {
		var c conditions
		rows, err := conn.Query(ctx,
			`SELECT space, s.space IS NOT NULL, coalesce(s.id, 0)::text FROM unnest($1::bigint[])
				AS n (space) LEFT JOIN tm_spaces AS s USING (space) ORDER BY space`, asked)
		if err != nil {
			return err
		}
		var space int64
		var there bool
		var id string
		_, err = pgx.ForEachRow(rows, []any{&space, &there, &id}, func() error {
			c.spaces, c.ids = append(c.spaces, space), append(c.ids, id)
			if !there {
				c.missing = append(c.missing, space)
			}
			c.changes = append(c.changes, all[uint32(space)])
			return nil
		})
		t.base = &c
		return err
	})
}

// Put implements [kv.Writer].
func (t *transaction) Put(key, value []byte) error {
	t.spaces[kv.SpaceOf(key)] = true
	return t.added(t.put(t.ctx, key, value))
}

// Delete implements [kv.Writer].
func (t *transaction) Delete(key []byte) error {
	t.spaces[kv.SpaceOf(key)] = true
	return t.added(t.remove(t.ctx, key))
}

func (t *transaction) added(full bool, err error) error {
	if err != nil || !full {
		return err
	}
	return t.spill()
}

const (
	// A commit checks its preconditions itself, so it need not be SERIALIZABLE, which reports neighbours in an index as
	// conflicts.
	beginWriting = "BEGIN ISOLATION LEVEL READ COMMITTED"

	// It updates the rows of the changed keyspaces in the order of their numbers. After a commit by others, the id is
	// NULL. The column does not allow that, so the transaction fails.
	advance = `INSERT INTO tm_spaces AS s (space, id) SELECT space, CASE WHEN `
	byID    = ` THEN $2::numeric END FROM unnest($1::bigint[]) AS n (space)
		ORDER BY space ON CONFLICT (space) DO UPDATE SET id = mod(s.id + excluded.id, 18446744073709551616)`

	// All other commits have to wait, so that the version can be compared.
	lockAll   = "LOCK TABLE tm_spaces IN EXCLUSIVE MODE"
	unchanged = advance + "(SELECT (" + versionColumns + ") = ($3::bigint, $4::text) FROM tm_versions)" + byID

	// Keyspaces without a row get one, so that it can be locked.
	addMissing = "INSERT INTO tm_spaces (space, id) SELECT space, 0 FROM unnest($1::bigint[]) AS n (space) " +
		"ORDER BY space ON CONFLICT DO NOTHING"
	lockSome = "SELECT space FROM tm_spaces AS s JOIN unnest($1::bigint[]) AS n (space) USING (space) ORDER " +
		"BY space FOR "
	lockRead   = lockSome + "SHARE OF s"
	lockWrite  = lockSome + "UPDATE OF s"
	asTheyWere = advance + `(SELECT count(*) = cardinality($3::bigint[]) FROM tm_spaces AS s
		JOIN unnest($3::bigint[], $4::numeric[]) AS n (space, id) USING (space) WHERE s.id = n.id)` + byID

	// It counts the commit. It comes last, so others wait for this row no longer than a commit takes.
	count = `WITH counted AS (INSERT INTO tm_versions AS v (part, commits, id) VALUES ($1, 1, $2::numeric)
		ON CONFLICT (part) DO UPDATE SET commits = v.commits + 1, id = mod(v.id + excluded.id, 18446744073709551616)
			RETURNING part, commits)
		INSERT INTO tm_commits (part, number, id, spaces) SELECT part, commits, $3::bigint, $4::bigint[] FROM counted
			RETURNING number`
	askLeads = "SELECT " + versionColumns + ", " + countsColumn + " FROM tm_versions"

	forget = "DELETE FROM tm_commits WHERE at < now() - interval '1 hour'"
)

// forgetEvery is the mean number of commits between two removals of old identifiers of commits. Processes query the
// outcome of a commit within a minute.
const forgetEvery = 1000

// spill sends the changes to the database, where they wait for the commit.
func (t *transaction) spill() error {
	if t.failed != nil {
		return t.failed
	}
	var batch pgx.Batch
	if t.conn == nil {
		conn, err := t.engine.acquire(t.ctx)
		if err != nil {
			return t.engine.explain(t.ctx, err)
		}
		t.conn = conn
		t.engine.begin(&batch)
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

// begin has a transaction begin in which something is written.
func (e *Engine) begin(batch *pgx.Batch) {
	batch.Queue(beginWriting)
	if set := e.pooler.local(writing...); set != "" {
		batch.Queue(set)
	}
}

func (e *Engine) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	asking, answered := e.bounded(ctx)
	defer answered()
	return e.writers.Acquire(asking)
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
		case spilled && (collided(err) || away(err)): // the changes are lost with the transaction
			return kv.ErrConflict
		case !try.again(err):
			return t.conflict(err)
		}
	}
}

// errOutcomeUnknown is the error for a commit whose outcome the database did not report.
var errOutcomeUnknown = errors.New("the database did not tell what became of the commit")

// errNoStandby is the error for a commit that no longer waits for its synchronous standby.
var errNoStandby = errors.New("its synchronous standby may not have the commit")

// commit makes one attempt, in one round trip, so that a process that hangs meanwhile blocks no other. After any error
// but errOutcomeUnknown, nothing is changed.
func (t *transaction) commit() error {
	if err := context.Cause(t.ctx); err != nil {
		return err
	}
	var batch pgx.Batch
	if t.conn == nil {
		conn, err := t.engine.acquire(t.ctx)
		if err != nil {
			return err
		}
		t.conn = conn
		t.engine.begin(&batch)
	}
	defer func() {
		release(t.conn)
		t.conn = nil
	}()
	t.queueConditions(&batch)
	if rand.IntN(forgetEvery) == 0 {
		batch.Queue(forget)
	}
	t.queue(&batch)
	noted := t.queueVersion(&batch)
	batch.Queue("COMMIT")
	warned(t.conn) // drop earlier notices
	// From here on the commit must not be cancelled, because the caller must know its outcome.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), commitTimeout)
	defer cancel()
	switch err := t.conn.SendBatch(ctx, &batch).Close(); {
	case hasCode(err, notNullViolation):
		return kv.ErrConflict
	case err == nil && warned(t.conn):
		return fmt.Errorf("%w: %w", errOutcomeUnknown, errNoStandby)
	case err == nil:
		noted()
		return nil
	case answered(err) || pgconn.SafeToRetry(err):
		return err
	default:
		return fmt.Errorf("%w: %w", errOutcomeUnknown, err)
	}
}

// queueConditions queues the comparison of the preconditions, and the changes of the keyspaces.
func (t *transaction) queueConditions(batch *pgx.Batch) {
	by := strconv.FormatUint(rand.Uint64(), 10)
	if t.base == nil {
		batch.Queue(lockAll)
		batch.Queue(unchanged, t.changed(), by, int64(t.since.Number), strconv.FormatUint(t.since.ID, 10))
	} else {
		t.base.lock(batch)
		batch.Queue(asTheyWere, t.changed(), by, t.base.spaces, t.base.ids)
	}
}

// changed returns the keyspaces in which rows change, sorted; [noSpace] if there are none.
func (t *transaction) changed() (all []int64) {
	for _, space := range slices.Sorted(maps.Keys(t.spaces)) {
		all = append(all, int64(space))
	}
	if len(all) == 0 {
		return []int64{noSpace}
	}
	return all
}

// id is by what the id of the version grows with the commit.
func (t *transaction) id() uint64 { return t.leads.ID - t.since.ID }

// part is the one in which the commit is counted.
func (t *transaction) part() int { return int(uint64(t.changed()[0]) % parts) }

// queueVersion queues the update of the version. The function that it returns notes the answer, after the commit.
func (t *transaction) queueVersion(batch *pgx.Batch) (noted func()) {
	leads, at, counts := t.leads, kv.Place{Part: t.part()}, ""
	batch.Queue(count, at.Part, strconv.FormatUint(t.id(), 10), int64(t.id()), t.changed()).
		QueryRow(func(row pgx.Row) error { return row.Scan(&at.Number) })
	if t.base != nil {
		batch.Queue(askLeads).QueryRow(func(row pgx.Row) error {
			var id string
			err := row.Scan(&leads.Number, &id, &counts)
			if err == nil {
				leads.ID, err = strconv.ParseUint(id, 10, 64)
			}
			return err
		})
	}
	return func() {
		t.engine.recent.made(at, kv.Commit{ID: t.id(), Spaces: t.spaces})
		if t.leads = leads; t.base != nil {
			_, _ = t.engine.recent.saw(leads, counts)
		}
	}
}

// noSpace is the keyspace of commits that change no rows.
const noSpace = -1

// commitTimeout is the time limit for the answer to a commit, and again for the query of its outcome.
const commitTimeout = 30 * time.Second

// resolve queries the outcome of a commit that the database did not report. done is true if it was carried out. It
// returns lost if it was not, and can no longer be.
func (t *transaction) resolve(lost error) (done bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), commitTimeout)
	defer cancel()
	try := t.engine.tries(ctx)
	for try.returns = true; ; try.left = maxTries {
		if done, err = t.outcome(ctx); err == nil {
			t.engine.Logger.Warn(
				"the database did not tell what became of a commit; it was asked again", "why", lost, "done", done)
			if done {
				return true, nil
			}
			return false, lost
		}
		if !try.again(err) {
			return false,
				fmt.Errorf("%w: whether the change was made is not known, as the database does not answer (%s): %w. Look at the "+
					"collection before you send it again",
					kv.ErrUnavailable, Redacted(t.engine.URL), err)
		}
	}
}

// outcome reports whether the commit was carried out. If the database has not noticed the lost connection, it waits for
// the transaction to end. Its lock makes it a commit itself, so a synchronous standby that has it also has the other
// commit.
func (t *transaction) outcome(ctx context.Context) (done bool, err error) {
	conn, err := t.engine.writers.Acquire(ctx)
	if err != nil {
		return false, err
	}
	defer release(conn)
	warned(conn) // drop earlier notices
	err = pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		spaces := slices.Compact(append([]int64{noSpace}, t.changed()...))
		for _, statement := range []string{addMissing, lockWrite} {
			if _, err := tx.Exec(ctx, statement, spaces); err != nil {
				return err
			}
		}
		return tx.QueryRow(ctx, "SELECT count(*) > 0 FROM tm_commits WHERE part = $1 AND id = $2", t.part(),
			int64(t.id())).Scan(&done)
	})
	if err == nil && warned(conn) {
		err = errNoStandby
	}
	return done, err
}
