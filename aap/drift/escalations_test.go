package drift

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/schema"
)

// handing returns n decisions of an agent that replies, and hands over the given share of its cases by an action that
// is always escalated, with the values of its other decisions. It names one alternative for each session.
func handing(n int, share func(i int, random *rand.Rand) float64, change func(i int, t *schema.Trace)) []Sample {
	random := rand.New(rand.NewPCG(3, 5))
	return changing(n, 0, func(i int, t *schema.Trace) {
		t.Action = schema.Action{Type: schema.ActionRecommend, Name: "reply", Category: schema.CategoryBounded}
		if t.Escalation.Required = random.Float64() < share(i, random); t.Escalation.Required {
			t.Action = schema.Action{Type: schema.ActionEscalate, Name: "refund", Category: schema.CategoryEscalation}
		}
	}, change)
}

// constantly hands over the same share of all cases.
func constantly(share float64) func(int, *rand.Rand) float64 {
	return func(int, *rand.Rand) float64 { return share }
}

// An agent that hands over nine cases in ten instead of one in twenty, by the action by which it always did, has an alert
// that says so, and so has one that does it by an action that only the card names. It closes when that is over.
func TestHandOversRise(t *testing.T) {
	const measure = "escalation_rate_up"
	for name, cancels := range map[string]bool{"the same action": false, "an action that the card names": true} {
		t.Run(name, func(t *testing.T) {
			samples := handing(800, func(i int, _ *rand.Rand) float64 {
				if i >= 200 && i < 400 {
					return .9
				}
				return .05
			}, func(i int, t *schema.Trace) {
				if cancels && t.Escalation.Required && i >= 200 && i < 400 {
					t.Action.Name = "cancel"
				}
			})
			_, all := events(samples)
			if len(all) == 0 || opened(all) != 1 {
				t.Fatalf("%d alerts", opened(all))
			}
			first, last := all[0], all[len(all)-1]
			if !slices.Contains(all[len(all)-2].Measures, measure) || first.OpenedAt.After(samples[260].EventTime) {
				t.Errorf("opened at %s by %q", first.OpenedAt, first.Measures)
			}
			for _, a := range all {
				if a.Analysis.DriftDirection != schema.UnknownDirection {
					t.Errorf("revision %d is %s", a.Revision, a.Analysis.DriftDirection)
				}
				if i := slices.Index(a.Measures, measure); i >= 0 {
					if text := a.Analysis.SpecificIndicators[i].Description; !strings.HasPrefix(text, "Escalations rose from ") || !strings.Contains(text, " % of decisions (") || !strings.Contains(text, " of 100 in the baseline) to ") {
						t.Errorf("revision %d says %q", a.Revision, text)
					}
				}
				for _, id := range a.TraceIDs {
					if i := slices.IndexFunc(samples, func(x Sample) bool { return x.TraceID == id }); i < 200 || !samples[i].Escalated {
						t.Errorf("revision %d names trace %s, which is not escalated, or before the change", a.Revision, id)
					}
				}
			}
			if last.State != schema.AlertClosed || last.ClosedAt.Before(samples[400].EventTime) {
				t.Errorf("the last event is %s, at %s", last.State, last.DetectionTimestamp)
			}
		})
	}
}

// How many of 20 agents have an alert within 600 traces after they hand over more, and after how many traces: docs/DRIFT.md
// has the table. Sessions have ten traces. All are alike, or nearly all decisions of a session are escalated, or nearly none.
func TestRisesOfHandOvers(t *testing.T) {
	const agents, before = 20, 200
	for _, kind := range []string{"sessions are alike", "all of a session or none"} {
		for _, change := range [][2]float64{{.05, .9}, {.05, .5}, {.05, .3}, {.2, .5}} {
			found, delay := 0, 0
			for seed := range uint64(agents) {
				random := rand.New(rand.NewPCG(seed, 9))
				var of float64 // the session's share
				samples := handing(before+600, constantly(0), func(i int, t *schema.Trace) {
					share := change[0]
					if i >= before {
						share = change[1]
					}
					if kind == "sessions are alike" {
						of = share
					} else if i%10 == 0 {
						if of = .02; random.Float64() < (share-.02)/.96 {
							of = .98
						}
					}
					if random.Float64() < of {
						t.Escalation.Required = true
						t.Action = schema.Action{Type: schema.ActionEscalate, Name: "refund", Category: schema.CategoryEscalation}
					}
				})
				_, all := events(samples)
				for _, a := range all {
					if at := slices.IndexFunc(samples, func(x Sample) bool { return x.EventTime.Equal(a.DetectionTimestamp) }); at >= before {
						found, delay = found+1, delay+at-before
						break
					}
				}
			}
			t.Logf("%s, %.0f %% to %.0f %%: %d of %d, after %d traces in the mean", kind, 100*change[0], 100*change[1], found, agents, delay/max(1, found))
			if change[1] == .9 && found < agents {
				t.Errorf("%s: %d of %d found", kind, found, agents)
			}
		}
	}
}

