package drift

import (
	"testing"

	"github.com/plumbline/plumbline/schema"
	"github.com/plumbline/plumbline/schema/published"
)

// recording is the recorded traces of one agent, in order, with an end mark on each session's last.
type recording struct {
	agent   string
	samples []Sample
}

// recordings reads the recorded sessions.
func recordings(t testing.TB) []recording {
	t.Helper()
	facts := map[string]CardFacts{}
	for _, line := range published.Lines(t, "corpus/cards.jsonl") {
		card, err := schema.DecodeCard(line)
		if err != nil {
			t.Fatal(err)
		}
		facts[card.CardID] = FactsOf(card)
	}
	var found []recording
	index, last := map[string]int{}, map[string]*Sample{}
	for _, line := range published.Lines(t, "corpus/traces.jsonl.gz") {
		trace, err := schema.Admit("", line)
		if err != nil {
			t.Fatal(err)
		}
		i, known := index[trace.AgentID]
		if !known {
			i = len(found)
			index[trace.AgentID] = i
			found = append(found, recording{agent: trace.AgentID, samples: make([]Sample, 0, 4096)})
		}
		found[i].samples = append(found[i].samples, SampleOf(trace, facts[trace.CardID]))
		last[trace.AgentID+trace.Context.SessionID] = &found[i].samples[len(found[i].samples)-1]
	}
	for _, x := range last {
		x.SessionEnd = true
	}
	return found
}

// On the recorded sessions of real agents, which nobody changed, the published rule raises 81 alerts
// and a baseline of sessions none.
func TestRecordedSessionsRaiseNoAlert(t *testing.T) {
	count := func(p Params) (opened, judged int) {
		for _, r := range recordings(t) {
			var s State
			for _, x := range r.samples {
				out := s.Step(x, p)
				if out.Status != StatusBaseline {
					judged++
				}
				if a := out.Alert; a != nil && a.State == schema.AlertOpened {
					opened++
					t.Logf("%s %s %s: %s", p.Mode, r.agent, x.TraceID, a.Summary)
				}
			}
		}
		return opened, judged
	}
	if opened, judged := count(DefaultParams()); opened != 0 || judged < 6000 {
		t.Errorf("%d alerts in %d traces under the default, want none", opened, judged)
	}
	if opened, _ := count(PublishedParams()); opened != 81 {
		t.Errorf("%d alerts under the published rule, want 81", opened)
	}
}
