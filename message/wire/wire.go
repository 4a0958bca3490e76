package wire

import (
	"encoding/json"

	"github.com/plumbline/plumbline/message"
)

// SignRequest asks for a message to an agent to be signed.
type SignRequest struct {
	AgentID   string    `json:"agent_id"`   // whom it is for
	SessionID string    `json:"session_id"` // in which it holds, and in no other
	Text      string    `json:"text"`
	Intents   *[]string `json:"intents"`  // what it permits; inferred from the text where left out
	Approves  string    `json:"approves"` // the message of another agent that a person consents to
}

// SignedMessage is the answer: the wrapped text for the runtime of the agent, and
// the envelope that goes with it.
type SignedMessage struct {
	message.Envelope
	Wrapped  string             `json:"wrapped"`            // [MSG_AUTH:<mac>] text [/MSG_AUTH]
	Inferred bool               `json:"inferred"`           // the intents were
	Stripped []message.Stripped `json:"stripped"`           // look-alikes taken out of the text
	Approves string             `json:"approves,omitempty"` // the message of another agent that this one approves
	Mode     message.Mode       `json:"mode"`
	Outcome  message.Outcome    `json:"outcome"`          // signed
	Reason   string             `json:"reason,omitempty"` // why the agent will not take it as it is
	Detail   string             `json:"detail,omitempty"`
}

// VerifyRequest asks whether an agent may take a message. AgentID and SessionID
// are the runtime's own: where it stands, not what the message says.
type VerifyRequest struct {
	AgentID   string            `json:"agent_id"`
	SessionID string            `json:"session_id"`
	Wrapped   string            `json:"wrapped"`  // the text as it came, with its wrapper
	Envelope  *message.Envelope `json:"envelope"` // as it was handed out beside it; nil where none came

	// AttemptID is the runtime's own, new for each message that reaches it: asked
	// again under the same, since the answer got lost, the same is answered. Without
	// one the message is a replay then.
	AttemptID string `json:"attempt_id,omitempty"`
}

// Verification is the answer. Text is there where the message goes through, and is
// all that the model is to see of it.
type Verification struct {
	Outcome       message.Outcome    `json:"outcome"` // accepted or rejected
	Mode          message.Mode       `json:"mode"`
	Authenticated bool               `json:"authenticated"`    // signed here, for this session, fresh and, except in mode off, not seen before
	Reason        string             `json:"reason,omitempty"` // why it is rejected; in modes off and warn, why it would be
	Detail        string             `json:"detail,omitempty"`
	DecisionID    string             `json:"decision_id,omitempty"` // of the record; empty in mode off
	MessageID     string             `json:"message_id,omitempty"`
	Source        message.Source     `json:"source,omitempty"`
	Sender        string             `json:"sender,omitempty"`
	Intents       message.Intents    `json:"intents"` // what it permits
	ApprovalID    string             `json:"approval_id,omitempty"`
	Text          string             `json:"text"`
	Stripped      []message.Stripped `json:"stripped"`
}

// CallRequest asks whether a tool may be called on the authority of a message.
type CallRequest struct {
	AgentID   string `json:"agent_id"`
	SessionID string `json:"session_id"`
	MessageID string `json:"message_id"` // that was accepted in this session
	ToolName  string `json:"tool_name"`
}

// CallDecision is the answer. The runtime calls the tool where it is executed, and
// nowhere else.
type CallDecision struct {
	Outcome    message.Outcome `json:"outcome"` // executed or blocked
	Mode       message.Mode    `json:"mode"`
	Reason     string          `json:"reason,omitempty"` // why it is blocked; in mode warn, why it would be
	Detail     string          `json:"detail,omitempty"`
	CallID     string          `json:"call_id,omitempty"` // of the record, for the trace; empty in mode off
	ToolName   string          `json:"tool_name"`
	ToolClass  message.Intents `json:"tool_class"` // empty for a tool without one
	MessageID  string          `json:"message_id"` // that authorises the call, or does not
	Intents    message.Intents `json:"intents"`    // what that message permits
	Source     message.Source  `json:"source,omitempty"`
	Sender     string          `json:"sender,omitempty"`
	ApprovalID string          `json:"approval_id,omitempty"` // the person's message behind an agent's
}

// ResultRequest asks for a tool result to be signed.
type ResultRequest struct {
	AgentID   string          `json:"agent_id"`
	SessionID string          `json:"session_id"`
	ToolName  string          `json:"tool_name"`
	Result    json.RawMessage `json:"result"` // as the tool gave it
}

// SignedResult is the answer: what the runtime keeps beside the result, and the
// trace cites.
type SignedResult struct {
	ToolName string `json:"tool_name"`
	Seq      uint64 `json:"seq"` // rising within the session
	MAC      string `json:"mac"`
	KeyID    string `json:"key_id"`
	SHA256   string `json:"sha256"` // of the result's canonical form
}

// ResultCheck asks whether a tool result is authentic, in the session where it is
// shown.
type ResultCheck struct {
	ResultRequest
	Seq   uint64 `json:"seq"`
	MAC   string `json:"mac"`
	KeyID string `json:"key_id"`
}

// ResultVerdict is the answer.
type ResultVerdict struct {
	Outcome message.Outcome `json:"outcome"` // accepted or rejected
	Reason  string          `json:"reason,omitempty"`
	Detail  string          `json:"detail,omitempty"`
}
