package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
)

// The command also checks an external broker and database: here with a user who has too
// many rights, without the broker's monitoring pages, and without the exporter's
// files.
func TestCheckOfExternalServers(t *testing.T) {
	rig := pipelinetest.New(t)
	command := checkCommand{
		machineFlags: machineFlags{Data: t.TempDir()}, Tenant: "default", Limit: 100,
		NATS: config.NATS{URL: rig.Broker.URL()}, ClickHouseDSN: rig.DSN, Cluster: rig.ClickHouse().Cluster,
	}
	text := checked(t, &command)
	for _, line := range []string{
		"WEAK     database: the user",
		": right to TRUNCATE is granted on traces, ",
		"UNKNOWN  jetstream.sync_interval of server plumbline: set its monitor_url",
		" weak, 1 unknown\n",
	} {
		if !strings.Contains(text, line) {
			t.Errorf("the output lacks %q:\n%s", line, text)
		}
	}
	command.Deep, command.JSON, command.NATS.MonitorURL = true, true, rig.Broker.MonitorURL()
	lines := strings.Split(strings.TrimSuffix(checked(t, &command), "\n"), "\n")
	for _, line := range lines[:len(lines)-1] {
		var f settingFinding
		if err := json.Unmarshal([]byte(line), &f); err != nil || f.Kind != "setting" || f.Why == "" || f.Remedy == "" {
			t.Errorf("incomplete finding: %s", line)
		}
	}
	var last struct{ Summary checkSummary }
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil {
		t.Fatal(err)
	}
	s := last.Summary
	if s.Weak != len(lines)-1 || len(s.Unknown) != 0 || s.Deep == nil || s.Deep.Differences != 0 || len(s.Deep.Skipped) != 2 {
		t.Errorf("after %d findings the summary is %s", len(lines)-1, lines[len(lines)-1])
	}
}

// checked runs a command that must find faults, and returns its output.
func checked(t *testing.T, command *checkCommand) string {
	t.Helper()
	var out bytes.Buffer
	if err := command.Run(t.Context(), &console{out: &out, errs: os.Stderr}); !errors.Is(err, errFoundBad) {
		t.Fatalf("error %v, want errFoundBad:\n%s", err, &out)
	}
	return out.String()
}
