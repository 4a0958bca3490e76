package schema

import (
	"strconv"
	"strings"
)

// action reads the action block (AAP section 5.4).
func (d *Decoder) action(a *Action) {
	if !d.enter('{', "an object") {
		return
	}
	var seen present
	for d.more() {
		switch name := d.name(); name {
		case "type":
			a.Type = oneOf(&d.reader, d.text(), ActionRecommend, ActionExecute, ActionEscalate, ActionDeny)
			seen |= hasType
		case "name":
			a.Name = d.identifier()
			seen |= hasName
		case "category":
			a.Category = oneOf(&d.reader, d.text(), CategoryBounded, CategoryEscalation, CategoryForbidden)
			seen |= hasCategory
		case "target":
			d.target(&a.Target)
		case "parameters":
			if !d.null() {
				a.Parameters = d.opaqueMembers(a.Parameters)
			}
		default:
			d.opaque()
			d.ignored(name, actionBlock)
		}
	}
	d.missing("/action", seen, actionMembers)
}

func (d *Decoder) target(t *Target) {
	if d.null() || !d.enter('{', "an object") {
		return
	}
	for d.more() {
		switch name := d.name(); name {
		case "type":
			t.Type = d.text()
		case "identifier":
			t.Identifier = d.text()
		default:
			d.opaque()
			d.ignored(name, targetBlock)
		}
	}
}

// decision reads the decision block (AAP section 5.5).
func (d *Decoder) decision(b *Decision) {
	if !d.enter('{', "an object") {
		return
	}
	var seen present
	for d.more() {
		switch name := d.name(); name {
		case "alternatives_considered":
			d.alternatives(b)
			seen |= hasAlternatives
		case "selected":
			b.Selected = d.identifier()
			seen |= hasSelected
		case "selection_reasoning":
			b.Reasoning = d.text()
			seen |= hasReasoning
		case "values_applied":
			b.ValuesApplied = d.texts(b.ValuesApplied)
			seen |= hasValues
		case "confidence":
			if !d.null() {
				b.Confidence, b.HasConfidence = d.fraction()
			}
		default:
			d.opaque()
			d.ignored(name, decisionBlock)
		}
	}
	d.missing("/decision", seen, decisionMembers)
	if d.err == nil && b.Selected != "" && len(b.Alternatives) > 0 && b.SelectedAlternative() == nil {
		d.faultAt("/decision/selected", "no alternative has the option_id %q", clip(b.Selected))
	}
}

func (d *Decoder) alternatives(b *Decision) {
	if !d.enter('[', "an array of alternatives") {
		return
	}
	for d.more() {
		if len(b.Alternatives) == MaxAlternatives {
			d.opaque()
			d.fault("more than %d alternatives", MaxAlternatives)
			continue
		}
		b.Alternatives = appendReused(b.Alternatives)
		d.alternative(b)
	}
	if d.err == nil && len(b.Alternatives) == 0 {
		d.faultAt("/decision/alternatives_considered", "at least one alternative is required")
	}
}

// appendReused grows s by one element and keeps the capacity of that element's slices.
func appendReused(s []Alternative) []Alternative {
	if len(s) == cap(s) {
		return append(s, Alternative{})
	}
	s = s[:len(s)+1]
	last := &s[len(s)-1]
	*last = Alternative{ScoringFactors: last.ScoringFactors[:0], Flags: last.Flags[:0]}
	return s
}

// alternative reads the last of b.Alternatives.
func (d *Decoder) alternative(b *Decision) {
	a := &b.Alternatives[len(b.Alternatives)-1]
	if !d.enter('{', "an object") {
		return
	}
	var seen present
	for d.more() {
		switch name := d.name(); name {
		case "option_id":
			a.OptionID = d.identifier()
			seen |= hasOptionID
			for i := range b.Alternatives[:len(b.Alternatives)-1] {
				if a.OptionID != "" && a.OptionID == b.Alternatives[i].OptionID {
					d.fault("%q is the option_id of an earlier alternative too", clip(a.OptionID))
					break
				}
			}
		case "description":
			a.Description = d.text()
			seen |= hasDescription
		case "score":
			if !d.null() {
				a.Score, a.HasScore = d.fraction()
			}
		case "scoring_factors":
			if !d.null() {
				a.ScoringFactors = d.opaqueMembers(a.ScoringFactors)
			}
		case "flags":
			if !d.null() {
				a.Flags = d.texts(a.Flags)
			}
		default:
			d.opaque()
			d.ignored(name, alternativeBlock)
		}
	}
	if seen != hasOptionID|hasDescription {
		d.missing(d.pointer(), seen, alternativeMembers)
	}
}

// escalation reads the escalation block (AAP section 5.6).
func (d *Decoder) escalation(e *Escalation) {
	if d.null() || !d.enter('{', "an object") {
		return
	}
	e.Present = true
	for d.more() {
		switch name := d.name(); name {
		case "evaluated":
			e.Evaluated = d.boolean()
		case "triggers_checked":
			d.triggersChecked(e)
		case "required":
			e.Required = d.boolean()
		case "reason":
			e.Reason = d.optionalText()
		case "escalation_id":
			e.EscalationID = d.optionalText()
		case "escalation_status":
			if !d.null() {
				e.Status = oneOf(&d.reader, d.text(),
					EscalationPending, EscalationApproved, EscalationDenied, EscalationTimeout)
			}
		case "principal_response":
			d.response(&e.Response)
		default:
			d.opaque()
			d.ignored(name, escalationBlock)
		}
	}
}

