// Package plot draws figures over time as SVG, for pages without scripts. A style sheet gives the colours, by the
// classes of the elements.
package plot

import (
	"cmp"
	"html/template"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tmshare/tmshare/internal/ext/pages/texts"
)

// Point is a value at a time.
type Point struct {
	Time  time.Time
	Value float64
}

// Line is a plot of a value over time: its points in the order of time, with lines between them.
type Line struct {
	ID     string // of the elements; unique on the page
	Title  string // describes the plot
	Unit   Unit
	Points []Point
	From   time.Time // where the axis of time begins and ends; zero: with the points
	To     time.Time
	Gap    time.Duration // no line is drawn between points that are further apart; 0: between all
}

// Bars is a plot of values for periods of time, such as changes a day. A point has the beginning of its period.
type Bars struct {
	ID     string
	Title  string
	Unit   Unit
	Points []Point
	From   time.Time
	To     time.Time
	Period time.Duration // default: a day
}

// The coordinates of the plot; a style sheet sets the size on the screen. Figures stand at the left, times below. The
// left margin fits the figures, and the right one half of a time.
const (
	width, height           = 440, 170
	left, right, top, below = 66, 408, 10, 142
)

var drawn = texts.Templates{Files: []string{"plot.html"}}

// drawing is the data of the template.
type drawing struct {
	ID, Title               string
	Width, Height           int
	Left, Right, Top, Below int
	Path                    string // of a line
	Bars                    []bar
	Values, Times           []tick
	Any                     bool
	First, Last             string // times
	Least, Most, Now        string // values
	Rows                    []row  // the same as a table
	Periods                 bool   // each row is of a period, of which it has the greatest value
}

type bar struct{ X, Y, Width, Height float64 }

type tick struct {
	At   float64
	Text string
}

type row struct{ From, Value string }

// HTML returns the plot as a figure: a drawing, its description in words, and the figures as a table.
func (l Line) HTML(in *texts.Language) (template.HTML, error) {
	a := axesOf(in, l.Points, l.From, l.To, 0, l.Unit)
	d := a.drawing(l.ID, l.Title)
	var path strings.Builder
	points := a.thinned()
	for i, p := range points {
		between := 'L'
		if i == 0 || l.Gap > 0 && p.Time.Sub(points[i-1].Time) > l.Gap {
			between = 'M'
		}
		write(&path, between, a.x(p.Time), a.y(p.Value))
		if between == 'M' {
			path.WriteString("h0") // a point that stands alone is seen, too
		}
	}
	d.Path = path.String()
	return d.html(in)
}

// HTML returns the plot as a figure, as that of [Line] does.
func (b Bars) HTML(in *texts.Language) (template.HTML, error) {
	period := cmp.Or(max(b.Period, 0), 24*time.Hour)
	a := axesOf(in, b.Points, b.From, b.To, period, b.Unit)
	d := a.drawing(b.ID, b.Title)
	for _, p := range a.thinned() {
		from, to := max(a.x(p.Time), a.left), min(a.x(p.Time.Add(period)), right)
		zero, y := a.y(0), a.y(p.Value)
		if wide := to - from; wide > 0 {
			between := min(1, wide/5)
			d.Bars = append(d.Bars,
				bar{round(from + between/2), round(min(zero, y)), round(wide - between), round(math.Abs(zero - y))})
		}
	}
	return d.html(in)
}

func (d *drawing) html(in *texts.Language) (template.HTML, error) {
	made, err := drawn.In(in)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	err = made.Execute(&b, d)
	return template.HTML(b.String()), err // the template has escaped all texts
}

// axes place points.
type axes struct {
	in       *texts.Language // of the texts
	unit     Unit
	points   []Point // that are shown
	from, to time.Time
	low      float64
	high     float64
	step     float64 // between two ticks
	left     float64 // where the lines begin
}

// letter is the maximum width of a figure's letter, and space the gap between figures and lines.
const letter, space = 7, 8

// most is the limit of values: larger ones, and those that are not numbers, are not shown.
const most = 1e18

