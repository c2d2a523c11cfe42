package client_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/client/status"
	"github.com/tmshare/tmshare/internal/client/watch"
	"github.com/tmshare/tmshare/internal/testenv"
)

// long limits the time to wait for events that are expected soon.
const long = 20 * time.Second

// watcher is a watcher at work.
type watcher struct {
	*watch.Watcher
	t    *testing.T
	stop func() // and wait
}

func watching(t *testing.T, s *subscriber, o watch.Options) *watcher {
	t.Helper()
	o.Store = s.db
	w, err := watch.New(s.Client, o)
	require.NoError(t, err)
	ctx, end := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	stop := sync.OnceFunc(func() {
		end()
		select {
		case err := <-done:
			assert.NoError(t, err)
		case <-time.After(long):
			t.Error("the watcher does not stop")
		}
	})
	t.Cleanup(stop)
	return &watcher{w, t, stop}
}

// status returns the status of a subscription.
func (w *watcher) status(name string) watch.Status {
	all, err := w.Status(w.t.Context())
	require.NoError(w.t, err)
	for _, s := range all {
		if s.Name == name {
			return s
		}
	}
	return watch.Status{}
}

func (w *watcher) eventually(what string, ok func() bool) {
	w.t.Helper()
	testenv.Eventually(w.t, ok, what)
}

func TestWatchingFollowsChanges(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(3, "v1")...))
	s := subscribed(t, o)
	w := watching(t, s, watch.Options{Interval: 20 * time.Millisecond, Jitter: 0.5})
	w.eventually("loaded", func() bool { return w.status("egov").State == status.InStep })
	changed := doc(topics(3, "v2")...)
	o.Put(changed)
	w.eventually("changed", func() bool { return w.status("egov").Status.Applied == 3 })
	s.has(o, changed)
	w.eventually("more rounds", func() bool { return w.status("egov").Rounds > 5 })
	st := w.status("egov")
	assert.True(t, st.Watched)
	assert.EqualValues(t, 3, st.Entries)
	assert.EqualValues(t, 3, st.Seen.Applied)
	assert.Zero(t, st.Failures)
	assert.Greater(t, st.Fetched, int64(1000))
	assert.Less(t, *st.Lag, long.Seconds())
	w.stop()
	assert.ErrorContains(t, w.Ready(), "stopping")
}

// A source that never answers, and one that answers with errors, have no effect
// on another.
func TestASourceThatIsDeadDelaysNoOther(t *testing.T) {
	t.Parallel()
	good, slow, bad := publishing(t, doc(topics(1, "v1")...)), publishing(t, doc(topics(1, "v1")...)), publishing(t, doc(topics(1, "v1")...))
	s := newSubscriber(t, func(c *client.Config) { c.Tries = 1 })
	for name, o := range map[string]*origin{"a slow": slow, "b bad": bad, "c good": good} {
		_, err := s.Subscribe(t.Context(), o.URL+"/topicmaps", client.SubscribeOptions{Name: name})
		require.NoError(t, err)
	}
	slow.BreakWith(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool { <-r.Context().Done(); return true })
	bad.BreakWith(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) bool { w.WriteHeader(500); return true })
	w := watching(t, s, watch.Options{Interval: 10 * time.Millisecond})
	w.eventually("the good one goes on", func() bool { return w.status("c good").Rounds > 20 })
	assert.Zero(t, w.status("a slow").Rounds)
	assert.True(t, w.status("a slow").Running)
	st := w.status("b bad")
	assert.Equal(t, st.Rounds, st.Failures)
	assert.Contains(t, st.LastError, "500")
	assert.Less(t, st.Rounds, w.status("c good").Rounds, "it is asked less and less often")
	bad.BreakWith(nil)
	w.StartRound()
	w.eventually("it is back", func() bool { st := w.status("b bad"); return st.State == status.InStep && st.InARow == 0 })
	w.stop() // although one is waiting for an answer
}

