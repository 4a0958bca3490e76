package schema

import (
	"fmt"
	"slices"
	"strings"
)

// Warning is a remark on an admitted trace. The trace is stored unchanged, but it may not say
// what its publisher means.
type Warning struct {
	Code    string `json:"code"` // one of the Warn names
	Pointer string `json:"pointer"`
	Message string `json:"message"` // its meaning, and what to do
}

// The codes of warnings. Their names are stable. A Decoder finds ignored members; ingest finds
// the rest.
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
	leastNearMissLength = 8          // shortest name that is compared with known names
)

// The known members of each block of a trace. In context and metadata, where publishers choose
// names, these are the names with a meaning to Plumbline.
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

// Warnings returns the warnings about the trace that Admit admitted last, if Warn is set. The
// slice is valid until the next call of Admit.
func (d *Decoder) Warnings() []Warning { return d.warnings }

// warn records a warning about the value read last.
func (d *Decoder) warn(message string, args ...any) {
	if d.scanning {
		d.err = errDoubt
		return
	}
	if len(d.warnings) < maxIgnoredWarnings {
		d.warnings = append(d.warnings, Warning{
			Code: WarnIgnoredMember, Pointer: Clip(d.pointer(), MaxPointerBytes), Message: fmt.Sprintf(message, args...),
		})
	}
}

// ignored warns about the member read last if its block does not define it.
func (d *Decoder) ignored(name string, block []string) {
	if !d.Warn || d.err != nil {
		return
	}
	if meant := nearName(name, block); meant != "" {
		d.warn("is not a known member; did you mean %s?", meant)
		return
	}
	d.warn("is not a known member: it is stored and ignored")
}

// misspelt warns about the member read last if its freely chosen name resembles a known name.
func (d *Decoder) misspelt(name string, block []string) {
	if !d.Warn || d.err != nil || len(name) < leastNearMissLength {
		return
	}
	if meant := nearName(name, block); meant != "" {
		d.warn("is not read as %s; did you mean that?", meant)
	}
}

// wholeNumberType is the type that numbers of metadata must have.
const wholeNumberType = "a whole number of at least 0"

// ofType warns about the member read last if it has a known name but the wrong type. null means
// absent.
func (d *Decoder) ofType(ok bool, raw []byte, want string) {
	if d.Warn && d.err == nil && !ok && raw[0] != 'n' {
		d.warn("is not %s and is ignored", want)
	}
}

// nearName returns the known name that name resembles, "" where there is none or name is itself
// known. The difference may be case, dashes and other separators, or a typing error: one letter,
// or two in long names. Known names consist of lower-case letters and _.
func nearName(name string, names []string) string {
	if slices.Contains(names, name) {
		return ""
	}
	letters := lettersOf(name)
	for _, known := range names {
		n, slips := len(known)-strings.Count(known, "_"), 1
		if n >= 10 {
			slips = 2
		}
		if d := len(letters) - n; max(d, -d) <= slips && distance(letters, strings.ReplaceAll(known, "_", "")) <= slips {
			return known
		}
	}
	return ""
}

// lettersOf returns the lower-case ASCII letters of s. It drops all other characters: they are
// separators or typing errors.
func lettersOf(s string) string {
	if len(s) > mostLetters { // bounds the comparison: no known name is nearly as long
		return ""
	}
	return strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' {
			return c
		}
		return -1
	}, strings.ToLower(s))
}

// mostLetters is more than any known name has.
const mostLetters = 64

// distance is the edit distance of two texts (Levenshtein), of which b has at most mostLetters bytes. Exchanging
// two neighbouring letters is one step.
func distance(a, b string) int {
	var rows [3][mostLetters + 1]int
	before, last, row := &rows[0], &rows[1], &rows[2]
	for j := range len(b) + 1 {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
