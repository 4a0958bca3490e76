package otel

import (
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/plumbline/plumbline/schema"
)

// Result is what a span gives.
type Result struct {
	Trace  []byte         // the trace as JSON, for schema.Admit; nil: there is none, for Reason
	Reason string         // one of Reasons
	Faults []schema.Fault // of a span that is a decision and gives no trace; empty: the span is no decision
	Unread []string       // attributes aap.* that name no member of a trace; they are kept, and not read
}

// Map returns the trace of a span. It does not change its arguments.
func Map(resource pcommon.Resource, scope pcommon.InstrumentationScope, span ptrace.Span) Result {
	v := view{resource: resource.Attributes(), scope: scope, span: span, attributes: span.Attributes()}
	if isIncomplete(scope) {
		return Result{Reason: ReasonIncomplete, Faults: []schema.Fault{{Message: "this is a part of a span, from a dead letter: the whole was too large for it (" + ReasonIncomplete + ")"}}}
	}
	explicit, unread := v.explicit()
	reason := v.call()
	v.tool = reason == ""
	if !v.tool && !explicit {
		return Result{Reason: reason, Unread: unread}
	}
	if span.TraceID().IsEmpty() || span.SpanID().IsEmpty() {
		return Result{Reason: ReasonNoID, Faults: []schema.Fault{{Message: "the span has no trace id or no span id (" + ReasonNoID + ")"}}, Unread: unread}
	}
	return v.write(unread)
}

// view is a span that is being mapped.
type view struct {
	resource   pcommon.Map
	scope      pcommon.InstrumentationScope
	span       ptrace.Span
	attributes pcommon.Map
	tool       bool // the span is a tool call
	absent     []string
	used       []string // attributes whose values the trace has in members of its own
}

// explicit reports whether attributes of the span itself describe a decision, and returns those of the
// span and its resource that have the prefix and are not read.
func (v *view) explicit() (explicit bool, unread []string) {
	for name := range v.attributes.All() {
		switch {
		case !strings.HasPrefix(name, prefix):
		case !known[name]:
			unread = append(unread, name)
		case strings.HasPrefix(name, "aap.action."), strings.HasPrefix(name, "aap.decision."), strings.HasPrefix(name, "aap.escalation."):
			explicit = true
		}
	}
	for name := range v.resource.All() {
		if strings.HasPrefix(name, prefix) && !ofResource[name] {
			unread = append(unread, name)
		}
	}
	slices.Sort(unread)
	return explicit, unread
}

// call returns "" if the span is a tool call of an agent, and otherwise what it is.
func (v *view) call() string {
	operation := v.text("gen_ai.operation.name")
	kind := v.text("openinference.span.kind")
	switch {
	case operation == "execute_tool" || operation == "" && kind == "TOOL":
		if side := v.span.Kind(); side == ptrace.SpanKindServer || side == ptrace.SpanKindConsumer {
			return ReasonToolSide
		}
		if v.text("gen_ai.tool.name") == "(merged tools)" { // of Google's Agent Development Kit
			return ReasonMerged
		}
		return ""
	case operation == "chat", operation == "text_completion", operation == "generate_content", operation == "embeddings", kind == "LLM", kind == "EMBEDDING":
		return ReasonModelCall
	case operation == "invoke_agent", operation == "create_agent", operation == "invoke_workflow", kind == "AGENT":
		return ReasonAgentRun
	}
	return ReasonOtherSpan
}

// text returns an attribute of the span if it is a text.
func (v *view) text(name string) string {
	if value, ok := v.attributes.Get(name); ok && value.Type() == pcommon.ValueTypeStr {
		return value.Str()
	}
	return ""
}

// write writes the trace, row by row.
func (v *view) write(unread []string) Result {
	out := document{text: make([]byte, 0, 2<<10)}
	result := Result{Unread: unread}
	for i := range table {
		r := &table[i]
		raw, fault := v.member(r)
		switch {
		case fault != nil:
			result.Reason, result.Faults = first(result.Reason, ReasonWrongType), append(result.Faults, *fault)
		case raw != nil:
			out.set(r.member, raw)
		case r.missing != "":
			result.Reason, result.Faults = first(result.Reason, r.missing), append(result.Faults, r.fault())
		}
	}
	if len(result.Faults) == 0 {
		result.Trace = out.end()
	}
	return result
}

