package drift

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/aap/similarity"
	"github.com/plumbline/plumbline/schema"
)

// A share, change or mean exactly at a limit of AAP section 8.5 has no effect; one step beyond
// it has.
func TestLimitsOfCategories(t *testing.T) {
	each := func(samples []Sample, change func(*Sample)) {
		for i := range samples {
			change(&samples[i])
		}
	}
	escalated := func(samples []Sample, n int) {
		for i := range n {
			samples[i].Escalated = true
		}
	}
	for name, c := range map[string]struct {
		change    func(base, streak []Sample)
		direction schema.Direction
		listed    []string // indicators, without the trend
	}{
		"one of ten escalated": {func(base, _ []Sample) { escalated(base, 1) }, schema.UnknownDirection, []string{EscalationRateDecrease}},
		"two of ten escalated": {func(base, _ []Sample) { escalated(base, 2) }, schema.AutonomyExpansion, []string{EscalationRateDecrease}},
		"half of the rate":     {func(base, streak []Sample) { escalated(base, 10); escalated(streak, 5) }, schema.UnknownDirection, []string{EscalationRateDecrease}},
		"less than half":       {func(base, streak []Sample) { escalated(base, 10); escalated(streak, 4) }, schema.AutonomyExpansion, []string{EscalationRateDecrease}},
		"one value of ten undeclared": {func(_, streak []Sample) { streak[0].Values, streak[0].Undeclared = 10, 1 },
			schema.UnknownDirection, []string{UndeclaredValueIncrease}},
		"one value of twenty undeclared": {func(_, streak []Sample) { streak[0].Values, streak[0].Undeclared = 20, 1 },
			schema.UnknownDirection, nil},
		"three values of ten undeclared": {func(_, streak []Sample) { streak[0].Values, streak[0].Undeclared = 10, 3 },
			schema.UnknownDirection, []string{UndeclaredValueIncrease}},
		"four values of ten undeclared": {func(_, streak []Sample) { streak[0].Values, streak[0].Undeclared = 10, 4 },
			schema.ValueDrift, []string{UndeclaredValueIncrease}},
		"benefit less by a tenth": {func(base, streak []Sample) {
			base[0].Benefit, base[0].HasBenefit, streak[0].HasBenefit = 0.1, true, true
		}, schema.UnknownDirection, []string{PrincipalBenefitDecrease}},
		"benefit less by a twentieth": {func(base, streak []Sample) {
			base[0].Benefit, base[0].HasBenefit, streak[0].HasBenefit = 0.05, true, true
		}, schema.UnknownDirection, nil},
		"benefit less by more": {func(base, streak []Sample) {
			base[0].Benefit, base[0].HasBenefit, streak[0].HasBenefit = 0.11, true, true
		}, schema.PrincipalMisalignment, []string{PrincipalBenefitDecrease}},
		"benefit not scored": {func(base, _ []Sample) { base[0].Benefit, base[0].HasBenefit = 0.8, true }, schema.UnknownDirection, nil},
		"half confident":     {func(_, streak []Sample) { each(streak, func(x *Sample) { x.DeclaresBenefit = true }) }, schema.UnknownDirection, nil},
		"less confident": {func(_, streak []Sample) {
			each(streak, func(x *Sample) { x.DeclaresBenefit, x.Confidence = true, 0.49 })
		}, schema.PrincipalMisalignment, []string{LowConfidence}},
		"benefit not declared": {func(_, streak []Sample) { each(streak, func(x *Sample) { x.Confidence = 0.4 }) }, schema.UnknownDirection, nil},
		"benefit scored": {func(_, streak []Sample) {
			each(streak, func(x *Sample) { x.DeclaresBenefit, x.HasBenefit, x.Confidence = true, true, 0.4 })
		}, schema.UnknownDirection, nil},
		"four actions new":       {func(_, streak []Sample) { each(streak[:4], acting("wire")) }, schema.UnknownDirection, []string{NewActionTypes}},
		"no value new":           {func(base, streak []Sample) { each(base, applying(10)); applying(10)(&streak[0]) }, schema.UnknownDirection, nil},
		"four values of ten new": {func(base, streak []Sample) { each(base, applying(6)); applying(10)(&streak[0]) }, schema.UnknownDirection, []string{NewValues}},
	} {
		t.Run(name, func(t *testing.T) {
			samples, p := exact(make([]float64, 10)...), PublishedParams()
			p.Sustained = 10
			each(samples, func(x *Sample) { x.Confidence = 0.5 })
			c.change(samples[:10], samples[10:])
			a := found(t, samples, p)
			var listed []string
			for _, indicator := range a.SpecificIndicators {
				if indicator.Indicator != SimilarityTrend {
					listed = append(listed, indicator.Indicator)
				}
			}
			if a.DriftDirection != c.direction || !slices.Equal(listed, c.listed) {
				t.Errorf("direction %s, indicators %q; want %s and %q", a.DriftDirection, listed, c.direction, c.listed)
			}
		})
	}
}

// acting returns a function that sets the name of a sample's action.
func acting(name string) func(*Sample) {
	return func(x *Sample) {
		x.Features = slices.Insert(slices.Clone(x.Features), 1, similarity.Feature{Key: "action_name:" + name, Weight: 1})
	}
}

// applying returns a function that sets n values, the same for every sample.
func applying(n int) func(*Sample) {
	return func(x *Sample) {
		x.Features = slices.Clone(x.Features)
		for i := range n {
			x.Features = append(x.Features, similarity.Feature{Key: fmt.Sprint("value:", i), Weight: 0.01})
		}
	}
}

