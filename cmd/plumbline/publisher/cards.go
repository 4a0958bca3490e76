package publisher

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/schema"
)

func cardPath(cardID string) string { return "/v1/cards/" + url.PathEscape(cardID) }

// PutCard registers a card; created is false if it was already registered. The
// error is a *Problem if the service refuses it.
func (c *Client) PutCard(ctx context.Context, cardID string, raw []byte) (created bool, err error) {
	answer, err := c.do(ctx, http.MethodPut, cardPath(cardID), "application/aap-alignment-card+json", raw)
	if err != nil {
		return false, fmt.Errorf("register card %q: %w", cardID, err)
	}
	return answer.code == http.StatusCreated, nil
}

// Card returns a card as it was registered. The error is a *Problem with code 404
// if there is none.
func (c *Client) Card(ctx context.Context, cardID string) (raw []byte, err error) {
	answer, err := c.do(ctx, http.MethodGet, cardPath(cardID), "", nil)
	if err != nil {
		return nil, fmt.Errorf("get card %q: %w", cardID, err)
	}
	return answer.body, nil
}

// Cards lists the cards of an agent, the newest first. If agentID is empty, it lists the
// cards of every agent that the token may act for.
func (c *Client) Cards(ctx context.Context, agentID string) ([]cards.Listing, error) {
	path := "/v1/cards"
	if agentID != "" {
		path += "?agent_id=" + url.QueryEscape(agentID)
	}
	answer, err := c.do(ctx, http.MethodGet, path, "", nil)
	if err != nil {
		return nil, fmt.Errorf("list cards: %w", err)
	}
	var list struct {
		Cards []cards.Listing `json:"cards"`
	}
	if err := json.Unmarshal(answer.body, &list); err != nil {
		return nil, fmt.Errorf("list cards: read the answer: %w", err)
	}
	return list.Cards, nil
}

// Revoke revokes a card from now on. If the card was already revoked, created is false
// and Revoke returns the first revocation. The error is a *Problem with
// code 404 if there is no such card.
func (c *Client) Revoke(ctx context.Context, cardID, reason string) (revocation schema.Revocation, created bool, err error) {
	body, err := json.Marshal(map[string]string{"reason": reason})
	if err != nil {
		return revocation, false, err
	}
	answer, err := c.do(ctx, http.MethodPost, cardPath(cardID)+"/revoke", "application/json", body)
	if err != nil {
		return revocation, false, fmt.Errorf("revoke card %q: %w", cardID, err)
	}
	if err := json.Unmarshal(answer.body, &revocation); err != nil {
		return revocation, false, fmt.Errorf("revoke card %q: read the answer: %w", cardID, err)
	}
	return revocation, answer.code == http.StatusCreated, nil
}