func first(reason, next string) string {
	if reason != "" {
		return reason
	}
	return next
}

// member returns the member of a row, nil if it is absent.
func (v *view) member(r *row) (jsontext.Value, *schema.Fault) {
	if !r.computed {
		name := prefix + r.member
		value, ok := v.attributes.Get(name)
		if !ok && r.resource {
			value, ok = v.resource.Get(name)
			if ok && len(value.Str()) > schema.MaxIDBytes { // it would be copied for every span
				return nil, &schema.Fault{Pointer: r.pointer(), Message: fmt.Sprintf("attribute %s of the resource: longer than %d bytes", name, schema.MaxIDBytes)}
			}
		}
		if ok {
			v.used = append(v.used, name)
			raw, err := r.form.strict(value)
			if err != nil {
				return nil, &schema.Fault{Pointer: r.pointer(), Message: "attribute " + name + ": " + err.Error()}
			}
			return raw, nil
		}
	}
	if r.named {
		v.absent = append(v.absent, r.member)
	}
	if r.tool && !v.tool {
		return nil, nil
	}
	for _, name := range r.from {
		value, ok := v.attributes.Get(name)
		if !ok || !says(name, value) {
			continue
		}
		if r.form == text && tooLong(value) {
			return nil, &schema.Fault{Pointer: r.pointer(), Message: "attribute " + name + ": " + errLong.Error()}
		}
		if raw := r.form.lenient(value); raw != nil {
			v.used = append(v.used, name)
			return raw, nil
		}
	}
	if r.derive == nil {
		return nil, nil
	}
	return r.derive(v), nil
}

// says reports whether the value of an attribute says something.
func says(name string, value pcommon.Value) bool {
	switch name {
	case adkArguments, adkResult:
		return value.Type() != pcommon.ValueTypeStr || value.Str() != "{}"
	}
	return value.Type() != pcommon.ValueTypeEmpty
}

func constant(raw string) func(*view) jsontext.Value {
	return func(*view) jsontext.Value { return jsontext.Value(raw) }
}

// namespace is the name space of the ids of traces (RFC 9562, section 5.5).
var namespace = uuid.MustParse("6f8d4f0e-6d0b-5c6e-9b3a-0d4c8d1f7a21")

// TraceID returns the trace_id of the trace of a span.
func TraceID(trace pcommon.TraceID, span pcommon.SpanID) string {
	return uuid.NewSHA1(namespace, append(trace[:], span[:]...)).String()
}

func (v *view) traceID() jsontext.Value {
	return quote(TraceID(v.span.TraceID(), v.span.SpanID()))
}

func (v *view) timestamp() jsontext.Value {
	at := v.span.StartTimestamp()
	if at == 0 || at > math.MaxInt64 { // of the year 2262 and later, which would read as a time before 1970
		return nil
	}
	return quote(at.AsTime().Format(time.RFC3339Nano))
}

func (v *view) parameters() jsontext.Value {
	for _, name := range []string{prefix + "context.metadata.execution.inputs", "gen_ai.tool.call.arguments", "input.value", adkArguments} {
		if value, ok := v.attributes.Get(name); ok && says(name, value) {
			return object.lenient(value)
		}
	}
	return nil
}

// maxContent is how many bytes of JSON arguments and a result may have. A trace has the arguments twice.
const maxContent = 192 << 10

// onlyOption is the option_id of an action whose span names no alternatives.
const onlyOption = "action"

