package drift

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	aapdrift "github.com/plumbline/plumbline/aap/drift"
	"github.com/plumbline/plumbline/pipeline/config"
)

// keysOf returns the keys of faults.
func keysOf(faults []config.Fault) string {
	keys := []string{}
	for _, fault := range faults {
		keys = append(keys, fault.Key)
	}
	slices.Sort(keys)
	return fmt.Sprint(keys)
}

func TestConfigReportsEveryFault(t *testing.T) {
	cfg := Default()
	if faults := cfg.Validate(); len(faults) > 0 {
		t.Errorf("the defaults have faults: %v", faults)
	}
	cfg.Lateness, cfg.WaitingTraces, cfg.WaitingBytes, cfg.BatchRows, cfg.BatchAge = -1, mostWaiting+1, 0, 0, 0
	cfg.SimilarityThreshold, cfg.Sustained, cfg.Window, cfg.ResidentBytes = 0, 0, 0, LeastResidentBytes-1
	cfg.Sessions, cfg.LeastTraces, cfg.MostTraces, cfg.FalseAlarms = 0, 0, 1001, 0
	const want = "[batch_age batch_rows false_alarms lateness least_traces methodology most_traces resident_bytes sessions similarity_threshold sustained waiting_bytes waiting_traces window]"
	if got := keysOf(cfg.Validate()); got != want {
		t.Errorf("faults of %s, want %s", got, want)
	}
	for mode, want := range map[string]string{
		"first": "[]", "rolling": "[]", "pinned": "[pins]", "weekly": "[mode]",
	} {
		cfg = Default()
		cfg.Mode = mode
		if got := keysOf(cfg.Validate()); got != want {
			t.Errorf("mode %s: faults of %s, want %s", mode, got, want)
		}
	}
	cfg = Default()
	cfg.Pins = "pins.json"
	if got := keysOf(cfg.Validate()); got != "[pins]" {
		t.Errorf("pins in mode first: faults of %s", got)
	}
	cfg = Default()
	cfg.Sustained, cfg.Methodology = 5, "fewer alerts while we calibrate"
	if faults := cfg.Validate(); len(faults) > 0 {
		t.Errorf("a reasoned parameter has faults: %v", faults)
	}
}

// What forms a baseline, and how sure an alarm is, can be set. Every point and alert states the values
// that are in force, and the operator's reason where there is one.
func TestComparisonIsSetAndStated(t *testing.T) {
	cfg := Default()
	cfg.Comparison = Comparison{Sessions: 4, LeastTraces: 20, MostTraces: 80, FalseAlarms: 2e-5}
	if faults := cfg.Validate(); len(faults) > 0 {
		t.Errorf("faults %v", faults)
	}
	p := cfg.params()
	if p.Sessions != 4 || p.LeastTraces != 20 || p.MostTraces != 80 || p.FalseAlarms != 2e-5 {
		t.Errorf("parameters %+v", p)
	}
	text := cfg.methodology()
	for _, want := range []string{"the traces until 4 sessions are complete, at least 20 traces", "the first 80 traces", "set to 2e-05 false alarms a trace"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q does not say %q", text, want)
		}
	}
	cfg.Methodology = "our sessions are long"
	if got := cfg.methodology(); got != "our sessions are long "+text {
		t.Errorf("with a reason: %q", got)
	}
	if cfg.Comparison = DefaultComparison(); cfg.methodology() != aapdrift.Methodology(aapdrift.DefaultParams()) {
		t.Errorf("with the usual values: %q", cfg.methodology())
	}
	cfg.MostTraces = cfg.LeastTraces - 1
	if got := keysOf(cfg.Validate()); got != "[most_traces]" {
		t.Errorf("fewer traces at most than at least: faults of %s", got)
	}
}

// A file that cannot be read is a fault of the configuration, reported with the others.
func TestUnreadableFilesAreFaults(t *testing.T) {
	cfg := Default()
	if faults := cfg.FileFaults(); len(faults) != 0 {
		t.Errorf("the error names no file: %v", faults)
	}
	cfg.Pins, cfg.NATS.NKeySeedFile = "none", t.TempDir()
	if got := keysOf(cfg.FileFaults()); got != "[nats_nkey_seed_file pins]" {
		t.Error(got)
	}
}
