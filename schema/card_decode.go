package schema

import (
	"bytes"
	"slices"

	"github.com/gowebpki/jcs"
)

// DecodeCard reads and validates a card in either shape (AAP section 4). The
// error is a *Refusal with every fault found. Conditions are not parsed here:
// aap.Register does that. The card keeps a copy of raw, from opening to closing
// brace, and its strings alias that copy.
func DecodeCard(raw []byte) (*Card, error) {
	raw = bytes.Trim(raw, " \t\r\n")
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
	canonical, err := jcs.Transform(raw)
	if err != nil {
		return nil, refuse(ReasonInvalidCard, "no canonical form (RFC 8785): %v", err)
	}
	d.card.Digest = DigestOf(canonical)
	return d.card, nil
}

// cardDecoder reads one card. A card is read once and judged by ever after, so
// it trades the speed of Decoder for tables.
type cardDecoder struct {
	reader
	card     *Card
	autonomy string // the name that the autonomy block goes by: that of the shape
	audit    string // likewise
}

// members maps the members of an object that have a meaning to what reads them.
type members map[string]func()

// object reads an object: known members by their functions, others are skipped
// within the limits. It reports required members that are missing, and returns
// the names found.
func (d *cardDecoder) object(known members, required ...string) map[string]bool {
	found := map[string]bool{}
	if !d.enter('{', "an object") {
		return found
	}
	at := string(d.dec.StackPointer())
	for d.more() {
		name := d.name()
		found[name] = true
		if read, ok := known[name]; ok {
			read()
			continue
		}
		d.opaque()
	}
	for _, name := range required {
		if d.err == nil && !found[name] {
			d.faultAt(at+"/"+name, "is required and missing")
		}
	}
	return found
}

// optional makes a member's function take null as absent.
func (d *cardDecoder) optional(read func()) func() {
	return func() {
		if !d.null() {
			read()
		}
	}
}

// into returns a function that stores what read yields.
func into[T any](dst *T, read func() T) func() { return func() { *dst = read() } }

// choice returns a function that reads one of the allowed texts.
func choice[T ~string](d *cardDecoder, dst *T, allowed ...T) func() {
	return func() { *dst = oneOf(&d.reader, d.text(), allowed...) }
}

// names reads an array of non-empty names.
func (d *cardDecoder) names() []string {
	var out []string
	if !d.enter('[', "an array of strings") {
		return nil
	}
	for d.more() {
		out = append(out, d.identifier())
	}
	return out
}

// decode reads the card (AAP section 4.2).
func (d *cardDecoder) decode() {
	c := d.card
	var mode, aapVersion, cardVersion string
	anyMode := choice(d, &mode, "off", "observe", "nudge", "enforce")
	found := d.object(members{
		"aap_version":       into(&aapVersion, d.identifier),
		"card_version":      into(&cardVersion, d.identifier),
		"card_id":           into(&c.CardID, d.identifier),
		"agent_id":          into(&c.AgentID, d.identifier),
		"issued_at":         into(&c.IssuedAt, d.eventTime),
		"expires_at":        d.optional(into(&c.ExpiresAt, d.eventTime)),
		"principal":         d.principal,
		"values":            d.values,
		"autonomy_envelope": func() { d.envelope("autonomy_envelope", "bounded_actions", "escalation_triggers") },
		"autonomy":          func() { d.envelope("autonomy", "bounded_actions") },
		"audit_commitment":  func() { d.commitment("audit_commitment", "trace_format", "retention_days", "queryable") },
		"audit":             func() { d.commitment("audit", "retention_days", "queryable") },
		"autonomy_mode":     d.optional(anyMode),
		"integrity_mode":    d.optional(anyMode),
		"extensions":        d.optional(func() { c.Extensions = d.members(nil) }),
	}, "card_id", "agent_id", "issued_at", "principal", "values")
	d.shape(found)
	c.Version = aapVersion
	if c.Shape == ShapeUnified && cardVersion != "" {
		c.Version = cardVersion
	}
}

