package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// MessageType is one of the four messages of the value coherence handshake (AAP section 6.3),
// or the task_result that follows them (section 3.2).
type MessageType string

// The messages, in the order in which they are sent.
const (
	MessageCardRequest     MessageType = "alignment_card_request"
	MessageCardResponse    MessageType = "alignment_card_response"
	MessageCoherenceCheck  MessageType = "value_coherence_check"
	MessageCoherenceResult MessageType = "coherence_result"
	MessageTaskResult      MessageType = "task_result"
)

// messageTypes lists the messages in the order of the handshake.
var messageTypes = []MessageType{
	MessageCardRequest, MessageCardResponse, MessageCoherenceCheck, MessageCoherenceResult, MessageTaskResult,
}

// The limits of handshake messages, in addition to the limits of every record.
const (
	MaxHandshakeBytes = 768 << 10 // a message; MaxCardBytes bounds a card inside it
	MaxHandshakeNames = 1024      // entries of one list of a request or a check
	MaxScopeActions   = 256       // actions that a proposal gives to a side
	MaxResultNames    = 4096      // entries of one list of a result
)

// ReasonInvalidHandshake is the reason of a Refusal: the message breaks AAP
// section 6.3 or a limit.
const ReasonInvalidHandshake = "invalid_handshake"

// Handshake is one message of the handshake: *CardRequest, *CardResponse, *CoherenceCheck,
// *CoherenceResult or *TaskResult. encoding/json writes all of them in a stable member order,
// with message_type first.
type Handshake interface {
	// Type returns the message_type.
	Type() MessageType
	// ID returns the request_id, which all messages of a handshake share.
	ID() string
	// Time returns the timestamp, in UTC.
	Time() time.Time
	// Signed returns the signature, nil where there is none, and the JSON object that it
	// covers: the card of a card response, the message itself otherwise. The signature does not
	// cover the object's own member "signature". The object is nil in a message that was not
	// decoded.
	Signed() (object []byte, s *Signature)
}

// CardRequest asks a responder for its card (AAP section 6.3.1).
type CardRequest struct {
	RequestID   string       `json:"request_id"`
	Requester   Requester    `json:"requester"`
	TaskContext *TaskContext `json:"task_context,omitempty"`
	Timestamp   time.Time    `json:"timestamp"`
	Signature   *Signature   `json:"signature,omitempty"`

	Raw []byte `json:"-"` // the bytes received; nil in a message that was not decoded
}

// Requester is the agent that sends a message, and the card it acts under.
type Requester struct {
	AgentID string `json:"agent_id"`
	CardID  string `json:"card_id"`
}

// TaskContext is the task that the handshake is about.
type TaskContext struct {
	TaskType       string   `json:"task_type"`
	ValuesRequired []string `json:"values_required,omitempty"`
	DataCategories []string `json:"data_categories,omitempty"`
}

// Signer says whose key signed an answer. It is empty where the answer does not say.
type Signer string

// The two signers of an answer.
const (
	SignedByService Signer = "service" // the key of the service that answers for the agent
	SignedByAgent   Signer = "agent"   // a key that the agent's card registers
)

// CardResponse carries the responder's card (AAP section 6.3.2). Its signature covers the card
// and therefore not SignedBy.
type CardResponse struct {
	RequestID     string          `json:"request_id"`
	AlignmentCard json.RawMessage `json:"alignment_card"`
	SignedBy      Signer          `json:"signed_by,omitempty"`
	Signature     *Signature      `json:"signature,omitempty"`
	Timestamp     time.Time       `json:"timestamp"`

	Card *Card  `json:"-"` // AlignmentCard decoded; set by DecodeHandshake
	Raw  []byte `json:"-"`
}

// CoherenceCheck proposes a collaboration (AAP section 6.3.3). It names cards by
// id; the responder resolves them.
type CoherenceCheck struct {
	RequestID       string        `json:"request_id"`
	InitiatorCardID string        `json:"initiator_card_id"`
	ResponderCardID string        `json:"responder_card_id"`
	Proposal        Collaboration `json:"proposed_collaboration"`
	Timestamp       time.Time     `json:"timestamp"`
	Signature       *Signature    `json:"signature,omitempty"`

	Raw []byte `json:"-"`
}

