package client_test

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/testenv"
)

// damage answers the requests that it is for, some times, with a fault.
func damage(wanted func(*http.Request) bool, count int, with func(w http.ResponseWriter, r *http.Request, real http.Handler)) fault {
	var left atomic.Int64
	left.Store(int64(count))
	return func(w http.ResponseWriter, r *http.Request, real http.Handler) bool {
		if !wanted(r) || left.Add(-1) < 0 {
			return false
		}
		with(w, r, real)
		return true
	}
}

const always = 1 << 30

// faults are answers that another try may mend.
var faults = map[string]func(w http.ResponseWriter, r *http.Request, real http.Handler){
	"500": func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { w.WriteHeader(500) },
	"503": func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { w.WriteHeader(503) },
	"408": func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { w.WriteHeader(408) },
	"429": func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { w.WriteHeader(429) },
	"connection cut": func(http.ResponseWriter, *http.Request, http.Handler) {
		panic(http.ErrAbortHandler)
	},
	"empty": func(http.ResponseWriter, *http.Request, http.Handler) {},
	"truncated": func(w http.ResponseWriter, r *http.Request, real http.Handler) {
		_, body := record(real, r)
		_, _ = w.Write(body[:len(body)*2/3])
	},
	"cut off in the last tag": func(w http.ResponseWriter, r *http.Request, real http.Handler) {
		_, body := record(real, r)
		_, _ = w.Write([]byte(strings.TrimRight(string(body), ">\n")))
	},
	"Content-Length greater than the body": func(w http.ResponseWriter, r *http.Request, real http.Handler) {
		_, body := record(real, r)
		w.Header().Set("Content-Length", fmt.Sprint(len(body)+10))
		_, _ = w.Write(body)
	},
	"Content-Length smaller than the body": func(w http.ResponseWriter, r *http.Request, real http.Handler) {
		_, body := record(real, r)
		w.Header().Set("Content-Length", fmt.Sprint(len(body)-10))
		_, _ = w.Write(body[:len(body)-10])
	},
	"truncated gzip": func(w http.ResponseWriter, r *http.Request, real http.Handler) {
		packed := gzipped(real, r)
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(packed[:len(packed)-9])
	},
	"wrong gzip checksum": func(w http.ResponseWriter, r *http.Request, real http.Handler) {
		packed := gzipped(real, r)
		packed[len(packed)-8] ^= 0xFF
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(packed)
	},
	"not gzip": func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write([]byte("hello"))
	},
	"not XML": func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		_, _ = w.Write([]byte("upstream sent too big header\n"))
	},
	"a page of a proxy": func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		_, _ = w.Write([]byte("<html xmlns='http://www.w3.org/1999/xhtml'><body>Sign in</body></html>"))
	},
	"a tag damaged": func(w http.ResponseWriter, r *http.Request, real http.Handler) {
		_, body := record(real, r)
		_, _ = w.Write([]byte(strings.Replace(string(body), "<name", "<nome", 1)))
	},
}

func gzipped(real http.Handler, r *http.Request) []byte {
	_, body := record(real, r)
	var b strings.Builder
	z := gzip.NewWriter(&b)
	_, _ = z.Write(body)
	_ = z.Close()
	return []byte(b.String())
}

// isFragmentOf tells the requests for the fragment of one of the topics that
// topics makes.
func isFragmentOf(o *origin, id string) func(*http.Request) bool {
	return func(r *http.Request) bool {
		if !isFragment(r) {
			return false
		}
		_, body := record(o.server, r)
		return strings.Contains(string(body), ">Topic "+id[1:]+" ")
	}
}

func TestPassingFaultsAreTriedAgain(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	o := publishing(t, doc(topics(4, "v1")...))
	s := inStep(t, o, func(c *client.Config) { c.Parallel = 1 })
	for name, with := range faults {
		t.Run(name, func(t *testing.T) {
			o.put(doc(topics(4, name)...))
			var fragments int64
			o.breakWith(func(w http.ResponseWriter, r *http.Request, real http.Handler) bool {
				if isFragment(r) && atomic.AddInt64(&fragments, 1)%4 != 0 { // three in four fail
					with(w, r, real)
					return true
				}
				return false
			})
			assert.Equal(t, 4, s.sync().Applied)
			s.has(o, doc(topics(4, name)...))
			assert.Empty(t, s.known("egov").LastError)
		})
	}
}

// A fragment that cannot be had is in quarantine, and holds up no other; once it
// can be had, it is applied, and so is all that came after it. Only a server that
// wants to be left alone is.
func TestLastingFaultsOfAFragmentLoseNothing(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(9, "v1")...))
	s := inStep(t, o, func(c *client.Config) { c.Batch = 3 })
	before := "v1"
	for name, with := range faults {
		t.Run(name, func(t *testing.T) {
			// Entries are by TopicSI, so those of t0 to t4 come before that of t5.
			o.put(doc(topics(9, name)...))
			o.breakWith(damage(isFragmentOf(o, "t5"), always, with))
			for i := range 2 {
				if name == "429" {
					r, err := s.syncFails()
					assert.Equal(t, []int{5, 0}[i], r.Applied)
					assert.Equal(t, err.Error(), s.known("egov").LastError)
					assert.False(t, s.known("egov").LastErrorAt.IsZero())
					s.has(o, doc(append(topics(5, name), topics(9, before)[5:]...)...))
					continue
				}
				r, bad := s.syncPasses(1)
				assert.Equal(t, []int{8, 0}[i], r.Applied)
				assert.Equal(t, si("t5"), bad[0].TopicSI)
				assert.Equal(t, i+1, bad[0].Tries)
				assert.NotEmpty(t, bad[0].Error)
				want := topics(9, name)
				want[5] = topics(9, before)[5]
				s.has(o, doc(want...))
			}
			o.breakWith(nil)
			r, _ := s.syncPasses(0)
			assert.Equal(t, 4, r.Applied, "it and what came after it")
			assert.False(t, r.CleanStart)
			s.has(o, doc(topics(9, name)...))
			assert.Empty(t, s.known("egov").LastError)
			before = name
		})
	}
}

