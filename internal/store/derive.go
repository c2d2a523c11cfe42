package store

import (
	"context"
	"slices"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/collections"
	"github.com/tmshare/tmshare/internal/store/derived"
	"github.com/tmshare/tmshare/internal/store/inputs"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/merge"
)

// AdviceOnInputs returns which inputs of a derived collection are missing, and the remedy; "" if all exist.
func AdviceOnInputs(c *Collection, all []inputs.State) string { return inputs.Advice(c, all) }

// Deriving is a running update of a derived collection. Its rows are committed with the change.
type Deriving struct {
	Parts  []Part         // its inputs
	Filter *Filter        // nil: all passes
	Dirty  []fragment.Ref // topics that have to be derived again
	More   bool           // there are further ones

	// Restated are topics whose names and occurrences alone have changed in the inputs.
	Restated []fragment.Ref

	number uint32
	tx     *txn.Tx
	inputs []collections.Input
	paused bool // an input is missing
	inRDF  bool // all inputs are offered in RDF, too
}

// InputOf reports whether a collection is derived from the part.
func (p *Part) InputOf(c *Collection) bool { return !p.Derived && c.IsInput(p.Name, p.input.ID.Number) }

// Derive updates a derived collection: decide returns the change for up to n topics that must be derived again. It
// reports whether there are more. While an input is missing, it changes nothing: the topics wait until the input
// exists, or the collection is bound again.
func (db *DB) Derive(ctx context.Context, name string, n int,
	decide func(*Deriving, merge.State) (*fragment.Change, error)) (c *Collection, more bool, err error) {
	d := &Deriving{}
	c, err = db.publish(ctx, db.rows.UpdateOf, name, writer{inputs.Extension, d.done},
		func(c Collection, state merge.State) (*fragment.Change, error) {
			*d = Deriving{Filter: c.Filter, number: c.Number, tx: state.(interface{ Tx() *txn.Tx }).Tx()}
			d.tx.DependOn(keys.Names, c.Number) // later changes of inputs are read the next time
			now, there, err := inputs.Bind(d.tx, &c)
			if c.Inputs, d.inputs, d.paused = now, now, !there; d.paused || err != nil {
				return nil, err
			}
			all, err := parts(d.tx)
			if err != nil {
				return nil, err
			}
			var from []derived.Input
			for _, p := range all {
				if !c.IsInput(p.Name, p.input.ID.Number) {
					continue
				}
				if p.input.Silent = p.Derived; !p.Derived {
					d.inRDF = p.inRDF && (d.inRDF || len(d.Parts) == 0)
					d.Parts = append(d.Parts, p)
				}
				from = append(from, p.input)
			}
			taken, err := derived.Take(d.tx, c.SourceKey(), from, n)
			if err != nil {
				return nil, err
			}
			d.Dirty, d.Restated, d.More = taken.All, taken.Statements, taken.More
			change, err := decide(d, state)
			if err == nil {
				err = inputs.Name(state, change, taken.Via)
			}
			return change, err
		})
	return c, d.More, err
}

// done stores the result of the update in the collection.
func (d *Deriving) done(c *Collection) error {
	hidden := c.Hidden && (d.More || d.paused)
	offers := c.RDF == nil && !d.paused && c.InRDF() != d.inRDF // the owner has not decided
	if c.Hidden == hidden && slices.Equal(c.Inputs, d.inputs) && !offers {
		return nil
	}
	if offers {
		c.OfferRDF(&d.inRDF)
	}
	c.Hidden, c.Inputs = hidden, d.inputs
	return collections.Put(d.tx, c)
}

// DeriveAgain is ChangeSettings of a derived collection, and binds it to the present sources with the names of its
// missing inputs. Missing inputs that are not in names are dropped. If nothing is missing and names are those of the
// inputs, or names is nil, the inputs are unchanged. Another filter derives all again; nil keeps the filter.
func (db *DB) DeriveAgain(ctx context.Context, name string, names []string, filter *Filter,
	change func(*Settings) error, checks ...func(*Collection) error) (*Collection, error) {
	return db.changeSettings(ctx, name, change, checks, func(t *txn.Tx, c *Collection) error {
		if filter != nil && !filter.Equal(c.Filter) {
			if err := filterAgain(t, c, filter); err != nil {
				return err
			}
		}
		if names == nil {
			return nil
		}
		return inputs.Again(t, c, names)
	})
}

// filterAgain gives a derived collection another filter.
func filterAgain(t *txn.Tx, c *Collection, filter *Filter) error {
	if len(c.DerivedFrom) == 0 {
		return inputs.NotDerived(c)
	}
	if c.Filter = filter; filter.Empty() {
		c.Filter = nil
	}
	all, err := parts(t)
	for _, p := range all {
		if err == nil && p.InputOf(c) {
			err = derived.Walk(t, c.Number, p.input.ID)
		}
	}
	return err
}

// Later has topics derived in a later update.
func (d *Deriving) Later(refs ...fragment.Ref) error { return derived.MarkOf(d.tx, d.number, refs...) }

// Means keeps the topics that the filter means. If they differ from the last time, all topics of the inputs have to be
// derived.
func (d *Deriving) Means(all [][]fragment.Ref) error {
	if d.Filter.Empty() {
		return nil
	}
	differ, err := derived.PutMeant(d.tx, d.number, all)
	for i := range d.Parts {
		if differ && err == nil {
			d.More, err = true, derived.Walk(d.tx, d.number, d.Parts[i].input.ID)
		}
	}
	return err
}

// Settle passes the stored settlements of reifiers to the view. It returns the topics affected by differences.
func (d *Deriving) Settle(view *merge.View) (differ []fragment.Ref, err error) {
	return derived.Settle(d.tx, d.number, view)
}
