package drift

import (
	"fmt"
	"math"
	"strings"

	"github.com/plumbline/plumbline/aap/similarity"
	"github.com/plumbline/plumbline/schema"
)

// Indicator names (AAP sections 8.4 and 8.5).
const (
	EscalationRateDecrease   = "escalation_rate_decrease"
	EscalationRateIncrease   = "escalation_rate_increase"
	NewActionTypes           = "new_action_types"
	UndeclaredValueIncrease  = "undeclared_value_increase"
	PrincipalBenefitDecrease = "principal_benefit_decrease"
	SimilarityTrend          = "similarity_trend"
)

// isNewAction tells whether an action type or name does not occur in the baseline.
func (s *State) isNewAction(v similarity.Vector) bool {
	for _, f := range v {
		if isAction(f.Key) && !contains(s.Baseline, f.Key) {
			return true
		}
	}
	return false
}

func isAction(key string) bool {
	return strings.HasPrefix(key, "action:") || strings.HasPrefix(key, "action_name:")
}

func contains(v similarity.Vector, key string) bool {
	for i := range v {
		if v[i].Key == key {
			return true
		}
	}
	return false
}

// indicators returns what was measured on the streak, never nil.
func (s *State) indicators() []schema.Indicator {
	found := []schema.Indicator{}
	for _, measure := range []func() (schema.Indicator, bool){
		s.escalationChange, s.newActions, s.undeclaredIncrease, s.benefitDecrease, s.trend,
	} {
		if indicator, ok := measure(); ok {
			found = append(found, indicator)
		}
	}
	return found
}

// escalationChange compares the escalation rates of the first and last three traces.
func (s *State) escalationChange() (schema.Indicator, bool) {
	early, late, ok := s.escalationRates()
	if !ok || math.Abs(early-late) <= notableChange {
		return schema.Indicator{}, false
	}
	name, verb := EscalationRateDecrease, "decreased"
	if late > early {
		name, verb = EscalationRateIncrease, "increased"
	}
	return percentages(name, "Escalation rate "+verb+" from %.0f%% to %.0f%% of decisions", early, late), true
}

// newActions is the share of the streak whose action type or name the baseline does not have.
func (s *State) newActions() (schema.Indicator, bool) {
	novel := 0
	for _, low := range s.Low {
		if low.NewAction {
			novel++
		}
	}
	share := float64(novel) / float64(len(s.Low))
	return percentages(NewActionTypes, "Actions unknown to the baseline rose from %.0f%% to %.0f%% of decisions", 0, share), novel > 0
}

// undeclaredIncrease compares the shares of undeclared values in baseline and streak.
func (s *State) undeclaredIncrease() (schema.Indicator, bool) {
	streak := s.streakTally()
	before, now := s.BaselineTally.undeclaredShare(), streak.undeclaredShare()
	return percentages(UndeclaredValueIncrease, "Undeclared values rose from %.0f%% to %.0f%% of values applied", before, now),
		now-before > notableChange
}

// benefitDecrease compares the mean principal_benefit in baseline and streak.
func (s *State) benefitDecrease() (schema.Indicator, bool) {
	streak := s.streakTally()
	if s.BaselineTally.Benefits == 0 || streak.Benefits == 0 {
		return schema.Indicator{}, false
	}
	before, now := s.BaselineTally.meanBenefit(), streak.meanBenefit()
	return schema.Indicator{
		Indicator:   PrincipalBenefitDecrease,
		Baseline:    round2(before),
		Current:     round2(now),
		Description: fmt.Sprintf("Mean principal_benefit of selected alternatives fell from %.2f to %.2f", before, now),
	}, before-now > notableChange
}

// trend compares the first and last similarity of the streak.
func (s *State) trend() (schema.Indicator, bool) {
	if len(s.Low) < trendTraces {
		return schema.Indicator{}, false
	}
	first, last := s.Low[0].Similarity, s.Low[len(s.Low)-1].Similarity
	course := "stable"
	if last < first {
		course = "decreasing"
	}
	return schema.Indicator{
		Indicator:   SimilarityTrend,
		Baseline:    similarity.Round4(first),
		Current:     similarity.Round4(last),
		Description: fmt.Sprintf("Similarity %s over %d traces", course, len(s.Low)),
	}, true
}

func (s *State) streakTally() Tally {
	var sum Tally
	for _, low := range s.Low {
		sum.add(low.Tally)
	}
	return sum
}

func (t Tally) undeclaredShare() float64 {
	if t.Values == 0 {
		return 0
	}
	return float64(t.Undeclared) / float64(t.Values)
}

func (t Tally) meanBenefit() float64 { return t.Benefit / float64(t.Benefits) }

// percentages makes an indicator of two shares; format takes both as percentages.
func percentages(name, format string, before, now float64) schema.Indicator {
	return schema.Indicator{
		Indicator:   name,
		Baseline:    round2(before),
		Current:     round2(now),
		Description: fmt.Sprintf(format, before*100, now*100),
	}
}

func round2(x float64) float64 { return math.Floor(x*100+0.5) / 100 }
