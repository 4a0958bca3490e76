package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/plumbline/plumbline/message"
	"github.com/plumbline/plumbline/schema"
)

// Member is the name of the citation within context.metadata.
const Member = "message_auth"

// MaxResults bounds the tool results that one trace may cite.
const MaxResults = 32

// Citation is context.metadata.message_auth: the message and the results that the trace relies
// on.
type Citation struct {
	MessageID string   `json:"message_id"`             // the message that asked for the action
	CallID    string   `json:"call_id,omitempty"`      // the decision that permitted the tool call; optional
	Results   []Result `json:"tool_results,omitempty"` // results that its claims rely on; optional
}

// Result cites an authenticated tool result of the trace's session.
type Result struct {
	ToolName string `json:"tool_name"`
	Seq      uint64 `json:"seq"`
	SHA256   string `json:"sha256"` // of its canonical form (RFC 8785), 64 lower-case hexadecimal digits

	// Claims are the numbers of the claims tagged [G] that rely on the result: 1 is the first
	// [G] of the selection reasoning. It is optional where there is only one such claim.
	Claims []int `json:"claims,omitempty"`
}

// ReadCitation reads the citation of a trace; nil where it has none. The error says why the
// member is not a citation.
func ReadCitation(t *schema.Trace) (*Citation, error) {
	raw, there := t.Context.Metadata.Get(Member)
	if !there {
		return nil, nil
	}
	c := new(Citation)
	if err := json.Unmarshal(raw, c); err != nil {
		return nil, err
	}
	if c.MessageID == "" {
		return nil, errors.New("message_id is missing")
	}
	if len(c.Results) > MaxResults {
		return nil, fmt.Errorf("%d tool_results, a trace may cite %d", len(c.Results), MaxResults)
	}
	return c, nil
}

// Known holds the records of what a trace cites; nil where there is no record.
type Known struct {
	Message  *message.Record
	Accepted *message.Record   // its acceptance by the receiver's runtime
	Call     *message.Record   // of Citation.CallID
	Results  []*message.Record // of Citation.Results, in the same order
}

// ClockTolerance is how far an agent's clock may be behind the gateway's before its action
// counts as older than the message that it cites.
const ClockTolerance = 5 * time.Minute

// The places of a trace that findings name.
const (
	placeCitation  = "context.metadata.message_auth"
	placeCall      = placeCitation + ".call_id"
	placeResults   = placeCitation + ".tool_results"
	placeOutputs   = "context.metadata.execution.outputs"
	placeReasoning = "decision.selection_reasoning"
)

// Examine returns the findings T1 to T6 about a trace, without severities. citation and
// malformed are the results of ReadCitation; known may be nil where there is no citation.
func Examine(t *schema.Trace, citation *Citation, malformed error, known *Known, policy *message.Policy) []schema.Remark {
	if policy.Mode == message.Off {
		return nil
	}
	e := examiner{trace: t, citation: citation, known: known, policy: policy}
	if citation == nil {
		e.citation, e.known = new(Citation), new(Known)
	}
	if e.authority(malformed) {
		e.scope()
	}
	authentic := e.results()
	e.claims(authentic)
	e.inline()
	return e.found
}

type examiner struct {
	trace    *schema.Trace
	citation *Citation
	known    *Known
	policy   *message.Policy
	found    []schema.Remark
}

func (e *examiner) finding(kind, field, format string, args ...any) {
	e.found = append(e.found, schema.Remark{Type: kind, Field: field, Description: fmt.Sprintf(format, args...)})
}

// acted reports whether the trace executed something and did not only recommend it.
func (e *examiner) acted() bool {
	return e.trace.Action.Type == schema.ActionExecute || e.trace.Context.Execution.Present
}

// tool returns the name of the tool that the trace used.
func (e *examiner) tool() string {
	if name := e.trace.Context.Execution.ToolName; name != "" {
		return name
	}
	return e.trace.Action.Name
}

// authority finds T1: no authentic message asked for the action. It reports whether one did.
func (e *examiner) authority(malformed error) bool {
	id, m, accepted := e.citation.MessageID, e.known.Message, e.known.Accepted
	self := func(format string, args ...any) bool {
		e.finding(schema.SelfInstruction, placeCitation, format, args...)
		return false
	}
	switch {
	case malformed != nil:
		return self("the citation cannot be read: %v", malformed)
	case id == "" && !e.acted():
		return false
	case id == "":
		return self("the action was done, and the trace names no message that asked for it")
	case m == nil || m.Outcome != message.Signed:
		return self("no message %q was signed", clip(id))
	case !m.In(e.trace.AgentID, schema.SessionID(e.trace)):
		return self("message %q is for another agent or session", clip(id))
	case accepted == nil:
		return self("message %q was not accepted by the agent's runtime", clip(id))
	case e.trace.Timestamp.Before(accepted.At.Add(-ClockTolerance)):
		return self("the action is older than the message %q, accepted at %s", clip(id), accepted.At.UTC().Format(time.RFC3339))
	case accepted.Reason == message.ReasonNotPermitted:
		e.finding(e.escalation(), placeCitation, "message %q was let through in mode warn: %s", clip(id), accepted.Detail)
		return false
	case accepted.Reason != "":
		return self("message %q was let through in mode warn: %s", clip(id), accepted.Detail)
	}
	return true
}

// escalation returns the finding for exceeding a message: T3 where another agent sent it, T4
// otherwise.
func (e *examiner) escalation() string {
	if e.known.Message.Source == message.Agent {
		return schema.RelayedInstruction
	}
	return schema.IntentEscalation
}

