package web

import (
	"fmt"
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
	X            int
	Y, Height    string
	Title        string
	Value        uint64
	Unfinished   bool // the last step is not over
	At           time.Time
	Significance string
}

// newBars returns the chart of values by step. A step without a value is 0: nothing happened in it.
func newBars(label, noun string, values map[time.Time]uint64, from, to time.Time, step time.Duration) bars {
	chart := bars{From: from, To: to, Label: label}
	most := uint64(1)
	for _, v := range values {
		most = max(most, v)
	}
	chart.Top = number(most)
	for at := from; at.Before(to); at = at.Add(step) {
		v := values[at]
		height := float64(v) / float64(most) * chartHeight
		if v > 0 {
			height = max(height, 1.5) // one trace must be seen
		}
		chart.Bars = append(chart.Bars, bar{X: chart.Width, Y: unit(chartHeight - height), Height: unit(height), Value: v, At: at,
			Title: fmt.Sprintf("%s: %s", at.UTC().Format("15:04"), plural(v, noun)), Unfinished: at.Add(step).After(to)})
		chart.Width++
	}
	return chart
}

func unit(x float64) string { return fmt.Sprintf("%.2f", x) }
