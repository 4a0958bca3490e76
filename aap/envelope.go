package aap

import "github.com/plumbline/plumbline/schema"

// Envelope answers what a card says of actions named apart from a trace (AAP
// section 4.5), by the rules that Verify goes by. It is immutable.
type Envelope struct {
	bounded, forbidden actions
}

// NewEnvelope reads the card's lists of actions.
func NewEnvelope(card *schema.Card) Envelope {
	return Envelope{newActions(card.Autonomy.BoundedActions), newActions(card.Autonomy.ForbiddenActions)}
}

// Bounded tells whether the agent may take the action without escalation.
func (e Envelope) Bounded(action string) bool { return e.bounded.allow(action) }

// Forbidden tells whether the agent may never take the action.
func (e Envelope) Forbidden(action string) bool { return e.forbidden.touch(action) }
