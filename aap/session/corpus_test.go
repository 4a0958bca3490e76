package session_test

import (
	"cmp"
	"maps"
	"slices"
	"testing"

	"github.com/plumbline/plumbline/aap/session"
	"github.com/plumbline/plumbline/schema"
	"github.com/plumbline/plumbline/schema/published"
)

// corpusSessions returns the 550 sessions of real agents.
func corpusSessions(t testing.TB) map[session.Head][]*schema.Trace {
	t.Helper()
	sessions := map[session.Head][]*schema.Trace{}
	for _, line := range published.Lines(t, "corpus/traces.jsonl.gz") {
		trace, err := schema.Admit("", line)
		if err != nil {
			t.Fatal(err)
		}
		head := session.Head{AgentID: trace.AgentID, SessionID: schema.SessionID(trace), Part: 1, LastPart: true}
		sessions[head] = append(sessions[head], trace)
	}
	return sessions
}

// The findings on real sessions are exactly the 138 escalations to a person whose answer nobody
// recorded, and six loops (TestCorpusLoops).
func TestCorpusSessions(t *testing.T) {
	counts := map[string]int64{}
	grave := 0
	for head, traces := range corpusSessions(t) {
		slices.SortStableFunc(traces, func(a, b *schema.Trace) int { return cmp.Compare(a.Timestamp.UnixNano(), b.Timestamp.UnixNano()) })
		j := session.New(head, nil)
		for _, trace := range traces {
			j.Add(trace, &clean)
		}
		answers := j.Answers(session.Found{})
		v, _ := j.Finish(&answers, at)
		for kind, n := range v.FindingCounts {
			counts[kind] += n
		}
		grave += len(slices.DeleteFunc(v.Findings, func(f schema.SessionFinding) bool { return f.Severity == schema.SeverityMedium }))
		if len(v.Metadata.Unchecked) > 0 {
			t.Errorf("session %s: unchecked %q", head.SessionID, v.Metadata.Unchecked)
		}
	}
	if want := (map[string]int64{schema.EscalationUnanswered: 138, schema.ActionLoop: 6}); !maps.Equal(counts, want) || grave > 0 {
		t.Errorf("findings %v, want %v; %d of them graver than MEDIUM", counts, want, grave)
	}
}

// BenchmarkSession measures the additional cost of session verification for a trace.
func BenchmarkSession(b *testing.B) {
	sessions := corpusSessions(b)
	b.ReportAllocs()
	traces := 0
	for b.Loop() {
		for head, trace := range sessions {
			j := session.New(head, nil)
			for i := range trace {
				j.Add(trace[i], &clean)
			}
			traces += len(trace)
			answers := j.Answers(session.Found{})
			j.Finish(&answers, at)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(traces), "ns/trace")
}
