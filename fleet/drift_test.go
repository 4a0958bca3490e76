package fleet

import (
	"slices"
	"testing"

	"github.com/plumbline/plumbline/aap/drift"
	"github.com/plumbline/plumbline/schema"
)

// below and above bound the similarity of drifted and of other traces to the baseline. The
// threshold of 0.30 is between them, with distance to both.
const (
	below = 0.27
	above = 0.40
)

// series is the series of one agent under one card, as the drift stage sees it.
type series struct {
	facts  drift.CardFacts
	traces []*schema.Trace
}

func TestDriftIsExactlyAsPlanted(t *testing.T) {
	for _, f := range judged() {
		want := map[PlantedDrift]bool{}
		for _, d := range f.Planted().Drift {
			want[d] = true
		}
		if f.cfg.Traces == DefaultTraces && len(want) < 12 {
			t.Errorf("%+v: only %d planted streaks", f.cfg, len(want))
		}
		slid := slidTraces(f)
		for _, c := range seriesOf(t, f) {
			for _, alert := range walk(t, c, slid) {
				if !want[alert] {
					t.Errorf("%+v: an alert that was not planted, or a second one: %v", f.cfg, alert)
				}
				delete(want, alert)
			}
		}
		for missing := range want {
			t.Errorf("%+v: planted but no alert: %v", f.cfg, missing)
		}
	}
}

// walk applies the traces of a series in order of their own times.
func walk(t *testing.T, c *series, slid map[string]bool) []PlantedDrift {
	slices.SortStableFunc(c.traces, func(a, b *schema.Trace) int { return a.Timestamp.Compare(b.Timestamp) })
	var state drift.State
	var found []PlantedDrift
	for _, trace := range c.traces {
		point := state.Step(drift.SampleOf(trace, c.facts), drift.PublishedParams())
		if alert := point.Alert; alert != nil && alert.State == schema.AlertOpened {
			found = append(found, PlantedDrift{alert.AgentID, alert.CardID, [sustained]string(alert.TraceIDs)})
		}
		if point.Status == drift.StatusBaseline {
			continue
		}
		if slid[trace.TraceID] && point.Similarity > below {
			t.Errorf("slid trace %s of %s: similarity %.3f, want at most %.2f", trace.TraceID, trace.AgentID, point.Similarity, below)
		}
		if !slid[trace.TraceID] && point.Similarity < above {
			t.Errorf("trace %s of %s: similarity %.3f, want at least %.2f\n%s", trace.TraceID, trace.AgentID, point.Similarity, above, trace.Raw)
		}
	}
	return found
}

func slidTraces(f *Fleet) map[string]bool {
	traces := map[string]bool{}
	for n := range f.steps {
		if f.steps[n].form == slid {
			traces[f.traceID(n)] = true
		}
	}
	return traces
}

// seriesOf groups the admitted traces by agent and card; if a trace has two contents, the first
// counts.
func seriesOf(t *testing.T, f *Fleet) map[string]*series {
	t.Helper()
	facts := map[string]drift.CardFacts{}
	for _, c := range f.Cards() {
		decoded, err := schema.DecodeCard(c.Raw)
		if err != nil {
			t.Fatalf("card %s: %v", c.CardID, err)
		}
		facts[c.CardID] = drift.FactsOf(decoded)
	}
	all, seen := map[string]*series{}, map[string]bool{}
	for _, trace := range admit(f) {
		if seen[trace.TraceID] {
			continue
		}
		seen[trace.TraceID] = true
		key := trace.AgentID + "\x00" + trace.CardID
		if all[key] == nil {
			all[key] = &series{facts: facts[trace.CardID]}
		}
		all[key].traces = append(all[key].traces, trace.Trace)
	}
	return all
}
