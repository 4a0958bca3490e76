package schema

import (
	"encoding/json"
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
