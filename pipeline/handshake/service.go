package handshake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plumbline/plumbline/aap"
	"github.com/plumbline/plumbline/aap/coherence"
	"github.com/plumbline/plumbline/aivs/keyring"
	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/keystore"
	"github.com/plumbline/plumbline/pipeline/problem"
	"github.com/plumbline/plumbline/pipeline/wire"
	"github.com/plumbline/plumbline/schema"
	"github.com/plumbline/plumbline/schema/signature"
)

// Results stores results durably (stream.Client).
type Results interface {
	PublishCoherence(ctx context.Context, result wire.CoherenceResult) error
}

// Signer provides the keys that sign the answers: the cards and the results (keystore.Live). All
// processes that serve the same agents share them.
type Signer interface {
	// Current returns the key in use, if now is within its period.
	Current(now time.Time) (*keystore.Opened, error)
	// Keys returns the keys in use and earlier ones, starting with the one in use.
	Keys() []keyring.Key
}

// Service answers for every agent with a card. Any goroutine may call its methods.
type Service struct {
	Parts
	assessor *coherence.Assessor
	messages *prometheus.CounterVec // by transport and outcome
}

// Parts are the dependencies of a Service.
type Parts struct {
	Cards      *cards.Registry
	Peers      *Peers // asked for initiators that Cards does not know; nil: none
	Memory     Memory
	Results    Results
	Signer     Signer
	Thresholds aap.Thresholds   // MinCoherence and its methodology
	Now        func() time.Time // the responders' clock
	Metrics    prometheus.Registerer
	Log        *slog.Logger
}

// New returns a service. The error names every invalid threshold.
func New(p Parts) (*Service, error) {
	assessor, err := coherence.NewAssessor(p.Thresholds)
	if err != nil {
		return nil, err
	}
	messages := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "plumbline_handshake_messages_total",
		Help: "Messages of the value coherence handshake that were received, by transport and outcome.",
	}, []string{"transport", "outcome"})
	p.Metrics.MustRegister(messages)
	return &Service{Parts: p, assessor: assessor, messages: messages}, nil
}

// Keys returns the current and earlier keys of the answers, starting with the one in use.
func (s *Service) Keys() (public []schema.Key) {
	for _, k := range s.Signer.Keys() {
		public = append(public, schema.Key{KeyID: k.KeyID, PublicKey: k.Public()})
	}
	return public
}

// sign signs a JSON object without its own member "signature".
func (s *Service) sign(object []byte, now time.Time) (*schema.Signature, error) {
	key, err := s.Signer.Current(now)
	if err != nil {
		return nil, err
	}
	signed, err := signature.Sign(object, key.Entry.KeyID, key.Private)
	if err != nil {
		return nil, fmt.Errorf("sign an answer: %w", err)
	}
	return &signed, nil
}

// The transports of a Question.
const (
	OverHTTP = "http"
	OverNATS = "nats"
)

// Question is a received message to an agent.
type Question struct {
	Responder string                  // the agent to which the message is addressed
	Speaks    func(agent string) bool // whether the sender may speak for an agent
	Transport string
	Raw       []byte
}

// Answer returns the answer to a message: an alignment_card_response to an
// alignment_card_request, a coherence_result to a value_coherence_check, a schema.TaskReceipt to
// a task_result. The error is a Problem, an error that ProblemOf converts, or the service's own.
func (s *Service) Answer(ctx context.Context, q Question) ([]byte, error) {
	answer, err := s.answer(ctx, q)
	outcome := "answered"
	if p := ProblemOf(err); p != nil {
		outcome = p.Word
	} else if err != nil {
		outcome = WordInternal
	}
	s.messages.WithLabelValues(q.Transport, outcome).Inc()
	return answer, err
}

