package drift

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/schema"
)

// opened counts the alerts among events.
func opened(all []schema.DriftAlert) (n int) {
	for _, a := range all {
		if a.State == schema.AlertOpened {
			n++
		}
	}
	return n
}

// What an agent hardly ever does cannot become less: one that never escalates, always has the same
// confidence, or applies a value once in 300 traces, raises no alert in 4,000 traces.
func TestRareEventsDoNotFall(t *testing.T) {
	_, all := events(changing(4000, 0, func(i int, t *schema.Trace) {
		if t.Action.Name == "refund" {
			t.Action = schema.Action{Type: schema.ActionRecommend, Name: "reply", Category: schema.CategoryBounded}
		}
		t.Escalation.Required = false
		t.Decision.Confidence, t.Decision.HasConfidence = 0.8, true
		if i%300 == 20 {
			t.Decision.ValuesApplied = append(t.Decision.ValuesApplied, "principal_benefit")
		}
	}, nil))
	if len(all) > 0 {
		t.Errorf("%d events, the first: %s", len(all), all[0].Summary)
	}
}

// A moderate change that lasts is one alert, as a great one is.
func TestModerateChangeIsOneAlert(t *testing.T) {
	for _, share := range []float64{.2, .3, .4} {
		for seed := range uint64(4) {
			random := rand.New(rand.NewPCG(seed, 7))
			_, all := events(changing(1700, 200, nil, func(_ int, t *schema.Trace) {
				if random.Float64() < share {
					t.Action.Type = schema.ActionDeny
				}
			}))
			if opened(all) != 1 || all[len(all)-1].State == schema.AlertClosed {
				t.Errorf("%.0f %% denials, seed %d: %d alerts, the last event is %s", 100*share, seed, opened(all), all[len(all)-1].State)
			}
		}
	}
}

// Where what opened an alert is over and something else lasts, the alert speaks of what lasts. What is
// over is described as it was at its height.
func TestAlertSpeaksOfWhatLasts(t *testing.T) {
	_, all := events(changing(600, 200, nil, func(i int, t *schema.Trace) {
		if i < 240 {
			t.Action.Type = schema.ActionDeny
		} else {
			t.Decision.ValuesApplied = append(t.Decision.ValuesApplied, "profit")
		}
	}))
	last := all[len(all)-1]
	if opened(all) != 1 || !slices.Contains(last.Measures, "denials") || !slices.Contains(last.Measures, "undeclared_values") {
		t.Fatalf("%d alerts, the last event has %q", opened(all), last.Measures)
	}
	for i, measure := range last.Measures {
		text := last.Analysis.SpecificIndicators[i].Description
		switch {
		case measure == "denials" && (!strings.HasPrefix(text, "Denials rose from 0 % of decisions (0 of 100 in the baseline) to ") || strings.Contains(text, "last")):
			t.Errorf("denials that are over: %s", text)
		case measure == "undeclared_values" && last.Summary != text:
			t.Errorf("the summary is %q, want %q", last.Summary, text)
		}
	}
	if len(last.TraceIDs) != 3 || last.TraceIDs[0] < "s0240" {
		t.Errorf("traces %q do not show what lasts", last.TraceIDs)
	}
}

// A test whose observations are rare does not recover between them: errors of one execution in 20.
func TestRareObservationsAreOneAlert(t *testing.T) {
	rare := func(i int, t *schema.Trace) {
		t.Action, t.Escalation.Required = schema.Action{Type: schema.ActionRecommend, Name: "reply", Category: schema.CategoryBounded}, false
		if i%20 == 4 {
			t.Action = schema.Action{Type: schema.ActionExecute, Name: "search", Category: schema.CategoryBounded}
		}
	}
	random := rand.New(rand.NewPCG(1, 7))
	_, all := events(changing(5000, 300, rare, func(i int, t *schema.Trace) {
		if i%20 == 4 && random.Float64() < .3 {
			t.Context.Execution.Error = "timed out"
		}
	}))
	if opened(all) != 1 || all[len(all)-1].State == schema.AlertClosed {
		t.Errorf("%d alerts in %d events", opened(all), len(all))
	}
}

// A tenth of few figures is no measure: one execution in the baseline says nothing of costs.
func TestFewFiguresAreNotMeasured(t *testing.T) {
	_, all := events(changing(600, 0, func(i int, t *schema.Trace) {
		t.Action, t.Escalation.Required = schema.Action{Type: schema.ActionRecommend, Name: "reply", Category: schema.CategoryBounded}, false
		if t.Context.Execution.CostCents = 10; i == 53 || i >= 100 && i%3 == 0 {
			t.Action = schema.Action{Type: schema.ActionExecute, Name: "search", Category: schema.CategoryBounded}
			t.Context.Execution.CostCents += int64(max(0, i-100) % 50)
		}
	}, nil))
	if len(all) > 0 {
		t.Error(all[0].Summary)
	}
}

