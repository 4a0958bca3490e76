package main

import (
	"os/exec"
	"strings"
	"testing"
)

// TestNoDatabase checks that ingest does not link the database's client: it accepts traces
// whether or not there is a database.
func TestNoDatabase(t *testing.T) {
	packages, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(packages), "github.com/nats-io/nats.go") {
		t.Fatal("the list does not hold what ingest is known to link")
	}
	for path := range strings.Lines(string(packages)) {
		if strings.Contains(strings.ToLower(path), "clickhouse") {
			t.Errorf("ingest links %s", strings.TrimSpace(path))
		}
	}
}
