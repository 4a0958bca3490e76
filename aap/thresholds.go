package aap

import (
	"errors"
	"fmt"
)

// Thresholds are the calibration constants of AAP section 8.3.
type Thresholds struct {
	DriftSimilarity      float64 // DEFAULT_SIMILARITY_THRESHOLD
	DriftSustained       int     // DEFAULT_SUSTAINED_TURNS_THRESHOLD
	BehavioralSimilarity float64 // BEHAVIORAL_SIMILARITY_THRESHOLD
	MinCoherence         float64 // MIN_COHERENCE_FOR_PROCEED

	// Methodology says how changed thresholds were derived; section 8.3 demands it. It is
	// stored with every result.
	Methodology string
}

// DefaultThresholds returns the published values.
func DefaultThresholds() Thresholds {
	return Thresholds{DriftSimilarity: 0.30, DriftSustained: 3, BehavioralSimilarity: 0.50, MinCoherence: 0.70}
}

// nearBoundary is the bound below which a confidence or score counts as close to the boundary.
// The specification shows the warning without a value; this value is that of the SDKs.
const nearBoundary = 0.35

// Validate reports every threshold that is out of range, and a changed threshold without a
// methodology.
func (t Thresholds) Validate() error {
	var faults []error
	for _, share := range []struct {
		name  string
		value float64
	}{
		{"drift similarity", t.DriftSimilarity},
		{"behavioral similarity", t.BehavioralSimilarity},
		{"minimum coherence", t.MinCoherence},
	} {
		if !(share.value >= 0 && share.value <= 1) {
			faults = append(faults, fmt.Errorf("threshold of %s: %v is outside 0..1", share.name, share.value))
		}
	}
	if t.DriftSustained < 1 {
		faults = append(faults, fmt.Errorf("threshold of sustained drift: %d traces, want at least 1", t.DriftSustained))
	}
	if t.Methodology == "" && t != DefaultThresholds() {
		faults = append(faults, errors.New("thresholds: a changed one needs a methodology, a text saying how it was derived (AAP section 8.3)"))
	}
	return errors.Join(faults...)
}
