package drift

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/aap/similarity"
	"github.com/plumbline/plumbline/schema"
)

var envelope = &schema.Card{
	CardID: "ac-s",
	Values: schema.Values{Declared: []string{"honesty", "speed", "principal_benefit"}},
	Autonomy: schema.Autonomy{
		BoundedActions:     []string{"search", "reply"},
		ForbiddenActions:   []string{"wipe"},
		EscalationTriggers: []schema.Trigger{{Condition: `tool_name == "refund"`}, {Condition: `tool_name == "cancel"`}},
	},
}

// usual returns the i-th decision of an agent whose sessions of ten do the same: searches, replies,
// and one refund that is escalated.
func usual(i int) *schema.Trace {
	t := goodTrace(i)
	t.AgentID, t.CardID = "agent-s", "ac-s"
	t.TraceID = fmt.Sprintf("s%04d", i)
	t.Digest = schema.DigestOf([]byte(t.TraceID))
	t.Context.SessionID, t.Context.SessionEnd = fmt.Sprint("session-", i/10), i%10 == 9
	t.Context.Execution = schema.Execution{Present: true, CostCents: int64(5 + i%7)}
	t.Decision = schema.Decision{
		Reasoning:     fmt.Sprintf("The customer asked about fare %d, and this flight is the cheapest one of the day.", i%13),
		ValuesApplied: []string{"honesty", "speed"},
	}
	switch {
	case i%10 == 4:
		t.Action = schema.Action{Type: schema.ActionEscalate, Name: "refund", Category: schema.CategoryEscalation}
		t.Escalation.Required = true
	case i%2 == 0:
		t.Action = schema.Action{Type: schema.ActionExecute, Name: "search", Category: schema.CategoryBounded}
	default:
		t.Action = schema.Action{Type: schema.ActionRecommend, Name: "reply", Category: schema.CategoryBounded}
	}
	return t
}

// changing returns n usual decisions, of which those from at on are changed.
func changing(n, at int, usually, change func(i int, t *schema.Trace)) []Sample {
	facts := FactsOf(envelope)
	samples := make([]Sample, n)
	for i := range samples {
		t := usual(i)
		if usually != nil {
			usually(i, t)
		}
		if i >= at && change != nil {
			change(i, t)
		}
		samples[i] = SampleOf(t, facts)
	}
	return samples
}

// events steps through samples under the default and returns all events.
func events(samples []Sample) (s *State, all []schema.DriftAlert) {
	s = new(State)
	for _, x := range samples {
		if step := s.Step(x, DefaultParams()); step.Alert != nil {
			all = append(all, *step.Alert)
		}
	}
	return s, all
}

func scored(score string) func(int, *schema.Trace) {
	return func(_ int, t *schema.Trace) {
		t.Decision.Selected = "A"
		t.Decision.Alternatives = []schema.Alternative{{OptionID: "A", ScoringFactors: factor("principal_benefit", score)}}
	}
}

func atConfidence(confidence float64) func(int, *schema.Trace) {
	return func(_ int, t *schema.Trace) { t.Decision.HasConfidence, t.Decision.Confidence = true, confidence }
}

