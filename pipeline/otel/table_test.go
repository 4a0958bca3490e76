package otel

import (
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table into docs/OTEL.md")

// The table of docs/OTEL.md is the one that spans are mapped by. With -update it is written.
func TestTableIsDocumented(t *testing.T) {
	const file = "../../docs/OTEL.md"
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	document := string(raw)
	if *update {
		head, rest, _ := strings.Cut(document, "| member | attributes")
		_, tail, _ := strings.Cut(rest, "\n\n")
		if err := os.WriteFile(file, []byte(strings.Replace(head+"TABLE\n\n"+tail, "TABLE\n", Table(), 1)), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !strings.Contains(document, "\n\n"+Table()+"\n") {
		t.Error("docs/OTEL.md has another table: run this test with -update")
	}
	for _, reason := range append(Reasons(), ReasonUnmapped) {
		if !strings.Contains(document, "`"+reason+"`") {
			t.Errorf("docs/OTEL.md does not explain the reason %s", reason)
		}
	}
}
