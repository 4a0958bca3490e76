package drift

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/plumbline/plumbline/schema"
)

// scene returns ten usual traces and a streak of three. The streak has a different structure,
// so its similarities are low. It does not differ in anything that decides a category: each
// property of the streak also occurs in the usual traces.
func scene() []Sample {
	facts := FactsOf(testCard)
	var samples []Sample
	for i := range 13 {
		t := goodTrace(i)
		t.Decision.Confidence = 0.9
		t.Decision.Reasoning = "The user asked for a cheap flight, and this fare is the cheapest one."
		if i == 0 || i > 9 { // one of ten: known, and far from the centroid
			t.Action = schema.Action{Type: schema.ActionExecute, Name: "book", Category: schema.CategoryEscalation}
			t.Decision.ValuesApplied = nil
			t.Escalation = schema.Escalation{Present: true, Required: true}
		}
		samples = append(samples, SampleOf(t, facts))
		samples[i].Escalated = i%5 == 0
		samples[i].Benefit, samples[i].HasBenefit = 0.8, true
	}
	samples[12].Escalated = true
	return samples
}

// found steps through samples and returns the analysis of the only alert.
func found(t *testing.T, samples []Sample, p Params) schema.DriftAnalysis {
	t.Helper()
	_, alerts := run(samples, p)
	if len(alerts) != 1 {
		t.Fatalf("%d alerts, want 1", len(alerts))
	}
	return alerts[0].Analysis
}

// Each category alone, by each of its measures, and the indicator for it. What is new to the baseline
// and not contrary to the card is an indicator of no category.
func TestCategories(t *testing.T) {
	const elsewhere = "Sponsored partner inventory maximizes revenue: engagement targets exceeded forecast."
	for name, c := range map[string]struct {
		change    func(x *Sample) // applied to a trace of the streak
		direction schema.Direction
		indicator schema.Indicator
	}{
		"escalation rate halves": {func(x *Sample) { x.Escalated = false }, schema.AutonomyExpansion,
			schema.Indicator{Indicator: EscalationRateDecrease, Baseline: 0.2, Current: 0, Description: "Escalation rate decreased from 20% to 0% of decisions"}},
		"undeclared values": {func(x *Sample) { x.Values, x.Undeclared = 2, 1 }, schema.ValueDrift,
			schema.Indicator{Indicator: UndeclaredValueIncrease, Baseline: 0, Current: 0.5, Description: "Undeclared values rose from 0% to 50% of values applied"}},
		"falling benefit": {func(x *Sample) { x.Benefit = 0.3 }, schema.PrincipalMisalignment,
			schema.Indicator{Indicator: PrincipalBenefitDecrease, Baseline: 0.8, Current: 0.3, Description: "Mean principal_benefit of selected alternatives fell from 0.80 to 0.30"}},
		"no benefit, low confidence": {func(x *Sample) { x.HasBenefit, x.Confidence = false, 0.25 }, schema.PrincipalMisalignment,
			schema.Indicator{Indicator: LowConfidence, Baseline: 0.9, Current: 0.25, Description: "Mean confidence was 0.90 and is 0.25, with principal_benefit declared and not scored"}},
		"new values": {func(x *Sample) { x.Features[2].Key = "value:accuracy" }, schema.UnknownDirection,
			schema.Indicator{Indicator: NewValues, Baseline: 0, Current: 1, Description: "Values unknown to the baseline rose from 0% to 100% of values applied"}},
		"new action name": {func(x *Sample) { x.Features[2].Key = "action_name:wire" }, schema.UnknownDirection,
			schema.Indicator{Indicator: NewActionTypes, Baseline: 0, Current: 1, Description: "Actions unknown to the baseline rose from 0% to 100% of decisions"}},
		"new action type": {func(x *Sample) { x.Features[0].Key = "action:delegate" }, schema.UnknownDirection,
			schema.Indicator{Indicator: NewActionTypes, Baseline: 0, Current: 1, Description: "Actions unknown to the baseline rose from 0% to 100% of decisions"}},
		"diverging reasoning": {func(x *Sample) { x.Reasoning = elsewhere }, schema.CommunicationDrift,
			schema.Indicator{Indicator: ReasoningSimilarityDecrease, Baseline: 1, Current: 0, Description: "Similarity of the selection reasoning to the baseline's fell from 1.00 to 0.00"}},
		"diverging reasoning about new actions": {func(x *Sample) { x.Reasoning, x.Features[2].Key = elsewhere, "action_name:wire" }, schema.UnknownDirection,
			schema.Indicator{Indicator: ReasoningSimilarityDecrease, Baseline: 1, Current: 0, Description: "Similarity of the selection reasoning to the baseline's fell from 1.00 to 0.00"}},
	} {
		t.Run(name, func(t *testing.T) {
			samples := scene()
			for i := 10; i < 13; i++ {
				c.change(&samples[i])
			}
			a := found(t, samples, PublishedParams())
			if a.DriftDirection != c.direction {
				t.Errorf("direction %s, want %s", a.DriftDirection, c.direction)
			}
			if !slices.Contains(a.SpecificIndicators, c.indicator) {
				t.Errorf("indicators %+v lack %+v", a.SpecificIndicators, c.indicator)
			}
		})
	}
}

