package cards

import "time"

// InForce tells whether card was issued, and not yet expired, at a time.
func (c *Card) InForce(at time.Time) bool {
	return !at.Before(c.Card.IssuedAt) && (c.Card.ExpiresAt.IsZero() || !at.After(c.Card.ExpiresAt))
}

// Superseded tells whether the agent had another card in force at a time, which
// is newer than card or replaces a card that is not the agent's own.
func (r *Registry) Superseded(card *Card, agentID string, at time.Time) bool {
	r.mu.RLock()
	cards := r.agents[agentID]
	r.mu.RUnlock()
	own := card.Card.AgentID == agentID
	for _, other := range cards {
		if own && !other.Card.IssuedAt.After(card.Card.IssuedAt) {
			return false
		}
		if other.InForce(at) {
			return true
		}
	}
	return false
}

// RetentionDays returns the longest retention that any card of the agent
// commits to (AAP section 4.7), in days; 0 when the agent has no card.
func (r *Registry) RetentionDays(agentID string) int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	days := 0
	for _, card := range r.agents[agentID] {
		days = max(days, card.Card.Audit.RetentionDays)
	}
	return days
}
