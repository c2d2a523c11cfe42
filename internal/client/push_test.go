package client_test

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/tmshare/tmshare/fragment/losses"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/client/status"
	"github.com/tmshare/tmshare/internal/client/watch"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/testkit/node"
)

func someWait(c *server.Config) { c.MaxWaiting = 10 }

func waits(r *http.Request) bool { return r.Method == http.MethodHead && r.Header.Get("Prefer") != "" }

// A server that supports waiting requests reports each change without delay.
func TestWatchingIsToldOfChanges(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(3, "v1")...), someWait)
	s := subscribed(t, o)
	w := watching(t, s, watch.Options{Interval: time.Hour})
	w.eventually("the first round", func() bool { return w.status("egov").Rounds == 1 })
	for n, version := range []string{"v2", "v3", "v4"} {
		o.Put(doc(topics(3+n, version)...))
		w.eventually(version, func() bool { return w.status("egov").Rounds == int64(n+2) })
		s.has(o, doc(topics(3+n, version)...))
	}
	w.stop()
	assert.Zero(t, w.status("egov").Failures)
}

// It also does for followers of records, by any protocol, even after change lists of ResourceSync have been closed.
func TestWatchingOfRecordsIsToldOfChanges(t *testing.T) {
	t.Parallel()
	inForms(t, func(t *testing.T, form string) {
		o := publishing(t, doc(topics(3, "v1")...), someWait, node.ChangesPerList(10))
		s := newSubscriber(t, func(c *client.Config) { c.MaxDelete = losses.All() })
		s.record(o, "egov", form, "egov")
		w := watching(t, s, watch.Options{Interval: time.Hour})
		w.eventually("the first round", func() bool { return w.status("egov").Rounds == 1 })
		brought := w.status("egov").Entries
		for version, size := range []int{3, 3, 50, 3, 50} {
			o.Put(doc(topics(size, fmt.Sprint("version ", version))...))
			w.eventually("a change", func() bool { return w.status("egov").Entries > brought && w.status("egov").State == status.InStep })
			w.eventually("all of it", func() bool { return !w.status("egov").Running })
			s.hasRecordsOf(o, "egov", "egov")
			brought = w.status("egov").Entries
		}
		w.stop()
		assert.Zero(t, w.status("egov").Failures)
		assert.LessOrEqual(t, w.status("egov").Rounds, int64(12), "nobody asks again and again")
	})
}

// A server without support for waiting requests is polled once, and then in each interval.
func TestServersThatDoNotWaitAreAskedNowAndThen(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(3, "v1")...))
	s := subscribed(t, o)
	var asked atomic.Int64
	o.BreakWith(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if waits(r) {
			asked.Add(1)
		}
		return false
	})
	w := watching(t, s, watch.Options{Interval: 50 * time.Millisecond})
	w.eventually("some rounds", func() bool { return w.status("egov").Rounds >= 5 })
	until := asked.Load() // later ends of rounds are harmless: each polls after it
	assert.LessOrEqual(t, until, w.status("egov").Rounds)
	assert.Positive(t, until)
}

// A server may report an irrelevant change, such as a closed list. Later changes are still noticed.
func TestAChangeIsHeardOfAfterAFalseAlarm(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(3, "v1")...), someWait)
	s := subscribed(t, o)
	o.BreakWith(damage(waits, 1, answering(http.StatusOK)))
	w := watching(t, s, watch.Options{Interval: time.Hour})
	w.eventually("the round for nothing", func() bool { return w.status("egov").Rounds == 2 && !w.status("egov").Running })
	brought := w.status("egov").Entries
	o.Put(doc(topics(3, "v2")...))
	w.eventually("the change", func() bool { return w.status("egov").Entries > brought })
}

// A server that always reports changes without having any is not polled without pause.
func TestServersThatSayTooMuchAreAskedNowAndThen(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(3, "v1")...), someWait)
	s := subscribed(t, o)
	o.BreakWith(damage(waits, always, answering(http.StatusOK)))
	w := watching(t, s, watch.Options{Interval: time.Hour})
	w.eventually("a round more", func() bool { return w.status("egov").Rounds >= 2 })
	time.Sleep(200 * time.Millisecond)
	assert.LessOrEqual(t, w.status("egov").Rounds, int64(2))
}
