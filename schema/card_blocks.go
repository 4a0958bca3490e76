package schema

// principal reads the principal block (AAP section 4.3).
func (d *cardDecoder) principal() {
	p := &d.card.Principal
	d.object(members{
		"type":               choice(&d.tableReader, &p.Type, "human", "organization", "agent", "unspecified"),
		"identifier":         d.optional(into(&p.Identifier, d.identifier)),
		"relationship":       choice(&d.tableReader, &p.Relationship, "delegated_authority", RelationshipAdvisory, "autonomous"),
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
		"hierarchy":      d.optional(choice(&d.tableReader, &v.Hierarchy, "lexicographic", "weighted", "contextual")),
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
			"subsumes":    d.optional(into(&def.Subsumes, d.names)),
		}, "description")
		d.card.Values.Definitions = append(d.card.Values.Definitions, def)
	}
}

// envelope reads the autonomy block (AAP section 4.5); name is its name in the card's shape.
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
			"action":    choice(&d.tableReader, &t.Action, TriggerEscalate, TriggerDeny, TriggerLog),
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
		"amount":   func() { m.Amount, m.Digits = d.amount() },
		"currency": d.optional(into(&m.Currency, d.identifier)),
	}, "amount")
}

// amount reads a number and returns its digits as well, since conditions are made of them. The
// digits must fit into MaxIDBytes.
func (d *cardDecoder) amount() (amount float64, digits string) {
	before := d.dec.InputOffset()
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
		"trace_format":    into(&a.TraceFormat, d.identifier),
		"retention_days":  d.retention,
		"storage":         d.optional(d.storage),
		"queryable":       into(&a.Queryable, d.boolean),
		"query_endpoint":  d.optional(into(&a.QueryEndpoint, d.text)),
		"tamper_evidence": d.optional(choice(&d.tableReader, &a.TamperEvidence, "append_only", TamperSigned, "merkle")),
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
		"type":     choice(&d.tableReader, &a.StorageType, "local", "remote", "distributed"),
		"location": d.optional(into(&a.StorageLocation, d.text)),
	}, "type")
}
