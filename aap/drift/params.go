package drift

import (
	"errors"
	"fmt"
)

// EngineVersion names this algorithm. It is part of every alert and alert id;
// any change of results changes it.
const EngineVersion = "plumbline-drift/2 (AAP 1.2.0)"

// The calibration constants of AAP section 8.3, and the window that the public
// platform looks at.
const (
	DefaultSimilarityThreshold = 0.30
	DefaultSustained           = 3
	DefaultWindow              = 50
)

// MaxSustained bounds a streak and a baseline, and with them the state.
const MaxSustained = 100

// maxBaseline is the largest baseline that a window alone can ask for (AAP section 8.2).
const maxBaseline = 10

// Mode says where the baseline comes from. Whatever the mode, the first N traces
// form one where there is none.
type Mode string

// The three modes.
const (
	ModeFirst   Mode = "first"   // the first N traces: kept until the card changes
	ModeRolling Mode = "rolling" // after every W-th trace: the last N, whatever they were
	ModePinned  Mode = "pinned"  // set by the operator (State.Pin): kept until he sets another
)

// Profile says by whose rules a streak's direction and indicators are named.
// Which streaks raise alerts, and at which similarity, is the same under either.
type Profile string

// The two profiles.
const (
	ProfileSpec      Profile = "spec"      // AAP section 8.5: baseline against streak, all four categories
	ProfileReference Profile = "reference" // the published SDK's: three categories
)

// Params are the parameters of detection. A changed one changes alert ids.
type Params struct {
	SimilarityThreshold float64 // below it a trace is low; in (0, 1]
	Sustained           int     // consecutive low traces that raise an alert; 1..MaxSustained
	Window              int     // W: traces that a reader of the reference would look at; 1 or more
	Mode                Mode
	Profile             Profile
}

// DefaultParams returns the parameters of AAP section 8.3.
func DefaultParams() Params {
	return Params{
		SimilarityThreshold: DefaultSimilarityThreshold,
		Sustained:           DefaultSustained,
		Window:              DefaultWindow,
		Mode:                ModeFirst,
		Profile:             ProfileSpec,
	}
}

// BaselineTraces returns N, the number of traces that form a baseline:
// max(sustained, min(10, window/4)) (AAP section 8.2).
func (p Params) BaselineTraces() int {
	return max(p.Sustained, min(maxBaseline, p.Window/4))
}

// Validate returns all faults of p, joined, each as "key: what is wrong".
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
