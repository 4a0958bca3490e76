package cards

import (
	"slices"
	"strings"
	"time"

	"github.com/plumbline/plumbline/schema"
)

// State is what a card is at a time.
type State string

// The states of a card. Of several that apply, the first one is told.
const (
	Revoked      State = "revoked"
	NotYetIssued State = "not_yet_issued"
	Expired      State = "expired"
	InForce      State = "in_force"
)

// State tells what a card is at a time. From its revocation on it is revoked, and
// at its very last moment it is still in force.
func (r *Registry) State(card *Card, at time.Time) State {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.state(card, at)
}

// Standing returns the card with the id and its state at a time, by memory alone; nil
// where memory has none.
func (r *Registry) Standing(cardID string, at time.Time) (*Card, State) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	card := r.byID[cardID]
	if card == nil {
		return nil, ""
	}
	return card, r.state(card, at)
}

func (r *Registry) state(card *Card, at time.Time) State {
	revocation, revoked := r.revoked[card.Card.CardID]
	switch c := card.Card; {
	case revoked && !at.Before(revocation.RevokedAt):
		return Revoked
	case at.Before(c.IssuedAt):
		return NotYetIssued
	case !c.ExpiresAt.IsZero() && at.After(c.ExpiresAt):
		return Expired
	}
	return InForce
}

// InForce tells whether a card is in force at a time: issued, not expired and
// not revoked.
func (r *Registry) InForce(card *Card, at time.Time) bool { return r.State(card, at) == InForce }

// Current returns the newest of an agent's cards that are in force at a time.
// Where there is none, it is the newest one issued, if that has merely expired: a
// reader sees as much, and knows more than from silence. Else it is nil.
func (r *Registry) Current(agentID string, at time.Time) *Card {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var newest *Card
	for _, card := range r.agents[agentID] {
		state := r.state(card, at)
		if state == InForce {
			return card
		}
		if newest == nil && state != NotYetIssued {
			newest = card
		}
	}
	if newest == nil || r.state(newest, at) != Expired {
		return nil
	}
	return newest
}

// Instead returns the card that an agent had in force at a time and did not name:
// a newer one than card, or any of its own where card is another agent's. It is
// nil where there is none.
func (r *Registry) Instead(card *Card, agentID string, at time.Time) *Card {
	r.mu.RLock()
	defer r.mu.RUnlock()
	own := card.Card.AgentID == agentID
	for _, other := range r.agents[agentID] {
		if own && !other.Card.IssuedAt.After(card.Card.IssuedAt) {
			return nil
		}
		if r.state(other, at) == InForce {
			return other
		}
	}
	return nil
}

// OfAgent returns every card of an agent, the newest first.
func (r *Registry) OfAgent(agentID string) []*Card {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Clone(r.agents[agentID])
}

// All returns every card in order of agents, each agent's newest first.
func (r *Registry) All() []*Card {
	r.mu.RLock()
	all := make([]*Card, 0, len(r.byID))
	for _, cards := range r.agents {
		all = append(all, cards...)
	}
	r.mu.RUnlock()
	slices.SortStableFunc(all, func(a, b *Card) int { return strings.Compare(a.Card.AgentID, b.Card.AgentID) })
	return all
}

// Keys returns the keys that vouch for an agent's next card: those of its newest
// card that registers any, whether that is in force or not. A revocation
// withdraws a card and not its keys; a key is withdrawn by a newer card that
// registers others.
func (r *Registry) Keys(agentID string) []schema.Key {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, card := range r.agents[agentID] {
		if len(card.Card.Keys) > 0 {
			return card.Card.Keys
		}
	}
	return nil
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
