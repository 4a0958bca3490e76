package schema

// coherenceResult reads a coherence_result (AAP section 6.3.4). Plumbline's additional members
// are optional.
func (d *handshakeDecoder) coherenceResult(m *CoherenceResult) {
	o := &m.Outcome
	o.Conditions, o.Reasons, o.ResolutionSteps = []string{}, []Reason{}, []ResolutionStep{}
	d.envelope(&m.RequestID, &m.Timestamp, &m.Signature, members{
		"coherence":           func() { d.coherence(&m.Coherence) },
		"proceed":             into(&o.Proceed, d.boolean),
		"conditions":          d.optional(func() { o.Conditions = d.sentences() }),
		"proposed_resolution": d.optional(func() { o.ProposedResolution = d.resolution() }),
		"reasons":             d.optional(func() { o.Reasons = each(d, d.reason) }),
		"resolution_steps":    d.optional(func() { o.ResolutionSteps = each(d, d.step) }),
		"coherence_metadata":  d.optional(func() { d.metadata(&o.Metadata) }),
		"signed_by":           d.optional(word(d, &m.SignedBy)),
	}, "coherence", "proceed")
	if d.err == nil && o.Proceed && !m.Coherence.Compatible {
		d.faultAt("/proceed", "must not be true of agents that are not compatible")
	}
}

func (d *handshakeDecoder) coherence(c *Coherence) {
	d.object(members{
		"compatible":      into(&c.Compatible, d.boolean),
		"score":           func() { c.Score, _ = d.fraction() },
		"value_alignment": func() { d.alignment(&c.Alignment) },
	}, "compatible", "score", "value_alignment")
}

func (d *handshakeDecoder) alignment(a *ValueAlignment) {
	a.Matched, a.Unmatched, a.Conflicts = []string{}, []string{}, []ValueConflict{}
	list := func(dst *[]string) func() {
		return d.optional(func() {
			var names []string
			d.list(&names, MaxResultNames)()
			*dst = append(*dst, names...)
		})
	}
	d.object(members{
		"matched":   list(&a.Matched),
		"unmatched": list(&a.Unmatched),
		"conflicts": d.optional(func() { a.Conflicts = each(d, d.conflict) }),
	})
}

func (d *handshakeDecoder) conflict() (c ValueConflict) {
	d.object(members{
		"initiator_value": into(&c.InitiatorValue, d.text),
		"responder_value": into(&c.ResponderValue, d.text),
		"conflict_type":   into(&c.ConflictType, d.identifier),
		"description":     into(&c.Description, d.text),
		"refused_by":      d.optional(word(d, &c.RefusedBy)),
		"resolved_by":     d.optional(word(d, &c.ResolvedBy)),
	}, "initiator_value", "responder_value", "conflict_type", "description")
	return c
}

func (d *handshakeDecoder) resolution() *ProposedResolution {
	r := new(ProposedResolution)
	d.object(members{
		"type":                word(d, &r.Type),
		"reason":              into(&r.Reason, d.text),
		"alternative":         d.optional(func() { r.Alternative = d.alternative() }),
		"escalation_contacts": d.optional(func() { r.Contacts = each(d, d.contact) }),
	}, "type", "reason")
	return r
}

func (d *handshakeDecoder) alternative() *ModifiedScope {
	s := new(ModifiedScope)
	d.object(members{
		"type":            d.optional(word(d, &s.Type)),
		"description":     d.optional(into(&s.Description, d.text)),
		"modified_values": d.optional(func() { s.ModifiedValues = d.modifiedValues() }),
		"autonomy_scope":  d.optional(func() { s.AutonomyScope = d.autonomyScope() }),
		"data_sharing":    d.optional(func() { s.DataSharing = d.dataSharing() }),
	})
	return s
}

func (d *handshakeDecoder) contact() (c Contact) {
	d.object(members{
		"side":               word(d, &c.Side),
		"agent_id":           d.optional(into(&c.AgentID, d.text)),
		"escalation_contact": d.optional(into(&c.Contact, d.text)),
	})
	return c
}

func (d *handshakeDecoder) reason() (r Reason) {
	d.object(members{
		"code":        into(&r.Code, d.identifier),
		"side":        d.optional(word(d, &r.Side)),
		"agent_id":    d.optional(into(&r.AgentID, d.text)),
		"card_id":     d.optional(into(&r.CardID, d.text)),
		"description": d.optional(into(&r.Description, d.text)),
	}, "code")
	return r
}

func (d *handshakeDecoder) step() (s ResolutionStep) {
	d.object(members{
		"step":    word(d, &s.Step),
		"subject": d.optional(into(&s.Subject, d.text)),
		"side":    d.optional(word(d, &s.Side)),
		"outcome": word(d, &s.Outcome),
		"reason":  d.optional(into(&s.Reason, d.text)),
	}, "step", "outcome")
	return s
}

func (d *handshakeDecoder) metadata(m *CoherenceMetadata) {
	d.object(members{
		"engine_version":        d.optional(into(&m.EngineVersion, d.text)),
		"profile":               d.optional(into(&m.Profile, d.text)),
		"min_coherence":         d.optional(func() { m.MinCoherence, _ = d.fraction() }),
		"methodology":           d.optional(into(&m.Methodology, d.text)),
		"required_from":         d.optional(word(d, &m.RequiredFrom)),
		"initiator_card_digest": d.optional(func() { d.digest(&m.InitiatorDigest) }),
		"responder_card_digest": d.optional(func() { d.digest(&m.ResponderDigest) }),
		"assessed_at":           d.optional(into(&m.AssessedAt, d.eventTime)),
	})
}

func (d *handshakeDecoder) digest(dst *Digest) {
	text := d.text()
	if d.err != nil || text == "" {
		return
	}
	if err := dst.UnmarshalText([]byte(text)); err != nil {
		d.fault("%v", err)
	}
}

// sentences reads an array of texts.
func (d *handshakeDecoder) sentences() []string {
	texts := d.texts([]string{})
	if len(texts) > MaxResultNames {
		d.fault("%d texts, at most %d are allowed", len(texts), MaxResultNames)
	}
	return texts
}

// word returns a function that reads a non-empty text. Other implementations may use texts that
// Plumbline does not know.
func word[T ~string](d *handshakeDecoder, dst *T) func() {
	return func() { *dst = T(d.identifier()) }
}

// each reads an array with read for each element. It never returns nil, so an empty array is
// written as [] again.
func each[T any](d *handshakeDecoder, read func() T) []T {
	out := []T{}
	if !d.enter('[', "an array of objects") {
		return out
	}
	for d.more() {
		out = append(out, read())
	}
	if len(out) > MaxResultNames {
		d.fault("%d entries, at most %d are allowed", len(out), MaxResultNames)
	}
	return out
}
