package leases

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// Living reports whether another process that shares the store does a job. It waits for a heartbeat, at most until a
// process that takes over from a dead one would have shown one: that looks at each interval, and counts from then on.
func (l *Leases) Living(ctx context.Context) (bool, error) {
	first, err := l.others(ctx)
	if err != nil || len(first) == 0 {
		return false, err
	}
	for began := time.Now(); time.Since(began) < l.silence+3*l.beat(); {
		if !l.wait(ctx) {
			return false, context.Cause(ctx)
		}
		now, err := l.others(ctx)
		if err != nil {
			return false, err
		}
		for job, s := range now {
			if before, ok := first[job]; !ok || before != s {
				return true, nil
			}
		}
	}
	return false, nil
}

// others returns the leases that other processes hold, by their jobs.
func (l *Leases) others(ctx context.Context) (map[string]seen, error) {
	held := map[string]seen{}
	err := l.rows.View(ctx, func(t *txn.Tx) error {
		for r, err := range t.Scan(keys.Once(keys.TableLease), nil) {
			var s seen
			if err == nil {
				err = txn.Decode(r, &s.Lease)
			}
			job := ""
			if err == nil && s.Holder != uuid.Nil && s.Holder != l.process {
				job = string(keys.Rest(r.Key))
				s, err = look(t, job)
			}
			if err != nil {
				return err
			}
			if job != "" {
				held[job] = s
			}
		}
		return nil
	})
	return held, err
}