func (v *view) onlyAlternative() jsontext.Value {
	option := v.text(prefix + "decision.selected")
	if option == "" {
		option = onlyOption
	}
	name := v.text(prefix + "action.name")
	if name == "" && v.tool {
		name = first(v.text("gen_ai.tool.name"), v.text("tool.name"))
	}
	out := document{text: make([]byte, 0, 128)} // a longer name or id is refused in any case
	out.set("option_id", quote(schema.Clip(option, schema.MaxIDBytes)))
	out.set("description", quote("the action itself: "+schema.Clip(name, schema.MaxIDBytes)))
	return slices.Concat(jsontext.Value("["), out.end(), jsontext.Value("]"))
}

func (v *view) onlySelected() jsontext.Value {
	if _, given := v.attributes.Get(prefix + "decision.alternatives_considered"); given {
		return nil
	}
	return quote(onlyOption)
}

// maxError is how many bytes of the text of an error a trace has.
const maxError = 4 << 10

func (v *view) failure() jsontext.Value {
	status := v.span.Status()
	text := v.text("error.type")
	if status.Code() == ptrace.StatusCodeOk || status.Code() != ptrace.StatusCodeError && text == "" {
		return nil // a status Ok was set by somebody who says that it was no failure
	}
	for _, event := range v.span.Events().All() {
		if message, ok := event.Attributes().Get("exception.message"); ok && event.Name() == "exception" {
			text = first(message.AsString(), text)
		}
	}
	if status.Code() == ptrace.StatusCodeError {
		text = first(status.Message(), text)
	}
	return quote(schema.Clip(first(text, "the span's status is error, without a message"), maxError))
}

func (v *view) duration() jsontext.Value {
	start, end := v.span.StartTimestamp(), v.span.EndTimestamp()
	if start == 0 || end < start {
		return nil
	}
	return strconv.AppendFloat(nil, float64(end-start)/float64(time.Millisecond), 'f', -1, 64)
}

// Mapping is the version of the table. It changes if a span would give another trace.
const Mapping = 1

// maxKept bounds the attributes that a trace keeps under their own names, and maxKeptValue each of them.
const (
	maxKept      = 128
	maxKeptValue = 16 << 10
)

// service has the attributes of the resource that a trace keeps.
var service = []string{"service.name", "service.version", "service.instance.id", "deployment.environment.name"}

func isService(name string) bool { return slices.Contains(service, name) }

// origin is where the trace comes from: the span, and what of it has no member of its own.
func (v *view) origin() jsontext.Value {
	out := document{text: make([]byte, 0, 1<<10)}
	out.set("mapping", strconv.AppendInt(nil, Mapping, 10))
	trace, span, parent := v.span.TraceID(), v.span.SpanID(), v.span.ParentSpanID()
	out.set("trace_id", quote(hex.EncodeToString(trace[:])))
	out.set("span_id", quote(hex.EncodeToString(span[:])))
	if !parent.IsEmpty() {
		out.set("parent_span_id", quote(hex.EncodeToString(parent[:])))
	}
	out.set("span_name", quote(schema.Clip(v.span.Name(), schema.MaxIDBytes)))
	out.set("span_kind", quote(strings.ToLower(v.span.Kind().String())))
	out.set("status", quote(strings.ToLower(v.span.Status().Code().String())))
	for _, of := range []struct{ member, text string }{{"scope.name", v.scope.Name()}, {"scope.version", v.scope.Version()}} {
		if of.text != "" {
			out.set(of.member, quote(schema.Clip(of.text, schema.MaxIDBytes)))
		}
	}
	for _, name := range service {
		if value, ok := v.resource.Get(name); ok && value.Type() == pcommon.ValueTypeStr {
			out.setName("resource", name, quote(schema.Clip(value.Str(), schema.MaxIDBytes)))
		}
	}
	if len(v.absent) > 0 {
		out.set("absent", list(v.absent))
	}
	others := slices.DeleteFunc(ordered(v.attributes), func(a attribute) bool { return slices.Contains(v.used, a.name) })
	if len(others) > maxKept {
		out.set("attributes_left_out", strconv.AppendInt(nil, int64(len(others)-maxKept), 10))
		others = others[:maxKept]
	}
	for _, a := range others {
		out.setName("attributes", a.name, encode(a.value, maxKeptValue))
	}
	return out.end()
}
