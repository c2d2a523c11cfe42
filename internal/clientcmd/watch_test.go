package clientcmd

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/tmshare/tmshare/internal/client"
	_ "github.com/tmshare/tmshare/internal/testenv"
)

// A round of a source without a mark logs none.
func TestLogOfARoundHasTheMarkThatThereIs(t *testing.T) {
	for name, r := range map[string]client.Round{
		"quarantine": {Quarantined: 1}, "not proven": {Unproven: "so"}, "repaired": {Repaired: 1}, "loaded": {CleanStart: true}, "changes": {Entries: 1}, "nothing new": {},
	} {
		t.Run(name, func(t *testing.T) {
			logged := func() string {
				var b bytes.Buffer
				logRound(slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: slog.LevelDebug})), "egov", &r, nil)
				return b.String()
			}
			assert.Contains(t, logged(), "source=egov")
			assert.NotContains(t, logged(), "mark=")
			r.Mark = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
			assert.Contains(t, logged(), "mark=2026-01-02T03:04:05")
		})
	}
}
