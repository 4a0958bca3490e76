package schema

import (
	"encoding/json"
	"time"
)

// TaskResult ends the task of a handshake (AAP section 3.2, step 6). The responder reports how
// the task went, and which of its traces show what it did. The section names the message but no
// members; the members are Plumbline's.
type TaskResult struct {
	RequestID      string          `json:"request_id"` // of the handshake
	Responder      Requester       `json:"responder"`  // the agent that reports
	Status         TaskStatus      `json:"status"`
	Result         json.RawMessage `json:"result,omitempty"` // any JSON value
	TraceReference TraceReference  `json:"trace_reference"`
	Timestamp      time.Time       `json:"timestamp"`
	Signature      *Signature      `json:"signature,omitempty"`

	Raw []byte `json:"-"`
}

// TaskStatus is the outcome of a task.
type TaskStatus string

// The three outcomes of a task.
const (
	TaskCompleted TaskStatus = "completed"
	TaskFailed    TaskStatus = "failed"
	TaskDeclined  TaskStatus = "declined" // it was not started
)

// TraceReference names the responder's traces that were generated during the task.
type TraceReference struct {
	TraceIDs  []string `json:"trace_ids"` // 1 to MaxHandshakeNames
	SessionID string   `json:"session_id,omitempty"`
}

// TaskReceipt answers a TaskResult once the message is durable.
type TaskReceipt struct {
	RequestID  string    `json:"request_id"`
	SHA256     Digest    `json:"sha256"` // of the message's JCS form (RFC 8785)
	ReceivedAt time.Time `json:"received_at"`
}

// taskResult reads a task_result (AAP section 3.2, step 6).
func (d *handshakeDecoder) taskResult(m *TaskResult) {
	d.envelope(&m.RequestID, &m.Timestamp, &m.Signature, members{
		"responder":       func() { d.agent(&m.Responder) },
		"status":          choice(&d.tableReader, &m.Status, TaskCompleted, TaskFailed, TaskDeclined),
		"result":          d.optional(func() { m.Result = d.opaque() }),
		"trace_reference": func() { d.traceReference(&m.TraceReference) },
	}, "responder", "status", "trace_reference")
}

func (d *handshakeDecoder) traceReference(r *TraceReference) {
	d.object(members{
		"trace_ids": func() {
			r.TraceIDs = d.names()
			if n := len(r.TraceIDs); d.err == nil && (n == 0 || n > MaxHandshakeNames) {
				d.fault("%d traces, want 1 to %d", n, MaxHandshakeNames)
			}
		},
		"session_id": d.optional(into(&r.SessionID, d.identifier)),
	}, "trace_ids")
}

// Type returns task_result.
func (*TaskResult) Type() MessageType { return MessageTaskResult }

// ID returns the request_id.
func (m *TaskResult) ID() string { return m.RequestID }

// Time returns the timestamp.
func (m *TaskResult) Time() time.Time { return m.Timestamp }

// Signed returns the message.
func (m *TaskResult) Signed() ([]byte, *Signature) { return m.Raw, m.Signature }

// MarshalJSON writes message_type first and the time with Z.
func (m TaskResult) MarshalJSON() ([]byte, error) {
	type plain TaskResult
	m.Timestamp = m.Timestamp.UTC()
	return json.Marshal(struct {
		Type MessageType `json:"message_type"`
		plain
	}{m.Type(), plain(m)})
}
