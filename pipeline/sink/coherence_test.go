package sink_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/plumbline/plumbline/aap"
	"github.com/plumbline/plumbline/aap/coherence"
	"github.com/plumbline/plumbline/pipeline/handshake"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/sink"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/wire"
	"github.com/plumbline/plumbline/schema"
)

// record is a handshake of agent a with agent b, as ingest keeps it.
func record(t *testing.T, requestID string) []byte {
	t.Helper()
	assessor, err := coherence.NewAssessor(aap.DefaultThresholds())
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	check := &schema.CoherenceCheck{
		RequestID: requestID, InitiatorCardID: "ac-a", ResponderCardID: "ac-b", Timestamp: at, Proposal: schema.Collaboration{TaskType: "compare"},
	}
	found := assessor.Check(coherence.Party{CardID: "ac-a", AgentID: "a"}, coherence.Party{CardID: "ac-b", AgentID: "b"}, coherence.Task{}, at)
	return marshal(t, handshake.Record{
		Transport: handshake.OverHTTP, Received: at, Initiator: "a", Responder: "b",
		Request: marshal(t, &schema.CardRequest{RequestID: requestID, Requester: schema.Requester{AgentID: "a", CardID: "ac-a"}, Timestamp: at,
			TaskContext: &schema.TaskContext{TaskType: "compare"}}),
		Check: marshal(t, check), Result: marshal(t, coherence.Answer(check, found, at)),
	})
}

// taskRecord is agent b's result of a task, in a record that names an agent.
func taskRecord(t *testing.T, responder string) []byte {
	t.Helper()
	return marshal(t, handshake.Record{
		Transport: handshake.OverNATS, Initiator: "a", Responder: responder,
		TaskResult: marshal(t, &schema.TaskResult{
			RequestID: "task-1", Responder: schema.Requester{AgentID: "b", CardID: "ac-b"}, Status: schema.TaskCompleted,
			Timestamp: time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC), TraceReference: schema.TraceReference{TraceIDs: []string{"tr-1"}},
		}),
	})
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// forEver keeps the data of every agent.
type forEver struct{}

func (forEver) Know(context.Context, string) error              { return nil }
func (forEver) RetainUntil(string, time.Time) (until time.Time) { return until }

// Results are stored once, however often they are delivered. A message that is not a result of the
// subject's agent becomes a dead letter, and the other messages are stored.
func TestCoherenceResultsAreStored(t *testing.T) {
	rig := pipelinetest.New(t)
	good := record(t, "r-1")
	for _, m := range []wire.CoherenceResult{
		{Initiator: "a", ID: "1", Data: good},
		{Initiator: "a", ID: "junk", Data: []byte("junk")},
		{Initiator: "x", ID: "foreign", Data: record(t, "r-2")},
		{Initiator: "a", ID: "1, after the duplicate window", Data: good},
		{Initiator: "a", ID: "3", Data: record(t, "r-3")},
		{Initiator: "a", ID: "task", Data: taskRecord(t, "b")},
		{Initiator: "a", ID: "task, after the duplicate window", Data: taskRecord(t, "b")},
		{Initiator: "a", ID: "another's task", Data: taskRecord(t, "c")},
	} {
		if err := rig.Client.PublishCoherence(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	env := pipelinetest.Env(t, "verifier")
	results := &sink.Coherence{Env: env, Rows: rig.Store, Letters: rig.Client, Cards: forEver{}}
	stage := running(t, rig, stream.ConsumerConfig{Stream: stream.Coherence, Durable: stream.CoherenceConsumer}, results.Run)
	deadLetters := &sink.DeadLetters{Env: env, Rows: rig.Store}
	running(t, rig, stream.ConsumerConfig{Stream: stream.DeadLetters, Durable: stream.DeadLetterConsumer}, deadLetters.Run)
	pipelinetest.Await(t, "dead letters", func() bool {
		counts, err := rig.Store.Counts(t.Context())
		return err == nil && counts.DeadLetters == 3
	})
	pipelinetest.Await(t, "the last message acknowledged", func() bool {
		progress, err := rig.Client.ConsumerProgress(t.Context(), stream.Coherence, stream.CoherenceConsumer)
		return err == nil && progress.AckFloor == 8
	})
	stage.Stop(t)
	result, err := rig.Store.Query(t.Context(), "SELECT request_id FROM (SELECT request_id FROM visible_coherence_results UNION ALL SELECT request_id FROM visible_task_results) ORDER BY request_id")
	if err != nil {
		t.Fatal(err)
	}
	var ids []any
	for row, err := range result.Rows {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, row[0])
	}
	if fmt.Sprint(ids) != "[r-1 r-3 task-1]" {
		t.Errorf("stored %v, want r-1, r-3 and task-1", ids)
	}
}
