package pages

import (
	"slices"
	"time"

	"github.com/tmshare/tmshare/internal/ext/pages/plot"
	"github.com/tmshare/tmshare/internal/history"
	"github.com/tmshare/tmshare/internal/store"
)

// timelines are plots of the history of a map: the number of changes in each period, and the number of topics. nil:
// there is nothing to show.
type timelines struct {
	Changes *plot.Bars
	Size    *plot.Line
}

// timelinesOf plots the changes since the first publication. The number of entries that it reads is bounded.
func timelinesOf(v *store.View) (lines timelines, err error) {
	first, err := history.First(v)
	if err != nil || first.Seq >= v.Head {
		return lines, err
	}
	changes := &plot.Bars{ID: "changes", From: first.Updated, To: v.Updated,
		Period: periodOf(v.Updated.Sub(first.Updated))}
	changes.From = changes.From.Truncate(changes.Period)
	for from, last := changes.From, first.Seq; !from.After(v.Updated); from = from.Add(changes.Period) {
		until, err := history.At(v, later(first.Updated, from.Add(changes.Period-1)))
		if err != nil {
			return lines, err
		}
		changes.Points = append(changes.Points, plot.Point{Time: from, Value: float64(until.Seq - last)})
		last = until.Seq
	}
	changes.To = changes.From.Add(changes.Period * time.Duration(len(changes.Points)))
	lines.Changes = changes
	size := &plot.Line{ID: "size", From: changes.From, To: changes.To}
	snapshots, err := v.Snapshots()
	if err != nil {
		return lines, err
	}
	for _, s := range slices.Backward(snapshots) {
		if !s.Updated.Before(changes.From) {
			size.Points = append(size.Points, plot.Point{Time: s.Updated, Value: float64(s.Topics)})
		}
	}
	size.Points = append(size.Points, plot.Point{Time: v.Updated, Value: float64(v.Topics)})
	if len(size.Points) > 1 {
		lines.Size = size
	}
	return lines, err
}

// periods are the possible periods of bars. mostBars is the maximum number of bars, if a longer period exists.
var periods = []time.Duration{time.Minute, 10 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour,
	7 * 24 * time.Hour, 30 * 24 * time.Hour, 365 * 24 * time.Hour}

const mostBars = 60

func periodOf(span time.Duration) time.Duration {
	for _, period := range periods {
		if span <= mostBars*period {
			return period
		}
	}
	return max(periods[len(periods)-1], span/mostBars)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
