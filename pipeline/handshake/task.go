package handshake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/plumbline/plumbline/pipeline/problem"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// conclude stores a task_result, which the responder of a handshake sends to its initiator (AAP
// section 3.2, step 6), and confirms it. A task may take longer than a handshake is remembered.
// Whether the agents had agreed to it, and whether the traces exist, must be checked in the
// tables.
func (s *Service) conclude(ctx context.Context, q *Question, m *schema.TaskResult, now time.Time) ([]byte, error) {
	sender := m.Responder
	if err := admit(ctx, q, m, sender, s.party, now); err != nil {
		return nil, err
	}
	digest, err := digestOf(m.Raw)
	if err != nil {
		return nil, problem.New(http.StatusBadRequest, schema.ReasonInvalidHandshake, "the task_result cannot be identified: %v", err)
	}
	receipt, err := s.receipt(ctx, m, schema.TaskReceipt{RequestID: m.RequestID, SHA256: digest, ReceivedAt: now})
	if err == nil {
		err = s.keep(ctx, &Record{
			Transport: q.Transport, Received: receipt.ReceivedAt, Initiator: q.Responder, Responder: sender.AgentID, TaskResult: m.Raw,
		})
	}
	if errors.Is(err, stream.ErrUnavailable) {
		p := problem.New(http.StatusServiceUnavailable, WordUnavailable, "the broker is unavailable: send the same message again a little later")
		return nil, fmt.Errorf("%w: %w", p, err)
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(receipt)
}

// receipt stores the receipt of a message. If the same message is sent again, it returns the
// earlier receipt: the message may not have been stored then.
func (s *Service) receipt(ctx context.Context, m *schema.TaskResult, receipt schema.TaskReceipt) (schema.TaskReceipt, error) {
	value, err := json.Marshal(receipt)
	if err != nil {
		return receipt, fmt.Errorf("write a receipt: %w", err)
	}
	replayed := s.once(ctx, m, m.Responder.AgentID, value)
	if p := ProblemOf(replayed); p == nil || p.Word != WordReplayed {
		return receipt, replayed
	}
	value, _, err = s.Memory.GetNewest(ctx, keyOf(m.Type(), m.ID(), m.Responder.AgentID))
	if err != nil {
		return receipt, fmt.Errorf("read the earlier receipt: %w", err)
	}
	var before schema.TaskReceipt
	if err := json.Unmarshal(value, &before); err != nil {
		return receipt, fmt.Errorf("read the earlier receipt: %w", err)
	}
	if before.SHA256 != receipt.SHA256 {
		return receipt, replayed
	}
	return before, nil
}

// digestOf returns a digest that does not depend on the formatting of the JSON.
func digestOf(raw []byte) (schema.Digest, error) {
	form, err := schema.Canonical(raw)
	if err != nil {
		return schema.Digest{}, fmt.Errorf("canonical form: %w", err)
	}
	return schema.DigestOf(form), nil
}