// Collaboration is proposed_collaboration. Section 6.3.3 does not have ModifiedValues: an
// initiator uses it to accept a modified scope that a result offered (section 6.5, step 2).
type Collaboration struct {
	TaskType           string          `json:"task_type"`
	ValuesIntersection []string        `json:"values_intersection,omitempty"`
	DataSharing        *DataSharing    `json:"data_sharing,omitempty"`
	AutonomyScope      *AutonomyScope  `json:"autonomy_scope,omitempty"`
	ModifiedValues     *ModifiedValues `json:"modified_values,omitempty"`
}

// DataSharing lists the data categories that each side shares.
type DataSharing struct {
	FromInitiator []string `json:"from_initiator,omitempty"`
	FromResponder []string `json:"from_responder,omitempty"`
}

// AutonomyScope lists the actions that each side may take.
type AutonomyScope struct {
	InitiatorActions []string `json:"initiator_actions,omitempty"`
	ResponderActions []string `json:"responder_actions,omitempty"`
}

// ModifiedValues lists the values that each side gives up for this task.
type ModifiedValues struct {
	InitiatorConcession Concession `json:"initiator_concession,omitempty"`
	ResponderConcession Concession `json:"responder_concession,omitempty"`
}

// Concession is a list of values. A single value is written as a string, as in the
// specification's example, and several as an array.
type Concession []string

// CoherenceResult is the responder's answer to a check (AAP section 6.3.4).
type CoherenceResult struct {
	RequestID string    `json:"request_id"`
	Coherence Coherence `json:"coherence"`
	Outcome
	Timestamp time.Time  `json:"timestamp"`
	SignedBy  Signer     `json:"signed_by,omitempty"`
	Signature *Signature `json:"signature,omitempty"`

	Raw []byte `json:"-"`
}

// TaskResult ends the task of a handshake (AAP section 3.2, step 6). The responder reports how
// the task went, and which of its traces show what it did. The section names the message but no
// members; the members are Plumbline's.
type TaskResult struct {
	RequestID      string          `json:"request_id"` // of the handshake
	Responder      Requester       `json:"responder"`  // the agent that reports
	Status         TaskStatus      `json:"status"`
	Result         json.RawMessage `json:"result,omitempty"` // any JSON value
	TraceReference TraceReference  `json:"trace_reference"`
	Timestamp      time.Time       `json:"timestamp"`
	Signature      *Signature      `json:"signature,omitempty"`

	Raw []byte `json:"-"`
}

// TaskStatus is the outcome of a task.
type TaskStatus string

// The three outcomes of a task.
const (
	TaskCompleted TaskStatus = "completed"
	TaskFailed    TaskStatus = "failed"
	TaskDeclined  TaskStatus = "declined" // it was not started
)

// TraceReference names the responder's traces that were generated during the task.
type TraceReference struct {
	TraceIDs  []string `json:"trace_ids"` // 1 to MaxHandshakeNames
	SessionID string   `json:"session_id,omitempty"`
}

// TaskReceipt answers a TaskResult once the message is durable.
type TaskReceipt struct {
	RequestID  string    `json:"request_id"`
	SHA256     Digest    `json:"sha256"` // of the message's JCS form (RFC 8785)
	ReceivedAt time.Time `json:"received_at"`
}

// The methods of Handshake. A card response signs its card (AAP section 6.3.2), any other message
// itself.

func (*CardRequest) Type() MessageType              { return MessageCardRequest }
func (m *CardRequest) ID() string                   { return m.RequestID }
func (m *CardRequest) Time() time.Time              { return m.Timestamp }
func (m *CardRequest) Signed() ([]byte, *Signature) { return m.Raw, m.Signature }
func (m CardRequest) MarshalJSON() ([]byte, error) {
	type plain CardRequest
	m.Timestamp = m.Timestamp.UTC()
	return withType(m.Type(), plain(m))
}

func (*CardResponse) Type() MessageType              { return MessageCardResponse }
func (m *CardResponse) ID() string                   { return m.RequestID }
func (m *CardResponse) Time() time.Time              { return m.Timestamp }
func (m *CardResponse) Signed() ([]byte, *Signature) { return m.AlignmentCard, m.Signature }
func (m CardResponse) MarshalJSON() ([]byte, error) {
	type plain CardResponse
	m.Timestamp = m.Timestamp.UTC()
	return withType(m.Type(), plain(m))
}

