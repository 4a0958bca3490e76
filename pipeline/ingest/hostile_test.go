package ingest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// repeated returns a JSON array with n copies of a text.
func repeated(n int, element string) string {
	return "[" + strings.TrimSuffix(strings.Repeat(element+",", n), ",") + "]"
}

// TestHostileTracesDoNotAffectOtherLines checks that each hostile line is refused with its
// faults and stored as a dead letter, and that every line before and after it is stored.
func TestHostileTracesDoNotAffectOtherLines(t *testing.T) {
	r := start(t)
	good := trace("a", "x")
	edit := func(old, by string) string { return strings.Replace(good, old, by, 1) }
	parameters := func(value string) string { return edit(`"category"`, `"parameters":{"n":`+value+`},"category"`) }
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	hostile := []struct{ line, pointer, message string }{
		{edit("12:30:00Z", "12:30:00"), "/timestamp", "RFC 3339 time with a zone"},
		{edit("2026-01-31T12:30:00Z", "0001-01-01T00:00:00Z"), "/timestamp", "zero time"},
		{edit("2026-01-31", "9999-12-31"), "/timestamp", "outside 1970..2105"},
		{edit(`"x"`, `"`+strings.Repeat("x", 700_000)+`"`), "/trace_id", "at most 512"},
		{edit(`[{"option_id":"a","description":"search"}]`, repeated(10_000, `{"option_id":"a","description":""}`)), "/decision/alternatives_considered/1/option_id", "earlier alternative"},
		{parameters("1e999"), "/action/parameters/n", "64-bit float"},
		{parameters("NaN"), "/action/parameters/n", "invalid character 'N'"},
		{parameters(deep(63)), "/action/parameters/n", "deeper than 64"},
		{parameters(deep(20_000)), "", "exceeded max depth"},
		{parameters(`"\ud800"`), "/action/parameters/n", "surrogate"},
		{parameters("\"\x00\""), "/action/parameters/n", `'\x00'`},
		{parameters("\"\xff\""), "/action/parameters/n", "UTF-8"},
		{"\ufeff" + good, "", `'\ufeff'`},
	}
	odd := []string{ // these have no faults
		trace("a", "its own prior", `"context":{"prior_trace_ids":["its own prior","of somebody else","\u0000"]}`),
		trace("a", "in a circle", `"context":{"prior_trace_ids":["its own prior","in a circle"]}`),
		trace("a", "values", `"pad":`+repeated(100_000, `"v"`)),
		strings.Replace(trace("a", "many values"), `["honesty"]`, repeated(100_000, `"v"`), 1),
		trace("a", "answered in the year 9999", `"escalation":{"principal_response":{"decision":"approved","timestamp":"9999-12-31T23:59:59Z"}}`),
		trace("a", "a long text", `"context":{"note":"`+strings.Repeat("a", 700_000)+`"}`),
		trace("a", "at the limit of depth", `"deep":`+deep(63)),
	}
	var lines []string
	for i, h := range hostile {
		lines = append(lines, h.line, trace("a", fmt.Sprint("good ", i)))
	}
	answer := r.post(body(append(lines, odd...)...))
	outcomes := answer.lines(t)
	if answer.code != http.StatusMultiStatus || len(outcomes) != len(lines)+len(odd) {
		t.Fatalf("%d, %d outcomes", answer.code, len(outcomes))
	}
	for i, outcome := range outcomes {
		if i >= len(lines) || i%2 == 1 {
			if outcome.Status != "accepted" {
				t.Errorf("valid line %d: %s %.300v", i+1, outcome.Status, outcome.Faults)
			}
			continue
		}
		h := hostile[i/2]
		if outcome.Status != "refused" || len(outcome.Faults) == 0 || !strings.HasPrefix(outcome.Faults[0].Pointer, h.pointer) ||
			!strings.Contains(outcome.Faults[0].Message, h.message) || len(outcome.Faults[0].Message) > 300 {
			t.Errorf("line %d: %s %.300v, want %s: %s", i+1, outcome.Status, outcome.Faults, h.pointer, h.message)
		}
	}
	r.stored(uint64(len(hostile) + len(odd)))
	if letters := r.letters(len(hostile)); letters[0].Stage != stageName {
		t.Errorf("dead letters of %s", letters[0].Stage)
	}
}
