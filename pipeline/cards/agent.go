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

// RetainUntil returns until when what was received of an agent at that time is
// kept: by the longest commitment of any of its cards (AAP section 4.7), counted
// from receipt. The zero time means for ever: the agent has committed to nothing.
func (r *Registry) RetainUntil(agentID string, received time.Time) time.Time {
	days := r.retentionDays(agentID)
	if days == 0 {
		return time.Time{}
	}
	return received.AddDate(0, 0, days)
}

func (r *Registry) retentionDays(agentID string) int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	days := 0
	for _, card := range r.agents[agentID] {
		days = max(days, card.Card.Audit.RetentionDays)
	}
	return days
}
