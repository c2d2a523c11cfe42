package txn

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/kv/memory"
)

// backed is an engine that can be put back to a copy.
type backed struct {
	mu sync.Mutex
	kv.Engine
}

func (e *backed) now() kv.Engine {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.Engine
}

func (e *backed) put(to kv.Engine) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.Engine = to
}

func (e *backed) Snapshot(ctx context.Context) (kv.Reader, error) { return e.now().Snapshot(ctx) }
func (e *backed) Version(ctx context.Context) (kv.Version, error) { return e.now().Version(ctx) }
func (e *backed) Begin(ctx context.Context, since kv.Version) (kv.Writer, error) {
	return e.now().Begin(ctx, since)
}

// An engine that is restored and written again has another state of the same number: waiting callers are woken, the
// guard of a state is called again, and decisions on lost states are repeated. Reading alone detects it.
func TestAnEngineThatIsPutBackIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := memory.New()
		e := &backed{Engine: first}
		db, other := New(e, always), New(e, always)
		db.Shared = true
		defer db.Close()
		defer other.Close()
		write := func() {
			t.Helper()
			time.Sleep(time.Second) // otherwise it would write the present value
			put(t, other)
		}
		guarded := 0
		db.Guard = func(*Tx) error { guarded++; return nil }
		write()
		saved := first.Copy()
		write()
		lost, err := db.Version(t.Context())
		require.NoError(t, err)
		require.NoError(t, db.View(t.Context(), func(*Tx) error { return nil }))
		asked := guarded
		waits := await(t.Context(), db, lost, time.Second)
		synctest.Wait()

		e.put(saved)
		write()
		assert.IsType(t, time.Duration(0), <-waits)
		assert.Equal(t, Lineage{1, 1}, db.Lineage(), "the question that those who wait ask has shown it")
		<-db.Turned()
		assert.ErrorIs(t, db.Still(Lineage{}), ErrTurned)
		require.NoError(t, db.View(t.Context(), func(tx *Tx) error {
			assert.Equal(t, lost.Number, tx.Version().Number)
			assert.False(t, lost.Same(tx.Version()))
			return nil
		}))
		assert.Equal(t, asked+1, guarded)
		w, err := e.Begin(t.Context(), lost)
		require.NoError(t, err)
		assert.ErrorIs(t, w.Commit(), kv.ErrConflict)
		require.NoError(t, db.Still(db.Lineage()))
	})
}

// A process that never saw the lost state detects by the era that another one did. Commits in one era are no turn.
func TestTheEraSaysThatOthersSawTheDatabaseGoBack(t *testing.T) {
	engine := memory.New()
	db, other := New(engine, always), New(engine, always)
	defer db.Close()
	defer other.Close()
	view := func() {
		t.Helper()
		require.NoError(t, db.View(t.Context(), func(*Tx) error { return nil }))
	}
	put(t, other)
	view()
	put(t, other)
	view()
	assert.Zero(t, db.Lineage())
	require.NoError(t, other.Update(t.Context(), func(t *Tx) error { return t.Put(kv.EraKey, []byte("the next")) }))
	view()
	view()
	assert.Equal(t, Lineage{Turns: 1}, db.Lineage())
}

// States that are read concurrently come in any order, which is no turn.
func TestStatesThatAreReadAtTheSameTimeAreNoTurn(t *testing.T) {
	l := lineage{turned: make(chan struct{}, 1)}
	one := kv.First.Next()
	two := one.Next()
	three := two.Next()
	l.saw(l.seen(), one)
	before := l.seen()
	l.saw(before, three)
	l.saw(before, two)
	assert.Equal(t, three, l.seen())
	assert.Zero(t, l.now)
	before = l.seen()
	lost := one.Next()
	l.saw(before, lost) // two later reads
	l.saw(before, lost)
	assert.Equal(t, Lineage{1, 1}, l.now)
	assert.Equal(t, lost, l.seen())
}