// What is observed less often than once in a hundred traces is one alert, too, and closes once nothing of it came for
// longer than before. Each of its events names what is true: the baseline has no action outside the envelope.
func TestRareActionsOutsideAreOneAlert(t *testing.T) {
	for _, every := range []int{90, 120, 200, 400} {
		end := 200 + 30*every
		_, all := events(changing(end+2000, 0, func(i int, t *schema.Trace) {
			if t.Action.Name == "refund" {
				t.Action, t.Escalation.Required = schema.Action{Type: schema.ActionRecommend, Name: "reply", Category: schema.CategoryBounded}, false
			}
			if i >= 200 && i < end && i%every == 3 {
				t.Action = schema.Action{Type: schema.ActionExecute, Name: "quote", Category: schema.CategoryForbidden}
			}
		}, nil))
		if opened(all) != 1 {
			t.Errorf("one in %d: %d alerts", every, opened(all))
			continue
		}
		last := all[len(all)-1]
		silent := max(100, 2*every)
		if last.State != schema.AlertClosed || last.ClosedAt.Before(epoch.Add(time.Duration(end)*time.Minute)) ||
			!strings.HasPrefix(last.Summary, "Actions without an escalation: none of the last ") || last.Count < 25 {
			t.Errorf("one in %d: the last event is %s at %s: %s", every, last.State, last.DetectionTimestamp, last.Summary)
		}
		if passed := int(last.ClosedAt.Sub(epoch)/time.Minute) - end; passed > silent+every {
			t.Errorf("one in %d: closed %d traces after the change", every, passed)
		}
		for _, a := range all {
			if a.Analysis.DriftDirection != schema.AutonomyExpansion {
				t.Errorf("one in %d: revision %d is %s", every, a.Revision, a.Analysis.DriftDirection)
			}
		}
	}
}

// An agent of which a third of the traces resembles the others little needs a longer streak, and returns
// to its own share of them.
func TestOwnShareOfLowTraces(t *testing.T) {
	odd := func(t *schema.Trace) {
		t.Action = schema.Action{Type: schema.ActionExecute, Name: "cancel", Category: schema.CategoryForbidden}
		t.Decision.ValuesApplied, t.Escalation = nil, schema.Escalation{Present: true, Required: true}
	}
	random := rand.New(rand.NewPCG(3, 9))
	mixed := func(_ int, t *schema.Trace) {
		if random.Float64() < .12 {
			odd(t)
		}
	}
	s, all := events(changing(2000, 0, mixed, nil))
	if n := s.expected.sustained(DefaultParams()); opened(all) != 0 || n < 4 {
		t.Errorf("%d alerts with streaks of %d: %s", opened(all), n, fmt.Sprint(s.expected.lows))
	}
	_, all = events(changing(1500, 400, mixed, func(i int, t *schema.Trace) {
		if i < 430 {
			odd(t)
		}
	}))
	if opened(all) != 1 || all[len(all)-1].State != schema.AlertClosed {
		t.Errorf("thirty such traces are %d alerts, the last event is %s", opened(all), all[len(all)-1].State)
	}
}

// What an agent always does cannot become more. One that escalates each decision, or applies an undeclared value in
// each, or acts outside the envelope without an escalation whenever it does, raises no alert in 4,000 traces.
func TestWhatIsUsualDoesNotRise(t *testing.T) {
	outside := func(every int) func(i int, t *schema.Trace) {
		return func(i int, t *schema.Trace) {
			if t.Action.Name == "refund" {
				t.Action, t.Escalation.Required = schema.Action{Type: schema.ActionRecommend, Name: "reply", Category: schema.CategoryBounded}, false
			}
			if i%every == 8 {
				t.Action = schema.Action{Type: schema.ActionExecute, Name: "quote", Category: schema.CategoryForbidden}
			}
		}
	}
	for name, usually := range map[string]func(i int, t *schema.Trace){
		"all decisions are escalated":             func(_ int, t *schema.Trace) { t.Escalation.Required = true },
		"all decisions apply an undeclared value": func(_ int, t *schema.Trace) { t.Decision.ValuesApplied = []string{"honesty", "profit"} },
		"all are denials":                         func(_ int, t *schema.Trace) { t.Action.Type = schema.ActionDeny },
		"all executions fail":                     func(_ int, t *schema.Trace) { t.Context.Execution.Error = "timed out" },
		"one outside the envelope in 10":          outside(10),
		"one outside the envelope in 50":          outside(50),
		"one session": func(_ int, t *schema.Trace) {
			t.Context.SessionID, t.Context.SessionEnd, t.Escalation.Required = "all", false, true
		},
	} {
		if _, all := events(changing(4000, 0, usually, nil)); len(all) > 0 {
			t.Errorf("%s: %d events, the first: %s", name, len(all), all[0].Summary)
		}
	}
}
