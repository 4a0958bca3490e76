package web

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// A chart is SVG that a template draws from these figures: the server computes every position, so there is no
// script and no style in it. Its height is 100 units; its width is that of the page.
const chartHeight = 100

// bars is a chart of one bar for each step of time.
type bars struct {
	Bars     []bar
	Width    int // units, one for each step
	Top      string
	From, To time.Time
	Label    string // what the chart shows, for those who do not see it
}

type bar struct {
	X          int
	Y, Height  string
	Title      string
	Unfinished bool // the last step is not over
}

// newBars returns the chart of values by step. A step without a value is 0: nothing happened in it.
func newBars(label, noun string, values map[time.Time]uint64, from, to time.Time, step time.Duration) bars {
	chart := bars{From: from, To: to, Label: label}
	most := uint64(1)
	for _, v := range values {
		most = max(most, v)
	}
	chart.Top = number(slices.Max(append(slices.Collect(maps.Values(values)), 0)))
	for at := from; at.Before(to); at = at.Add(step) {
		v := values[at]
		height := float64(v) / float64(most) * chartHeight
		if v > 0 {
			height = max(height, 1.5) // one trace must be seen
		}
		chart.Bars = append(chart.Bars, bar{X: chart.Width, Y: unit(chartHeight - height), Height: unit(height),
			Title: fmt.Sprintf("%s: %s", at.UTC().Format("15:04"), plural(v, noun)), Unfinished: at.Add(step).After(to)})
		chart.Width++
	}
	return chart
}

func unit(x float64) string { return fmt.Sprintf("%.2f", x) }

// line is a chart of one figure over time: a level for each step, and nothing where there is no figure.
type line struct {
	Name, Label string
	Width       int      // units, one for each step
	Paths       []string // points of the level, as a polyline has them; one for each stretch without a gap
	Lowest      []string // the same of a second figure
	Marks       []mark   // levels over the whole width
	Spans       []span   // times that are set off
	Steps       []bar    // what each step says when it is pointed at
	Now, Usual  string   // the figure over all steps, and in the baseline
	Top         string
	From, To    time.Time
}

// Shades reports whether a time of this class is set off.
func (l *line) Shades(class string) bool {
	return slices.ContainsFunc(l.Spans, func(s span) bool { return s.Class == class })
}

// mark is a level with a name: baseline or threshold.
type mark struct{ Class, Y, Name string }

// span is a time, as part of the width.
type span struct{ Class, X, Width, Title string }

// level returns the height of a value above 0, where the chart ends at top.
func level(value, top float64) string {
	return unit(chartHeight - min(1, max(0, value/top))*(chartHeight-4) - 2)
}

// stretchesOf returns the stretches of values by step; steps without a value are gaps.
func stretchesOf(values map[int64]float64, steps int, top float64) (stretches []string) {
	var points strings.Builder
	for i := range int64(steps) + 1 {
		value, ok := values[i]
		if ok && i < int64(steps) {
			fmt.Fprintf(&points, "%d,%s %d,%s ", i, level(value, top), i+1, level(value, top))
		} else if points.Len() > 0 {
			stretches = append(stretches, strings.TrimSpace(points.String()))
			points.Reset()
		}
	}
	return stretches
}
