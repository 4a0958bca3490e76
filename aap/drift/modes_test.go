package drift

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/plumbline/plumbline/aap/similarity"
	"github.com/plumbline/plumbline/schema"
)

// meanOf computes a centroid in the straightforward way.
func meanOf(samples []Sample) similarity.Vector {
	var sum similarity.Vector
	for _, x := range samples {
		sum = similarity.Add(sum, x.Features)
	}
	return similarity.Centroid(sum, len(samples))
}

// Rolling: trace i is compared with the last N traces before its window of W, and in the first
// window with the first N. A streak continues across windows.
func TestRollingBaseline(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		samples, p := someSamples(t), someParams(t)
		p.Mode, p.Window = ModeRolling, rapid.IntRange(12, 30).Draw(t, "rolling window")
		n := p.BaselineTraces()
		var s State
		formed, before := 0, 0
		for i, x := range samples {
			step := s.Step(x, p)
			if step.Formed != nil {
				formed++
			}
			if i < n {
				continue
			}
			reference := samples[:n]
			if start := i / p.Window * p.Window; start > 0 {
				reference = samples[start-n : start]
			}
			want := similarity.Cosine(x.Features, meanOf(reference))
			if step.Similarity != want {
				t.Fatalf("trace %d: similarity %v, want %v", i, step.Similarity, want)
			}
			streak := 0
			if want < p.SimilarityThreshold {
				streak = before + 1
			}
			if step.Streak != streak {
				t.Fatalf("trace %d: streak %d, want %d", i, step.Streak, streak)
			}
			before = streak
		}
		if want := len(samples) / p.Window; len(samples) >= n && formed != want+1 {
			t.Fatalf("%d baselines formed in %d traces with W = %d, want %d", formed, len(samples), p.Window, want+1)
		}
	})
}

// A lasting change raises its alert and becomes normal in the next window; in mode first it
// remains drift.
func TestRollingAdapts(t *testing.T) {
	samples, p := series(strings.Repeat("g", 20)+strings.Repeat("b", 40)), PublishedParams()
	p.Mode, p.Window = ModeRolling, 40
	points, alerts := run(samples, p)
	if len(alerts) != 1 || points[39].Status != StatusDrift || points[40].Status != StatusRecovered || points[59].Status != StatusNormal {
		t.Errorf("%d alerts, points 39, 40, 59: %+v %+v %+v", len(alerts), points[39], points[40], points[59])
	}
	if alerts[0].Mode != "rolling" || alerts[0].BaselineID != points[39].Baseline || points[40].Baseline == points[39].Baseline {
		t.Errorf("the baselines are not named: alert %+v", alerts[0])
	}
	p.Mode = ModeFirst
	if points, _ := run(samples, p); points[59].Status != StatusDrift {
		t.Errorf("in mode first the last point is %+v", points[59])
	}
}

// A pin can be stored in a file, and its id shows whether it was changed there or belongs to
// another agent.
func TestFormedBaselineIsKept(t *testing.T) {
	formed := NewBaseline(scene()[:10])
	data, err := json.Marshal(formed)
	if err != nil {
		t.Fatal(err)
	}
	var again Formed
	if err := json.Unmarshal(data, &again); err != nil || !reflect.DeepEqual(again, formed) {
		t.Fatalf("read back as %+v, was %+v; error %v", again, formed, err)
	}
	if !again.Belongs("agent-d", "ac-d") || again.Belongs("agent-e", "ac-d") || again.Belongs("agent-d", "ac-e") {
		t.Error("Belongs is wrong about the agent or the card")
	}
	again.Features[0].Weight /= 2
	if again.Belongs("agent-d", "ac-d") {
		t.Error("a changed weight does not change the id")
	}
}

// Under another mode or parameter the current baseline stays, and a streak continues.
func TestChangedParameters(t *testing.T) {
	var s State
	p := PublishedParams()
	samples := series(strings.Repeat("g", 10) + "bbb")
	for _, x := range samples[:12] {
		s.Step(x, p)
	}
	first := s.letter.Baseline.ID
	p.Mode, p.Window = ModeRolling, 14
	step := s.Step(samples[12], p)
	if step.Alert == nil || step.Baseline != first || step.Alert.Mode != "rolling" {
		t.Errorf("the third low trace: %+v", step)
	}
	// The last N = 3 traces of its window are at 12, 13 and 14. It saw only two of them, so it
	// forms no baseline.
	if step := s.Step(series("g")[0], p); step.Formed != nil {
		t.Errorf("a baseline of part of a window: %+v", step.Formed)
	}
	for i, x := range series(strings.Repeat("g", 14)) {
		if step := s.Step(x, p); (step.Formed != nil) != (i == 13) {
			t.Errorf("trace %d after it forms %+v", i, step.Formed)
		}
	}
}

