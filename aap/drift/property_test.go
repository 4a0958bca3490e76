package drift

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/plumbline/plumbline/aap/similarity"
	"github.com/plumbline/plumbline/schema"
)

var (
	names  = []string{"search", "recommend", "purchase", "exec"}
	values = []string{"principal_benefit", "transparency", "honesty", "profit", "speed"}
)

// someSamples draws a list in order of time, with variation in every member.
func someSamples(t *rapid.T) []Sample {
	facts := FactsOf(testCard)
	samples := make([]Sample, rapid.IntRange(0, 80).Draw(t, "traces"))
	for i := range samples {
		trace := goodTrace(i)
		trace.Action.Type = rapid.SampledFrom([]schema.ActionType{"recommend", "execute", "escalate", "deny"}).Draw(t, "type")
		trace.Action.Name = rapid.SampledFrom(names).Draw(t, "name")
		trace.Decision.ValuesApplied = rapid.SliceOfN(rapid.SampledFrom(values), 0, 4).Draw(t, "values")
		trace.Decision.HasConfidence = rapid.Bool().Draw(t, "has confidence")
		trace.Decision.Confidence = rapid.Float64Range(0, 1).Draw(t, "confidence")
		trace.Escalation.Required = rapid.Bool().Draw(t, "required")
		trace.Context.SessionID = rapid.SampledFrom([]string{"a", "b", "c", "d", "e", ""}).Draw(t, "session")
		trace.Context.SessionEnd = rapid.IntRange(0, 7).Draw(t, "end") == 0
		trace.Context.Execution.Present = rapid.Bool().Draw(t, "execution")
		trace.Context.Execution.CostCents = rapid.Int64Range(0, 9).Draw(t, "cost")
		trace.Context.Execution.Error = rapid.SampledFrom([]string{"", "timed out"}).Draw(t, "error")
		trace.Decision.Reasoning = rapid.SampledFrom([]string{"", "cheapest fare", "fastest way home", "больше дохода"}).Draw(t, "reasoning")
		samples[i] = SampleOf(trace, facts)
		samples[i].HasBenefit = rapid.Bool().Draw(t, "has benefit")
		if samples[i].HasBenefit {
			samples[i].Benefit = rapid.Float64Range(0, 1).Draw(t, "benefit")
		}
	}
	return samples
}

func someParams(t *rapid.T) Params {
	return Params{
		Sessions:            rapid.IntRange(1, 3).Draw(t, "sessions"),
		LeastTraces:         rapid.IntRange(1, 9).Draw(t, "least"),
		MostTraces:          rapid.IntRange(9, 30).Draw(t, "most"),
		StreakSessions:      rapid.IntRange(1, 3).Draw(t, "streak sessions"),
		FalseAlarms:         rapid.SampledFrom([]float64{1e-4, 0.1, 0.9}).Draw(t, "false alarms"),
		SimilarityThreshold: rapid.SampledFrom([]float64{0.3, 0.5, 0.7, 0.9, 1}).Draw(t, "threshold"),
		Sustained:           rapid.IntRange(1, 5).Draw(t, "sustained"),
		Window:              rapid.IntRange(1, 60).Draw(t, "window"),
		Mode:                ModeFirst,
		Profile:             ProfileSpec,
	}
}

// A stream with the same N as a list gives the list's alerts. Interruptions of the stream and
// the order of the list make no difference.
func TestStreamEqualsList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		samples, p := someSamples(t), someParams(t)
		p.Profile = rapid.SampledFrom([]Profile{ProfileSpec, ProfileReference}).Draw(t, "profile")
		listed := Detect(rapid.Permutation(samples).Draw(t, "order"), p)
		p.Window = len(samples)
		streamed := interrupted(t, samples, p)
		if !reflect.DeepEqual(streamed, listed) {
			t.Fatalf("stream %+v\nlist %+v", streamed, listed)
		}
		for p.BaselineTraces() == (Params{Sustained: p.Sustained, Window: len(samples)}).BaselineTraces() && p.Window > 0 {
			p.Window-- // another window with the same N: the same alerts, whose ids contain the other parameter
		}
		p.Window++
		again := interrupted(t, samples, p)
		for i := range again {
			again[i].AlertID = listed[i].AlertID
		}
		if !reflect.DeepEqual(again, listed) {
			t.Fatalf("with window %d: %+v\nlist %+v", p.Window, again, listed)
		}
	})
}

