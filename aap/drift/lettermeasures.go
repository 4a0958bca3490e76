package drift

import (
	"fmt"
	"math"

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

// Measures returns the measures of profile spec for the streak, in the order in which they
// decide the category: the first that holds gives the direction. Measures that the published
// rules also use come first, then the additional ones. Values and actions that are new to the
// baseline are indicators and no category: the card may declare the value and allow the action.
// The result is empty where there is no streak. docs/DRIFT.md has the formulas in prose.
func (s *letter) Measures() []Measure {
	if len(s.Low) == 0 {
		return nil
	}
	base, streak := s.Baseline.Tally, s.streak()
	var measures []Measure
	// add completes a measure of two figures, which are ignored where they are unknown.
	add := func(m Measure, b, s float64, known, notable, holds bool) {
		m.Known, m.Notable, m.Holds = known, known && notable, known && holds
		if known {
			m.Baseline, m.Current = round2(b), round2(s)
		}
		measures = append(measures, m)
	}

	b, c := base.EscalationRate(), streak.EscalationRate()
	name, verb := EscalationRateDecrease, "decreased"
	if c > b {
		name, verb = EscalationRateIncrease, "increased"
	}
	add(Measure{
		Indicator: percentages(name, "Escalation rate "+verb+" from %.0f%% to %.0f%% of decisions", b, c),
		Category:  schema.AutonomyExpansion,
		Formula:   "b > 0.10 and s < b/2: share of traces that required an escalation",
	}, b, c, true, math.Abs(b-c) > notableChange, b > earlyEscalation && c < b/2)

	b, c = base.undeclaredShare(), streak.undeclaredShare()
	add(Measure{
		Indicator: percentages(UndeclaredValueIncrease, "Undeclared values rose from %.0f%% to %.0f%% of values applied", b, c),
		Category:  schema.ValueDrift,
		Formula:   "s - b > 0.30: share of the values applied that the card does not declare",
	}, b, c, streak.Values > 0, c-b > notableChange, c-b > driftedShare)

	b, c = base.meanBenefit(), streak.meanBenefit() // over the traces that have one
	add(Measure{
		Indicator: meanFigures(PrincipalBenefitDecrease, "Mean principal_benefit of selected alternatives fell from %.2f to %.2f", b, c),
		Category:  schema.PrincipalMisalignment,
		Formula:   "b - s > 0.10: mean scoring_factors.principal_benefit of the selected alternatives",
	}, b, c, base.Benefits > 0 && streak.Benefits > 0, b-c > notableChange, b-c > lostBenefit)

	// The confidence replaces the benefit, as in the published rules, where a card declares
	// principal_benefit and no trace of the streak scores it.
	b, c = base.meanConfidence(), s.meanConfidence()
	add(Measure{
		Indicator: meanFigures(LowConfidence, "Mean confidence was %.2f and is %.2f, with principal_benefit declared and not scored", b, c),
		Category:  schema.PrincipalMisalignment,
		Formula:   "s < 0.50: mean confidence of the last three, where principal_benefit is declared and not scored",
	}, b, c, streak.Benefits == 0 && s.Low[len(s.Low)-1].DeclaresBenefit, c < lowConfidence, c < lowConfidence)

	c = ratio(streak.newValues, streak.distinct)
	add(Measure{
		Indicator: percentages(NewValues, "Values unknown to the baseline rose from %.0f%% to %.0f%% of values applied", 0, c),
		Category:  schema.UnknownDirection,
		Formula:   "no category: share of the values applied that occur in no trace of the baseline",
	}, 0, c, streak.distinct > 0, streak.newValues > 0, false)

	c = ratio(streak.newActions, len(s.Low))
	add(Measure{
		Indicator: percentages(NewActionTypes, "Actions unknown to the baseline rose from %.0f%% to %.0f%% of decisions", 0, c),
		Category:  schema.UnknownDirection,
		Formula:   "no category: share of traces whose action type or name occurs in no trace of the baseline",
	}, 0, c, true, streak.newActions > 0, false)

	b, known := s.Baseline.Reasoning.inner()
	c = streak.reasoning / float64(max(1, streak.texts))
	add(Measure{
		Indicator: meanFigures(ReasoningSimilarityDecrease, "Similarity of the selection reasoning to the baseline's fell from %.2f to %.2f", b, c),
		Category:  schema.CommunicationDrift,
		Formula:   "b > 0.05, s < b/2 and no new action: mean similarity of texts, of two in the baseline and of one in the streak to one in the baseline",
	}, b, c, known && streak.texts > 0, b-c > notableChange, b > commonReasoning && c < b/2 && streak.newActions == 0)
	return measures
}

// streakSums sums the figures of a streak's traces.
type streakSums struct {
	Tally
	distinct, newValues int // values applied, and those that do not occur in the baseline
	newActions          int
	reasoning           float64
	texts               int // traces whose Reasoning is known
}

func (s *letter) streak() (sums streakSums) {
	for i := range s.Low {
		low := &s.Low[i]
		sums.add(low.Tally)
		sums.distinct += low.DistinctValues
		sums.newValues += low.NewValues
		if low.NewAction {
			sums.newActions++
		}
		if low.HasReasoning {
			sums.reasoning += low.Reasoning
			sums.texts++
		}
	}
	return sums
}

// EscalationRate returns the share of traces that required an escalation.
func (t Tally) EscalationRate() float64 { return ratio(t.Escalated, t.Traces) }

func (t Tally) undeclaredShare() float64 { return ratio(t.Undeclared, t.Values) }
func (t Tally) meanBenefit() float64     { return t.Benefit / float64(max(1, t.Benefits)) }
func (t Tally) meanConfidence() float64  { return t.Confidence / float64(max(1, t.Traces)) }
func ratio(part, whole int) float64      { return float64(part) / float64(max(1, whole)) }
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

// meanFigures returns an indicator of two figures, which a Measure completes.
func meanFigures(name, format string, before, now float64) schema.Indicator {
	return schema.Indicator{Indicator: name, Description: fmt.Sprintf(format, before, now)}
}
