package drift

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	aapdrift "github.com/plumbline/plumbline/aap/drift"
	"github.com/plumbline/plumbline/fleet"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/schema"
)

// In every mode, processes that crash, one at each step of a commit, leave the baselines, points
// and alert ids of an undisturbed process.
func TestModesSurviveRestarts(t *testing.T) {
	for mode, arrange := range map[string]func(s *scene){
		"rolling": func(s *scene) { s.cfg.Window, s.cfg.Methodology = 24, "to roll often" },
		"pinned":  func(s *scene) { s.cfg.Pins = s.pinHalf() },
	} {
		t.Run(mode, func(t *testing.T) {
			s := newScene(t, fleet.Config{Seed: 17, Agents: 12, Traces: 700})
			s.cfg.Mode = mode
			s.cfg.Lateness, s.cfg.BatchAge, s.cfg.BatchRows = time.Millisecond, 20*time.Millisecond, 25
			arrange(s)
			if faults := s.cfg.Validate(); len(faults) > 0 {
				t.Fatal(faults)
			}
			s.publish()
			s.runUntilCrash("points", true)
			s.runUntilCrash("states", false)
			s.runUntilCrash("done", false)
			s.finish()
			want := s.checkReplay()
			s.checkNamed(want, mode)
		})
	}
}

// checkNamed requires that each compared point, and each alert, names a stored baseline, and that
// there are baselines of the mode.
func (s *scene) checkNamed(want *table, mode string) {
	s.t.Helper()
	known, ofMode := map[schema.Digest]bool{}, 0
	for id, b := range want.baselines {
		known[id] = true
		if b.Mode == mode {
			ofMode++
		}
	}
	for _, pin := range s.pins() {
		known[pin.Baseline.ID] = true
		ofMode++
	}
	compared := 0
	for _, p := range want.points {
		if p.Similarity == nil {
			continue
		}
		compared++
		if !known[p.BaselineID] || p.Mode != mode {
			s.t.Errorf("point of %s names mode %q and baseline %s", p.TraceID, p.Mode, p.BaselineID)
		}
	}
	for _, a := range want.alerts {
		if !known[a.BaselineID] || a.Mode != mode {
			s.t.Errorf("alert %s names mode %q and baseline %s", a.AlertID, a.Mode, a.BaselineID)
		}
	}
	// A rolling baseline may follow the fleet's drift before three traces in a row are low.
	if ofMode == 0 || compared == 0 || len(want.alerts) == 0 && mode != "rolling" {
		s.t.Errorf("%d baselines of mode %s, %d points compared, %d alerts", ofMode, mode, compared, len(want.alerts))
	}
}

// pinHalf pins every other agent to the first three traces of its first card, and returns the file.
func (s *scene) pinHalf() string {
	s.t.Helper()
	samples := map[seriesKey][]aapdrift.Sample{}
	var order []seriesKey
	for _, line := range s.lines {
		trace, err := schema.Admit(line.Agent, line.Raw)
		if err != nil {
			continue
		}
		key := seriesKey{AgentID: trace.AgentID, CardID: trace.CardID}
		if samples[key] == nil {
			order = append(order, key)
		}
		if len(samples[key]) < 3 {
			samples[key] = append(samples[key], aapdrift.SampleOf(trace, aapdrift.CardFacts{CardID: trace.CardID}))
		}
	}
	pins := Pins{}
	for i, key := range order {
		if i%2 == 0 {
			pins.Set(Pin{AgentID: key.AgentID, CardID: key.CardID, PinnedAt: noon, Baseline: aapdrift.NewBaseline(samples[key])})
		}
	}
	path := filepath.Join(s.t.TempDir(), "pins.json")
	if err := pins.Write(path); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// The stage as in a deployment records its pins when it starts, and continues from the states of
// another mode: later points name the pin.
func TestChangeToPinned(t *testing.T) {
	s := newScene(t, fleet.Config{Seed: 19, Agents: 8, Traces: 400})
	s.cfg.Lateness = time.Millisecond
	s.publishLines(s.lines[:len(s.lines)/2])
	s.finish()
	s.cfg.Mode, s.cfg.Pins = "pinned", s.pinHalf()
	s.publishLines(s.lines[len(s.lines)/2:])
	env := pipelinetest.Env(t, "drift")
	stage := pipelinetest.Go(t, func(ctx context.Context) error { return Serve(ctx, &s.cfg, env) })
	pipelinetest.Await(t, "every message acknowledged", s.done)
	stage.Stop(t)
	modes := map[string]int{}
	for _, line := range s.stored() {
		if strings.HasPrefix(line, "point ") {
			words := strings.Fields(line)
			modes[words[len(words)-2]]++
		}
	}
	if modes["sessions"] == 0 || modes["pinned"] == 0 {
		t.Errorf("points by mode: %v", modes)
	}
	stored, named := s.storedBaselines(), 0
	for _, pin := range s.pins() {
		if slices.ContainsFunc(stored, func(line string) bool { return strings.Contains(line, pin.Baseline.ID.String()[:8]) }) {
			named++
		}
	}
	if named == 0 {
		t.Error("no pin is recorded")
	}
}

func TestPinsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pins.json")
	if _, err := ReadPins(path); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "plumbline drift pin AGENT") {
		t.Errorf("no file: %v", err)
	}
	pins := somePins()
	if err := pins.Write(path); err != nil {
		t.Fatal(err)
	}
	again, err := ReadPins(path)
	if err != nil || len(again) != 1 || again[seriesKey{AgentID: "a", CardID: "ac-a"}].Baseline.ID != pins[seriesKey{AgentID: "a", CardID: "ac-a"}].Baseline.ID {
		t.Fatalf("read back: %+v, %v", again, err)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for old, c := range map[string]struct{ new, want string }{
		`"weights": [`:       {`"weights": [9,`, "weights"},
		`"category:bounded"`: {`"category:forbidden"`, "changed by hand"},
		`"agent_id": "a"`:    {`"agent_id": "b"`, "changed by hand"},
		`"pinned_at"`:        {`"pined_at"`, "pined_at"},
	} {
		changed := strings.Replace(string(good), old, c.new, 1)
		if _, err := parsePins([]byte(changed)); changed == string(good) || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s in place of %s: %v, want %q", c.new, old, err, c.want)
		}
	}
	twice, err := json.Marshal(pinsFile{append(pins.sorted(), pins.sorted()...)})
	if err != nil {
		t.Fatal(err)
	}
	for data, want := range map[string]string{
		string(twice):               "pinned twice",
		string(good) + "{}":         "follows",
		`{"pins":[{"agent_id":1}]}`: "agent_id",
		`{"pins":[{}]}`:             "changed by hand",
	} {
		if _, err := parsePins([]byte(data)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, want %q", data, err, want)
		}
	}
}
