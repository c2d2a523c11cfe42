package derive

import (
	"context"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/merge"
)

// OneCommit is one commit of [CatchUp].
func OneCommit(ctx context.Context) func(*store.Deriving, merge.State) (*fragment.Change, error) {
	return func(d *store.Deriving, state merge.State) (*fragment.Change, error) { return update(ctx, d, state) }
}
