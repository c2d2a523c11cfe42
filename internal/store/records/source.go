package records

import (
	"context"

	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// NextNumber returns a number that neither a source nor a generation of one has had.
// note, if not nil, is called in the commit that makes it so.
func NextNumber(ctx context.Context, rows *txn.DB, note func(*txn.Tx, uint32) error) (uint32, error) {
	var n uint32
	err := rows.Update(ctx, func(t *txn.Tx) error {
		n = 0
		if _, err := t.GetJSON(keys.Meta("next"), &n); err != nil {
			return err
		}
		n = max(n+1, keys.FirstNumber)
		if err := t.PutJSON(keys.Meta("next"), n); err != nil || note == nil {
			return err
		}
		return note(t, n)
	})
	return n, err
}

// Delete removes all rows of a generation that nothing names any more, even if ctx ends.
func Delete(ctx context.Context, engine kv.Engine, id keys.Source) error {
	return engine.DeletePrefix(context.WithoutCancel(ctx), id.Prefix())
}

// DeleteSpace removes all rows of a number that nothing names any more, even if ctx ends.
func DeleteSpace(ctx context.Context, engine kv.Engine, number uint32) error {
	return engine.DeletePrefix(context.WithoutCancel(ctx), keys.Space(number))
}
