package web

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/plumbline/plumbline/web/rows"
)

// counted is a sum of figures of so many decisions, or events among them.
type counted struct {
	sum float64
	of  uint64
}

func (c counted) mean() float64 { return c.sum / float64(c.of) }

// measure is one of the figures of AAP section 8.5 within each step, and in the baseline.
type measure struct {
	name, label string
	unit        string // of a mean; a blank: it has none. Empty: the figure is a share
	steps       map[int64]counted
	expected    counted
}

// add adds a figure to a step, or to the baseline.
func (m *measure) add(step int64, inBaseline bool, c counted) {
	if inBaseline {
		m.expected = counted{m.expected.sum + c.sum, m.expected.of + c.of}
		return
	}
	if m.steps == nil {
		m.steps = map[int64]counted{}
	}
	before := m.steps[step]
	m.steps[step] = counted{before.sum + c.sum, before.of + c.of}
}

// free reports whether every figure is 0.
func (m *measure) free() bool {
	for _, step := range m.steps {
		if step.sum != 0 {
			return false
		}
	}
	return m.expected.sum == 0
}

// countedMeasures are those that the database counts.
var countedMeasures = []struct {
	name, label, unit string
	of                func(m rows.Measured) (events float64, among uint64)
}{
	{"Denials", "of all decisions", "", func(m rows.Measured) (float64, uint64) { return float64(m.Denials), m.Traces }},
	{"Escalations", "of all decisions", "", func(m rows.Measured) (float64, uint64) { return float64(m.Escalations), m.Traces }},
	{"Not escalated", "of the actions outside the card", "", func(m rows.Measured) (float64, uint64) { return float64(m.Unescalated), m.Outside }},
	{newTools, "decisions whose action neither baseline nor card names", "", func(m rows.Measured) (float64, uint64) { return float64(m.NewTools), m.WithCard }},
	{"Undeclared values", "of the decisions with a card", "", func(m rows.Measured) (float64, uint64) { return float64(m.Undeclared), m.WithCard }},
	{"Errors", "of the actions whose execution is known", "", func(m rows.Measured) (float64, uint64) { return float64(m.Errors), m.Acting }},
	{cost, "of an execution, in cents", "ct", func(m rows.Measured) (float64, uint64) { return m.Cost, m.Executions }},
	{"Confidence", "of a decision that states it", " ", func(m rows.Measured) (float64, uint64) { return m.Confidence, m.Confident }},
}

const (
	newTools = "New tools"
	cost     = "Cost"
)

const (
	// mostValues is how many declared values have a chart.
	mostValues = 8
	// keptNames is how many names a baseline of sessions keeps (docs/DRIFT.md). Where it has so many, it may lack some
	// of its own, and drift measures no new tools.
	keptNames = 48
)

// comparedWith returns what a baseline has, and whether new tools can be told from its own.
func comparedWith(b *rows.Baseline) (with rows.Compared, tools bool) {
	if b == nil {
		return with, false
	}
	for _, feature := range b.Features {
		value, isValue := strings.CutPrefix(feature, "value:")
		switch {
		case isValue && !strings.HasPrefix(value, "sha256:"): // a long name is not kept
			with.Values = append(with.Values, value)
		case strings.HasPrefix(feature, "action_name:"):
			with.Tools = append(with.Tools, feature)
		}
	}
	slices.Sort(with.Values)
	with.Values = with.Values[:min(len(with.Values), keptNames)]
	ofSessions := b.Mode == "sessions" || b.Mode == "pinned"
	return with, len(b.Features) > 0 && !(ofSessions && len(b.Features) >= keptNames)
}

// measuresOf returns the measures that the database counts: the fixed ones, and one for each declared value.
func measuresOf(measured []rows.Measured, expected rows.Measured, with rows.Compared, tools bool) (all []measure) {
	for _, c := range countedMeasures {
		if c.name == newTools && !tools {
			continue
		}
		m := measure{name: c.name, label: c.label, unit: c.unit}
		for _, step := range measured {
			sum, of := c.of(step)
			m.add(step.Step, false, counted{sum, of})
		}
		sum, of := c.of(expected)
		m.add(0, true, counted{sum, of})
		if c.name == cost && m.free() {
			continue // the database has 0 where a trace states no cost
		}
		all = append(all, m)
	}
	return append(all, valuesOf(measured, expected, with)...)
}

