package client_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/client/status"
	"github.com/tmshare/tmshare/internal/testenv"
)

// TestNoLieDoesHarmToRecords keeps a source of records in step with a server through the
// proxy that lies, while the server's map is edited at random, pruned, restored and rebuilt,
// and formats are withdrawn. A record is asked for under one address, whatever its version,
// so that the source is seldom what the server had at one time. But after each round:
//   - another source is as it was;
//   - where the round failed, the status says why, and where records were not available, they
//     are in quarantine;
//   - and now and then, through a proxy that does not lie, the source is in step after one
//     round, record for record, and the next has nothing to do.
func TestNoLieDoesHarmToRecords(t *testing.T) {
	for _, form := range forms {
		t.Run(strings.ReplaceAll(form[1:], "/", " "), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, testenv.Seed())
			require.NoError(t, w.s.Unsubscribe(context.Background(), "egov"))
			w.s.record(w.o, "egov", form, "egov")
			failed, quarantined, clean := 0, 0, 0
			rounds := testenv.Rounds(30, 125)
			for round := range rounds {
				if !t.Run(fmt.Sprint(round), func(t *testing.T) {
					w.on(t)
					defer w.tell()
					w.publishSomething()
					if w.rng.IntN(20) == 0 {
						w.o.offer("egov", [][]string{{"xtm1"}, {"xtm2.1"}, {}}[w.rng.IntN(3)]...)
					}
					r, err := w.faultyRoundOfRecords()
					switch {
					case err != nil:
						failed++
					case r.Quarantined > 0:
						quarantined++
					default:
						clean++
					}
					w.saysWhatHappened(r, err)
					if round%6 == 5 || round == rounds-1 {
						w.recordsConverge()
					}
				}) {
					break
				}
			}
			t.Logf("%d rounds failed, %d left something in quarantine, %d went well; lies: %v", failed, quarantined, clean, w.liar.told)
			if rounds >= 100 && !t.Failed() {
				require.NotZero(t, failed+quarantined, "the lies are no challenge")
				require.NotZero(t, clean, "the lies are too much of a challenge")
			}
		})
	}
}

// faultyRoundOfRecords is faultyRound with a liar that knows what feeds of records are.
func (w *world) faultyRoundOfRecords() (*client.Round, error) {
	w.liar.every = []int{2, 4, 8, 8, 16, 16, 32, 64}[w.rng.IntN(8)]
	w.o.breakWith(w.lieOfRecords)
	defer w.o.breakWith(nil)
	w.dies = w.rng.IntN(10) == 0
	w.s.configure(tight, func(c *client.Config) {
		c.Parallel = 1 + w.rng.IntN(6)
		if w.dies {
			c.Store = &dyingStore{Store: w.s.db, left: w.rng.IntN(8)}
		}
	})
	if w.rng.IntN(20) == 0 {
		return w.s.Replace(context.Background(), "egov")
	}
	return w.s.Sync(context.Background(), "egov")
}

// lieOfRecords also answers with feeds as they were before, and shuffled.
func (w *world) lieOfRecords(rw http.ResponseWriter, r *http.Request, real http.Handler) bool {
	if isRecordsFeed(r) && w.liar.draw(w.liar.every*4) == 0 {
		a := w.liar.remember(r, real)
		if w.liar.draw(2) == 0 {
			stale(w.liar, rw, r, a)
		} else {
			shuffled(w.liar, rw, r, a)
		}
		return true
	}
	return w.liar.answer(rw, r, real)
}

func (w *world) saysWhatHappened(r *client.Round, failed error) {
	others := w.s.here()
	sameRecords(w.t, w.other, others["libraries"], "libraries")
	s := w.s.known("egov")
	if failed != nil && !w.dies {
		require.Equal(w.t, failed.Error(), s.LastError, "what failed stands in the status")
	}
	quarantine, err := w.s.db.Quarantine(w.t.Context(), "egov")
	require.NoError(w.t, err)
	require.Len(w.t, quarantine, r.Quarantined)
	st := status.Of(&s, quarantine, time.Now())
	switch {
	case failed != nil && s.LastError != "" && s.State != nil:
		require.Equal(w.t, status.RoundFailed, st.State)
	case failed == nil && len(quarantine) > 0:
		require.Equal(w.t, status.Incomplete, st.State)
	}
}

// recordsConverge asserts that a round without lies brings the source in step.
func (w *world) recordsConverge() {
	w.s.restart(calm)
	w.o.offer("egov")
	r, err := w.s.Sync(context.Background(), "egov")
	require.NoError(w.t, err)
	if r.CleanStart && r.Quarantined > 0 { // what was staged has met something that is better by now
		r, err = w.s.Sync(context.Background(), "egov")
		require.NoError(w.t, err)
	}
	require.Zero(w.t, r.Quarantined)
	w.s.hasRecordsOf(w.o, "egov", "egov")
	again := w.s.sync()
	require.Equal(w.t, client.Round{Name: "egov", Mark: again.Mark}, *again)
	all, err := status.All(w.t.Context(), w.s.db, time.Now())
	require.NoError(w.t, err)
	for _, st := range all {
		require.Equal(w.t, status.InStep, st.State, st.Name)
	}
	if w.rng.IntN(3) == 0 {
		require.True(w.t, w.s.verify().Equal)
	}
}
