package drift

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/plumbline/plumbline/aap/similarity"
	"github.com/plumbline/plumbline/schema"
)

// Indicator names (AAP sections 8.4 and 8.5).
const (
	EscalationRateDecrease      = "escalation_rate_decrease"
	EscalationRateIncrease      = "escalation_rate_increase"
	UndeclaredValueIncrease     = "undeclared_value_increase"
	NewValues                   = "new_values"
	PrincipalBenefitDecrease    = "principal_benefit_decrease"
	LowConfidence               = "low_confidence"
	NewActionTypes              = "new_action_types"
	ReasoningSimilarityDecrease = "reasoning_similarity_decrease"
	SimilarityTrend             = "similarity_trend"
)

// Bounds of the rules of profile spec. Where the published rules have a bound for the same
// quantity, its value is used.
const (
	notableChange   = 0.05 // a change that gives an indicator
	earlyEscalation = 0.1  // least escalation rate whose loss counts
	driftedShare    = 0.3  // of values, or of decisions
	lostBenefit     = 0.1  // of a mean principal_benefit
	lowConfidence   = 0.5  // of a mean confidence
	commonReasoning = 0.05 // least similarity of texts whose loss counts
	trendTraces     = 3    // traces needed for a trend
)

// Measure compares a streak with the baseline in one respect of AAP section 8.5.
type Measure struct {
	schema.Indicator // baseline and current rounded to two decimals
	Category         schema.Direction
	Formula          string // condition of the category: b is the baseline's figure, s the streak's
	Known            bool   // both figures could be computed
	Notable          bool   // the measure is an indicator of the alert
	Holds            bool   // the category holds by this measure
}

// measure completes a measure of two figures, which are ignored where they are unknown.
func measure(m Measure, b, s float64, known, notable, holds bool) Measure {
	m.Known, m.Notable, m.Holds = known, known && notable, known && holds
	if known {
		m.Baseline, m.Current = round2(b), round2(s)
	}
	return m
}

// Measures returns the measures of profile spec for the streak, in the order in which they
// decide the category: the first that holds gives the direction. Measures that the published
// rules also use come first, then the additional ones. The result is empty where there is no
// streak. docs/DRIFT.md has the formulas in prose.
func (s *State) Measures() []Measure {
	if len(s.Low) == 0 {
		return nil
	}
	streak := s.streakTally()
	return []Measure{
		s.escalationRate(streak),
		s.undeclaredValues(streak),
		s.principalBenefit(streak),
		s.confidence(streak),
		s.newValues(),
		s.newActions(),
		s.reasoning(),
	}
}

// escalationRate measures the share of traces that required an escalation.
func (s *State) escalationRate(streak Tally) Measure {
	b, c := s.Baseline.Tally.EscalationRate(), streak.EscalationRate()
	name, verb := EscalationRateDecrease, "decreased"
	if c > b {
		name, verb = EscalationRateIncrease, "increased"
	}
	return measure(Measure{
		Indicator: percentages(name, "Escalation rate "+verb+" from %.0f%% to %.0f%% of decisions", b, c),
		Category:  schema.AutonomyExpansion,
		Formula:   "b > 0.10 and s < b/2: share of traces that required an escalation",
	}, b, c, true, math.Abs(b-c) > notableChange, b > earlyEscalation && c < b/2)
}

// undeclaredValues measures the share of uses of values that the card does not declare.
func (s *State) undeclaredValues(streak Tally) Measure {
	b, c := s.Baseline.Tally.undeclaredShare(), streak.undeclaredShare()
	return measure(Measure{
		Indicator: percentages(UndeclaredValueIncrease, "Undeclared values rose from %.0f%% to %.0f%% of values applied", b, c),
		Category:  schema.ValueDrift,
		Formula:   "s - b > 0.30: share of the values applied that the card does not declare",
	}, b, c, streak.Values > 0, c-b > notableChange, c-b > driftedShare)
}

// principalBenefit measures the mean scoring_factors.principal_benefit of the selected
// alternatives, over the traces that have one.
func (s *State) principalBenefit(streak Tally) Measure {
	known := s.Baseline.Tally.Benefits > 0 && streak.Benefits > 0
	b, c := s.Baseline.Tally.meanBenefit(), streak.meanBenefit()
	return measure(Measure{
		Indicator: schema.Indicator{
			Indicator:   PrincipalBenefitDecrease,
			Description: fmt.Sprintf("Mean principal_benefit of selected alternatives fell from %.2f to %.2f", b, c),
		},
		Category: schema.PrincipalMisalignment,
		Formula:  "b - s > 0.10: mean scoring_factors.principal_benefit of the selected alternatives",
	}, b, c, known, b-c > notableChange, b-c > lostBenefit)
}

