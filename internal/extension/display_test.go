package extension

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/control"
	_ "github.com/tmshare/tmshare/internal/testenv" // takes -long
)

// screen is a display whose clock the test moves.
type screen struct {
	*Display
	bytes.Buffer
	clock time.Time
}

func newScreen(terminal, quiet, json bool) *screen {
	s := &screen{clock: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	s.Display = NewDisplay(&control.Request{Stderr: &s.Buffer, StderrTerminal: terminal, Width: 120}, quiet, json)
	s.now = func() time.Time { return s.clock }
	return s
}

// work reports n steps of 100, each after a time.
func (s *screen) work(n int, each time.Duration) {
	for i := range n {
		s.Progress(client.Progress{Source: "egov", Phase: "applying changes", Done: int64(i + 1), Total: 100, Unit: client.Fragments})
		s.clock = s.clock.Add(each)
	}
}

func TestProgressInLinesNowAndThen(t *testing.T) {
	for name, json := range map[string]bool{"no terminal": false, "for programs": true} {
		s := newScreen(json, false, json)
		s.work(41, time.Second/4)
		assert.Equal(t, `egov: applying changes: 21 of 100 fragments (21 %), about 20s to go
egov: applying changes: 41 of 100 fragments (41 %), about 15s to go
`, s.String(), name)
	}
}

func TestShortWorkShowsNoProgress(t *testing.T) {
	s := newScreen(false, false, false)
	s.work(100, time.Millisecond)
	assert.Empty(t, s.String())
	s = newScreen(true, false, false)
	s.work(100, time.Millisecond)
	assert.Empty(t, s.String())
}

func TestQuietShowsNothing(t *testing.T) {
	for _, terminal := range []bool{true, false} {
		s := newScreen(terminal, true, false)
		s.work(100, time.Minute)
		s.Line("a line")
		s.Clear()
		assert.Empty(t, s.String())
	}
}

func TestEachPhaseCountsForItself(t *testing.T) {
	s := newScreen(false, false, false)
	s.work(16, time.Second/4)
	s.Progress(client.Progress{Source: "egov", Phase: "reading the snapshot", Done: 5e6, Unit: client.Bytes})
	s.clock = s.clock.Add(6 * time.Second)
	s.Progress(client.Progress{Source: "egov", Phase: "reading the snapshot", Done: 12.3e6, Unit: client.Bytes})
	s.Progress(client.Progress{Source: "other", Phase: "reading the snapshot", Done: 99e6, Unit: client.Bytes})
	assert.Equal(t, "egov: reading the snapshot: 12.3 MB\n", s.String())
}

func TestTheRestIsJudgedByWhatWasDoneHere(t *testing.T) {
	// A download that continues after 80 MB.
	p := client.Progress{Source: "egov", Phase: "reading", Done: 90e6, Total: 100e6, Unit: client.Bytes}
	assert.Equal(t, "egov: reading: 90.0 of 100.0 MB (90 %), about 10s to go", describeProgress(p, 10*time.Second, 80e6))
	p.Done = 100e6
	assert.Equal(t, "egov: reading: 100.0 of 100.0 MB (100 %)", describeProgress(p, 10*time.Second, 80e6))
}

func TestABarOnATerminal(t *testing.T) {
	s := newScreen(true, false, false)
	s.work(9, time.Second/10)
	assert.Equal(t, "\r[#.............................] egov: applying changes: 4 of 100 fragments (4 %), about 10s to go\x1b[K"+
		"\r[#.............................] egov: applying changes: 5 of 100 fragments (5 %), about 10s to go\x1b[K"+
		"\r[#.............................] egov: applying changes: 6 of 100 fragments (6 %), about 9s to go\x1b[K"+
		"\r[##............................] egov: applying changes: 7 of 100 fragments (7 %), about 9s to go\x1b[K"+
		"\r[##............................] egov: applying changes: 8 of 100 fragments (8 %), about 9s to go\x1b[K"+
		"\r[##............................] egov: applying changes: 9 of 100 fragments (9 %), about 9s to go\x1b[K", s.String())

	// A line replaces the bar, which is then shown again.
	s.Reset()
	s.Line("egov: something to say")
	assert.Equal(t, "\r\x1b[Kegov: something to say\n", s.String())
	s.Reset()
	s.work(9, time.Second/10)
	assert.Contains(t, s.String(), "9 of 100")

	// At the end the bar is removed.
	s.Reset()
	s.Clear()
	s.Clear()
	assert.Equal(t, "\r\x1b[K", s.String())
}

func TestABarFitsIntoTheLine(t *testing.T) {
	p := client.Progress{Source: "egov", Phase: "reading", Done: 50, Total: 100, Unit: client.Records}
	const text = "egov: reading: 50 of 100 records (50 %)" // 39 columns
	for width, want := range map[int]string{
		0:  "[###############...............] " + text,
		80: "[###############...............] " + text,
		60: "[########.........] " + text,
		50: text,
		40: text,
		20: "egov: reading: 50 o",
	} {
		assert.Equal(t, want, bar(text, p, width), "width %d", width)
	}
	p.Total = 0
	assert.Equal(t, text, bar(text, p, 80), "nothing can be shown of what has no end")
}