func axesOf(in *texts.Language, points []Point, from, to time.Time, period time.Duration, unit Unit) *axes {
	a := &axes{in: in, unit: unit, from: from, to: to}
	points = slices.Clone(points)
	slices.SortStableFunc(points, func(x, y Point) int { return x.Time.Compare(y.Time) })
	for _, p := range points {
		outside := !from.IsZero() && !p.Time.Add(period).After(from) && p.Time.Before(from) || !to.IsZero() &&
			p.Time.After(to)
		if math.Abs(p.Value) <= most && !outside {
			a.points = append(a.points, p)
		}
	}
	if n := len(a.points); n > 0 {
		if a.from.IsZero() {
			a.from = a.points[0].Time
		}
		if a.to.IsZero() {
			a.to = a.points[n-1].Time.Add(period)
		}
	}
	if !a.to.After(a.from) { // one time: in the middle
		a.from, a.to = a.from.Add(-time.Minute), a.from.Add(time.Minute)
	}
	for _, p := range a.points { // the axis always contains zero for comparison
		a.low, a.high = min(a.low, p.Value), max(a.high, p.Value)
	}
	a.scale()
	a.left = left
	for _, t := range a.values() {
		a.left = max(a.left, float64(letter*utf8.RuneCountInString(t.Text)+space))
	}
	return a
}

func (a *axes) x(t time.Time) float64 {
	return a.left + (right-a.left)*(seconds(a.from, t)/seconds(a.from, a.to))
}

// seconds returns the seconds between two times, which may be more than a [time.Duration] has.
func seconds(from, to time.Time) float64 {
	return float64(to.Unix()-from.Unix()) + float64(to.Nanosecond()-from.Nanosecond())/1e9
}

func (a *axes) y(v float64) float64 { return below - (below-top)*((v-a.low)/(a.high-a.low)) }

// thinned returns the points to draw: of those with the same horizontal position, the first, the least, the greatest
// and the last.
func (a *axes) thinned() (all []Point) {
	for rest := a.points; len(rest) > 0; {
		n, at := 1, math.Round(a.x(rest[0].Time))
		for n < len(rest) && math.Round(a.x(rest[n].Time)) == at {
			n++
		}
		all = append(all, telling(rest[:n])...)
		rest = rest[n:]
	}
	return all
}

func telling(points []Point) []Point {
	if len(points) <= 4 {
		return points
	}
	least, most := 0, 0
	for i, p := range points {
		if p.Value < points[least].Value {
			least = i
		}
		if p.Value > points[most].Value {
			most = i
		}
	}
	kept := []int{0, least, most, len(points) - 1}
	slices.Sort(kept)
	var all []Point
	for _, i := range slices.Compact(kept) {
		all = append(all, points[i])
	}
	return all
}

// maxRows is the number of rows that the table of a plot has at most.
const maxRows = 24

func (a *axes) drawing(id, title string) *drawing {
	d := &drawing{ID: cmp.Or(id, "plot"), Title: title, Width: width, Height: height, Left: int(a.left), Right: right,
		Top: top, Below: below}
	if len(a.points) == 0 {
		return d
	}
	d.Any = true
	least, most := a.points[0].Value, a.points[0].Value
	for _, p := range a.points {
		least, most = min(least, p.Value), max(most, p.Value)
	}
	last := a.points[len(a.points)-1]
	d.First, d.Last = a.stamp(a.points[0].Time), a.stamp(last.Time)
	d.Least, d.Most, d.Now = a.unit.Text(a.in, least), a.unit.Text(a.in, most), a.unit.Text(a.in, last.Value)
	d.Values, d.Times = a.values(), a.times()
	d.Rows, d.Periods = a.rows()
	return d
}

// rows returns the points as a table. If there are too many, it has the greatest value of each period.
func (a *axes) rows() (rows []row, periods bool) {
	if len(a.points) <= maxRows {
		for _, p := range a.points {
			rows = append(rows, row{a.stamp(p.Time), a.unit.Text(a.in, p.Value)})
		}
		return rows, false
	}
	first := a.points[0].Time
	each := max(1, math.Ceil(seconds(first, a.points[len(a.points)-1].Time)/maxRows))
	period := func(p Point) float64 { return min(math.Floor(seconds(first, p.Time)/each), maxRows-1) }
	for rest := a.points; len(rest) > 0; {
		this, most := period(rest[0]), rest[0].Value
		for len(rest) > 0 && period(rest[0]) == this {
			most, rest = max(most, rest[0].Value), rest[1:]
		}
		begin := time.Unix(first.Unix()+int64(this*each), 0)
		rows = append(rows, row{a.stamp(begin), a.unit.Text(a.in, most)})
	}
	return rows, true
}

func (a *axes) stamp(t time.Time) string { return a.in.Date(texts.AMinute, t) }
