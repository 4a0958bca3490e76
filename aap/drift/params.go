package drift

import (
	"errors"
	"fmt"
)

// EngineVersion names this algorithm. It is part of every alert and alert id, and changes
// whenever results change.
const EngineVersion = "plumbline-drift/2 (AAP 1.2.0)"

// The calibration constants of AAP section 8.3, and the window of the public platform.
const (
	DefaultSimilarityThreshold = 0.30
	DefaultSustained           = 3
	DefaultWindow              = 50
)

// MaxSustained bounds the length of a streak and of a baseline, and thus the size of the state.
const MaxSustained = 100

// maxBaseline is the largest baseline that follows from a window alone (AAP section 8.2).
const maxBaseline = 10

// Mode says where the baseline comes from. In every mode the first N traces form a baseline if
// there is none.
type Mode string

// The three modes.
const (
	ModeFirst   Mode = "first"   // the first N traces; kept until the card changes
	ModeRolling Mode = "rolling" // after every W-th trace the last N traces, whatever their similarity
	ModePinned  Mode = "pinned"  // set by the operator (State.Pin); kept until the operator sets another
)

// Profile says which rules decide a streak's direction and indicators. Which streaks raise
// alerts, and at which similarity, does not depend on it.
type Profile string

// The two profiles.
const (
	ProfileSpec      Profile = "spec"      // AAP section 8.5: baseline compared with streak, all four categories
	ProfileReference Profile = "reference" // the rules of the published SDK: three categories
)

// Params are the parameters of detection. Changed parameters change alert ids.
type Params struct {
	SimilarityThreshold float64 `json:"t"` // a trace below it is low; in (0, 1]
	Sustained           int     `json:"s"` // consecutive low traces that raise an alert; 1..MaxSustained
	Window              int     `json:"w"` // W: traces that a user of the reference would look at; 1 or more
	Mode                Mode    `json:"m"`
	Profile             Profile `json:"r"`
}

// DefaultParams returns the parameters of the stream.
func DefaultParams() Params { return PublishedParams() }

// PublishedParams returns the parameters of AAP section 8.3: those of the published rule.
func PublishedParams() Params {
	return Params{
		SimilarityThreshold: DefaultSimilarityThreshold,
		Sustained:           DefaultSustained,
		Window:              DefaultWindow,
		Mode:                ModeFirst,
		Profile:             ProfileSpec,
	}
}

// BaselineTraces returns N, the number of traces that form a baseline: max(sustained, min(10,
// window/4)) (AAP section 8.2).
func (p Params) BaselineTraces() int {
	return max(p.Sustained, min(maxBaseline, p.Window/4))
}

// Validate returns all faults of p, joined, each as "key: fault".
func (p Params) Validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if !(p.SimilarityThreshold > 0 && p.SimilarityThreshold <= 1) {
		fault("similarity_threshold: %v is not above 0 and at most 1", p.SimilarityThreshold)
	}
	if p.Sustained < 1 || p.Sustained > MaxSustained {
		fault("sustained: %d is not in 1..%d", p.Sustained, MaxSustained)
	}
	if p.Window < 1 {
		fault("window: %d is not at least 1", p.Window)
	}
	switch p.Mode {
	case ModeFirst, ModePinned:
	case ModeRolling:
		if least := p.BaselineTraces() + p.Sustained; p.Window >= 1 && p.Window < least {
			fault("window: %d is too short for mode %s: a baseline of %d traces and a streak of %d need %d",
				p.Window, p.Mode, p.BaselineTraces(), p.Sustained, least)
		}
	default:
		fault("mode: %q is none of %s, %s, %s", p.Mode, ModeFirst, ModeRolling, ModePinned)
	}
	if p.Profile != ProfileSpec && p.Profile != ProfileReference {
		fault("profile: %q is neither %s nor %s", p.Profile, ProfileSpec, ProfileReference)
	}
	return errors.Join(faults...)
}