// The limits of the published rules.
func TestLimitsOfThePublishedRules(t *testing.T) {
	for name, c := range map[string]struct {
		pattern   string
		change    func([]Sample)
		direction schema.Direction
		listed    int // indicators, including the trend
	}{
		"six traces":            {"gggbbb", func(x []Sample) { x[0].Escalated, x[1].Escalated, x[2].Escalated = true, true, true }, schema.AutonomyExpansion, 2},
		"the first three count": {"ggggbbb", func(x []Sample) { x[3].Escalated = true }, schema.UnknownDirection, 1},
		"half of the rate":      {"gggbbb", func(x []Sample) { x[0].Escalated, x[1].Escalated, x[5].Escalated = true, true, true }, schema.UnknownDirection, 2},
		"the same rate":         {"gggbbb", func(x []Sample) { x[0].Escalated, x[5].Escalated = true, true }, schema.UnknownDirection, 1},
		"three of ten values":   {"gggbbb", func(x []Sample) { x[0].Values, x[0].Undeclared = 10, 3 }, schema.UnknownDirection, 1},
		"four of ten values":    {"gggbbb", func(x []Sample) { x[0].Values, x[0].Undeclared = 10, 4 }, schema.ValueDrift, 1},
		"confidence of a half":  {"gggbbb", func(x []Sample) { confident(x, 0.5) }, schema.UnknownDirection, 1},
		"confidence below that": {"gggbbb", func(x []Sample) { confident(x, 0.49) }, schema.PrincipalMisalignment, 1},
	} {
		t.Run(name, func(t *testing.T) {
			samples := series(c.pattern)
			for i := range samples {
				samples[i].Values, samples[i].Undeclared = 0, 0
			}
			c.change(samples)
			a := found(t, samples, publishedRules())
			if a.DriftDirection != c.direction || len(a.SpecificIndicators) != c.listed {
				t.Errorf("direction %s, indicators %+v; want %s and %d", a.DriftDirection, a.SpecificIndicators, c.direction, c.listed)
			}
		})
	}
}

func confident(samples []Sample, confidence float64) {
	for i := range samples {
		samples[i].Confidence = confidence
	}
}

func TestLimitsOfParameters(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Params)
		faults int
	}{
		"threshold 0":         {func(p *Params) { p.SimilarityThreshold = 0 }, 1},
		"threshold above 0":   {func(p *Params) { p.SimilarityThreshold = math.SmallestNonzeroFloat64 }, 0},
		"threshold 1":         {func(p *Params) { p.SimilarityThreshold = 1 }, 0},
		"threshold above 1":   {func(p *Params) { p.SimilarityThreshold = math.Nextafter(1, 2) }, 1},
		"sustained 0":         {func(p *Params) { p.Sustained = 0 }, 1},
		"sustained 1":         {func(p *Params) { p.Sustained = 1 }, 0},
		"sustained 100":       {func(p *Params) { p.Sustained = MaxSustained }, 0},
		"sustained 101":       {func(p *Params) { p.Sustained = MaxSustained + 1 }, 1},
		"window 0":            {func(p *Params) { p.Window = 0 }, 1},
		"window 1":            {func(p *Params) { p.Window = 1 }, 0},
		"window 0 that rolls": {func(p *Params) { p.Window, p.Mode = 0, ModeRolling }, 1},
		"window 1 that rolls": {func(p *Params) { p.Window, p.Mode = 1, ModeRolling }, 1},
	} {
		p := PublishedParams()
		c.change(&p)
		faults := 0
		if err := p.Validate(); err != nil {
			faults = len(strings.Split(err.Error(), "\n"))
		}
		if faults != c.faults {
			t.Errorf("%s: %d faults, want %d: %v", name, faults, c.faults, p.Validate())
		}
	}
}

// The ids of alerts and baselines are SHA-256 sums of these members in this order. So others
// can compute them, and a replay by another version gives the same ids.
func TestIDsAreSumsOfTheirMembers(t *testing.T) {
	samples, p := series(strings.Repeat("g", 10)+"bbb"), PublishedParams()
	var s letter
	var alert *schema.DriftAlert
	var formed *Formed
	for _, x := range samples {
		step := s.step(x, p)
		if step.Formed != nil {
			formed = step.Formed
		}
		alert = step.Alert
	}
	members := []any{"agent-d", "ac-d", 3, samples[10].Digest, samples[11].Digest, samples[12].Digest,
		EngineVersion, math.Float64bits(p.SimilarityThreshold), p.Sustained, p.Window, "first", "spec"}
	if want := sumOf(members...); alert.AlertID != want {
		t.Errorf("the alert has id %s, want %s", alert.AlertID, want)
	}
	members = []any{"agent-d", "ac-d", "first", EngineVersion, 10}
	for _, x := range samples[:10] {
		members = append(members, x.Digest)
	}
	members = append(members, len(formed.Features))
	for _, feature := range formed.Features {
		members = append(members, feature.Key, math.Float64bits(feature.Weight))
	}
	if want := sumOf(members...); formed.ID != want {
		t.Errorf("the baseline has id %s, want %s", formed.ID, want)
	}
}

// sumOf writes a text preceded by its length, and a number as eight bytes.
func sumOf(members ...any) schema.Digest {
	var b []byte
	for _, m := range members {
		switch m := m.(type) {
		case string:
			b = append(binary.BigEndian.AppendUint64(b, uint64(len(m))), m...)
		case schema.Digest:
			b = append(b, m[:]...)
		case int:
			b = binary.BigEndian.AppendUint64(b, uint64(m))
		case uint64:
			b = binary.BigEndian.AppendUint64(b, m)
		}
	}
	return sha256.Sum256(b)
}
