package drift

import (
	"errors"
	"fmt"
	"hash"
	"math"
)

// EngineVersion names this algorithm. It is part of every alert and alert id, and changes
// whenever results change.
const EngineVersion = "plumbline-drift/4 (AAP 1.2.0)"

// The calibration constants of AAP section 8.3, and the window of the public platform.
const (
	DefaultSimilarityThreshold = 0.30
	DefaultSustained           = 3
	DefaultWindow              = 50
)

// The defaults of a baseline of sessions, chosen by measurement: docs/DRIFT.md has the tables.
const (
	DefaultSessions       = 10
	DefaultLeastTraces    = 50
	DefaultMostTraces     = 200
	DefaultStreakSessions = 2
	DefaultFalseAlarms    = 1e-4
)

// MaxSustained bounds the length of a streak and of a baseline of the published rule, and thus the
// size of the state.
const MaxSustained = 100

// MaxSessions bounds the sessions of a baseline, for the same reason.
const MaxSessions = 64

// Bounds on the parameters of a baseline of sessions.
const (
	maxMostTraces     = 1000
	maxStreakSessions = 8
)

// maxBaseline is the largest baseline that follows from a window alone (AAP section 8.2).
const maxBaseline = 10

// Mode says where the baseline comes from.
type Mode string

// The four modes. Modes first and rolling apply the published rule.
const (
	ModeSessions Mode = "sessions" // the traces until enough sessions are complete; kept until the card changes
	ModePinned   Mode = "pinned"   // set by the operator (State.Pin); without a pin as in mode sessions
	ModeFirst    Mode = "first"    // the first N traces; kept until the card changes
	ModeRolling  Mode = "rolling"  // as in mode first, and after every W-th trace the last N traces
)

// letter reports whether the mode applies the published rule.
func (m Mode) letter() bool { return m == ModeFirst || m == ModeRolling }

// Profile says which rules decide the direction and the indicators of a streak under the published
// rule. Which streaks raise alerts, and at which similarity, does not depend on it.
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
	Mode                Mode    `json:"m"`

	// Of modes sessions and pinned.
	Sessions       int     `json:"c,omitempty"` // complete sessions that a baseline needs; 1..64
	LeastTraces    int     `json:"l,omitempty"` // least traces of a baseline
	MostTraces     int     `json:"x,omitempty"` // traces that form the baseline in any case
	StreakSessions int     `json:"d,omitempty"` // sessions that a streak must have traces of
	FalseAlarms    float64 `json:"f,omitempty"` // rate that the tests of the measures are set to; in (0, 1)

	// Of modes first and rolling.
	Window  int     `json:"w,omitempty"` // W: traces that a user of the reference would look at; 1 or more
	Profile Profile `json:"r,omitempty"`
}

// DefaultParams returns the parameters of the stream.
func DefaultParams() Params {
	p := PublishedParams()
	p.Mode = ModeSessions
	return p
}

// PublishedParams returns the parameters of the published rule (AAP section 8.3).
func PublishedParams() Params {
	return Params{
		SimilarityThreshold: DefaultSimilarityThreshold,
		Sustained:           DefaultSustained,
		Mode:                ModeFirst,
		Sessions:            DefaultSessions,
		LeastTraces:         DefaultLeastTraces,
		MostTraces:          DefaultMostTraces,
		StreakSessions:      DefaultStreakSessions,
		FalseAlarms:         DefaultFalseAlarms,
		Window:              DefaultWindow,
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
	if p.Sessions < 1 || p.Sessions > maxSessions {
		fault("sessions: %d is not in 1..%d", p.Sessions, maxSessions)
	}
	if p.LeastTraces < 1 {
		fault("least_traces: %d is not at least 1", p.LeastTraces)
	}
	if p.MostTraces < p.LeastTraces || p.MostTraces > maxMostTraces {
		fault("most_traces: %d is not in %d..%d", p.MostTraces, p.LeastTraces, maxMostTraces)
	}
	if p.StreakSessions < 1 || p.StreakSessions > maxStreakSessions {
		fault("streak_sessions: %d is not in 1..%d", p.StreakSessions, maxStreakSessions)
	}
	if !(p.FalseAlarms > 0 && p.FalseAlarms < 1) {
		fault("false_alarms: %v is not above 0 and below 1", p.FalseAlarms)
	}
	switch p.Mode {
	case ModeSessions, ModePinned, ModeFirst:
	case ModeRolling:
		if least := p.BaselineTraces() + p.Sustained; p.Window >= 1 && p.Window < least {
			fault("window: %d is too short for mode %s: a baseline of %d traces and a streak of %d need %d",
				p.Window, p.Mode, p.BaselineTraces(), p.Sustained, least)
		}
	default:
		fault("mode: %q is none of %s, %s, %s, %s", p.Mode, ModeSessions, ModePinned, ModeFirst, ModeRolling)
	}
	if p.Profile != ProfileSpec && p.Profile != ProfileReference {
		fault("profile: %q is neither %s nor %s", p.Profile, ProfileSpec, ProfileReference)
	}
	return errors.Join(faults...)
}

// identify writes the parameters of modes sessions and pinned, as a part of an alert's id.
func (p Params) identify(h hash.Hash) {
	writeUint(h, math.Float64bits(p.SimilarityThreshold))
	writeUint(h, uint64(p.Sustained))
	writeString(h, string(p.Mode))
	writeUint(h, uint64(p.Sessions))
	writeUint(h, uint64(p.LeastTraces))
	writeUint(h, uint64(p.MostTraces))
	writeUint(h, uint64(p.StreakSessions))
	writeUint(h, math.Float64bits(p.FalseAlarms))
}

// Methodology returns the text of AAP section 8.3 for the parameters: how the baseline is chosen, what
// is tested and where this is described. It is the same with and without a pin, because a pin stays in
// force in mode sessions. It is empty for the published rule.
func Methodology(p Params) string {
	if p.Mode.letter() {
		return ""
	}
	return fmt.Sprintf("Baseline: pinned by the operator; without a pin, the traces until %d sessions are complete, at least %d traces; without so many sessions, the first %d traces."+
		" Alert: %d traces in a row (more where the baseline has such traces itself), of %d sessions or more, less similar than %g (section 8.2), or a measure of docs/DRIFT.md"+
		" whose rate departs from the baseline's by an e-detector set to %g false alarms a trace. Measured rates: docs/DRIFT.md of Plumbline.",
		p.Sessions, p.LeastTraces, p.MostTraces, p.Sustained, p.StreakSessions, p.SimilarityThreshold, p.FalseAlarms)
}
