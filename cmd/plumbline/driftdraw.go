package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	aapdrift "github.com/plumbline/plumbline/aap/drift"
	"github.com/plumbline/plumbline/pipeline/durable"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/schema"
)

// drawnPoints is the number of the newest points that drift explain draws.
const drawnPoints = 1000

// sparkOf returns the sparkline of a series, with the threshold of its newest point.
func sparkOf(r *store.DriftReport) *sparkline {
	opened, closed := changes(r)
	s := &sparkline{}
	for _, p := range lastPoints(r) {
		point := sparkPoint{baseline: p.Status == string(aapdrift.StatusBaseline), drift: p.Status == string(aapdrift.StatusDrift)}
		at := p.EventTime.UnixNano()
		if point.opens = point.drift && opened[at] != ""; point.opens {
			point.what = opened[at]
			delete(opened, at) // other traces may have the same time
		}
		if point.closes = !point.drift && closed[at] != ""; point.closes {
			point.what = closed[at]
			delete(closed, at)
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

// changes returns the times at which alerts opened and closed, with what the alerts say.
func changes(r *store.DriftReport) (opened, closed map[int64]string) {
	opened, closed = map[int64]string{}, map[int64]string{}
	for i := range r.Alerts {
		a := &r.Alerts[i]
		opened[a.OpenedAt.UnixNano()] = "opened: " + strings.Join(a.Measures, ", ")
		if a.ClosedAt.IsZero() {
			opened[a.OpenedAt.UnixNano()] += ". " + a.Summary
		} else {
			closed[a.ClosedAt.UnixNano()] = "closed. " + a.Summary
		}
	}
	return opened, closed
}

// drawnLines returns the drawing of a series with a heading and a legend. It returns nothing where there are
// no points.
func drawnLines(r *store.DriftReport, columns int, g glyphs) []string {
	s, points := sparkOf(r), lastPoints(r)
	lines := s.lines(columns, g)
	if len(lines) == 0 {
		return nil
	}
	heading := fmt.Sprintf("Similarity of the newest %d points, %s to %s; threshold %g",
		len(points), points[0].EventTime.Format(time.RFC3339), points[len(points)-1].EventTime.Format(time.RFC3339), s.threshold)
	return append(append([]string{heading}, lines...), g.legend(), "")
}

// writeLines writes lines of text.
func writeLines(w io.Writer, lines []string) error {
	for _, line := range lines {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
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

// mostName is how many bytes of a name fit twice above the plot, and mostEntry how many of an alert fit
// into the legend.
const mostName, mostEntry = 48, 30

// seriesChart draws the similarity of a series, its threshold, the baseline, where a condition is open,
// and the alerts.
func seriesChart(agent string, r *store.DriftReport) *chart {
	s := sparkOf(r)
	c := &chart{
		title: fmt.Sprintf("Similarity of %s under %s", printable(schema.Clip(agent, mostName)), printable(schema.Clip(r.State.CardID, mostName))),
		x:     chartAxis{fmt.Sprintf("the newest %d points", len(s.points)), 1, float64(max(2, len(s.points)))},
		y:     chartAxis{"similarity to the baseline", 0, 1},
	}
	line := chartLine{name: "similarity"}
	for i, p := range s.points {
		x := float64(i + 1)
		if p.measured {
			line.points = append(line.points, chartPoint{x, p.similarity})
		}
		if p.opens {
			c.marks = append(c.marks, chartMark{name: schema.Clip(p.what, mostEntry), note: p.what, x: x})
		}
		if p.closes {
			c.marks = append(c.marks, chartMark{name: "closed", note: p.what, x: x, dashed: true})
		}
	}
	c.lines = []chartLine{line}
	c.bands = append(bandsOf(s.points, "baseline", 2, func(p sparkPoint) bool { return p.baseline }),
		bandsOf(s.points, "alert open", 1, func(p sparkPoint) bool { return p.drift })...)
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
