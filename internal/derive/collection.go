package derive

import (
	"context"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/merge"
)

// Store has the methods of a store that the package needs.
type Store interface {
	Derive(ctx context.Context, name string, n int,
		decide func(*store.Deriving, merge.State) (*fragment.Change, error)) (c *store.Collection, more bool, err error)
}

// atOnce is the number of topics that one commit derives again, and the limit of related topics in addition.
const atOnce = 2000

// CatchUp brings a derived collection in step with its inputs, in as many commits as it takes. It returns the
// collection as it is then.
func CatchUp(ctx context.Context, db Store, name string) (*store.Collection, error) {
	for n := 0; ; n++ {
		if n == 1 {
			defer spareMemory()()
		}
		c, more, err := db.Derive(ctx, name, atOnce, func(d *store.Deriving, state merge.State) (*fragment.Change, error) {
			return update(ctx, d, state)
		})
		if !more || err != nil {
			return c, err
		}
	}
}

func update(ctx context.Context, d *store.Deriving, state merge.State) (*fragment.Change, error) {
	if len(d.Dirty)+len(d.Restated) == 0 {
		return nil, nil
	}
	var parts []merge.Part
	for _, p := range d.Parts {
		parts = append(parts, merge.Part{Name: p.Name, SP: p.SP, Source: p.Source, Published: p.Own})
	}
	view := merge.NewView(ctx, parts...)
	differ, err := d.Settle(view)
	if err != nil {
		return nil, err
	}
	filter, err := Resolve(view, d.Filter)
	if err != nil {
		return nil, err
	}
	if err := d.Means(filter.Meant()); err != nil {
		return nil, err
	}
	u, err := Between(ctx, state, view, filter, atOnce, d.Restated, append(d.Dirty, differ...)...)
	if err != nil {
		return nil, err
	}
	return u.Change, d.Later(u.Later...)
}
