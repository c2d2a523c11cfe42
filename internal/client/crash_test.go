package client_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/sources"
	"github.com/tmshare/tmshare/internal/testenv"
)

// dyingStore makes some writes and then none, as if the process had died between two commits.
type dyingStore struct {
	client.Store
	left int
	last string // the first write that was not carried out
}

var errDied = errors.New("the process died")

func (d *dyingStore) write(what string, f func() error) error {
	if d.left == 0 {
		if d.last == "" {
			d.last = what
		}
		return errDied
	}
	d.left--
	return f()
}

func (d *dyingStore) UpdateSubscription(ctx context.Context, name string, change func(*store.Subscription)) error {
	return d.write("update", func() error { return d.Store.UpdateSubscription(ctx, name, change) })
}

func (d *dyingStore) StageSource(ctx context.Context, name string, records iter.Seq2[fragment.Record, error], mark store.Mark, progress func(store.Loading)) error {
	return d.write("stage", func() error { return d.Store.StageSource(ctx, name, records, mark, progress) })
}

func (d *dyingStore) SwitchSource(ctx context.Context, name string, generation uint32, note string) error {
	return d.write("switch", func() error { return d.Store.SwitchSource(ctx, name, generation, note) })
}

func (d *dyingStore) ApplyEntries(ctx context.Context, name string, f func(*store.Applying) error) error {
	return d.write("apply", func() error { return d.Store.ApplyEntries(ctx, name, f) })
}

func (d *dyingStore) MendSource(ctx context.Context, name string) (m sources.Mended, err error) {
	err = d.write("mend", func() error {
		m, err = d.Store.MendSource(ctx, name)
		return err
	})
	return m, err
}

// After a crash between any two commits of a round, readers see the state before or a later one, and the next round
// brings the source in step.
func TestCrashBetweenAnyTwoCommitsIsHealedByTheNextRound(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	clean := func(*origin, *subscriber) {}
	for name, c := range map[string]struct {
		prepare   func(o *origin, s *subscriber) // before the round that dies
		meanwhile func(o *origin)                // between that round and the next
	}{
		"clean start":    {clean, func(*origin) {}},
		"partial update": {func(o *origin, s *subscriber) { s.sync(); o.Put(doc(topics(7, "v3")...)) }, func(*origin) {}},
		"clean replacement": {func(o *origin, s *subscriber) {
			s.sync()
			o.Rebuild()
			o.Create("egov", doc(topics(4, "new")...))
			o.Put(doc(topics(7, "v3")...))
			_, err := s.Sync(context.Background(), "egov")
			require.True(s.t, s.inDoubt(err), "%v", err)
		}, func(*origin) {}},
		"clean start, then more is published": {clean, func(o *origin) { o.Put(doc(topics(7, "v3")...)) }},
		"clean start, then a new history": {clean, func(o *origin) {
			o.Rebuild()
			o.Create("egov", doc(topics(3, "new")...))
			o.Put(doc(topics(7, "v3")...))
		}},
		"partial update, then a new history": {func(o *origin, s *subscriber) { s.sync(); o.Put(doc(topics(7, "v2b")...)) }, func(o *origin) {
			o.Rebuild()
			o.Create("egov", doc(topics(3, "new")...))
			o.Put(doc(topics(7, "v3")...))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			last := "v2"
			if name != "clean start" {
				last = "v3"
			}
			seen := map[string]bool{}
			for writes := 0; ; writes++ {
				require.Less(t, writes, 50)
				o := publishing(t, doc(topics(5, "v1")...))
				o.Put(doc(topics(7, "v2")...))
				s := subscribed(t, o)
				c.prepare(o, s)
				dying := &dyingStore{Store: s.db, left: writes}
				small := func(c *client.Config) { c.Batch = 3 }
				s.configure(small, func(c *client.Config) { c.Store = dying })
				_, err := s.Sync(context.Background(), "egov")
				if err == nil {
					break
				}
				require.ErrorIs(t, err, errDied)
				seen[dying.last] = true
				s.restart(small)
				c.meanwhile(o)
				s.sync()
				s.has(o, doc(topics(7, last)...))
				samples, err := s.db.Samples(t.Context(), "egov")
				require.NoError(t, err)
				require.NotEmpty(t, samples)
				assert.Equal(t, s.known("egov").LastCheck, samples[len(samples)-1].Last, "committed with the round")
			}
			assert.True(t, seen["apply"] && seen["update"], "%v", seen)
		})
	}
}

// A round that dies in the middle of the feed leaves a state that the feed has never had. A stale cache would answer
// that the feed has not changed, so the next request is unconditional.
func TestRoundAfterACrashReadsTheFeedThoughACacheIsBehind(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(5, "v1")...))
	s := inStep(t, o)
	o.Put(doc(topics(9, "v2")...))
	small := func(c *client.Config) { c.Batch = 3 }
	s.configure(small, func(c *client.Config) { c.Store = &dyingStore{Store: s.db, left: 1} })
	_, err := s.Sync(context.Background(), "egov")
	require.ErrorIs(t, err, errDied)

	s.restart(small)
	conditional := func(r *http.Request) bool { return isRecent(r) && r.Header.Get("If-None-Match") != "" }
	o.BreakWith(damage(conditional, always, answering(http.StatusNotModified)))
	s.sync()
	s.has(o, doc(topics(9, "v2")...))
	assert.NotEmpty(t, s.known("egov").ETag)
}