// shape tells which shape the card has, and reports the blocks that this shape
// lacks or has twice.
func (d *cardDecoder) shape(found map[string]bool) {
	if d.err != nil {
		return
	}
	autonomy, audit := "autonomy_envelope", "audit_commitment"
	d.card.Shape = ShapeEnvelope
	if found["autonomy"] || found["card_version"] && !found[autonomy] {
		autonomy, audit = "autonomy", "audit"
		d.card.Shape = ShapeUnified
	} else if !found["aap_version"] {
		d.faultAt("/aap_version", "is required and missing")
	}
	for _, names := range [][2]string{{autonomy, d.autonomy}, {audit, d.audit}} {
		if names[1] == "" {
			d.faultAt("/"+names[0], "is required and missing")
		}
	}
	for _, names := range [][2]string{{"autonomy", "autonomy_envelope"}, {"audit", "audit_commitment"}} {
		if found[names[0]] && found[names[1]] {
			d.faultAt("/"+names[0], "stands for the same block as %s: a card has one of them", names[1])
		}
	}
}

// principal reads the principal block (AAP section 4.3).
func (d *cardDecoder) principal() {
	p := &d.card.Principal
	d.object(members{
		"type":               choice(d, &p.Type, "human", "organization", "agent", "unspecified"),
		"identifier":         d.optional(into(&p.Identifier, d.identifier)),
		"relationship":       choice(d, &p.Relationship, "delegated_authority", RelationshipAdvisory, "autonomous"),
		"escalation_contact": d.optional(into(&p.EscalationContact, d.text)),
	}, "type", "relationship")
}

// values reads the values block (AAP section 4.4).
func (d *cardDecoder) values() {
	v := &d.card.Values
	d.object(members{
		"declared":       into(&v.Declared, d.names),
		"definitions":    d.optional(d.definitions),
		"conflicts_with": d.optional(into(&v.ConflictsWith, d.names)),
		"hierarchy":      d.optional(choice(d, &v.Hierarchy, "lexicographic", "weighted", "contextual")),
	}, "declared")
}

func (d *cardDecoder) definitions() {
	if !d.enter('{', "an object") {
		return
	}
	for d.more() {
		def := ValueDefinition{ID: d.name()}
		d.object(members{
			"name":        d.optional(into(&def.Name, d.text)),
			"description": into(&def.Description, d.text),
			"priority":    d.optional(func() { def.Priority, def.HasPriority = d.number() }),
		}, "description")
		d.card.Values.Definitions = append(d.card.Values.Definitions, def)
	}
}

// envelope reads the autonomy block (AAP section 4.5), which goes by name.
func (d *cardDecoder) envelope(name string, required ...string) {
	d.autonomy = name
	a := &d.card.Autonomy
	triggers := d.triggers
	if name == "autonomy" {
		triggers = d.optional(triggers)
	}
	d.object(members{
		"bounded_actions":      into(&a.BoundedActions, d.names),
		"escalation_triggers":  triggers,
		"max_autonomous_value": d.optional(d.maxValue),
		"forbidden_actions":    d.optional(into(&a.ForbiddenActions, d.names)),
	}, required...)
}

func (d *cardDecoder) triggers() {
	a := &d.card.Autonomy
	if !d.enter('[', "an array of triggers") {
		return
	}
	at := string(d.dec.StackPointer())
	for d.more() {
		var t Trigger
		d.object(members{
			"condition": into(&t.Condition, d.text),
			"action":    choice(d, &t.Action, TriggerEscalate, TriggerDeny, TriggerLog),
			"reason":    into(&t.Reason, d.text),
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
		"amount":   func() { m.Amount, _ = d.number() },
		"currency": d.optional(into(&m.Currency, d.identifier)),
	}, "amount")
}

// commitment reads the audit block (AAP section 4.7), which goes by name.
func (d *cardDecoder) commitment(name string, required ...string) {
	d.audit = name
	a := &d.card.Audit
	d.object(members{
		"trace_format":    into(&a.TraceFormat, d.identifier),
		"retention_days":  d.retention,
		"storage":         d.optional(d.storage),
		"queryable":       into(&a.Queryable, d.boolean),
		"query_endpoint":  d.optional(into(&a.QueryEndpoint, d.text)),
		"tamper_evidence": d.optional(choice(d, &a.TamperEvidence, "append_only", "signed", "merkle")),
	}, required...)
}

func (d *cardDecoder) retention() {
	days, ok := d.natural()
	if ok && days > MaxRetentionDays {
		d.fault("%d days, a card may commit to %d", days, MaxRetentionDays)
	}
	d.card.Audit.RetentionDays = int(days)
}

func (d *cardDecoder) storage() {
	a := &d.card.Audit
	d.object(members{
		"type":     choice(d, &a.StorageType, "local", "remote", "distributed"),
		"location": d.optional(into(&a.StorageLocation, d.text)),
	}, "type")
}
