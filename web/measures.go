package web

import (
	"fmt"
	"time"

	"github.com/plumbline/plumbline/web/rows"
)

// measure is one of the figures of AAP section 8.5: events among so many decisions, or a sum of so many.
type measure struct {
	name, label string
	of          func(m rows.Measured) (events float64, among uint64)
	mean        string // the unit of a mean; empty: the figure is a share
}

var measures = []measure{
	{"Denials", "of all decisions", func(m rows.Measured) (float64, uint64) { return float64(m.Denials), m.Traces }, ""},
	{"Escalations", "of all decisions", func(m rows.Measured) (float64, uint64) { return float64(m.Escalations), m.Traces }, ""},
	{"Not escalated", "of the actions outside the card", func(m rows.Measured) (float64, uint64) { return float64(m.Unescalated), m.Outside }, ""},
	{"Undeclared values", "of the decisions with a card", func(m rows.Measured) (float64, uint64) { return float64(m.Undeclared), m.WithCard }, ""},
	{"Errors", "of the decisions to act", func(m rows.Measured) (float64, uint64) { return float64(m.Errors), m.Acting }, ""},
	{"Cost", "of an execution", func(m rows.Measured) (float64, uint64) { return m.Cost, m.Executions }, "ct"},
	{"Confidence", "of a decision that states it", func(m rows.Measured) (float64, uint64) { return m.Confidence, m.Confident }, " "},
}

// text returns a value of the measure for people.
func (m measure) text(value float64) string {
	switch m.mean {
	case "":
		return percent(value)
	case " ":
		return fmt.Sprintf("%.2f", value)
	}
	return fmt.Sprintf("%.0f %s", value, m.mean)
}

// percent returns a share with two significant digits where it is small.
func percent(share float64) string {
	if share > 0 && share < .0995 {
		return fmt.Sprintf("%.1f %%", share*100)
	}
	return fmt.Sprintf("%.0f %%", share*100)
}

// newLine returns an empty chart of a span.
func newLine(s rows.Span, name, label string, spans []span) line {
	return line{Name: name, Label: label, Width: int(s.To.Sub(s.From) / s.Step), Spans: spans, From: s.From, To: s.To}
}

// measureCharts returns a chart for each measure that the traces or the baseline have.
func measureCharts(s rows.Span, measured []rows.Measured, expected rows.Measured, hasBaseline bool, spans []span) (charts []line) {
	for _, m := range measures {
		chart, values := newLine(s, m.name, m.label, spans), map[int64]float64{}
		var events, top float64
		var among uint64
		for _, step := range measured {
			e, n := m.of(step)
			if n == 0 {
				continue
			}
			events, among = events+e, among+n
			values[step.Step] = e / float64(n)
			top = max(top, e/float64(n))
			chart.Steps = append(chart.Steps, bar{X: int(step.Step), Title: fmt.Sprintf("%s: %s of %d", stepTime(s, step.Step), m.text(e/float64(n)), n)})
		}
		base, n := m.of(expected)
		if hasBaseline && n > 0 {
			base /= float64(n)
			top = max(top, base)
			chart.Usual = m.text(base)
		}
		if among == 0 {
			continue // the agent's traces do not have what is measured
		}
		chart.Now = m.text(events / float64(among))
		top = scale(top, m.mean != "")
		if chart.Usual != "" {
			chart.Marks = append(chart.Marks, mark{"baseline", level(base, top), "baseline " + chart.Usual})
		}
		chart.Top = m.text(top)
		chart.Paths = stretchesOf(values, chart.Width, top)
		charts = append(charts, chart)
	}
	return charts
}

// scale returns the top of a chart: of shares at least a tenth, so that noise looks small, and at most all.
func scale(top float64, mean bool) float64 {
	if mean {
		return max(top*1.1, 1e-9)
	}
	return min(1, max(.1, top*1.1))
}

// stepTime returns the beginning of a step.
func stepTime(s rows.Span, step int64) string {
	return s.From.Add(time.Duration(step) * s.Step).UTC().Format("2006-01-02 15:04")
}

// similarityChart returns the chart of the similarity to the baseline, with the threshold below which a trace is low.
func similarityChart(s rows.Span, points []rows.Point, spans []span) line {
	chart := newLine(s, "Similarity", "to the baseline (AAP section 8.2)", spans)
	mean, lowest := map[int64]float64{}, map[int64]float64{}
	var sum, threshold float64
	var compared uint64
	for _, p := range points {
		title := fmt.Sprintf("%s: %s", stepTime(s, p.Step), plural(p.Traces, "trace"))
		if p.Learning > 0 {
			chart.Spans = append(chart.Spans, span{Class: "learning", X: fmt.Sprint(p.Step), Width: "1", Title: ""})
			title += fmt.Sprintf(", %d of the baseline", p.Learning)
		}
		if p.Compared > 0 {
			mean[p.Step], lowest[p.Step] = p.Mean, p.Lowest
			sum, compared, threshold = sum+p.Mean*float64(p.Compared), compared+p.Compared, p.Threshold
			title += fmt.Sprintf(", mean %.3f, lowest %.3f, %d below %.2f", p.Mean, p.Lowest, p.Low, p.Threshold)
		}
		chart.Steps = append(chart.Steps, bar{X: int(p.Step), Title: title})
	}
	chart.Top = "1"
	if compared > 0 {
		chart.Now = fmt.Sprintf("%.3f", sum/float64(compared))
		chart.Marks = []mark{{"threshold", level(threshold, 1), fmt.Sprintf("threshold %.2f", threshold)}}
	}
	chart.Paths, chart.Lowest = stretchesOf(mean, chart.Width, 1), stretchesOf(lowest, chart.Width, 1)
	return chart
}
