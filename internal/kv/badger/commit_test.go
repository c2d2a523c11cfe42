package badger

import (
	"encoding/binary"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/testenv"
)

// whileNoneIsWritten has commits to keyspaces of their own made while no commit is written, does something, and lets
// them be written. It returns their errors.
func whileNoneIsWritten(t *testing.T, e *Engine, n int, do func()) []error {
	e.commits.writing.Lock()
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			errs[i] = func() error {
				r, err := e.Snapshot(t.Context())
				if err != nil {
					return err
				}
				defer r.Close()
				w, err := e.Begin(t.Context(), r.Version())
				if err != nil {
					return err
				}
				defer w.Cancel()
				key := fmt.Append(binary.BigEndian.AppendUint32(nil, uint32(100+i)), "row")
				if err := w.Put(key, fmt.Append(nil, i)); err != nil {
					return err
				}
				if err := w.Narrow(r, nil); err != nil {
					return err
				}
				return w.Commit()
			}()
		})
	}
	testenv.Eventually(t, func() bool {
		e.commits.mu.Lock()
		defer e.commits.mu.Unlock()
		return len(e.commits.spaces) == n
	})
	do()
	e.commits.writing.Unlock()
	all.Wait()
	return errs
}

// Commits made while others are written are written together, each with a version of its own.
func TestCommitsAreWrittenTogether(t *testing.T) {
	e := openIn(t, t.TempDir(), Small)
	before, err := e.Version(t.Context())
	require.NoError(t, err)
	for _, err := range whileNoneIsWritten(t, e, 5, func() {
		require.Len(t, e.commits.next.changes, 5)
		now, err := e.Version(t.Context())
		require.NoError(t, err)
		require.True(t, now.Same(before), "nobody sees what is not written")
	}) {
		require.NoError(t, err)
	}
	now, err := e.Version(t.Context())
	require.NoError(t, err)
	require.Equal(t, before.Number+5, now.Number)
}

// Commits made while one is written that fails are not written either: all have the error. The next one is based on the
// stored state.
func TestCommitsThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	f, err := tryToOpen(dir, Options{Settings: Small})
	require.NoError(t, err)
	for _, err := range whileNoneIsWritten(t, f, 3, func() { require.NoError(t, f.badger.Close()) }) {
		require.Error(t, err)
		require.NotErrorIs(t, err, kv.ErrConflict, "it would be tried again")
	}
	require.Zero(t, f.commits.last)
	require.Nil(t, f.commits.next)
	for space, number := range f.commits.spaces {
		require.Zero(t, number, "what was not written is no condition for others: %d", space)
	}
	_ = f.Close()
	e := openIn(t, dir, Small)
	for _, err := range whileNoneIsWritten(t, e, 3, func() {}) {
		require.NoError(t, err)
	}
}
