package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// ErrKnownDamage is the error for changes after damage was found.
var ErrKnownDamage = errors.New("damage was found in the data folder, so nothing is written to it any more")

// condition is that of a store.
type condition struct {
	verifier kv.Verifier  // compares the checksums of the engine; nil: it has none
	found    func(error)  // called with damage
	here     func() error // returns an error if the path of the folder leads elsewhere; nil: no folder
	log      *slog.Logger
	now      func() time.Time

	compared chan struct{}         // closed when the checksums of all rows have been compared once
	damage   atomic.Pointer[error] // the last result, after that
	stumbled atomic.Int64          // when a reader last came upon damage, in nanoseconds

	Again chan struct{} // has the checksums compared again
}

// An engine whose rows may be damaged, as in files, compares their checksums only on request. So this runs in the
// background: once after the database is opened, and once a day.
const verifyEvery = 24 * time.Hour

// KeepChecksums compares the checksums of all rows, again and again.
func (c *condition) KeepChecksums(stopped context.Context) {
	for first := true; ; first = false {
		damage := c.CompareChecksums(stopped)
		switch {
		case stopped.Err() != nil && !first: // not all were compared
			return
		case stopped.Err() != nil:
			damage = nil
		case damage != nil:
			c.found(damage)
		}
		c.damage.Store(&damage)
		if first {
			close(c.compared)
		}
		select {
		case <-stopped.Done():
			return
		case <-c.Again:
		case <-time.After(verifyEvery):
		}
	}
}

// Damage returns the damage found when the checksums of all rows were last compared, in tables and of large values (not
// of rows in logs). It waits for the first comparison. It returns nil if there is none, or ctx ends first.
func (c *condition) Damage(ctx context.Context) error {
	select {
	case <-c.compared:
	case <-ctx.Done():
	}
	if damage := c.damage.Load(); damage != nil {
		return *damage
	}
	return nil
}

// CompareSoon starts a comparison of the checksums after a reader met damage, once a minute at most, because not all
// damage is in files.
func (c *condition) CompareSoon() {
	now := c.now().UnixNano()
	if last := c.stumbled.Load(); now-last < int64(time.Minute) || !c.stumbled.CompareAndSwap(last, now) {
		return
	}
	select {
	case c.Again <- struct{}{}:
	default: // they are being compared
	}
}

// DamageSoon reports whether it takes but a moment until Damage is known.
func (c *condition) DamageSoon() bool {
	v, ok := c.verifier.(interface{ VerifiesSoon() bool })
	return !ok || v.VerifiesSoon()
}

// CompareChecksums compares the checksums of all rows in tables and of large values (not of rows in logs). It is
// [kv.ErrDamaged] for the first table with rows that their checksums do not fit, and the cause of ctx where that ends
// before.
func (c *condition) CompareChecksums(ctx context.Context) error {
	if c.verifier == nil {
		return nil
	}
	err := c.verifier.Verify(ctx)
	if errors.Is(err, kv.ErrDamaged) {
		return fmt.Errorf("%w. %s", err, txn.DamageRemedy)
	}
	return err
}

// Impaired returns an error that is [durable.ErrElsewhere] or [ErrKnownDamage] if nothing may be changed any more.
func (c *condition) Impaired() error {
	if c.here != nil {
		if err := c.here(); err != nil {
			return err
		}
	}
	if damage := c.damage.Load(); damage != nil && *damage != nil {
		return fmt.Errorf("%w: %w", ErrKnownDamage, *damage)
	}
	return nil
}

// KeepPlace checks once a second that the path of the folder still leads to it, and logs if not.
func (c *condition) KeepPlace(stopped context.Context) {
	lost := false
	for {
		select {
		case <-stopped.Done():
			return
		case <-time.After(time.Second):
		}
		switch err := c.here(); {
		case err != nil && !lost:
			c.log.Error(
				"nothing is written any more: stop this process, look which folder is the right one, and start it there",
				"error", err)
			lost = true
		case err == nil && lost:
			c.log.Info("the data folder is at its place again")
			lost = false
		}
	}
}