// Traces gathered for a window's baseline are dropped when the window changes: otherwise the
// baseline would have more traces than N.
func TestChangedWindow(t *testing.T) {
	var s State
	p := PublishedParams()
	p.Mode, p.Window = ModeRolling, 14
	samples := series(strings.Repeat("g", 30))
	for _, x := range samples[:13] { // the last N = 3 are those at 12, 13, 14
		s.Step(x, p)
	}
	p.Window = 15 // the last N = 3 are those at 13, 14, 15
	for i, x := range samples[13:] {
		step := s.Step(x, p)
		if formed := step.Formed != nil; formed != (14+i == 30) {
			t.Errorf("trace %d forms %+v", 14+i, step.Formed)
		}
	}
}

// States of version 1 continue with the same similarities, streak and alert; parts that they
// lack stay unknown.
func TestStatesOfVersion1AreRead(t *testing.T) {
	const learning = `{"v":1,"n":5,"keys":["action:recommend","category:bounded"],"weights":[5,5],"early":1,"late":[true,false,false],"values":10,"tally":{"v":10}}`
	const streak = `{"v":1,"n":12,"frozen":true,"keys":["action:recommend","category:bounded","action_name:recommend"],"weights":[1,1,1],` +
		`"early":2,"late":[false,false,true],"values":24,"undeclared":4,"tally":{"v":20,"b":8,"n":10},"streak":2,` +
		`"low":[{"id":"d010","d":"` + zeros + `","s":0.1,"c":0.6,"a":true,"t":{"v":2,"u":2,"b":0.2,"n":1}},{"id":"d011","d":"` + zeros + `","s":0.1,"c":0.6,"t":{"v":2,"u":2}}]}`
	const alerted = `{"v":1,"n":13,"frozen":true,"keys":["action:recommend"],"weights":[1],"late":[false,false,false],"tally":{},"streak":3,"alerted":true}`
	p := PublishedParams()
	s := stateOf(t, learning)
	for i, x := range series(strings.Repeat("g", 5)) {
		if step := s.Step(x, p); (step.Formed != nil) != (i == 4) {
			t.Errorf("trace %d after five: %+v", i, step)
		}
	}
	if got := s.letter.Baseline.Features[0]; got != (similarity.Feature{Key: "action:recommend", Weight: 1}) {
		t.Errorf("the centroid of five traces and five has %+v", got)
	}
	s = stateOf(t, streak)
	step := s.Step(series("b")[0], p)
	if step.Alert == nil || step.Similarity != 0 || step.Alert.TraceIDs[0] != "d010" {
		t.Fatalf("the third low trace: %+v", step)
	}
	if tally := s.letter.streak(); tally.Traces != 3 || round2(s.letter.meanConfidence()) != 0.6 {
		t.Errorf("the sums of the streak are %+v", tally)
	}
	if got := step.Alert.Analysis.DriftDirection; got != schema.AutonomyExpansion { // 2 of the first 3 escalated
		t.Errorf("direction %s", got)
	}
	s = stateOf(t, alerted)
	if step := s.Step(series("b")[0], p); step.Alert != nil || step.Status != StatusDrift || step.Streak != 4 {
		t.Errorf("one more trace of a streak: %+v", step)
	}
	if e := s.Explain(); !strings.HasPrefix(e.Why, "An alert") {
		t.Errorf("explanation %+v", e)
	}
}

const zeros = "0000000000000000000000000000000000000000000000000000000000000000"

// stateOf reads a state, encodes it and reads it again.
func stateOf(t *testing.T, stored string) *State {
	t.Helper()
	s, err := UnmarshalState([]byte(stored))
	if err != nil {
		t.Fatal(err)
	}
	data, err := s.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	again, err := UnmarshalState(data)
	if err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	return again
}
