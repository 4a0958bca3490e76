// Package mcp makes AP-Traces of MCP tool invocations (AAP section 3.3). It turns one
// tools/call request, its answer and the host's knowledge into one trace.
//
//	request  params.name       action.name, and the end of execution.tool_name
//	         params.arguments  action.parameters, where conditions look, and execution.inputs
//	server   its name          action.target.identifier, and the start of execution.tool_name
//	answer   result            execution.outputs
//	         result.isError    execution.error: the texts of result.content
//	         error.message     execution.error
//
// execution is context.metadata.execution, which makes the trace a tool_call row of its
// session's bundle. A Session pairs the messages between a client and a server, and keeps the
// list of tools that the server offered. Requests reads what a gate between the two must decide
// on. The package owns no transport and reads no clock.
//
// Invariants: schema.Admit admits every trace that Trace returns. A trace that a Session makes
// states what the messages do not contain, the model's reasons above all.
package mcp

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/plumbline/plumbline/schema"
)

// Invocation is one tools/call request, its answer, and the decision that led to it. AgentID,
// CardID, TraceID, Time and Tool are required.
type Invocation struct {
	TraceID string
	AgentID string
	CardID  string
	Time    time.Time

	Server    string         // name of the MCP server; empty if unknown
	Tool      string         // params.name
	Arguments jsontext.Value // params.arguments, a JSON object; nil: none
	Result    jsontext.Value // result, a JSON object; nil: none
	Failure   string         // message of the JSON-RPC error that arrived instead of a result
	Duration  time.Duration  // from the request to its answer; 0: unknown
	CostCents int64

	// Blocked says why the call was not made; empty if it was. The trace of a blocked call is a
	// recommendation and has no execution.
	Blocked     string
	MessageAuth jsontext.Value // context.metadata.message_auth; nil: none

	Category     schema.Category      // empty: bounded
	Alternatives []schema.Alternative // if empty, this call was the only option
	Selected     string               // an OptionID of Alternatives
	Reasoning    string               // if empty, the trace says that no reasoning was recorded
	Values       []string             // values applied
	Confidence   *float64             // 0..1; nil if unknown

	SessionID      string
	PriorTraceIDs  []string
	SequenceNumber *uint64 // number of the trace in its session; nil if not counted

	// The request that it was made of, if a Session made it. The trace does not have them.
	Scope, RequestID string
}

// Defaults for members that the invocation leaves empty.
const (
	onlyOption     = "call"
	noReasoning    = "no reasoning was recorded"
	unnamedFailure = "the tool reported an error without a text"
	targetType     = "mcp_server"
	namespace      = "mcp" // of a tool with an unknown server
)

// maxFailure is how many bytes of a tool's error texts execution.error contains.
const maxFailure = 4 << 10

// ToolName returns the name of the tool within the namespace of its server.
func (v *Invocation) ToolName() string {
	if v.Server == "" {
		return namespace + "." + v.Tool
	}
	return v.Server + "." + v.Tool
}

// The members of a trace that an invocation sets (AAP sections 5.3 to 5.7).
type (
	trace struct {
		TraceID   string   `json:"trace_id"`
		AgentID   string   `json:"agent_id"`
		CardID    string   `json:"card_id"`
		Timestamp string   `json:"timestamp"`
		Action    action   `json:"action"`
		Decision  decision `json:"decision"`
		Context   place    `json:"context"`
	}
	action struct {
		Type       schema.ActionType `json:"type"`
		Name       string            `json:"name"`
		Category   schema.Category   `json:"category"`
		Target     *target           `json:"target,omitzero"`
		Parameters jsontext.Value    `json:"parameters"`
	}
	target struct {
		Type       string `json:"type"`
		Identifier string `json:"identifier"`
	}
	decision struct {
		Alternatives []alternative `json:"alternatives_considered"`
		Selected     string        `json:"selected"`
		Reasoning    string        `json:"selection_reasoning"`
		Values       []string      `json:"values_applied"`
		Confidence   *float64      `json:"confidence,omitzero"`
	}
	alternative struct {
		OptionID    string                    `json:"option_id"`
		Description string                    `json:"description"`
		Score       *float64                  `json:"score,omitzero"`
		Factors     map[string]jsontext.Value `json:"scoring_factors,omitempty"`
		Flags       []string                  `json:"flags,omitzero"`
	}
	place struct {
		SessionID     string   `json:"session_id,omitzero"`
		PriorTraceIDs []string `json:"prior_trace_ids,omitzero"`
		Metadata      metadata `json:"metadata"`
	}
	metadata struct {
		SequenceNumber *uint64        `json:"sequence_number,omitzero"`
		Execution      *execution     `json:"execution,omitzero"`
		MessageAuth    jsontext.Value `json:"message_auth,omitzero"`
		Blocked        string         `json:"blocked,omitzero"`
		DurationMS     float64        `json:"duration_ms,omitzero"`
		Omitted        jsontext.Value `json:"omitted_outputs,omitzero"`
	}
	execution struct {
		ToolName  string         `json:"tool_name"`
		Inputs    jsontext.Value `json:"inputs"`
		Outputs   jsontext.Value `json:"outputs,omitzero"`
		CostCents int64          `json:"cost_cents,omitzero"`
		Error     string         `json:"error,omitzero"`
	}
)

