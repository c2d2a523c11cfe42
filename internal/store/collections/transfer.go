package collections

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// Leaving is the state of a collection that moves to the store of another server: it is read, and not written.
type Leaving struct {
	Move uuid.UUID // identifies the move
	To   string    // the address of the other server
	At   time.Time
	Left bool `json:",omitempty"` // the other server has all of it, and may write it at any time
}

// LeavingError is the error for a change of a collection that moves. Nothing was changed.
type LeavingError struct{ Name string }

func (e *LeavingError) Error() string {
	return fmt.Sprintf(
		"collection %q is being moved to another server, and not written meanwhile: nothing was changed; try again", e.Name)
}

// HTTPStatus is the status of the answer.
func (e *LeavingError) HTTPStatus() int { return http.StatusServiceUnavailable }

// Arrival is a collection that was copied from the store of another server. Nobody reads or writes it yet.
type Arrival struct {
	Move       uuid.UUID
	Collection Collection // as it will be
	Former     []Former   // of its former names
}

const arriving = "arriving/"

// ArrivalOf returns the arrival with a name; nil if there is none.
func ArrivalOf(t *txn.Tx, name string) (*Arrival, error) {
	var a Arrival
	there, err := t.GetJSON(keys.Meta(arriving+name), &a)
	if !there || err != nil {
		return nil, err
	}
	return &a, nil
}

// Put keeps an arrival. Its name is taken from then on.
func (a *Arrival) Put(t *txn.Tx) error { return t.PutJSON(keys.Meta(arriving+a.Collection.Name), a) }

// Drop forgets an arrival.
func (a *Arrival) Drop(t *txn.Tx) error { return t.Delete(keys.Meta(arriving + a.Collection.Name)) }

// Admit makes a collection of an arrival.
func (a *Arrival) Admit(t *txn.Tx) error {
	err := errors.Join(a.Drop(t), Forget(t, a.Collection.Name), Put(t, &a.Collection))
	for _, f := range a.Former {
		err = errors.Join(err, t.PutJSON(keys.Name(keys.TableFormer, f.Name), f))
	}
	return err
}

// Arrivals returns all arrivals.
func Arrivals(t *txn.Tx) (all []Arrival, err error) {
	for r, failed := range t.Scan(keys.Meta(arriving), nil) {
		var a Arrival
		if failed == nil {
			failed = txn.Decode(r, &a)
		}
		if failed != nil {
			return all, failed
		}
		all = append(all, a)
	}
	return all, nil
}

// WithArriving returns all collections, and those that arrive.
func WithArriving(t *txn.Tx) ([]Collection, error) {
	all, err := All(t)
	arrivals, failed := Arrivals(t)
	for i := range arrivals {
		all = append(all, arrivals[i].Collection)
	}
	return all, errors.Join(err, failed)
}

// FormerNames returns the fates of the former names of a collection.
func (c *Collection) FormerNames(t *txn.Tx) (all []Former, err error) {
	for _, name := range c.Former {
		f, failed := former(t, name)
		if err = errors.Join(err, failed); f != nil {
			all = append(all, f.Former)
		}
	}
	return slices.Clip(all), err
}
