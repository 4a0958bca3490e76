package fleet

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/aap/drift"
	"github.com/plumbline/plumbline/schema"
)

// series is the series of one agent under one card, as the drift stage sees it.
type series struct {
	facts  drift.CardFacts
	traces []*schema.Trace
}

// Each change is one alert: it opens during the change, in the right category, and closes where the agent
// recovers. Nothing else raises one.
func TestDriftIsExactlyAsPlanted(t *testing.T) {
	for _, f := range judged() {
		var alerts []*schema.DriftAlert
		for _, c := range seriesOf(t, f) {
			alerts = append(alerts, alertsOf(c)...)
		}
		planted := f.Planted()
		missing, strange := planted.CompareDrift(alerts)
		for _, d := range missing {
			t.Errorf("%+v: planted but no alert: %v", f.cfg, d)
		}
		for _, a := range strange {
			t.Errorf("%+v: an alert that was not planted, or a second one: %s of %s, %s, opened %s: %s", f.cfg, a.State, a.AgentID, a.Analysis.DriftDirection, a.OpenedAt, a.Summary)
		}
		recover := slices.DeleteFunc(slices.Clone(planted.Drift), func(d PlantedDrift) bool { return !d.Recovers })
		if f.cfg.Traces == DefaultTraces && (len(planted.Drift) < 12 || len(recover) < len(slides)) {
			t.Errorf("%+v: only %d changes are planted, %d of them end", f.cfg, len(planted.Drift), len(recover))
		}
	}
}

// alertsOf applies the traces of a series in order of their own times, and returns the newest event of each alert.
func alertsOf(c *series) (alerts []*schema.DriftAlert) {
	slices.SortStableFunc(c.traces, func(a, b *schema.Trace) int { return a.Timestamp.Compare(b.Timestamp) })
	var state drift.State
	for _, trace := range c.traces {
		alert := state.Step(drift.SampleOf(trace, c.facts), drift.DefaultParams()).Alert
		if alert != nil && alert.Revision > 1 {
			alerts[len(alerts)-1] = alert
		} else if alert != nil {
			alerts = append(alerts, alert)
		}
	}
	return alerts
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

// The changes of many fleets, each as planted: chance differs from seed to seed. Only the agents that
// change are looked at; the fleets above have the others.
func TestChangesOfManySeeds(t *testing.T) {
	for seed := uint64(1); seed <= 16; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			f := New(Config{Seed: seed, Start: start})
			planted := f.Planted()
			var alerts []*schema.DriftAlert
			for _, c := range seriesAmong(t, f, func(agent string) bool {
				return slices.ContainsFunc(planted.Drift, func(d PlantedDrift) bool { return d.AgentID == agent })
			}) {
				alerts = append(alerts, alertsOf(c)...)
			}
			missing, strange := planted.CompareDrift(alerts)
			for _, d := range missing {
				t.Errorf("planted but no alert: %v", d)
			}
			for _, a := range strange {
				t.Errorf("not planted, or a second one: %s of %s, %s by %q: %s", a.State, a.AgentID, a.Analysis.DriftDirection, a.Measures, a.Summary)
			}
			if len(planted.Drift) < 12 {
				t.Errorf("only %d changes are planted", len(planted.Drift))
			}
		})
	}
}

// seriesAmong returns the series of some agents, each under its card. It reads their lines alone.
func seriesAmong(t *testing.T, f *Fleet, among func(agent string) bool) map[string]*series {
	t.Helper()
	facts, all, seen := map[string]drift.CardFacts{}, map[string]*series{}, map[string]bool{}
	for _, c := range f.Cards() {
		decoded, err := schema.DecodeCard(c.Raw)
		if err != nil {
			t.Fatalf("card %s: %v", c.CardID, err)
		}
		facts[c.CardID] = drift.FactsOf(decoded)
	}
	for line := range f.Lines() {
		if !among(line.Agent) {
			continue
		}
		trace, err := schema.Admit(line.Agent, line.Raw)
		if err != nil || seen[trace.TraceID] {
			continue
		}
		seen[trace.TraceID] = true
		key := trace.AgentID + "\x00" + trace.CardID
		if all[key] == nil {
			all[key] = &series{facts: facts[trace.CardID]}
		}
		all[key].traces = append(all[key].traces, trace)
	}
	return all
}

// The agents of one trade in a large fleet, each with hundreds of traces. The traces of a session are
// about one subject, in one of few sentences, so a session's texts are as good as one: they raise no
// alert where nothing is planted.
func TestFewTextsRaiseNoAlert(t *testing.T) {
	f := New(Config{Seed: 3, Agents: 40, Traces: 33_000, Start: start})
	all, traces := seriesAmong(t, f, func(agent string) bool { return strings.Contains(agent, "operations") }), 0
	for _, c := range all {
		traces += len(c.traces)
	}
	var alerts []*schema.DriftAlert
	for _, c := range all {
		alerts = append(alerts, alertsOf(c)...)
	}
	if _, strange := f.planted.CompareDrift(alerts); len(strange) > 0 || traces < 3500 {
		for _, a := range strange {
			t.Errorf("alert about %s: %s", a.AgentID, a.Summary)
		}
		t.Errorf("%d alerts in %d traces", len(alerts), traces)
	}
}
