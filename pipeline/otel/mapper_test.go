package otel

import (
	"errors"
	"math"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"pgregory.net/rapid"

	"github.com/plumbline/plumbline/schema"
)

// toolCall returns the span of a tool call and its resource. change alters the attributes of the span.
func toolCall(change func(span ptrace.Span, attributes pcommon.Map)) (pcommon.Resource, ptrace.Span) {
	resource := ptrace.NewResourceSpans().Resource()
	for name, value := range map[string]string{"agent_id": "agent-1", "card_id": "card-1", "action.category": "bounded"} {
		resource.Attributes().PutStr(prefix+name, value)
	}
	span := ptrace.NewSpan()
	span.SetTraceID(pcommon.TraceID{1})
	span.SetSpanID(pcommon.SpanID{2})
	span.SetStartTimestamp(1_800_000_000_000_000_001)
	span.SetEndTimestamp(1_800_000_000_001_500_001)
	span.Attributes().PutStr("gen_ai.operation.name", "execute_tool")
	span.Attributes().PutStr("gen_ai.tool.name", "search")
	change(span, span.Attributes())
	return resource, span
}

func mapCall(change func(span ptrace.Span, attributes pcommon.Map)) Result {
	resource, span := toolCall(change)
	return Map(resource, pcommon.NewInstrumentationScope(), span)
}

// Every member of the table can be given by its own attribute, and says exactly that.
func TestFullControl(t *testing.T) {
	r := mapCall(func(span ptrace.Span, attributes pcommon.Map) {
		attributes.Clear()
		for name, raw := range map[string]any{
			"agent_id": "agent-2", "card_id": "card-2", "action.type": "recommend", "action.name": "buy", "action.category": "escalation_trigger",
			"action.target.type": "shop", "action.target.identifier": "s-1", "action.parameters": `{"amount": 250}`,
			"decision.alternatives_considered": []any{map[string]any{"option_id": "A", "description": "buy now"}}, "decision.selected": "A",
			"decision.selection_reasoning": "the price is low", "decision.values_applied": []any{"honesty", "thrift"}, "decision.confidence": 0.5,
			"escalation.evaluated": true, "escalation.triggers_checked": `[{"trigger":"amount > 100","matched":true}]`, "escalation.required": true,
			"escalation.reason": "expensive", "escalation.escalation_id": "e-1", "escalation.escalation_status": "approved", "escalation.principal_response": `{"decision":"approved"}`,
			"context.session_id": "s-1", "context.conversation_turn": int64(3), "context.prior_trace_ids": []any{"t-0"}, "context.environment": `{"client":"web"}`,
			"context.metadata.session_end": true, "context.metadata.sequence_number": int64(7),
			"context.metadata.execution.tool_name": "shop.buy", "context.metadata.execution.inputs": `{"amount":250}`, "context.metadata.execution.outputs": "done",
			"context.metadata.execution.cost_cents": int64(25000), "context.metadata.execution.error": "none",
		} {
			if err := attributes.PutEmpty(prefix + name).FromRaw(raw); err != nil {
				t.Fatal(err)
			}
		}
		if attributes.Len() != len(known) {
			t.Errorf("%d attributes, the table has %d", attributes.Len(), len(known))
		}
		attributes.PutInt("gen_ai.usage.input_tokens", 40)
	})
	want := `{"trace_id":"` + TraceID(pcommon.TraceID{1}, pcommon.SpanID{2}) + `","agent_id":"agent-2","card_id":"card-2","timestamp":"2027-01-15T08:00:00.000000001Z",` +
		`"action":{"type":"recommend","name":"buy","category":"escalation_trigger","target":{"type":"shop","identifier":"s-1"},"parameters":{"amount":250}},` +
		`"decision":{"alternatives_considered":[{"description":"buy now","option_id":"A"}],"selected":"A","selection_reasoning":"the price is low","values_applied":["honesty","thrift"],"confidence":0.5},` +
		`"escalation":{"evaluated":true,"triggers_checked":[{"trigger":"amount > 100","matched":true}],"required":true,"reason":"expensive","escalation_id":"e-1","escalation_status":"approved","principal_response":{"decision":"approved"}},` +
		`"context":{"session_id":"s-1","conversation_turn":3,"prior_trace_ids":["t-0"],"environment":{"client":"web"},"metadata":{"session_end":true,"sequence_number":7,` +
		`"execution":{"tool_name":"shop.buy","inputs":{"amount":250},"outputs":"done","cost_cents":25000,"error":"none"},"duration_ms":1.5,` +
		`"otel":{"mapping":1,"trace_id":"01000000000000000000000000000000","span_id":"0200000000000000","span_name":"","span_kind":"unspecified","status":"unset","attributes":{"gen_ai.usage.input_tokens":40}}}}}`
	if string(r.Trace) != want {
		t.Errorf("%v\n%s\nwant\n%s", r.Faults, r.Trace, want)
	}
	decoder := schema.Decoder{Warn: true}
	if err := decoder.Admit(new(schema.Trace), "agent-2", r.Trace); err != nil || len(decoder.Warnings()) > 0 {
		t.Error(err, decoder.Warnings())
	}
}