// What was loaded before a crash is taken on: the snapshot is not fetched again.
func TestStagedGenerationIsTakenOn(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(5, "v1")...))
	o.Put(doc(topics(7, "v2")...))
	s := subscribed(t, o, singly, func(c *client.Config) { c.Batch = 3 })
	o.BreakWith(damage(isFragmentOf(o, "t5"), always, answering(429)))
	r, _ := s.syncFails()
	assert.Equal(t, 5, r.Applied)
	_, _, err := s.Merged(o.T.Context(), false, "egov")
	assert.ErrorContains(t, err, "not loaded yet", "what is staged is not shown")
	o.BreakWith(nil)
	s.restart()
	o.Seen()
	r = s.sync()
	assert.True(t, r.CleanStart)
	assert.Equal(t, 2, r.Applied)
	assert.Zero(t, times(o.Seen(), "/snapshots"))
	s.has(o, doc(topics(7, "v2")...))
}

// What was staged is too old where the server keeps no history back to it.
func TestStagedGenerationThatIsTooOldIsMadeAnew(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(5, "v1")...), documentSize(3))
	o.Put(doc(topics(7, "v2")...))
	s := subscribed(t, o)
	o.BreakWith(damage(isFragment, always, answering(429)))
	s.syncFails()
	o.Put(doc(topics(9, "v3")...))
	o.TakeSnapshot()
	o.BreakWith(damage(isArchive, 1, answering(http.StatusGone)))
	s.sync()
	s.has(o, doc(topics(9, "v3")...))
}

// A snapshot from which the feed does not lead on is the server's fault, and is
// reported as such rather than tried for ever.
func TestSnapshotThatDoesNotFitTheFeedFailsTheRound(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(5, "v1")...), documentSize(3))
	o.Put(doc(topics(7, "v2")...))
	s := subscribed(t, o)
	o.BreakWith(damage(isArchive, always, answering(http.StatusGone)))
	_, err := s.syncFails()
	assert.ErrorContains(t, err, "the newest snapshot does not fit the feed: the server keeps no history")
	assert.Equal(t, 1, times(o.Seen(), "/snapshots/"))
}

// A requested clean replacement does not continue a staged generation.
func TestReplaceStartsAnew(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(5, "v1")...))
	o.Put(doc(topics(7, "v2")...))
	s := subscribed(t, o, singly)
	o.BreakWith(damage(isFragment, always, answering(429)))
	s.syncFails()
	o.BreakWith(nil)
	o.Seen()
	_, err := s.Replace(context.Background(), "egov")
	require.NoError(t, err)
	assert.Equal(t, 1, times(o.Seen(), "/snapshots/"))
	s.has(o, doc(topics(7, "v2")...))
}

// The state before is shown as long as its replacement is not complete.
func TestReadersNeverSeeAGap(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(5, "v1")...))
	s := inStep(t, o)
	o.Put(doc(topics(7, "v2")...))
	o.TakeSnapshot()
	o.Put(doc(topics(7, "v3")...))
	looked := 0
	o.BreakWith(func(http.ResponseWriter, *http.Request, http.Handler) bool {
		looked++
		s.has(o, doc(topics(5, "v1")...))
		return false
	})
	s.configure(singly, func(c *client.Config) { c.Parallel = 1 })
	_, err := s.Replace(context.Background(), "egov")
	require.NoError(t, err)
	assert.Equal(t, 4+7, looked)
	s.has(o, doc(topics(7, "v3")...))
}

// Failed and cancelled rounds leave no goroutines.
func TestRoundsLeaveNoGoroutines(t *testing.T) {
	o := publishing(t, doc(topics(40, "v1")...))
	transport := &http.Transport{}
	s := inStep(t, o, singly, func(c *client.Config) { c.HTTP = &http.Client{Transport: transport} })
	transport.CloseIdleConnections()
	before := runtime.NumGoroutine()
	for i := range 6 {
		o.Put(doc(topics(40, fmt.Sprint(i))...))
		ctx, cancel := context.WithCancel(context.Background())
		with := []func(http.ResponseWriter, *http.Request, http.Handler){
			passing["503"], passing["429"], passing["dropped"],
			func(_ http.ResponseWriter, r *http.Request, _ http.Handler) { cancel(); <-r.Context().Done() },
		}[i%4]
		o.BreakWith(damage(isFragment, always, with))
		_, err := s.Sync(ctx, "egov")
		assert.Error(t, err)
		cancel()
	}
	o.BreakWith(nil)
	s.sync()
	transport.CloseIdleConnections()
	testenv.Eventually(t, func() bool { return runtime.NumGoroutine() <= before+2 },
		"%d goroutines before", before)
}