// interrupted steps through samples with restarts and returns the alerts, never nil.
func interrupted(t *rapid.T, samples []Sample, p Params) []schema.DriftAlert {
	state, alerts := new(State), []schema.DriftAlert{}
	for _, x := range samples {
		if step := state.Step(x, p); step.Alert != nil && step.Alert.State == schema.AlertOpened {
			a := *step.Alert // a list has no events
			a.State, a.Revision, a.OpenedAt, a.LastTraceID, a.Count, a.Measures, a.Summary = "", 0, time.Time{}, "", 0, nil, ""
			alerts = append(alerts, a)
		}
		if rapid.Bool().Draw(t, "restart") {
			state = reopened(t, state)
		}
	}
	return alerts
}

// A state that is stored and read back at any point continues as if it had stayed in memory:
// with the same points, alerts, alert ids and baselines.
func TestRestartChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		samples, p := someSamples(t), someParams(t)
		p.Mode = rapid.SampledFrom([]Mode{ModeSessions, ModePinned, ModeFirst, ModeRolling}).Draw(t, "mode")
		p.Window = max(p.Window, 2*(p.Sustained+maxBaseline))
		var pin *Baseline
		straight, restarted := new(State), new(State)
		if p.Mode == ModePinned && len(samples) > 0 {
			pin = NewBaseline(samples[:min(len(samples), 4)]).Baseline
			straight.Pin(pin)
		}
		other := p
		if rapid.Bool().Draw(t, "mode changes") {
			other.Mode = rapid.SampledFrom([]Mode{ModeSessions, ModeFirst}).Draw(t, "other mode")
		}
		ends := rapid.IntRange(0, 40).Draw(t, "requested end")
		for i, x := range samples {
			if i == 40 {
				p = other
			}
			if i == ends {
				straight.End("a")
				restarted.End("a")
			}
			want := straight.Step(x, p)
			if rapid.Bool().Draw(t, "restart") {
				restarted = reopened(t, restarted)
			}
			if pin != nil && p.Mode == ModePinned { // as a stage does whenever it starts
				restarted.Pin(pin)
			}
			if got := restarted.Step(x, p); !reflect.DeepEqual(got, want) {
				t.Fatalf("step %d is %+v after restarts, was %+v", i, got, want)
			}
		}
	})
}

func reopened(t *rapid.T, s *State) *State {
	data, err := s.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	read, err := UnmarshalState(data)
	if err != nil {
		t.Fatal(err)
	}
	twice, err := read.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(data, twice) {
		t.Fatalf("%q\nafter decoding and encoding is\n%q", data, twice)
	}
	return read
}

// Every streak of at least Sustained low traces has one alert, at its Sustained-th trace, and
// there are no other alerts.
func TestAlertsFollowFromPoints(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		samples, p := someSamples(t), someParams(t)
		points, alerts := run(samples, p)
		var due []string
		for i, point := range points {
			if low := point.Status == StatusLow || point.Status == StatusDrift; low != (point.Streak > 0) {
				t.Fatalf("point %d is %s with a streak of %d", i, point.Status, point.Streak)
			}
			if point.Streak == p.Sustained {
				due = append(due, point.TraceID)
			}
		}
		var raised []string
		for _, alert := range alerts {
			raised = append(raised, alert.TraceIDs[len(alert.TraceIDs)-1])
		}
		if !slices.Equal(due, raised) {
			t.Fatalf("alerts at %v, due at %v", raised, due)
		}
	})
}

func TestUnmarshalStateRefuses(t *testing.T) {
	for _, data := range []string{``, `[]`, `{"v":3}`, `{"v":2,"base":{"keys":["a"]}}`, `{"v":2,"base":{"texts":1,"sketch":"AAAA"}}`, `{"v":2,"streak":1}`, `{"v":1,"keys":["a"]}`} {
		if _, err := UnmarshalState([]byte(data)); err == nil {
			t.Errorf("%q is accepted as a state", data)
		}
	}
}

// A state without reasoning has no sketch, which is half of a state.
func TestStateIsSmall(t *testing.T) {
	for reasoning, most := range map[string]int{"the cheapest fare": 2048, "": 1536} {
		var s State
		for _, x := range series("ggggggggggbb") {
			x.Reasoning = reasoning
			s.Step(x, PublishedParams())
		}
		data, err := s.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		if len(data) > most {
			t.Errorf("the state of an ordinary agent with the reasoning %q takes %d bytes: %s", reasoning, len(data), data)
		}
	}
}

// Detect must also work for feature lists that are too long for a quick scan.
func TestLongVectors(t *testing.T) {
	samples := series("gggggbbb")
	for i := range samples {
		for j := range 40 {
			key := "value:" + string(rune('a'+j)) + samples[i].Features[0].Key
			samples[i].Features = append(samples[i].Features, similarity.Feature{Key: key, Weight: 1})
		}
	}
	if got := len(Detect(samples, PublishedParams())); got != 1 {
		t.Errorf("%d alerts over long vectors, want 1", got)
	}
}
