package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/plumbline/plumbline/schema"
)

// States of a registered card.
const (
	CardInForce      = "in_force"
	CardNotYetIssued = "not_yet_issued"
	CardExpired      = "expired"
	CardRevoked      = "revoked"
)

// ListedCard is one card in a list of cards. Times are UTC.
type ListedCard struct {
	CardID    string        `json:"card_id"`
	AgentID   string        `json:"agent_id"`
	Digest    schema.Digest `json:"digest"` // SHA-256 of the JCS form
	Version   string        `json:"version"`
	IssuedAt  time.Time     `json:"issued_at"`
	ExpiresAt time.Time     `json:"expires_at,omitzero"`
	State     string        `json:"state"` // CardInForce, …
	RevokedAt time.Time     `json:"revoked_at,omitzero"`
	Reason    string        `json:"reason,omitempty"` // of the revocation
	KeyIDs    []string      `json:"key_ids,omitempty"`
	SignedBy  string        `json:"signed_by,omitempty"` // key id
}

func cardPath(cardID string) string { return "/v1/cards/" + url.PathEscape(cardID) }

// PutCard registers a card; created is false if it was already registered. The
// error is a *Problem if ingest refused it.
func (p *Publisher) PutCard(ctx context.Context, cardID string, raw []byte) (created bool, err error) {
	got, err := p.do(ctx, http.MethodPut, cardPath(cardID), "application/aap-alignment-card+json", raw)
	if err != nil {
		return false, fmt.Errorf("register card %q: %w", cardID, err)
	}
	return got.code == http.StatusCreated, nil
}

// Card returns a card as it was registered. The error is a *Problem with code 404
// if there is none.
func (p *Publisher) Card(ctx context.Context, cardID string) (raw []byte, err error) {
	got, err := p.do(ctx, http.MethodGet, cardPath(cardID), "", nil)
	if err != nil {
		return nil, fmt.Errorf("get card %q: %w", cardID, err)
	}
	return got.body, nil
}

// Cards lists the cards of an agent, the newest first. If agentID is empty, it lists the
// cards of every agent that the token may act for.
func (p *Publisher) Cards(ctx context.Context, agentID string) ([]ListedCard, error) {
	path := "/v1/cards"
	if agentID != "" {
		path += "?agent_id=" + url.QueryEscape(agentID)
	}
	got, err := p.do(ctx, http.MethodGet, path, "", nil)
	if err != nil {
		return nil, fmt.Errorf("list cards: %w", err)
	}
	var list struct {
		Cards []ListedCard `json:"cards"`
	}
	if err := json.Unmarshal(got.body, &list); err != nil {
		return nil, fmt.Errorf("list cards: read the answer: %w", err)
	}
	return list.Cards, nil
}

// Revoke revokes a card from now on. If the card was already revoked, created is false
// and Revoke returns the first revocation. The error is a *Problem with
// code 404 if there is no such card.
func (p *Publisher) Revoke(ctx context.Context, cardID, reason string) (revocation schema.Revocation, created bool, err error) {
	got, err := p.post(ctx, cardPath(cardID)+"/revoke", map[string]string{"reason": reason})
	if err != nil {
		return revocation, false, fmt.Errorf("revoke card %q: %w", cardID, err)
	}
	if err := json.Unmarshal(got.body, &revocation); err != nil {
		return revocation, false, fmt.Errorf("revoke card %q: read the answer: %w", cardID, err)
	}
	return revocation, got.code == http.StatusCreated, nil
}
