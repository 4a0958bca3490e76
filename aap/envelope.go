package aap

import "github.com/plumbline/plumbline/schema"

// Envelope says what a card permits for single actions, without a trace (AAP section 4.5). It
// applies the rules of Verify and is immutable.
type Envelope struct {
	bounded, forbidden actions
}

// NewEnvelope reads the card's lists of actions.
func NewEnvelope(card *schema.Card) Envelope {
	return Envelope{newActions(card.Autonomy.BoundedActions), newActions(card.Autonomy.ForbiddenActions)}
}

// Bounded reports whether the agent may take the action without escalation.
func (e Envelope) Bounded(action string) bool { return e.bounded.allow(action) }

// Forbidden reports whether the agent may never take the action.
func (e Envelope) Forbidden(action string) bool { return e.forbidden.touch(action) }
