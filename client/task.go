package client

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/plumbline/plumbline/schema"
)

// Report reports to the initiator of a handshake how its task went, and which traces
// show it (AAP section 3.2, step 6). The caller sets RequestID, Status, Result and
// TraceReference; the client sets the sender and the time. The receipt means that the
// message is durable. Errors wrap ErrAnswer, a *Problem, ErrInsecure, or the error of
// the connection.
func (c *Client) Report(ctx context.Context, initiator string, result schema.TaskResult) (*schema.TaskReceipt, error) {
	result.Responder, result.Timestamp = schema.Requester{AgentID: c.AgentID, CardID: c.CardID}, c.now()
	raw, err := schema.EncodeHandshake(&result)
	if err != nil {
		return nil, err
	}
	form, err := schema.Canonical(raw)
	if err != nil {
		return nil, fmt.Errorf("write the task_result: %w", err)
	}
	answer, err := c.Transport.Exchange(ctx, initiator, c.AgentID, raw)
	if err != nil {
		return nil, fmt.Errorf("send the task_result of %s to agent %q: %w", result.RequestID, initiator, err)
	}
	receipt := new(schema.TaskReceipt)
	if err := json.Unmarshal(answer, receipt); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	if receipt.RequestID != result.RequestID || receipt.SHA256 != schema.DigestOf(form) {
		return nil, fmt.Errorf("%w: the receipt is of another message", ErrAnswer)
	}
	return receipt, nil
}
