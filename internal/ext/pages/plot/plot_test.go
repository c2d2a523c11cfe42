package plot

import (
	"encoding/xml"
	"errors"
	"html/template"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/ext/pages/texts"
	_ "github.com/tmshare/tmshare/internal/testenv" // takes -long
)

var noon = time.Date(2026, 3, 29, 12, 0, 0, 0, time.UTC)

func line(values ...float64) Line {
	l := Line{ID: "lag", Title: "Lag", Unit: Seconds}
	for i, v := range values {
		l.Points = append(l.Points, Point{noon.Add(time.Duration(i) * 5 * time.Minute), v})
	}
	return l
}

// drawnBy returns a plot that is well-formed as XML, too: each element ends, each attribute is quoted.
func drawnBy(t *testing.T, plot interface {
	HTML(*texts.Language) (template.HTML, error)
}) string {
	t.Helper()
	out, err := plot.HTML(texts.English)
	require.NoError(t, err)
	d := xml.NewDecoder(strings.NewReader(string(out)))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else {
			require.NoError(t, err, "%s", out)
		}
	}
	for _, bad := range []string{"NaN", "Inf", "style=", "<script", "ZgotmplZ"} {
		assert.NotContains(t, string(out), bad)
	}
	return string(out)
}

func TestFewPoints(t *testing.T) {
	none := drawnBy(t, line())
	assert.Contains(t, none, "no figures yet")
	assert.NotContains(t, none, "<svg")

	one := drawnBy(t, line(90))
	assert.Contains(t, one, `d="M243 10h0"`, "a dot in the middle")
	assert.Contains(t, one, "last 1 min 30 s")
	assert.Contains(t, one, `role="img" aria-labelledby="lag-title lag-text"`)

	two := drawnBy(t, line(0, 60))
	assert.Contains(t, two, `d="M66 142h0L408 10"`)
	assert.Contains(t, two, "<td>2026-03-29 12:05 UTC</td><td>1 min</td>")
}

func TestGapsAreNotBridged(t *testing.T) {
	l := line(1, 2, 3)
	l.Points[2].Time = noon.Add(10 * time.Hour)
	l.Gap = time.Hour
	assert.Equal(t, 2, strings.Count(drawnBy(t, l), "h0"))
	l.Gap = 0
	assert.Equal(t, 1, strings.Count(drawnBy(t, l), "h0"))
}

func TestManyPointsStaySmall(t *testing.T) {
	l := Line{Title: "Size", Unit: Bytes}
	for i := range 100_000 {
		l.Points = append(l.Points, Point{noon.Add(time.Duration(i) * time.Second), float64(i % 1000)})
	}
	out := drawnBy(t, l)
	assert.Less(t, len(out), 32<<10)
	assert.LessOrEqual(t, strings.Count(out, "<tr>"), maxRows+1)
	assert.Contains(t, out, "the greatest value from each time on")
}

func TestHostileFigures(t *testing.T) {
	l := line(math.NaN(), math.Inf(1), 1e300, -1e300, 3)
	l.Title = `</title><script>alert(1)</script>" onload="x`
	l.ID = `"><script>`
	out := drawnBy(t, l)
	assert.Contains(t, out, "least 3 s, greatest 3 s")
	for _, at := range []time.Time{{}, time.Unix(1<<40, 0), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)} {
		l := Line{Points: []Point{{noon, 1}, {at, 2}, {noon, -3}}}
		for i := range 2 * maxRows {
			l.Points = append(l.Points, Point{at, float64(i)})
		}
		assert.Less(t, strings.Count(drawnBy(t, l), "<text"), 20)
	}
	drawnBy(t, Bars{Points: []Point{{time.Time{}, 1}, {noon, -2}, {noon, math.NaN()}}})
}

// Ticks are few, at round values, and within the plot.
func TestTicks(t *testing.T) {
	for _, unit := range []Unit{Count, Seconds, Bytes} {
		for v := 0.001; v < 1e15; v *= 3.7 {
			a := axesOf(texts.English, []Point{{noon, v}}, time.Time{}, time.Time{}, 0, unit)
			all := a.values()
			assert.GreaterOrEqual(t, len(all), 2, "%v", v)
			assert.LessOrEqual(t, len(all), 6, "%v", v)
			assert.GreaterOrEqual(t, a.high, v)
			seen := map[string]bool{}
			for _, tick := range all {
				assert.False(t, seen[tick.Text], "%v: %v", v, all)
				seen[tick.Text] = true
				assert.LessOrEqual(t, float64(5+6.7*float64(len(tick.Text))), a.left, "%q is cut", tick.Text)
			}
		}
	}
	for span := time.Minute; span < 200*365*24*time.Hour; span += span / 2 {
		a := axesOf(texts.English, []Point{{noon, 1}}, noon, noon.Add(span), 0, Count)
		all := a.times()
		assert.LessOrEqual(t, len(all), maxTimes+1, "%v", span)
		for _, tick := range all {
			assert.True(t, tick.At >= left && tick.At <= right, "%v: %v", span, tick)
			assert.LessOrEqual(t, tick.At+6.7/2*float64(len(tick.Text)), float64(width), "%q is cut", tick.Text)
		}
	}
	all := []string{}
	for _, tick := range axesOf(texts.English, []Point{{noon, 7200}}, noon.Add(-24*time.Hour), noon, 0, Seconds).times() {
		all = append(all, tick.Text)
	}
	assert.Equal(t, []string{"12:00", "18:00", "00:00", "06:00", "12:00"}, all)
}

func TestValuesForPeople(t *testing.T) {
	for want, got := range map[string]string{
		"0": Count.Text(texts.English, 0), "999": Count.Text(texts.English, 999), "1,000": Count.Text(texts.English, 1000), "1,234,567": Count.Text(texts.English, 1_234_567), "−12": Count.Text(texts.English, -12), "0.5": Count.Text(texts.English, 0.5),
		"1.5 kB": Bytes.Text(texts.English, 1500), "12 B": Bytes.Text(texts.English, 12), "0.25 s": Seconds.Text(texts.English, 0.25), "0.545 ms": Seconds.Text(texts.English, 0.000545), "0 s": Seconds.Text(texts.English, 0), "1 min": Seconds.Text(texts.English, 60), "3 h 5 min": Seconds.Text(texts.English, 3*3600+299),
		"2 d": Seconds.Text(texts.English, 2*day), "10 d 1 h": Seconds.Text(texts.English, 10*day+3600), "12,345": Count.Text(texts.English, 12_345), "−999,600": Count.Text(texts.English, -999_600), "1,000,000": texts.English.Count(uint64(1e6)), "-123": texts.English.Count(-123), "12": texts.English.Count(12),
	} {
		assert.Equal(t, want, got)
	}
}

func TestBars(t *testing.T) {
	b := Bars{ID: "changes", Title: "Changes per day"}
	for i := range 30 {
		b.Points = append(b.Points, Point{noon.AddDate(0, 0, i), float64(i)})
	}
	out := drawnBy(t, b)
	assert.Equal(t, 30, strings.Count(out, "<rect"))
	assert.Contains(t, out, "greatest 29")
	b.From, b.To = noon.AddDate(0, 0, 10), noon.AddDate(0, 0, 20)
	assert.Equal(t, 11, strings.Count(drawnBy(t, Bars{Points: b.Points, From: b.From, To: b.To.Add(time.Hour)}), "<rect"))
}
