package schema

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"time"
)

// DecodeHandshake reads and validates one message of the handshake (AAP section 6.3); the
// concrete type of the result follows from message_type. request_id and timestamp are required
// (section 9.4). The error is a *Refusal with every fault found, faults of a card inside the
// message included. DecodeHandshake does not check signatures or freshness. The message keeps a
// copy of raw, and its strings alias that copy.
func DecodeHandshake(raw []byte) (Handshake, error) {
	raw = bytes.Trim(raw, " \t\r\n")
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
	tableReader
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
		m := &CardRequest{Raw: raw}
		d.cardRequest(m)
		return m
	case MessageCardResponse:
		m := &CardResponse{Raw: raw}
		d.cardResponse(m)
		return m
	case MessageCoherenceCheck:
		m := &CoherenceCheck{Raw: raw}
		d.coherenceCheck(m)
		return m
	case MessageCoherenceResult:
		m := &CoherenceResult{Raw: raw}
		d.coherenceResult(m)
		return m
	case MessageTaskResult:
		m := &TaskResult{Raw: raw}
		d.taskResult(m)
		return m
	}
	var head CardRequest
	d.envelope(&head.RequestID, &head.Timestamp, &head.Signature, nil)
	return nil
}

// envelope reads a message: the members that all messages have, and the members of its own.
func (d *handshakeDecoder) envelope(id *string, at *time.Time, s **Signature, own members, required ...string) {
	var kind MessageType
	all := members{
		"message_type": choice(&d.tableReader, &kind, messageTypes...),
		"request_id":   into(id, d.identifier),
		"timestamp":    into(at, d.eventTime),
		"signature":    d.optional(into(s, d.signature)),
	}
	maps.Copy(all, own)
	d.object(all, append([]string{"message_type", "request_id", "timestamp"}, required...)...)
}

// cardRequest reads an alignment_card_request (AAP section 6.3.1).
func (d *handshakeDecoder) cardRequest(m *CardRequest) {
	d.envelope(&m.RequestID, &m.Timestamp, &m.Signature, members{
		"requester": func() { d.agent(&m.Requester) },
		"task_context": d.optional(func() {
			m.TaskContext = new(TaskContext)
			d.taskContext(m.TaskContext)
		}),
	}, "requester")
}

// agent reads the sender of a message.
func (d *handshakeDecoder) agent(r *Requester) {
	d.object(members{
		"agent_id": into(&r.AgentID, d.identifier),
		"card_id":  into(&r.CardID, d.identifier),
	}, "agent_id", "card_id")
}

func (d *handshakeDecoder) taskContext(t *TaskContext) {
	d.object(members{
		"task_type":       into(&t.TaskType, d.identifier),
		"values_required": d.list(&t.ValuesRequired, MaxHandshakeNames),
		"data_categories": d.list(&t.DataCategories, MaxHandshakeNames),
	}, "task_type")
}

// cardResponse reads an alignment_card_response (AAP section 6.3.2).
func (d *handshakeDecoder) cardResponse(m *CardResponse) {
	d.envelope(&m.RequestID, &m.Timestamp, &m.Signature, members{
		"alignment_card": func() { d.card(m) },
		"signed_by":      d.optional(word(d, &m.SignedBy)),
	}, "alignment_card")
}

// card reads the card of a response as DecodeCard does.
func (d *handshakeDecoder) card(m *CardResponse) {
	raw := d.value()
	if d.err != nil {
		return
	}
	at := string(d.dec.StackPointer())
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
func (d *handshakeDecoder) coherenceCheck(m *CoherenceCheck) {
	d.envelope(&m.RequestID, &m.Timestamp, &m.Signature, members{
		"initiator_card_id":      into(&m.InitiatorCardID, d.identifier),
		"responder_card_id":      into(&m.ResponderCardID, d.identifier),
		"proposed_collaboration": func() { d.collaboration(&m.Proposal) },
	}, "initiator_card_id", "responder_card_id", "proposed_collaboration")
}

func (d *handshakeDecoder) collaboration(c *Collaboration) {
	d.object(members{
		"task_type":           into(&c.TaskType, d.identifier),
		"values_intersection": d.list(&c.ValuesIntersection, MaxHandshakeNames),
		"data_sharing":        d.optional(func() { c.DataSharing = d.dataSharing() }),
		"autonomy_scope":      d.optional(func() { c.AutonomyScope = d.autonomyScope() }),
		"modified_values":     d.optional(func() { c.ModifiedValues = d.modifiedValues() }),
	}, "task_type")
}

func (d *handshakeDecoder) dataSharing() *DataSharing {
	s := new(DataSharing)
	d.object(members{
		"from_initiator": d.list(&s.FromInitiator, MaxHandshakeNames),
		"from_responder": d.list(&s.FromResponder, MaxHandshakeNames),
	})
	return s
}

func (d *handshakeDecoder) autonomyScope() *AutonomyScope {
	s := new(AutonomyScope)
	d.object(members{
		"initiator_actions": d.list(&s.InitiatorActions, MaxScopeActions),
		"responder_actions": d.list(&s.ResponderActions, MaxScopeActions),
	})
	return s
}

func (d *handshakeDecoder) modifiedValues() *ModifiedValues {
	m := new(ModifiedValues)
	d.object(members{
		"initiator_concession": d.optional(into(&m.InitiatorConcession, d.concession)),
		"responder_concession": d.optional(into(&m.ResponderConcession, d.concession)),
	})
	return m
}

// concession reads a value or an array of values.
func (d *handshakeDecoder) concession() Concession {
	if d.err == nil && d.dec.PeekKind() == '"' {
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
