package store

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
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/internal/testenv"
)

const silence = 5 * time.Second

// publisher is one that publishes from a store.
type publisher struct {
	t      *testing.T
	rows   *txn.DB
	leases *leases.Leases
	*openings
	again int // number of new histories
}

// startPublisher starts a process. silence is 0 where it has the store alone.
func startPublisher(t *testing.T, engine kv.Engine, silence time.Duration) *publisher {
	p := &publisher{t: t, rows: txn.New(engine, func() error { return nil })}
	p.leases = leases.New(p.rows, silence, slog.New(slog.DiscardHandler))
	p.openings = &openings{p.rows, p.leases, silence, func() { p.again++ }, slog.New(slog.DiscardHandler)}
	return p
}

func (p *publisher) newest() (ids []string) {
	p.t.Helper()
	require.NoError(p.t, p.rows.View(p.t.Context(), func(t *txn.Tx) (err error) { ids, err = (&View{tx: t}).Opened(); return err }))
	return ids
}

func (p *publisher) all() (all []Opening) {
	p.t.Helper()
	require.NoError(p.t, p.rows.View(p.t.Context(), func(t *txn.Tx) (err error) { all, err = (&View{tx: t}).Openings(); return err }))
	return all
}

// openings are kept 30 days and a hundred at least, and the last eight are stated, the newest first.
func TestOpeningsThatAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := startPublisher(t, memory.New(), 0)
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
			if i < openingsStated {
				assert.Equal(t, o.ID.String(), p.newest()[i])
			}
		}
		assert.Len(t, p.newest(), openingsStated)
	})
}

// In a store shared by processes, an opening is a history of it: a process that joins running ones begins none.
func TestOpeningsOfProcessesThatShareAStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := memory.New()
		first := startPublisher(t, engine, silence)
		living, die := context.WithCancel(t.Context())
		publish := func(p *publisher) {
			require.NoError(t, p.BeginOpening(t.Context()))
			go p.leases.Lease(living, "a job", func(ctx context.Context) { <-ctx.Done() })
			go p.WatchHistory(living)
			time.Sleep(2 * silence)
		}
		publish(first)
		assert.Len(t, first.newest(), 1)
		second := startPublisher(t, engine, silence)
		publish(second)
		assert.Len(t, second.newest(), 1, "others live, and know of no other history")
		time.Sleep(time.Hour)
		assert.Len(t, first.newest(), 1)
		assert.Zero(t, first.again+second.again)
		die()
		synctest.Wait()
		last := startPublisher(t, engine, silence)
		require.NoError(t, last.BeginOpening(t.Context()))
		assert.Len(t, last.newest(), 2, "nobody was there to see what has happened")
	})
}

// Processes that start together have one opening, even if the first one takes no job before the others start. After an
// end that gives its jobs back, the next process does not wait, however soon it starts. After another end it does.
func TestOpeningsOfProcessesThatStartTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := memory.New()
		living, die := context.WithCancel(t.Context())
		publish := func(p *publisher) {
			require.NoError(t, p.BeginOpening(t.Context()))
			time.Sleep(300 * time.Millisecond)
			p.WatchHistory(living)
		}
		first := startPublisher(t, engine, silence)
		for i := range 3 {
			p := first
			if i > 0 {
				p = startPublisher(t, engine, silence)
			}
			go publish(p)
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(2 * silence)
		assert.Len(t, first.newest(), 1, "all began together")
		die()
		synctest.Wait()
		brief := startPublisher(t, engine, silence)
		require.NoError(t, brief.BeginOpening(t.Context()))
		brief.WatchHistory(living)                          // which has ended
		for i, least := range []time.Duration{0, silence} { // the first of them does not end
			opened, began := 3+i, time.Now()
			require.NoError(t, startPublisher(t, engine, silence).BeginOpening(t.Context()))
			assert.Len(t, first.newest(), opened, "no process was there")
			assert.GreaterOrEqual(t, time.Since(began), least)
			assert.LessOrEqual(t, time.Since(began), 2*least)
		}
	})
}

// restored is an engine whose database can be restored, with an identifier of its history.
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

// Another history of an open database is detected: by its identifier, and by versions that go back. Followers see an
// unknown opening, and each process writes under another number from then on. A lagging copy is no history of its own.
func TestAnotherHistoryOfADatabaseThatIsOpen(t *testing.T) {
	testenv.SkipUnderRace(t) // the database is put back while all processes stand still, which the detector does not see
	synctest.Test(t, func(t *testing.T) {
		old, now := memory.New(), memory.New()
		engine := &restored{now, "1"}
		copied := startPublisher(t, old, 0) // one commit
		require.NoError(t, copied.BeginOpening(t.Context()))
		var all []*publisher
		for range 3 {
			p := startPublisher(t, engine, silence)
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
