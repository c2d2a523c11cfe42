package leases

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/kv/memory"
	"github.com/tmshare/tmshare/internal/store/txn"
	_ "github.com/tmshare/tmshare/internal/testenv" // takes -long
)

// process is one that shares an engine.
type process struct {
	kv.Engine
	*Leases
	rows   *txn.DB
	silent atomic.Bool // its beats are lost
	works  atomic.Int32
	lost   atomic.Int32
	job    context.Context // of the last call of work
}

var errSilent = errors.New("the store is not reached")

// Bulk implements [kv.Engine].
func (p *process) Bulk(ctx context.Context) (kv.Writer, error) {
	if p.silent.Load() {
		return nil, errSilent
	}
	return p.Engine.Bulk(ctx)
}

func newProcess(t *testing.T, e kv.Engine) *process {
	p := &process{Engine: e}
	p.rows = txn.New(p, func() error { return nil })
	p.Leases = New(p.rows, 5*time.Second, slog.New(slog.DiscardHandler))
	t.Cleanup(func() { p.rows.Close() })
	return p
}

func (p *process) work(ctx context.Context) {
	p.job = ctx
	p.works.Add(1)
	<-ctx.Done()
	p.works.Add(-1)
	if errors.Is(context.Cause(ctx), ErrLost) {
		p.lost.Add(1)
	}
}

// write commits a row with a context.
func (p *process) write(ctx context.Context) error {
	return p.rows.Update(ctx, func(t *txn.Tx) error { return t.Put([]byte("mrow"), []byte{byte(p.works.Load())}) })
}

func TestOneProcessDoesAJobUntilItIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := memory.New()
		a, b := newProcess(t, engine), newProcess(t, engine)
		ctx, end := context.WithCancel(t.Context())
		go a.Lease(ctx, "upkeep", a.work)
		synctest.Wait()
		go b.Lease(ctx, "upkeep", b.work)
		time.Sleep(time.Hour)
		synctest.Wait()
		assert.EqualValues(t, []int32{1, 0}, []int32{a.works.Load(), b.works.Load()}, "it goes on as long as it lives")
		assert.Equal(t, map[string]bool{"upkeep": true}, a.Jobs())
		assert.Equal(t, map[string]bool{"upkeep": false}, b.Jobs())
		require.NoError(t, a.write(a.job))

		job := a.job
		a.silent.Store(true)
		time.Sleep(7 * time.Second)
		synctest.Wait()
		assert.EqualValues(t, []int32{0, 1, 1}, []int32{a.works.Load(), b.works.Load(), a.lost.Load()}, "another takes over within seconds")
		assert.ErrorIs(t, a.write(context.WithoutCancel(job)), ErrLost, "what it still does is not committed")
		require.NoError(t, a.write(t.Context()), "all else is")
		require.NoError(t, b.write(b.job))

		a.silent.Store(false)
		time.Sleep(time.Hour)
		synctest.Wait()
		assert.EqualValues(t, []int32{0, 1}, []int32{a.works.Load(), b.works.Load()}, "who comes back waits")
		end()
		synctest.Wait()
	})
}

// A process that ends gives its jobs back; the next one need not wait until it is silent for long.
func TestAProcessThatEndsGivesItsJobsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := memory.New()
		a, b := newProcess(t, engine), newProcess(t, engine)
		ctx, end := context.WithCancel(t.Context())
		go b.Lease(ctx, "other", b.work)
		first, stop := context.WithCancel(ctx)
		go a.Lease(first, "upkeep", a.work)
		synctest.Wait()
		go b.Lease(ctx, "upkeep", b.work)
		time.Sleep(time.Minute)
		require.EqualValues(t, 1, b.works.Load(), "another job is no matter")
		stop()
		time.Sleep(1100 * time.Millisecond)
		synctest.Wait()
		assert.EqualValues(t, []int32{0, 2}, []int32{a.works.Load(), b.works.Load()})
		assert.Zero(t, a.lost.Load())
		end()
		synctest.Wait()
	})
}

// A holder that was suspended, without a jump of its clock, detects the loss of the lease by the row.
func TestAHolderFindsOutThatAnotherHasTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := memory.New()
		a, b := newProcess(t, engine), newProcess(t, engine)
		ctx, end := context.WithCancel(t.Context())
		go a.Lease(ctx, "upkeep", a.work)
		synctest.Wait()
		var now seen
		require.NoError(t, b.rows.View(ctx, func(t *txn.Tx) (err error) { now, err = look(t, "upkeep"); return err }))
		_, taken, err := b.take(ctx, "upkeep", now)
		require.NoError(t, err)
		require.True(t, taken)
		assert.ErrorIs(t, a.write(a.job), ErrLost)
		_, taken, err = b.take(ctx, "upkeep", now)
		require.NoError(t, err)
		assert.False(t, taken, "it is not as it was seen any more")
		time.Sleep(1100 * time.Millisecond)
		synctest.Wait()
		assert.EqualValues(t, 1, a.lost.Load())
		end()
		synctest.Wait()
	})
}

// Beats are no commits: the caches of processes stay valid.
func TestBeatsDoNotChangeTheVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newProcess(t, memory.New())
		ctx, end := context.WithCancel(t.Context())
		go a.Lease(ctx, "upkeep", a.work)
		time.Sleep(10 * time.Second)
		before, err := a.Version(ctx)
		require.NoError(t, err)
		time.Sleep(time.Hour)
		after, err := a.Version(ctx)
		require.NoError(t, err)
		assert.Equal(t, before, after)
		end()
		synctest.Wait()
	})
}