// valuesOf returns a measure for each of the first declared values that the baseline applies.
func valuesOf(measured []rows.Measured, expected rows.Measured, with rows.Compared) (all []measure) {
	for i, value := range with.Values {
		if len(expected.Applied) <= i || expected.Applied[i] == 0 || len(all) == mostValues {
			continue
		}
		m := measure{name: "Value " + value, label: "of the decisions with a card that are no denial", expected: counted{float64(expected.Applied[i]), expected.Deciding}}
		for _, step := range measured {
			m.add(step.Step, false, counted{float64(step.Applied[i]), step.Deciding})
		}
		all = append(all, m)
	}
	return all
}

// text returns a value of the measure for people.
func (m *measure) text(value float64) string {
	switch m.unit {
	case "":
		return percent(value)
	case " ":
		return fmt.Sprintf("%.2f", value)
	}
	return digits(value) + " " + m.unit
}

// withoutUnit returns a value beside another one that has the unit.
func (m *measure) withoutUnit(value float64) string {
	return strings.TrimSuffix(m.text(value), " "+m.unit)
}

// digits returns a number with two significant digits at least.
func digits(value float64) string {
	switch {
	case value >= 9.95 || value == 0:
		return number(uint64(math.Round(value)))
	case value >= .995:
		return fmt.Sprintf("%.1f", value)
	}
	return fmt.Sprintf("%.2g", value)
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

// measureCharts returns a chart for each measure that the agent's traces of the span have.
func measureCharts(s rows.Span, all []measure, spans []span) (charts []line) {
	for i := range all {
		if chart, drawn := all[i].chart(s, spans); drawn {
			charts = append(charts, chart)
		}
	}
	return charts
}

// chart draws the measure. drawn is false where no decision of the span has what is measured.
func (m *measure) chart(s rows.Span, spans []span) (chart line, drawn bool) {
	chart = newLine(s, m.name, m.label, spans)
	values, sum, top := map[int64]float64{}, counted{}, 0.
	for step := range int64(chart.Width) {
		c := m.steps[step]
		if c.of == 0 {
			continue
		}
		sum = counted{sum.sum + c.sum, sum.of + c.of}
		values[step] = c.mean()
		top = max(top, c.mean())
		chart.Steps = append(chart.Steps, bar{X: int(step), Title: fmt.Sprintf("%s: %s of %d", stepTime(s, step), m.text(c.mean()), c.of)})
	}
	if sum.of == 0 {
		return chart, false
	}
	chart.Now = m.text(sum.mean())
	if m.expected.of > 0 {
		chart.Usual = m.withoutUnit(m.expected.mean())
		top = max(top, m.expected.mean())
	}
	top = m.scale(top)
	if m.expected.of > 0 {
		chart.Marks = append(chart.Marks, mark{"baseline", level(m.expected.mean(), top), "baseline " + chart.Usual})
	}
	chart.Top = m.withoutUnit(top)
	chart.Paths = stretchesOf(values, chart.Width, top)
	return chart, true
}

// scale returns the top of a chart, which is a number that text writes exactly: of shares at least a tenth, so that noise looks
// small, and at most all. A score of nearly 1 is one of those that end there.
func (m *measure) scale(top float64) float64 {
	above := top * 1.1 * (1 - 1e-9) // without what binary fractions add
	switch {
	case top == 0 && m.unit != "":
		return 1
	case m.unit == "":
		return min(1, max(.1, math.Ceil(above*100)/100))
	case m.unit == " " && top <= 1:
		return min(1, math.Ceil(above*100)/100)
	}
	second := math.Pow(10, math.Floor(math.Log10(above))-1) // its second digit
	return math.Ceil(above/second) * second
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