func TestLastingFaultsAnywhereFailTheCleanStart(t *testing.T) {
	t.Parallel()
	for name, wanted := range map[string]func(*http.Request) bool{
		"fragments feed":   isRecent,
		"archive document": isArchive,
		"snapshots feed":   isSnapshots,
		"snapshot":         isSnapshot,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := publishing(t, doc(topics(9, "v1")...), documentSize(2))
			o.put(doc(topics(9, "v2")...))
			s := subscribed(t, o)
			for _, fault := range []string{"500", "connection cut", "truncated", "wrong gzip checksum", "a page of a proxy"} {
				require.NotNil(t, faults[fault])
				o.breakWith(damage(wanted, always, faults[fault]))
				s.syncFails()
				_, _, err := s.Merged(o.t.Context(), false, "egov")
				assert.ErrorContains(t, err, "not loaded yet", fault)
				assert.Zero(t, s.known("egov").LastChange)
			}
			o.breakWith(damage(wanted, 2, faults["500"]))
			s.sync()
			s.has(o, doc(topics(9, "v2")...))
		})
	}
}

// A fragment of another topic is bad input: it is no deletion, and it must not
// be applied.
func TestFragmentOfAnotherTopicIsNotApplied(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(3, "v1")...))
	s := inStep(t, o)
	o.put(doc(topics(3, "v2")...))
	o.breakWith(damage(isFragmentOf(o, "t1"), always, func(w http.ResponseWriter, r *http.Request, real http.Handler) {
		_, body := record(real, r)
		_, _ = w.Write([]byte(strings.ReplaceAll(string(body), si("t1"), si("other"))))
	}))
	_, bad := s.syncPasses(1)
	assert.Contains(t, bad[0].Error, "no topic of the fragment has the subject identifier "+si("t1"))
	s.has(o, doc(topics(3, "v2")[0], topics(3, "v1")[1], topics(3, "v2")[2]))
	o.breakWith(nil)
	s.sync()
	s.has(o, doc(topics(3, "v2")...))
}

// The next entry for its topic takes the place of a fragment that cannot be had.
func TestFragmentThatCannotBeHadIsSupersededByTheNext(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(3, "v1")...))
	s := inStep(t, o)
	o.put(doc(append(topics(2, "v1"), topic("t2", "broken"))...))
	o.breakWith(func(w http.ResponseWriter, r *http.Request, real http.Handler) bool {
		if _, body := record(real, r); isFragment(r) && strings.Contains(string(body), "broken") {
			w.WriteHeader(500)
			return true
		}
		return false
	})
	s.syncPasses(1)
	o.put(doc(append(topics(2, "v1"), topic("t2", "mended"))...))
	s.syncPasses(0)
	s.has(o, doc(append(topics(2, "v1"), topic("t2", "mended"))...))
}

// Once some fragments in a row have failed, those after them are not asked for:
// a server in trouble is left alone.
func TestServerInTroubleIsLeftAlone(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(100, "v1")...))
	s := inStep(t, o, func(c *client.Config) { c.Parallel, c.Tries = 4, 3 })
	o.put(doc(topics(100, "v2")...))
	o.seen()
	o.breakWith(damage(isFragment, always, faults["503"]))
	s.syncFails()
	assert.LessOrEqual(t, fragments(o.seen()), 2*5*4*3)
}

func TestRetryAfterIsHeeded(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(2, "v1")...))
	s := inStep(t, o)
	o.put(doc(topics(2, "v2")...))
	var mu sync.Mutex
	var at []time.Time
	o.breakWith(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
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
		o.put(doc(topics(2, "v2")...))
		o.breakWith(damage(isFragment, always, func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			w.Header().Set("Retry-After", value)
			w.WriteHeader(http.StatusServiceUnavailable)
		}))
		_, err := s.syncFails()
		var failed *client.FetchError
		require.ErrorAs(t, err, &failed)
		assert.Equal(t, 503, failed.Status)
		assert.InDelta(t, time.Hour, failed.RetryAfter, float64(time.Minute))
		assert.LessOrEqual(t, fragments(o.seen()), 2)
		o.breakWith(nil)
		s.sync()
		s.has(o, doc(topics(2, "v2")...))
	}
}

func TestCancelledRoundKeepsWhatWasCommitted(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(9, "v1")...))
	s := inStep(t, o, func(c *client.Config) { c.Batch, c.Parallel = 2, 1 })
	o.put(doc(topics(9, "v2")...))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	o.breakWith(damage(isFragmentOf(o, "t5"), always, func(_ http.ResponseWriter, r *http.Request, _ http.Handler) {
		cancel()
		<-r.Context().Done()
	}))
	r, err := s.Sync(ctx, "egov")
	assert.True(t, errors.Is(err, context.Canceled), "%v", err)
	assert.Contains(t, []int{0, 2, 4}, r.Applied, "whole batches")
	s.has(o, doc(append(topics(r.Applied, "v2"), topics(9, "v1")[r.Applied:]...)...))
	o.breakWith(nil)
	s.sync()
	s.has(o, doc(topics(9, "v2")...))
}
