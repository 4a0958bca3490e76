package schema

import (
	"fmt"
	"strings"
)

// Warning is a remark on a trace that was admitted: it is kept as it came, but may not
// say what its publisher means.
type Warning struct {
	Code    string `json:"code"` // one of the Warn names
	Pointer string `json:"pointer"`
	Message string `json:"message"` // what it means, and what to do
}

// The codes of warnings. Their names are stable. Of these, a Decoder finds ignored
// members; ingest finds the others.
const (
	WarnIgnoredMember   = "ignored_member"
	WarnUnknownCard     = "unknown_card"
	WarnForeignCard     = "card_of_another_agent"
	WarnExpiredCard     = "expired_card"
	WarnRevokedCard     = "revoked_card"
	WarnCardNotIssued   = "card_not_yet_issued"
	WarnConflict        = "conflict"
	WarnLeftOff         = "left_off" // there are more warnings than the answer lists
	maxIgnoredWarnings  = 8          // of one trace
	leastNearMissLength = 8          // of names that another one is taken to mean
)

// The members that the blocks of a trace have. Of context and metadata, whose names
// are the publisher's own, those that have a meaning here.
var (
	traceBlock       = []string{"trace_id", "agent_id", "card_id", "timestamp", "action", "decision", "escalation", "context", "signature"}
	actionBlock      = []string{"type", "name", "category", "target", "parameters"}
	targetBlock      = []string{"type", "identifier"}
	decisionBlock    = []string{"alternatives_considered", "selected", "selection_reasoning", "values_applied", "confidence"}
	alternativeBlock = []string{"option_id", "description", "score", "scoring_factors", "flags"}
	escalationBlock  = []string{"evaluated", "triggers_checked", "required", "reason", "escalation_id", "escalation_status", "principal_response"}
	triggerBlock     = []string{"trigger", "matched", "value_observed"}
	responseBlock    = []string{"decision", "timestamp", "conditions"}
	contextBlock     = []string{"session_id", "conversation_turn", "prior_trace_ids", "environment", "metadata"}
	metadataBlock    = []string{"session_end", "sequence_number", "execution", "message_auth"}
	executionBlock   = []string{"tool_name", "inputs", "outputs", "cost_cents", "error"}
)

// Warnings returns what Admit found in the trace that it admitted last, where Warn is
// set. The slice is valid until the next call of Admit.
func (d *Decoder) Warnings() []Warning { return d.warnings }

// warn keeps a warning about the value that was read last.
func (d *Decoder) warn(message string, args ...any) {
	if len(d.warnings) < maxIgnoredWarnings {
		d.warnings = append(d.warnings, Warning{
			Code: WarnIgnoredMember, Pointer: Clip(string(d.dec.StackPointer()), MaxPointerBytes), Message: fmt.Sprintf(message, args...),
		})
	}
}

// ignored warns of the member read last, which its block does not have.
func (d *Decoder) ignored(name string, block []string) {
	if !d.Warn || d.err != nil {
		return
	}
	if meant := nearName(name, block); meant != "" {
		d.warn("no such member is read: write %s, if it is meant", meant)
		return
	}
	d.warn("no such member is read: it is kept, and counts for nothing")
}

// misspelt warns of the member read last, whose name is free, if it looks like one
// that has a meaning.
func (d *Decoder) misspelt(name string, block []string) {
	if !d.Warn || d.err != nil || len(name) < leastNearMissLength {
		return
	}
	if meant := nearName(name, block); meant != "" {
		d.warn("is not read as %s: write it so, if it is meant", meant)
	}
}

// wholeNumberType is what numbers of metadata are read as.
const wholeNumberType = "a whole number of at least 0"

// ofType warns of the member read last, whose name is ours, where it has not our type.
// null stands for an absent member.
func (d *Decoder) ofType(ok bool, raw []byte, want string) {
	if d.Warn && d.err == nil && !ok && raw[0] != 'n' {
		d.warn("is not %s, and so is not read", want)
	}
}

// notOurs warns of a member of metadata, just read, whose name or type is nearly ours.
func (d *Decoder) notOurs(name string, raw []byte) {
	switch name {
	case "session_end":
		d.ofType(string(raw) == "false", raw, "true or false")
	case "execution":
		d.ofType(false, raw, "an object")
	default:
		d.misspelt(name, metadataBlock)
	}
}

// nearName returns the name that another one looks like without being it, "" where
// there is none.
func nearName(name string, names []string) string {
	letters := lettersOf(name)
	for _, known := range names {
		plain, slips := strings.ReplaceAll(known, "_", ""), 1
		if len(plain) >= 10 {
			slips = 2
		}
		if d := len(letters) - len(plain); name != known && max(d, -d) <= slips && distance(letters, plain) <= slips {
			return known
		}
	}
	return ""
}
