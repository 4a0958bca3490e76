package drift

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
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
// unregistered card: then no value counts as undeclared, and what needs the card is not measured.
type CardFacts struct {
	CardID   string
	declared map[string]bool  // values.declared; nil when the card is unknown
	bounded  schema.ActionSet // bounded_actions
	named    schema.ActionSet // every action that the card names
}

// FactsOf returns the facts of c, as copies. A card names the actions of bounded_actions and
// forbidden_actions, and those that the condition of an escalation trigger has in quotes, as in
// tool_name == "refund".
func FactsOf(c *schema.Card) CardFacts {
	conditions := make([]string, len(c.Autonomy.EscalationTriggers))
	for i := range conditions {
		conditions[i] = c.Autonomy.EscalationTriggers[i].Condition
	}
	return NewFacts(c.CardID, c.Values.Declared, c.Autonomy.BoundedActions, c.Autonomy.ForbiddenActions, conditions)
}

// NewFacts is FactsOf for a card of which only these members are at hand. conditions are those of its escalation
// triggers.
func NewFacts(cardID string, values, bounded, forbidden, conditions []string) CardFacts {
	f := CardFacts{
		CardID: strings.Clone(cardID), declared: make(map[string]bool, len(values)),
		bounded: schema.NewActionSet(cloned(bounded)), named: schema.NewActionSet(cloned(forbidden)),
	}
	for _, value := range cloned(values) {
		f.declared[value] = true
	}
	maps.Copy(f.named, f.bounded)
	for _, condition := range cloned(conditions) {
		parts := strings.Split(condition, `"`)
		for at := 1; at < len(parts); at += 2 { // every second part is inside quotes
			f.named[parts[at]] = struct{}{}
		}
	}
	return f
}

func cloned(names []string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = strings.Clone(name)
	}
	return out
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
//
// Each fact comes from the trace, or from the trace and its card. Where a trace lacks what a
// measure needs, the measure has no observation of this trace; see observe.
type Sample struct {
	TraceID   string
	Digest    schema.Digest
	AgentID   string
	CardID    string // of the facts, not of the trace
	EventTime time.Time

	Session    string    // context.session_id, or the synthetic session of the day (schema.SessionID)
	SessionEnd bool      // context.metadata.session_end
	Order      time.Time // place in the series' order, for a session's idleness; zero: the event time

	Features  similarity.Vector
	Action    string // action.type
	Name      string // action.name; empty when absent
	HasCard   bool   // the card is known; Inside, Named and Undeclared need it
	Inside    bool   // the card's bounded_actions allow the action's name
	Named     bool   // the card names the action: see FactsOf
	Escalated bool   // escalation.required

	Values     int      // uses of values
	Undeclared int      // uses of values that the card does not declare
	Declared   []string // the features' keys of the declared values that were applied, each once

	HasExecution bool  // context.metadata.execution; Error and Cost need it
	Error        bool  // execution.error is not empty
	Cost         int64 // execution.cost_cents, 0 when absent

	Confidence      float64 // 1 where the trace has none
	HasConfidence   bool
	Reasoning       string  // selection_reasoning, the part that a sketch reads
	Length          int     // characters of the whole selection_reasoning
	DeclaresBenefit bool    // the card declares principal_benefit
	Benefit         float64 // principal_benefit of the selected alternative; meaningful when HasBenefit
	HasBenefit      bool
}

// Kind divides decisions into those that act (execute, escalate) and those that answer
// (recommend, deny). Costs and texts of the two differ by nature, so each is compared with its own.
type Kind uint8

// The two kinds of decisions.
const (
	Answers Kind = iota
	Acts
	kinds
)

// Kind returns the kind of the decision.
func (x *Sample) Kind() Kind {
	if x.Action == string(schema.ActionExecute) || x.Action == string(schema.ActionEscalate) {
		return Acts
	}
	return Answers
}

// Denies reports whether the decision is a denial.
func (x *Sample) Denies() bool { return x.Action == string(schema.ActionDeny) }

// SampleOf reduces t to what drift needs. It does not set Order.
func SampleOf(t *schema.Trace, card CardFacts) Sample {
	session := schema.SessionID(t)
	reasoning := t.Decision.Reasoning
	if end := similarity.SketchTextBytes; len(reasoning) > end {
		for !utf8.RuneStart(reasoning[end]) {
			end--
		}
		reasoning = reasoning[:end]
	}
	var texts copies
	texts.b.Grow(len(t.AgentID) + len(session) + len(t.Action.Type) + len(t.Action.Name) + len(reasoning))
	s := Sample{
		TraceID:         strings.Clone(t.TraceID), // alone: a state keeps it for long
		Digest:          t.Digest,
		AgentID:         texts.copy(t.AgentID),
		CardID:          card.CardID,
		EventTime:       t.Timestamp,
		Session:         texts.copy(session),
		SessionEnd:      t.Context.SessionEnd,
		Features:        bounded(similarity.TraceFeatures(t, nil)),
		Action:          texts.copy(string(t.Action.Type)),
		Name:            texts.copy(t.Action.Name),
		Reasoning:       texts.copy(reasoning),
		HasCard:         card.declared != nil,
		Inside:          card.bounded.Allows(t.Action.Name),
		Named:           card.named.Has(t.Action.Name),
		Escalated:       t.Escalation.Required,
		Values:          len(t.Decision.ValuesApplied),
		Undeclared:      card.undeclared(t.Decision.ValuesApplied),
		HasExecution:    t.Context.Execution.Present,
		Error:           t.Context.Execution.Error != "",
		Cost:            t.Context.Execution.CostCents,
		Confidence:      1,
		HasConfidence:   t.Decision.HasConfidence,
		Length:          utf8.RuneCountInString(t.Decision.Reasoning),
		DeclaresBenefit: card.declared[principalBenefit],
	}
	if t.Decision.HasConfidence {
		s.Confidence = t.Decision.Confidence
	}
	for _, f := range s.Features {
		if value, ok := strings.CutPrefix(f.Key, valuePrefix); ok && card.declared[value] {
			if s.Declared == nil {
				s.Declared = make([]string, 0, min(len(s.Features), s.Values))
			}
			s.Declared = append(s.Declared, f.Key)
		}
	}
	s.Benefit, s.HasBenefit = benefit(&t.Decision)
	return s
}

// copies are copies of texts in one allocation: as long as one of them is kept, all are.
type copies struct{ b strings.Builder }

func (c *copies) copy(text string) string {
	start := c.b.Len()
	c.b.WriteString(text)
	return c.b.String()[start:]
}

// The features' keys that the measures read, or the prefixes of these.
const (
	valuePrefix   = "value:"
	namePrefix    = "action_name:"
	typePrefix    = "action:"
	confidenceKey = "confidence"
)

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
		kind, _, _ := strings.Cut(v[i].Key, ":")
		key := boundedKey(kind+":", v[i].Key, maxKeyBytes)
		kept[i] = similarity.Feature{Key: strings.Clone(key), Weight: v[i].Weight} // a copy: the long string that key is part of can be freed
	}
	return kept
}

// boundedKey returns key, or the prefix and the SHA-256 of a longer one.
func boundedKey(prefix, key string, most int) string {
	if len(key) <= most {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return prefix + "sha256:" + hex.EncodeToString(sum[:])
}
