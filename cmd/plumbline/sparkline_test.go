package main

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// drawn is a series of four traces of a baseline, three usual, three low ones of which the last
// raises an alert, and a recovery, which closes it.
func drawn() *sparkline {
	s := &sparkline{threshold: 0.3}
	for range 4 {
		s.points = append(s.points, sparkPoint{baseline: true})
	}
	for _, similarity := range []float64{0.9, 1, 0.52, 0.2, 0.1, 0, 0.95} {
		s.points = append(s.points, sparkPoint{similarity: similarity, measured: true})
	}
	s.points[9].drift, s.points[9].opens, s.points[10].closes = true, true, true
	return s
}

// A sparkline shows similarity, the columns below the threshold, windows and alerts, with blocks or in
// ASCII.
func TestSparkline(t *testing.T) {
	for _, want := range []struct {
		glyphs glyphs
		text   string
	}{
		{blocks, "  similarity      ██▅▂▁▁█\n  below              ▾▾▾\n  window      bbbb     ━\n  alert                ▲▽"},
		{ascii, "  similarity      9952109\n  below              vvv\n  window      bbbb     =\n  alert                ^$"},
	} {
		if got := strings.Join(drawn().lines(80, want.glyphs), "\n"); got != want.text {
			t.Errorf("drawn:\n%s\nwant:\n%s", got, want.text)
		}
	}
}

// On a narrow terminal a column shows the least similarity of its points, and no line is wider than the
// terminal.
func TestSparklineOnANarrowTerminal(t *testing.T) {
	s := &sparkline{threshold: 0.3}
	for i := range 1000 {
		s.points = append(s.points, sparkPoint{similarity: 0.9, measured: true, opens: i == 503})
	}
	s.points[500].similarity = 0.1
	lines := s.lines(34, ascii)
	for _, line := range lines {
		if n := utf8.RuneCountInString(line); n > 34 {
			t.Errorf("%d characters: %q", n, line)
		}
	}
	want := fmt.Sprintf("  similarity  %s1%s", strings.Repeat("9", 10), strings.Repeat("9", 9))
	if len(lines) != 3 || lines[0] != want || strings.IndexByte(lines[2], '^') != sparkLabels+10 {
		t.Errorf("drawn:\n%s", strings.Join(lines, "\n"))
	}
	if lines := s.lines(3, ascii); len(lines[0]) != sparkLabels+leastColumns {
		t.Errorf("%q on a terminal of three columns", lines[0])
	}
	if lines := (&sparkline{}).lines(80, ascii); len(lines) != 0 {
		t.Errorf("%q of no point", lines)
	}
}

// Blocks are drawn in a UTF-8 locale only. LC_ALL overrides the others.
func TestGlyphsFollowTheLocale(t *testing.T) {
	for _, c := range []struct {
		variables map[string]string
		blocks    bool
	}{
		{map[string]string{"LANG": "en_US.UTF-8"}, true},
		{map[string]string{"LANG": "C.utf8"}, true},
		{map[string]string{"LC_ALL": "C", "LANG": "en_US.UTF-8"}, false},
		{map[string]string{"LC_CTYPE": "de_DE.UTF-8", "LANG": "C"}, true},
		{map[string]string{"LANG": "en_US.ISO-8859-1"}, false},
		{nil, false},
	} {
		got := glyphsOf(func(name string) string { return c.variables[name] })
		if (got.low == blocks.low) != c.blocks {
			t.Errorf("%v: blocks are drawn: %t", c.variables, !c.blocks)
		}
	}
}
