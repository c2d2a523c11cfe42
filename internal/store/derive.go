package store

import (
	"context"
	"slices"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/derived"
	"github.com/tmshare/tmshare/internal/store/inputs"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/merge"
)

// DerivedError says that a collection is derived from others. So it cannot be written, nor be an input of another.
type DerivedError = derived.Error

// deriving is the key of the context in which a derived collection is written.
type deriving struct{}

// Deriving is an update of a derived collection under way. Its rows are committed with the change.
type Deriving struct {
	Parts  []Part         // its inputs
	Filter *Filter        // nil: all passes
	Dirty  []fragment.Ref // what has to be derived again
	More   bool           // besides Dirty

	number uint32
	tx     *txn.Tx
}

// Derive changes a derived collection: decide says how, by up to n topics that have to be derived again. It reports whether there are more.
func (db *DB) Derive(ctx context.Context, name string, n int, decide func(*Deriving, merge.State) (*fragment.Change, error)) (c *Collection, more bool, err error) {
	c, err = db.Publish(context.WithValue(ctx, deriving{}, true), name, func(c Collection, state merge.State) (*fragment.Change, error) {
		d := &Deriving{Filter: c.Filter, number: c.Number, tx: state.(interface{ Tx() *txn.Tx }).Tx()}
		all, err := parts(d.tx)
		if err != nil {
			return nil, err
		}
		for _, p := range all {
			if slices.Contains(c.DerivedFrom, p.Name) && !p.Derived {
				d.Parts = append(d.Parts, p)
			}
		}
		dirty, via, left, err := derived.Take(d.tx, c.Number, n)
		d.Dirty, d.More = dirty, left
		if err != nil {
			return nil, err
		}
		change, err := decide(d, state)
		if more = d.More; err == nil {
			err = inputs.Name(state, change, via)
		}
		return change, err
	})
	return c, more, err
}

// Later has topics derived in a later update.
func (d *Deriving) Later(refs ...fragment.Ref) error { return derived.MarkOf(d.tx, d.number, refs...) }

// Means keeps whom the filter means. Where these are others than the last time, all topics of the inputs have to be derived.
func (d *Deriving) Means(all [][]fragment.Ref) error {
	if d.Filter.Empty() {
		return nil
	}
	differ, err := derived.PutMeant(d.tx, d.number, all)
	for i := range d.Parts {
		if differ && err == nil {
			d.More, err = true, derived.Walk(d.tx, d.number, d.Parts[i].id)
		}
	}
	return err
}

// Settle gives the view what is kept of reifiers, and returns whom what differs from the last time bears on.
func (d *Deriving) Settle(view *merge.View) (differ []fragment.Ref, err error) {
	return derived.Settle(d.tx, d.number, view)
}
