package kvtest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/kv"
)

// PutBack checks an engine that is restored to an earlier state and written again. Its state then differs from the lost
// one, for readers and for conditions, although both have the same number of commits. open opens the engine. save saves
// its present state, and returns the engine to use next, and a function that restores that state.
func PutBack(t *testing.T,
	open func(t *testing.T) (e kv.Engine, save func() (goesOn kv.Engine, back func() kv.Engine))) {
	for _, size := range []int{1, many} {
		e, save := open(t)
		set(t, e, "a", "1")
		saved := version(t, e)
		e, back := save()
		write := func(e kv.Engine, word string) kv.Version {
			t.Helper()
			require.NoError(t, Update(t.Context(), e, func(_ kv.Reader, w kv.Writer) error {
				return writeMany(w, "r", size, 1, word)
			}))
			return version(t, e)
		}
		lost := write(e, "lost")

		e = back()
		require.Equal(t, saved, version(t, e), "it is that state")
		since := func(v kv.Version, word string) error {
			w, err := e.Begin(t.Context(), v)
			require.NoError(t, err)
			defer w.Cancel()
			require.NoError(t, writeMany(w, "r", size, 1, word))
			return w.Commit()
		}
		require.ErrorIs(t, since(lost, "decided on lost data"), kv.ErrConflict)
		again := write(e, "again")
		require.Equal(t, lost.Number, again.Number)
		require.False(t, again.Same(lost))
		require.True(t, again.IsBefore(lost), "a reader that has seen lost data notices")
		require.Nil(t, e.Changed(lost, again))
		require.Nil(t, e.Changed(again, lost))
		r := snapshot(t, e)
		require.Equal(t, again, r.Version())
		r.Close()
		require.ErrorIs(t, since(lost, "decided on lost data"), kv.ErrConflict)
		require.NoError(t, since(again, "decided on this"))
		require.Equal(t, map[string]int{"decided": size}, values(t, e, "r"))
		require.NoError(t, e.Close())
	}
}
