package fleet

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/plumbline/plumbline/aap/session"
	"github.com/plumbline/plumbline/schema"
)

// Verification of the sessions, with everything that the broker stores of them, finds exactly
// what was planted.
func TestSessionFindingsAreExactlyAsPlanted(t *testing.T) {
	for _, f := range judged() {
		compare(t, f, f.Planted().SessionFindings, judgeSessions(f))
	}
	planted := demo(1).Planted().SessionFindings
	if n := len(planted[schema.TraceGap]); n != DefaultTraces/perGap {
		t.Errorf("%d gaps are planted, want %d", n, DefaultTraces/perGap)
	}
	if n := len(planted[schema.ActionLoop]); n != 2*DefaultTraces/perLoop {
		t.Errorf("%d loops are planted, want %d of reads and as many of writes", n, DefaultTraces/perLoop)
	}
	for _, name := range []string{schema.TurnOrder, schema.DeniedButActed, schema.EscalationUnanswered,
		schema.ActedBeforeAnswer, schema.TimeImplausible, schema.ContradictoryAnswer} {
		if len(planted[name]) < 20 {
			t.Errorf("%s planted on %d sessions only", name, len(planted[name]))
		}
	}
}

// judgeSessions verifies every session and returns the traces that its findings name.
func judgeSessions(f *Fleet) map[string][]string {
	sessions := map[session.Head][]*schema.Trace{}
	for _, trace := range admit(f) {
		if trace.kind != duplicate {
			head := session.Head{AgentID: trace.AgentID, SessionID: trace.Context.SessionID, Part: 1, LastPart: true}
			sessions[head] = append(sessions[head], trace.Trace)
		}
	}
	found := map[string][]string{}
	for head, traces := range sessions {
		slices.SortStableFunc(traces, func(a, b *schema.Trace) int { return cmp.Compare(a.Timestamp.UnixNano(), b.Timestamp.UnixNano()) })
		judged := session.New(head, nil)
		for _, trace := range traces {
			judged.Add(trace, new(schema.Verdict)) // a session's findings do not depend on its traces' own verdicts
		}
		answers := judged.Answers(session.Found{})
		verdict, _ := judged.Finish(&answers, time.Time{})
		for _, finding := range verdict.Findings {
			found[finding.Type] = append(found[finding.Type], finding.TraceID)
		}
	}
	return found
}
