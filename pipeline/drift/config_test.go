package drift

import (
	"fmt"
	"slices"
	"testing"
)

func TestConfigReportsEveryFault(t *testing.T) {
	cfg := Default()
	if faults := cfg.Validate(); len(faults) > 0 {
		t.Errorf("the defaults have faults: %v", faults)
	}
	cfg.Lateness, cfg.WaitingTraces, cfg.WaitingBytes, cfg.BatchRows, cfg.BatchAge = -1, mostWaiting+1, 0, 0, 0
	cfg.SimilarityThreshold, cfg.Sustained, cfg.Window = 0, 0, 0
	var keys []string
	for _, fault := range cfg.Validate() {
		keys = append(keys, fault.Key)
	}
	slices.Sort(keys)
	const want = "[batch_age batch_rows lateness methodology similarity_threshold sustained waiting_bytes waiting_traces window]"
	if got := fmt.Sprint(keys); got != want {
		t.Errorf("faults of %s, want %s", got, want)
	}
	cfg = Default()
	cfg.Sustained, cfg.Methodology = 5, "fewer alerts while we calibrate"
	if faults := cfg.Validate(); len(faults) > 0 {
		t.Errorf("a reasoned parameter has faults: %v", faults)
	}
}
