package message

import "time"

// Kind tells what a record is about.
type Kind string

// The kinds of records.
const (
	KindMessage      Kind = "message"      // a message was signed, or was not
	KindVerification Kind = "verification" // its receiver's runtime had it verified
	KindToolCall     Kind = "tool_call"    // a tool call was decided
	KindToolResult   Kind = "tool_result"  // a tool result was signed
)

// Outcome is what became of what was asked.
type Outcome string

// The outcomes of a record, by its kind.
const (
	Signed   Outcome = "signed"   // a message or a tool result
	Refused  Outcome = "refused"  // a message that was not signed
	Accepted Outcome = "accepted" // a message by its receiver
	Rejected Outcome = "rejected"
	Executed Outcome = "executed" // a tool call
	Blocked  Outcome = "blocked"
)

// Record is one decision as it is kept, for whoever decides what rests on it and for
// the operator's ledger. It holds neither the text nor a secret. In mode warn a
// Reason stands beside an outcome that let the matter through.
type Record struct {
	ID        string    `json:"id"` // of the record; of a message, its own
	Kind      Kind      `json:"kind"`
	At        time.Time `json:"at"`
	AgentID   string    `json:"agent_id"`
	SessionID string    `json:"session_id"`
	Mode      Mode      `json:"mode"`
	Outcome   Outcome   `json:"outcome"`
	Reason    string    `json:"reason,omitempty"`
	Detail    string    `json:"detail,omitempty"` // the reason for people

	MessageID  string  `json:"message_id,omitempty"` // that the decision is about or rests on
	Source     Source  `json:"source,omitempty"`
	Sender     string  `json:"sender,omitempty"`
	Intents    Intents `json:"intents,omitempty"`     // declared; once accepted, its scope
	Inferred   bool    `json:"inferred,omitempty"`    // the intents were
	Approves   string  `json:"approves,omitempty"`    // the message that this one consents to
	Approved   Intents `json:"approved,omitempty"`    // the classes that it consents to
	ApprovalID string  `json:"approval_id,omitempty"` // the person's message that consented to this one
	Nonce      string  `json:"nonce,omitempty"`
	AttemptID  string  `json:"attempt_id,omitempty"` // of a verification, by the runtime: who has it may ask again
	KeyID      string  `json:"key_id,omitempty"`
	SHA256     string  `json:"sha256,omitempty"` // of the text as signed; of a tool result, of its canonical form
	Stripped   int     `json:"stripped,omitempty"`

	ToolName  string  `json:"tool_name,omitempty"`
	ToolClass Intents `json:"tool_class,omitempty"` // of a tool that has one
	Seq       uint64  `json:"seq,omitempty"`        // of a tool result, within its session
}

// In tells whether the record is of that agent and session.
func (r *Record) In(agentID, sessionID string) bool {
	return r.AgentID == agentID && r.SessionID == sessionID
}
