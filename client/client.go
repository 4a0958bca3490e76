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

// Transport carries a message to an agent and returns the answer. The error is a
// *Problem where the agent's service refused it. NewHTTP makes one, and so does
// overnats.New.
type Transport interface {
	Exchange(ctx context.Context, responder, requester string, message []byte) (answer []byte, err error)
}

// Client speaks for one agent. Its methods may be called from any goroutine.
type Client struct {
	Transport Transport
	AgentID   string   // whom it speaks for
	CardID    string   // the card of that agent that is in force
	Values    []string // that the card declares; those of the peer's too are proposed as values_intersection

	// Keys are what peers' services sign with (GET /v1/handshake/keys). With keys,
	// an answer without a right signature is refused; without any, nothing is
	// verified, and the Result says so.
	Keys []schema.Key

	Now func() time.Time // nil is time.Now
}

// Task is what the agents want to do together (AAP sections 6.3.1 and 6.3.3).
type Task struct {
	Type           string
	ValuesRequired []string
	DataCategories []string
	DataSharing    *schema.DataSharing
	AutonomyScope  *schema.AutonomyScope
	ModifiedValues *schema.ModifiedValues // to take up what an earlier result proposed
}

// Result is a handshake that was answered. Proceed is the answer; Coherence and
// the other members of Answer say why.
type Result struct {
	RequestID string
	Proceed   bool
	Card      *schema.Card            // the peer's
	Answer    *schema.CoherenceResult // the peer's whole answer

	// Verified reports whether card and answer were signed by keys of Client.Keys.
	Verified bool
	// SignedBy is whose key signed the answer, by the answer's own word: mostly that
	// of the service which answers for the peer. KeyID is the key.
	SignedBy schema.Signer
	KeyID    string
}

// What an answer can lack. Errors of Handshake wrap these, a *Problem, ErrInsecure,
// coherence.ErrStale, coherence.ErrFuture, or what broke the connection.
var (
	ErrAnswer    = errors.New("the answer is not one to this message")
	ErrSignature = errors.New("the answer is not signed by a key that is trusted")
	ErrExpired   = errors.New("the peer's card is not in force")
)

// Handshake asks the peer for its card and checks with it whether to do a task
// together: all four messages, under a request_id of its own. After an error
// begin again by calling it again.
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
	if err := h.believe(response.Card); err != nil {
		return nil, err
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

// believe checks that a card is the peer's and in force.
func (h *handshake) believe(card *schema.Card) error {
	now := h.client.now()
	switch {
	case card.AgentID != h.peer:
		return fmt.Errorf("%w: the card is of agent %q", ErrAnswer, card.AgentID)
	case !card.ExpiresAt.IsZero() && now.After(card.ExpiresAt):
		return fmt.Errorf("%w: card %q expired at %s", ErrExpired, card.CardID, card.ExpiresAt.Format(time.RFC3339))
	}
	return nil
}

// exchange sends a message and returns the answer, of the type that comes next,
// once everything that it must bear out is checked.
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

// verify demands a right signature where there are keys to tell.
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

// intersection returns the values of both, in the order of the first.
func intersection(mine, theirs []string) (both []string) {
	for _, value := range mine {
		if slices.Contains(theirs, value) {
			both = append(both, value)
		}
	}
	return both
}
