package drift

import (
	"fmt"
	"slices"
	"testing"

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
	const want = "[batch_age batch_rows lateness methodology resident_bytes similarity_threshold sustained waiting_bytes waiting_traces window]"
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
