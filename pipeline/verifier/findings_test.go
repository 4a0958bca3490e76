package verifier_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/plumbline/plumbline/pipeline/events"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/wire"
	"github.com/plumbline/plumbline/schema"
)

// alertsOf reads stream ALERTS from its beginning.
func alertsOf(t *testing.T, rig *pipelinetest.Rig, want int) map[uint64]events.Alert {
	t.Helper()
	inbox, found := rig.Messages(t, stream.Alerts, want), map[uint64]events.Alert{}
	for i := range inbox {
		m := &inbox[i]
		found[m.Sequence] = events.Alert{Sequence: m.Sequence, ID: m.ID(), SHA256: schema.DigestOf(m.Data)}
	}
	return found
}

// listedAlerts returns the alerts that the ledger lists, by sequence.
func listedAlerts(t *testing.T, rig *pipelinetest.Rig) map[uint64]events.Alert {
	t.Helper()
	listed := map[uint64]events.Alert{}
	for _, event := range ledgerEvents(t, rig) {
		var found events.Findings
		if event.Type != "VERIFY" {
			continue
		}
		if err := json.Unmarshal(event.Data, &found); err != nil || found.Kind != events.KindFindings || found.Count != len(found.Alerts) || found.Stream.IsZero() {
			t.Fatalf("%s: %v", event.Data, err)
		}
		for _, alert := range found.Alerts {
			listed[alert.Sequence] = alert
		}
	}
	return listed
}

// The ledger lists every alert by place, id and hash: those of the verifier, and those that
// others published while no verifier ran.
func TestFindingsAreEnteredIntoTheLedger(t *testing.T) {
	rig := pipelinetest.New(t)
	rig.Register(t, pipelinetest.Card("ac", "a"))
	raised := []wire.Alert{{Kind: "drift", Agent: "a", ID: "drift-1", Data: []byte(`{"alert_id":"1"}`)}}
	if err := rig.Client.PublishAlerts(t.Context(), raised); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		rig.Publish(t, pipelinetest.Trace(fmt.Sprint("bad-", i), "a", "ac", "s", "2026-02-01T00:00:00Z", "pay"))
		rig.Publish(t, pipelinetest.Trace(fmt.Sprint("good-", i), "a", "ac", "s", "2026-02-01T00:00:00Z", "search"))
	}
	rig.Publish(t, pipelinetest.Trace("of-another", "b", "ac", "s", "2026-02-01T00:00:00Z", "search")) // under the card of agent a
	for i := range 2 {                                                                                 // a second verifier finds nothing to add
		env := pipelinetest.Env(t, "verifier")
		stage := startIn(t, rig, env)
		pipelinetest.Await(t, "the findings in the ledger", func() bool { return len(listedAlerts(t, rig)) >= 5 })
		stage.Stop(t)
		for _, counter := range []struct {
			name, label string
			first       float64
		}{
			{"plumbline_verifier_verdicts_total", "deny", 4},
			{"plumbline_verifier_verdicts_total", "", 7},
			{"plumbline_verifier_violations_total", "FORBIDDEN_ACTION", 3},
			{"plumbline_verifier_violations_total", "CRITICAL", 3},
			{"plumbline_verifier_findings_total", "AGENT_MISMATCH", 1},
		} {
			if got := pipelinetest.Metric(t, env, counter.name, counter.label); i == 0 && got != counter.first {
				t.Errorf("%s %s: %v, want %v", counter.name, counter.label, got, counter.first)
			}
		}
	}
	listed := listedAlerts(t, rig)
	for sequence, alert := range alertsOf(t, rig, 5) {
		if listed[sequence] != alert {
			t.Errorf("the ledger lists %+v, want %+v", listed[sequence], alert)
		}
	}
	if len(listed) != 5 {
		t.Errorf("the ledger lists %d alerts, want 5", len(listed))
	}
}
