package store

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/kv/memory"
	"github.com/tmshare/tmshare/internal/store/moving"
	"github.com/tmshare/tmshare/internal/testkit/pgserver"
	"github.com/tmshare/tmshare/merge"
)

// inEngines runs a test on engines that stores of several processes share.
func inEngines(t *testing.T, test func(t *testing.T, engine kv.Engine)) {
	t.Run("memory", func(t *testing.T) { t.Parallel(); test(t, memory.New()) })
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		s := pgserver.Shared(t)
		test(t, pgserver.Open(t, s.Store(t)))
	})
}

// A process with an open store that is moved neither changes nor reads it any more: the new place would not have its
// changes.
func TestAStoreThatIsMovedWhileItIsOpenIsOfNoUse(t *testing.T) {
	t.Parallel()
	inEngines(t, func(t *testing.T, engine kv.Engine) {
		ctx := t.Context()
		one, mover := openOverEngine(t, t.TempDir(), engine), openOverEngine(t, t.TempDir(), engine)
		collection(t, one, "m", 5)
		subscribe(t, one, "s", &merge.Memory{})
		_, err := one.Latest(ctx, "m")
		require.NoError(t, err)
		version, err := mover.Version(ctx)
		require.NoError(t, err)
		require.NoError(t, mover.Leave(ctx, version, moving.Moved{To: "elsewhere", At: time.Now()}))

		before := dumped(t, engine)
		for what, use := range map[string]func() error{
			"publish": func() error { _, err := one.Publish(ctx, "m", nil); return err },
			"apply":   func() error { return one.ApplyEntries(ctx, "s", func(*Applying) error { return nil }) },
			"create": func() error {
				_, err := one.CreateCollection(ctx, Collection{Name: "n", SP: "http://example.org/n/"}, &merge.Memory{}, nil)
				return err
			},
			"read":   func() error { return one.View(ctx, "m", func(*View) error { return nil }) },
			"latest": func() error { _, err := one.Latest(ctx, "m"); return err },
			"list":   func() error { _, err := one.Collections(ctx); return err },
		} {
			err := use()
			assert.ErrorIs(t, err, ErrMoved, what)
			assert.ErrorContains(t, err, "the store was moved to elsewhere at ", what)
			assert.ErrorContains(t, err, "use that", what)
		}
		require.Equal(t, before, dumped(t, engine))

		o := testOptions(t.TempDir())
		o.Engine, o.EvenMoved = engine, true
		again := openWith(t, o)
		_, err = again.Latest(ctx, "m")
		require.NoError(t, err, "it can be moved again")
	})
}

// A store that was opened while it was empty can no longer be used when another process fills it.
func TestAStoreThatIsFilledWhileItIsOpenIsOfNoUse(t *testing.T) {
	t.Parallel()
	engine := memory.New()
	one := openOverEngine(t, t.TempDir(), engine)
	o := testOptions(t.TempDir())
	o.Engine, o.Access = engine, Restore
	filled, err := Open(t.Context(), o)
	require.NoError(t, err)
	_, err = one.CreateCollection(t.Context(), Collection{Name: "n", SP: "http://example.org/n/"}, &merge.Memory{}, nil)
	require.ErrorIs(t, err, moving.ErrFilling)
	require.NoError(t, filled.Complete(t.Context()))
	collection(t, one, "m", 1)
	require.NoError(t, filled.Close())
}

// dumped returns all rows of an engine.
func dumped(t testing.TB, engine kv.Engine) map[string]string {
	t.Helper()
	r, err := engine.Snapshot(t.Context())
	require.NoError(t, err)
	defer r.Close()
	all := map[string]string{}
	for row, err := range r.Range(nil, nil, false) {
		require.NoError(t, err)
		all[string(row.Key)] = string(row.Value)
	}
	return all
}
