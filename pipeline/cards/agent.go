package cards

import "time"

// InForce tells whether card was issued, and not yet expired, at a time.
func (c *Card) InForce(at time.Time) bool {
	return !at.Before(c.Card.IssuedAt) && (c.Card.ExpiresAt.IsZero() || !at.After(c.Card.ExpiresAt))
}

// Superseded tells whether the card's agent had a newer card in force at a time.
func (r *Registry) Superseded(card *Card, at time.Time) bool {
	r.mu.RLock()
	cards := r.agents[card.Card.AgentID]
	r.mu.RUnlock()
	for _, newer := range cards {
		if !newer.Card.IssuedAt.After(card.Card.IssuedAt) {
			return false
		}
		if newer.InForce(at) {
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
