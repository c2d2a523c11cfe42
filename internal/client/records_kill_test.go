package client_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Real processes that follow records are killed at random instants, of the baseline as of
// later rounds. In the end each source is that of the server, and of a client that follows
// the fragments and was never killed.
func TestKilledClientsOfRecordsAreInStepInTheEnd(t *testing.T) {
	if testing.Short() {
		t.Skip("processes that follow fragments are enough for the short form")
	}
	for _, form := range forms {
		t.Run(strings.ReplaceAll(form[1:], "/", " "), func(t *testing.T) {
			wanted := *kills / 2
			k := newKilling(t)
			k.command("unsubscribe", "egov")
			k.command("subscribe", k.o.recordsURL("egov", form), "--as", "egov")
			k.o.breakWith(k.faultOfRecords)
			k.run(k.took/2, "sync")
			k.inStep()
			for k.killed < wanted {
				k.something()
				if k.rng.IntN(3) == 0 {
					k.run(k.killAfter(), "replace", "egov")
				} else {
					k.run(k.killAfter(), "sync")
				}
				if k.rng.IntN(4) == 0 {
					k.inStep()
				}
			}
			k.broken.Store(false)
			k.inStep()
			require.True(t, k.verdict().Equal)

			// What cannot be had is in quarantine, and comes back.
			k.publishMuch()
			k.broken.Store(true)
			k.run(k.killAfter(), "sync")
			k.command("sync")
			require.NotEmpty(t, k.quarantine())
			k.broken.Store(false)
			k.inStep()
			require.True(t, k.verdict().Equal)
			t.Logf("killed %d times; %d runs ended before", k.killed, k.ended)
		})
	}
}

// faultOfRecords is fault for records.
func (k *killing) faultOfRecords(w http.ResponseWriter, r *http.Request, real http.Handler) bool {
	if !isRecord(r) {
		return k.fault(w, r, real)
	}
	time.Sleep(5 * time.Millisecond)
	if !k.broken.Load() {
		return false
	}
	if _, body := record(real, r); len(body)%3 == 0 {
		w.WriteHeader(http.StatusNotFound)
		return true
	}
	return false
}
