package store

import (
	"testing"
	"time"

	"github.com/plumbline/plumbline/schema"
)

func handshake(id string, received time.Time) CoherenceResult {
	result := &schema.CoherenceResult{RequestID: id, Timestamp: firstEvent.Add(2 * time.Second), Signature: &schema.Signature{KeyID: "key"}, Raw: []byte(`{}`)}
	result.Coherence = schema.Coherence{Score: 0.25, Alignment: schema.ValueAlignment{
		Matched: []string{"a"}, Unmatched: []string{nasty},
		Conflicts: []schema.ValueConflict{{InitiatorValue: nasty, ResponderValue: schema.ConflictsWith, ConflictType: schema.ConflictIncompatible, Description: nasty}},
	}}
	result.Outcome = schema.Outcome{
		ProposedResolution: &schema.ProposedResolution{Type: schema.ResolutionEscalate},
		Reasons:            []schema.Reason{{Code: schema.ReasonCardRevoked, Side: schema.Initiator, CardID: "ac", Description: nasty}},
		ResolutionSteps:    []schema.ResolutionStep{{Step: schema.ResolutionAutomatic, Subject: nasty, Side: schema.Responder, Outcome: schema.StepFailed}},
	}
	return CoherenceResult{
		ID: schema.DigestOf([]byte(id)), Transport: "http", Initiator: nasty, Responder: "b", Received: received,
		Request: &schema.CardRequest{RequestID: id, Timestamp: firstEvent, Raw: []byte(`{}`), TaskContext: &schema.TaskContext{ValuesRequired: []string{"a", nasty}}},
		Check: &schema.CoherenceCheck{RequestID: id, InitiatorCardID: "ac", Timestamp: firstEvent.Add(time.Second),
			Raw: []byte(`{"proposed_collaboration":{"data_sharing":{"from_initiator":["x"]}}}`), Proposal: schema.Collaboration{TaskType: nasty}},
		Result: result,
	}
}

// A redelivered result of a task is stored once, as it was sent.
func TestTaskResultsAreIdempotent(t *testing.T) {
	s, _ := open(t)
	row := func(id string, received time.Time) TaskResult {
		return TaskResult{
			Digest: schema.DigestOf([]byte(id)), Transport: "nats", Initiator: nasty, Responder: "b", Received: received,
			Message: &schema.TaskResult{
				RequestID: id, Responder: schema.Requester{AgentID: "b", CardID: "ac"}, Status: schema.TaskFailed, Timestamp: firstEvent,
				TraceReference: schema.TraceReference{TraceIDs: []string{"tr-1", nasty}, SessionID: "s"},
				Signature:      &schema.Signature{KeyID: "key"}, Raw: []byte(`{"result":{"why":[1,null]}}`),
			},
		}
	}
	first := row("r", firstReceived)
	for _, results := range [][]TaskResult{{first}, {row("r", firstReceived.AddDate(0, 1, 0))}, {first}, {row("other", firstReceived)}} {
		if err := s.InsertTaskResults(t.Context(), results); err != nil {
			t.Fatal(err)
		}
	}
	const read = `SELECT countIf(request_id = 'r' AND received_at < '2027-01-01' AND responder_card_id = 'ac' AND status = 'failed' AND key_id = 'key'
		AND length(trace_ids) = 2 AND session_id = 's' AND result = '{"why":[1,null]}') * 10 + count() FROM visible_task_results`
	if got := one[uint64](t, s, read); got != 12 {
		t.Errorf("got %d, want 12: 2 results, one of them as it was written", got)
	}
}

// A redelivered result is stored once, even across the end of a month.
func TestCoherenceResultsAreIdempotent(t *testing.T) {
	s, _ := open(t)
	first, again := handshake("r", firstReceived), handshake("r", firstReceived.AddDate(0, 1, 0))
	for _, results := range [][]CoherenceResult{{first}, {again}, {first}, {handshake("other", firstReceived)}} {
		if err := s.InsertCoherenceResults(t.Context(), results); err != nil {
			t.Fatal(err)
		}
	}
	if got := one[uint64](t, s, "SELECT count() FROM visible_coherence_results"); got != 2 {
		t.Errorf("%d handshakes are visible, want 2", got)
	}
	const read = `SELECT count() FROM visible_coherence_results WHERE request_id = 'r' AND score = 0.25 AND NOT compatible
		AND received_at < '2027-01-01' AND resolution = 'escalate_to_principals' AND key_id = 'key' AND data_sharing = '{"from_initiator":["x"]}'
		AND length(values_required) = 2 AND conflicts[1].2 = '(conflicts_with)' AND reasons[1].1 = 'card_revoked' AND resolution_steps[1].4 = 'failed'`
	if got := one[uint64](t, s, read); got != 1 {
		t.Errorf("%d rows read as written, want 1", got)
	}
}
