package txn

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/kv/memory"
)

// asked counts the requests for the version.
type asked struct {
	kv.Engine
	times atomic.Int64
	away  atomic.Bool
}

func (e *asked) Version(ctx context.Context) (kv.Version, error) {
	e.times.Add(1)
	if e.away.Load() {
		return kv.Version{}, kv.ErrUnavailable
	}
	return e.Engine.Version(ctx)
}

func put(t *testing.T, db *DB) {
	t.Helper()
	require.NoError(t, db.Update(t.Context(), func(tx *Tx) error { return tx.Put([]byte("mkey"), []byte(time.Now().String())) }))
}

func always() error { return nil }

// await waits for a commit in the background. The returned channel gets the duration, or the error.
func await(ctx context.Context, db *DB, since kv.Version, every time.Duration) (took chan any) {
	took = make(chan any, 1)
	began := time.Now()
	go func() {
		if _, err := db.Await(ctx, since, every); err != nil {
			took <- err
		} else {
			took <- time.Since(began)
		}
	}()
	return took
}

// A process that is alone with an engine sees its commits at once, without requests.
func TestOwnCommitsAreKnownWithoutQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &asked{Engine: memory.New()}
		db := New(e, always)
		defer db.Close()
		put(t, db)
		now, err := db.Await(t.Context(), kv.Version{}, time.Second)
		require.NoError(t, err)
		var all []chan any
		for range 100 {
			all = append(all, await(t.Context(), db, now, time.Millisecond))
		}
		synctest.Wait()
		before := e.times.Load()
		time.Sleep(time.Hour)
		assert.Zero(t, e.times.Load()-before)
		put(t, db)
		for _, took := range all {
			assert.Equal(t, time.Hour, <-took)
		}
		assert.LessOrEqual(t, e.times.Load()-before, int64(2))
	})
}

// Commits of others are found by one request for all waiting callers. Without these there are no requests.
func TestCommitsOfOthersAreFoundByOneQuestionForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := memory.New()
		e := &asked{Engine: engine}
		db, other := New(e, always), New(engine, always)
		db.Shared = true
		defer db.Close()
		defer other.Close()
		now, err := db.Version(t.Context())
		require.NoError(t, err)
		ctx, give := context.WithCancel(t.Context())
		slow := await(ctx, db, now, time.Second)
		synctest.Wait()
		before := e.times.Load()
		time.Sleep(time.Minute)
		assert.LessOrEqual(t, e.times.Load()-before, int64(60))
		var eager []chan any
		for range 50 {
			eager = append(eager, await(ctx, db, now, 20*time.Millisecond))
		}
		synctest.Wait()
		before = e.times.Load()
		time.Sleep(time.Second)
		assert.LessOrEqual(t, e.times.Load()-before, int64(51), "one question for all")
		put(t, other)
		for _, took := range eager {
			assert.LessOrEqual(t, (<-took).(time.Duration), time.Second+20*time.Millisecond)
		}
		assert.LessOrEqual(t, (<-slow).(time.Duration), time.Minute+time.Second+20*time.Millisecond)

		now, err = db.Version(t.Context())
		require.NoError(t, err)
		waits := await(ctx, db, now, 20*time.Millisecond)
		synctest.Wait()
		give()
		assert.ErrorIs(t, (<-waits).(error), context.Canceled)
		time.Sleep(time.Second)
		before = e.times.Load()
		time.Sleep(time.Hour)
		assert.Zero(t, e.times.Load()-before)
	})
}

// Waiting callers get errors, and also the end of the database.
func TestWhoWaitsIsToldOfErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &asked{Engine: memory.New()}
		db := New(e, always)
		db.Shared = true
		now, err := db.Version(t.Context())
		require.NoError(t, err)
		waits := await(t.Context(), db, now, time.Second)
		synctest.Wait()
		e.away.Store(true)
		assert.ErrorIs(t, (<-waits).(error), kv.ErrUnavailable)
		e.away.Store(false)
		waits = await(t.Context(), db, now, time.Second)
		synctest.Wait()
		db.Close()
		assert.ErrorIs(t, (<-waits).(error), kv.ErrClosed)
		_, err = db.Await(t.Context(), now, time.Second)
		assert.True(t, errors.Is(err, kv.ErrClosed))
	})
}
