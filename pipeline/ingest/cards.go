package ingest

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/plumbline/plumbline/aap"
	"github.com/plumbline/plumbline/pipeline/auth"
	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/schema"
)

// registered is the answer to a card that is in the registry.
type registered struct {
	CardID  string        `json:"card_id"`
	AgentID string        `json:"agent_id"`
	Digest  schema.Digest `json:"digest"` // SHA-256 of the JCS form
}

// putCard registers a card: 201 when it is new, 200 when the same content is
// registered already.
func (s *server) putCard(w http.ResponseWriter, r *http.Request, grant auth.Grant) int {
	raw, p := s.document(w, r, 2*schema.MaxCardBytes, typesOfCard...)
	if p != nil {
		return p.write(w)
	}
	offered, err := aap.Register(raw)
	if err != nil {
		return s.failure(r.Context(), "read card", err).write(w)
	}
	if p := mayRegister(offered.Card, r.PathValue("card_id"), grant); p != nil {
		return p.write(w)
	}
	card, created, err := s.cards.Put(r.Context(), raw)
	if errors.Is(err, cards.ErrChanged) {
		return problemf(http.StatusConflict, "changed", "%v", err).write(w)
	}
	if err != nil {
		return s.failure(r.Context(), "register card", err).write(w)
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
	if !grant.SpeaksFor(card.AgentID) {
		return problemf(http.StatusForbidden, "forbidden", "%s", foreign(card.AgentID).Faults[0].Message)
	}
	return nil
}
