package client_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/store"
)

// What is too large is not fetched again and again.
func TestWhatExceedsALimitIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*client.Config)
		counts string
		most   int
		says   string
	}{
		"fragment":            {func(c *client.Config) { c.MaxFragment = 100 }, ".xtm21", 9, "longer than the limit of 100 bytes"},
		"text":                {func(c *client.Config) { c.Document.Token = 50 }, ".xtm21", 9, "a tag or text is longer than 50 bytes"},
		"feed":                {func(c *client.Config) { c.Feed.MaxBytes = 2000 }, "/egov/fragments", 1, "Limits.MaxBytes, which is 2000"},
		"entries of the feed": {func(c *client.Config) { c.Feed = feeds.Limits{MaxEntries: 3} }, "/egov/fragments", 1, "Limits.MaxEntries, which is 3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := publishing(t, doc(topics(9, "v1")...))
			s := inStep(t, o)
			s.configure(c.change, func(c *client.Config) { c.Parallel = 1 })
			o.Put(doc(topics(9, "v2")...))
			says := ""
			if c.counts == ".xtm21" {
				_, bad := s.syncPasses(9)
				says = bad[8].Error
			} else {
				_, err := s.syncFails()
				says = err.Error()
			}
			assert.Contains(t, says, c.says)
			assert.Contains(t, says, o.URL)
			assert.LessOrEqual(t, times(o.Seen(), c.counts), c.most)
			s.has(o, doc(topics(9, "v1")...))
		})
	}
	t.Run("snapshot", func(t *testing.T) {
		t.Parallel()
		o := publishing(t, doc(topics(9, "v1")...))
		s := subscribed(t, o, func(c *client.Config) { c.MaxSnapshot = 100 })
		_, err := s.syncFails()
		assert.ErrorContains(t, err, "longer than the limit of 100 bytes")
		assert.Equal(t, 1, times(o.Seen(), "/snapshots/"))
	})
}

// Limits apply to unpacked bytes: a small answer may be a large document.
func TestLimitsCountUnpackedBytes(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(2, "v1")...))
	s := inStep(t, o, func(c *client.Config) { c.MaxFragment = 1 << 20 })
	o.Put(doc(append(topics(1, "v1"), topic("t1", strings.Repeat("x", 1<<20)))...))
	_, bad := s.syncPasses(1)
	assert.Contains(t, bad[0].Error, "longer than the limit of 1048576 bytes")
}

// A server that falls silent does not hold a round up for ever.
func TestServerThatFallsSilentHoldsNothingUp(t *testing.T) {
	t.Parallel()
	for name, with := range map[string]func(w http.ResponseWriter, r *http.Request, real http.Handler){
		"before the answer": func(_ http.ResponseWriter, r *http.Request, _ http.Handler) { <-r.Context().Done() },
		"in the middle": func(w http.ResponseWriter, r *http.Request, real http.Handler) {
			_, body := record(real, r)
			_, _ = w.Write(body[:len(body)/2])
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := publishing(t, doc(topics(2, "v1")...))
			s := inStep(t, o)
			s.configure(func(c *client.Config) { c.Stall, c.Tries = 300*time.Millisecond, 2 })
			o.Put(doc(topics(2, "v2")...))
			o.BreakWith(damage(isFragment, always, with))
			_, bad := s.syncPasses(2)
			assert.Contains(t, bad[0].Error, "the server has sent nothing for 300ms")
			s.has(o, doc(topics(2, "v1")...))
			o.BreakWith(nil)
			s.configure()
			s.sync()
			s.has(o, doc(topics(2, "v2")...))
		})
	}
}

// A server that sends a byte now and then does not hold a round up for ever.
func TestServerThatTricklesHoldsNothingUp(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(2, "v1")...))
	s := inStep(t, o)
	s.configure(func(c *client.Config) { c.MaxTime, c.Tries = 300*time.Millisecond, 1 })
	o.Put(doc(topics(2, "v2")...))
	o.BreakWith(damage(isFragment, always, func(w http.ResponseWriter, r *http.Request, real http.Handler) {
		for r.Context().Err() == nil {
			_, _ = w.Write([]byte(" "))
			_ = http.NewResponseController(w).Flush()
			time.Sleep(20 * time.Millisecond)
		}
	}))
	_, bad := s.syncPasses(2)
	assert.Contains(t, bad[0].Error, "the server has not sent all within 300ms")
}

