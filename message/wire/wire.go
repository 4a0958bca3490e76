// Package wire defines the requests of a runtime to a gateway and the gateway's answers: the
// JSON of the message routes (docs/MESSAGES.md).
//
// It owns the members of requests and answers. It does not own the routes, the decisions
// (pipeline/messages) or the client's side (client). It does no I/O.
//
// Invariants: client and service share these types, so each reads exactly what the other
// writes.
package wire

import (
	"encoding/json"

	"github.com/plumbline/plumbline/message"
)

// SignRequest asks the gateway to sign a message to an agent.
type SignRequest struct {
	AgentID   string    `json:"agent_id"`   // the receiver
	SessionID string    `json:"session_id"` // the only session in which the message is valid
	Text      string    `json:"text"`
	Intents   *[]string `json:"intents"`  // what it permits; inferred from the text if absent
	Approves  string    `json:"approves"` // the message of another agent that a person approves
}

// SignedMessage is the answer: the wrapped text for the agent's runtime, and its envelope.
type SignedMessage struct {
	message.Envelope
	Wrapped  string             `json:"wrapped"`            // [MSG_AUTH:<mac>] text [/MSG_AUTH]
	Inferred bool               `json:"inferred"`           // whether the intents were inferred
	Stripped []message.Stripped `json:"stripped"`           // look-alikes removed from the text
	Approves string             `json:"approves,omitempty"` // the message of another agent that this one approves
	Mode     message.Mode       `json:"mode"`
	Outcome  message.Outcome    `json:"outcome"`          // signed
	Reason   string             `json:"reason,omitempty"` // why the agent will not accept it unchanged
	Detail   string             `json:"detail,omitempty"`
}

// VerifyRequest asks whether an agent may accept a message. AgentID and SessionID are the
// runtime's own and not taken from the message.
type VerifyRequest struct {
	AgentID   string            `json:"agent_id"`
	SessionID string            `json:"session_id"`
	Wrapped   string            `json:"wrapped"`  // the text as received, with its wrapper
	Envelope  *message.Envelope `json:"envelope"` // as received with the text; nil where there was none

	// AttemptID is chosen by the runtime, a new one for each message it receives. If an answer
	// is lost, the runtime repeats the request with the same AttemptID and gets the same
	// answer. Without an AttemptID the repeated message is rejected as a replay.
	AttemptID string `json:"attempt_id,omitempty"`
}

// Verification is the answer. Text is set where the message is let through; the model must see
// nothing else of the message.
type Verification struct {
	Outcome       message.Outcome    `json:"outcome"` // accepted or rejected
	Mode          message.Mode       `json:"mode"`
	Authenticated bool               `json:"authenticated"`    // signed by this gateway, for this session, fresh and, except in mode off, not seen before
	Reason        string             `json:"reason,omitempty"` // why it is rejected; in modes off and warn, why it would be rejected
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
	MessageID string `json:"message_id"` // accepted in this session
	ToolName  string `json:"tool_name"`
}

// CallDecision is the answer. The runtime must call the tool only where the outcome is
// executed.
type CallDecision struct {
	Outcome    message.Outcome `json:"outcome"` // executed or blocked
	Mode       message.Mode    `json:"mode"`
	Reason     string          `json:"reason,omitempty"` // why it is blocked; in mode warn, why it would be blocked
	Detail     string          `json:"detail,omitempty"`
	CallID     string          `json:"call_id,omitempty"` // id of the record, for the trace; empty in mode off
	ToolName   string          `json:"tool_name"`
	ToolClass  message.Intents `json:"tool_class"` // empty for a tool without a class
	MessageID  string          `json:"message_id"` // the message cited as authority for the call
	Intents    message.Intents `json:"intents"`    // what that message permits
	Source     message.Source  `json:"source,omitempty"`
	Sender     string          `json:"sender,omitempty"`
	ApprovalID string          `json:"approval_id,omitempty"` // the person's message that approved an agent's message
}

// ResultRequest asks the gateway to sign a tool result.
type ResultRequest struct {
	AgentID   string          `json:"agent_id"`
	SessionID string          `json:"session_id"`
	ToolName  string          `json:"tool_name"`
	Result    json.RawMessage `json:"result"` // as the tool returned it
}

// SignedResult is the answer: the runtime stores it with the result, and the trace cites it.
type SignedResult struct {
	ToolName string `json:"tool_name"`
	Seq      uint64 `json:"seq"` // ascending within the session
	MAC      string `json:"mac"`
	KeyID    string `json:"key_id"`
	SHA256   string `json:"sha256"` // of the result's canonical form
}

// ResultCheck asks whether a tool result is authentic in the session in which it is used.
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
