package machine

import (
	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/drift"
	"github.com/plumbline/plumbline/pipeline/ingest"
	"github.com/plumbline/plumbline/pipeline/verifier"
)

// Thresholds are the four thresholds of AAP section 8.3. Each belongs to one stage, and is a
// setting of that stage where the stages run as separate processes.
type Thresholds struct {
	BehavioralSimilarity     float64 `json:"behavioral_similarity" help:"A trace that violates nothing and is less similar to its card gets the warning low_behavioral_similarity."`
	MinCoherence             float64 `json:"min_coherence" help:"Least coherence score with which two agents may proceed."`
	DriftSimilarityThreshold float64 `json:"drift_similarity_threshold" help:"A trace less similar to its agent's baseline is low."`
	DriftSustained           int     `json:"drift_sustained" help:"Consecutive low traces that raise an alert."`
	Methodology              string  `json:"methodology" help:"How thresholds that are not the published ones were derived: needed with these, and named by every verdict, result and alert under them."`
}

// PublishedThresholds returns the thresholds of the specification.
func PublishedThresholds() Thresholds {
	handshake, judge, watch := ingest.DefaultRules(), verifier.DefaultRules(), drift.DefaultRules()
	return Thresholds{
		BehavioralSimilarity:     judge.BehavioralSimilarity,
		MinCoherence:             handshake.MinCoherence,
		DriftSimilarityThreshold: watch.SimilarityThreshold,
		DriftSustained:           watch.Sustained,
	}
}

// Ingest returns the rules of the handshake. Ingest, Verifier and Drift set the methodology
// only where the threshold differs from the published one.
func (t Thresholds) Ingest() ingest.Rules {
	rules := ingest.DefaultRules()
	if t.MinCoherence != rules.MinCoherence {
		rules.MinCoherence, rules.Methodology = t.MinCoherence, t.Methodology
	}
	return rules
}

// Verifier returns the rules of verdicts.
func (t Thresholds) Verifier() verifier.Rules {
	rules := verifier.DefaultRules()
	if t.BehavioralSimilarity != rules.BehavioralSimilarity {
		rules.BehavioralSimilarity, rules.Methodology = t.BehavioralSimilarity, t.Methodology
	}
	return rules
}

// Drift returns the rules of drift with these thresholds.
func (t Thresholds) Drift(rules drift.Rules) drift.Rules {
	published := drift.DefaultRules()
	if t.DriftSimilarityThreshold != published.SimilarityThreshold || t.DriftSustained != published.Sustained {
		rules.SimilarityThreshold, rules.Sustained, rules.Methodology = t.DriftSimilarityThreshold, t.DriftSustained, t.Methodology
	}
	return rules
}

// validate returns every fault, under the names of these settings.
func (t Thresholds) validate() config.Faults {
	handshake, judge, watch := t.Ingest(), t.Verifier(), t.Drift(drift.DefaultRules())
	faults := append(handshake.Validate(), judge.Validate()...)
	for _, fault := range watch.Validate() {
		if fault.Key != "methodology" {
			fault.Key = "drift_" + fault.Key
		}
		faults = append(faults, fault)
	}
	return faults
}
