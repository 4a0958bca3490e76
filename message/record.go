package message

import "time"

// Kind is the subject of a record.
type Kind string

// The kinds of records.
const (
	KindMessage      Kind = "message"      // a request to sign a message was decided
	KindVerification Kind = "verification" // the receiver's runtime asked to verify a message
	KindToolCall     Kind = "tool_call"    // a tool call was decided
	KindToolResult   Kind = "tool_result"  // a tool result was signed
)

// Outcome is the result of a request.
type Outcome string

// The outcomes of a record, by its kind.
const (
	Signed   Outcome = "signed"   // a message or a tool result
	Refused  Outcome = "refused"  // a message that was not signed
	Accepted Outcome = "accepted" // a message, by its receiver
	Rejected Outcome = "rejected"
	Executed Outcome = "executed" // a tool call
	Blocked  Outcome = "blocked"
)

// Record is one stored decision. Later decisions and the operator's ledger use it. It contains
// neither the text nor a secret. In mode warn a record can have a Reason although its outcome
// allowed the message or the call.
type Record struct {
	ID        string    `json:"id"` // id of the record; for a message, the message's own id
	Kind      Kind      `json:"kind"`
	At        time.Time `json:"at"`
	AgentID   string    `json:"agent_id"`
	SessionID string    `json:"session_id"`
	Mode      Mode      `json:"mode"`
	Outcome   Outcome   `json:"outcome"`
	Reason    string    `json:"reason,omitempty"`
	Detail    string    `json:"detail,omitempty"` // the reason, for people

	MessageID  string  `json:"message_id,omitempty"` // the message that the decision concerns or depends on
	Source     Source  `json:"source,omitempty"`
	Sender     string  `json:"sender,omitempty"`
	Intents    Intents `json:"intents,omitempty"`     // classes declared; after acceptance, the scope
	Inferred   bool    `json:"inferred,omitempty"`    // whether the intents were inferred
	Approves   string  `json:"approves,omitempty"`    // the message that this one approves
	Approved   Intents `json:"approved,omitempty"`    // the classes that it approves
	ApprovalID string  `json:"approval_id,omitempty"` // the person's message that approved this one
	Nonce      string  `json:"nonce,omitempty"`
	AttemptID  string  `json:"attempt_id,omitempty"` // of a verification, chosen by the runtime, which may ask again with the same id
	KeyID      string  `json:"key_id,omitempty"`
	SHA256     string  `json:"sha256,omitempty"` // of the signed text; of a tool result's canonical form
	Stripped   int     `json:"stripped,omitempty"`

	ToolName  string  `json:"tool_name,omitempty"`
	ToolClass Intents `json:"tool_class,omitempty"` // of a tool that has a class
	Seq       uint64  `json:"seq,omitempty"`        // of a tool result, within its session
}

// In reports whether the record belongs to that agent and session.
func (r *Record) In(agentID, sessionID string) bool {
	return r.AgentID == agentID && r.SessionID == sessionID
}