// confidence replaces principalBenefit, as in the published rules, where a card declares
// principal_benefit and no trace of the streak scores it.
func (s *State) confidence(streak Tally) Measure {
	known := streak.Benefits == 0 && s.Low[len(s.Low)-1].DeclaresBenefit
	b, c := s.Baseline.Tally.meanConfidence(), s.meanConfidence()
	return measure(Measure{
		Indicator: schema.Indicator{
			Indicator:   LowConfidence,
			Description: fmt.Sprintf("Mean confidence was %.2f and is %.2f, with principal_benefit declared and not scored", b, c),
		},
		Category: schema.PrincipalMisalignment,
		Formula:  "s < 0.50: mean confidence of the last three, where principal_benefit is declared and not scored",
	}, b, c, known, c < lowConfidence, c < lowConfidence)
}

// newValues measures the share of values that the baseline does not have.
func (s *State) newValues() Measure {
	all, novel := 0, 0
	for i := range s.Low {
		all += s.Low[i].DistinctValues
		novel += s.Low[i].NewValues
	}
	c := share(novel, all)
	return measure(Measure{
		Indicator: percentages(NewValues, "Values unknown to the baseline rose from %.0f%% to %.0f%% of values applied", 0, c),
		Category:  schema.ValueDrift,
		Formula:   "s > 0.30: share of the values applied that occur in no trace of the baseline",
	}, 0, c, all > 0, novel > 0, c > driftedShare)
}

// newActions measures the share of the streak whose action type or name the baseline does not
// have.
func (s *State) newActions() Measure {
	novel := 0
	for i := range s.Low {
		if s.Low[i].NewAction {
			novel++
		}
	}
	c := share(novel, len(s.Low))
	return measure(Measure{
		Indicator: percentages(NewActionTypes, "Actions unknown to the baseline rose from %.0f%% to %.0f%% of decisions", 0, c),
		Category:  schema.AutonomyExpansion,
		Formula:   "s > 0.30: share of traces whose action type or name occurs in no trace of the baseline",
	}, 0, c, true, novel > 0, c > driftedShare)
}

// reasoning measures the similarity of the selection reasonings: of the baseline's texts to
// each other, and of the streak's texts to those of the baseline.
func (s *State) reasoning() Measure {
	b, known := s.Baseline.Reasoning.inner()
	var sum float64
	texts := 0
	for i := range s.Low {
		if s.Low[i].HasReasoning {
			sum += s.Low[i].Reasoning
			texts++
		}
	}
	known = known && texts > 0
	c := sum / float64(max(1, texts))
	return measure(Measure{
		Indicator: schema.Indicator{
			Indicator:   ReasoningSimilarityDecrease,
			Description: fmt.Sprintf("Similarity of the selection reasoning to the baseline's fell from %.2f to %.2f", b, c),
		},
		Category: schema.CommunicationDrift,
		Formula:  "b > 0.05 and s < b/2: mean similarity of texts, of two in the baseline and of one in the streak to one in the baseline",
	}, b, c, known, b-c > notableChange, b > commonReasoning && c < b/2)
}

// isNewAction reports whether an action type or name does not occur in the baseline.
func (s *State) isNewAction(v similarity.Vector) bool {
	return slices.ContainsFunc(v, func(f similarity.Feature) bool {
		action := strings.HasPrefix(f.Key, "action:") || strings.HasPrefix(f.Key, "action_name:")
		return action && !contains(s.Baseline.Features, f.Key)
	})
}

// values counts the distinct values applied, and those that do not occur in the baseline.
func (s *State) values(v similarity.Vector) (distinct, novel int) {
	for _, f := range v {
		if strings.HasPrefix(f.Key, "value:") {
			distinct++
			if !contains(s.Baseline.Features, f.Key) {
				novel++
			}
		}
	}
	return distinct, novel
}

func (s *State) streakTally() (sum Tally) {
	for i := range s.Low {
		sum.add(s.Low[i].Tally)
	}
	return sum
}

func contains(v similarity.Vector, key string) bool {
	return slices.ContainsFunc(v, func(f similarity.Feature) bool { return f.Key == key })
}

// EscalationRate returns the share of traces that required an escalation.
func (t Tally) EscalationRate() float64 { return share(t.Escalated, t.Traces) }

func (t Tally) undeclaredShare() float64 { return share(t.Undeclared, t.Values) }
func (t Tally) meanBenefit() float64     { return t.Benefit / float64(max(1, t.Benefits)) }
func (t Tally) meanConfidence() float64  { return t.Confidence / float64(max(1, t.Traces)) }
func share(part, whole int) float64      { return float64(part) / float64(max(1, whole)) }
func round2(x float64) float64           { return math.Floor(x*100+0.5) / 100 }

// percentages returns an indicator of two shares; format shows both as percentages.
func percentages(name, format string, before, now float64) schema.Indicator {
	return schema.Indicator{
		Indicator:   name,
		Baseline:    round2(before),
		Current:     round2(now),
		Description: fmt.Sprintf(format, before*100, now*100),
	}
}
