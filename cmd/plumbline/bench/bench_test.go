package bench

import (
	"encoding/json"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/child"
	"github.com/plumbline/plumbline/machine"
)

func TestMain(m *testing.M) {
	child.Dispatch()
	os.Exit(m.Run())
}

// A measurement ends without an error only if every trace and verdict was counted.
func TestMeasuresEverything(t *testing.T) {
	figures, err := Run(t.Context(), Config{Traces: 600, Rounds: 1, Machine: machine.Config{
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Progress: func(m string) { t.Log(m) },
	}})
	if err != nil {
		t.Fatal(err)
	}
	for name, rate := range map[string]float64{"floor": figures.Floor, "verifier": figures.Verifier, "all": figures.All,
		"sealed": figures.Sealed, "measured": figures.Measured} {
		if rate <= 0 {
			t.Errorf("%s: got %v traces/s, want more than 0", name, rate)
		}
	}
	if figures.Traces != 600 || figures.Sealed > figures.All {
		t.Errorf("figures are %+v", figures)
	}
	var text strings.Builder
	if err := figures.WriteText(&text); err != nil || !strings.Contains(text.String(), "verifier alone") {
		t.Errorf("error %v, text:\n%s", err, &text)
	}
	checkKeys(t, figures)
}

func checkKeys(t *testing.T, f *Figures) {
	t.Helper()
	text, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]float64
	if err := json.Unmarshal(text, &object); err != nil {
		t.Fatal(err)
	}
	const want = "all_ratio all_traces_per_s bytes_per_trace floor_traces_per_s rounds sealed_ratio sealed_traces_per_s traces " +
		"verifier_ratio verifier_traces_per_s watched_traces_per_s"
	if got := strings.Join(slices.Sorted(maps.Keys(object)), " "); got != want {
		t.Errorf("members are\n%s, want\n%s", got, want)
	}
}

func TestRatiosAreOfOneRound(t *testing.T) {
	seconds := func(floor, verifier, all, sealed, measured int) round {
		d := func(n int) time.Duration { return time.Duration(n) * time.Second }
		return round{floor: took{queryable: d(floor)}, verifier: took{queryable: d(verifier)},
			all: took{queryable: d(all), sealed: d(sealed), measured: d(measured)}}
	}
	l := newLoad(100, time.Unix(1_800_000_000, 0))
	n := float64(len(l.records))
	f := l.figures([]round{seconds(1, 2, 4, 8, 10), seconds(10, 12, 20, 40, 50), seconds(2, 4, 8, 10, 16)})
	if f.Floor != n/2 || f.VerifierRatio != 0.5 || f.AllRatio != 0.25 || f.SealedRatio != 0.2 || f.Measured != n/16 {
		t.Errorf("figures are %+v", f)
	}
}

func TestLoadKeepsEachAgentsOrder(t *testing.T) {
	l := newLoad(2000, time.Now())
	if len(l.records) != 2000 {
		t.Errorf("%d records, want those that are stored", len(l.records))
	}
	next, of := make([]int, publishers), map[string]int{}
	parts := l.byAgent(publishers)
	for _, r := range l.records {
		for p := range parts {
			if next[p] < len(parts[p]) && &parts[p][next[p]][0] == &r.Data[0] {
				if before, seen := of[r.Agent]; seen && before != p {
					t.Fatalf("agent %s is with two publishers", r.Agent)
				}
				of[r.Agent] = p
				next[p]++
			}
		}
	}
	for p, n := range next {
		if n != len(parts[p]) || n == 0 {
			t.Errorf("publisher %d: %d of %d lines in the load's order", p, n, len(parts[p]))
		}
	}
}
