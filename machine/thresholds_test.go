package machine

import (
	"fmt"
	"testing"

	"github.com/plumbline/plumbline/pipeline/api"
	"github.com/plumbline/plumbline/pipeline/drift"
	"github.com/plumbline/plumbline/pipeline/verifier"
)

// Each threshold is passed to its stage. A stage gets the methodology only if its threshold
// differs from the published one.
func TestThresholdsReachTheirStages(t *testing.T) {
	const why = "calibrated on our own agents"
	watch := drift.DefaultRules()
	watch.SimilarityThreshold, watch.Sustained, watch.Methodology = 0.2, 5, why
	published := PublishedThresholds()
	for name, c := range map[string]struct {
		given  Thresholds
		ingest api.Rules
		judge  verifier.Rules
		drift  drift.Rules
	}{
		"published": {published, api.DefaultRules(), verifier.DefaultRules(), drift.DefaultRules()},
		"all": {
			Thresholds{BehavioralSimilarity: 0.4, MinCoherence: 0.6, DriftSimilarityThreshold: 0.2, DriftSustained: 5, Methodology: why},
			api.Rules{MinCoherence: 0.6, Methodology: why}, verifier.Rules{BehavioralSimilarity: 0.4, Methodology: why}, watch,
		},
		"one": {
			Thresholds{published.BehavioralSimilarity, 0, published.DriftSimilarityThreshold, published.DriftSustained, why},
			api.Rules{MinCoherence: 0, Methodology: why}, verifier.DefaultRules(), drift.DefaultRules(),
		},
	} {
		cfg := Config{Thresholds: &c.given}
		if got := cfg.ingest().Rules; got != c.ingest {
			t.Errorf("%s: ingest has %+v", name, got)
		}
		if got := c.given.Verifier(); got != c.judge {
			t.Errorf("%s: the verifier has %+v", name, got)
		}
		if got := c.given.Drift(drift.DefaultRules()); got != c.drift {
			t.Errorf("%s: drift has %+v", name, got)
		}
	}
}

func TestThresholdsReportEveryFault(t *testing.T) {
	for want, given := range map[string]Thresholds{
		"[]":                                    PublishedThresholds(),
		"[methodology methodology methodology]": {BehavioralSimilarity: 0.4, MinCoherence: 0.6, DriftSimilarityThreshold: 0.2, DriftSustained: 5},
		"[min_coherence behavioral_similarity drift_similarity_threshold drift_sustained]": {BehavioralSimilarity: 2, MinCoherence: -1, DriftSustained: 101, Methodology: "m"},
	} {
		keys := []string{}
		for _, fault := range given.validate(drift.DefaultComparison()) {
			keys = append(keys, fault.Key)
		}
		if got := fmt.Sprint(keys); got != want {
			t.Errorf("%+v: faults of %s, want %s", given, got, want)
		}
	}
	faults := PublishedThresholds().validate(drift.Comparison{Sessions: 65, LeastTraces: 300, MostTraces: 200, FalseAlarms: 1})
	var keys []string
	for _, fault := range faults {
		keys = append(keys, fault.Key)
	}
	if got, want := fmt.Sprint(keys), "[drift_sessions drift_most_traces drift_false_alarms]"; got != want {
		t.Errorf("a comparison has faults of %s, want %s", got, want)
	}
}
