package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/google/uuid"

	"github.com/plumbline/plumbline/message"
	"github.com/plumbline/plumbline/message/audit"
	"github.com/plumbline/plumbline/message/wire"
)

// The requests and answers of the message routes (docs/MESSAGES.md).
type (
	// SignRequest asks for a message to be signed.
	SignRequest = wire.SignRequest
	// SignedMessage is the wrapped text with its envelope.
	SignedMessage = wire.SignedMessage
	// Received is a message that was verified.
	Received = wire.Verification
	// Permission is the decision that a tool may be called.
	Permission = wire.CallDecision
	// SignedResult is what proves a tool result.
	SignedResult = wire.SignedResult
	// Citation is context.metadata.message_auth of a trace.
	Citation = audit.Citation
)

// Rejected is a message or tool result that is not to be used.
type Rejected struct {
	Reason string    // message.ReasonForged, …
	Detail string    // for people
	Answer *Received // about a message, whole; nil for a tool result
}

// Error says why.
func (r *Rejected) Error() string { return r.Reason + ": " + r.Detail }

// Blocked is a tool call that is not to be made.
type Blocked struct {
	Tool   string
	Reason string // message.ReasonOutOfScope, …
	Detail string // for people
	CallID string // of the record
}

// Error says why.
func (b *Blocked) Error() string {
	return fmt.Sprintf("tool %q is blocked: %s: %s", b.Tool, b.Reason, b.Detail)
}

// Sign has a message to an agent signed by the gateway, on behalf of whoever holds
// the token. The answer goes to the agent's runtime as it is.
func (h *HTTP) Sign(ctx context.Context, q SignRequest) (*SignedMessage, error) {
	signed, err := ask[SignedMessage](ctx, h, "/v1/messages", q)
	if err == nil && signed.MAC == "" {
		return nil, errNotSigned
	}
	return signed, err
}

// errNotSigned says that what answered is no gateway.
var errNotSigned = errors.New("the answer holds no signature: is this the address of an ingest?")

// Runtime is the runtime of an agent in one session: it takes messages, asks
// before it calls tools, and has their results signed. What it is not told it does
// not do: after every error the message is not used and the tool not called. A
// question that got no answer (503, a lost connection) is asked again twice, as long as
// its context lives. Its methods may be called from any goroutine. The token has the
// scope "runtime".
type Runtime struct {
	HTTP      *HTTP
	AgentID   string
	SessionID string
}

// Receive verifies a message; its text in the answer is what the model may see of
// it. The error is a *Rejected where the message is not to be used, or what Sign's
// can be. A message is received once.
func (r *Runtime) Receive(ctx context.Context, wrapped string, envelope *message.Envelope) (*Received, error) {
	received, err := insist[Received](ctx, r.HTTP, "/v1/messages/verify", wire.VerifyRequest{
		AgentID: r.AgentID, SessionID: r.SessionID, Wrapped: wrapped, Envelope: envelope, AttemptID: uuid.NewString(),
	})
	if err == nil && received.Outcome != message.Accepted {
		return nil, &Rejected{Reason: received.Reason, Detail: received.Detail, Answer: received}
	}
	return received, err
}

// Call asks whether a tool may be called on the authority of a message that was
// received. The error is a *Blocked where it may not.
func (r *Runtime) Call(ctx context.Context, messageID, tool string) (*Permission, error) {
	permission, err := insist[Permission](ctx, r.HTTP, "/v1/tool-calls", wire.CallRequest{
		AgentID: r.AgentID, SessionID: r.SessionID, MessageID: messageID, ToolName: tool,
	})
	if err == nil && permission.Outcome != message.Executed {
		return nil, &Blocked{Tool: tool, Reason: permission.Reason, Detail: permission.Detail, CallID: permission.CallID}
	}
	return permission, err
}

// Result has the result of a tool signed, JSON as the tool gave it, before the
// model sees it.
func (r *Runtime) Result(ctx context.Context, tool string, result json.RawMessage) (*SignedResult, error) {
	signed, err := insist[SignedResult](ctx, r.HTTP, "/v1/tool-results", r.resultRequest(tool, result))
	if err == nil && signed.MAC == "" {
		return nil, errNotSigned
	}
	return signed, err
}

// CheckResult returns nil for a result that was signed in this session, else a
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

// Cite is what the trace of an action carries as context.metadata.message_auth: the
// decision that permitted it, and the tool results that it rests on. Where the
// reasoning has several claims tagged [G], set Results[i].Claims to say which of them
// rest on each result.
func Cite(permission *Permission, results ...*SignedResult) Citation {
	c := Citation{MessageID: permission.MessageID, CallID: permission.CallID}
	for _, r := range results {
		c.Results = append(c.Results, audit.Result{ToolName: r.ToolName, Seq: r.Seq, SHA256: r.SHA256})
	}
	return c
}

// maxDecisionBytes is ample for an answer, which may repeat a message's text.
const maxDecisionBytes = 4 << 20

// attempts is how often a question is asked that got no answer, and pause how long
// is waited in between where the service does not say.
const (
	attempts = 3
	pause    = time.Second
)

// insist asks, and asks the same again while the service has no answer.
func insist[A any](ctx context.Context, h *HTTP, path string, question any) (*A, error) {
	for attempt := 1; ; attempt++ {
		answer, err := ask[A](ctx, h, path, question)
		wait, unanswered := unanswered(err)
		if !unanswered || attempt == attempts {
			return answer, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(wait):
		}
	}
}

// unanswered tells whether an error of ask may pass, and in what time.
func unanswered(err error) (wait time.Duration, yes bool) {
	if problem := new(Problem); errors.As(err, &problem) {
		return cmp.Or(problem.RetryAfter, pause), problem.Code == http.StatusServiceUnavailable
	}
	lost := new(url.Error)
	return pause, errors.As(err, &lost) || errors.Is(err, io.ErrUnexpectedEOF)
}

// ask asks a question and reads the answer. The error is a *Problem where the
// service did not answer it.
func ask[A any](ctx context.Context, h *HTTP, path string, question any) (*A, error) {
	raw, err := json.Marshal(question)
	if err != nil {
		return nil, fmt.Errorf("write the question: %w", err)
	}
	response, err := h.post(ctx, h.config.URL+path, raw)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxDecisionBytes))
	if err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w", path, err)
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		return nil, refusal(response, body)
	}
	answer := new(A)
	if err := json.Unmarshal(body, answer); err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w", path, err)
	}
	return answer, nil
}
