package drift

import "github.com/plumbline/plumbline/schema"

// Bounds of the published rules.
const (
	escalationSample = 3    // traces at either end that escalation rates are taken over
	earlyEscalation  = 0.1  // an early rate worth speaking of
	notableChange    = 0.05 // a change worth an indicator
	undeclaredShare  = 0.3  // of all uses of values so far
	lowConfidence    = 0.5  // mean of the streak's last three
	confidenceSample = 3
	trendTraces      = 3 // traces a trend needs
)

// direction infers the category of AAP section 8.5, the first that holds, by
// the published rules.
func (s *State) direction(principalBenefitDeclared bool) schema.Direction {
	early, late, ok := s.escalationRates()
	switch {
	case ok && early > earlyEscalation && late < early/2:
		return schema.AutonomyExpansion
	case s.Values > 0 && float64(s.Undeclared)/float64(s.Values) > undeclaredShare:
		return schema.ValueDrift
	case principalBenefitDeclared && s.meanConfidence() < lowConfidence:
		return schema.PrincipalMisalignment
	}
	return schema.UnknownDirection
}

// escalationRates returns the shares of traces that required an escalation,
// among the first and the last three; not ok before six traces.
func (s *State) escalationRates() (early, late float64, ok bool) {
	if s.Traces < 2*escalationSample {
		return 0, 0, false
	}
	escalated := 0
	for _, required := range s.Late {
		if required {
			escalated++
		}
	}
	return float64(s.Early) / escalationSample, float64(escalated) / escalationSample, true
}

// meanConfidence is the mean over the streak's last three traces.
func (s *State) meanConfidence() float64 {
	last := s.Low[max(0, len(s.Low)-confidenceSample):]
	var sum float64
	for _, low := range last {
		sum += low.Confidence
	}
	return sum / float64(len(last))
}