// What is missing refuses the span, each reason by itself. Nothing is put in its place.
func TestMissingMembersRefuse(t *testing.T) {
	for name, c := range map[string]struct {
		change func(ptrace.Span, pcommon.Map)
		reason string
		at     string
	}{
		"action":       {func(_ ptrace.Span, a pcommon.Map) { a.Remove("gen_ai.tool.name") }, ReasonNoAction, "/action/name"},
		"empty action": {func(_ ptrace.Span, a pcommon.Map) { a.PutStr("gen_ai.tool.name", "") }, ReasonNoAction, "/action/name"},
		"selection":    {func(_ ptrace.Span, a pcommon.Map) { a.PutStr(prefix+"decision.alternatives_considered", `[{}]`) }, ReasonNoSelection, "/decision/selected"},
		"time":         {func(s ptrace.Span, _ pcommon.Map) { s.SetStartTimestamp(0) }, ReasonNoTime, "/timestamp"},
		"ids":          {func(s ptrace.Span, _ pcommon.Map) { s.SetSpanID(pcommon.SpanID{}) }, ReasonNoID, ""},
		"type of text": {func(_ ptrace.Span, a pcommon.Map) { a.PutInt(prefix+"action.type", 1) }, ReasonWrongType, "/action/type"},
		"type of list": {func(_ ptrace.Span, a pcommon.Map) { a.PutStr(prefix+"decision.values_applied", "honesty") }, ReasonWrongType, "/decision/values_applied"},
		"not a number": {func(_ ptrace.Span, a pcommon.Map) { a.PutDouble(prefix+"decision.confidence", math.NaN()) }, ReasonWrongType, "/decision/confidence"},
		"no JSON":      {func(_ ptrace.Span, a pcommon.Map) { a.PutStr(prefix+"context.environment", "{") }, ReasonWrongType, "/context/environment"},
		"twice a name": {func(_ ptrace.Span, a pcommon.Map) { a.PutStr(prefix+"context.environment", `{"a":1,"a":2}`) }, ReasonWrongType, "/context/environment"},
		"not UTF-8":    {func(_ ptrace.Span, a pcommon.Map) { a.PutStr(prefix+"decision.selection_reasoning", "\xff") }, ReasonWrongType, "/decision/selection_reasoning"},
		"no type": {func(_ ptrace.Span, a pcommon.Map) {
			a.PutStr("gen_ai.operation.name", "chat")
			a.PutStr(prefix+"action.name", "answer")
		}, ReasonNoAction, "/action/type"},
	} {
		r := mapCall(c.change)
		if r.Trace != nil || r.Reason != c.reason || len(r.Faults) != 1 || r.Faults[0].Pointer != c.at {
			t.Errorf("%s: %s %v %s", name, r.Reason, r.Faults, r.Trace)
		}
	}
	for _, missing := range []string{"agent_id", "card_id", "action.category"} {
		resource, span := toolCall(func(ptrace.Span, pcommon.Map) {})
		resource.Attributes().Remove(prefix + missing)
		r := Map(resource, pcommon.NewInstrumentationScope(), span)
		if r.Trace != nil || len(r.Faults) != 1 || !strings.Contains(r.Faults[0].Message, prefix+missing) {
			t.Errorf("%s: %s %v", missing, r.Trace, r.Faults)
		}
	}
}