func TestWaitsGrowAfterFailures(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(1, "v1")...))
	s := newSubscriber(t, func(c *client.Config) { c.Tries = 1 })
	_, err := s.Subscribe(t.Context(), o.URL+"/topicmaps", client.SubscribeOptions{Name: "egov"})
	require.NoError(t, err)
	fail := func(retryAfter string) fault {
		return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) bool {
			if retryAfter != "" {
				w.Header().Set("Retry-After", retryAfter)
			}
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		}
	}
	o.BreakWith(fail(""))
	w := watching(t, s, watch.Options{Interval: 12 * time.Minute})
	round := int64(0)
	// wait is the time to the next round after one more.
	wait := func() float64 {
		round++
		w.eventually(fmt.Sprint("round ", round), func() bool { st := w.status("egov"); return st.Rounds == round && !st.Next.IsZero() })
		return time.Until(w.status("egov").Next).Minutes()
	}
	for i, minutes := range []float64{12, 24, 48, 60, 60} {
		if i > 0 {
			w.StartRound()
		}
		assert.InDelta(t, minutes, wait(), 0.5, "after %d failures", i+1)
	}
	o.BreakWith(fail("7200"))
	w.StartRound()
	assert.InDelta(t, 120, wait(), 0.5, "as the server asks for")
	o.BreakWith(fail("99999999"))
	w.StartRound()
	assert.InDelta(t, 24*60, wait(), 0.5, "which has a limit")
	o.BreakWith(nil)
	w.StartRound()
	assert.InDelta(t, 12, wait(), 0.5, "a round that succeeds ends it")
	o.BreakWith(fail(""))
	w.StartRound()
	assert.InDelta(t, 12, wait(), 0.5, "and it begins anew")
}

func TestSubscriptionsThatComeAndGoWhileWatching(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(1, "v1")...))
	o.Create("libraries", doc(topics(2, "v1")...))
	s := newSubscriber(t)
	alive := make(chan struct{}, 1)
	w := watching(t, s, watch.Options{Interval: time.Hour, Beat: time.Hour, Scheduled: func() { alive <- struct{}{} }})
	<-alive
	assert.NoError(t, w.Ready())
	_, err := s.Subscribe(t.Context(), o.URL+"/topicmaps/egov", client.SubscribeOptions{})
	require.NoError(t, err)
	w.Refresh()
	w.eventually("it came", func() bool { return w.status("egov").State == status.InStep })
	require.NoError(t, s.Unsubscribe(t.Context(), "egov"))
	_, err = s.Subscribe(t.Context(), o.URL+"/topicmaps/libraries", client.SubscribeOptions{Name: "egov"}) // another one of that name
	require.NoError(t, err)
	w.Refresh()
	w.eventually("another came", func() bool { return w.status("egov").State == status.InStep && w.status("egov").Rounds == 1 })
	s.hasAs("egov", o.SP("libraries"), doc(topics(2, "v1")...))
}

func TestWatchingSomeOnly(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(1, "v1")...))
	s := subscribed(t, o)
	_, err := s.Subscribe(t.Context(), o.URL+"/topicmaps", client.SubscribeOptions{Name: "other", Again: true})
	require.NoError(t, err)
	w := watching(t, s, watch.Options{Names: []string{"other"}, Interval: 5 * time.Millisecond})
	w.eventually("some rounds", func() bool { return w.status("other").Rounds > 3 })
	assert.False(t, w.status("egov").Watched)
	assert.Equal(t, status.NotLoaded, w.status("egov").State)

	unknown, err := watch.New(s.Client, watch.Options{Store: s.db, Names: []string{"nope"}})
	require.NoError(t, err)
	assert.ErrorContains(t, unknown.Run(t.Context()), `there is no subscription "nope"`)
	_, err = watch.New(s.Client, watch.Options{Store: s.db, Jitter: 2})
	assert.ErrorContains(t, err, "jitter")
}

// Rounds of two clients of one store that share their locks do not overlap.
func TestRoundsOfOneSubscriptionDoNotOverlap(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(1, "v1")...))
	s := subscribed(t, o)
	free := make(chan struct{})
	o.BreakWith(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if isSnapshot(r) {
			<-free
		}
		return false
	})
	w := watching(t, s, watch.Options{Interval: time.Hour})
	w.eventually("a round is under way", func() bool { return times(o.Seen(), "/snapshots/") == 1 })
	result := make(chan *client.Round, 1)
	go func() { result <- s.sync() }()
	w.eventually("another waits", func() bool {
		return strings.Contains(s.reported(), "egov: waiting for the round that is under way") && w.status("egov").Running
	})
	o.Seen()
	close(free)
	r := <-result
	assert.False(t, r.CleanStart, "the other has done it")
	assert.Zero(t, times(o.Seen(), "/snapshots/"))
}

