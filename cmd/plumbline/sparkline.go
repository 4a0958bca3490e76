package main

import (
	"cmp"
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"
)

// sparkline draws a series of similarities in a few lines of text: the similarity of each column,
// which columns are below the threshold, and where alerts and windows are. If there are more
// points than columns, a column shows the least similarity of its points.
type sparkline struct {
	points    []sparkPoint
	threshold float64
}

type sparkPoint struct {
	similarity float64
	measured   bool // has a similarity: it is not part of the baseline, and not late
	baseline   bool
	drift      bool   // a condition is open, or a streak is sustained
	opens      bool   // an alert opens
	closes     bool   // an alert closes
	what       string // the alert says, where one opens or closes
}

// glyphs are the characters of a sparkline.
type glyphs struct {
	levels          []string // of similarity, from 0 to 1
	low             string
	opens, closes   string
	both            string // one alert opens and one closes in a column
	baseline, drift string
	none            string
}

var (
	blocks = glyphs{strings.Split("▁▂▃▄▅▆▇█", ""), "▾", "▲", "▽", "◆", "b", "━", " "}
	ascii  = glyphs{strings.Split("0123456789", ""), "v", "^", "$", "&", "b", "=", " "}
)

// glyphsOf returns block characters in a UTF-8 locale, and ASCII in others: there a level is the first
// decimal of the similarity.
func glyphsOf(getenv func(string) string) glyphs {
	locale := strings.ToLower(cmp.Or(getenv("LC_ALL"), getenv("LC_CTYPE"), getenv("LANG")))
	if strings.Contains(locale, "utf-8") || strings.Contains(locale, "utf8") {
		return blocks
	}
	return ascii
}

// columnsOf returns the width of a terminal, and 80 for any other output.
func columnsOf(to any) int {
	if file, is := to.(*os.File); is && isTerminal(to) {
		if conn, err := file.SyscallConn(); err == nil {
			columns := 0
			err = conn.Control(func(handle uintptr) { columns, _, _ = term.GetSize(int(handle)) })
			if err == nil && columns > 0 {
				return columns
			}
		}
	}
	return 80
}

// sparkLabels is the width of the labels before the columns, and leastColumns what a very narrow terminal
// gets nevertheless.
const (
	sparkLabels  = 14
	leastColumns = 10
)

// lines returns the rows of the drawing, of at most width characters. Rows that would be empty are left
// out.
func (s *sparkline) lines(width int, g glyphs) []string {
	columns := min(len(s.points), max(leastColumns, width-sparkLabels))
	rows := []struct {
		label string
		of    func(sparkPoint) string
	}{
		{"similarity", func(p sparkPoint) string {
			if !p.measured {
				return g.none
			}
			return g.levels[min(len(g.levels)-1, int(max(0, p.similarity)*float64(len(g.levels))))]
		}},
		{"below", func(p sparkPoint) string { return choose(p.measured && p.similarity < s.threshold, g.low, g.none) }},
		{"window", func(p sparkPoint) string { return choose(p.drift, g.drift, choose(p.baseline, g.baseline, g.none)) }},
		{"alert", func(p sparkPoint) string {
			return choose(p.opens && p.closes, g.both, choose(p.opens, g.opens, choose(p.closes, g.closes, g.none)))
		}},
	}
	var lines []string
	for _, row := range rows {
		var text strings.Builder
		for column := range columns {
			text.WriteString(row.of(s.column(column, columns)))
		}
		if shown := strings.TrimRight(text.String(), " "); shown != "" {
			lines = append(lines, "  "+row.label+strings.Repeat(" ", sparkLabels-2-len(row.label))+shown)
		}
	}
	return lines
}

// legend says what the characters of lines mean.
func (g glyphs) legend() string {
	return fmt.Sprintf("  %s baseline   %s alert open   %s below the threshold   %s alert opens   %s closes   %s both",
		g.baseline, g.drift, g.low, g.opens, g.closes, g.both)
}

// column summarizes the points of one column.
func (s *sparkline) column(n, columns int) (sum sparkPoint) {
	for _, p := range s.points[n*len(s.points)/columns : (n+1)*len(s.points)/columns] {
		if p.measured && (!sum.measured || p.similarity < sum.similarity) {
			sum.similarity, sum.measured = p.similarity, true
		}
		sum.baseline, sum.drift = sum.baseline || p.baseline, sum.drift || p.drift
		sum.opens, sum.closes = sum.opens || p.opens, sum.closes || p.closes
	}
	return sum
}

func choose(first bool, a, b string) string {
	if first {
		return a
	}
	return b
}
