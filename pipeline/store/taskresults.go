package store

import (
	"context"
	"time"

	"github.com/plumbline/plumbline/schema"
)

// TaskResult is the result of a task that two agents agreed on (AAP section 3.2, step 6), and
// what the broker knows about it.
type TaskResult struct {
	Digest      schema.Digest // of the JCS form of the message
	Transport   string
	Initiator   string // agent ids
	Responder   string
	Received    time.Time // by the broker
	RetainUntil time.Time // zero: forever

	Message *schema.TaskResult
}

// taskRow is a row of table task_results.
type taskRow struct {
	Owned
	EventHour   uint32        `ch:"event_hour"`
	Initiator   string        `ch:"initiator_agent_id"`
	Responder   string        `ch:"responder_agent_id"`
	Digest      schema.Digest `ch:"digest"`
	RequestID   string        `ch:"request_id"`
	Transport   string        `ch:"transport"`
	FinishedAt  time.Time     `ch:"finished_at"`
	Received    time.Time     `ch:"received_at"`
	RetainUntil RetainUntil   `ch:"retain_until"`
	CardID      string        `ch:"responder_card_id"`
	Status      string        `ch:"status"`
	TraceIDs    []string      `ch:"trace_ids"`
	SessionID   string        `ch:"session_id"`
	KeyID       string        `ch:"key_id"`
	Message     []byte        `ch:"message"`
}

// InsertTaskResults stores results of tasks. It is idempotent: duplicates collapse.
func (s *Store) InsertTaskResults(ctx context.Context, results []TaskResult) error {
	rows := make([]taskRow, len(results))
	for i := range results {
		r, m := &results[i], results[i].Message
		rows[i] = taskRow{
			EventHour: EventHour(m.Timestamp), Initiator: r.Initiator, Responder: r.Responder, Digest: r.Digest,
			RequestID: m.RequestID, Transport: r.Transport, FinishedAt: m.Timestamp, Received: r.Received,
			RetainUntil: RetainUntil(r.RetainUntil), CardID: m.Responder.CardID, Status: string(m.Status),
			TraceIDs: m.TraceReference.TraceIDs, SessionID: m.TraceReference.SessionID, Message: m.Raw,
		}
		if m.Signature != nil {
			rows[i].KeyID = m.Signature.KeyID
		}
	}
	return insertRows(ctx, s, "task_results", rows)
}
