package client_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/client/status"
	"github.com/tmshare/tmshare/internal/testkit/faults"
)

// A cache that answers for ever with 304, or with an old copy, proves nothing: the copy is as old as what the source has
// stated last. After a while rounds bypass the cache. If that does not help, the source is in doubt, as it is at once for
// "verify".
func TestCacheThatIsStuckProvesNothing(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(header http.Header, body []byte) faults.Answer{
		"304": func(http.Header, []byte) faults.Answer { return faults.Answering(http.StatusNotModified) },
		"an old copy": func(header http.Header, body []byte) faults.Answer {
			return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
				w.Header().Set("TMShare-Checked", header.Get("TMShare-Checked"))
				w.Header().Set("Cache-Control", "max-age=5")
				w.Header().Set("Age", "9999")
				faults.Send(w, http.StatusOK, header, body)
			}
		},
	} {
		for _, heeds := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, heeds the query %t", name, heeds), func(t *testing.T) {
				t.Parallel()
				o := newOrigin(t)
				o.Create("egov", doc(topic("oslo", "Oslo")))
				begin := time.Now()
				now := begin
				s := inStep(t, o, func(c *client.Config) {
					c.Tries, c.ConfirmAfter, c.Now = 1, 10*time.Minute, func() time.Time { return now }
				})
				s.sync()
				request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, o.FeedURL("egov"), nil)
				require.NoError(t, err)
				request.Header.Set("Accept", "application/atom+xml")
				var with faults.Answer
				o.BreakWith(func(_ http.ResponseWriter, _ *http.Request, real http.Handler) bool {
					old, body := faults.Record(real, request)
					with = answer(old.Header(), body)
					return false
				})
				s.sync()
				o.BreakWith(damage(func(r *http.Request) bool { return isRecent(r) && !(heeds && r.URL.Query().Has("asked")) }, always,
					func(w http.ResponseWriter, r *http.Request, real http.Handler) { with(w, r, real) }))
				o.Put(doc(topic("oslo", "Oslo, later")))
				shown := func() status.Status {
					all, err := status.Named(t.Context(), s.db, now)
					require.NoError(t, err)
					return all[0]
				}

				now = begin.Add(5 * time.Minute)
				s.sync()
				require.NotNil(t, shown().Lag)
				assert.InDelta(t, 300, *shown().Lag, 3)
				assert.WithinDuration(t, begin, *shown().Proven, 3*time.Second)

				if heeds {
					now = begin.Add(11 * time.Minute)
					assert.Equal(t, 1, s.sync().Applied, "it was asked past the cache")
					assert.InDelta(t, 0, *shown().Lag, 3)
					o.Put(doc(topic("oslo", "Oslo, at last")))
					v, err := s.Verify(t.Context(), "egov", false)
					require.NoError(t, err)
					assert.True(t, v.Equal)
					assert.Zero(t, s.sync().Applied, "verify has applied it")
					return
				}
				_, err = s.Verify(t.Context(), "egov", false)
				require.Error(t, err)
				_, err = s.Verify(t.Context(), "egov", true)
				require.Error(t, err)
				now = begin.Add(11 * time.Minute)
				_, err = s.Sync(t.Context(), "egov")
				require.Error(t, err)
				assert.Equal(t, status.InDoubt, shown().State)
				assert.InDelta(t, 660, *shown().Lag, 3)
				assert.WithinDuration(t, begin, *shown().Proven, 3*time.Second)
				o.BreakWith(nil)
				assert.Equal(t, 1, s.sync().Applied)
				assert.Equal(t, status.InStep, shown().State)
				assert.InDelta(t, 0, *shown().Lag, 3)
			})
		}
	}
}

// A proxy that removes the header from now on leaves the source in doubt, and news are applied. A replacement begins anew
// without the header.
func TestProxyThatRemovesTheTime(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.Create("egov", doc(topic("oslo", "Oslo")))
	s := inStep(t, o)
	o.BreakWith(damage(isRecent, always, func(w http.ResponseWriter, r *http.Request, real http.Handler) {
		answer, body := faults.Record(real, r)
		faults.Send(w, answer.Code, answer.Header(), body)
	}))
	_, err := s.Sync(t.Context(), "egov")
	require.ErrorContains(t, err, "a cache on the way answers in the server's place")
	o.Put(doc(topic("oslo", "Oslo, later")))
	assert.Equal(t, 1, s.sync().Applied)
	_, err = s.Sync(t.Context(), "egov")
	require.ErrorContains(t, err, "a cache on the way answers in the server's place")
	_, err = s.Replace(t.Context(), "egov")
	require.NoError(t, err)
	s.sync()
	all, err := status.Named(t.Context(), s.db, time.Now())
	require.NoError(t, err)
	assert.Equal(t, status.InStep, all[0].State)
	assert.InDelta(t, 0, *all[0].Lag, 3)
}
