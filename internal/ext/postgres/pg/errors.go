package pg

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tmshare/tmshare/internal/kv"
)

// Codes of PostgreSQL's errors (its manual, Appendix A, PostgreSQL Error Codes).
const (
	serializationFailure = "40001"
	deadlockDetected     = "40P01"
	notNullViolation     = "23502"
	uniqueViolation      = "23505"
	noSuchDatabase       = "3D000"
	noPrivilege          = "42501"
	noSuchParameter      = "42704"
	undefinedTable       = "42P01"
	undefinedSchema      = "3F000"
	duplicateTable       = "42P07"
	diskFull             = "53100"
	tooManyConnections   = "53300"
	readOnly             = "25006"
	statementCancelled   = "57014"
	idleInTransaction    = "25P03"
	invalidPassword      = "28P01"
	invalidAuthorization = "28000"
)

// warning is the code of generic notices, such as that a commit does not wait for its synchronous standby any more
// because the wait was cancelled.
const warning = "01000"

// noteWarnings has connections remember that there was a warning.
func noteWarnings(c *pgx.ConnConfig) {
	c.OnNotice = func(conn *pgconn.PgConn, n *pgconn.Notice) {
		if n.Code == warning {
			conn.CustomData()[warning] = true
		}
	}
}

// warned reports whether there was a warning since the last time that it was called.
func warned(conn *pgxpool.Conn) bool {
	data := conn.Conn().PgConn().CustomData()
	defer delete(data, warning)
	return data[warning] != nil
}

func hasCode(err error, codes ...string) bool {
	var failed *pgconn.PgError
	return errors.As(err, &failed) && slices.Contains(codes, failed.Code)
}

// collided reports whether the database refused a transaction because of another one.
func collided(err error) bool {
	return hasCode(err, serializationFailure, deadlockDetected, uniqueViolation, duplicateTable)
}

// untrusted reports whether the certificate of the database could not be verified.
func untrusted(err error) bool {
	var failed *tls.CertificateVerificationError
	return errors.As(err, &failed)
}

// away reports whether the database cannot be reached, or has ended the connection.
func away(err error) bool {
	if untrusted(err) {
		return false
	}
	var failed *pgconn.PgError
	if errors.As(err, &failed) {
		class := failed.Code[:2]
		return class == "08" || class == "57" || failed.Code == tooManyConnections || failed.Code == idleInTransaction ||
			failed.Code == readOnly
	}
	var network net.Error
	var refused *pgconn.ConnectError
	return errors.As(err, &refused) || errors.As(err, &network) || errors.Is(err, net.ErrClosed) ||
		pgconn.SafeToRetry(err) || broken(err)
}

// broken reports whether a connection was lost.
func broken(err error) bool {
	for _, lost := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, lost) {
			return true
		}
	}
	return false
}

// bounded returns a context for one query, and the function to call after the answer.
func (o *Options) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, o.AnswerTimeout)
}

// answered reports whether an error is the database's answer to a statement.
func answered(err error) bool {
	var failed *pgconn.PgError
	return errors.As(err, &failed) && !away(err)
}

