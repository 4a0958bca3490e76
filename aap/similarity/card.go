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
	b := builder{index: map[string]int{}}
	b.set(kindValue, c.Values.Declared...)
	b.set(kindConflict, c.Values.ConflictsWith...)
	b.set(kindActionName, c.Autonomy.BoundedActions...)
	b.set(kindForbidden, c.Autonomy.ForbiddenActions...)
	for _, trigger := range c.Autonomy.EscalationTriggers {
		b.set(kindEscalation, string(trigger.Action))
		for _, word := range words(trigger.Condition) {
			*b.at(kindCondition + word) += conditionWeight
		}
	}
	b.set(kindPrincipal, c.Principal.Type)
	b.set(kindRelationship, c.Principal.Relationship)
	if c.Audit.Queryable {
		b.set(keyQueryable, "")
	}
	if c.Audit.TamperEvidence != "" {
		b.set(kindTamper, c.Audit.TamperEvidence)
	}
	return b.vector
}

// builder collects a vector key by key.
type builder struct {
	vector Vector
	index  map[string]int
}

// at returns the weight of key, 0 when it is new.
func (b *builder) at(key string) *float64 {
	i, ok := b.index[key]
	if !ok {
		i = len(b.vector)
		b.index[key] = i
		b.vector = append(b.vector, Feature{Key: key})
	}
	return &b.vector[i].Weight
}

// set gives every key kind+name the weight 1.
func (b *builder) set(kind string, names ...string) {
	for _, name := range names {
		*b.at(kind + name) = 1
	}
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