func (s *Service) answer(ctx context.Context, q Question) ([]byte, error) {
	message, err := schema.DecodeHandshake(q.Raw)
	if err != nil {
		return nil, problemIn(err)
	}
	now := s.Now().UTC()
	switch m := message.(type) {
	case *schema.CardRequest:
		return s.respond(ctx, &q, m, now)
	case *schema.CoherenceCheck:
		return s.assess(ctx, &q, m, now)
	case *schema.TaskResult:
		return s.conclude(ctx, &q, m, now)
	}
	return nil, problem.New(http.StatusBadRequest, WordNotAsked, "a %s is an answer: send an %s, a %s or a %s",
		message.Type(), schema.MessageCardRequest, schema.MessageCoherenceCheck, schema.MessageTaskResult)
}

// respond answers a card request with the responder's current card.
func (s *Service) respond(ctx context.Context, q *Question, m *schema.CardRequest, now time.Time) ([]byte, error) {
	if err := admit(ctx, q, m, m.Requester, s.initiator, now); err != nil {
		return nil, err
	}
	card, err := s.Cards.CurrentCard(ctx, q.Responder, now)
	if errors.Is(err, cards.ErrUnknown) {
		return nil, problem.New(http.StatusNotFound, WordNoCard,
			"no current card is registered for agent %q: its owner registers one with PUT /v1/cards/{card_id}", q.Responder)
	}
	if err != nil {
		return nil, err
	}
	response := &schema.CardResponse{RequestID: m.RequestID, AlignmentCard: card.Card.Raw, SignedBy: schema.SignedByService,
		Timestamp: notBefore(m, now)}
	if response.Signature, err = s.sign(card.Card.Raw, now); err != nil {
		return nil, err
	}
	answer, err := json.Marshal(response)
	if err != nil {
		return nil, fmt.Errorf("answer with card %q: %w", card.Card.CardID, err)
	}
	remembered, err := json.Marshal(asked{Responder: q.Responder, Request: m.Raw})
	if err != nil {
		return nil, fmt.Errorf("store a request: %w", err)
	}
	return answer, s.once(ctx, m, m.Requester.AgentID, remembered)
}

// assess judges a check by the task of the request that it continues, and stores the result
// before it returns it.
func (s *Service) assess(ctx context.Context, q *Question, m *schema.CoherenceCheck, now time.Time) ([]byte, error) {
	if err := fresh(m, now); err != nil {
		return nil, err
	}
	request, err := s.requestOf(ctx, m, q)
	if err != nil {
		return nil, err
	}
	agent := request.Requester.AgentID
	initiator, err := s.initiator(ctx, agent, m.InitiatorCardID)
	if err != nil {
		return nil, err
	}
	if err := authentic(m, initiator); err != nil {
		return nil, err
	}
	responder, err := s.party(ctx, q.Responder, m.ResponderCardID)
	if err != nil {
		return nil, err
	}
	initiator.Newer, responder.Newer = s.newer(initiator, now), s.newer(responder, now)
	task := coherence.Task{Proposal: m.Proposal}
	if request.TaskContext != nil {
		task.Required = request.TaskContext.ValuesRequired
	}
	result := coherence.Answer(m, s.assessor.Check(initiator, responder, task, now), notBefore(m, now))
	result.SignedBy = schema.SignedByService
	bare, err := json.Marshal(result)
	if err != nil {
		return nil, fmt.Errorf("encode a result: %w", err)
	}
	if result.Signature, err = s.sign(bare, now); err != nil {
		return nil, err
	}
	answer, err := json.Marshal(result)
	if err != nil {
		return nil, fmt.Errorf("encode a result: %w", err)
	}
	if err := s.once(ctx, m, agent, nil); err != nil {
		return nil, err
	}
	return answer, s.keep(ctx, &Record{
		Transport: q.Transport, Received: now, Initiator: agent, Responder: q.Responder,
		Request: request.Raw, Check: m.Raw, Result: answer,
	})
}