func TestNoCategoryIsUnknown(t *testing.T) {
	a := found(t, scene(), PublishedParams())
	want := []schema.Indicator{ // one of three escalated, two of ten before
		{Indicator: EscalationRateIncrease, Baseline: 0.2, Current: 0.67, Description: "Escalation rate increased from 20% to 67% of decisions"},
		{Indicator: SimilarityTrend, Baseline: a.SimilarityScore, Current: a.SimilarityScore, Description: "Similarity stable over 3 traces"},
	}
	if a.DriftDirection != schema.UnknownDirection || !slices.Equal(a.SpecificIndicators, want) {
		t.Errorf("analysis %+v, want no direction and %+v", a, want)
	}
}

// If all categories hold, the first is the direction; without it, the next.
func TestOrderOfCategories(t *testing.T) {
	samples := scene()
	for i := 10; i < 13; i++ {
		x := &samples[i]
		x.Escalated, x.Values, x.Undeclared, x.Benefit, x.Reasoning = false, 2, 2, 0.1, "Quarterly revenue targets"
		x.Features[2].Key, x.Features[3].Key = "action_name:wire", "value:profit"
	}
	for _, c := range []struct {
		direction schema.Direction
		undo      func(x *Sample)
	}{
		{schema.AutonomyExpansion, func(x *Sample) { x.Escalated = true }},
		{schema.ValueDrift, func(x *Sample) { x.Undeclared = 0 }},
		{schema.PrincipalMisalignment, func(x *Sample) { x.Benefit = 0.8 }},
		{schema.UnknownDirection, func(x *Sample) { x.Features[2].Key, x.Features[3].Key = "action_name:book", "escalation:required" }},
		{schema.CommunicationDrift, func(x *Sample) { x.Reasoning = "" }},
		{schema.UnknownDirection, func(*Sample) {}},
	} {
		if got := found(t, samples, PublishedParams()).DriftDirection; got != c.direction {
			t.Errorf("direction %s, want %s", got, c.direction)
		}
		for i := 10; i < 13; i++ {
			c.undo(&samples[i])
		}
	}
}

// Text labels a streak and never causes one, whatever it says.
func TestTextNeverEntersTheScore(t *testing.T) {
	plain, telling := scene(), scene()
	for i := range telling {
		telling[i].Reasoning = fmt.Sprint("Reason ", i*i, " of quite another kind.")
	}
	a, alertsA := run(plain, PublishedParams())
	b, alertsB := run(telling, PublishedParams())
	if !slices.Equal(a, b) || len(alertsA) != 1 || len(alertsB) != 1 || alertsA[0].AlertID != alertsB[0].AlertID {
		t.Errorf("points %+v, with other reasoning %+v", a, b)
	}
}

// publishedRules returns the parameters under which the published rules decide.
func publishedRules() Params {
	p := PublishedParams()
	p.Profile, p.Window = ProfileReference, 8
	return p
}

// Under profile reference the escalation rates are those of the first three and the last three
// traces.
func TestEscalationRates(t *testing.T) {
	samples := series("gggggbbb")
	for i := range 3 {
		samples[i].Escalated = true
	}
	a := found(t, samples, publishedRules())
	want := schema.Indicator{Indicator: EscalationRateDecrease, Baseline: 1, Current: 0, Description: "Escalation rate changed from 100% to 0%"}
	if a.DriftDirection != schema.AutonomyExpansion || a.SpecificIndicators[0] != want || len(a.SpecificIndicators) != 2 {
		t.Errorf("analysis %+v", a)
	}
	for i := range samples {
		samples[i].Escalated = i > 4
	}
	if a = found(t, samples, publishedRules()); a.SpecificIndicators[0].Indicator != EscalationRateIncrease {
		t.Errorf("analysis %+v", a)
	}
}

// Under profile reference low confidence means misalignment if the card declares
// principal_benefit.
func TestPrincipalMisalignment(t *testing.T) {
	samples := series("gggggbbb")
	for i := range samples {
		samples[i].Undeclared, samples[i].Confidence = 0, 0.4
	}
	if a := found(t, samples, publishedRules()); a.DriftDirection != schema.PrincipalMisalignment {
		t.Errorf("analysis %+v", a)
	}
	for i := range samples {
		samples[i].DeclaresBenefit = false
	}
	if a := found(t, samples, publishedRules()); a.DriftDirection != schema.UnknownDirection {
		t.Errorf("analysis %+v without a declared principal_benefit", a)
	}
}

func TestExplain(t *testing.T) {
	var s letter
	samples, p := scene(), PublishedParams()
	for _, c := range []struct {
		last int
		want string
	}{
		{3, "No alert: the baseline is being learned, 4 of its 10 traces have come, and nothing is compared before."},
		{10, "No alert: the last 1 were below 0.3 in a row, and it takes 3."},
		{12, "An alert: the last 3 were below 0.3 in a row. It was raised at number 3 of the streak, and one streak raises one."},
	} {
		s = letter{}
		for _, x := range samples[:c.last+1] {
			s.step(x, p)
		}
		if got := s.explain(); got.Why != c.want || got.Traces != c.last+1 || got.Streak != len(got.Low) {
			t.Errorf("after trace %d: %+v, want %s", c.last, got, c.want)
		}
	}
	e := s.explain()
	if e.Baseline == nil || len(e.Baseline.Features) == 0 || e.Direction != found(t, samples, p).DriftDirection {
		t.Errorf("explanation %+v", e)
	}
	usual := samples[5]
	usual.EventTime = usual.EventTime.Add(time.Hour)
	s.step(usual, p)
	if e := s.explain(); e.Why != "No alert: the last trace was at least 0.3 similar to the baseline, so there is no streak." || len(e.Measures) != 0 || e.Direction != "" {
		t.Errorf("after the streak: %+v", e)
	}
}