// One lasting change is one alert with every member of AAP section 8.4: it opens, is updated when its count
// reaches a power of two, and closes after the change.
func TestOneConditionIsOneAlert(t *testing.T) {
	samples := changing(600, 200, nil, func(i int, t *schema.Trace) {
		if i < 400 && i%3 > 0 {
			t.Action.Type = schema.ActionDeny
		}
	})
	state, all := events(samples)
	last := len(all) - 1
	if last < 4 || all[0].State != schema.AlertOpened || all[last].State != schema.AlertClosed || state.open != nil {
		t.Fatalf("%d events", len(all))
	}
	for i, a := range all {
		if a.AlertID != all[0].AlertID || a.Revision != i+1 || !a.OpenedAt.Equal(all[0].DetectionTimestamp) || a.BaselineID != state.expected.ID {
			t.Errorf("event %d: %+v", i, a)
		}
		if a.Methodology != Methodology(DefaultParams()) || a.Mode != "sessions" || a.AlertType != alertType || len(a.TraceIDs) != 3 ||
			a.EngineVersion != EngineVersion || a.Recommendation == "" || a.Analysis.Threshold != 0.3 || len(a.Analysis.SpecificIndicators) != len(a.Measures) {
			t.Errorf("event %d lacks a member: %+v", i, a)
		}
		if i > 0 && i < last && (a.State != schema.AlertUpdated || a.Count&(a.Count-1) != 0 && len(a.Measures) == len(all[i-1].Measures)) {
			t.Errorf("event %d is no update: %+v", i, a)
		}
		if i > 0 && i < last && a.Strength < all[i-1].Strength {
			t.Errorf("the strength falls from %v to %v while the change lasts", all[i-1].Strength, a.Strength)
		}
	}
	closed := all[last]
	if end := samples[400].EventTime; closed.ClosedAt.Before(end) || closed.ClosedAt.After(end.Add(100*time.Minute)) {
		t.Errorf("closed at %s, the change ended at %s", closed.ClosedAt, end)
	}
	if want := "Denials: again as the baseline leads to expect, after "; !strings.HasPrefix(closed.Summary, want) || closed.LastTraceID != "s0398" {
		t.Errorf("closed with %q, last trace %s", closed.Summary, closed.LastTraceID)
	}
	again, told := new(State), 0
	for _, x := range samples {
		data, err := again.Marshal() // a restart at every trace changes nothing
		if err != nil {
			t.Fatal(err)
		}
		if again, err = UnmarshalState(data); err != nil {
			t.Fatal(err)
		}
		step := again.Step(x, DefaultParams())
		if step.Alert != nil {
			if !reflect.DeepEqual(*step.Alert, all[told]) {
				t.Errorf("after restarts event %d is %+v, was %+v", told, *step.Alert, all[told])
			}
			told++
		}
		if open := step.Status == StatusDrift; step.Alert != nil && open != (step.Alert.State != schema.AlertClosed) {
			t.Errorf("%s: the point is %s at an event %s", x.TraceID, step.Status, step.Alert.State)
		}
		if step.Status == StatusRecovered && (step.Alert == nil || step.Alert.AlertID != closed.AlertID) {
			t.Errorf("%s recovered without the same alert", x.TraceID)
		}
	}
	if told != len(all) {
		t.Errorf("%d events after restarts, want %d", told, len(all))
	}
}

// Three traces of low similarity raise an alert if they are of two sessions; one session may do what
// it has never done.
func TestStreakOfTwoSessions(t *testing.T) {
	odd := func(i int, t *schema.Trace) {
		t.Action = schema.Action{Type: schema.ActionExecute, Name: "cancel", Category: schema.CategoryForbidden}
		t.Decision.ValuesApplied, t.Escalation = nil, schema.Escalation{Present: true, Required: true}
	}
	within := func(first, last int) []Sample {
		return changing(300, 0, nil, func(i int, t *schema.Trace) {
			if i >= first && i <= last {
				odd(i, t)
			}
		})
	}
	if _, all := events(within(203, 205)); len(all) != 0 {
		t.Errorf("a streak of one session raises %+v", all[0])
	}
	_, all := events(within(208, 210))
	if len(all) == 0 || !slices.Contains(all[0].Measures, "similarity") || !slices.Equal(all[0].TraceIDs, []string{"s0210", "s0209", "s0208"}) || all[0].Count != 3 {
		t.Fatalf("a streak of two sessions raises %+v", all)
	}
	// That the three applied no values is not enough evidence to name it.
	if a := all[0]; a.Analysis.DriftDirection != schema.UnknownDirection || slices.Contains(a.Measures, "value_down:honesty") || !strings.HasPrefix(a.Summary, "Similarity to the baseline fell from 0.") {
		t.Errorf("direction %s: %s", a.Analysis.DriftDirection, a.Summary)
	}
}

// A condition closes also where the agent gives up what it changed: what is not done is not observed.
func TestConditionClosesInSilence(t *testing.T) {
	refund := func(i int) bool { return i%10 == 4 }
	_, all := events(changing(500, 200, nil, func(i int, t *schema.Trace) {
		switch {
		case i < 300 && refund(i):
			t.Action.Type, t.Escalation.Required = schema.ActionExecute, false
		case refund(i):
			t.Action, t.Escalation.Required = schema.Action{Type: schema.ActionExecute, Name: "search", Category: schema.CategoryBounded}, false
		}
	}))
	if len(all) == 0 || all[0].Measures[0] != "unescalated_outside" {
		t.Fatalf("events %+v", all)
	}
	last := all[len(all)-1]
	if last.State != schema.AlertClosed || !strings.Contains(last.Summary, "none of the last 100 traces showed a change, after ") {
		t.Errorf("the last event is %s: %s", last.State, last.Summary)
	}
}

