package cards

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/plumbline/plumbline/schema"
)

// State is the state of a card at a time.
type State string

// The states of a card. If several apply, the first one is reported.
const (
	Revoked      State = "revoked"
	NotYetIssued State = "not_yet_issued"
	Expired      State = "expired"
	InForce      State = "in_force"
)

// State returns the state of a card at a time. A card is revoked from the time of its revocation
// on. It is still in force at the time of its expiry.
func (r *Registry) State(card *Entry, at time.Time) State {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.state(card, at)
}

// Standing returns the card with the id and its state at a time. It looks only in memory, and
// returns nil if the card is not there.
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

// Current returns the newest of an agent's cards that are in force at a time. If there is none,
// it returns the newest issued card, provided that this card has only expired: a reader sees the
// expiry, and learns more than from no card. Otherwise it returns nil.
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

// CurrentCard returns the current card, compiled. Errors: ErrUnknown if there is none, or the
// bucket's.
func (r *Registry) CurrentCard(ctx context.Context, agentID string, at time.Time) (*Card, error) {
	current := r.Current(agentID, at)
	if current == nil {
		return nil, ErrUnknown
	}
	return r.Lookup(ctx, current.CardID)
}

// Instead returns the card that an agent had in force at a time and did not name: one that is
// newer than card, or any of its own cards if card belongs to another agent. It returns nil if
// there is none.
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

// OfAgent returns every card of an agent, newest first.
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

// All returns every card, ordered by agent, newest first for each agent.
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

// Keys returns the keys that are trusted for an agent's next card: those of its newest card that
// registers any, whether that card is in force or not. A revocation withdraws a card but not its
// keys. Only a newer card that registers other keys withdraws them. The error is the bucket's.
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

// RetainUntil returns until when data of an agent that was received at a given time is kept. It
// uses the longest audit commitment of the agent's cards (AAP section 4.7), counted from receipt.
// The zero time means forever: the agent has made no commitment, or is not known (Know). The
// commitment of a card that was removed from the bucket counts as long as the card is a row.
func (r *Registry) RetainUntil(agentID string, received time.Time) time.Time {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if !r.knows(agentID) {
		return time.Time{}
	}
	days := r.known[agentID]
	for card := r.agents[agentID]; card != nil; card = card.older {
		days = max(days, card.retentionDays)
	}
	if days == 0 {
		return time.Time{}
	}
	return received.AddDate(0, 0, int(days))
}

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
	r.mu.RLock()
	defer r.mu.RUnlock()
	lines := make([]Listing, len(cards))
	for i, card := range cards {
		revocation := r.revoked[card.CardID]
		lines[i] = Listing{
			CardID: card.CardID, AgentID: card.AgentID, Digest: card.Digest, Version: card.version.Value(),
			IssuedAt: card.IssuedAt(), ExpiresAt: card.ExpiresAt(), State: r.state(card, at),
			RevokedAt: revocation.RevokedAt, Reason: revocation.Reason,
		}
		if card.keys != nil {
			lines[i].KeyIDs, lines[i].SignedBy = card.keys.listed, card.keys.signedBy
		}
	}
	return lines
}
