package handshake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/plumbline/plumbline/pipeline/wire"
	"github.com/plumbline/plumbline/schema"
)

// Record is one handshake with its result, or one result of a task. It is a message of stream
// COHERENCE.
type Record struct {
	Transport string          `json:"transport"`   // OverHTTP or OverNATS
	Received  time.Time       `json:"received_at"` // of the check, by the responder's clock
	Initiator string          `json:"initiator"`   // agent ids
	Responder string          `json:"responder"`
	Request   json.RawMessage `json:"request,omitempty"` // the messages, signatures included
	Check     json.RawMessage `json:"check,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`

	TaskResult json.RawMessage `json:"task_result,omitempty"` // without the three members before it
}

// Messages are the decoded messages of a Record.
type Messages struct {
	Request *schema.CardRequest
	Check   *schema.CoherenceCheck
	Result  *schema.CoherenceResult

	TaskResult *schema.TaskResult // nil in the record of a handshake
	TaskDigest schema.Digest      // of its JCS form
}

// ID returns the record's identity: equal whenever the record is published, and different for
// every other record. For a handshake it is made from the two agents, the request_id and the time
// of the request. For the result of a task it is made from the two agents and the message.
func (r *Record) ID(m *Messages) schema.Digest {
	if m.TaskResult != nil {
		return schema.DigestOf(fmt.Appendf(nil, "%q %q %s", r.Initiator, r.Responder, m.TaskDigest))
	}
	began := m.Request.Timestamp.UTC().Format(time.RFC3339Nano)
	return schema.DigestOf(fmt.Appendf(nil, "%q %q %q %s", r.Initiator, r.Responder, m.Request.RequestID, began))
}

// keep returns when the record is durable.
func (s *Service) keep(ctx context.Context, r *Record) error {
	messages, err := r.Messages()
	if err != nil {
		return fmt.Errorf("read our own result: %w", err)
	}
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("write the record of a handshake: %w", err)
	}
	return s.Results.PublishCoherence(ctx, wire.CoherenceResult{
		Initiator: r.Initiator, ID: r.ID(messages).String(), Data: data,
	})
}

// ReadRecord decodes a message of stream COHERENCE.
func ReadRecord(data []byte) (*Record, *Messages, error) {
	var r Record
	var messages *Messages
	err := json.Unmarshal(data, &r)
	if err == nil {
		messages, err = r.Messages()
	}
	if err == nil && (r.Initiator == "" || r.Responder == "") {
		err = errors.New("it names no agents")
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read the record of a handshake: %w", err)
	}
	return &r, messages, nil
}

// Messages decodes the messages. The error names the invalid one.
func (r *Record) Messages() (*Messages, error) {
	m := new(Messages)
	if len(r.TaskResult) > 0 {
		err := decodeAs("task_result", r.TaskResult, &m.TaskResult)
		if err != nil {
			return nil, err
		}
		if sender := m.TaskResult.Responder.AgentID; sender != r.Responder {
			return nil, fmt.Errorf("task_result: it is agent %q's, the record names %q", sender, r.Responder)
		}
		m.TaskDigest, err = digestOf(r.TaskResult)
		return m, err
	}
	if err := errors.Join(
		decodeAs("request", r.Request, &m.Request),
		decodeAs("check", r.Check, &m.Check),
		decodeAs("result", r.Result, &m.Result),
	); err != nil {
		return nil, err
	}
	return m, errors.Join(
		same("check", m.Request.RequestID, m.Check.RequestID),
		same("result", m.Request.RequestID, m.Result.RequestID))
}

func decodeAs[M schema.Handshake](member string, raw []byte, into *M) error {
	message, err := schema.DecodeHandshake(raw)
	if err != nil {
		return fmt.Errorf("%s: %w", member, err)
	}
	m, ok := message.(M)
	if !ok {
		return fmt.Errorf("%s: it is a %s", member, message.Type())
	}
	*into = m
	return nil
}

func same(member, want, got string) error {
	if got != want {
		return fmt.Errorf("%s: request_id %q, want %q", member, got, want)
	}
	return nil
}
