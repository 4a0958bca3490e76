package schema

import (
	"errors"
	"slices"
	"time"
)

// DecodeHandshake reads and validates one message of the handshake (AAP section 6.3); the
// concrete type of the result follows from message_type. request_id and timestamp are required
// (section 9.4). The error is a *Refusal with every fault found, faults of a card inside the
// message included. DecodeHandshake does not check signatures or freshness. The message keeps a
// copy of raw, and its strings alias that copy.
func DecodeHandshake(raw []byte) (Handshake, error) {
	raw = trimSpace(raw)
	if len(raw) > MaxHandshakeBytes {
		return nil, refuse(ReasonTooLarge, "%d bytes, a handshake message may have %d", len(raw), MaxHandshakeBytes)
	}
	raw = slices.Clone(raw)
	var d handshakeDecoder
	kind := d.messageType(raw)
	d.reset(raw)
	m := d.message(kind, raw)
	d.end()
	if err := d.refusal(ReasonInvalidHandshake); err != nil {
		return nil, err
	}
	return m, nil
}

// handshakeDecoder reads one message.
type handshakeDecoder struct {
	reader
}

// messageType looks for the message_type and returns "" where there is none. It reports no
// faults: message does.
func (d *handshakeDecoder) messageType(raw []byte) MessageType {
	d.reset(raw)
	if !d.enter('{', "an object") {
		return ""
	}
	for d.more() {
		if d.name() == "message_type" {
			return MessageType(d.text())
		}
		d.value()
	}
	return ""
}

// message reads a message of the given kind. For an unknown kind it reads the members that all
// messages have, to report their faults.
func (d *handshakeDecoder) message(kind MessageType, raw []byte) Handshake {
	switch kind {
	case MessageCardRequest:
		return d.cardRequest(&CardRequest{Raw: raw})
	case MessageCardResponse:
		return d.cardResponse(&CardResponse{Raw: raw})
	case MessageCoherenceCheck:
		return d.coherenceCheck(&CoherenceCheck{Raw: raw})
	case MessageCoherenceResult:
		return d.coherenceResult(&CoherenceResult{Raw: raw})
	case MessageTaskResult:
		return d.taskResult(&TaskResult{Raw: raw})
	}
	var head CardRequest
	d.envelope(&head.RequestID, &head.Timestamp, &head.Signature, nil)
	return nil
}

// envelope reads a message: the members that all messages have, and the members of its own.
func (d *handshakeDecoder) envelope(id *string, at *time.Time, s **Signature, own members, required ...string) {
	var kind MessageType
	all := members{
		{"message_type", choice(&d.reader, &kind, messageTypes...)},
		{"request_id", into(id, d.identifier)},
		{"timestamp", into(at, d.eventTime)},
		{"signature", d.optional(into(s, d.signature))},
	}
	d.object(append(all, own...), append([]string{"message_type", "request_id", "timestamp"}, required...)...)
}

// cardRequest reads an alignment_card_request (AAP section 6.3.1).
func (d *handshakeDecoder) cardRequest(m *CardRequest) *CardRequest {
	d.envelope(&m.RequestID, &m.Timestamp, &m.Signature, members{
		{"requester", func() { d.agent(&m.Requester) }},
		{"task_context", d.optional(func() {
			m.TaskContext = new(TaskContext)
			d.taskContext(m.TaskContext)
		})},
	}, "requester")
	return m
}

// agent reads the sender of a message.
func (d *handshakeDecoder) agent(r *Requester) {
	d.object(members{
		{"agent_id", into(&r.AgentID, d.identifier)},
		{"card_id", into(&r.CardID, d.identifier)},
	}, "agent_id", "card_id")
}

func (d *handshakeDecoder) taskContext(t *TaskContext) {
	d.object(members{
		{"task_type", into(&t.TaskType, d.identifier)},
		{"values_required", d.list(&t.ValuesRequired, MaxHandshakeNames)},
		{"data_categories", d.list(&t.DataCategories, MaxHandshakeNames)},
	}, "task_type")
}

// cardResponse reads an alignment_card_response (AAP section 6.3.2).
func (d *handshakeDecoder) cardResponse(m *CardResponse) *CardResponse {
	d.envelope(&m.RequestID, &m.Timestamp, &m.Signature, members{
		{"alignment_card", func() { d.card(m) }},
		{"signed_by", d.optional(word(d, &m.SignedBy))},
	}, "alignment_card")
	return m
}