// party returns one side, from the message and the registry.
func (s *Service) party(ctx context.Context, agentID, cardID string) (coherence.Party, error) {
	party := coherence.Party{CardID: cardID, AgentID: agentID, RevokedAt: s.Cards.RevokedAt(cardID)}
	card, err := s.Cards.Lookup(ctx, cardID)
	switch {
	case err == nil:
		party.Card = card.Card
	case !errors.Is(err, cards.ErrUnknown): // the assessor handles ErrUnknown
		return party, err
	}
	return party, nil
}

// newer returns the id of a card that the agent has in force and that is newer than the one in
// the message, or "" if there is none. Neither side may choose the card by which it, or the
// other, is judged.
func (s *Service) newer(p coherence.Party, now time.Time) string {
	current := s.Cards.Current(p.AgentID, now)
	if current == nil || p.Card == nil || !current.IssuedAt().After(p.Card.IssuedAt) {
		return ""
	}
	return current.CardID
}

// initiator returns the party that began. If its agent is not registered here, the peers are
// asked for the card. They are not asked about an agent that the registry knows, because they
// must not override the registry.
func (s *Service) initiator(ctx context.Context, agentID, cardID string) (coherence.Party, error) {
	party, err := s.party(ctx, agentID, cardID)
	if err != nil || party.Card != nil || s.Peers == nil || len(s.Cards.OfAgent(agentID)) > 0 {
		return party, err
	}
	card, revoked, err := s.Peers.Card(ctx, agentID, cardID)
	if err != nil { // all peers were asked: without a card it is unknown
		s.Log.Warn("failed to fetch the card of an initiator from the peers", "agent", agentID, "card", cardID, "error", err)
	}
	party.Card, party.RevokedAt = card, revoked
	return party, nil
}

// admit checks a message whose sender it names itself: the requester may speak for the sender, the
// message is fresh, and its signature, if it has one, is the sender's. party looks up the sender's
// card.
func admit(ctx context.Context, q *Question, m schema.Handshake, sender schema.Requester,
	party func(ctx context.Context, agentID, cardID string) (coherence.Party, error), now time.Time) error {
	if !q.Speaks(sender.AgentID) {
		return problem.New(http.StatusForbidden, WordForbidden, "you may not speak for agent %q", sender.AgentID)
	}
	if err := fresh(m, now); err != nil {
		return err
	}
	if _, signed := m.Signed(); signed == nil {
		return nil
	}
	p, err := party(ctx, sender.AgentID, sender.CardID)
	if err != nil {
		return err
	}
	return authentic(m, p)
}

// authentic verifies the signature of a signed message with the keys of the sender's card.
func authentic(m schema.Handshake, sender coherence.Party) error {
	object, given := m.Signed()
	if given == nil {
		return nil
	}
	var keys []schema.Key
	if sender.Card != nil && sender.Card.AgentID == sender.AgentID {
		keys = sender.Card.Keys
	}
	err := signature.Verify(object, *given, keys)
	if errors.Is(err, signature.ErrUnknownKey) {
		return problem.New(http.StatusBadRequest, WordSignature, "card %q of agent %q has no key %q: register the key with the card, or do not sign",
			sender.CardID, sender.AgentID, given.KeyID)
	}
	if err != nil {
		return problem.New(http.StatusBadRequest, WordSignature, "%v", err)
	}
	return nil
}

// fresh refuses a message that is too old or too far in the future (AAP section 9.4).
func fresh(m schema.Handshake, now time.Time) error {
	if err := coherence.Fresh(m.Time(), now); err != nil {
		return problem.New(http.StatusBadRequest, WordStale, "%v: it is %s here: set your clock, and begin again",
			err, now.Format(time.RFC3339Nano))
	}
	return nil
}

// notBefore returns now, or the time of the question if the requester's clock is fast: an answer is
// not dated before its question.
func notBefore(question schema.Handshake, now time.Time) time.Time {
	return slices.MaxFunc([]time.Time{now, question.Time()}, time.Time.Compare)
}
