package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/plumbline/plumbline/message"
	"github.com/plumbline/plumbline/message/audit"
	"github.com/plumbline/plumbline/message/wire"
)

// The requests and answers of the message routes (docs/MESSAGES.md).
type (
	// SignRequest is the request to sign a message.
	SignRequest = wire.SignRequest
	// SignedMessage is the wrapped text with its envelope.
	SignedMessage = wire.SignedMessage
	// Received is the result of the verification of a message.
	Received = wire.Verification
	// Permission is the decision on a tool call.
	Permission = wire.CallDecision
	// SignedResult is the signature of a tool result.
	SignedResult = wire.SignedResult
	// Citation is the value of context.metadata.message_auth of a trace.
	Citation = audit.Citation
)

// Rejected is the error for a message or tool result that must not be used.
type Rejected struct {
	Reason string    // message.ReasonForged, …
	Detail string    // for people
	Answer *Received // the complete answer about a message; nil for a tool result
}

// Error returns the reason and the detail.
func (r *Rejected) Error() string { return r.Reason + ": " + r.Detail }

// Blocked is the error for a tool call that must not be made.
type Blocked struct {
	Tool   string
	Reason string // message.ReasonOutOfScope, …
	Detail string // for people
	CallID string // of the recorded decision
}

// Error returns the tool, the reason and the detail.
func (b *Blocked) Error() string {
	return fmt.Sprintf("tool %q is blocked: %s: %s", b.Tool, b.Reason, b.Detail)
}

// Sign lets the gateway sign a message to an agent, on behalf of the token's owner. The
// caller passes the answer to the agent's runtime unchanged.
func (h *HTTP) Sign(ctx context.Context, q SignRequest) (*SignedMessage, error) {
	signed, err := ask[SignedMessage](ctx, h, "/v1/messages", q)
	if err == nil && signed.MAC == "" {
		return nil, errNotSigned
	}
	return signed, err
}

// errNotSigned reports that the service that answered is no gateway.
var errNotSigned = errors.New("the answer has no signature: is this the address of an ingest?")

// Runtime is the runtime of an agent in one session: it receives messages, asks
// before it calls tools, and has their results signed. It fails closed: after every
// error the message must not be used and the tool must not be called. A request that
// got no answer (503, a lost connection) is repeated twice, as long as its context
// lives. Its methods may be called from any goroutine. The token has the scope
// "runtime".
type Runtime struct {
	HTTP      *HTTP
	AgentID   string
	SessionID string
}

// Receive verifies a message. The model may see only the text in the answer. The error is a
// *Rejected if the message must not be used, or one of the errors of Sign. A message can be
// received only once.
func (r *Runtime) Receive(ctx context.Context, wrapped string, envelope *message.Envelope) (*Received, error) {
	received, err := insist[Received](ctx, r.HTTP, "/v1/messages/verify", wire.VerifyRequest{
		AgentID: r.AgentID, SessionID: r.SessionID, Wrapped: wrapped, Envelope: envelope, AttemptID: uuid.NewString(),
	})
	if err == nil && received.Outcome != message.Accepted {
		return nil, &Rejected{Reason: received.Reason, Detail: received.Detail, Answer: received}
	}
	return received, err
}

// Call asks whether a tool may be called on the authority of a received message. The error
// is a *Blocked if it may not.
func (r *Runtime) Call(ctx context.Context, messageID, tool string) (*Permission, error) {
	permission, err := insist[Permission](ctx, r.HTTP, "/v1/tool-calls", wire.CallRequest{
		AgentID: r.AgentID, SessionID: r.SessionID, MessageID: messageID, ToolName: tool,
	})
	if err == nil && permission.Outcome != message.Executed {
		return nil, &Blocked{Tool: tool, Reason: permission.Reason, Detail: permission.Detail, CallID: permission.CallID}
	}
	return permission, err
}

// Result has the result of a tool signed, before the model sees it. The result is the JSON
// that the tool returned, unchanged.
func (r *Runtime) Result(ctx context.Context, tool string, result json.RawMessage) (*SignedResult, error) {
	signed, err := insist[SignedResult](ctx, r.HTTP, "/v1/tool-results", r.resultRequest(tool, result))
	if err == nil && signed.MAC == "" {
		return nil, errNotSigned
	}
	return signed, err
}

// CheckResult returns nil for a result that was signed in this session, otherwise a
// *Rejected.
func (r *Runtime) CheckResult(ctx context.Context, result json.RawMessage, signed *SignedResult) error {
	verdict, err := insist[wire.ResultVerdict](ctx, r.HTTP, "/v1/tool-results/verify", wire.ResultCheck{
		ResultRequest: r.resultRequest(signed.ToolName, result), Seq: signed.Seq, MAC: signed.MAC, KeyID: signed.KeyID,
	})
	if err == nil && verdict.Outcome != message.Accepted {
		return &Rejected{Reason: verdict.Reason, Detail: verdict.Detail}
	}
	return err
}

func (r *Runtime) resultRequest(tool string, result json.RawMessage) wire.ResultRequest {
	return wire.ResultRequest{AgentID: r.AgentID, SessionID: r.SessionID, ToolName: tool, Result: result}
}

// Cite returns the value for context.metadata.message_auth of an action's trace: the
// decision that permitted the action, and the tool results that it is based on. If the
// reasoning has several claims tagged [G], set Results[i].Claims to the claims that are
// based on that result.
func Cite(permission *Permission, results ...*SignedResult) Citation {
	c := Citation{MessageID: permission.MessageID, CallID: permission.CallID}
	for _, r := range results {
		c.Results = append(c.Results, audit.Result{ToolName: r.ToolName, Seq: r.Seq, SHA256: r.SHA256})
	}
	return c
}
