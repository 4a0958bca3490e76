package drift

import (
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/schema"
)

// measured steps through samples and returns the measures of the streak at their end.
func measured(samples []Sample) map[string]Measure {
	var s letter
	for _, x := range samples {
		s.step(x, PublishedParams())
	}
	measures := map[string]Measure{}
	for _, m := range s.Measures() {
		measures[m.Indicator.Indicator] = m
	}
	return measures
}

// A figure that cannot be computed is unknown, and no category holds by it: values where none
// are applied, principal_benefit where no trace scores it, reasoning where there is no text to
// compare (AAP section 8.5).
func TestUnknownFigures(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(base, streak []Sample)
		unknown []string
	}{
		"all are there": {func(_, _ []Sample) {}, nil},
		"no values in the streak": {func(_, streak []Sample) {
			for i := range streak {
				streak[i].Values, streak[i].Features = 0, streak[i].Features[:2]
			}
		}, []string{NewValues, UndeclaredValueIncrease}},
		"no benefit in the baseline": {func(base, streak []Sample) {
			for i := range base {
				base[i].HasBenefit = false
			}
			streak[0].Benefit = -1
		}, []string{PrincipalBenefitDecrease}},
		"no benefit in the streak": {func(_, streak []Sample) {
			for i := range streak {
				streak[i].HasBenefit = false
			}
		}, []string{PrincipalBenefitDecrease}},
		"no text in the streak": {func(_, streak []Sample) {
			for i := range streak {
				streak[i].Reasoning = ""
			}
		}, []string{ReasoningSimilarityDecrease}},
		"one text in the baseline": {func(base, _ []Sample) {
			for i := range base[1:] {
				base[1+i].Reasoning = ""
			}
		}, []string{ReasoningSimilarityDecrease}},
		"two texts in the baseline": {func(base, _ []Sample) {
			for i := range base[2:] {
				base[2+i].Reasoning = ""
			}
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			samples := series(strings.Repeat("g", 10) + "bbb")
			for i := range samples {
				samples[i].Benefit, samples[i].HasBenefit, samples[i].Reasoning = 0.5, true, "the cheapest fare"
			}
			c.change(samples[:10], samples[10:])
			var unknown []string
			for name, m := range measured(samples) {
				if !m.Known && name != LowConfidence { // which replaces an unscored benefit
					unknown = append(unknown, name)
				}
				if !m.Known && (m.Notable || m.Holds) {
					t.Errorf("%s is unknown but notable or holds: %+v", name, m)
				}
			}
			if slices.Sort(unknown); !slices.Equal(unknown, c.unknown) {
				t.Errorf("unknown values %q, want %q", unknown, c.unknown)
			}
		})
	}
}

// The similarity of a baseline's texts is the mean over pairs of different texts: no text is
// compared with itself.
func TestReasoningOfABaseline(t *testing.T) {
	const fare, revenue = "the cheapest fare", "Sponsored inventory: engagement targets exceeded."
	for _, c := range []struct {
		texts []string
		want  float64
	}{
		{[]string{fare, fare}, 1},
		{[]string{fare, revenue}, 0},
		{[]string{fare, fare, revenue}, 1. / 3},
		{[]string{fare, "", fare}, 1},
	} {
		var r Reasoning
		for _, text := range c.texts {
			r.add(text)
		}
		if got, known := r.inner(); !known || got < c.want-0.1 || got > c.want+0.1 { // a sketch's error for one pair is 0.07
			t.Errorf("%q have similarity %v, want about %v", c.texts, got, c.want)
		}
	}
}

// Reasoning exactly at a limit has no effect. The result of a sketch cannot be chosen, so the
// test sets the sums: b is products/pairs, in units of a sketch.
func TestLimitsOfReasoning(t *testing.T) {
	const one = 1 << 16
	for name, c := range map[string]struct {
		texts          int
		products       int64   // of all pairs of the baseline's texts, each pair twice
		streak         float64 // similarity of the streak's texts to the baseline's
		notable, holds bool
	}{
		"half as similar":                   {2, one, 0.25, true, false},
		"less than half":                    {2, one, 0.2499, true, true},
		"hardly similar in the baseline":    {5, one, 0, false, false}, // b = 0.05
		"slightly similar in the baseline":  {5, one + 1, 0, true, true},
		"less similar by 0.05":              {2, one / 8, 0.0625 - notableChange, false, true}, // b = 0.0625
		"less similar by more":              {2, one / 8, 0.0124, true, true},
		"as similar as in the baseline":     {2, one, 0.5, false, false},
		"more similar than in the baseline": {2, one, 0.75, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := letter{
				Baseline: &Baseline{Content: Content{Reasoning: Reasoning{Texts: c.texts, Squares: -c.products}}},
				Low:      []Low{{Reasoning: c.streak, HasReasoning: true}},
			}
			measures := s.Measures() // that of the reasoning is the last
			if m := measures[len(measures)-1]; m.Indicator.Indicator != ReasoningSimilarityDecrease || !m.Known || m.Notable != c.notable || m.Holds != c.holds {
				t.Errorf("%+v, want notable %v, holds %v", m, c.notable, c.holds)
			}
		})
	}
}

// A change of the escalation rate by 0.05 gives no indicator, in either direction. An unchanged
// rate is measured as the decrease of AAP section 8.5.
func TestLimitsOfTheEscalationRate(t *testing.T) {
	for name, c := range map[string]struct {
		base, streak int // escalated, of twenty each
		indicator    string
		notable      bool
	}{
		"the same":             {4, 4, EscalationRateDecrease, false},
		"less by 0.05":         {1, 0, EscalationRateDecrease, false},
		"less by 0.1":          {2, 0, EscalationRateDecrease, true},
		"more by 0.05":         {0, 1, EscalationRateIncrease, false},
		"more by 0.1":          {0, 2, EscalationRateIncrease, true},
		"none, then as before": {0, 0, EscalationRateDecrease, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := letter{
				Baseline: &Baseline{Content: Content{Tally: Tally{Traces: 20, Escalated: c.base}}},
				Low:      []Low{{Tally: Tally{Traces: 20, Escalated: c.streak}}},
			}
			if m := s.Measures()[0]; m.Indicator.Indicator != c.indicator || m.Notable != c.notable {
				t.Errorf("%+v, want %s, notable %v", m, c.indicator, c.notable)
			}
		})
	}
}

// The trend compares the first and the last similarity of the streak.
func TestTrend(t *testing.T) {
	for name, c := range map[string]struct {
		weights []float64
		want    []schema.Indicator
	}{
		"falls": {[]float64{2, 1, 0}, []schema.Indicator{{Indicator: SimilarityTrend, Baseline: 0.2052, Current: 0, Description: "Similarity decreasing over 3 traces"}}},
		"rises": {[]float64{0, 1, 2}, []schema.Indicator{{Indicator: SimilarityTrend, Baseline: 0, Current: 0.2052, Description: "Similarity stable over 3 traces"}}},
		"stays": {[]float64{2, 0, 2}, []schema.Indicator{{Indicator: SimilarityTrend, Baseline: 0.2052, Current: 0.2052, Description: "Similarity stable over 3 traces"}}},
		"short": {[]float64{2, 1}, nil},
	} {
		p := PublishedParams()
		p.Sustained = len(c.weights)
		var got []schema.Indicator
		for _, indicator := range found(t, exact(c.weights...), p).SpecificIndicators {
			if indicator.Indicator == SimilarityTrend {
				got = append(got, indicator)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
