package derive

import (
	"context"
	"io"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/xtm"
)

// Parts reads the sources of a node's merged view. [store.DB] does.
type Parts interface {
	ReadParts(ctx context.Context, f func([]store.Part) error) error
}

// WriteClaims writes the fragment of a topic in the present inputs of a derived collection. Each statement has item
// identifiers that begin with the source locator prefixes of its sources. In another collection, all statements have
// that collection's own.
func WriteClaims(ctx context.Context, db Parts, c *store.Collection, topic fragment.Ref, w io.Writer) error {
	return db.ReadParts(ctx, func(all []store.Part) error {
		var parts []merge.Part
		for _, p := range all {
			if p.Own && p.Name == c.Name || p.InputOf(c) {
				parts = append(parts, merge.Part{Name: p.Name, SP: p.SP, Source: p.Source, Claims: true, Published: p.Own})
			}
		}
		view := merge.NewView(ctx, parts...)
		f, err := Resolve(view, c.Filter)
		if err != nil {
			return err
		}
		return fragment.Write(w, &passing{view: view, f: f}, topic, fragment.Form{Version: xtm.V21, SP: c.SP})
	})
}

// ClaimsOf returns the present statements of a derived collection's inputs about a topic, with its associations of
// these parts, and the inputs in the order of their indexes in claims. References are those of the merged view. The
// filter does not apply.
func ClaimsOf(ctx context.Context, db Parts, c *store.Collection, topic fragment.Ref,
	as ...fragment.Part) (claims *merge.Claims, inputs []store.Part, err error) {
	err = db.ReadParts(ctx, func(all []store.Part) error {
		var parts []merge.Part
		for _, p := range all {
			if p.InputOf(c) {
				parts = append(parts, merge.Part{Name: p.Name, SP: p.SP, Source: p.Source, Published: p.Own})
				inputs = append(inputs, store.Part{Name: p.Name, SP: p.SP, Own: p.Own})
			}
		}
		claims, err = merge.NewView(ctx, parts...).ClaimsAs(topic, as...)
		return err
	})
	return claims, inputs, err
}
