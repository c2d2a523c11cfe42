package derive

import (
	"context"
	"math"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/merge"
)

// commits is a store in which a derivation takes so many commits. It notes the limit of memory in each.
type commits struct {
	n      int
	limits []int64
}

func (c *commits) Derive(context.Context, string, int, func(*store.Deriving, merge.State) (*fragment.Change, error)) (*store.Collection, bool, error) {
	c.limits = append(c.limits, debug.SetMemoryLimit(-1))
	return nil, len(c.limits) < c.n, nil
}

// The collector works harder while a collection is derived in several commits, and only then. A limit that was set
// stays.
func TestMemoryIsLimitedWhileMuchIsDerived(t *testing.T) {
	before := debug.SetMemoryLimit(math.MaxInt64)
	defer debug.SetMemoryLimit(before)
	c := &commits{n: 3}
	_, err := CatchUp(t.Context(), c, "m")
	require.NoError(t, err)
	require.EqualValues(t, math.MaxInt64, c.limits[0])
	require.GreaterOrEqual(t, c.limits[1], int64(memory))
	require.Less(t, c.limits[1], int64(math.MaxInt64))
	require.Equal(t, c.limits[1], c.limits[2])
	require.EqualValues(t, math.MaxInt64, debug.SetMemoryLimit(-1))

	one, other := spareMemory(), spareMemory()
	one()
	require.Less(t, debug.SetMemoryLimit(-1), int64(math.MaxInt64), "the other still derives")
	other()
	require.EqualValues(t, math.MaxInt64, debug.SetMemoryLimit(1<<40))
	spareMemory()()
	require.EqualValues(t, 1<<40, debug.SetMemoryLimit(-1))
}
