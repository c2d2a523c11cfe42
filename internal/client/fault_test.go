package client_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/fetch"
)

// isFragmentOf reports requests for the fragment of one of the topics made by topics.
func isFragmentOf(o *origin, id string) func(*http.Request) bool {
	return func(r *http.Request) bool {
		if !isFragment(r) {
			return false
		}
		_, body := record(o.Server, r)
		return strings.Contains(string(body), ">Topic "+id[1:]+" ")
	}
}

// A fragment of another topic is bad input: it is no deletion, and it must not
// be applied.
func TestFragmentOfAnotherTopicIsNotApplied(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(3, "v1")...))
	s := inStep(t, o)
	o.Put(doc(topics(3, "v2")...))
	o.BreakWith(damage(isFragmentOf(o, "t1"), always, func(w http.ResponseWriter, r *http.Request, real http.Handler) {
		_, body := record(real, r)
		_, _ = w.Write([]byte(strings.ReplaceAll(string(body), si("t1"), si("other"))))
	}))
	_, bad := s.syncPasses(1)
	assert.Contains(t, bad[0].Error, "no topic of the fragment has the subject identifier "+si("t1"))
	s.has(o, doc(topics(3, "v2")[0], topics(3, "v1")[1], topics(3, "v2")[2]))
	o.BreakWith(nil)
	s.sync()
	s.has(o, doc(topics(3, "v2")...))
}

// The next entry for its topic takes the place of a fragment that cannot be had.
func TestFragmentThatCannotBeHadIsSupersededByTheNext(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(3, "v1")...))
	s := inStep(t, o)
	o.Put(doc(append(topics(2, "v1"), topic("t2", "broken"))...))
	o.BreakWith(func(w http.ResponseWriter, r *http.Request, real http.Handler) bool {
		if _, body := record(real, r); isFragment(r) && strings.Contains(string(body), "broken") {
			w.WriteHeader(500)
			return true
		}
		return false
	})
	s.syncPasses(1)
	o.Put(doc(append(topics(2, "v1"), topic("t2", "mended"))...))
	s.syncPasses(0)
	s.has(o, doc(append(topics(2, "v1"), topic("t2", "mended"))...))
}

// After some failed fragments in a row, the later ones are not requested, to spare a server in trouble.
func TestServerInTroubleIsLeftAlone(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(100, "v1")...))
	s := inStep(t, o, singly, func(c *client.Config) { c.Parallel, c.Tries = 4, 3 })
	o.Put(doc(topics(100, "v2")...))
	o.Seen()
	o.BreakWith(damage(isFragment, always, passing["503"]))
	s.syncFails()
	assert.LessOrEqual(t, fragments(o.Seen()), 2*5*4*3)
}

func TestRetryAfterIsHeeded(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(2, "v1")...))
	s := inStep(t, o)
	o.Put(doc(topics(2, "v2")...))
	var mu sync.Mutex
	var at []time.Time
	o.BreakWith(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if !strings.HasSuffix(r.URL.Path, "/fragments") {
			return false
		}
		mu.Lock()
		defer mu.Unlock()
		at = append(at, time.Now())
		if len(at) == 1 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
		}
		return len(at) == 1
	})
	s.sync()
	require.Len(t, at, 2)
	assert.GreaterOrEqual(t, at[1].Sub(at[0]), time.Second)
	s.has(o, doc(topics(2, "v2")...))
}

// A server that wants to be left alone for an hour is: the round ends.
func TestLongRetryAfterEndsTheRound(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"3600", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)} {
		o := publishing(t, doc(topics(2, "v1")...))
		s := inStep(t, o)
		o.Put(doc(topics(2, "v2")...))
		o.BreakWith(damage(isFragment, always, func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			w.Header().Set("Retry-After", value)
			w.WriteHeader(http.StatusServiceUnavailable)
		}))
		_, err := s.syncFails()
		var failed *fetch.Error
		require.ErrorAs(t, err, &failed)
		assert.Equal(t, 503, failed.Status)
		assert.InDelta(t, time.Hour, failed.RetryAfter, float64(time.Minute))
		assert.LessOrEqual(t, fragments(o.Seen()), 2)
		o.BreakWith(nil)
		s.sync()
		s.has(o, doc(topics(2, "v2")...))
	}
}

func TestCancelledRoundKeepsWhatWasCommitted(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(9, "v1")...))
	s := inStep(t, o, singly, func(c *client.Config) { c.Batch, c.Parallel = 2, 1 })
	o.Put(doc(topics(9, "v2")...))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	o.BreakWith(damage(isFragmentOf(o, "t5"), always, func(_ http.ResponseWriter, r *http.Request, _ http.Handler) {
		cancel()
		<-r.Context().Done()
	}))
	r, err := s.Sync(ctx, "egov")
	assert.True(t, errors.Is(err, context.Canceled), "%v", err)
	assert.Contains(t, []int{0, 2, 4}, r.Applied, "whole batches")
	s.has(o, doc(append(topics(r.Applied, "v2"), topics(9, "v1")[r.Applied:]...)...))
	o.BreakWith(nil)
	s.sync()
	s.has(o, doc(topics(9, "v2")...))
}
