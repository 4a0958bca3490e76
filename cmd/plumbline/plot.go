package main

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// chart is a drawing of lines over a horizontal axis, with thresholds, bands and marks.
type chart struct {
	title      string
	x, y       chartAxis
	lines      []chartLine
	thresholds []chartThreshold
	bands      []chartBand
	marks      []chartMark
}

// chartAxis is a linear axis.
type chartAxis struct {
	label    string
	from, to float64
}

// chartLine joins points, in order. Lines of the same color are told apart by dashes.
type chartLine struct {
	name   string
	color  int // of the palette
	dashed bool
	points []chartPoint
}

type chartPoint struct{ x, y float64 }

// chartThreshold is a horizontal line with a name.
type chartThreshold struct {
	name string
	y    float64
}

// chartBand is a vertical band from one place of the horizontal axis to another.
type chartBand struct {
	name     string
	color    int
	from, to float64
}

// chartMark is a vertical line. note is shown where the pointer rests on it.
type chartMark struct {
	name   string
	note   string
	x      float64
	dashed bool
}

// palette has colors that are told apart by people who do not see all of them (Okabe and Ito).
var palette = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"}

// darkStyle has the colors on a dark background. A viewer without style sheets draws the light ones.
const darkStyle = `<style>@media (prefers-color-scheme: dark) {
.paper{fill:#1b1b1b} .ink{fill:#dddddd} .axis{stroke:#aaaaaa} .grid{stroke:#3a3a3a} .threshold{stroke:#aaaaaa} .mark{stroke:#ff7070}
.line0{stroke:#56b4e9} .line1{stroke:#ff8c42} .line2{stroke:#2fc79a} .band0{fill:#56b4e9} .band1{fill:#ff8c42} .band2{fill:#2fc79a}
}</style>`

// The places of a chart, in pixels.
const (
	chartWidth, chartHeight = 960, 420
	chartLeft, chartRight   = 64, 700 // of the plot; the legend is right of it
	chartTop, chartBottom   = 48, 364
)

