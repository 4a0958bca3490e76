package fleet

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/plumbline/plumbline/aap/session"
	"github.com/plumbline/plumbline/schema"
)

// What verifying the sessions finds of gaps and order is what was planted.
func TestGapsAreExactlyAsPlanted(t *testing.T) {
	for _, f := range append(small(), demo(20261120)) {
		sessions := map[session.Head][]*schema.Trace{}
		for _, trace := range admit(f) {
			if trace.kind == plain {
				head := session.Head{AgentID: trace.AgentID, SessionID: trace.Context.SessionID, Part: 1, LastPart: true}
				sessions[head] = append(sessions[head], trace.Trace)
			}
		}
		var gaps []string
		for head, traces := range sessions {
			for _, finding := range judged(head, traces) {
				switch finding.Type {
				case schema.TraceGap:
					gaps = append(gaps, finding.TraceID)
				case schema.TraceOrder, schema.TurnOrder:
					t.Errorf("%+v: session %s: %+v", f.cfg, head.SessionID, finding)
				}
			}
		}
		if got := sorted(gaps); !slices.Equal(got, f.Planted().Gaps) {
			t.Errorf("%+v: gaps before %v, planted before %v", f.cfg, got, f.Planted().Gaps)
		}
	}
	if n := len(demo(1).Planted().Gaps); n != DefaultTraces/perGap {
		t.Errorf("%d gaps are planted, want %d", n, DefaultTraces/perGap)
	}
}

func judged(head session.Head, traces []*schema.Trace) []schema.SessionFinding {
	slices.SortStableFunc(traces, func(a, b *schema.Trace) int { return cmp.Compare(a.Timestamp.UnixNano(), b.Timestamp.UnixNano()) })
	judge := session.New(head, nil)
	for _, trace := range traces {
		judge.Add(trace, &schema.Verdict{})
	}
	answers := judge.Settle(session.Found{})
	verdict, _ := judge.Finish(&answers, time.Time{})
	return verdict.Findings
}
