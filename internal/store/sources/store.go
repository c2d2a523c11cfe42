// Package sources has what a node follows: its subscriptions, how far each has come, what is in
// quarantine, which records it holds, and what was done. The records themselves are in package
// records.
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

// withNamed has f called with the subscription of a name, in a view or an update. It is txn.ErrNotFound if there is
// none.
func withNamed(name string, f func(*txn.Tx, *Subscription) error) func(*txn.Tx) error {
	return func(t *txn.Tx) error {
		s, err := Get(t, name)
		if err != nil {
			return err
		}
		return f(t, s)
	}
}