// Trace returns the AP-Trace of an invocation. A result that does not fit into a trace is
// replaced by its size and SHA-256. The error is a *schema.Refusal where schema.Admit would
// refuse the trace (an empty id, a time out of range, arguments that are no object or too
// large). Otherwise it says which part is not JSON or not UTF-8.
func (v *Invocation) Trace() ([]byte, error) {
	raw, err := v.write(v.Result, nil)
	switch {
	case err != nil || len(raw) <= schema.MaxTraceBytes || v.Result == nil:
	case v.MessageAuth == nil:
		raw, err = v.write(omitted(v.Result), nil)
	default: // the outputs must be the cited result or absent: a summary would differ from it
		raw, err = v.write(nil, omitted(v.Result))
	}
	if err == nil {
		_, err = schema.Admit(v.AgentID, raw)
	}
	switch { // what Admit would ignore in a trace of another publisher is refused as well
	case err != nil:
	case v.CostCents < 0 || v.CostCents > schema.MaxCostCents:
		err = fmt.Errorf("a cost of %d cents, want 0 to %d", v.CostCents, int64(schema.MaxCostCents))
	case v.SequenceNumber != nil && *v.SequenceNumber > math.MaxInt64:
		err = fmt.Errorf("sequence number %d, want at most %d", *v.SequenceNumber, int64(math.MaxInt64))
	}
	if err != nil {
		return nil, fmt.Errorf("the trace of a call of %q: %w", v.Tool, err)
	}
	return raw, nil
}

// Fit is Trace for an invocation by others, whose arguments and result may be anything: what a
// trace cannot have is replaced by its size and SHA-256.
func (v *Invocation) Fit() (raw []byte, err error) {
	for _, omit := range []struct{ arguments, result bool }{{}, {result: true}, {arguments: true}, {true, true}} {
		w := *v
		if omit.result && v.Result != nil {
			w.Result = omitted(v.Result)
			if text, err := v.failure(lenient); err == nil {
				w.Failure = text
			}
		}
		if omit.arguments && v.Arguments != nil {
			w.Arguments = omitted(v.Arguments)
		}
		if raw, err = w.Trace(); err == nil {
			return raw, nil
		}
	}
	return nil, err
}

// omitted stands for a value that does not fit into a trace.
func omitted(value []byte) jsontext.Value {
	return fmt.Appendf(nil, `{"omitted_bytes":%d,"sha256":"%s"}`, len(value), schema.DigestOf(value))
}

// write writes the trace, with outputs instead of the result. omitted is the summary of outputs
// that the trace does not have.
func (v *Invocation) write(outputs, omitted jsontext.Value) ([]byte, error) {
	failure, err := v.failure(func(raw []byte, into any) error { return json.Unmarshal(raw, into) })
	if err != nil {
		return nil, err
	}
	arguments := v.Arguments
	if arguments == nil {
		arguments = jsontext.Value("{}")
	}
	t := trace{
		TraceID: v.TraceID, AgentID: v.AgentID, CardID: v.CardID,
		Timestamp: v.Time.UTC().Format(time.RFC3339Nano),
		Action:    action{Type: schema.ActionExecute, Name: v.Tool, Category: v.Category, Parameters: arguments},
		Decision:  v.decision(),
		Context: place{
			SessionID: v.SessionID, PriorTraceIDs: v.PriorTraceIDs,
			Metadata: metadata{
				SequenceNumber: v.SequenceNumber, MessageAuth: v.MessageAuth, Blocked: v.Blocked, Omitted: omitted,
				DurationMS: float64(v.Duration.Microseconds()) / 1000,
			},
		},
	}
	if v.Blocked != "" {
		t.Action.Type = schema.ActionRecommend
	} else {
		t.Context.Metadata.Execution = &execution{
			ToolName: v.ToolName(), Inputs: arguments, Outputs: outputs, CostCents: v.CostCents, Error: failure,
		}
	}
	if t.Action.Category == "" {
		t.Action.Category = schema.CategoryBounded
	}
	if v.Server != "" {
		t.Action.Target = &target{Type: targetType, Identifier: v.Server}
	}
	return json.Marshal(t, json.Deterministic(true))
}

func (v *Invocation) decision() decision {
	d := decision{Selected: v.Selected, Reasoning: v.Reasoning, Values: v.Values, Confidence: v.Confidence}
	if d.Reasoning == "" {
		d.Reasoning = noReasoning
	}
	for i := range v.Alternatives {
		a := &v.Alternatives[i]
		out := alternative{OptionID: a.OptionID, Description: a.Description, Flags: a.Flags}
		if a.HasScore {
			out.Score = &a.Score
		}
		for _, factor := range a.ScoringFactors {
			if out.Factors == nil {
				out.Factors = map[string]jsontext.Value{}
			}
			out.Factors[factor.Name] = factor.Value
		}
		d.Alternatives = append(d.Alternatives, out)
	}
	if len(d.Alternatives) == 0 {
		d.Alternatives = []alternative{{OptionID: onlyOption, Description: "call " + v.ToolName()}}
		d.Selected = onlyOption
	}
	return d
}

// failure returns the error text of the trace, empty where the call succeeded.
func (v *Invocation) failure(read func(raw []byte, into any) error) (string, error) {
	if v.Failure != "" || v.Result == nil {
		return v.Failure, nil
	}
	var result struct {
		IsError bool `json:"isError"`
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
	}
	if err := read(v.Result, &result); err != nil {
		return "", fmt.Errorf("read its result: %w", err)
	}
	if !result.IsError {
		return "", nil
	}
	var texts []string
	for _, content := range result.Content {
		if content.Text != "" {
			texts = append(texts, content.Text)
		}
	}
	if len(texts) == 0 {
		return unnamedFailure, nil
	}
	return schema.Clip(strings.Join(texts, "\n"), maxFailure), nil
}
