package cards

import (
	"context"
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

// State returns what a card is at a time. From its revocation on it is revoked, and
// at its very last moment it is still in force.
func (r *Registry) State(card *Entry, at time.Time) State {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.state(card, at)
}

// Standing returns the card with the id and its state at a time, by memory alone; nil
// where memory has none.
func (r *Registry) Standing(cardID string, at time.Time) (*Entry, State) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	card := r.byID[cardID]
	if card == nil {
		return nil, ""
	}
	return card, r.state(card, at)
}

func (r *Registry) state(card *Entry, at time.Time) State {
	revocation, revoked := r.revoked[card.CardID]
	switch {
	case revoked && !at.Before(revocation.RevokedAt):
		return Revoked
	case at.Before(card.IssuedAt()):
		return NotYetIssued
	case card.expires != 0 && at.After(card.ExpiresAt()):
		return Expired
	}
	return InForce
}

// Current returns the newest of an agent's cards that are in force at a time.
// Where there is none, it is the newest one issued, if that has merely expired: a
// reader sees as much, and knows more than from silence. Else it is nil.
func (r *Registry) Current(agentID string, at time.Time) *Entry {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var newest *Entry
	for card := r.agents[agentID]; card != nil; card = card.older {
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

// CurrentCard looks the current card up. Errors: ErrUnknown where there is none, or the
// bucket's.
func (r *Registry) CurrentCard(ctx context.Context, agentID string, at time.Time) (*Card, error) {
	current := r.Current(agentID, at)
	if current == nil {
		return nil, ErrUnknown
	}
	return r.Lookup(ctx, current.CardID)
}

// Instead returns the card that an agent had in force at a time and did not name:
// a newer one than card, or any of its own where card is another agent's. It is
// nil where there is none.
func (r *Registry) Instead(card *Entry, agentID string, at time.Time) *Entry {
	r.mu.RLock()
	defer r.mu.RUnlock()
	own := card.AgentID == agentID
	for other := r.agents[agentID]; other != nil; other = other.older {
		if own && other.issued <= card.issued {
			return nil
		}
		if r.state(other, at) == InForce {
			return other
		}
	}
	return nil
}

// OfAgent returns every card of an agent, the newest first.
func (r *Registry) OfAgent(agentID string) []*Entry {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return appendChain(nil, r.agents[agentID])
}

func appendChain(cards []*Entry, newest *Entry) []*Entry {
	for card := newest; card != nil; card = card.older {
		cards = append(cards, card)
	}
	return cards
}

// All returns every card in order of agents, each agent's newest first.
func (r *Registry) All() []*Entry {
	r.mu.RLock()
	all := make([]*Entry, 0, len(r.byID))
	for _, newest := range r.agents {
		all = appendChain(all, newest)
	}
	r.mu.RUnlock()
	slices.SortStableFunc(all, func(a, b *Entry) int { return strings.Compare(a.AgentID, b.AgentID) })
	return all
}

// Keys returns the keys that vouch for an agent's next card: those of its newest
// card that registers any, whether that is in force or not. A revocation
// withdraws a card and not its keys; a key is withdrawn by a newer card that
// registers others. The error is the bucket's.
func (r *Registry) Keys(ctx context.Context, agentID string) ([]schema.Key, error) {
	for _, entry := range r.OfAgent(agentID) {
		if entry.keys == nil || len(entry.keys.listed) == 0 {
			continue
		}
		card, err := r.Lookup(ctx, entry.CardID)
		if err != nil {
			return nil, err
		}
		return card.Card.Keys, nil
	}
	return nil, nil
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
	days := int32(0)
	for card := r.agents[agentID]; card != nil; card = card.older {
		days = max(days, card.retentionDays)
	}
	return int(days)
}
