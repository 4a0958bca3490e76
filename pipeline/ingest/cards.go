package ingest

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json"

	"github.com/plumbline/plumbline/pipeline/auth"
	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/events"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// registered is the answer for a card that is in the registry.
type registered struct {
	CardID  string        `json:"card_id"`
	AgentID string        `json:"agent_id"`
	Digest  schema.Digest `json:"digest"` // SHA-256 of the JCS form
}

// putCard registers a card. It answers 201 if the card is new, and 200 if the same content is
// already registered.
func (s *server) putCard(w http.ResponseWriter, r *http.Request, grant auth.Grant) int {
	raw, p := s.document(w, r, 2*schema.MaxCardBytes, typesOfCard...)
	if p != nil {
		return p.write(w)
	}
	offered, err := schema.DecodeCard(raw)
	if err != nil {
		return s.failure("read card", err).write(w)
	}
	if p := mayRegister(offered, r.PathValue("card_id"), grant); p != nil {
		return p.write(w)
	}
	card, created, err := s.register(r.Context(), offered)
	if err != nil {
		return s.failure("register card", err).write(w)
	}
	code := http.StatusOK
	if created {
		code = http.StatusCreated
	}
	return writeJSON(w, code, registered{card.Card.CardID, card.Card.AgentID, card.Card.Digest})
}

func mayRegister(card *schema.Card, id string, grant auth.Grant) *problem {
	if card.CardID != id {
		p := problemf(http.StatusBadRequest, schema.ReasonInvalidCard, "the address and the body name different cards")
		p.Faults = []schema.Fault{{Pointer: "/card_id", Message: fmt.Sprintf("%q, but the address names %q", card.CardID, id)}}
		return p
	}
	return maySpeakFor(card.AgentID, grant)
}

func maySpeakFor(agent string, grant auth.Grant) *problem {
	if !grant.SpeaksFor(agent) {
		return problemf(http.StatusForbidden, "forbidden", "%s", foreign(agent).Faults[0].Message)
	}
	return nil
}

// register adds a card to the registry. A card that is already registered is not examined again:
// it was examined with the keys of that time.
func (s *server) register(ctx context.Context, offered *schema.Card) (card *cards.Card, created bool, err error) {
	known, err := s.cards.Lookup(ctx, offered.CardID)
	switch {
	case err == nil:
		return known, false, known.Entry.Same(offered)
	case !errors.Is(err, cards.ErrUnknown):
		return nil, false, err
	}
	if err := s.roomForCard(); err != nil {
		return nil, false, err
	}
	keys, err := s.cards.Keys(ctx, offered.AgentID)
	if err != nil {
		return nil, false, err
	}
	compiled, err := s.trust.examine(offered.Raw, keys)
	if err != nil {
		return nil, false, err
	}
	return s.cards.Add(ctx, compiled)
}

// roomForCard refuses new cards if the index of all cards, which every service holds, has reached
// its memory limit. A revocation is never refused.
func (s *server) roomForCard() error {
	index, _ := s.cards.Bytes()
	if index < s.cfg.MaxCardIndexBytes {
		return nil
	}
	return problemf(http.StatusInsufficientStorage, "cards_full",
		"no new card is registered: the index of all cards takes %d bytes of memory, the limit is %d: the operator raises max_card_index_bytes",
		index, s.cfg.MaxCardIndexBytes)
}

// maxRevocationBytes is more than enough for a reason.
const maxRevocationBytes = 16 << 10

// revokeCard revokes a card as of now. It answers 201, or 200 with the first revocation if the
// card was already revoked.
func (s *server) revokeCard(w http.ResponseWriter, r *http.Request, grant auth.Grant) int {
	raw, p := s.document(w, r, maxRevocationBytes, typesOfOther...)
	if p != nil {
		return p.write(w)
	}
	reason, p := readReason(raw)
	if p != nil {
		return p.write(w)
	}
	card, p := s.cardFor(r, grant)
	if p != nil {
		return p.write(w)
	}
	state, err := s.sessions.StreamState(r.Context(), stream.Traces)
	if err != nil {
		return s.failure("revoke card", err).write(w)
	}
	// Use the broker's clock: it also dates the traces that the revocation is compared with.
	revocation, created, err := s.cards.Revoke(r.Context(), card.Entry, reason, state.Now)
	if err == nil {
		err = s.retract(r.Context(), revocation)
	}
	if err != nil {
		return s.failure("revoke card", err).write(w)
	}
	code := http.StatusOK
	if created {
		code = http.StatusCreated
	}
	return writeJSON(w, code, revocation)
}

// retract appends a revocation to the operator's ledger. A repeated request appends it again,
// because the first attempt may have failed.
func (s *server) retract(ctx context.Context, revocation schema.Revocation) error {
	event, err := events.Retract{Revocation: revocation}.Event()
	if err != nil {
		return err
	}
	return s.ledger.AppendLedger(ctx, event)
}

// cardFor returns the card that the URL names, if the grant covers its agent.
func (s *server) cardFor(r *http.Request, grant auth.Grant) (*cards.Card, *problem) {
	id := r.PathValue("card_id")
	card, err := s.cards.Lookup(r.Context(), id)
	if errors.Is(err, cards.ErrUnknown) {
		return nil, problemf(http.StatusNotFound, "unknown_card", "no card %q is registered: GET /v1/cards lists those that are", clip(id))
	}
	if err != nil {
		return nil, s.failure("look up card", err)
	}
	return card, maySpeakFor(card.Card.AgentID, grant)
}

// readReason reads {"reason"}.
func readReason(raw []byte) (string, *problem) {
	var given struct {
		Reason string `json:"reason"`
	}
	if err := json.Unmarshal(raw, &given, json.RejectUnknownMembers(true)); err != nil {
		return "", unreadable("want {reason}", err)
	}
	fault := schema.Fault{Pointer: "/reason"}
	switch n := len(given.Reason); {
	case n == 0:
		fault.Message = "is missing (required): say why the card is revoked, everyone will read it"
	case n > schema.MaxReasonBytes:
		fault.Message = fmt.Sprintf("%d bytes, a reason may have %d", n, schema.MaxReasonBytes)
	default:
		return given.Reason, nil
	}
	p := problemf(http.StatusBadRequest, "invalid_request", "it is not valid: see the faults")
	p.Faults = []schema.Fault{fault}
	return "", p
}

// clip shortens text from a client for use in an answer.
func clip(text string) string { return schema.Clip(text, schema.MaxIDBytes) }