// explain returns an error in the words of package kv.
func (o *Options) explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if why := context.Cause(ctx); why != nil {
		return why
	}
	switch {
	case errors.Is(err, errNoStore):
		return fmt.Errorf(
			"%w (%s, schema %q): create it with \"tmshare-server migrate --store URL\". If it is there, grant this user "+
				"USAGE on its schema", err, Redacted(o.URL), o.Schema)
	case errors.Is(err, kv.ErrOtherDatabase):
		return fmt.Errorf(
			"%w (%s): %w. Have the address lead to one database, and to the server that has taken over last; then all goes "+
				"on. If another database is the right one from now on, start this process again", kv.ErrUnavailable,
			Redacted(o.URL), err)
	case untrusted(err):
		return fmt.Errorf(
			"the certificate of the database (%s) cannot be verified: %w. Name the file of its authority with "+
				"sslrootcert=FILE in the address, and its host as its certificate does", Redacted(o.URL), err)
	case hasCode(err, invalidPassword, invalidAuthorization):
		return fmt.Errorf(
			"the database (%s) refuses this user: %w. Look at the user in the address, at the password in PGPASSWORD or in "+
				"the file that PGPASSFILE names, and at pg_hba.conf of the database", Redacted(o.URL), err)
	case hasCode(err, noSuchDatabase):
		return fmt.Errorf(
			"the database (%s) is not there: %w. Create it with \"createdb\", which migrate does not, or name the right one",
			Redacted(o.URL), err)
	case hasCode(err, noPrivilege):
		return fmt.Errorf(
			"the database (%s) does not allow this user to do that: %w. Grant the user USAGE on the schema %q, and SELECT, "+
				"INSERT, UPDATE and DELETE on its tables; migrate needs CREATE too", Redacted(o.URL), err, o.Schema)
	case hasCode(err, noSuchParameter):
		return fmt.Errorf("the database (%s) does not know an option of the address: %w. Correct it, or leave it out",
			Redacted(o.URL), err)
	case hasCode(err, diskFull):
		return fmt.Errorf("the disk of the database (%s) is full: %w (%w). Free some space there, and try again",
			Redacted(o.URL), err, syscall.ENOSPC)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf(
			"%w (%s): it stands still, as there is no answer in time (%w). Look at its machine and the network, and try again",
			kv.ErrUnavailable, Redacted(o.URL), err)
	case hasCode(err, readOnly):
		return fmt.Errorf(
			"%w for changes, as the database (%s) is only read: %w. It is a standby, or has default_transaction_read_only. "+
				"Name the server that takes changes, or all servers with target_session_attrs=read-write", kv.ErrUnavailable,
			Redacted(o.URL), err)
	case errors.Is(err, pgconn.ErrReadOnlyConnection):
		return fmt.Errorf(
			"%w for changes, as none of its servers (%s) takes any: %w. All that answer are standbys: look at what promotes "+
				"one of them, such as Patroni, and whether its etcd has a quorum", kv.ErrUnavailable, Redacted(o.URL), err)
	case hasCode(err, statementCancelled):
		return fmt.Errorf(
			"%w (%s): a statement was cancelled: %w. Where it is the statement_timeout of this user, set that to 0: this "+
				"program does not wait for longer than %v", kv.ErrUnavailable, Redacted(o.URL), err, commitTimeout)
	case hasCode(err, tooManyConnections):
		return fmt.Errorf(
			"%w (%s): it has no connection left: %w. Raise its max_connections, or lower %s in the address of each process "+
				"that uses it (now %d)", kv.ErrUnavailable, Redacted(o.URL), err, maxConnections, o.MaxReaders+o.MaxWriters)
	case away(err) && strings.Contains(err.Error(), "server refused TLS"):
		return fmt.Errorf(
			"the database (%s) has no TLS: %w. Set it up there, or say sslmode=disable in the address where nobody "+
				"else can listen", Redacted(o.URL), err)
	case away(err):
		return fmt.Errorf("%w (%s): %w. Look whether it runs, and try again", kv.ErrUnavailable, Redacted(o.URL), err)
	}
	return fmt.Errorf("the database (%s): %w", Redacted(o.URL), err)
}

// tries are the attempts at a transaction that may conflict with others.
type tries struct {
	ctx     context.Context
	left    int
	wait    *backoff.ExponentialBackOff
	retries *atomic.Int64 // counts them; nil: not counted
	returns bool          // an address that leads to another database is waited for as well
}

// maxTries is the number of attempts at a transaction. With the waits between them, they take about a second.
const maxTries = 12

func newTries(ctx context.Context) *tries {
	wait := backoff.NewExponentialBackOff() // with jitter
	wait.InitialInterval, wait.MaxInterval = 2*time.Millisecond, time.Second
	return &tries{ctx: ctx, left: maxTries, wait: wait}
}

// tries are those of an engine, which counts them.
func (e *Engine) tries(ctx context.Context) *tries {
	t := newTries(ctx)
	t.retries = &e.retries
	return t
}

// again waits, and reports whether to try again after an error.
func (t *tries) again(err error) bool {
	passes := collided(err) || away(err) ||
		t.returns && (errors.Is(err, kv.ErrOtherDatabase) || errors.Is(err, errNoStandby))
	// do not retry after a timeout
	if t.left--; t.left <= 0 || !passes || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	if t.retries != nil {
		t.retries.Add(1)
	}
	select {
	case <-t.ctx.Done():
		return false
	case <-time.After(t.wait.NextBackOff()):
		return true
	}
}