// A command that takes a source away need not wait for a server that does not answer.
func TestYielding(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(1, "v1")...))
	s := subscribed(t, o)
	o.BreakWith(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool { <-r.Context().Done(); return true })
	o.Seen() // the requests of subscribing
	w := watching(t, s, watch.Options{Interval: time.Hour})
	w.Yield("nope")
	w.eventually("a round is under way", func() bool { return times(o.Seen(), "/fragments") > 0 })
	w.Yield("egov")
	w.eventually("it has ended", func() bool { return !w.status("egov").Running && !w.status("egov").Next.IsZero() })
	assert.Zero(t, w.status("egov").Rounds, "it has neither failed nor succeeded")
	require.NoError(t, s.Unsubscribe(t.Context(), "egov"))
}

// Topics in quarantine are retried and dropped independently of rounds.
func TestActionsOnQuarantine(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(2, "v1")...))
	s := inStep(t, o)
	o.Put(doc(topics(2, "v2")...))
	o.BreakWith(damage(isFragment, always, answering(http.StatusNotFound)))
	w := watching(t, s, watch.Options{Interval: time.Hour})
	w.eventually("in quarantine", func() bool { st := w.status("egov"); return st.Quarantined == 2 && !st.Running })
	_, err := w.Client.Retry(t.Context(), "egov")
	require.NoError(t, err)
	all := w.status("egov").Quarantine
	require.Len(t, all, 2)
	_, err = w.Client.Forget(t.Context(), "egov", all[0].TopicSI)
	require.NoError(t, err)
	assert.Equal(t, 1, w.status("egov").Quarantined)
	o.BreakWith(nil)
	_, err = w.Client.Retry(t.Context(), "egov", all[1].TopicSI)
	require.NoError(t, err)
	assert.Zero(t, w.status("egov").Quarantined)
}

func TestStatusOfAWatcher(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(2, "v1")...))
	s := subscribed(t, o)
	w := watching(t, s, watch.Options{Interval: time.Hour})
	w.eventually("loaded", func() bool { st := w.status("egov"); return st.State == status.InStep && !st.Running })
	h := w.Handler()
	get := func(path, accept string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		if accept != "" {
			r.Header.Set("Accept", accept)
		}
		a := httptest.NewRecorder()
		h.ServeHTTP(a, r)
		return a
	}
	for _, accept := range []string{"", "text/html,*/*;q=0.8", "application/json"} {
		assert.Equal(t, "application/json", get("/status", accept).Header().Get("Content-Type"), "Accept: %s", accept)
	}

	var all []map[string]any
	require.NoError(t, json.Unmarshal(get("/status.json", "").Body.Bytes(), &all))
	require.Len(t, all, 1)
	assert.Equal(t, "egov", all[0]["name"])
	assert.EqualValues(t, 1, all[0]["rounds"])
	assert.EqualValues(t, 0, all[0]["quarantined"])

	assert.Equal(t, "ok\n", get("/healthz", "").Body.String())
	assert.Equal(t, "ready\n", get("/readyz", "").Body.String())
	assert.Equal(t, http.StatusNotFound, get("/nope", "").Code)
	metrics := get("/metrics", "").Body.String()
	for _, name := range []string{
		"last_change_timestamp_seconds", "last_check_timestamp_seconds", "mark_age_seconds", "lag_seconds", "applied_fragments",
		"quarantined_topics", "failing", "rounds_total", "failed_rounds_total", "entries_total", "last_round_duration_seconds", "fetched_bytes_total",
	} {
		assert.Regexp(t, `(?m)^tmshare_source_`+name+`\{source="egov"\} [0-9.e+]+$`, metrics)
	}
	assert.Contains(t, metrics, "\ntmshare_sources 1\n")
	assert.Contains(t, metrics, `tmshare_source_rounds_total{source="egov"} 1`)

	o.BreakWith(damage(func(*http.Request) bool { return true }, always, answering(http.StatusNotFound)))
	w.StartRound()
	w.eventually("failed", func() bool { return w.status("egov").Failures == 1 })
	assert.Contains(t, get("/metrics", "").Body.String(), `tmshare_source_failing{source="egov"} 1`)
	w.stop()
	a := get("/readyz", "")
	assert.Equal(t, http.StatusServiceUnavailable, a.Code)
	assert.Equal(t, "stopping\n", a.Body.String())
}
