package cards

import (
	"time"

	"github.com/plumbline/plumbline/schema"
)

// Listing is one card in a list of cards. Times are UTC.
type Listing struct {
	CardID    string        `json:"card_id"`
	AgentID   string        `json:"agent_id"`
	Digest    schema.Digest `json:"digest"` // SHA-256 of the JCS form
	Version   string        `json:"version"`
	IssuedAt  time.Time     `json:"issued_at"`
	ExpiresAt time.Time     `json:"expires_at,omitzero"`
	State     State         `json:"state"`
	RevokedAt time.Time     `json:"revoked_at,omitzero"`
	Reason    string        `json:"reason,omitempty"` // of the revocation
	KeyIDs    []string      `json:"key_ids,omitempty"`
	SignedBy  string        `json:"signed_by,omitempty"` // key id
}

// List returns the state of each of the cards at a time.
func (r *Registry) List(cards []*Entry, at time.Time) []Listing {
	lines := make([]Listing, len(cards))
	for i, card := range cards {
		lines[i] = r.listing(card, at)
	}
	return lines
}

func (r *Registry) listing(card *Entry, at time.Time) Listing {
	line := Listing{
		CardID: card.CardID, AgentID: card.AgentID, Digest: card.Digest, Version: card.version.Value(),
		IssuedAt: card.IssuedAt(), ExpiresAt: card.ExpiresAt(), State: r.State(card, at),
	}
	if revocation, revoked := r.Revocation(card.CardID); revoked {
		line.RevokedAt, line.Reason = revocation.RevokedAt, revocation.Reason
	}
	if card.keys != nil {
		line.KeyIDs, line.SignedBy = card.keys.listed, card.keys.signedBy
	}
	return line
}