// An agent that hands over as often as it always did has no alert, however often that is, and neither has one whose
// share differs from session to session, in the baseline and after it.
func TestUsualHandOversAreQuiet(t *testing.T) {
	bySession := map[string]float64{}
	wandering := func(shares ...float64) func(int, *rand.Rand) float64 {
		clear(bySession)
		return func(i int, random *rand.Rand) float64 {
			id := fmt.Sprint(i / 10)
			if _, known := bySession[id]; !known {
				bySession[id] = shares[random.IntN(len(shares))]
			}
			return bySession[id]
		}
	}
	for name, share := range map[string]func() func(int, *rand.Rand) float64{
		"nine cases in ten":                    func() func(int, *rand.Rand) float64 { return constantly(.9) },
		"every case":                           func() func(int, *rand.Rand) float64 { return constantly(1) },
		"one case in twenty":                   func() func(int, *rand.Rand) float64 { return constantly(.05) },
		"none":                                 func() func(int, *rand.Rand) float64 { return constantly(0) },
		"half of the sessions entirely":        func() func(int, *rand.Rand) float64 { return wandering(0, 1) },
		"a third of the sessions, nine in ten": func() func(int, *rand.Rand) float64 { return wandering(.9, .05, .05) },
		"any share":                            func() func(int, *rand.Rand) float64 { return wandering(0, .1, .2, .4, .6, .8) },
	} {
		if _, all := events(handing(4000, share(), nil)); len(all) > 0 {
			t.Errorf("%s: %d events, the first: %s", name, len(all), all[0].Summary)
		}
	}
}

// An agent that no longer does what it always escalated has an alert that says so, and is not accused of an expansion of
// autonomy: it may have other tasks. One that does it without an escalation is.
func TestHandOversFall(t *testing.T) {
	falling := func(i int, _ *rand.Rand) float64 {
		if i >= 300 {
			return 0
		}
		return .4
	}
	_, all := events(handing(600, falling, nil))
	if len(all) == 0 || all[0].Measures[0] != "escalation_rate_down" || !strings.HasPrefix(all[0].Summary, "Escalations fell from ") {
		t.Fatalf("events %+v", all)
	}
	for _, a := range all {
		if a.Analysis.DriftDirection != schema.UnknownDirection {
			t.Errorf("revision %d is %s, of %q", a.Revision, a.Analysis.DriftDirection, a.Measures)
		}
	}
	_, all = events(handing(600, constantly(.4), func(i int, t *schema.Trace) {
		if i >= 300 {
			t.Escalation.Required = false
		}
	}))
	if len(all) == 0 || all[len(all)-1].Analysis.DriftDirection != schema.AutonomyExpansion {
		t.Fatalf("the same actions without an escalation: %+v", all)
	}
}

// An agent that hands over one session in twenty entirely has no alert, although its baseline may have none of these
// sessions: one long session says little about the agent. Before, one in three of these agents had an alert.
func TestOneLongSessionIsNoRate(t *testing.T) {
	for seed := range uint64(8) {
		random := rand.New(rand.NewPCG(seed, 8))
		session, length, all := 0, 0, false
		samples := handing(2400, constantly(0), func(_ int, t *schema.Trace) {
			if length == 0 {
				session, length, all = session+1, 20+random.IntN(60), session > 4 && random.Float64() < .05
			}
			length--
			t.Context.SessionID, t.Context.SessionEnd = fmt.Sprint(session), length == 0
			if all {
				t.Action = schema.Action{Type: schema.ActionEscalate, Name: "refund", Category: schema.CategoryEscalation}
				t.Escalation.Required = true
			}
		})
		_, alerts := events(samples)
		for _, a := range alerts {
			if slices.Contains(a.Measures, "escalation_rate_up") {
				t.Fatalf("fleet %d: %s", seed, a.Summary)
			}
		}
	}
}

// A sentence about the actions that are usually escalated does not speak of all decisions: those may be escalated more.
func TestFallOfUsualEscalationsIsSaidOfThem(t *testing.T) {
	_, all := events(changing(400, 200, nil, func(i int, t *schema.Trace) {
		switch {
		case t.Action.Name == "refund":
			t.Action.Type, t.Escalation.Required = schema.ActionExecute, false
		case i%3 > 0:
			t.Action = schema.Action{Type: schema.ActionEscalate, Name: "cancel", Category: schema.CategoryEscalation}
			t.Escalation.Required = true
		}
	}))
	for _, a := range all {
		if i := slices.Index(a.Measures, "escalations_down"); i >= 0 {
			says := a.Analysis.SpecificIndicators[i]
			if !strings.HasPrefix(says.Description, "Escalations fell: 0 of the last ") || !strings.Contains(says.Description, " decisions in which they are usual, where the baseline leads to expect ") || says.Baseline < .5 {
				t.Errorf("revision %d says %+v", a.Revision, says)
			}
			return
		}
	}
	t.Errorf("no alert: %+v", all)
}
