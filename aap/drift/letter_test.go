package drift

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/schema"
)

func TestOneAlertPerStreak(t *testing.T) {
	for _, c := range []struct {
		pattern string
		last    []string // the trace at which each alert is raised
	}{
		{"g", nil},
		{"gggbb", nil},
		{"gggggbbb", []string{"d007"}},
		{strings.Repeat("g", 12), nil},
		{"ggggggbbbbbb", []string{"d008"}},
		{"ggggggbbgbbb", []string{"d011"}},
		{"ggggggbbbgbbbgbbbb", []string{"d008", "d012", "d016"}},
		{"bbbbbbgggggg", []string{"d008"}},
		{"gbgbgbgbgbgbgbgb", nil},
		{strings.Repeat("g", 20) + strings.Repeat("b", 30), []string{"d022"}},
	} {
		var last []string
		for _, alert := range Detect(series(c.pattern), PublishedParams()) {
			last = append(last, alert.TraceIDs[len(alert.TraceIDs)-1])
			if len(alert.TraceIDs) != 3 || alert.Analysis.SustainedTraces != 3 {
				t.Errorf("%s: the alert has %d traces and states %d, want 3", c.pattern, len(alert.TraceIDs), alert.Analysis.SustainedTraces)
			}
		}
		if !slices.Equal(last, c.last) {
			t.Errorf("%s: alerts at %v, want %v", c.pattern, last, c.last)
		}
	}
}

func TestPointsOfASeries(t *testing.T) {
	p := Params{SimilarityThreshold: 0.3, Sustained: 2, Window: 8, Mode: ModeFirst, Profile: ProfileSpec}
	points, _ := run(series("ggbbbgg"), p)
	want := []struct {
		status Status
		streak int
	}{
		{StatusBaseline, 0}, {StatusBaseline, 0}, {StatusLow, 1}, {StatusDrift, 2}, {StatusDrift, 3},
		{StatusRecovered, 0}, {StatusNormal, 0},
	}
	for i, w := range want {
		if points[i].Status != w.status || points[i].Streak != w.streak {
			t.Errorf("point %d is %s, streak %d; want %s, %d", i, points[i].Status, points[i].Streak, w.status, w.streak)
		}
	}
	if got := points[2].Similarity; math.Abs(got-0.21850764987795382) > 1e-15 {
		t.Errorf("similarity %v, want 0.21850764987795382", got)
	}
}

// Every trace of a finished list has a point, in order of time.
func TestPointsOfAList(t *testing.T) {
	samples := series("gggggbbb")
	slices.Reverse(samples)
	points, alerts := Series(samples, PublishedParams())
	var said []string
	for _, point := range points {
		said = append(said, point.TraceID+" "+string(point.Status))
	}
	want := []string{"d000 baseline", "d001 baseline", "d002 baseline", "d003 normal", "d004 normal", "d005 low", "d006 low", "d007 drift"}
	if !slices.Equal(said, want) || len(alerts) != 1 {
		t.Errorf("points %q and %d alerts, want %q and one", said, len(alerts), want)
	}
}

func TestAlertMembers(t *testing.T) {
	alerts := Detect(series("gggggbbb"), PublishedParams())
	if len(alerts) != 1 {
		t.Fatalf("%d alerts, want 1", len(alerts))
	}
	a := alerts[0]
	if a.AlertType != "drift_detected" || a.AgentID != "agent-d" || a.CardID != "ac-d" ||
		!a.DetectionTimestamp.Equal(badTrace(7).Timestamp) || a.EngineVersion != EngineVersion ||
		a.Recommendation != "Review recent decisions for alignment drift" || a.Mode != "first" || a.BaselineID == (schema.Digest{}) {
		t.Errorf("alert %+v", a)
	}
	if a.Analysis.SimilarityScore != 0.2185 || a.Analysis.Threshold != 0.3 || a.Analysis.DriftDirection != schema.ValueDrift {
		t.Errorf("analysis %+v", a.Analysis)
	}
	want := []schema.Indicator{
		{Indicator: UndeclaredValueIncrease, Current: 1, Description: "Undeclared values rose from 0% to 100% of values applied"},
		{Indicator: NewValues, Current: 1, Description: "Values unknown to the baseline rose from 0% to 100% of values applied"},
		{Indicator: NewActionTypes, Current: 1, Description: "Actions unknown to the baseline rose from 0% to 100% of decisions"},
		{Indicator: SimilarityTrend, Baseline: 0.2185, Current: 0.2185, Description: "Similarity stable over 3 traces"},
	}
	if !slices.Equal(a.Analysis.SpecificIndicators, want) {
		t.Errorf("indicators %+v, want %+v", a.Analysis.SpecificIndicators, want)
	}
}

func TestAlertIDNamesTheStreak(t *testing.T) {
	base := Detect(series("gggggbbb"), PublishedParams())[0].AlertID
	if again := Detect(series("gggggbbb"), PublishedParams())[0].AlertID; again != base {
		t.Errorf("a replay gives %s, the first run gave %s", again, base)
	}
	other := map[string]func([]Sample, *Params){
		"agent":     func(x []Sample, _ *Params) { x[7].AgentID = "agent-e" },
		"card":      func(x []Sample, _ *Params) { x[7].CardID = "ac-e" },
		"digest":    func(x []Sample, _ *Params) { x[5].Digest[0] ^= 1 },
		"threshold": func(_ []Sample, p *Params) { p.SimilarityThreshold = 0.31 },
		"sustained": func(_ []Sample, p *Params) { p.Sustained = 2 },
		"profile":   func(_ []Sample, p *Params) { p.Profile = ProfileReference },
	}
	for name, change := range other {
		samples, p := series("gggggbbb"), PublishedParams()
		change(samples, &p)
		if got := Detect(samples, p)[0].AlertID; got == base {
			t.Errorf("another %s gives the same alert id", name)
		}
	}
}

func TestValidateNamesEveryFault(t *testing.T) {
	if err := PublishedParams().Validate(); err != nil {
		t.Errorf("default parameters: %v", err)
	}
	err := Params{SimilarityThreshold: math.NaN(), Mode: "weekly"}.Validate()
	for _, key := range []string{"similarity_threshold", "sustained", "window", "mode", "profile"} {
		if err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%v does not name %s", err, key)
		}
	}
}

// The window in mode rolling must have room for a baseline and a streak.
func TestRollingNeedsRoom(t *testing.T) {
	p := PublishedParams()
	p.Mode = ModeRolling
	for window, wrong := range map[int]bool{5: true, 6: false, 50: false} {
		p.Window = window
		if err := p.Validate(); (err != nil) != wrong {
			t.Errorf("window %d: %v", window, err)
		}
	}
}

func TestBaselineTraces(t *testing.T) {
	for _, c := range []struct{ sustained, window, want int }{
		{3, 50, 10}, {3, 12, 3}, {3, 39, 9}, {3, 40, 10}, {3, 1000, 10}, {12, 50, 12}, {1, 8, 2},
	} {
		if got := (Params{Sustained: c.sustained, Window: c.window}).BaselineTraces(); got != c.want {
			t.Errorf("sustained %d, window %d: N = %d, want %d", c.sustained, c.window, got, c.want)
		}
	}
}
