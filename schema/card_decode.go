package schema

import (
	"bytes"
	"slices"

	"github.com/gowebpki/jcs"
)

// DecodeCard reads and validates a card in either shape (AAP section 4). The error is a
// *Refusal with every fault found. DecodeCard does not parse conditions; aap.Register does. The
// card keeps a copy of raw, from opening to closing brace, and its strings alias that copy.
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

// cardDecoder reads one card. It need not be fast: a card is read once and used for many
// verdicts.
type cardDecoder struct {
	tableReader
	card     *Card
	autonomy string // the name of the autonomy block in the card's shape
	audit    string // the name of the audit block in the card's shape
}

// decode reads the card (AAP section 4.2).
func (d *cardDecoder) decode() {
	c := d.card
	var mode, aapVersion, cardVersion string
	anyMode := choice(&d.tableReader, &mode, "off", "observe", "nudge", "enforce")
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
		"extensions":        d.optional(d.extensions),
		"signature":         d.optional(into(&c.Signature, d.signature)),
	}, "card_id", "agent_id", "issued_at", "principal", "values")
	d.shape(found)
	c.Version = aapVersion
	if c.Shape == ShapeUnified && cardVersion != "" {
		c.Version = cardVersion
	}
}

// shape finds out which shape the card has. It reports the blocks that this shape lacks and
// those that the card has in both shapes.
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