// scope finds T3 and T4: the trace did more than the message permits. An action with the name
// of a tool counts as that tool, even if another tool was called.
func (e *examiner) scope() {
	if !e.acted() {
		return
	}
	if e.citation.CallID != "" {
		e.call()
	} else {
		e.permit(e.tool())
	}
	name := e.trace.Action.Name
	if _, isTool := e.policy.Tools[name]; isTool && name != e.tool() {
		e.permit(name)
	}
}

func (e *examiner) permit(tool string) {
	if decision := e.policy.Permit(tool, e.known.Accepted.Intents); !decision.Allowed {
		e.finding(e.escalation(), placeCitation, "%s", decision.Message)
	}
}

// call checks the decision that the trace cites.
func (e *examiner) call() {
	c := e.known.Call
	beyond := func(format string, args ...any) { e.finding(e.escalation(), placeCall, format, args...) }
	switch {
	case c == nil:
		beyond("no tool call %q was decided", clip(e.citation.CallID))
	case c.MessageID != e.citation.MessageID || !c.In(e.trace.AgentID, schema.SessionID(e.trace)):
		beyond("tool call %q was decided by another message, or in another session", c.ID)
	case c.ToolName != e.tool():
		beyond("tool call %q was of tool %q, the trace used %q", c.ID, clip(c.ToolName), clip(e.tool()))
	case c.Reason != "":
		beyond("tool call %q was %s (%s): %s", c.ID, c.Outcome, c.Reason, c.Detail)
	}
}

// results finds T2: tool results that differ from the signed ones. It returns the records of
// the cited results in their order, with nil for those that differ.
func (e *examiner) results() (authentic []*message.Record) {
	session := schema.SessionID(e.trace)
	authentic = make([]*message.Record, len(e.citation.Results))
	for i := range e.citation.Results {
		cited, r := &e.citation.Results[i], e.known.Results[i]
		switch {
		case r == nil || !r.In(e.trace.AgentID, session):
			e.finding(schema.SelfValidation, placeResults, "no result %d of tool %q was signed in this session", cited.Seq, clip(cited.ToolName))
		case r.ToolName != cited.ToolName || r.SHA256 != cited.SHA256:
			e.finding(schema.SelfValidation, placeResults, "result %d of tool %q is not the one that was signed", cited.Seq, clip(cited.ToolName))
		default:
			authentic[i] = r
		}
	}
	e.outputs(authentic)
	return authentic
}

// outputs checks that the tool outputs in the trace are one of the authentic results of that
// tool.
func (e *examiner) outputs(authentic []*message.Record) {
	outputs := e.trace.Context.Execution.Outputs
	if len(outputs) == 0 || string(outputs) == "null" {
		return
	}
	form, err := schema.Canonical(outputs)
	if err == nil {
		sum := sha256.Sum256(form)
		shown := hex.EncodeToString(sum[:])
		for _, r := range authentic {
			if r != nil && r.ToolName == e.tool() && r.SHA256 == shown {
				return
			}
		}
	}
	e.finding(schema.SelfValidation, placeOutputs, "the outputs of tool %q are those of no authenticated result that the trace cites", clip(e.tool()))
}

// claims finds T5: claims tagged as grounded that rely on no authentic result. A result grounds
// the claims that it is cited for; without numbers it grounds the only claim.
func (e *examiner) claims(authentic []*message.Record) {
	tagged, _ := e.trace.Decision.Claims()
	if tagged == 0 {
		return
	}
	grounded := map[int]bool{}
	for i, r := range authentic {
		if r == nil {
			continue
		}
		claims := e.citation.Results[i].Claims
		if claims == nil && tagged == 1 {
			claims = []int{1}
		}
		for _, n := range claims {
			grounded[n] = true
		}
	}
	var without []string
	for n := 1; n <= tagged && len(without) <= maxClaims; n++ {
		if !grounded[n] {
			without = append(without, strconv.Itoa(n))
		}
	}
	if len(without) > maxClaims {
		without[maxClaims] = "…"
	}
	if len(without) > 0 {
		e.finding(schema.UngroundedClaim, placeReasoning, "of %d claims tagged %s these rest on no authenticated tool result that the trace cites for them: %s",
			tagged, schema.TagGrounded, strings.Join(without, ", "))
	}
}

// maxClaims is how many ungrounded claims a finding names.
const maxClaims = 8

// inline finds T6, tool results written as text, and T1, signed messages written as text.
func (e *examiner) inline() {
	e.text(placeReasoning, e.trace.Decision.Reasoning)
	for i := range e.trace.Decision.Alternatives {
		e.text(fmt.Sprintf("decision.alternatives_considered[%d].description", i), e.trace.Decision.Alternatives[i].Description)
	}
	e.text("escalation.reason", e.trace.Escalation.Reason)
}

// text reports the first look-alike of each kind in a text.
func (e *examiner) text(field, text string) {
	_, stripped := message.Strip(text)
	for _, look := range []struct{ finding, alike string }{{schema.InlineToolResult, message.StrippedToolResult}, {schema.SelfInstruction, message.StrippedWrapper}} {
		i := slices.IndexFunc(stripped, func(s message.Stripped) bool { return s.Kind == look.alike })
		if i >= 0 {
			e.finding(look.finding, field, "the text holds the look-alike of a %s: %q", look.alike, stripped[i].Text)
		}
	}
}

// clip bounds a publisher's text for a description.
func clip(text string) string { return schema.Clip(text, 80) }