func (*CoherenceCheck) Type() MessageType              { return MessageCoherenceCheck }
func (m *CoherenceCheck) ID() string                   { return m.RequestID }
func (m *CoherenceCheck) Time() time.Time              { return m.Timestamp }
func (m *CoherenceCheck) Signed() ([]byte, *Signature) { return m.Raw, m.Signature }
func (m CoherenceCheck) MarshalJSON() ([]byte, error) {
	type plain CoherenceCheck
	m.Timestamp = m.Timestamp.UTC()
	return withType(m.Type(), plain(m))
}

func (*CoherenceResult) Type() MessageType              { return MessageCoherenceResult }
func (m *CoherenceResult) ID() string                   { return m.RequestID }
func (m *CoherenceResult) Time() time.Time              { return m.Timestamp }
func (m *CoherenceResult) Signed() ([]byte, *Signature) { return m.Raw, m.Signature }
func (m CoherenceResult) MarshalJSON() ([]byte, error) {
	type plain CoherenceResult
	m.Timestamp = m.Timestamp.UTC()
	return withType(m.Type(), plain(m))
}

func (*TaskResult) Type() MessageType              { return MessageTaskResult }
func (m *TaskResult) ID() string                   { return m.RequestID }
func (m *TaskResult) Time() time.Time              { return m.Timestamp }
func (m *TaskResult) Signed() ([]byte, *Signature) { return m.Raw, m.Signature }
func (m TaskResult) MarshalJSON() ([]byte, error) {
	type plain TaskResult
	m.Timestamp = m.Timestamp.UTC()
	return withType(m.Type(), plain(m))
}

// withType writes a message with message_type as its first member.
func withType(kind MessageType, message any) ([]byte, error) {
	raw, err := json.Marshal(message)
	if err != nil {
		return nil, err
	}
	return append(append(append([]byte(`{"message_type":"`), kind...), `",`...), raw[1:]...), nil
}

// EncodeHandshake returns the bytes to send. The error is a *Refusal where the message exceeds
// MaxHandshakeBytes.
func EncodeHandshake(m Handshake) ([]byte, error) {
	raw, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("write a %s: %w", m.Type(), err)
	}
	if len(raw) > MaxHandshakeBytes {
		return nil, refuse(ReasonTooLarge, "a %s of %d bytes, a handshake message may have %d", m.Type(), len(raw), MaxHandshakeBytes)
	}
	return raw, nil
}

// MarshalJSON writes one value as a string, several as an array.
func (c Concession) MarshalJSON() ([]byte, error) {
	if len(c) == 1 {
		return json.Marshal(c[0])
	}
	return json.Marshal([]string(c))
}

// The errors of Follows (AAP section 9.4).
var (
	ErrForeignRequest = errors.New("the message has another request_id")
	ErrOutOfOrder     = errors.New("the message is not the next of its handshake")
	ErrOtherCard      = errors.New("the message names another card")
)

// Follows checks that next answers or continues previous: it has the same request_id, and its
// type is the next one in the order of the handshake. A check that follows a card response must
// name that card as the responder's. The error wraps ErrForeignRequest, ErrOutOfOrder or
// ErrOtherCard.
func Follows(previous, next Handshake) error {
	if previous.ID() != next.ID() {
		return fmt.Errorf("%s after %s: %w: %q, want %q", next.Type(), previous.Type(), ErrForeignRequest, clip(next.ID()), clip(previous.ID()))
	}
	if slices.Index(messageTypes, next.Type()) != slices.Index(messageTypes, previous.Type())+1 {
		return fmt.Errorf("%s after %s: %w", next.Type(), previous.Type(), ErrOutOfOrder)
	}
	check, checks := next.(*CoherenceCheck)
	if !checks {
		return nil
	}
	if card := previous.(*CardResponse).Card; card != nil && check.ResponderCardID != card.CardID {
		return fmt.Errorf("%s: %w as the responder's: %q, want %q", next.Type(), ErrOtherCard, clip(check.ResponderCardID), clip(card.CardID))
	}
	return nil
}
