package openings_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/kv/memory"
	"github.com/tmshare/tmshare/internal/store/leases"
	"github.com/tmshare/tmshare/internal/store/openings"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/internal/testenv"
	_ "github.com/tmshare/tmshare/internal/testenv" // takes -long
)

const silence = 5 * time.Second

// process is one that publishes from a store.
type process struct {
	t      *testing.T
	rows   *txn.DB
	leases *leases.Leases
	*openings.Openings
	again int // how often another history has begun
}

// start starts a process. silence is 0 where it has the store alone.
func start(t *testing.T, engine kv.Engine, silence time.Duration) *process {
	p := &process{t: t, rows: txn.New(engine, func() error { return nil })}
	p.leases = leases.New(p.rows, silence, slog.New(slog.DiscardHandler))
	p.Openings = openings.New(p.rows, p.leases, silence, func() { p.again++ }, slog.New(slog.DiscardHandler))
	return p
}

func (p *process) newest() (ids []string) {
	p.t.Helper()
	require.NoError(p.t, p.rows.View(p.t.Context(), func(t *txn.Tx) (err error) { ids, err = openings.Newest(t); return err }))
	return ids
}

func (p *process) all() (all []openings.Opening) {
	p.t.Helper()
	require.NoError(p.t, p.rows.View(p.t.Context(), func(t *txn.Tx) (err error) { all, err = openings.All(t); return err }))
	return all
}

// Openings are kept 30 days and a hundred at least, and the last eight are stated, the newest first.
func TestOpeningsThatAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, memory.New(), 0)
		begin := func(n int, every time.Duration) {
			for range n {
				time.Sleep(every)
				require.NoError(t, p.BeginOpening(t.Context()))
			}
		}
		assert.Empty(t, p.newest())
		begin(150, time.Hour)
		assert.Len(t, p.all(), 150, "none is old")
		begin(1, 60*24*time.Hour)
		assert.Len(t, p.all(), 100, "all but one are old")
		begin(300, time.Minute)
		assert.Len(t, p.all(), 301, "those of thirty days")
		begin(1, 29*24*time.Hour)
		assert.Len(t, p.all(), 302)
		begin(99, 30*24*time.Hour)
		assert.Len(t, p.all(), 100)
		seen := map[string]bool{}
		for i, o := range p.all() {
			assert.False(t, seen[o.ID.String()])
			seen[o.ID.String()] = true
			if i < openings.Stated {
				assert.Equal(t, o.ID.String(), p.newest()[i])
			}
		}
		assert.Len(t, p.newest(), openings.Stated)
	})
}

// In a store that processes share, an opening is a history of it: a process that comes to others that live begins none.
func TestOpeningsOfProcessesThatShareAStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := memory.New()
		first := start(t, engine, silence)
		living, die := context.WithCancel(t.Context())
		publish := func(p *process) {
			require.NoError(t, p.BeginOpening(t.Context()))
			go p.leases.Lease(living, "a job", func(ctx context.Context) { <-ctx.Done() })
			go p.WatchHistory(living)
			time.Sleep(2 * silence)
		}
		publish(first)
		assert.Len(t, first.newest(), 1)
		second := start(t, engine, silence)
		publish(second)
		assert.Len(t, second.newest(), 1, "others live, and know of no other history")
		time.Sleep(time.Hour)
		assert.Len(t, first.newest(), 1)
		assert.Zero(t, first.again+second.again)
		die()
		synctest.Wait()
		last := start(t, engine, silence)
		require.NoError(t, last.BeginOpening(t.Context()))
		assert.Len(t, last.newest(), 2, "nobody was there to see what has happened")
	})
}

// restored is an engine whose database can be put back, and that says which history it has.
type restored struct {
	kv.Engine
	history string
}

func (e *restored) VersionAt(ctx context.Context) (kv.Version, time.Time, error) {
	v, err := e.Version(ctx)
	return v, time.Now(), err
}

func (e *restored) History(context.Context) (string, error) { return e.history, nil }

func (e *restored) Snapshot(ctx context.Context) (kv.Reader, error) {
	r, err := e.Engine.Snapshot(ctx)
	return dated{r}, err
}

type dated struct{ kv.Reader }

func (dated) At() time.Time { return time.Now() }

// Another history of the database is seen while it is open: by what the database says, and where versions go back.
// Followers see an opening that they do not know, and each process writes under another number from then on. A copy
// that lags behind is no history of its own.
func TestAnotherHistoryOfADatabaseThatIsOpen(t *testing.T) {
	testenv.SkipUnderRace(t) // the database is put back while all processes stand still, which the detector does not see
	synctest.Test(t, func(t *testing.T) {
		old, now := memory.New(), memory.New()
		engine := &restored{now, "1"}
		copied := start(t, old, 0) // one commit
		require.NoError(t, copied.BeginOpening(t.Context()))
		var all []*process
		for range 3 {
			p := start(t, engine, silence)
			require.NoError(t, p.BeginOpening(t.Context()))
			go p.leases.Lease(t.Context(), "a job", func(ctx context.Context) { <-ctx.Done() })
			go p.WatchHistory(t.Context())
			time.Sleep(2 * silence)
			all = append(all, p)
		}
		for range 5 {
			require.NoError(t, all[0].rows.Touch(t.Context()))
		}
		time.Sleep(2 * silence)
		first := all[0].newest()
		require.Len(t, first, 1)

		engine.history = "2" // a standby has taken over
		time.Sleep(2 * silence)
		second := all[0].newest()
		require.Len(t, second, 2)
		assert.Equal(t, first[0], second[1])

		engine.history = "" // it lags behind
		time.Sleep(2 * silence)
		assert.Equal(t, second, all[0].newest())

		engine.history, engine.Engine = "2", old // put back in place
		time.Sleep(2 * silence)
		third := all[0].newest()
		assert.NotContains(t, third, second[0])
		assert.NotContains(t, third, second[1])
		require.GreaterOrEqual(t, len(third), 2)
		assert.Equal(t, copied.all()[len(third)-1].ID.String(), third[len(third)-1], "what was known of the copy")
		for _, p := range all {
			assert.GreaterOrEqual(t, p.again, 2)
		}
		settled := all[0].newest()
		time.Sleep(time.Hour)
		assert.Equal(t, settled, all[0].newest())
	})
}
