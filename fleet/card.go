package fleet

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"time"

	"github.com/plumbline/plumbline/schema"
)

// Card is one Alignment Card to register.
type Card struct {
	AgentID string
	CardID  string
	Raw     []byte // JSON, in the 0.1.0 or the 2.x shape
}

// Cards returns every card; an agent's older card precedes the one in force.
func (f *Fleet) Cards() []Card {
	var cards []Card
	for i := range f.agents {
		a := &f.agents[i]
		for _, c := range []card{a.older, a.card} {
			if c.id != "" {
				cards = append(cards, Card{a.id, c.id, render(document(a, i, c))})
			}
		}
	}
	return cards
}

// The types of the blocks, which both shapes of a card share (AAP sections 4.3 to 4.7).
type (
	cardHead struct {
		CardID    string `json:"card_id"`
		AgentID   string `json:"agent_id"`
		IssuedAt  string `json:"issued_at"`
		ExpiresAt string `json:"expires_at,omitempty"`
	}
	envelopeCard struct {
		Version string `json:"aap_version"`
		cardHead
		Principal principalBlock  `json:"principal"`
		Values    valuesBlock     `json:"values"`
		Autonomy  autonomyBlock   `json:"autonomy_envelope"`
		Audit     auditBlock      `json:"audit_commitment"`
		Extension extensionsBlock `json:"extensions"`
	}
	unifiedCard struct {
		Version       string `json:"card_version"`
		AutonomyMode  string `json:"autonomy_mode"`
		IntegrityMode string `json:"integrity_mode"`
		cardHead
		Principal principalBlock `json:"principal"`
		Values    valuesBlock    `json:"values"`
		Autonomy  autonomyBlock  `json:"autonomy"`
		Audit     auditBlock     `json:"audit"`
	}
	extensionsBlock struct {
		Fleet     tradeBlock `json:"fleet"`
		Plumbline *keysBlock `json:"plumbline,omitempty"`
	}
	tradeBlock struct {
		Trade string `json:"trade"`
	}
	keysBlock struct {
		Keys []keyBlock `json:"keys"`
	}
	keyBlock struct {
		KeyID     string `json:"key_id"`
		Algorithm string `json:"algorithm"`
		PublicKey []byte `json:"public_key"`
	}
	principalBlock struct {
		Type              string `json:"type"`
		Identifier        string `json:"identifier"`
		Relationship      string `json:"relationship"`
		EscalationContact string `json:"escalation_contact"`
	}
	valuesBlock struct {
		Declared      []string              `json:"declared"`
		Definitions   map[string]valueBlock `json:"definitions,omitempty"`
		ConflictsWith []string              `json:"conflicts_with,omitempty"`
		Hierarchy     string                `json:"hierarchy"`
	}
	valueBlock struct {
		Name        string `json:"name"`
		Description string `json:"description"`
		Priority    int    `json:"priority"`
	}
	autonomyBlock struct {
		BoundedActions     []string       `json:"bounded_actions"`
		EscalationTriggers []triggerBlock `json:"escalation_triggers"`
		MaxAutonomousValue *moneyBlock    `json:"max_autonomous_value,omitempty"`
		ForbiddenActions   []string       `json:"forbidden_actions"`
	}
	triggerBlock struct {
		Condition string `json:"condition"`
		Action    string `json:"action"`
		Reason    string `json:"reason"`
	}
	moneyBlock struct {
		Amount   int64  `json:"amount"`
		Currency string `json:"currency"`
	}
	auditBlock struct {
		TraceFormat    string `json:"trace_format"`
		RetentionDays  int    `json:"retention_days"`
		Queryable      bool   `json:"queryable"`
		QueryEndpoint  string `json:"query_endpoint,omitempty"`
		TamperEvidence string `json:"tamper_evidence"`
	}
)

// document returns card c of agent number i. Every third agent has cards in the 2.x shape.
func document(a *agent, i int, c card) any {
	head := cardHead{CardID: c.id, AgentID: a.id, IssuedAt: c.issued.Format(time.RFC3339Nano)}
	if !c.expires.IsZero() {
		head.ExpiresAt = c.expires.Format(time.RFC3339Nano)
	}
	if !envelope(i) {
		return unifiedCard{"unified/2026-04-26", "observe", "observe", head,
			a.trade.principal(i), a.trade.values(i), a.trade.autonomy(), audit(i)}
	}
	extensions := extensionsBlock{Fleet: tradeBlock{a.trade.name}}
	if a.key != nil {
		extensions.Plumbline = &keysBlock{[]keyBlock{{keyID, schema.SignatureEd25519, a.key.Public().(ed25519.PublicKey)}}}
	}
	return envelopeCard{"0.1.0", head,
		a.trade.principal(i), a.trade.values(i), a.trade.autonomy(), audit(i), extensions}
}

// envelope reports whether the cards of agent i have the 0.1.0 shape.
func envelope(i int) bool { return i%3 != 1 }

// keyID is the id of an agent's only key in its card.
const keyID = "main"

func (a *archetype) principal(i int) principalBlock {
	kinds := [...]string{"human", "organization", "agent"}
	kind := kinds[i%len(kinds)]
	return principalBlock{
		Type:              kind,
		Identifier:        fmt.Sprintf("%s-%03d", kind, i),
		Relationship:      a.relationship,
		EscalationContact: fmt.Sprintf("mailto:%s-%03d@fleet.example", kind, i),
	}
}

func (a *archetype) values(i int) valuesBlock {
	hierarchies := [...]string{"lexicographic", "weighted", "contextual"}
	v := valuesBlock{
		Declared:      []string{a.core[0], a.core[1], a.extra, a.rare},
		ConflictsWith: a.conflicts,
		Hierarchy:     hierarchies[i%len(hierarchies)],
	}
	for n, d := range a.definitions {
		if v.Definitions == nil {
			v.Definitions = map[string]valueBlock{}
		}
		v.Definitions[d.id] = valueBlock{d.name, d.description, n + 1}
	}
	return v
}

func (a *archetype) autonomy() autonomyBlock {
	b := autonomyBlock{ForbiddenActions: a.forbidden}
	for _, act := range a.routine {
		b.BoundedActions = append(b.BoundedActions, act.name)
	}
	for _, trigger := range a.triggers() {
		if trigger.condition != "" {
			b.EscalationTriggers = append(b.EscalationTriggers,
				triggerBlock{trigger.condition, string(trigger.action), trigger.reason})
		}
	}
	if a.limit > 0 {
		b.MaxAutonomousValue = &moneyBlock{a.limit / 100, a.currency}
	}
	return b
}

func audit(i int) auditBlock {
	retention := [...]int{30, 90, 365}
	b := auditBlock{TraceFormat: "ap-trace-v1", RetentionDays: retention[i/3%3], TamperEvidence: "append_only"}
	if i%4 == 0 {
		b.Queryable = true
		b.QueryEndpoint = fmt.Sprintf("https://fleet.example/agents/%03d/traces", i)
	}
	return b
}

// render encodes a card. Its types always encode, so an error is a programming error.
func render(document any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(document); err != nil {
		panic(fmt.Sprintf("fleet: encode a card: %v", err))
	}
	return bytes.TrimSpace(b.Bytes())
}