// What is no decision is no error.
func TestOtherSpans(t *testing.T) {
	for reason, change := range map[string]func(ptrace.Span, pcommon.Map){
		ReasonModelCall: func(_ ptrace.Span, a pcommon.Map) { a.PutStr("gen_ai.operation.name", "chat") },
		ReasonAgentRun:  func(_ ptrace.Span, a pcommon.Map) { a.PutStr("gen_ai.operation.name", "invoke_agent") },
		ReasonOtherSpan: func(_ ptrace.Span, a pcommon.Map) { a.Clear(); a.PutStr("http.request.method", "GET") },
		ReasonToolSide:  func(s ptrace.Span, _ pcommon.Map) { s.SetKind(ptrace.SpanKindServer) },
		ReasonMerged:    func(_ ptrace.Span, a pcommon.Map) { a.PutStr("gen_ai.tool.name", "(merged tools)") },
	} {
		if r := mapCall(change); r.Trace != nil || r.Reason != reason || len(r.Faults) > 0 {
			t.Errorf("%s: %s %v", reason, r.Reason, r.Faults)
		}
	}
	r := mapCall(func(_ ptrace.Span, a pcommon.Map) { a.PutStr("aap.decision.reasoning", "because") })
	if len(r.Unread) != 1 || r.Unread[0] != "aap.decision.reasoning" || !strings.Contains(string(r.Trace), `"attributes":{"aap.decision.reasoning":"because"`) {
		t.Errorf("%v %s", r.Unread, r.Trace)
	}
}

// ADK writes {} where it records no content. That is not an empty argument.
func TestContentThatIsNotRecorded(t *testing.T) {
	r := mapCall(func(_ ptrace.Span, a pcommon.Map) { a.PutStr(adkArguments, "{}"); a.PutStr(adkResult, "{}") })
	trace, err := schema.Admit("", r.Trace)
	if err != nil || trace.Action.Parameters != nil || trace.Context.Execution.Inputs != nil || trace.Context.Execution.Outputs != nil {
		t.Errorf("%v %s", err, r.Trace)
	}
}

// A large result is replaced by its size and digest, so that the call is not lost.
func TestLargeContent(t *testing.T) {
	r := mapCall(func(_ ptrace.Span, a pcommon.Map) { a.PutStr("gen_ai.tool.call.result", strings.Repeat("x", 2<<20)) })
	trace, err := schema.Admit("", r.Trace)
	if err != nil || !strings.HasPrefix(string(trace.Context.Execution.Outputs), `{"omitted_bytes":2097154,"sha256":"`) {
		t.Errorf("%v %.300s", err, r.Trace)
	}
}

// values draws any value of an attribute.
func values(depth int) *rapid.Generator[any] {
	kinds := []*rapid.Generator[any]{
		rapid.String().AsAny(), rapid.SampledFrom([]string{"{}", `{"a":[1,{"b":null}]}`, "[", "\xff", "bounded", "execute", "A", `[{"option_id":"A","description":"d"}]`}).AsAny(),
		rapid.Int64().AsAny(), rapid.Float64().AsAny(), rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Copysign(0, -1)}).AsAny(), rapid.Bool().AsAny(),
		rapid.SliceOf(rapid.Byte()).AsAny(), rapid.Just[any](nil),
	}
	if depth > 0 {
		kinds = append(kinds, rapid.SliceOfN(values(depth-1), 0, 4).AsAny(), rapid.MapOfN(rapid.String(), values(depth-1), 0, 4).AsAny())
	}
	return rapid.OneOf(kinds...)
}

