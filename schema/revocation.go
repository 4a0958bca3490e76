package schema

import "time"

// MaxReasonBytes is the longest reason of a revocation.
const MaxReasonBytes = 1024

// Revocation withdraws a card (AAP section 9.2): the card is not in force from RevokedAt on. A
// card is revoked once, and its revocation never changes.
type Revocation struct {
	CardID    string    `json:"card_id"`
	AgentID   string    `json:"agent_id"`   // of the card
	RevokedAt time.Time `json:"revoked_at"` // UTC, by the clock of the service that accepted the request
	Reason    string    `json:"reason"`
}
