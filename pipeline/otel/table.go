package otel

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/plumbline/plumbline/schema"
)

// prefix is the beginning of the attributes that name a member of a trace: "aap." and its path.
const prefix = "aap."

// row is the source of one member of a trace. The attribute prefix + member always comes first.
type row struct {
	member   string   // path in the trace
	form     form     // of the member
	resource bool     // an attribute prefix + member of the resource counts, after that of the span
	from     []string // other attributes of the span, the first one that is present
	tool     bool     // from and derive count in tool calls only

	// derive returns the member where no attribute has it; nil where the span does not say.
	derive    func(*view) jsontext.Value
	otherwise string // what derive does, in docs/OTEL.md

	computed bool   // only derive gives the member
	missing  string // reason of the refusal where there is no source; empty: the member is optional
	named    bool   // if no attribute has it, the trace lists the member as absent
}

// table has the members in the order in which a trace has them. Members of an object are neighbours.
var table = []row{
	{member: "trace_id", computed: true, form: text, derive: (*view).traceID, otherwise: "UUID of version 5 of the ids of trace and span"},
	{member: "agent_id", form: text, resource: true, from: []string{"gen_ai.agent.id"}, missing: ReasonNoAgent},
	{member: "card_id", form: text, resource: true, missing: ReasonNoCard},
	{member: "timestamp", computed: true, form: text, derive: (*view).timestamp, otherwise: "start of the span", missing: ReasonNoTime},

	{member: "action.type", form: text, tool: true, derive: constant(`"execute"`), otherwise: "`execute` for a tool call", missing: ReasonNoAction},
	{member: "action.name", form: text, tool: true, from: []string{"gen_ai.tool.name", "tool.name"}, missing: ReasonNoAction},
	{member: "action.category", form: text, resource: true, missing: ReasonNoCategory},
	{member: "action.target.type", form: text},
	{member: "action.target.identifier", form: text},
	{member: "action.parameters", form: object, tool: true, derive: (*view).parameters, otherwise: "the tool's arguments, if they are an object"},

	{member: "decision.alternatives_considered", form: array, derive: (*view).onlyAlternative, otherwise: "one alternative: the action itself", named: true},
	{member: "decision.selected", form: text, derive: (*view).onlySelected, otherwise: "that alternative, if no alternatives are given", missing: ReasonNoSelection},
	{member: "decision.selection_reasoning", form: text, derive: constant(noReasoning), otherwise: "the sentence `" + strings.Trim(noReasoning, `"`) + "`", named: true},
	{member: "decision.values_applied", form: texts, derive: constant(`[]`), otherwise: "empty", named: true},
	{member: "decision.confidence", form: number},

	{member: "escalation.evaluated", form: truth},
	{member: "escalation.triggers_checked", form: array},
	{member: "escalation.required", form: truth},
	{member: "escalation.reason", form: text},
	{member: "escalation.escalation_id", form: text},
	{member: "escalation.escalation_status", form: text},
	{member: "escalation.principal_response", form: object},

	{member: "context.session_id", form: text, from: []string{"gen_ai.conversation.id", "session.id"}},
	{member: "context.conversation_turn", form: whole},
	{member: "context.prior_trace_ids", form: texts},
	{member: "context.environment", form: object},
	{member: "context.metadata.session_end", form: truth},
	{member: "context.metadata.sequence_number", form: whole},
	{member: "context.metadata.execution.tool_name", form: text, tool: true, from: []string{"gen_ai.tool.name", "tool.name"}},
	{member: "context.metadata.execution.inputs", form: value, tool: true, from: []string{"gen_ai.tool.call.arguments", "input.value", adkArguments}},
	{member: "context.metadata.execution.outputs", form: value, tool: true, from: []string{"gen_ai.tool.call.result", "output.value", adkResult}},
	{member: "context.metadata.execution.cost_cents", form: whole},
	{member: "context.metadata.execution.error", form: text, tool: true, derive: (*view).failure,
		otherwise: "if the span failed: its status message, else the message of its exception, else `error.type`"},
	{member: "context.metadata.duration_ms", computed: true, form: number, derive: (*view).duration, otherwise: "end of the span minus start"},
	{member: "context.metadata.otel", computed: true, form: object, derive: (*view).origin, otherwise: "where the trace comes from: see below"},
}

