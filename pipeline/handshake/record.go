package handshake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// Record is one handshake with its result, a message of stream COHERENCE.
type Record struct {
	Transport string          `json:"transport"`   // OverHTTP or OverNATS
	Received  time.Time       `json:"received_at"` // of the check, by the responder's clock
	Initiator string          `json:"initiator"`   // agent ids
	Responder string          `json:"responder"`
	Request   json.RawMessage `json:"request"` // the messages, signatures included
	Check     json.RawMessage `json:"check"`
	Result    json.RawMessage `json:"result"`
}

// Messages are the messages of a Record, decoded.
type Messages struct {
	Request *schema.CardRequest
	Check   *schema.CoherenceCheck
	Result  *schema.CoherenceResult
}

// ID is the handshake's own, from its two agents, request_id and the time of its
// request: the same however often it is published, and for no other handshake.
func (r *Record) ID(request *schema.CardRequest) schema.Digest {
	began := request.Timestamp.UTC().Format(time.RFC3339Nano)
	return schema.DigestOf(fmt.Appendf(nil, "%q %q %q %s", r.Initiator, r.Responder, request.RequestID, began))
}

// keep returns when the record is durable.
func (s *Service) keep(ctx context.Context, r *Record) error {
	messages, err := r.Messages()
	if err != nil {
		return fmt.Errorf("read a result of ours: %w", err)
	}
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("write the record of a handshake: %w", err)
	}
	return s.results.PublishCoherence(ctx, stream.CoherenceResult{
		Initiator: r.Initiator, ID: r.ID(messages.Request).String(), Data: data,
	})
}

// ReadRecord reads a message of stream COHERENCE.
func ReadRecord(data []byte) (*Record, *Messages, error) {
	var r Record
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, nil, fmt.Errorf("read the record of a handshake: %w", err)
	}
	messages, err := r.Messages()
	if err != nil {
		return nil, nil, fmt.Errorf("read the record of a handshake: %w", err)
	}
	if r.Initiator == "" || r.Responder == "" {
		return nil, nil, errors.New("read the record of a handshake: it names no agents")
	}
	return &r, messages, nil
}

// Messages decodes the messages. The error tells which of them is not what it
// should be.
func (r *Record) Messages() (*Messages, error) {
	m := new(Messages)
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
