package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/plumbline/plumbline/pipeline/auth"
	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/events"
	"github.com/plumbline/plumbline/pipeline/problem"
	"github.com/plumbline/plumbline/pipeline/request"
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
func (a *API) putCard(w http.ResponseWriter, r *http.Request, grant auth.Grant) (int, error) {
	raw, err := a.router.Document(w, r, 2*schema.MaxCardBytes, request.TypeCard, request.TypeJSON)
	if err != nil {
		return 0, err
	}
	offered, err := schema.DecodeCard(raw)
	if err != nil {
		return 0, err
	}
	if id := r.PathValue("card_id"); offered.CardID != id {
		p := problem.New(http.StatusBadRequest, schema.ReasonInvalidCard, "the address and the body name different cards")
		p.Faults = []schema.Fault{{Pointer: "/card_id", Message: fmt.Sprintf("%q, but the address names %q", offered.CardID, id)}}
		return 0, p
	}
	if err := request.MaySpeakFor(grant, offered.AgentID); err != nil {
		return 0, err
	}
	card, created, err := a.register(r.Context(), offered)
	if err != nil {
		return 0, fmt.Errorf("register card: %w", err)
	}
	return problem.WriteJSON(w, okOrCreated(created), registered{card.Card.CardID, card.Card.AgentID, card.Card.Digest}), nil
}

func okOrCreated(created bool) int {
	if created {
		return http.StatusCreated
	}
	return http.StatusOK
}

// register adds a card to the registry. A card that is already registered is not examined again:
// it was examined with the keys of that time. New cards are refused if the index of all cards,
// which every service holds, has reached its memory limit.
func (a *API) register(ctx context.Context, offered *schema.Card) (card *cards.Card, created bool, err error) {
	known, err := a.Cards.Lookup(ctx, offered.CardID)
	switch {
	case err == nil:
		return known, false, known.Entry.Same(offered)
	case !errors.Is(err, cards.ErrUnknown):
		return nil, false, err
	}
	if index, _ := a.Cards.Bytes(); index >= a.Config.MaxCardIndexBytes {
		return nil, false, problem.New(http.StatusInsufficientStorage, "cards_full",
			"the card is not registered: the index of all cards uses %d bytes of memory, and the limit is %d: the operator can raise max_card_index_bytes",
			index, a.Config.MaxCardIndexBytes)
	}
	keys, err := a.Cards.Keys(ctx, offered.AgentID)
	if err != nil {
		return nil, false, err
	}
	compiled, err := a.examine(offered.Raw, keys)
	if err != nil {
		return nil, false, err
	}
	return a.Cards.Add(ctx, compiled)
}

// maxRevocationBytes is more than enough for a reason.
const maxRevocationBytes = 16 << 10

// revokeCard revokes a card as of now. It answers 201, or 200 with the first revocation if the
// card was already revoked.
func (a *API) revokeCard(w http.ResponseWriter, r *http.Request, grant auth.Grant) (int, error) {
	var asked struct {
		Reason string `json:"reason"`
	}
	if err := a.router.JSON(w, r, maxRevocationBytes, &asked, "want {reason}"); err != nil {
		return 0, err
	}
	switch n := len(asked.Reason); {
	case n == 0:
		return 0, problem.Invalid(problem.WordInvalid, schema.Fault{Pointer: "/reason", Message: "is missing (required): say why the card is revoked; everyone can read it"})
	case n > schema.MaxReasonBytes:
		return 0, problem.Invalid(problem.WordInvalid, schema.Fault{Pointer: "/reason", Message: fmt.Sprintf("%d bytes, a reason may have %d", n, schema.MaxReasonBytes)})
	}
	card, err := a.cardFor(r, grant)
	if err != nil {
		return 0, err
	}
	// Use the broker's clock: it also dates the traces that the revocation is compared with.
	state, err := a.broker.StreamState(r.Context(), stream.Traces)
	if err != nil {
		return 0, fmt.Errorf("revoke card: %w", err)
	}
	revocation, created, err := a.Cards.Revoke(r.Context(), card.Entry, asked.Reason, state.Now)
	if err != nil {
		return 0, fmt.Errorf("revoke card: %w", err)
	}
	// A repeated request appends the event again, because the first attempt may have failed here.
	event, err := events.Retract{Revocation: revocation}.Event()
	if err == nil {
		err = a.broker.AppendLedger(r.Context(), event)
	}
	if err != nil {
		return 0, fmt.Errorf("append the revocation to the ledger: %w", err)
	}
	return problem.WriteJSON(w, okOrCreated(created), revocation), nil
}

// cardFor returns the card that the URL names, if the grant covers its agent.
func (a *API) cardFor(r *http.Request, grant auth.Grant) (*cards.Card, error) {
	id := r.PathValue("card_id")
	card, err := a.Cards.Lookup(r.Context(), id)
	if errors.Is(err, cards.ErrUnknown) {
		return nil, problem.New(http.StatusNotFound, "unknown_card", "no card %q is registered: GET /v1/cards lists the registered cards", clip(id))
	}
	if err != nil {
		return nil, fmt.Errorf("look up card: %w", err)
	}
	return card, request.MaySpeakFor(grant, card.Card.AgentID)
}

// getCard answers with one card in any state.
func (a *API) getCard(w http.ResponseWriter, r *http.Request, grant auth.Grant) (int, error) {
	card, err := a.cardFor(r, grant)
	if err != nil {
		return 0, err
	}
	return serveCard(w, r, card, "private, max-age=60"), nil
}

// listCards answers with the cards of the agents that the grant covers, or of the agent in the
// query.
func (a *API) listCards(w http.ResponseWriter, r *http.Request, grant auth.Grant) (int, error) {
	var listed []*cards.Entry
	if agent := r.URL.Query().Get("agent_id"); agent != "" {
		if err := request.MaySpeakFor(grant, agent); err != nil {
			return 0, err
		}
		listed = a.Cards.OfAgent(agent)
	} else {
		listed = slices.DeleteFunc(a.Cards.All(), func(card *cards.Entry) bool { return !grant.SpeaksFor(card.AgentID) })
	}
	return problem.WriteJSON(w, http.StatusOK, map[string][]cards.Listing{"cards": a.Cards.List(listed, time.Now())}), nil
}

// clip shortens text from a client for use in an answer.
func clip(text string) string { return schema.Clip(text, schema.MaxIDBytes) }