// The attributes of Google's Agent Development Kit. They are "{}" where it records no content, so that
// value says nothing.
const (
	adkArguments = "gcp.vertex.agent.tool_call_args"
	adkResult    = "gcp.vertex.agent.tool_response"
)

// noReasoning is the reasoning of a decision whose span has none.
const noReasoning = `"The span records no reasoning."`

// The reasons why a span gives no trace. Those of the first group are no faults.
const (
	ReasonOtherSpan = "other_span"  // neither GenAI nor aap.*
	ReasonModelCall = "model_call"  // what the model decided is in the spans of its tool calls
	ReasonAgentRun  = "agent_run"   // it contains decisions and is none
	ReasonToolSide  = "tool_side"   // the tool's own view of a call: the caller has a span, too
	ReasonMerged    = "merged_span" // it repeats calls that have spans of their own

	ReasonNoAgent     = "no_agent_id"
	ReasonNoCard      = "no_card_id"
	ReasonNoTime      = "no_timestamp"
	ReasonNoAction    = "no_action"
	ReasonNoCategory  = "no_category"
	ReasonNoSelection = "no_selection"
	ReasonNoID        = "no_span_id"
	ReasonWrongType   = "wrong_type" // of an attribute aap.*, or a text that is longer than a trace may be

	ReasonIncomplete = "incomplete_span" // of a dead letter that has only a part of its span
)

// Reasons returns all reasons, in that order.
func Reasons() []string {
	return []string{ReasonOtherSpan, ReasonModelCall, ReasonAgentRun, ReasonToolSide, ReasonMerged,
		ReasonNoAgent, ReasonNoCard, ReasonNoTime, ReasonNoAction, ReasonNoCategory, ReasonNoSelection, ReasonNoID, ReasonWrongType, ReasonIncomplete}
}

// ReasonUnmapped is the reason of the dead letter of a span that is a decision and gives no trace.
const ReasonUnmapped = "unmapped_span"

// known has the attributes that the table reads from every span; the values of others are kept in
// context.metadata.otel.
var known = func() map[string]bool {
	names := map[string]bool{}
	for i := range table {
		if r := &table[i]; !r.computed {
			names[prefix+r.member] = true
		}
	}
	return names
}()

// ofResource has the attributes that the table reads from a resource.
var ofResource = func() map[string]bool {
	names := map[string]bool{}
	for i := range table {
		if r := &table[i]; r.resource {
			names[prefix+r.member] = true
		}
	}
	return names
}()

// Table returns the table of docs/OTEL.md, as Markdown.
func Table() string {
	var b strings.Builder
	b.WriteString("| member | attributes, the first one that is present | otherwise |\n|---|---|---|\n")
	for i := range table {
		r := &table[i]
		b.WriteString("| `" + r.member + "` | ")
		sources := make([]string, 0, 2+len(r.from))
		if !r.computed {
			sources = append(sources, "`"+prefix+r.member+"`")
		}
		if r.resource {
			sources = append(sources, "`"+prefix+r.member+"` of the resource")
		}
		for _, name := range r.from {
			sources = append(sources, "`"+name+"`")
		}
		b.WriteString(strings.Join(sources, ", ") + " | ")
		switch {
		case r.otherwise != "" && r.missing != "" && r.tool:
			b.WriteString(r.otherwise + "; else refused: `" + r.missing + "`")
		case r.otherwise != "":
			b.WriteString(r.otherwise)
		case r.missing != "":
			b.WriteString("refused: `" + r.missing + "`")
		default:
			b.WriteString("absent")
		}
		b.WriteString(" |\n")
	}
	return b.String()
}

func (r *row) pointer() string { return "/" + strings.ReplaceAll(r.member, ".", "/") }

// fault returns the fault of a member that has no source.
func (r *row) fault() schema.Fault {
	message := "the span has no attribute " + prefix + r.member + r.orElse()
	switch {
	case r.computed:
		message = r.member + " is the " + r.otherwise + ", which is missing or out of range"
	case len(r.from) > 0:
		message += ", or it is empty or not " + r.form.String()
	}
	return schema.Fault{Pointer: r.pointer(), Message: message + " (" + r.missing + ")"}
}

func (r *row) orElse() string {
	text := ""
	for _, name := range r.from {
		text += " or " + name
	}
	if r.resource {
		text += ", and its resource no " + prefix + r.member
	}
	return text
}