// svg returns the drawing as one SVG document. Names of others cannot break it.
func (c *chart) svg() []byte {
	d := &drawing{chart: c}
	d.add(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`,
		chartWidth, chartHeight, chartWidth, chartHeight)
	d.add(`<title>%s</title>`, xmlText(c.title))
	d.add(darkStyle)
	d.add(`<rect width="%d" height="%d" fill="#ffffff" class="paper"/>`, chartWidth, chartHeight)
	d.text(chartLeft, 24, "start", "15", c.title)
	for _, b := range c.bands {
		from, to := d.px(b.from), d.px(b.to)
		d.add(`<rect x="%s" y="%d" width="%s" height="%d" %s/>`, pixels(from), chartTop, pixels(max(1, to-from)), chartBottom-chartTop, b.style())
	}
	d.axes()
	for _, t := range c.thresholds {
		d.line(chartLeft, d.py(t.y), chartRight, d.py(t.y), thresholdStyle)
	}
	for _, m := range c.marks {
		d.add(`<g><title>%s</title>`, xmlText(cmp.Or(m.note, m.name)))
		d.line(d.px(m.x), chartTop, d.px(m.x), chartBottom, m.style())
		d.add(`</g>`)
	}
	for _, l := range c.lines {
		d.polyline(&l)
	}
	d.legend()
	d.add(`</svg>`)
	return d.Bytes()
}

// drawing is the text of a chart.
type drawing struct {
	bytes.Buffer
	*chart
	legends int // lines of the legend so far
}

func (d *drawing) add(format string, args ...any) {
	fmt.Fprintf(&d.Buffer, format+"\n", args...)
}

// px and py return the pixel of a value, inside the plot.
func (d *drawing) px(x float64) float64 { return place(x, d.x, chartLeft, chartRight) }

func (d *drawing) py(y float64) float64 { return place(y, d.y, chartBottom, chartTop) }

func place(v float64, a chartAxis, first, last float64) float64 {
	if a.to <= a.from || math.IsNaN(v) {
		return first
	}
	return first + (last-first)*min(1, max(0, (v-a.from)/(a.to-a.from)))
}

// axes draws both axes, each with a tick at round values.
func (d *drawing) axes() {
	for _, v := range ticks(d.x) {
		d.line(d.px(v), chartBottom, d.px(v), chartBottom+5, axisStyle)
		d.text(d.px(v), chartBottom+20, "middle", "12", round(v))
	}
	for _, v := range ticks(d.y) {
		d.line(chartLeft, d.py(v), chartRight, d.py(v), `stroke="#e6e6e6" class="grid"`)
		d.text(chartLeft-8, d.py(v)+4, "end", "12", round(v))
	}
	d.line(chartLeft, chartBottom, chartRight, chartBottom, axisStyle)
	d.line(chartLeft, chartTop, chartLeft, chartBottom, axisStyle)
	d.text((chartLeft+chartRight)/2, chartBottom+42, "middle", "12", d.x.label)
	d.text(chartLeft, chartTop-8, "start", "12", d.y.label)
}

// ticks returns round values of an axis, about six.
func ticks(a chartAxis) (values []float64) {
	if a.to <= a.from {
		return []float64{a.from}
	}
	step := math.Pow(10, math.Floor(math.Log10((a.to-a.from)/6)))
	for _, factor := range []float64{1, 2, 5, 10} {
		if (a.to-a.from)/(step*factor) <= 6 {
			step *= factor
			break
		}
	}
	for n := math.Ceil(a.from / step); n*step <= a.to+step/1e6; n++ {
		values = append(values, n*step)
	}
	return values
}

func (d *drawing) line(x1, y1, x2, y2 float64, style string) {
	d.add(`<line x1="%s" y1="%s" x2="%s" y2="%s" %s/>`, pixels(x1), pixels(y1), pixels(x2), pixels(y2), style)
}

func (d *drawing) text(x, y float64, anchor, size, text string) {
	d.add(`<text x="%s" y="%s" text-anchor="%s" font-size="%s" fill="#222222" class="ink">%s</text>`, pixels(x), pixels(y), anchor, size, xmlText(text))
}

func (d *drawing) polyline(l *chartLine) {
	var points strings.Builder
	for _, p := range l.points {
		fmt.Fprintf(&points, "%s,%s ", pixels(d.px(p.x)), pixels(d.py(p.y)))
	}
	d.add(`<polyline points="%s" fill="none" stroke-width="1.5" %s/>`, strings.TrimSpace(points.String()), l.style())
}

func (l *chartLine) style() string {
	return fmt.Sprintf(`stroke="%s" class="line%d"`, colorOf(l.color), l.color%len(palette)) + dashes(l.dashed)
}

func (b *chartBand) style() string {
	return fmt.Sprintf(`fill="%s" fill-opacity="0.15" class="band%d"`, colorOf(b.color), b.color%len(palette))
}

func (m *chartMark) style() string {
	return `stroke="#cc0000" stroke-width="1.5" class="mark"` + dashes(m.dashed)
}

func dashes(dashed bool) string { return choose(dashed, ` stroke-dasharray="4 3"`, "") }

// The styles of axes and thresholds.
const (
	axisStyle      = `stroke="#333333" class="axis"`
	thresholdStyle = `stroke="#555555" stroke-dasharray="6 4" class="threshold"`
)

// mostLegends is how many entries of a legend fit beside the plot.
const mostLegends = 16

// legend names lines, thresholds, bands and marks. Those with the same name are named once, and what
// does not fit is left out.
func (d *drawing) legend() {
	named := map[string]bool{}
	entry := func(name string, draw func(x, y float64)) {
		if name == "" || named[name] || d.legends == mostLegends {
			return
		}
		named[name] = true
		y := float64(chartTop + 16 + 20*d.legends)
		draw(chartRight+16, y)
		d.text(chartRight+52, y+4, "start", "12", name)
		d.legends++
	}
	for _, l := range d.lines {
		entry(l.name, func(x, y float64) { d.line(x, y, x+28, y, l.style()+` stroke-width="2"`) })
	}
	for _, t := range d.thresholds {
		entry(t.name, func(x, y float64) { d.line(x, y, x+28, y, thresholdStyle) })
	}
	for _, b := range d.bands {
		entry(b.name, func(x, y float64) {
			d.add(`<rect x="%s" y="%s" width="28" height="12" %s/>`, pixels(x), pixels(y-6), b.style())
		})
	}
	for _, m := range d.marks {
		entry(m.name, func(x, y float64) { d.line(x+14, y-7, x+14, y+7, m.style()) })
	}
}

func colorOf(n int) string { return palette[n%len(palette)] }

// pixels formats a coordinate with one decimal.
func pixels(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }

// round formats the value of a tick.
func round(v float64) string { return strconv.FormatFloat(math.Round(v*1e6)/1e6, 'g', -1, 64) }

// xmlText returns a text as it is written between tags. Characters that XML does not have are replaced.
func xmlText(s string) string {
	var b strings.Builder
	if err := xml.EscapeText(&b, []byte(s)); err != nil {
		panic(err) // a strings.Builder takes every text
	}
	return b.String()
}
