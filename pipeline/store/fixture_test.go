package store

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/plumbline/plumbline/schema"
)

var (
	streamCreated = time.Date(2026, 11, 1, 8, 0, 0, 123456789, time.UTC)
	firstReceived = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	firstEvent    = time.Date(2026, 11, 20, 11, 59, 0, 250_000_000, time.UTC)
)

// wholeTrace has every member of AAP section 5. %d is its number, %s its time.
const wholeTrace = `{"trace_id":"tr-%d","agent_id":"did:web:agent.example","card_id":"ac-1","timestamp":"%s",
"action":{"type":"execute","name":"purchase","category":"bounded","target":{"type":"product","identifier":"p-1"},"parameters":{"amount":45}},
"decision":{"alternatives_considered":[
 {"option_id":"A","description":"first","score":0.85,"scoring_factors":{"cost":0.8},"flags":["sponsored"]},
 {"option_id":"B","description":"second"}],
 "selected":"A","selection_reasoning":"best","values_applied":["honesty","privacy"],"confidence":0.75},
"escalation":{"evaluated":true,"triggers_checked":[{"trigger":"amount > 100","matched":false,"value_observed":45}],
 "required":true,"reason":"asked","escalation_id":"esc-1","escalation_status":"approved",
 "principal_response":{"decision":"approved","timestamp":"2026-11-20T12:05:00Z","conditions":["max_price <= 50"]}},
"context":{"session_id":"s-1","conversation_turn":5,"prior_trace_ids":["tr-0"],"environment":{"client":"web"},
 "metadata":{"session_end":true,"sequence_number":7,"execution":{"tool_name":"shop.buy","inputs":{"id":"p-1"},"outputs":{"ok":true},"cost_cents":12,"error":"none"}}}}`

func admit(t testing.TB, record string) *schema.Trace {
	t.Helper()
	trace, err := schema.Admit("", []byte(record))
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

// numbered returns the n-th trace of a series with one second between traces.
func numbered(t testing.TB, n int) *schema.Trace {
	t.Helper()
	return admit(t, fmt.Sprintf(wholeTrace, n, firstEvent.Add(time.Duration(n)*time.Second).Format(time.RFC3339Nano)))
}

// simple returns a trace with only these ids.
func simple(t testing.TB, traceID, agentID, sessionID, reasoning string) *schema.Trace {
	t.Helper()
	b, err := json.Marshal(map[string]any{
		"trace_id": traceID, "agent_id": agentID, "card_id": "ac-1", "timestamp": firstEvent.Format(time.RFC3339Nano),
		"action": map[string]any{"type": "recommend", "name": "search", "category": "bounded"},
		"decision": map[string]any{
			"alternatives_considered": []any{map[string]any{"option_id": "A", "description": "only"}},
			"selected":                "A", "selection_reasoning": reasoning, "values_applied": []string{"honesty"},
		},
		"context": map[string]any{"session_id": sessionID},
	})
	if err != nil {
		t.Fatal(err)
	}
	return admit(t, string(b))
}

func meta(t *schema.Trace, sequence uint64) Meta {
	return Meta{
		Received: firstReceived.Add(time.Duration(sequence) * time.Millisecond), StreamCreated: streamCreated,
		Sequence: sequence, Partition: 3, SessionID: schema.SessionID(t),
	}
}

// wholeVerdict has every member of AAP section 7.4, and those that profile spec adds.
func wholeVerdict(t *schema.Trace) *schema.Verdict {
	return &schema.Verdict{
		Status: schema.StatusJudged, RecommendedAction: schema.Deny,
		TraceID: t.TraceID, AgentID: t.AgentID, CardID: t.CardID, Timestamp: firstReceived.Add(time.Second),
		Violations: []schema.Remark{
			{Type: schema.UnboundedAction, Severity: schema.SeverityHigh, Description: "purchase is not bounded", Field: "action.name"},
			{Type: schema.UndeclaredValue, Severity: schema.SeverityMedium, Description: "privacy", Field: "decision.values_applied[1]"},
		},
		Warnings:        []schema.Remark{{Type: schema.WarnNearBoundary, Description: "0.31", Field: "decision"}},
		Findings:        []schema.Remark{{Type: schema.Backdated, Severity: schema.SeverityHigh, Description: "late"}},
		SimilarityScore: 0.3125,
		Metadata: schema.Metadata{
			AlgorithmVersion: "1.2.0", EngineVersion: "0.1.0", Profile: "spec",
			CardDigest: schema.DigestOf([]byte("card")), CardRevokedAt: firstEvent, TraceDigest: t.Digest,
			ChecksPerformed: []string{"autonomy", "values"},
			Similarity:      schema.SimilarityDetails{Similarities: []float64{0.3125}, MeanSimilarity: 0.3125, Trend: -0.5},
			AbsentTriggers:  []int{0, 2},
			GroundedClaims:  2, InferredClaims: 1, Methodology: "calibrated",
		},
	}
}

func cleanVerdict(t *schema.Trace) *schema.Verdict {
	return &schema.Verdict{
		Verified: true, Status: schema.StatusJudged, RecommendedAction: schema.Proceed,
		TraceID: t.TraceID, AgentID: t.AgentID, CardID: t.CardID, Timestamp: firstReceived.Add(time.Second),
		Violations: []schema.Remark{}, Warnings: []schema.Remark{}, Findings: []schema.Remark{},
		Metadata: schema.Metadata{EngineVersion: "0.1.0", Profile: "spec", TraceDigest: t.Digest, CardDigest: schema.DigestOf([]byte("card"))},
	}
}

// batchOf returns a batch of the traces with sequences from 1.
func batchOf(s *Store, traces ...*schema.Trace) *TraceBatch {
	b := s.NewTraceBatch()
	for i, t := range traces {
		b.Add(t, meta(t, uint64(i+1)), cleanVerdict(t))
	}
	return b
}

func insert(t testing.TB, s *Store, b *TraceBatch) {
	t.Helper()
	if err := s.InsertTraces(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

// sessionOf returns the traces of a session as sealing reads them, in order of event time.
func sessionOf(t testing.TB, s *Store, trace *schema.Trace) []*StoredTrace {
	t.Helper()
	var out []*StoredTrace
	for stored, err := range s.SessionTraces(t.Context(), SessionQuery{
		Sessions: []SessionKey{{trace.AgentID, schema.SessionID(trace)}}, From: firstEvent, To: firstEvent.Add(24 * time.Hour),
	}) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, stored)
	}
	slices.SortFunc(out, func(a, b *StoredTrace) int {
		return cmp.Or(a.EventTime.Compare(b.EventTime), cmp.Compare(a.Sequence, b.Sequence))
	})
	return out
}

func counts(t testing.TB, s *Store) Counts {
	t.Helper()
	c, err := s.Counts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c
}
