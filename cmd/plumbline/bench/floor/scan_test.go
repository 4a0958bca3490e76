package floor

import (
	"strconv"
	"testing"
	"time"

	"github.com/plumbline/plumbline/fleet"
	"github.com/plumbline/plumbline/schema"
)

// The floor must read what the decoder reads, or it does less than its table needs.
func TestScanReadsWhatTheDecoderReads(t *testing.T) {
	f := fleet.New(fleet.Config{Seed: 1, Agents: 50, Traces: 2000, Start: time.Unix(1_800_000_000, 0)})
	compared := 0
	for line := range f.Lines() {
		want, err := schema.Admit(line.Agent, line.Raw)
		if err != nil {
			continue // planted: the line is refused
		}
		compared++
		var got record
		got.scan(line.Raw)
		confidence, turn, cost := "", "", ""
		if want.Decision.HasConfidence {
			confidence = strconv.FormatFloat(want.Decision.Confidence, 'f', 2, 64)
		}
		if want.Context.HasTurn {
			turn = strconv.FormatInt(want.Context.ConversationTurn, 10)
		}
		if want.Context.Execution.Present {
			cost = strconv.FormatInt(want.Context.Execution.CostCents, 10)
		}
		sessionEnd := ""
		if want.Context.SessionEnd {
			sessionEnd = "true"
		}
		expected := record{
			traceID: want.TraceID, agentID: want.AgentID, cardID: want.CardID, timestamp: got.timestamp,
			actionType: string(want.Action.Type), actionName: want.Action.Name, actionCategory: string(want.Action.Category),
			selected: want.Decision.Selected, confidence: confidence,
			evaluated: strconv.FormatBool(want.Escalation.Evaluated), required: strconv.FormatBool(want.Escalation.Required),
			escalationID: want.Escalation.EscalationID, escalationStatus: string(want.Escalation.Status),
			sessionID: want.Context.SessionID, turn: turn, sessionEnd: sessionEnd,
			toolName: want.Context.Execution.ToolName, costCents: cost,
		}
		if got != expected {
			t.Fatalf("%s\nread as %+v\nwant    %+v", line.Raw, got, expected)
		}
		if at := timeOf(got.timestamp); !at.Equal(want.Timestamp) {
			t.Fatalf("timestamp %q is read as %s, want %s", got.timestamp, at, want.Timestamp)
		}
	}
	if compared < 1500 {
		t.Errorf("%d traces were compared, want nearly 2000", compared)
	}
}

func TestScanSkipsWhatItDoesNotNeed(t *testing.T) {
	var r record
	r.scan([]byte(`{ "x" : [ { "trace_id" : "no" }, "a\"]\\" ] , "trace_id" : "tr\"-1" ,"n":-1.5e3 ,"decision": { "confidence" : 0.5 , "selected":"\\" } }`))
	if want := (record{traceID: `tr\"-1`, confidence: "0.5", selected: `\\`}); r != want {
		t.Errorf("read as %+v, want %+v", r, want)
	}
}

// BenchmarkScan measures the scan of a trace of the fleet, for which nothing may be allocated.
func BenchmarkScan(b *testing.B) {
	f := fleet.New(fleet.Config{Seed: 1, Agents: 10, Traces: 100, Start: time.Unix(1_800_000_000, 0)})
	var lines [][]byte
	for line := range f.Lines() {
		if _, err := schema.Admit(line.Agent, line.Raw); err == nil {
			lines = append(lines, line.Raw)
		}
	}
	b.ReportAllocs()
	var r record
	for i := 0; b.Loop(); i++ {
		r.scan(lines[i%len(lines)])
	}
}
