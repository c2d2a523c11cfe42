package plot

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tmshare/tmshare/internal/ext/pages/texts"
)

// Unit is that of the values of a plot.
type Unit int

// The units.
const (
	Count Unit = iota
	Seconds
	Bytes
)

// Text returns a value for people.
func (u Unit) Text(in *texts.Language, v float64) string {
	sign := ""
	if v < 0 {
		sign, v = "−", -v
	}
	switch u {
	case Seconds:
		return sign + duration(in, v)
	case Bytes:
		return sign + scaled(in, v, " B", " kB", " MB", " GB", " TB", " PB")
	}
	if v >= 999.5 {
		return sign + in.Count(int64(math.Round(v)))
	}
	return sign + number(in, v)
}

func scaled(in *texts.Language, v float64, units ...string) string {
	i := 0
	for ; v >= 999.5 && i < len(units)-1; i++ {
		v /= 1000
	}
	return number(in, v) + units[i]
}

// number returns the first three digits.
func number(in *texts.Language, v float64) string {
	decimals := 0
	if v != 0 && v < 100 {
		decimals = min(2-int(math.Floor(math.Log10(v))), 6)
	}
	s := strconv.FormatFloat(v, 'f', decimals, 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return in.Decimal(s)
}

const day = 24 * 60 * 60

func duration(in *texts.Language, v float64) string {
	switch {
	case v > 0 && v < 0.01:
		return number(in, v*1000) + " ms"
	case v < 60:
		return number(in, v) + " s"
	case v < 2*60*60:
		return two(v, 60, in.Say(texts.Minutes), 1, "s")
	case v < 2*day:
		return two(v, 60*60, in.Say(texts.Hours), 60, in.Say(texts.Minutes))
	}
	return two(v, day, in.Say(texts.Days), 60*60, in.Say(texts.Hours))
}

// two returns a value in a unit and a smaller one.
func two(v, large float64, largeName string, small float64, smallName string) string {
	v = math.Round(v/small) * small
	whole := math.Floor(v / large)
	if rest := math.Round((v - whole*large) / small); rest > 0 {
		return fmt.Sprintf("%.0f %s %.0f %s", whole, largeName, rest, smallName)
	}
	return fmt.Sprintf("%.0f %s", whole, largeName)
}

// Steps between ticks of durations, in seconds.
var durations = []float64{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 2 * 3600, 3 * 3600, 6 * 3600,
	12 * 3600, day, 2 * day, 7 * day, 14 * day}

// scale sets where the axis of values begins and ends, and its ticks: four at most above zero, at round values.
func (a *axes) scale() {
	if a.high == a.low { // all are zero
		a.high = 1
	}
	const ticks = 4
	least := (a.high - a.low) / ticks
	a.step = roundUp(least)
	if a.unit == Seconds && least > 1 && least <= durations[len(durations)-1] {
		a.step = durations[slices.IndexFunc(durations, func(d float64) bool { return d >= least })]
	} else if a.unit == Count {
		a.step = max(a.step, 1)
	}
	a.low, a.high = math.Floor(a.low/a.step)*a.step, math.Ceil(a.high/a.step)*a.step
}

// roundUp returns the least of 1, 2 and 5 times a power of ten that is not below v.
func roundUp(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, by := range []float64{1, 2, 5} {
		if by*power >= v {
			return by * power
		}
	}
	return 10 * power
}

func (a *axes) values() (all []tick) {
	for i := 0.0; a.low+i*a.step <= a.high+a.step/2; i++ {
		v := a.low + i*a.step
		all = append(all, tick{round(a.y(v)), a.unit.Text(a.in, v)})
	}
	return all
}

// maxTimes is the number of ticks that the time axis has at most.
const maxTimes = 5

var timeSteps = []time.Duration{
	time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour,
	day * time.Second, 2 * day * time.Second, 7 * day * time.Second,
}

// times returns the ticks of the axis of time: at full hours, days, months or years, as fits.
func (a *axes) times() (all []tick) {
	span := seconds(a.from, a.to)
	for _, step := range timeSteps {
		if span/step.Seconds() >= maxTimes {
			continue
		}
		format := texts.Text("15:04")
		if step >= day*time.Second {
			format = texts.ADay
		}
		begin := a.from.UTC().Truncate(step)
		for t := begin; !t.After(a.to); t = t.Add(step) {
			all = a.time(all, t, format)
		}
		return all
	}
	for _, months := range []int{1, 3, 6, 12, 24, 60, 120, 600, 2400, 12000, 48000} {
		if span/day/30/float64(months) >= maxTimes {
			continue
		}
		format := texts.AMonth
		if months >= 12 {
			format = "2006"
		}
		from := a.from.UTC()
		count := (from.Year()*12 + int(from.Month()) - 1) / months * months
		for ; ; count += months {
			t := time.Date(count/12, time.Month(count%12+1), 1, 0, 0, 0, 0, time.UTC)
			if t.After(a.to) {
				return all
			}
			all = a.time(all, t, format)
		}
	}
	return all
}

func (a *axes) time(all []tick, t time.Time, format texts.Text) []tick {
	if t.Before(a.from) {
		return all
	}
	return append(all, tick{round(a.x(t)), a.in.Date(format, t)})
}

func round(v float64) float64 { return math.Round(v*10) / 10 }

func write(b *strings.Builder, to rune, x, y float64) {
	fmt.Fprintf(b, "%c%s %s", to, strconv.FormatFloat(round(x), 'f', -1, 64), strconv.FormatFloat(round(y), 'f', -1, 64))
}
