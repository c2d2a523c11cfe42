// Package sources stores what a node follows: its subscriptions, their progress, their quarantine, the states of their
// records, and their activities. The map records themselves are in package records.
package sources

import (
	"time"

	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// Store keeps subscriptions as rows.
type Store struct {
	rows   *txn.DB
	now    func() time.Time
	loader func() records.Loader
	server Server
}

// New returns a store over rows.
func New(rows *txn.DB, now func() time.Time, loader func() records.Loader, server Server) *Store {
	return &Store{rows, now, loader, server}
}

// withNamed returns a function that calls f with the subscription of a name, in a view or an update. The error is
// txn.ErrNotFound if there is none.
func withNamed(name string, f func(*txn.Tx, *Subscription) error) func(*txn.Tx) error {
	return func(t *txn.Tx) error {
		s, err := Get(t, name)
		if err != nil {
			return err
		}
		return f(t, s)
	}
}
