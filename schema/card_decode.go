package schema

import (
	"crypto/ed25519"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// DecodeCard reads and validates a card in either shape (AAP section 4). The error is a
// *Refusal with every fault found. DecodeCard does not parse conditions; aap.Register does. The
// card keeps a copy of raw, from opening to closing brace, and its strings alias that copy.
func DecodeCard(raw []byte) (*Card, error) {
	raw = trimSpace(raw)
	if len(raw) > MaxCardBytes {
		return nil, refuse(ReasonTooLarge, "%d bytes, a card may have %d", len(raw), MaxCardBytes)
	}
	raw = slices.Clone(raw)
	d := cardDecoder{card: &Card{Raw: raw}}
	d.reset(raw)
	d.decode()
	d.end()
	d.validate()
	if err := d.refusal(ReasonInvalidCard); err != nil {
		return nil, err
	}
	canonical := jsontext.Value(slices.Clone(raw))
	if err := canonical.Canonicalize(); err != nil {
		return nil, refuse(ReasonInvalidCard, "no canonical form (RFC 8785): %v", err)
	}
	d.card.Digest = DigestOf(canonical)
	d.card.Policy = d.policy()
	return d.card, nil
}

// cardDecoder reads one card.
type cardDecoder struct {
	reader
	card     *Card
	autonomy string // the name of the autonomy block in the card's shape
	audit    string // the name of the audit block in the card's shape

	valuesText, autonomyText []byte // the two blocks of which Policy is made
}

// decode reads the card (AAP section 4.2).
func (d *cardDecoder) decode() {
	c := d.card
	var mode, aapVersion, cardVersion string
	anyMode := choice(&d.reader, &mode, "off", "observe", "nudge", "enforce")
	found := d.object(members{
		{"aap_version", into(&aapVersion, d.identifier)},
		{"card_version", into(&cardVersion, d.identifier)},
		{"card_id", into(&c.CardID, d.identifier)},
		{"agent_id", into(&c.AgentID, d.identifier)},
		{"issued_at", into(&c.IssuedAt, d.eventTime)},
		{"expires_at", d.optional(into(&c.ExpiresAt, d.eventTime))},
		{"principal", d.principal},
		{"values", d.values},
		{"autonomy_envelope", func() { d.envelope("autonomy_envelope", "bounded_actions", "escalation_triggers") }},
		{"autonomy", func() { d.envelope("autonomy", "bounded_actions") }},
		{"audit_commitment", func() { d.commitment("audit_commitment", "trace_format", "retention_days", "queryable") }},
		{"audit", func() { d.commitment("audit", "retention_days", "queryable") }},
		{"autonomy_mode", d.optional(anyMode)},
		{"integrity_mode", d.optional(anyMode)},
		{"extensions", d.optional(d.extensions)},
		{"signature", d.optional(into(&c.Signature, d.signature))},
	}, "card_id", "agent_id", "issued_at", "principal", "values")
	d.shape(found)
	c.Version = aapVersion
	if c.Shape == ShapeUnified && cardVersion != "" {
		c.Version = cardVersion
	}
}

// shape finds out which shape the card has. It reports the blocks that this shape lacks and
// those that the card has in both shapes.
func (d *cardDecoder) shape(found []string) {
	if d.err != nil {
		return
	}
	has := func(name string) bool { return slices.Contains(found, name) }
	d.card.Shape = ShapeEnvelope
	if has("autonomy") || has("card_version") && !has("autonomy_envelope") {
		d.card.Shape = ShapeUnified
	} else if !has("aap_version") {
		d.faultAt("/aap_version", "is missing (required)")
	}
	autonomy, audit := d.card.Shape.Blocks()
	for _, names := range [][2]string{{autonomy, d.autonomy}, {audit, d.audit}} {
		if names[1] == "" {
			d.faultAt("/"+names[0], "is missing (required)")
		}
	}
	for _, names := range [][2]string{{"autonomy", "autonomy_envelope"}, {"audit", "audit_commitment"}} {
		if has(names[0]) && has(names[1]) {
			d.faultAt("/"+names[0], "is the same block as %s: a card has only one of them", names[1])
		}
	}
}

// policy returns the digest Policy of a card without faults.
func (d *cardDecoder) policy() Digest {
	text := make([]byte, 0, 2048) // of most cards
	text = append(text, d.valuesText...)
	text = append(text, 0) // in no JSON text
	return DigestOf(append(text, d.autonomyText...))
}

// principal reads the principal block (AAP section 4.3).
func (d *cardDecoder) principal() {
	p := &d.card.Principal
	d.object(members{
		{"type", choice(&d.reader, &p.Type, "human", "organization", "agent", "unspecified")},
		{"identifier", d.optional(into(&p.Identifier, d.identifier))},
		{"relationship", choice(&d.reader, &p.Relationship, "delegated_authority", RelationshipAdvisory, "autonomous")},
		{"escalation_contact", d.optional(into(&p.EscalationContact, d.text))},
	}, "type", "relationship")
}

// values reads the values block (AAP section 4.4).
func (d *cardDecoder) values() {
	v, from := &d.card.Values, d.offset()
	defer func() { d.valuesText = d.span(from) }()
	d.object(members{
		{"declared", into(&v.Declared, d.names)},
		{"definitions", d.optional(d.definitions)},
		{"conflicts_with", d.optional(into(&v.ConflictsWith, d.names))},
		{"hierarchy", d.optional(choice(&d.reader, &v.Hierarchy, "lexicographic", "weighted", "contextual"))},
	}, "declared")
}

func (d *cardDecoder) definitions() {
	if !d.enter('{', "an object") {
		return
	}
	for d.more() {
		def := ValueDefinition{ID: d.name()}
		d.object(members{
			{"name", d.optional(into(&def.Name, d.text))},
			{"description", into(&def.Description, d.text)},
			{"priority", d.optional(func() { def.Priority, def.HasPriority = d.number() })},
			{"subsumes", d.optional(into(&def.Subsumes, d.names))},
		}, "description")
		d.card.Values.Definitions = append(d.card.Values.Definitions, def)
	}
}

// envelope reads the autonomy block (AAP section 4.5); name is its name in the card's shape.
func (d *cardDecoder) envelope(name string, required ...string) {
	d.autonomy = name
	a, from := &d.card.Autonomy, d.offset()
	defer func() { d.autonomyText = d.span(from) }()
	triggers := d.triggers
	if name == "autonomy" {
		triggers = d.optional(triggers)
	}
	d.object(members{
		{"bounded_actions", into(&a.BoundedActions, d.names)},
		{"escalation_triggers", triggers},
		{"max_autonomous_value", d.optional(d.maxValue)},
		{"forbidden_actions", d.optional(into(&a.ForbiddenActions, d.names))},
	}, required...)
}

func (d *cardDecoder) triggers() {
	a := &d.card.Autonomy
	if !d.enter('[', "an array of triggers") {
		return
	}
	at := d.pointer()
	for d.more() {
		var t Trigger
		d.object(members{
			{"condition", into(&t.Condition, d.text)},
			{"action", choice(&d.reader, &t.Action, TriggerEscalate, TriggerDeny, TriggerLog)},
			{"reason", into(&t.Reason, d.text)},
		}, "condition", "action", "reason")
		a.EscalationTriggers = append(a.EscalationTriggers, t)
	}
	if n := len(a.EscalationTriggers); n > MaxTriggers {
		d.faultAt(at, "%d triggers, a card may have %d", n, MaxTriggers)
	}
}

func (d *cardDecoder) maxValue() {
	m := &d.card.Autonomy.MaxAutonomousValue
	m.Present = true
	d.object(members{
		{"amount", func() { m.Amount, m.Digits = d.amount() }},
		{"currency", d.optional(into(&m.Currency, d.identifier))},
	}, "amount")
}

// amount reads a number and returns its digits as well, since conditions are made of them. The
// digits must fit into MaxIDBytes.
func (d *cardDecoder) amount() (amount float64, digits string) {
	before := d.offset()
	amount, ok := d.number()
	if ok {
		digits = string(d.span(before))
	}
	if len(digits) > MaxIDBytes {
		d.fault("a number of %d bytes, at most %d are allowed", len(digits), MaxIDBytes)
	}
	return amount, digits
}

// commitment reads the audit block (AAP section 4.7); name is its name in the card's shape.
func (d *cardDecoder) commitment(name string, required ...string) {
	d.audit = name
	a := &d.card.Audit
	d.object(members{
		{"trace_format", into(&a.TraceFormat, d.identifier)},
		{"retention_days", d.retention},
		{"storage", d.optional(d.storage)},
		{"queryable", into(&a.Queryable, d.boolean)},
		{"query_endpoint", d.optional(into(&a.QueryEndpoint, d.text))},
		{"tamper_evidence", d.optional(choice(&d.reader, &a.TamperEvidence, "append_only", TamperSigned, "merkle"))},
	}, required...)
}

func (d *cardDecoder) retention() {
	days, ok := d.natural()
	if ok && days > MaxRetentionDays {
		d.fault("%d days: a card may commit to at most %d", days, MaxRetentionDays)
	}
	d.card.Audit.RetentionDays = int(days)
}

func (d *cardDecoder) storage() {
	a := &d.card.Audit
	d.object(members{
		{"type", choice(&d.reader, &a.StorageType, "local", "remote", "distributed")},
		{"location", d.optional(into(&a.StorageLocation, d.text))},
	}, "type")
}

// MaxKeys is how many keys a card may register.
const MaxKeys = 64

// ownExtension is the namespace that Plumbline itself reads in a card.
const ownExtension = "plumbline"

// extensions reads the extensions block (AAP section 4.8). Each member's name is the namespace
// of a protocol, and its value is an object. The content of the object belongs to the protocol;
// it is ignored unless the namespace is Plumbline's.
func (d *cardDecoder) extensions() {
	if !d.enter('{', "an object") {
		return
	}
	for d.more() {
		name, from := d.name(), d.offset()
		switch {
		case name == "":
			d.fault("the name of a protocol must not be empty")
			d.opaque()
		case d.null():
		case d.err == nil && d.peek() != '{':
			d.wrongType("an object: each extension is the namespace of a protocol")
		case name == ownExtension:
			d.object(members{{"keys", d.optional(d.keys)}})
		default:
			d.opaque()
		}
		if d.err == nil {
			d.card.Extensions = append(d.card.Extensions, Member{Name: name, Value: d.span(from)})
		}
	}
}

// keys reads the public keys that the agent signs with.
func (d *cardDecoder) keys() {
	if !d.enter('[', "an array of keys") {
		return
	}
	at := d.pointer()
	known := map[string]bool{}
	for i := 0; d.more(); i++ {
		key := d.key()
		if key.KeyID != "" && known[key.KeyID] {
			d.faultAt(fmt.Sprintf("%s/%d/key_id", at, i), "%q is the key_id of an earlier key too", clip(key.KeyID))
		}
		known[key.KeyID] = true
		d.card.Keys = append(d.card.Keys, key)
	}
	if n := len(d.card.Keys); n > MaxKeys {
		d.faultAt(at, "%d keys, a card may have %d", n, MaxKeys)
	}
}

func (d *cardDecoder) key() Key {
	var key Key
	var algorithm string
	d.object(members{
		{"key_id", into(&key.KeyID, d.identifier)},
		{"algorithm", choice(&d.reader, &algorithm, SignatureEd25519)},
		{"public_key", func() { _, key.PublicKey = d.base64(ed25519.PublicKeySize) }},
	}, "key_id", "algorithm", "public_key")
	return key
}