// card reads the card of a response as DecodeCard does.
func (d *handshakeDecoder) card(m *CardResponse) {
	raw := d.value()
	if d.err != nil {
		return
	}
	at := d.pointer()
	card, err := DecodeCard(raw)
	var refusal *Refusal
	if errors.As(err, &refusal) {
		for _, f := range refusal.Faults {
			d.faultAt(at+f.Pointer, "%s", f.Message)
		}
		return
	}
	m.AlignmentCard, m.Card = card.Raw, card
}

// coherenceCheck reads a value_coherence_check (AAP section 6.3.3).
func (d *handshakeDecoder) coherenceCheck(m *CoherenceCheck) *CoherenceCheck {
	d.envelope(&m.RequestID, &m.Timestamp, &m.Signature, members{
		{"initiator_card_id", into(&m.InitiatorCardID, d.identifier)},
		{"responder_card_id", into(&m.ResponderCardID, d.identifier)},
		{"proposed_collaboration", func() { d.collaboration(&m.Proposal) }},
	}, "initiator_card_id", "responder_card_id", "proposed_collaboration")
	return m
}

func (d *handshakeDecoder) collaboration(c *Collaboration) {
	d.object(members{
		{"task_type", into(&c.TaskType, d.identifier)},
		{"values_intersection", d.list(&c.ValuesIntersection, MaxHandshakeNames)},
		{"data_sharing", d.optional(func() { c.DataSharing = d.dataSharing() })},
		{"autonomy_scope", d.optional(func() { c.AutonomyScope = d.autonomyScope() })},
		{"modified_values", d.optional(func() { c.ModifiedValues = d.modifiedValues() })},
	}, "task_type")
}

func (d *handshakeDecoder) dataSharing() *DataSharing {
	s := new(DataSharing)
	d.object(members{
		{"from_initiator", d.list(&s.FromInitiator, MaxHandshakeNames)},
		{"from_responder", d.list(&s.FromResponder, MaxHandshakeNames)},
	})
	return s
}

func (d *handshakeDecoder) autonomyScope() *AutonomyScope {
	s := new(AutonomyScope)
	d.object(members{
		{"initiator_actions", d.list(&s.InitiatorActions, MaxScopeActions)},
		{"responder_actions", d.list(&s.ResponderActions, MaxScopeActions)},
	})
	return s
}

func (d *handshakeDecoder) modifiedValues() *ModifiedValues {
	m := new(ModifiedValues)
	d.object(members{
		{"initiator_concession", d.optional(into(&m.InitiatorConcession, d.concession))},
		{"responder_concession", d.optional(into(&m.ResponderConcession, d.concession))},
	})
	return m
}

// concession reads a value or an array of values.
func (d *handshakeDecoder) concession() Concession {
	if d.err == nil && d.peek() == '"' {
		return Concession{d.identifier()}
	}
	var values []string
	d.list(&values, MaxHandshakeNames)()
	return values
}

// list returns a function that reads an array of at most that many names; null is an empty
// array.
func (d *handshakeDecoder) list(dst *[]string, most int) func() {
	return d.optional(func() {
		*dst = d.names()
		if len(*dst) > most {
			d.fault("%d names, at most %d are allowed", len(*dst), most)
		}
	})
}

// taskResult reads a task_result (AAP section 3.2, step 6).
func (d *handshakeDecoder) taskResult(m *TaskResult) *TaskResult {
	d.envelope(&m.RequestID, &m.Timestamp, &m.Signature, members{
		{"responder", func() { d.agent(&m.Responder) }},
		{"status", choice(&d.reader, &m.Status, TaskCompleted, TaskFailed, TaskDeclined)},
		{"result", d.optional(func() { m.Result = d.opaque() })},
		{"trace_reference", func() { d.traceReference(&m.TraceReference) }},
	}, "responder", "status", "trace_reference")
	return m
}

func (d *handshakeDecoder) traceReference(r *TraceReference) {
	d.object(members{
		{"trace_ids", func() {
			r.TraceIDs = d.names()
			if n := len(r.TraceIDs); d.err == nil && (n == 0 || n > MaxHandshakeNames) {
				d.fault("%d traces, want 1 to %d", n, MaxHandshakeNames)
			}
		}},
		{"session_id", d.optional(into(&r.SessionID, d.identifier))},
	}, "trace_ids")
}

