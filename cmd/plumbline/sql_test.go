package main

import (
	"slices"
	"strings"
	"testing"
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
		if got := append(statements, rest); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
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
