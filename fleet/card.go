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

// object is a JSON object of a card.
type object map[string]any

// document returns card c of agent number i. Every third agent has cards in the 2.x shape.
func document(a *agent, i int, c card) object {
	t := a.trade
	declared := []string{t.Core[0], t.Core[1], t.Extra, t.Rare}
	values := object{"declared": declared, "hierarchy": pick(i, "lexicographic", "weighted", "contextual")}
	if t.Conflicts != nil {
		values["conflicts_with"] = t.Conflicts
	}
	if t.Definitions != nil {
		definitions := object{}
		for n, d := range t.Definitions {
			definitions[d.ID] = object{"name": d.Name, "description": d.Description, "priority": n + 1}
		}
		values["definitions"] = definitions
	}
	var bounded []string
	for _, act := range t.Routine {
		bounded = append(bounded, act.Name)
	}
	var triggers []object
	for _, trigger := range t.triggers() {
		if trigger.condition != "" {
			triggers = append(triggers, object{"condition": trigger.condition, "action": trigger.action, "reason": trigger.reason})
		}
	}
	autonomy := object{"bounded_actions": bounded, "escalation_triggers": triggers, "forbidden_actions": t.Forbidden}
	if t.Limit > 0 {
		autonomy["max_autonomous_value"] = object{"amount": t.Limit / 100, "currency": t.Currency}
	}
	audit := object{"trace_format": "ap-trace-v1", "retention_days": pick(i/3, 30, 90, 365), "queryable": i%4 == 0, "tamper_evidence": "append_only"}
	if i%4 == 0 {
		audit["query_endpoint"] = fmt.Sprintf("https://fleet.example/agents/%03d/traces", i)
	}
	kind := pick(i, "human", "organization", "agent")
	d := object{
		"card_id": c.id, "agent_id": a.id, "issued_at": c.issued.Format(time.RFC3339Nano), "values": values,
		"principal": object{"type": kind, "identifier": fmt.Sprintf("%s-%03d", kind, i), "relationship": t.Relationship,
			"escalation_contact": fmt.Sprintf("mailto:%s-%03d@fleet.example", kind, i)},
	}
	if !c.expires.IsZero() {
		d["expires_at"] = c.expires.Format(time.RFC3339Nano)
	}
	if !envelope(i) {
		d["card_version"], d["autonomy_mode"], d["integrity_mode"] = "unified/2026-04-26", "observe", "observe"
		d["autonomy"], d["audit"] = autonomy, audit
		return d
	}
	extensions := object{"fleet": object{"trade": t.Name}}
	if a.key != nil {
		key := object{"key_id": keyID, "algorithm": schema.SignatureEd25519, "public_key": []byte(a.key.Public().(ed25519.PublicKey))}
		extensions["plumbline"] = object{"keys": []object{key}}
	}
	d["aap_version"], d["autonomy_envelope"], d["audit_commitment"], d["extensions"] = "0.1.0", autonomy, audit, extensions
	return d
}

// pick returns one of the values, in turn.
func pick[T any](i int, values ...T) T { return values[i%len(values)] }

// envelope reports whether the cards of agent i have the 0.1.0 shape.
func envelope(i int) bool { return i%3 != 1 }

// keyID is the id of an agent's only key in its card.
const keyID = "main"

// render encodes a card. Its types always encode, so an error is a programming error.
func render(document object) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(document); err != nil {
		panic(fmt.Sprintf("fleet: encode a card: %v", err))
	}
	return bytes.TrimSpace(b.Bytes())
}
