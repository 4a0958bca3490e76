package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/schema"
)

// Equal warnings of many lines are one line of output, and the output is bounded.
func TestEqualWarningsAreShownOnce(t *testing.T) {
	var w warned
	unknown := schema.Warning{Code: schema.WarnUnknownCard, Pointer: "/card_id", Message: "m"}
	for line := 3; line <= 1000; line++ {
		w.add("f", line, []schema.Warning{unknown})
	}
	for i := range maxWarnings + 4 {
		w.add("f", 7, []schema.Warning{{Code: "x", Message: fmt.Sprint("\x1b[31m", i)}})
	}
	var out strings.Builder
	lines := lineWriter{w: &out}
	if w.print(&lines); lines.err != nil {
		t.Fatal(lines.err)
	}
	text := out.String()
	if !strings.HasPrefix(text, "f:3: warning: /card_id: m (and 997 more lines)\nf:7: warning: ") || strings.Contains(text, "\x1b") ||
		strings.Count(text, "\n") != maxWarnings+1 || !strings.HasSuffix(text, "5 more warnings: --json shows them all\n") {
		t.Errorf("printed %s", text)
	}
}
