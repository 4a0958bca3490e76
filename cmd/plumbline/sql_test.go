package main

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestSplitStatements(t *testing.T) {
	for text, want := range map[string][]string{ // the last one is the rest
		"":                           {""},
		" ;; ":                       {""},
		"SELECT 1":                   {"SELECT 1"},
		"SELECT 1;":                  {"SELECT 1", ""},
		"SELECT 1; SELECT 2":         {"SELECT 1", "SELECT 2"},
		"SELECT ';' ; -- the end":    {"SELECT ';'", ""},
		"-- only; a comment\n":       {""},
		"-- first;\nSELECT 1;":       {"-- first;\nSELECT 1", ""},
		"/* a; b */ SELECT 1; # x ;": {"/* a; b */ SELECT 1", ""},
		"SELECT 'it''s; \\';' ; x":   {`SELECT 'it''s; \';'`, "x"},
		"SELECT `a;b`, \";\";":       {"SELECT `a;b`, \";\"", ""},
		"SELECT 1; SELECT 'open ;":   {"SELECT 1", "SELECT 'open ;"},
		"SELECT 1 /* open ;":         {"SELECT 1 /* open ;"},
		"SELECT \"open ; 'x'":        {"SELECT \"open ; 'x'"},
		"SELECT 1 FORMAT JSON;":      {"SELECT 1 FORMAT JSON", ""},
		"SELECT\n1\n;\nSELECT\n2\n;": {"SELECT\n1", "SELECT\n2", ""},
	} {
		statements, rest := splitStatements(text)
		var got []string
		for _, statement := range append(statements, rest) {
			got = append(got, statement.text)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// A statement is sent at its place in the text, so that ClickHouse's positions are those of the text.
func TestPlaceOfStatements(t *testing.T) {
	const text = "-- two queries\nSELECT 1;\n\n  /* é */ SELECT\n 2; SELECT é"
	statements, rest := splitStatements(text)
	for i, want := range []string{"-- two queries\nSELECT 1", "\n\n\n  /* é */ SELECT\n 2", "\n\n\n\n    SELECT é"} {
		if got := append(statements, rest)[i].placed(); got != want {
			t.Errorf("statement %d is sent as %q, want %q", i, got, want)
		}
	}
}

func TestCompletion(t *testing.T) {
	names := []string{"agent_id", "agents_daily", "agents_now", "selected", "time", "traces"}
	for _, c := range []struct {
		line string // the cursor is at |
		want string // the lines that it may become
	}{
		{"SELECT agents_|", "SELECT agents_daily SELECT agents_now"},
		{"SELECT Agents_N|, x", "SELECT agents_now, x"},
		{"(tr|", "(traces"},
		{"SELECT time|agent_id", "SELECT time agent_id"},
		{"FROM|problems", "FROM problems"},
		{"Select|x", "Select x"},
		{"selecte|", "selected"},
		{"|x", " x"},
		{"é|x", "é x"},
	} {
		before, after, _ := strings.Cut(c.line, "|")
		head, words, tail := completed(names, before+after, utf8.RuneCountInString(before))
		var lines []string
		for _, word := range words {
			lines = append(lines, head+word+tail)
		}
		if got := strings.Join(lines, " "); got != c.want {
			t.Errorf("%s becomes %q, want %q", c.line, got, c.want)
		}
	}
}

// What a trace contains cannot control the terminal, however the text is divided.
func TestControlWriter(t *testing.T) {
	const text, want = "ä\t│\x1b[31mred\x07\r\n\x7f\u009b\xff\xc3(é", `ä	│\x1b[31mred\x07\x0d` + "\n" + `\x7f\u009b\xff\xc3(é`
	for size := 1; size <= len(text); size++ {
		var shown strings.Builder
		w := &controlWriter{w: &shown}
		for rest := text; rest != ""; {
			n := min(size, len(rest))
			if _, err := w.Write([]byte(rest[:n])); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if shown.String() != want {
			t.Errorf("in pieces of %d: %q, want %q", size, shown.String(), want)
		}
	}
}
