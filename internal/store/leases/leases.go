// Package leases assigns jobs to one of the processes that share a store: maintenance of collections, following
// subscriptions, watching files.
//
// A lease is a row with the process that does a job, and a number that grows with each process that takes it (the
// fencing number). A second row is its heartbeat, which the holder raises repeatedly, without a commit, so that the
// version of the state stays. A process that sees no new heartbeat for a time, by its own clock, takes the lease.
//
// A holder that was suspended may not know that it has lost its lease. So each commit of a job checks the number.
package leases

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// ErrLost is the error for a job that another process does now. Nothing was changed.
var ErrLost = errors.New("another process has taken over: this one was silent for too long")

// Lease is the row of a job.
type Lease struct {
	Holder uuid.UUID // a process; Nil: none
	Number uint64    // grows with each holder
}

// Leases are those of one process. They are safe for concurrent use.
type Leases struct {
	rows    *txn.DB
	silence time.Duration // after which a holder counts as dead; 0: there is no other process
	log     *slog.Logger
	process uuid.UUID

	mu   sync.Mutex
	held map[string]bool // the requested jobs of this process; true: it does them
}

// New returns the leases of a process. Other processes take its jobs once it has been silent for a time. If that is 0,
// no other process has the store, and no leases are needed.
func New(rows *txn.DB, silence time.Duration, log *slog.Logger) *Leases {
	return &Leases{rows: rows, silence: silence, log: log, process: uuid.New(), held: map[string]bool{}}
}

// Alone reports whether no other process has the store.
func (l *Leases) Alone() bool { return l.silence == 0 }

// Jobs returns the jobs of [Leases.Lease], and whether this process does them now.
func (l *Leases) Jobs() map[string]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.held)
}

func (l *Leases) note(job string, held bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held[job] = held
}

// beat returns the interval of heartbeats, and of looking at those of others.
func (l *Leases) beat() time.Duration { return l.silence / 5 }

// Lease has this process do a job whenever no other does, until ctx ends. The context of do ends with [ErrLost] as its
// cause when the lease is lost. What is committed with that context fails with ErrLost from then on. do can be called
// again and again, and ends when its context does.
func (l *Leases) Lease(ctx context.Context, job string, do func(context.Context)) {
	if l.Alone() {
		do(ctx)
		return
	}
	l.note(job, false)
	defer l.giveBack(context.WithoutCancel(ctx), job)
	for failing := false; ctx.Err() == nil; {
		number, err := l.acquire(ctx, job)
		if err == nil {
			failing = false
			l.hold(ctx, job, number, do)
			continue
		}
		if ctx.Err() == nil && !failing {
			failing = true
			l.log.Warn("whether this process is to do a job is not known; it is asked again until the store answers", "job", job,
				"error", err)
		}
		l.wait(ctx)
	}
}

// wait waits for one interval, and reports whether ctx is still valid.
func (l *Leases) wait(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(l.beat()):
		return true
	}
}

// seen is the data by which a live lease is recognised.
type seen struct {
	Lease
	beat uint64
}

// free reports whether a process may take the lease at once: no other has it, or this one has claimed it.
func (s *seen) free(p uuid.UUID) bool { return s.Holder == uuid.Nil || s.Holder == p && s.beat == 0 }

// acquire waits until a lease is free, and takes it.
func (l *Leases) acquire(ctx context.Context, job string) (number uint64, err error) {
	last, since := seen{}, time.Now()
	for {
		now := seen{}
		err := l.rows.View(ctx, func(t *txn.Tx) (err error) { now, err = look(t, job); return err })
		if err != nil {
			return 0, err
		}
		if now != last {
			last, since = now, time.Now()
		}
		if now.free(l.process) || time.Since(since) >= l.silence {
			number, taken, err := l.take(ctx, job, now)
			if taken || err != nil {
				return number, err
			}
		}
		if !l.wait(ctx) {
			return 0, context.Cause(ctx)
		}
	}
}

func look(t *txn.Tx, job string) (s seen, err error) {
	if _, err = t.GetJSON(keys.Name(keys.TableLease, job), &s.Lease); err != nil {
		return s, err
	}
	beat, err := t.Get(keys.Name(keys.TableBeat, job))
	if number, n, ok := readBeat(beat); ok && number == s.Number {
		s.beat = n
	}
	return s, err
}