// Slowness alone is no fault.
func TestSlowServerIsWaitedFor(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(1, "v1")...))
	s := inStep(t, o)
	s.configure(func(c *client.Config) { c.Stall, c.Tries = time.Second, 1 })
	o.Put(doc(topics(1, "v2")...))
	start := time.Now()
	o.BreakWith(damage(isFragment, always, func(w http.ResponseWriter, r *http.Request, real http.Handler) {
		_, body := record(real, r)
		for len(body) > 0 {
			n := min(len(body), 20)
			_, _ = w.Write(body[:n])
			_ = http.NewResponseController(w).Flush()
			body = body[n:]
			time.Sleep(60 * time.Millisecond)
		}
	}))
	s.sync()
	assert.Greater(t, time.Since(start), time.Second, "the answer took longer than a stall")
	s.has(o, doc(topics(1, "v2")...))
}

// Fragments are fetched several at a time, and applied in order all the same.
func TestFragmentsAreFetchedInParallel(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(12, "v1")...))
	s := inStep(t, o, singly, func(c *client.Config) { c.Parallel = 4 })
	o.Put(doc(topics(12, "v2")...))
	var running, most atomic.Int64
	o.BreakWith(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if isFragment(r) {
			if n := running.Add(1); n > most.Load() {
				most.Store(n)
			}
			time.Sleep(20 * time.Millisecond)
			running.Add(-1)
		}
		return false
	})
	s.sync()
	assert.Greater(t, most.Load(), int64(1))
	assert.LessOrEqual(t, most.Load(), int64(4))
	s.has(o, doc(topics(12, "v2")...))
}

// What is fetched ahead of a commit is bounded: many large fragments make
// several commits.
func TestLargeFragmentsAreNotAllKeptAtOnce(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(6, "v1")...))
	s := inStep(t, o, singly, func(c *client.Config) { c.Parallel, c.Batch = 1, 1000 })
	o.Put(doc(topics(6, "v2")...))
	o.BreakWith(func(w http.ResponseWriter, r *http.Request, real http.Handler) bool {
		if !isFragment(r) {
			return false
		}
		_, body := record(real, r)
		padding := strings.Repeat("<!--"+strings.Repeat(" ", 1000)+"-->\n", 3<<10) // 3 MB
		_, _ = w.Write([]byte(strings.Replace(string(body), "</topicMap>", padding+"</topicMap>", 1)))
		return true
	})
	assert.Equal(t, 6, s.sync().Applied)
	var commits []int
	require.NoError(t, s.db.Activity(o.T.Context(), func(a store.Activity) bool {
		if a.Kind == store.ActivityApplied {
			commits = append(commits, len(a.Entries))
		}
		return true
	}))
	assert.Equal(t, []int{3, 3}, commits)
	s.has(o, doc(topics(6, "v2")...))
}

// Long work reports its progress.
func TestLongWorkReportsProgress(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(1, "v1")...), documentSize(1))
	var mu sync.Mutex
	reported := map[client.Progress]bool{}
	s := inStep(t, o, func(c *client.Config) {
		c.Progress = func(p client.Progress) {
			mu.Lock()
			defer mu.Unlock()
			reported[p] = true
		}
	})
	o.Put(doc(topics(250, "v1")...))
	s.sync()
	assert.True(t, reported[client.Progress{Source: "egov", Phase: "reading the feed", Done: 200, Unit: client.Documents}])

	o.BreakWith(func(w http.ResponseWriter, r *http.Request, real http.Handler) bool {
		if !strings.Contains(r.URL.Path, "/snapshots/") {
			return false
		}
		_, body := record(real, r)
		padding := strings.Repeat("<!--"+strings.Repeat(" ", 1000)+"-->\n", 17<<10)
		_, _ = w.Write([]byte(strings.Replace(string(body), "</topicMap>", padding+"</topicMap>", 1)))
		return true
	})
	_, err := s.Replace(context.Background(), "egov")
	require.NoError(t, err)
	assert.Contains(t, s.reported(), "egov: 16 MB of the snapshot read")

	o.Resize("egov", 100)
	o.Put(doc(topics(1050, "v2")...))
	o.TakeSnapshot()
	s.sync()
	assert.True(t, reported[client.Progress{Source: "egov", Phase: "applying changes", Done: 1000, Total: 1050, Unit: client.Fragments}])
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	_, err := client.New(client.Config{})
	assert.EqualError(t, err, "client: Store is missing")
	_, err = client.New(client.Config{Store: newSubscriber(t).db, Parallel: -1})
	assert.EqualError(t, err, "client: Parallel is negative")
	_, err = client.New(client.Config{Store: newSubscriber(t).db, Backoff: -1})
	assert.EqualError(t, err, "client: Backoff is negative")
}
