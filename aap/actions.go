package aap

import (
	"strings"

	"github.com/plumbline/plumbline/schema"
)

// actions is a list of action names of a card. An entry "name: description" also matches its
// bare name.
type actions map[string]struct{}

func newActions(entries []string) actions {
	a := make(actions, len(entries))
	for _, entry := range entries {
		a[entry] = struct{}{}
		if name, _, described := strings.Cut(entry, ":"); described && strings.TrimSpace(name) != "" {
			a[strings.TrimSpace(name)] = struct{}{}
		}
	}
	return a
}

func (a actions) has(name string) bool {
	_, ok := a[name]
	return ok
}

// allow reports whether name, or every part of the compound name "a, b", is listed. An empty
// part matches nothing.
func (a actions) allow(name string) bool {
	if a.has(name) {
		return true
	}
	for part := range strings.SplitSeq(name, ",") {
		if part = strings.TrimSpace(part); part == "" || !a.has(part) {
			return false
		}
	}
	return true
}

// touch reports whether name, or any part of it, is listed.
func (a actions) touch(name string) bool {
	if a.has(name) {
		return true
	}
	for part := range strings.SplitSeq(name, ",") {
		if part = strings.TrimSpace(part); part != "" && a.has(part) {
			return true
		}
	}
	return false
}

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
