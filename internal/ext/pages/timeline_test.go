package pages

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	_ "github.com/tmshare/tmshare/internal/testenv"
)

// Bars are few enough to be seen, whatever the time that they cover.
func TestPeriodOf(t *testing.T) {
	for _, span := range []time.Duration{0, time.Nanosecond, time.Second, time.Hour, 59 * time.Hour, 24 * 61 * time.Hour, 24 * 365 * 3 * time.Hour, 24 * 365 * 250 * time.Hour} {
		period := periodOf(span)
		assert.Positive(t, period, span)
		assert.LessOrEqual(t, span/period, time.Duration(mostBars), span)
		if period > time.Minute {
			assert.GreaterOrEqual(t, span/period, time.Duration(4), "%s in periods of %s", span, period)
		}
	}
}
