package txn

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Tasks make as many requests together as the one with the most of them, for single rows or for ranges, and get the
// rows that each would get alone.
func TestTasksAskTogether(t *testing.T) {
	t.Parallel()
	db, e := openAsked()
	key := func(i, j int) []byte { return fmt.Appendf(nil, "mtest-%04d-%04d", i, j) }
	const tasks, rows = 2*SideBySide + 10, FewRows + 3
	require.NoError(t, db.Update(t.Context(), func(tx *Tx) error {
		for i := range tasks {
			for j := range i % rows {
				require.NoError(t, tx.Put(key(i, j), key(j, i)))
			}
		}
		return nil
	}))
	require.NoError(t, db.View(t.Context(), func(tx *Tx) error {
		before := e.Questions.Load()
		require.NoError(t, tx.Together(tasks, func(i int, tx *Tx) error {
			for j := range 1 + i%5 {
				v, err := tx.Get(key(i, j))
				require.NoError(t, err)
				if want := key(j, i); j < i%rows {
					assert.Equal(t, string(want), string(v))
				} else {
					assert.Nil(t, v)
				}
			}
			n := 0
			for r, err := range tx.Scan(fmt.Appendf(nil, "mtest-%04d-", i), nil) {
				require.NoError(t, err)
				assert.Equal(t, string(key(i, n)), string(r.Key))
				n++
			}
			assert.Equal(t, i%rows, n)
			return nil
		}))
		long := 3 * 2 // which have more rows than are read at first: two of each 67
		assert.LessOrEqual(t, int(e.Questions.Load()-before), 3*(5+1)+long)
		return nil
	}))
}

// The error of the first failed task is returned. A panic of a task occurs in the caller's goroutine, and not in one
// where it cannot be recovered. When the context ends, all tasks do.
func TestTasksThatFail(t *testing.T) {
	t.Parallel()
	db, _ := openAsked()
	errs := []error{nil, errors.New("one"), errors.New("two")}
	ctx, cancel := context.WithCancelCause(t.Context())
	require.NoError(t, db.View(ctx, func(tx *Tx) error {
		require.Equal(t, errs[1], tx.Together(3, func(i int, tx *Tx) error {
			_, err := tx.Get([]byte("mtest"))
			if err == nil {
				err = errs[i]
			}
			return err
		}))
		require.PanicsWithValue(t, "broken", func() {
			_ = tx.Together(3, func(i int, tx *Tx) error {
				if i == 1 {
					panic("broken")
				}
				_, err := tx.Get([]byte(strings.Repeat("m", i+1)))
				return err
			})
		})
		why, asked := errors.New("nobody waits"), atomic.Int64{}
		require.ErrorIs(t, tx.Together(3, func(i int, tx *Tx) error {
			for j := range 1000 {
				if _, err := tx.Get(fmt.Append(nil, "m", i, j)); err != nil {
					return err
				}
				if asked.Add(1) == 30 {
					cancel(why)
				}
			}
			return nil
		}), why)
		return nil
	}))
}