// coherenceResult reads a coherence_result (AAP section 6.3.4). Plumbline's additional members
// are optional.
func (d *handshakeDecoder) coherenceResult(m *CoherenceResult) *CoherenceResult {
	o := &m.Outcome
	o.Conditions, o.Reasons, o.ResolutionSteps = []string{}, []Reason{}, []ResolutionStep{}
	d.envelope(&m.RequestID, &m.Timestamp, &m.Signature, members{
		{"coherence", func() { d.coherence(&m.Coherence) }},
		{"proceed", into(&o.Proceed, d.boolean)},
		{"conditions", d.optional(func() { o.Conditions = d.sentences() })},
		{"proposed_resolution", d.optional(func() { o.ProposedResolution = d.resolution() })},
		{"reasons", d.optional(func() { o.Reasons = each(d, d.reason) })},
		{"resolution_steps", d.optional(func() { o.ResolutionSteps = each(d, d.step) })},
		{"coherence_metadata", d.optional(func() { d.metadata(&o.Metadata) })},
		{"signed_by", d.optional(word(d, &m.SignedBy))},
	}, "coherence", "proceed")
	if d.err == nil && o.Proceed && !m.Coherence.Compatible {
		d.faultAt("/proceed", "must not be true of agents that are not compatible")
	}
	return m
}

func (d *handshakeDecoder) coherence(c *Coherence) {
	d.object(members{
		{"compatible", into(&c.Compatible, d.boolean)},
		{"score", func() { c.Score, _ = d.fraction() }},
		{"value_alignment", func() { d.alignment(&c.Alignment) }},
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
		{"matched", list(&a.Matched)},
		{"unmatched", list(&a.Unmatched)},
		{"conflicts", d.optional(func() { a.Conflicts = each(d, d.conflict) })},
	})
}

func (d *handshakeDecoder) conflict() (c ValueConflict) {
	d.object(members{
		{"initiator_value", into(&c.InitiatorValue, d.text)},
		{"responder_value", into(&c.ResponderValue, d.text)},
		{"conflict_type", into(&c.ConflictType, d.identifier)},
		{"description", into(&c.Description, d.text)},
		{"refused_by", d.optional(word(d, &c.RefusedBy))},
		{"resolved_by", d.optional(word(d, &c.ResolvedBy))},
	}, "initiator_value", "responder_value", "conflict_type", "description")
	return c
}

func (d *handshakeDecoder) resolution() *ProposedResolution {
	r := new(ProposedResolution)
	d.object(members{
		{"type", word(d, &r.Type)},
		{"reason", into(&r.Reason, d.text)},
		{"alternative", d.optional(func() { r.Alternative = d.alternative() })},
		{"escalation_contacts", d.optional(func() { r.Contacts = each(d, d.contact) })},
	}, "type", "reason")
	return r
}

func (d *handshakeDecoder) alternative() *ModifiedScope {
	s := new(ModifiedScope)
	d.object(members{
		{"type", d.optional(word(d, &s.Type))},
		{"description", d.optional(into(&s.Description, d.text))},
		{"modified_values", d.optional(func() { s.ModifiedValues = d.modifiedValues() })},
		{"autonomy_scope", d.optional(func() { s.AutonomyScope = d.autonomyScope() })},
		{"data_sharing", d.optional(func() { s.DataSharing = d.dataSharing() })},
	})
	return s
}

func (d *handshakeDecoder) contact() (c Contact) {
	d.object(members{
		{"side", word(d, &c.Side)},
		{"agent_id", d.optional(into(&c.AgentID, d.text))},
		{"escalation_contact", d.optional(into(&c.Contact, d.text))},
	})
	return c
}

func (d *handshakeDecoder) reason() (r Reason) {
	d.object(members{
		{"code", into(&r.Code, d.identifier)},
		{"side", d.optional(word(d, &r.Side))},
		{"agent_id", d.optional(into(&r.AgentID, d.text))},
		{"card_id", d.optional(into(&r.CardID, d.text))},
		{"description", d.optional(into(&r.Description, d.text))},
	}, "code")
	return r
}

func (d *handshakeDecoder) step() (s ResolutionStep) {
	d.object(members{
		{"step", word(d, &s.Step)},
		{"subject", d.optional(into(&s.Subject, d.text))},
		{"side", d.optional(word(d, &s.Side))},
		{"outcome", word(d, &s.Outcome)},
		{"reason", d.optional(into(&s.Reason, d.text))},
	}, "step", "outcome")
	return s
}

func (d *handshakeDecoder) metadata(m *CoherenceMetadata) {
	d.object(members{
		{"engine_version", d.optional(into(&m.EngineVersion, d.text))},
		{"profile", d.optional(into(&m.Profile, d.text))},
		{"min_coherence", d.optional(func() { m.MinCoherence, _ = d.fraction() })},
		{"methodology", d.optional(into(&m.Methodology, d.text))},
		{"required_from", d.optional(word(d, &m.RequiredFrom))},
		{"initiator_card_digest", d.optional(func() { d.digest(&m.InitiatorDigest) })},
		{"responder_card_digest", d.optional(func() { d.digest(&m.ResponderDigest) })},
		{"assessed_at", d.optional(into(&m.AssessedAt, d.eventTime))},
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