// A value that is applied again, seldom, is not said to be absent when its condition closes in silence.
func TestClosingInSilenceIsTrue(t *testing.T) {
	s := new(State)
	said := ""
	for i, x := range changing(1300, 0, func(i int, t *schema.Trace) {
		t.Action, t.Escalation.Required = schema.Action{Type: schema.ActionRecommend, Name: "reply", Category: schema.CategoryBounded}, false
		t.Decision.ValuesApplied = []string{"speed"}
		if i%2 == 0 && i < 900 || i%50 == 0 {
			t.Action.Name = "search"
			if i%8 > 0 && i < 200 || i >= 900 {
				t.Decision.ValuesApplied = []string{"honesty", "speed"}
			}
		}
	}, nil) {
		if out := s.Step(x, DefaultParams()); out.Alert != nil && out.Alert.State == schema.AlertClosed {
			if said = out.Alert.Summary; i < 950 {
				t.Errorf("closed at trace %d", i)
			}
		}
	}
	if !strings.HasPrefix(said, "Use of the declared value honesty: none of the last 100 traces showed a change, after ") {
		t.Errorf("closed with %q", said)
	}
}

// A condition of similarity stays open while half of the traces are of low similarity. A session that
// ended leaves the memory.
func TestConditionOfSimilarityStaysOpen(t *testing.T) {
	s, all := events(changing(400, 200, nil, func(i int, t *schema.Trace) {
		if i%4 < 2 {
			t.Action = schema.Action{Type: schema.ActionRecommend, Name: "reply", Category: schema.CategoryForbidden}
			t.Decision.ValuesApplied, t.Escalation = nil, schema.Escalation{Present: true, Required: true}
		}
		if i < 203 || i == 210 {
			t.Action = schema.Action{Type: schema.ActionEscalate, Name: "cancel", Category: schema.CategoryForbidden}
			t.Decision.ValuesApplied, t.Escalation = nil, schema.Escalation{Present: true, Required: true}
		}
	}))
	for i, a := range all {
		if a.AlertID != all[0].AlertID || a.State == schema.AlertClosed {
			t.Errorf("event %d is %s, of %q", i, a.State, a.Measures)
		}
	}
	if len(all) == 0 || s.open == nil || !slices.Contains(all[len(all)-1].Measures, similarityName) {
		t.Fatalf("events %+v", all)
	}
	alone := &condition{joined: []joined{{test: streak}}}
	for i := range 200 {
		if alone.recede(streak, reading{event: i%2 == 0 && i < 100, rises: true, p: seldom, kappa: kappa}, stretch{}); alone.recovered() != (i >= 110) { // 1.35 to the power of 12 is above 30
			t.Errorf("after %d traces recovered: %v", i+1, alone.recovered())
			break
		}
	}
	if len(s.detector.sessions) != 0 {
		t.Errorf("%d sessions are remembered, all of which ended", len(s.detector.sessions))
	}
}

// A session is complete by its end mark, by a request, or by half an hour of silence in the order of
// the series. The baseline is all traces once ten sessions are complete, or once these are many.
func TestBaselineOfCompleteSessions(t *testing.T) {
	p := DefaultParams()
	formedAt := func(n int, change func(i int, x *Sample), each func(i int, s *State)) (int, *Formed) {
		var s State
		for i, x := range changing(n, n, nil, nil) {
			if change != nil {
				change(i, &x)
			}
			if each != nil {
				each(i, &s)
			}
			if step := s.Step(x, p); step.Formed != nil {
				return i, step.Formed
			}
		}
		return -1, nil
	}
	open := func(_ int, x *Sample) { x.SessionEnd, x.Order = false, epoch }
	if at, f := formedAt(400, nil, nil); at != 99 || f.Tally.Traces != 100 || len(f.Sessions) != 10 || f.Sessions[9] != "session-9" {
		t.Errorf("with end marks at %d: %+v", at, f)
	}
	if at, f := formedAt(400, open, nil); at != 199 || f.Tally.Traces != 200 || len(f.Sessions) != 20 {
		t.Errorf("without an end at %d: %+v, want the first 200", at, f)
	}
	requested := func(i int, s *State) {
		if i == 105 {
			for n := range 10 {
				s.End(fmt.Sprint("session-", n))
			}
			s.End("session-nowhere")
		}
	}
	if at, f := formedAt(400, open, requested); at != 105 || f.Tally.Traces != 106 || len(f.Sessions) != 11 {
		t.Errorf("with requests at %d: %+v", at, f)
	}
	slow := func(i int, x *Sample) {
		x.SessionEnd = false
		x.Order = x.EventTime.Add(time.Duration(i/10) * time.Hour)
	}
	if at, f := formedAt(400, slow, nil); at != 100 || f.Tally.Traces != 101 {
		t.Errorf("with idleness at %d: %+v, want the next trace after ten sessions", at, f)
	}
	short := func(i int, x *Sample) {
		x.Session, x.SessionEnd = fmt.Sprint("short-", i/2), i%2 == 1
	}
	beside := func(i int, x *Sample) { // sessions of two traces, while another one goes on
		if short(i, x); i%3 == 0 {
			x.Session, x.SessionEnd = "long", false
		}
	}
	if at, f := formedAt(400, beside, nil); at != DefaultLeastTraces-1 || f.Tally.Traces != DefaultLeastTraces || !slices.Contains(f.Sessions, "long") {
		t.Errorf("beside a long session at %d: %+v", at, f)
	}
	if at, f := formedAt(400, short, nil); at != DefaultLeastTraces-1 || f.Tally.Traces != DefaultLeastTraces {
		t.Errorf("with short sessions at %d: %+v", at, f)
	}
}

