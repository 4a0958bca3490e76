package drift

import (
	"errors"
	"fmt"
)

// EngineVersion names this algorithm. It is part of every alert and alert id;
// any change of results changes it.
const EngineVersion = "plumbline-drift/1 (AAP 1.2.0)"

// The calibration constants of AAP section 8.3, and the window that the public
// platform looks at.
const (
	DefaultSimilarityThreshold = 0.30
	DefaultSustained           = 3
	DefaultWindow              = 50
)

// MaxSustained bounds a streak, and with it the state.
const MaxSustained = 100

// maxBaseline is the largest baseline that a window alone can ask for (AAP section 8.2).
const maxBaseline = 10

// Mode says where the baseline comes from.
type Mode string

// ModeFirst keeps the baseline of the first traces until the card changes.
const ModeFirst Mode = "first"

// Params are the parameters of detection. A changed one changes alert ids.
type Params struct {
	SimilarityThreshold float64 // below it a trace is low; in (0, 1]
	Sustained           int     // consecutive low traces that raise an alert; 1..MaxSustained
	Window              int     // traces that a reader of the reference would look at; 1 or more
	Mode                Mode
}

// DefaultParams returns the parameters of AAP section 8.3.
func DefaultParams() Params {
	return Params{
		SimilarityThreshold: DefaultSimilarityThreshold,
		Sustained:           DefaultSustained,
		Window:              DefaultWindow,
		Mode:                ModeFirst,
	}
}

// BaselineTraces returns N, the number of traces that form the baseline:
// max(sustained, min(10, window/4)) (AAP section 8.2).
func (p Params) BaselineTraces() int {
	return max(p.Sustained, min(maxBaseline, p.Window/4))
}

// Validate returns all faults of p, joined.
func (p Params) Validate() error {
	var faults []error
	if !(p.SimilarityThreshold > 0 && p.SimilarityThreshold <= 1) {
		faults = append(faults, fmt.Errorf("similarity_threshold: %v is not above 0 and at most 1", p.SimilarityThreshold))
	}
	if p.Sustained < 1 || p.Sustained > MaxSustained {
		faults = append(faults, fmt.Errorf("sustained: %d is not in 1..%d", p.Sustained, MaxSustained))
	}
	if p.Window < 1 {
		faults = append(faults, fmt.Errorf("window: %d is not at least 1", p.Window))
	}
	if p.Mode != ModeFirst {
		faults = append(faults, fmt.Errorf("mode: %q is not %q", p.Mode, ModeFirst))
	}
	return errors.Join(faults...)
}
