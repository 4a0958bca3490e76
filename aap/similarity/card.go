package similarity

import (
	"math"
	"slices"

	"github.com/plumbline/plumbline/schema"
)

// CardFeatures returns the features of a card by the table of AAP section 8.3, each of weight
// 1: its values, its bounded actions, its principal's type and relationship, and a required
// escalation if a trigger demands one.
func CardFeatures(c *schema.Card) Vector {
	var v Vector
	known := map[string]bool{}
	add := func(kind string, names ...string) {
		for _, name := range names {
			if key := kind + name; !known[key] {
				known[key], v = true, append(v, Feature{key, 1})
			}
		}
	}
	add(kindValue, c.Values.Declared...)
	for _, entry := range c.Autonomy.BoundedActions {
		add(kindActionName, schema.EntryNames(entry)...)
	}
	add(kindCategory, c.Principal.Type, c.Principal.Relationship)
	if escalates(c) {
		add(keyRequired, "")
	}
	return v
}

// escalates reports whether a trigger of the card demands an escalation.
func escalates(c *schema.Card) bool {
	return slices.ContainsFunc(c.Autonomy.EscalationTriggers, func(t schema.Trigger) bool { return t.Action == schema.TriggerEscalate })
}

// Card holds the features of a card that a trace can have as well. It is immutable and may be
// shared between goroutines.
type Card struct {
	values    map[string]struct{}
	actions   schema.ActionSet
	escalates bool
}

// NewCard prepares a card for Score.
func NewCard(c *schema.Card) *Card {
	card := &Card{values: map[string]struct{}{}, actions: schema.NewActionSet(c.Autonomy.BoundedActions), escalates: escalates(c)}
	for _, value := range c.Values.Declared {
		card.values[value] = struct{}{}
	}
	return card
}

// Score returns Alignment, rounded to four decimals.
func (c *Card) Score(t *schema.Trace) float64 { return Round4(c.Alignment(t)) }

// Alignment returns how much of t the card declares: the cosine of the trace's features and the
// card's, over the features that both can have and the trace has. These are the values applied,
// the action's name, and a required escalation. All weights are 1, so the result is the square
// root of the share of them that the card declares.
//
// The other features of AAP section 8.3 are not used. A card has no action type and no
// confidence ("trace only"). Its categories are those of its principal, never of the action. It
// never demands that a trace does not escalate. What the card allows beyond this trace is not
// used either: a cosine over the whole card would be low for every trace of a card that allows
// much, and section 7.4 says that 1.0 is perfect alignment.
func (c *Card) Alignment(t *schema.Trace) float64 {
	all, declared := 1, 0 // the action's name
	if c.actions.Allows(t.Action.Name) {
		declared++
	}
	seen := newSeen(t.Decision.ValuesApplied)
	for i, value := range t.Decision.ValuesApplied {
		if !seen.first(i) {
			continue
		}
		all++
		if _, ok := c.values[value]; ok {
			declared++
		}
	}
	if t.Escalation.Required {
		all++
		if c.escalates {
			declared++
		}
	}
	return math.Sqrt(float64(declared) / float64(all))
}