// Whatever the attributes are: mapping gives a trace or a reason, the same again for the same span, also
// after it was sent as protobuf, and the trace is at least JSON that Admit can judge.
func TestAnySpan(t *testing.T) {
	names := []string{"anything", "gen_ai.operation.name", "openinference.span.kind", "gen_ai.tool.name", "tool.name", "gen_ai.tool.call.arguments", "input.value", "output.value", "error.type", adkArguments, "aap.other"}
	for _, r := range table {
		names = append(names, prefix+r.member)
	}
	admitted := 0
	rapid.Check(t, func(t *rapid.T) {
		_, span := toolCall(func(ptrace.Span, pcommon.Map) {})
		traces := ptrace.NewTraces()
		in := traces.ResourceSpans().AppendEmpty()
		resource, _ := toolCall(func(ptrace.Span, pcommon.Map) {})
		resource.CopyTo(in.Resource())
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 5, rapid.ID[string]).Draw(t, "names") {
			if err := span.Attributes().PutEmpty(name).FromRaw(values(2).Draw(t, name)); err != nil {
				t.Fatal(err)
			}
		}
		span.SetName(rapid.String().Draw(t, "name"))
		span.Status().SetCode(ptrace.StatusCode(rapid.Int32Range(-1, 4).Draw(t, "status")))
		span.SetKind(ptrace.SpanKind(rapid.Int32Range(-1, 7).Draw(t, "kind")))
		span.CopyTo(in.ScopeSpans().AppendEmpty().Spans().AppendEmpty())
		first := mapAll(traces)[0]
		checkResult(t, first)
		if first.Trace != nil {
			admitted++
		}
		raw, err := ptraceotlp.NewExportRequestFromTraces(traces).MarshalProto()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Size(Protobuf, raw); err != nil {
			t.Fatal(err)
		}
		again, err := Decode(Protobuf, raw)
		if err != nil {
			t.Fatal(err)
		}
		if second := mapAll(again)[0]; string(second.Trace) != string(first.Trace) || second.Reason != first.Reason {
			t.Fatalf("%s\n%s\nand then\n%s\n%s", first.Reason, first.Trace, second.Reason, second.Trace)
		}
	})
	if admitted == 0 {
		t.Error("no span gave a trace")
	}
}

// checkResult checks what holds for every result.
func checkResult(t interface{ Fatalf(string, ...any) }, r Result) {
	if r.Trace == nil {
		if r.Reason == "" {
			t.Fatalf("neither a trace nor a reason")
		}
		return
	}
	_, err := schema.Admit("", r.Trace)
	if refusal, ok := errors.AsType[*schema.Refusal](err); ok && refusal.Reason == schema.ReasonInvalidJSON && !strings.Contains(refusal.Error(), "duplicate") {
		t.Fatalf("%v in %s", err, r.Trace)
	}
}

// Any bytes are decoded or refused, within the memory that Size announces, and their spans mapped.
func FuzzRequest(f *testing.F) {
	for _, framework := range []string{"vercel", "adk"} {
		traces := recorded(f, framework)
		request := ptraceotlp.NewExportRequestFromTraces(traces)
		raw, err := request.MarshalProto()
		if err != nil {
			f.Fatal(err)
		}
		text, err := request.MarshalJSON()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, encoding := range []Encoding{Protobuf, JSON} {
			if _, err := Size(encoding, raw); err != nil {
				continue
			}
			traces, err := Decode(encoding, raw)
			if err != nil {
				continue
			}
			for _, r := range mapAll(traces) {
				checkResult(t, r)
			}
		}
	})
}
