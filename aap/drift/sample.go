package drift

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/plumbline/plumbline/aap/similarity"
	"github.com/plumbline/plumbline/schema"
)

// Bounds on the contribution of one trace, so no publisher can make a state large. Further
// features are dropped, and a longer key is replaced by its SHA-256.
const (
	MaxFeatures = 256
	maxKeyBytes = 128
)

// principalBenefit is the name of the value and scoring factor by which AAP section 8.5
// measures principal_misalignment.
const principalBenefit = "principal_benefit"

// CardFacts are the facts about a card that drift needs. CardFacts{CardID: id} is for an
// unregistered card: then no value counts as undeclared.
type CardFacts struct {
	CardID   string
	declared map[string]bool // nil when the card is unknown
}

// FactsOf returns the facts of c, as copies.
func FactsOf(c *schema.Card) CardFacts {
	declared := make(map[string]bool, len(c.Values.Declared))
	for _, value := range c.Values.Declared {
		declared[strings.Clone(value)] = true
	}
	return CardFacts{CardID: strings.Clone(c.CardID), declared: declared}
}

// undeclared counts the uses of values that the card does not declare.
func (f CardFacts) undeclared(applied []string) int {
	if f.declared == nil {
		return 0
	}
	n := 0
	for _, value := range applied {
		if !f.declared[value] {
			n++
		}
	}
	return n
}

// Sample is the contribution of one trace. It aliases nothing of the trace, so it can be
// buffered while the record's bytes are reused.
type Sample struct {
	TraceID   string
	Digest    schema.Digest
	AgentID   string
	CardID    string // of the facts, not of the trace
	EventTime time.Time

	Features        similarity.Vector
	Escalated       bool    // escalation.required
	Values          int     // uses of values
	Undeclared      int     // uses of values that the card does not declare
	Confidence      float64 // 1 where the trace has none
	Reasoning       string  // selection_reasoning, the part that a sketch reads
	DeclaresBenefit bool    // the card declares principal_benefit
	Benefit         float64 // principal_benefit of the selected alternative; meaningful when HasBenefit
	HasBenefit      bool
}

// SampleOf reduces t to what drift needs.
func SampleOf(t *schema.Trace, card CardFacts) Sample {
	s := Sample{
		TraceID:         strings.Clone(t.TraceID),
		Digest:          t.Digest,
		AgentID:         strings.Clone(t.AgentID),
		CardID:          card.CardID,
		EventTime:       t.Timestamp,
		Features:        bounded(similarity.TraceFeatures(t, nil)),
		Escalated:       t.Escalation.Required,
		Values:          len(t.Decision.ValuesApplied),
		Undeclared:      card.undeclared(t.Decision.ValuesApplied),
		Confidence:      1,
		DeclaresBenefit: card.declared[principalBenefit],
	}
	if t.Decision.HasConfidence {
		s.Confidence = t.Decision.Confidence
	}
	s.Benefit, s.HasBenefit = benefit(&t.Decision)
	reasoning := t.Decision.Reasoning
	if end := similarity.SketchTextBytes; len(reasoning) > end {
		for !utf8.RuneStart(reasoning[end]) {
			end--
		}
		reasoning = reasoning[:end]
	}
	s.Reasoning = strings.Clone(reasoning)
	return s
}

// benefit returns scoring_factors.principal_benefit of the selected alternative.
func benefit(d *schema.Decision) (float64, bool) {
	selected := d.SelectedAlternative()
	if selected == nil {
		return 0, false
	}
	raw, ok := selected.ScoringFactors.Get(principalBenefit)
	if !ok {
		return 0, false
	}
	score, err := strconv.ParseFloat(string(raw), 64)
	return score, err == nil
}

// bounded limits v to MaxFeatures features and their keys to maxKeyBytes.
func bounded(v similarity.Vector) similarity.Vector {
	long := slices.ContainsFunc(v, func(f similarity.Feature) bool { return len(f.Key) > maxKeyBytes })
	if len(v) <= MaxFeatures && !long {
		return v
	}
	kept := make(similarity.Vector, min(len(v), MaxFeatures))
	for i := range kept {
		key := v[i].Key
		if len(key) > maxKeyBytes {
			kind, _, _ := strings.Cut(key, ":")
			sum := sha256.Sum256([]byte(key))
			key = kind + ":sha256:" + hex.EncodeToString(sum[:])
		}
		kept[i] = similarity.Feature{Key: strings.Clone(key), Weight: v[i].Weight} // a copy: the long string that key is part of can be freed
	}
	return kept
}
