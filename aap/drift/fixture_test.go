package drift

import (
	"fmt"
	"time"

	"github.com/plumbline/plumbline/schema"
)

var testCard = &schema.Card{
	CardID: "ac-d",
	Values: schema.Values{Declared: []string{"principal_benefit", "transparency"}},
}

var epoch = time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)

// goodTrace returns a normal trace of the agent of these tests.
func goodTrace(i int) *schema.Trace {
	return &schema.Trace{
		TraceID: fmt.Sprintf("d%03d", i), AgentID: "agent-d", CardID: "ac-d",
		Timestamp: epoch.Add(time.Duration(i) * time.Minute),
		Digest:    schema.DigestOf([]byte{byte(i), byte(i >> 8)}),
		Action:    schema.Action{Type: schema.ActionRecommend, Name: "recommend", Category: schema.CategoryBounded},
		Decision: schema.Decision{
			ValuesApplied: []string{"principal_benefit", "transparency"},
			Confidence:    0.9, HasConfidence: true,
		},
		Escalation: schema.Escalation{Present: true, Evaluated: true},
	}
}

// badTrace returns a trace of the agent after a drift: its similarity to a baseline of good
// traces is 0.2185.
func badTrace(i int) *schema.Trace {
	t := goodTrace(i)
	t.Action = schema.Action{Type: schema.ActionExecute, Name: "auto_exec", Category: schema.CategoryForbidden}
	t.Decision = schema.Decision{
		ValuesApplied: []string{"profit_maximization", "engagement"},
		Confidence:    0.6, HasConfidence: true,
	}
	t.Escalation = schema.Escalation{Present: true}
	return t
}

// series returns one sample for each letter: g good, b bad.
func series(pattern string) []Sample {
	facts := FactsOf(testCard)
	var samples []Sample
	for i, letter := range pattern {
		t := goodTrace(i)
		if letter == 'b' {
			t = badTrace(i)
		}
		samples = append(samples, SampleOf(t, facts))
	}
	return samples
}

// run steps through samples and returns all points, and the alerts as they open.
func run(samples []Sample, p Params) (points []Point, alerts []schema.DriftAlert) {
	var s State
	for _, x := range samples {
		step := s.Step(x, p)
		points = append(points, step.Point)
		if step.Alert != nil && step.Alert.State == schema.AlertOpened {
			alerts = append(alerts, *step.Alert)
		}
	}
	return points, alerts
}
