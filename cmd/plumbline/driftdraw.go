package main

import (
	"fmt"
	"io"
	"strings"

	aapdrift "github.com/plumbline/plumbline/aap/drift"
	"github.com/plumbline/plumbline/pipeline/durable"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/schema"
)

// drawnPoints is the number of the newest points that drift explain draws.
const drawnPoints = 1000

// sparkOf returns the sparkline of a series, with the threshold of its newest point.
func sparkOf(r *store.DriftReport) *sparkline {
	opened := openings(r)
	s := &sparkline{}
	for _, p := range lastPoints(r) {
		point := sparkPoint{baseline: p.Status == string(aapdrift.StatusBaseline), drift: p.Status == string(aapdrift.StatusDrift)}
		if at := p.EventTime.UnixNano(); point.drift && opened[at] {
			point.alert = true
			delete(opened, at) // other traces may have the same time
		}
		if p.Similarity != nil {
			point.similarity, point.measured = *p.Similarity, true
		}
		s.points, s.threshold = append(s.points, point), p.Threshold
	}
	return s
}

// lastPoints returns the points that are drawn.
func lastPoints(r *store.DriftReport) []store.DriftPoint {
	return r.Points[max(0, len(r.Points)-drawnPoints):]
}

// openings returns the times at which alerts opened.
func openings(r *store.DriftReport) map[int64]bool {
	opened := map[int64]bool{}
	for i := range r.Alerts {
		opened[r.Alerts[i].OpenedAt.UnixNano()] = true
	}
	return opened
}

// writeDrawing writes a heading and the lines of a sparkline. It writes nothing without lines.
func writeDrawing(w io.Writer, heading string, lines []string) error {
	if len(lines) == 0 {
		return nil
	}
	_, err := fmt.Fprintf(w, "%s\n%s\n\n", heading, strings.Join(lines, "\n"))
	return err
}

// draw writes the drawing of the only series.
func (c *driftExplainCommand) draw(reports []store.DriftReport) error {
	if len(reports) != 1 {
		var cards []string
		for i := range reports {
			cards = append(cards, printable(reports[i].State.CardID))
		}
		return usagef("--svg draws one series, and agent %q has %d: choose one with --card, of %s",
			schema.Clip(c.Agent, schema.MaxIDBytes), len(reports), strings.Join(cards, ", "))
	}
	if err := durable.WriteFile(c.SVG, seriesChart(c.Agent, &reports[0]).svg(), 0o644); err != nil {
		return fmt.Errorf("write the drawing: %w", err)
	}
	return nil
}

// seriesChart draws the similarity of a series, its threshold, the baseline, where a condition is open,
// and the alerts.
func seriesChart(agent string, r *store.DriftReport) *chart {
	s := sparkOf(r)
	c := &chart{
		title: fmt.Sprintf("Similarity of %s under %s", printable(agent), printable(r.State.CardID)),
		x:     chartAxis{fmt.Sprintf("the newest %d points", len(s.points)), 1, float64(max(2, len(s.points)))},
		y:     chartAxis{"similarity to the baseline", 0, 1},
	}
	line := chartLine{name: "similarity"}
	for i, p := range s.points {
		x := float64(i + 1)
		if p.measured {
			line.points = append(line.points, chartPoint{x, p.similarity})
		}
		if p.alert {
			c.marks = append(c.marks, chartMark{"alert", x})
		}
	}
	c.lines = []chartLine{line}
	c.bands = append(bandsOf(s.points, "baseline", 2, func(p sparkPoint) bool { return p.baseline }),
		bandsOf(s.points, "drift", 1, func(p sparkPoint) bool { return p.drift })...)
	if s.threshold > 0 {
		c.thresholds = []chartThreshold{{fmt.Sprintf("threshold %g", s.threshold), s.threshold}}
	}
	return c
}

// bandsOf returns the bands of neighbouring points for which in holds.
func bandsOf(points []sparkPoint, name string, color int, in func(sparkPoint) bool) (bands []chartBand) {
	for i := 0; i < len(points); i++ {
		from := i
		for i < len(points) && in(points[i]) {
			i++
		}
		if i > from {
			bands = append(bands, chartBand{name, color, float64(from + 1), float64(i)})
		}
	}
	return bands
}
