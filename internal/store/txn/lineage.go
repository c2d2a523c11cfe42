package txn

import (
	"errors"
	"sync"

	"github.com/tmshare/tmshare/internal/kv"
)

// ErrTurned is the error for a database whose history has changed: it was reset, or another server has taken over.
var ErrTurned = errors.New(
	"the database was put back to an earlier state meanwhile, or another server has taken over; nothing was changed: " +
		"do it again")

// Lineage counts the changes of the database's history that a process has seen: all, and those that showed a state
// which cannot follow a seen one. The others are known by the era only: another process has seen the reset.
type Lineage struct{ Turns, Back uint64 }

// lineage compares each state that is read with those before it.
type lineage struct {
	mu     sync.Mutex
	last   kv.Version
	now    Lineage
	turned chan struct{} // of one place: another history was seen
}

// seen returns the last state that was read, before the next query.
func (l *lineage) seen() kv.Version {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// saw records a state that was queried after another one was seen. Others may have read a later one meanwhile.
func (l *lineage) saw(before, now kv.Version) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.last.Number == 0:
	case now.IsBefore(before) && !now.IsBefore(l.last): // the same was seen meanwhile
	case now.IsBefore(before):
		l.now.Back++
		l.turn()
	case now.IsBefore(l.last):
		return // its query was earlier
	case now.Era != l.last.Era:
		l.turn()
	}
	l.last = now
}

func (l *lineage) turn() {
	l.now.Turns++
	select {
	case l.turned <- struct{}{}:
	default: // that is known already
	}
}

// Lineage returns the changes of the database's history that this process has seen.
func (db *DB) Lineage() Lineage {
	db.lineage.mu.Lock()
	defer db.lineage.mu.Unlock()
	return db.lineage.now
}

// Turned gets a word whenever the database is seen to have another history.
func (db *DB) Turned() <-chan struct{} { return db.lineage.turned }

// Still is [ErrTurned] unless the history is that of an earlier lineage.
func (db *DB) Still(earlier Lineage) error {
	if db.Lineage().Turns != earlier.Turns {
		return ErrTurned
	}
	return nil
}
