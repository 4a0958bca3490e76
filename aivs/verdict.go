package aivs

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/plumbline/plumbline/schema"
)

// SessionMember is the member that holds the verdict on the session.
const SessionMember = "session.json"

// RecordedVerdict is what the pipeline concluded about the agent when it sealed the session, with
// the figures of session.json. It is the operator's statement, not a result of verifying the
// bundle.
type RecordedVerdict struct {
	RecommendedAction schema.Recommendation `json:"recommended_action"`
	Verified          bool                  `json:"verified"`   // of AAP section 7.4: no violation
	Traces            int64                 `json:"traces"`     // of this part
	Violations        int64                 `json:"violations"` // of all traces
	Findings          int64                 `json:"findings"`   // of all traces and of the session
}

// parseVerdict reads session.json; nil for anything but a verdict on a session.
func parseVerdict(text []byte) *RecordedVerdict {
	var s struct {
		Action   *schema.Recommendation `json:"recommended_action"`
		Verified *bool                  `json:"verified"`
		Traces   *struct {
			Total      jsontext.Value            `json:"total"`
			Violations map[string]jsontext.Value `json:"violations"`
			Findings   map[string]jsontext.Value `json:"findings"`
		} `json:"traces"`
		Counts map[string]jsontext.Value `json:"finding_counts"`
	}
	if checkDepth(text) != nil || json.Unmarshal(text, &s) != nil || s.Action == nil || s.Verified == nil || s.Traces == nil {
		return nil
	}
	switch *s.Action {
	case schema.Proceed, schema.Review, schema.Deny:
	default:
		return nil
	}
	return &RecordedVerdict{RecommendedAction: *s.Action, Verified: *s.Verified, Traces: count(s.Traces.Total),
		Violations: total(s.Traces.Violations), Findings: total(s.Traces.Findings) + total(s.Counts)}
}

func total(counts map[string]jsontext.Value) (sum int64) {
	for _, n := range counts {
		sum += count(n)
	}
	return sum
}

// count returns the value of a JSON integer within 31 bits, 0 for anything else.
func count(value jsontext.Value) int64 {
	n, err := strconv.ParseUint(string(value), 10, 31)
	if err != nil {
		return 0
	}
	return int64(n)
}

// VerdictText returns the sentence about the agent.
func (r *Report) VerdictText() string {
	switch {
	case !r.Intact:
		return "Verdict recorded inside: not read, since the bundle is not intact."
	case r.Verdict == nil:
		return "Verdict recorded inside: none."
	}
	v := r.Verdict
	return fmt.Sprintf("Verdict recorded inside: %s (%s, %s).", strings.ToUpper(string(v.RecommendedAction)),
		counted(v.Violations, "violation"), counted(v.Findings, "finding"))
}

func counted(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
