package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/plumbline/plumbline/aap/coherence"
	"github.com/plumbline/plumbline/schema"
	"github.com/plumbline/plumbline/schema/signature"
)

// Transport sends a message to an agent and returns the answer. The error is a
// *Problem if the agent's service refused the message. NewHTTP and overnats.New return one.
type Transport interface {
	Exchange(ctx context.Context, responder, requester string, message []byte) (answer []byte, err error)
}

// Client acts for one agent. Its methods may be called from any goroutine.
type Client struct {
	Transport Transport
	AgentID   string   // the agent that it acts for
	CardID    string   // the agent's card that is in force
	Values    []string // the values that the card declares; the values that the peer has too are proposed as values_intersection

	// Keys are the signing keys of peers' services (GET /v1/handshake/keys). With keys,
	// an answer without a valid signature is refused. Without keys nothing is
	// verified, and Result.Verified is false.
	Keys []schema.Key

	Now func() time.Time // nil is time.Now
}

// Task is what the agents intend to do together (AAP sections 6.3.1 and 6.3.3).
type Task struct {
	Type           string
	ValuesRequired []string
	DataCategories []string
	DataSharing    *schema.DataSharing
	AutonomyScope  *schema.AutonomyScope
	ModifiedValues *schema.ModifiedValues // to accept what an earlier result proposed
}

// Result is the result of a handshake. Proceed is the decision; Coherence and
// the other members of Answer give the reasons.
type Result struct {
	RequestID string
	Proceed   bool
	Card      *schema.Card            // the peer's
	Answer    *schema.CoherenceResult // the peer's whole answer

	// Verified reports whether card and answer were signed by keys of Client.Keys.
	Verified bool
	// SignedBy is the owner of the key that signed the answer, as the answer states it: mostly
	// the service that answers for the peer. KeyID is the key's id.
	SignedBy schema.Signer
	KeyID    string
}

// Faults of an answer. Errors of Handshake wrap these, a *Problem, ErrInsecure,
// coherence.ErrStale, coherence.ErrFuture, or the error of the connection.
var (
	ErrAnswer    = errors.New("the answer is not one to this message")
	ErrSignature = errors.New("the answer is not signed by a key that is trusted")
	ErrExpired   = errors.New("the peer's card is not in force")
)

// Handshake requests the peer's card and checks with the peer whether to do a task
// together. It exchanges all four messages, with a request_id of its own. After an error,
// call Handshake again: it begins from the start.
func (c *Client) Handshake(ctx context.Context, peer string, task Task) (*Result, error) {
	h := handshake{client: c, peer: peer, id: uuid.NewString()}
	result, err := h.run(ctx, &task)
	if err != nil {
		return nil, fmt.Errorf("handshake %s with agent %q: %w", h.id, peer, err)
	}
	return result, nil
}

// handshake is one call of Handshake.
type handshake struct {
	client *Client
	peer   string
	id     string
}

func (h *handshake) run(ctx context.Context, task *Task) (*Result, error) {
	request := &schema.CardRequest{
		RequestID: h.id, Timestamp: h.client.now(),
		Requester:   schema.Requester{AgentID: h.client.AgentID, CardID: h.client.CardID},
		TaskContext: &schema.TaskContext{TaskType: task.Type, ValuesRequired: task.ValuesRequired, DataCategories: task.DataCategories},
	}
	response, err := exchange[*schema.CardResponse](ctx, h, request)
	if err != nil {
		return nil, err
	}
	switch card, now := response.Card, h.client.now(); {
	case card.AgentID != h.peer:
		return nil, fmt.Errorf("%w: the card is of agent %q", ErrAnswer, card.AgentID)
	case !card.ExpiresAt.IsZero() && now.After(card.ExpiresAt):
		return nil, fmt.Errorf("%w: card %q expired at %s", ErrExpired, card.CardID, card.ExpiresAt.Format(time.RFC3339))
	}
	check := &schema.CoherenceCheck{
		RequestID: h.id, Timestamp: h.client.now(),
		InitiatorCardID: h.client.CardID, ResponderCardID: response.Card.CardID,
		Proposal: schema.Collaboration{
			TaskType: task.Type, ValuesIntersection: intersection(h.client.Values, response.Card.Values.Declared),
			DataSharing: task.DataSharing, AutonomyScope: task.AutonomyScope, ModifiedValues: task.ModifiedValues,
		},
	}
	if err := schema.Follows(response, check); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	answer, err := exchange[*schema.CoherenceResult](ctx, h, check)
	if err != nil {
		return nil, err
	}
	result := &Result{
		RequestID: h.id, Proceed: answer.Proceed, Card: response.Card, Answer: answer,
		Verified: len(h.client.Keys) > 0, SignedBy: answer.SignedBy,
	}
	if answer.Signature != nil {
		result.KeyID = answer.Signature.KeyID
	}
	return result, nil
}

// exchange sends a message and returns the answer, which has the next type in the
// handshake's order. It first checks everything that the answer must prove.
func exchange[A schema.Handshake](ctx context.Context, h *handshake, message schema.Handshake) (answer A, err error) {
	raw, err := json.Marshal(message)
	if err != nil {
		return answer, fmt.Errorf("write the %s: %w", message.Type(), err)
	}
	got, err := h.client.Transport.Exchange(ctx, h.peer, h.client.AgentID, raw)
	if err != nil {
		return answer, fmt.Errorf("send the %s: %w", message.Type(), err)
	}
	decoded, err := schema.DecodeHandshake(got)
	if err != nil {
		return answer, fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	if err := schema.Follows(message, decoded); err != nil {
		return answer, fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	if err := coherence.Fresh(decoded.Time(), h.client.now()); err != nil {
		return answer, fmt.Errorf("the %s, of %s: %w", decoded.Type(), decoded.Time().Format(time.RFC3339), err)
	}
	if err := h.client.verify(decoded); err != nil {
		return answer, fmt.Errorf("the %s: %w", decoded.Type(), err)
	}
	return decoded.(A), nil // Follows has checked the type
}

// verify requires a valid signature if keys are configured.
func (c *Client) verify(answer schema.Handshake) error {
	if len(c.Keys) == 0 {
		return nil
	}
	object, s := answer.Signed()
	if s == nil {
		return fmt.Errorf("%w: %w", ErrSignature, signature.ErrMissing)
	}
	if err := signature.Verify(object, *s, c.Keys); err != nil {
		return fmt.Errorf("%w: %w", ErrSignature, err)
	}
	return nil
}

func (c *Client) now() time.Time {
	if c.Now == nil {
		return time.Now().UTC()
	}
	return c.Now().UTC()
}

// intersection returns the values that are in both lists, in the order of the first.
func intersection(mine, theirs []string) (both []string) {
	for _, value := range mine {
		if slices.Contains(theirs, value) {
			both = append(both, value)
		}
	}
	return both
}

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
