package client_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/testenv"
)

// Real processes that follow records are killed at random instants, of the baseline as of
// later rounds. In the end each source is that of the server, and of a client that follows
// the fragments and was never killed.
func TestKilledClientsOfRecordsAreInStepInTheEnd(t *testing.T) {
	for _, form := range forms {
		t.Run(strings.ReplaceAll(form[1:], "/", " "), func(t *testing.T) {
			wanted := testenv.Rounds(1, 12)
			k := newKilling(t)
			k.command("unsubscribe", "egov")
			k.command("subscribe", k.o.recordsURL("egov", form), "--as", "egov")
			k.o.breakWith(k.faultOfRecords)
			k.run("sync")
			k.inStep()
			for k.killed < wanted {
				k.something()
				if k.rng.IntN(3) == 0 {
					k.run("replace", "egov")
				} else {
					k.run("sync")
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
			k.run("sync")
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
	k.meets()
	return (isFragment(r) || isRecord(r)) && k.keepsBack(w, r, real)
}
