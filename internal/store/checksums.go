package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tmshare/tmshare/internal/store/txn"
)

// An engine whose rows may be damaged, as files may be, compares their checksums only when it
// is asked to. So it is asked in the background: once after the database is opened, and once a
// day.
const verifyEvery = 24 * time.Hour

// keepChecksums compares the checksums of all rows, again and again.
func (db *DB) keepChecksums(stopped context.Context) {
	for first := true; ; first = false {
		damage := db.CompareChecksums(stopped)
		switch {
		case stopped.Err() != nil && !first: // not all were compared
			return
		case stopped.Err() != nil:
			damage = nil
		case damage != nil:
			db.onDamage(damage)
		}
		db.damage.Store(&damage)
		if first {
			close(db.compared)
		}
		select {
		case <-stopped.Done():
			return
		case <-db.again:
		case <-time.After(verifyEvery):
		}
	}
}

// Damage returns what was found when the checksums of all rows were last compared, in tables
// (not in logs). It is nil where all are right, and where they are not compared yet when ctx ends.
func (db *DB) Damage(ctx context.Context) error {
	select {
	case <-db.compared:
	case <-ctx.Done():
	}
	if damage := db.damage.Load(); damage != nil {
		return *damage
	}
	return nil
}

// DamageSoon reports whether it takes but a moment until Damage is known.
func (db *DB) DamageSoon() bool {
	v, ok := db.verifier.(interface{ VerifiesSoon() bool })
	return !ok || v.VerifiesSoon()
}

// CompareChecksums compares the checksums of all rows in tables (not in logs). It is [ErrDamaged]
// for the first table with rows that their checksums do not fit, and the cause of ctx where that
// ends before.
func (db *DB) CompareChecksums(ctx context.Context) error {
	if db.verifier == nil {
		return nil
	}
	err := db.verifier.Verify(ctx)
	if errors.Is(err, ErrDamaged) {
		return fmt.Errorf("%w. %s", err, txn.DamageRemedy)
	}
	return err
}
