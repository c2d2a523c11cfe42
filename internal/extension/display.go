package extension

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/control"
)

// When progress is shown: after a short delay, and at intervals.
const (
	barAfter   = 300 * time.Millisecond
	barEvery   = 100 * time.Millisecond
	linesEvery = 5 * time.Second
)

// Display shows the progress of long work to the person who typed a command: on a terminal by a bar, else by a line
// from time to time. It is safe for concurrent use; nil shows nothing.
type Display struct {
	w        io.Writer
	terminal bool
	width    int
	quiet    bool
	now      func() time.Time

	mu    sync.Mutex
	last  client.Progress
	began time.Time // of the phase, when first was done
	first int64
	shown time.Time // a bar or a line, the last time
	bar   bool      // the terminal's last line has a bar
}

// NewDisplay returns a display for the sender of a command. With json there is no bar; quiet shows nothing.
func NewDisplay(r *control.Request, quiet, json bool) *Display {
	return &Display{w: r.Stderr, terminal: r.StderrTerminal && !json, width: r.Width, quiet: quiet, now: time.Now}
}

// Line prints a line.
func (d *Display) Line(text string) {
	if d.quiet {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.clearBar()
	fmt.Fprintln(d.w, text)
}

// Clear takes the bar away.
func (d *Display) Clear() {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.clearBar()
}

func (d *Display) clearBar() {
	if d.bar {
		fmt.Fprint(d.w, "\r\x1b[K") // ECMA-48 §8.3.41, EL: erase to the end of the line
		d.bar = false
	}
}

// Progress is for [client.Config.Progress].
func (d *Display) Progress(p client.Progress) {
	if d.quiet {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	if p.Source != d.last.Source || p.Phase != d.last.Phase || p.Done < d.last.Done {
		d.clearBar()
		d.began, d.first, d.shown = now, p.Done, now
	}
	d.last = p
	switch {
	case d.terminal && now.Sub(d.began) >= barAfter && now.Sub(d.shown) >= barEvery:
		d.shown = now
		d.bar = true
		fmt.Fprint(d.w, "\r"+bar(describeProgress(p, now.Sub(d.began), d.first), p, d.width)+"\x1b[K")
	case !d.terminal && now.Sub(d.shown) >= linesEvery:
		d.shown = now
		fmt.Fprintln(d.w, describeProgress(p, now.Sub(d.began), d.first))
	}
}

// barWidth is the number of columns of a bar, if there is space.
const barWidth = 30

// bar returns a text with a bar before it that shows the same, in one line.
func bar(text string, p client.Progress, width int) string {
	if width == 0 {
		width = 80
	}
	if left := width - 1 - utf8.RuneCountInString(text) - len("[] "); p.Total > 0 && left >= barWidth/3 {
		n := min(barWidth, left)
		full := int(min(p.Done, p.Total) * int64(n) / p.Total)
		return "[" + strings.Repeat("#", full) + strings.Repeat(".", n-full) + "] " + text
	}
	if r := []rune(text); len(r) >= width {
		return string(r[:width-1])
	}
	return text
}

// describeProgress returns a line about the progress of work that has taken some time since first was done.
func describeProgress(p client.Progress, took time.Duration, first int64) string {
	amount := func(n int64) string {
		if p.Unit == client.Bytes {
			return fmt.Sprintf("%.1f", float64(n)/1e6)
		}
		return fmt.Sprint(n)
	}
	unit := string(p.Unit)
	if p.Unit == client.Bytes {
		unit = "MB"
	}
	if p.Total <= 0 {
		return fmt.Sprintf("%s: %s: %s %s", p.Source, p.Phase, amount(p.Done), unit)
	}
	text := fmt.Sprintf("%s: %s: %s of %s %s (%d %%)", p.Source, p.Phase, amount(p.Done), amount(p.Total), unit,
		100*p.Done/p.Total)
	if done := p.Done - first; done > 0 && p.Total > p.Done {
		left := time.Duration(float64(took) * float64(p.Total-p.Done) / float64(done))
		text += fmt.Sprintf(", about %s to go", left.Round(time.Second))
	}
	return text
}
