// Package loads keeps notes of running loads, whose rows no collection and no subscription names yet. By them,
// processes that share the store distinguish the rows of a live process from those of a dead one.
//
// A note is written in the commit that numbers the load, before its first row, and renewed while the process lives. The
// commit that names the load removes it, and fails if it is missing. A process that finds a note not renewed for
// [Silence] removes it, also in a commit. So either the load is named or its rows are removed, whatever clocks show and
// however long a process was suspended.
package loads

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"time"

	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// Silence is the time without renewal after which a load is given up. Clocks of processes may differ by almost as much.
const Silence = 24 * time.Hour

// renewal is the interval between renewals of a note.
const renewal = time.Hour

// ErrGivenUp is the error for a load that was taken for one of a dead process. Its rows are removed.
var ErrGivenUp = errors.New(
	"the load was given up, as its process gave no sign of life for a day; nothing was changed: load it again")

// Load is a running load.
type Load struct {
	Number uint32 // see [records.NextNumber]

	rows    *txn.DB
	lineage txn.Lineage // of the store when it began
	now     func() time.Time
	stop    context.CancelFunc
	done    sync.WaitGroup
}

// Begin numbers a load and notes it. The caller ends it.
func Begin(ctx context.Context, rows *txn.DB, now func() time.Time) (*Load, error) {
	l := &Load{rows: rows, lineage: rows.Lineage(), now: now}
	number, err := records.NextNumber(ctx, rows, func(t *txn.Tx, number uint32) error {
		return t.Put(key(number), l.note())
	})
	if err != nil {
		return nil, err
	}
	l.Number = number
	renewing, stop := context.WithCancel(context.WithoutCancel(ctx))
	l.stop = stop
	l.done.Go(func() { l.renew(renewing) })
	return l, nil
}

func key(number uint32) []byte {
	return binary.BigEndian.AppendUint32(keys.Once(keys.TableLoad), number)
}

func (l *Load) note() []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(l.now().UnixMilli()))
}

// renew renews the note until the load ends. What fails is done the next time.
func (l *Load) renew(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(renewal):
		}
		err := l.rows.Update(ctx, func(t *txn.Tx) error {
			if err := l.noted(t); err != nil {
				return err
			}
			return t.Put(key(l.Number), l.note())
		})
		if errors.Is(err, ErrGivenUp) || errors.Is(err, kv.ErrClosed) {
			return
		}
	}
}

func (l *Load) noted(t *txn.Tx) error {
	// some of its rows may be lost, or have been written to the other history
	if err := l.rows.Still(l.lineage); err != nil {
		return err
	}
	note, err := t.Get(key(l.Number))
	if err == nil && note == nil {
		err = ErrGivenUp
	}
	return err
}

// Naming returns a context for the update that names the load. The error is [ErrGivenUp] if the load was given up.
func (l *Load) Naming(ctx context.Context) context.Context {
	return txn.WithCondition(ctx, func(t *txn.Tx) error {
		return errors.Join(l.noted(t), t.Delete(key(l.Number)), records.DropIndexes(t))
	})
}

// End ends a load. After an error, which it returns, it removes the note, and remove removes the rows. If the error
// leaves the outcome of the naming commit open, the rows are kept, and removed after [Silence] unless they are named.
// They are also kept in another history of the store, where the number may be another load's.
func (l *Load) End(ctx context.Context, err error, remove func() error) error {
	l.stop()
	l.done.Wait()
	if err == nil || errors.Is(err, kv.ErrUnavailable) || l.rows.Still(l.lineage) != nil {
		return err
	}
	return errors.Join(err, remove(), l.rows.Engine.DeletePrefix(context.WithoutCancel(ctx), key(l.Number)))
}

// GiveUp removes the notes that were not renewed since a time.
func GiveUp(ctx context.Context, rows *txn.DB, before time.Time) error {
	return rows.Update(ctx, func(t *txn.Tx) error {
		for r, err := range t.Scan(keys.Once(keys.TableLoad), nil) {
			if err == nil && renewed(r.Value).Before(before) {
				err = t.Delete(r.Key)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// renewed returns when a note was renewed; one that cannot be read never was.
func renewed(note []byte) time.Time {
	if len(note) != 8 {
		return time.Time{}
	}
	return time.UnixMilli(int64(binary.BigEndian.Uint64(note)))
}

// UnderWay returns the numbers of the loads that are noted.
func UnderWay(t *txn.Tx) (map[uint32]bool, error) {
	numbers := map[uint32]bool{}
	for r, err := range t.ScanInPlace(keys.Once(keys.TableLoad), nil) {
		if err != nil {
			return nil, err
		}
		if rest := keys.Rest(r.Key); len(rest) == 4 {
			numbers[binary.BigEndian.Uint32(rest)] = true
		}
	}
	return numbers, nil
}