// Claim takes a lease in the commit of t, even from its holder. [Leases.Lease] goes on with it.
func (l *Leases) Claim(t *txn.Tx, job string) error {
	now, err := look(t, job)
	if l.Alone() || err != nil {
		return err
	}
	return t.PutJSON(keys.Name(keys.TableLease, job), Lease{l.process, now.Number + 1})
}

// take takes a lease unless another process has taken it, or has shown a heartbeat.
func (l *Leases) take(ctx context.Context, job string, from seen) (number uint64, taken bool, err error) {
	err = l.rows.Update(ctx, func(t *txn.Tx) error {
		now, err := look(t, job)
		if taken = err == nil && now == from; !taken {
			return err
		}
		number = now.Number + 1
		return t.PutJSON(keys.Name(keys.TableLease, job), Lease{l.process, number})
	})
	if taken = taken && err == nil; taken && !from.free(l.process) {
		l.log.Warn("the process that did a job is silent; this one has taken over", "job", job, "number", number)
	}
	return number, taken, err
}

// hold does a job until its lease is lost, or ctx ends.
func (l *Leases) hold(ctx context.Context, job string, number uint64, do func(context.Context)) {
	working, end := context.WithCancelCause(fenced(ctx, job, number))
	done := make(chan struct{})
	l.note(job, true)
	go func() {
		defer close(done)
		do(working)
	}()
	if err := l.keep(ctx, job, number); err != nil {
		l.log.Warn("this process no longer does a job", "job", job, "error", err)
		end(err)
	}
	end(nil)
	<-done
	l.note(job, false)
}

// keep shows that this process lives, until ctx ends. It returns why the lease is lost.
func (l *Leases) keep(ctx context.Context, job string, number uint64) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	shown := time.Now()
	for n := uint64(1); l.wait(ctx); n++ {
		began := time.Now()
		if began.Sub(shown) >= l.silence {
			return ErrLost
		}
		within, cancel := context.WithDeadline(ctx, shown.Add(l.silence))
		err := l.show(within, job, number, n)
		cancel()
		switch {
		case err == nil:
			shown = began
		case errors.Is(err, ErrLost):
			return err
		}
	}
	return nil
}

// show writes a beat, unless the lease is lost.
func (l *Leases) show(ctx context.Context, job string, number, n uint64) error {
	if err := l.rows.View(ctx, check(job, number)); err != nil {
		return err
	}
	w, err := l.rows.Engine.Bulk(ctx)
	if err != nil {
		return err
	}
	defer w.Cancel()
	value := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, number), n)
	if err := w.Put(keys.Name(keys.TableBeat, job), value); err != nil {
		return err
	}
	return w.Commit()
}

func readBeat(value []byte) (number, n uint64, ok bool) {
	if len(value) != 16 {
		return 0, 0, false
	}
	return binary.BigEndian.Uint64(value), binary.BigEndian.Uint64(value[8:]), true
}

// givingBack is the time for which a process that ends waits for the store.
const givingBack = 2 * time.Second

// giveBack frees a lease that this process holds, or has claimed. Where it fails, others wait for the silence.
func (l *Leases) giveBack(ctx context.Context, job string) {
	ctx, cancel := context.WithTimeout(ctx, givingBack)
	defer cancel()
	_ = l.rows.Update(ctx, func(t *txn.Tx) error {
		now, err := look(t, job)
		if err != nil || now.Holder != l.process {
			return err
		}
		return t.PutJSON(keys.Name(keys.TableLease, job), Lease{Number: now.Number})
	})
}

// fenced returns a context whose commits fail once the lease is lost.
func fenced(ctx context.Context, job string, number uint64) context.Context {
	return txn.WithCondition(ctx, check(job, number))
}

func check(job string, number uint64) func(*txn.Tx) error {
	return func(t *txn.Tx) error {
		var now Lease
		_, err := t.GetJSON(keys.Name(keys.TableLease, job), &now)
		if err == nil && now.Number != number {
			return fmt.Errorf("%s: %w", job, ErrLost)
		}
		return err
	}
}