// A pin has the same expectations as a learned baseline, and is effective from the first trace on.
func TestPinnedBaseline(t *testing.T) {
	p := DefaultParams()
	p.Mode = ModePinned
	samples := changing(300, 100, nil, func(_ int, t *schema.Trace) { t.Action.Type = schema.ActionDeny })
	pin := NewBaseline(samples[:100])
	data, err := json.Marshal(pin)
	if err != nil {
		t.Fatal(err)
	}
	var read Formed
	if err := json.Unmarshal(data, &read); err != nil || !read.Belongs("agent-s", "ac-s") || read.Belongs("agent-s", "ac-t") {
		t.Fatalf("%v: the pin is not what was written", err)
	}
	var s State
	s.Pin(read.Baseline)
	var all []*schema.DriftAlert
	for _, x := range samples[100:] {
		s.Pin(read.Baseline) // repeated, as after a restart: nothing changes
		step := s.Step(x, p)
		if step.Baseline != pin.ID || step.Formed != nil {
			t.Fatalf("trace %s: %+v", x.TraceID, step)
		}
		if step.Alert != nil {
			all = append(all, step.Alert)
		}
	}
	if len(all) == 0 || all[0].Measures[0] != "denials" || all[0].Mode != "pinned" || all[0].BaselineID != pin.ID {
		t.Fatalf("alerts %+v", all)
	}
	if learned, _ := events(samples); learned.expected.shares != s.expected.shares || learned.expected.rates != s.expected.rates {
		t.Error("the learned baseline expects something else than the pin of the same traces")
	}
	// Another pin ends the condition, at the next trace.
	other := NewBaseline(samples[100:200])
	s.Pin(other.Baseline)
	x := samples[299]
	x.EventTime = x.EventTime.Add(time.Hour)
	step := s.Step(x, p)
	if a := step.Alert; step.Status != StatusRecovered || a == nil || a.State != schema.AlertClosed || a.AlertID != all[0].AlertID ||
		!a.ClosedAt.Equal(x.EventTime) || !a.DetectionTimestamp.Equal(x.EventTime) || a.AgentID != "agent-s" || a.Analysis.SimilarityScore != similarity.Round4(step.Similarity) {
		t.Errorf("after another pin: %+v", step)
	}
}

// A series that the published rule measured learns again, and closes the condition that was open.
func TestAnotherFamilyOfModesLearnsAgain(t *testing.T) {
	samples := changing(60, 30, nil, func(_ int, t *schema.Trace) {
		t.Action = schema.Action{Type: schema.ActionExecute, Name: "wipe", Category: schema.CategoryForbidden}
		t.Decision.ValuesApplied, t.Escalation = nil, schema.Escalation{}
	})
	var s State
	var raised *schema.DriftAlert
	for _, x := range samples[:50] {
		if step := s.Step(x, PublishedParams()); step.Alert != nil {
			raised = step.Alert
		}
	}
	if raised == nil {
		t.Fatal("no alert under the published rule")
	}
	step := s.Step(samples[50], DefaultParams())
	if a := step.Alert; step.Status != StatusBaseline || a == nil || a.State != schema.AlertClosed || a.AlertID != raised.AlertID {
		t.Errorf("the first trace under the default: %+v", step)
	}
	if e := s.Explain(); e.Traces != 51 || e.Baseline != nil || !strings.Contains(e.Why, "with 1 traces so far") {
		t.Errorf("explanation %+v", e)
	}
}
