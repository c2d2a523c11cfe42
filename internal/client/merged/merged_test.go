package merged

import (
	"testing"

	"github.com/stretchr/testify/assert"

	_ "github.com/tmshare/tmshare/internal/testenv" // takes -long
)

// Of equal consecutive lines one is reported. If no conflict is allowed, each is an error.
func TestALineThatEqualsTheLastOneIsReportedOnce(t *testing.T) {
	var lines []string
	report := func(line string) { lines = append(lines, line) }
	say := Reporting(report, false)
	for _, line := range []string{"no concept", "nothing passes", "nothing passes", "nothing passes", "no concept"} {
		assert.NoError(t, say(line, true))
	}
	assert.Equal(t, []string{"no concept", "nothing passes", "no concept"}, lines)
	say = Reporting(report, true)
	assert.NoError(t, say("no concept", false))
	assert.EqualError(t, say("no concept", true), "no concept")
}
