package schema

import (
	"fmt"
	"strings"
)

// Reasons of a Refusal; also the reasons that dead letters carry.
const (
	ReasonInvalidJSON  = "invalid_json"  // not strict JSON: syntax, UTF-8, duplicate names
	ReasonInvalidTrace = "invalid_trace" // breaks AAP section 5 or a limit
	ReasonInvalidCard  = "invalid_card"  // breaks AAP section 4 or a limit
	ReasonTooLarge     = "too_large"

	ReasonInvalidSignature = "invalid_signature" // the block is no signature at all
	ReasonForeignAgent     = "foreign_agent"     // agent_id is not the agent of the subject or credential
)

// Fault is one fault of a record and its place.
type Fault struct {
	Pointer string `json:"pointer"` // RFC 6901; "" is the whole record
	Message string `json:"message"`
}

// Refusal is the error for a record that is not admitted. It lists every fault found.
type Refusal struct {
	Reason string
	Faults []Fault
}

// String returns the place, if it is not the whole record, and the message.
func (f Fault) String() string {
	if f.Pointer == "" {
		return f.Message
	}
	return f.Pointer + ": " + f.Message
}

// Error returns the reason and every fault.
func (r *Refusal) Error() string {
	var b strings.Builder
	b.WriteString(r.Reason)
	for i, f := range r.Faults {
		b.WriteString([]string{": ", "; "}[min(i, 1)])
		b.WriteString(f.String())
	}
	return b.String()
}

// refuse returns a refusal with one fault about the whole record.
func refuse(reason, message string, args ...any) *Refusal {
	return &Refusal{Reason: reason, Faults: []Fault{{Message: fmt.Sprintf(message, args...)}}}
}

// Clip bounds a text of foreign origin for a message or a description. Of a text longer than
// most bytes it keeps at most that many, in whole characters, and marks the cut with an
// ellipsis.
func Clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// clip bounds a text for the message of a fault.
func clip(text string) string { return Clip(text, 64) }