func (r *reader) optionalText() string {
	if r.null() {
		return ""
	}
	return r.text()
}

func (d *Decoder) triggersChecked(e *Escalation) {
	if d.null() || !d.enter('[', "an array of triggers") {
		return
	}
	for d.more() {
		var c TriggerCheck
		if d.enter('{', "an object") {
			for d.more() {
				switch name := d.name(); name {
				case "trigger":
					c.Trigger = d.text()
				case "matched":
					c.Matched = d.boolean()
				case "value_observed":
					c.ValueObserved = d.opaque()
				default:
					d.opaque()
					d.ignored(name, triggerBlock)
				}
			}
		}
		e.TriggersChecked = append(e.TriggersChecked, c)
	}
}

func (d *Decoder) response(p *PrincipalResponse) {
	if d.null() || !d.enter('{', "an object") {
		return
	}
	for d.more() {
		switch name := d.name(); name {
		case "decision":
			p.Decision = d.optionalText()
		case "timestamp":
			if !d.null() {
				p.Timestamp = d.timestamp()
			}
		case "conditions":
			if !d.null() {
				p.Conditions = d.texts(nil)
			}
		default:
			d.opaque()
			d.ignored(name, responseBlock)
		}
	}
}

// context reads the context block (AAP section 5.7).
func (d *Decoder) context(c *Context) {
	if d.null() || !d.enter('{', "an object") {
		return
	}
	for d.more() {
		name, from := d.name(), d.offset()
		d.contextMember(c, name)
		if d.err == nil {
			c.Members = append(c.Members, Member{Name: name, Value: d.span(from)})
		}
	}
}

func (d *Decoder) contextMember(c *Context, name string) {
	if d.null() {
		return
	}
	switch name {
	case "session_id":
		c.SessionID = d.identifier()
		if strings.HasPrefix(c.SessionID, syntheticPrefix) {
			d.fault("session ids beginning with %q are reserved", syntheticPrefix)
		}
	case "conversation_turn":
		c.ConversationTurn, c.HasTurn = d.natural()
	case "prior_trace_ids":
		c.PriorTraceIDs = d.texts(c.PriorTraceIDs)
	case "environment":
		c.Environment = d.opaqueMembers(c.Environment)
	case "metadata":
		d.metadata(c)
	default:
		d.opaque()
		d.misspelt(name, contextBlock)
	}
}

// metadata reads context.metadata. Its names belong to the publisher, except three of
// Plumbline's: session_end, sequence_number and execution. A member with one of these names but
// another type or range belongs to another convention: it stays in the record and is ignored.
// Refusing a record because of it would lose evidence.
func (d *Decoder) metadata(c *Context) {
	if !d.enter('{', "an object") {
		return
	}
	for d.more() {
		name, from := d.name(), d.offset()
		switch {
		case name == "session_end" && d.next('t'):
			c.SessionEnd = d.boolean()
		case name == "sequence_number":
			raw := d.opaque()
			n, ok := wholeNumber(raw)
			c.SequenceNumber, c.HasSequenceNumber = uint64(n), ok
			d.ofType(ok, raw, wholeNumberType)
		case name == "execution" && d.next('{'):
			d.execution(&c.Execution)
		case name == "session_end":
			raw := d.opaque()
			d.ofType(string(raw) == "false", raw, "true or false")
		case name == "execution":
			d.ofType(false, d.opaque(), "an object")
		default:
			d.opaque()
			d.misspelt(name, metadataBlock)
		}
		if d.err == nil {
			c.Metadata = append(c.Metadata, Member{Name: name, Value: d.span(from)})
		}
	}
}

// execution reads metadata.execution. Members of another type or range are ignored, as in
// metadata.
func (d *Decoder) execution(e *Execution) {
	if !d.enter('{', "an object") {
		return
	}
	e.Present = true
	for d.more() {
		switch name := d.name(); {
		case name == "tool_name" && d.next('"'):
			e.ToolName = d.text()
		case name == "inputs":
			e.Inputs = d.opaque()
		case name == "outputs":
			e.Outputs = d.opaque()
		case name == "cost_cents":
			raw := d.opaque()
			cents, ok := wholeNumber(raw)
			if ok = ok && cents <= MaxCostCents; ok {
				e.CostCents = cents
			}
			d.ofType(ok, raw, wholeNumberType)
		case name == "error" && d.next('"'):
			e.Error = d.text()
		case name == "tool_name", name == "error":
			d.ofType(false, d.opaque(), "a string")
		default:
			d.opaque()
			d.ignored(name, executionBlock)
		}
	}
}

// wholeNumber reads raw JSON as a whole number of at least 0; ok is false where it is anything
// else.
func wholeNumber(raw []byte) (n int64, ok bool) {
	if len(raw) == 0 || raw[0] < '0' || raw[0] > '9' {
		return 0, false
	}
	n, err := strconv.ParseInt(alias(raw), 10, 64)
	if err != nil {
		return 0, false
	}
	return n, true
}
