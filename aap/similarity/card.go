package similarity

import (
	"math"
	"strings"

	"github.com/plumbline/plumbline/schema"
)

// Weight of one occurrence of a word in a trigger's condition.
const conditionWeight = 0.5

// CardFeatures returns the features of a card.
func CardFeatures(c *schema.Card) Vector {
	var v Vector
	v = appendOnce(v, kindValue, c.Values.Declared...)
	v = appendOnce(v, kindConflict, c.Values.ConflictsWith...)
	v = appendOnce(v, kindActionName, c.Autonomy.BoundedActions...)
	v = appendOnce(v, kindForbidden, c.Autonomy.ForbiddenActions...)
	for _, trigger := range c.Autonomy.EscalationTriggers {
		v = appendOnce(v, kindEscalation, string(trigger.Action))
		for _, word := range words(trigger.Condition) {
			v = Add(v, Vector{{kindCondition + word, conditionWeight}})
		}
	}
	v = appendOnce(v, kindPrincipal, c.Principal.Type)
	v = appendOnce(v, kindRelationship, c.Principal.Relationship)
	if c.Audit.Queryable {
		v = append(v, Feature{keyQueryable, 1})
	}
	if c.Audit.TamperEvidence != "" {
		v = append(v, Feature{kindTamper + c.Audit.TamperEvidence, 1})
	}
	return v
}

// appendOnce appends kind+name for each name that v does not have yet.
func appendOnce(v Vector, kind string, names ...string) Vector {
	at := newPlaces(v)
	for _, name := range names {
		key := kind + name
		if _, ok := at.find(v, key); ok {
			continue
		}
		at.add(key, len(v))
		v = append(v, Feature{key, 1})
	}
	return v
}

// Card is the part of a card's vector that a trace can share, with the length
// of the whole. It is immutable and may be shared between goroutines.
type Card struct {
	values  map[string]float64 // weight of value:<name>
	actions map[string]float64 // weight of action_name:<name>
	norm    float64
}

// NewCard computes the vector of c once and for all.
func NewCard(c *schema.Card) *Card {
	vector := CardFeatures(c)
	card := &Card{values: map[string]float64{}, actions: map[string]float64{}, norm: vector.Norm()}
	for _, f := range vector {
		if name, ok := strings.CutPrefix(f.Key, kindValue); ok {
			card.values[name] = f.Weight
		} else if name, ok := strings.CutPrefix(f.Key, kindActionName); ok {
			card.actions[name] = f.Weight
		}
	}
	return card
}

// Score returns the cosine of t's features and the card's, rounded to four
// decimals: Round4(Cosine(TraceFeatures(t), CardFeatures(c))) without building
// a vector. The two share at most values and the action's name; the escalation
// keys of traces and cards are disjoint.
func (c *Card) Score(t *schema.Trace) float64 {
	shared, squares := 0.0, 2.0 // action and category
	if t.Action.Name != "" {
		shared += c.actions[t.Action.Name]
		squares++
	}
	seen := newSeen(t.Decision.ValuesApplied)
	for i, value := range t.Decision.ValuesApplied {
		if seen.first(i) {
			shared += c.values[value]
			squares++
		}
	}
	if t.Escalation.Present {
		squares++ // required or not_required
		if t.Escalation.Evaluated {
			squares++
		}
	}
	if t.Decision.HasConfidence {
		squares += t.Decision.Confidence * t.Decision.Confidence
	}
	if c.norm == 0 {
		return 0
	}
	return Round4(shared / (math.Sqrt(squares) * c.norm))
}
